import dataclasses
import functools
import json
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
import ital_study as study
from ital import teaching
from ital.errors import InputError
from ital.teaching import Drawn, Lane, Moment, Program
from ital.teaching._step import first_copies

MAPS = ("A", "B", "C", "D", "E")
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left


class Reference:
    """The world of the study, rewritten in NumPy and float64.

    A table of transitions, iteration, linear solves.
    """

    def __init__(self, config):
        size, eta = config.size, config.lr
        self.eta, self.beta, self.k, self.gamma = (
            eta,
            config.beta,
            config.world.sharpness,
            config.world.discount,
        )
        self.volume = config.volume
        states = size * size
        self.p = np.zeros((4, states, states))
        for action in range(4):
            for row in range(size):
                for column in range(size):
                    for way, (down, right) in enumerate(MOVES):
                        r, c = row + down, column + right
                        r, c = (r, c) if 0 <= r < size and 0 <= c < size else (row, column)
                        self.p[action, row * size + column, r * size + c] += (
                            0.80 if way == action else 0.06
                        )

    def q(self, w):
        values = np.zeros(len(w))
        for _ in range(200):
            q = self.p @ (w + self.gamma * values)
            top = q.max(axis=0)
            values = top + np.log(np.exp(self.k * (q - top)).sum(axis=0)) / self.k
        return self.p @ (w + self.gamma * values)

    def policy(self, w):
        q = self.q(w)
        e = np.exp(q - q.max(axis=0))
        return e / e.sum(axis=0)

    def gradients(self, w, arrows):
        q, pi = self.q(w), self.policy(w)
        mu = np.exp(self.k * (q - q.max(axis=0)))
        mu /= mu.sum(axis=0)
        onward = np.einsum("as,ast->st", mu, self.p)
        inverse = np.linalg.inv(np.eye(len(w)) - self.gamma * onward)
        return np.array([-(self.p[a, s] - pi[:, s] @ self.p[:, s]) @ inverse for s, a in arrows])

    def losses(self, w, arrows):
        return -np.log(np.array([self.policy(w)[a, s] for s, a in arrows]))

    def volumes(self, w, target, arrows):
        g = self.gradients(w, arrows)
        return -(self.eta**2) * (g**2).sum(axis=1) + 2 * self.eta * g @ (w - target)

    def update(self, learner, w, arrows, choice):
        g = self.gradients(w, arrows)
        guess = w - self.eta * g[choice]
        if learner == "naive":
            return guess
        imagined = self.beta * self.volumes(w, guess, arrows)
        # Equations (imit-teaching-volume) and (imit-update), Algorithm 1.
        if self.volume == "imitated":
            gained = self.losses(w, arrows) - self.losses(guess, arrows)
            imagined = self.beta * (-(self.eta**2) * (g**2).sum(axis=1) + 2 * self.eta * gained)
            g = self.gradients(guess, arrows)
        q = np.exp(imagined - imagined.max())
        q /= q.sum()
        return guess - 2 * self.beta * self.eta**2 * (g[choice] - q @ g)

    def reward(self, belief, target):
        """The return of the greedy policy, by a linear solve."""
        greedy = self.q(belief).argmax(axis=0)
        onward = self.p[greedy, np.arange(len(belief))]
        return np.linalg.solve(np.eye(len(belief)) - onward, onward @ target).mean()


@pytest.fixture(scope="module")
def reference(config):
    return Reference(config)


def test_rewards_of_the_true_policy(config, rules, reference):
    known = {"A": 354.6, "B": 358.7, "C": 344.6, "D": 354.8, "E": 173.2}
    for name in MAPS:
        target = rules.truth(name).target
        measured = rules.measures(name, target)
        assert measured["reward"] == pytest.approx(known[name], abs=0.05)
        assert measured["reward"] == pytest.approx(
            reference.reward(target.astype(float), target), rel=1e-5
        )
        zero = [measured[m] for m in ("distance", "distance_centred", "policy_tv", "policy_gap")]
        assert zero == pytest.approx([0] * 4, abs=1e-6)


@pytest.fixture(scope="module")
def imitating(config):
    """The study with robots that assume the imitated volume, as in the paper."""
    return study.StudyRules(dataclasses.replace(config, volume="imitated"))


@pytest.mark.parametrize("learner", ["naive", "aware"])
@pytest.mark.parametrize("name", ["A", "E"])
def test_updates_are_those_of_the_equations(rules, reference, learner, name):
    target = rules.truth(name).target.astype(float)
    mind = rules.mind(learner, rules.start(3, name))
    for arrows in rules.candidates(3, name)[:6]:
        w = mind.belief
        volumes = reference.volumes(w.astype(float), target, arrows)
        np.testing.assert_allclose(rules.volumes(name, w, arrows), volumes, atol=2e-5)
        choice = rules.best(name, w, arrows)
        assert choice == volumes.argmax()
        mind = rules.update(name, learner, mind, arrows, choice)
        expected = reference.update(learner, w.astype(float), arrows, choice)
        np.testing.assert_allclose(mind.belief, expected, atol=5e-5 if learner == "naive" else 5e-4)
        assert np.abs(mind.belief - w).max() > (5e-3 if learner == "naive" else 0.1)


def test_measures_are_those_of_the_equations(rules, reference):
    w, target = rules.start(5, "D"), rules.truth("D").target.astype(float)
    apart = np.abs(reference.policy(w.astype(float)) - reference.policy(target))
    gap = w - target
    expected = {
        "distance": np.linalg.norm(gap),
        "distance_centred": np.linalg.norm(gap - gap.mean()),
        "policy_tv": apart.sum(axis=0).mean() / 2,
        "policy_gap": apart.max(axis=0).mean(),
        "reward": reference.reward(w.astype(float), target),
    }
    measured = rules.measures("D", w)
    assert measured.keys() == expected.keys()
    for name, value in expected.items():
        assert measured[name] == pytest.approx(value, rel=1e-4), name
    many = rules.measures_many("D", np.stack([w] * 300 + [rules.start(6, "D")]))
    assert {name: len(values) for name, values in many.items()} == dict.fromkeys(expected, 301)
    for name, value in measured.items():
        np.testing.assert_allclose(many[name][[0, 299]], value, rtol=1e-5)
    assert many["distance"][300] == pytest.approx(
        rules.measures("D", rules.start(6, "D"))["distance"], rel=1e-5
    )


def test_the_picture_shows_the_most_probable_actions(rules, reference):
    w = rules.start(8, "B")
    picture = rules.picture(w)
    assert picture.policy == reference.policy(w.astype(float)).argmax(axis=0).tolist()
    again = np.asarray(json.loads(json.dumps(picture.belief)), np.float32)
    assert again.tobytes() == w.tobytes()


@functools.partial(jax.jit, static_argnums=0)
def core_step(program, world, states, actions, numbers, mind):
    """One step of the core's loop on a given mini-batch."""
    batch, order = (states, actions), jnp.arange(10)
    first = first_copies(ital.tasks.copies(batch, 10))
    drawn = Drawn(
        batch, first, order, jnp.zeros((), int), program.teacher.prepare(jax.random.key(0), 10)
    )
    lane = Lane(mind.belief, mind.memory, program.rules.first_previous(mind.belief, world))
    moment = Moment(jnp.asarray(mind.step), jnp.asarray(30))
    after = teaching.teaching_step(program, world, drawn, numbers, moment, lane)[0]
    return after.params, after.memory


def test_robots_that_imagine_the_imitated_volume(rules, imitating):
    """Their steps follow the equations, not the exact volume; the machine uses the exact one."""
    reference = Reference(imitating.config)
    for name in ("A", "E"):
        mind = imitating.mind("aware", imitating.start(3, name))
        for arrows in imitating.candidates(3, name)[:6]:
            w, choice = mind.belief, imitating.best(name, mind.belief, arrows)
            assert choice == rules.best(name, w, arrows)
            exact = rules.update(name, "aware", mind, arrows, choice)
            mind = imitating.update(name, "aware", mind, arrows, choice)
            expected = reference.update("aware", w.astype(float), arrows, choice)
            np.testing.assert_allclose(mind.belief, expected, atol=1e-4)
            assert np.abs(mind.belief - exact.belief).max() > 4e-4
    assert (
        imitating.robots["aware"].rule
        == imitating.robots["naive"].rule
        != rules.robots["aware"].rule
    )
    assert imitating.robots["adaptive"].rule == ital.learners.adaptive().rule


@pytest.mark.parametrize(
    ("learner", "volume"),
    [("naive", "exact"), ("aware", "exact"), ("adaptive", "exact"), ("aware", "imitated")],
)
def test_the_step_is_the_core_s_teaching_step(config, rules, imitating, learner, volume):
    """The study's machine arm is `ital.teach` with the omniscient teacher, on the same
    mini-batches.
    """
    rules = imitating if volume == "imitated" else rules
    task = ital.tasks.irl(np.array(config.maps[2].rewards), sharpness=200.0, beta=config.beta)
    teacher, robot, form = ital.teachers.omniscient(), rules.robots[learner], ital.steps.rate()
    program = Program(
        rules=task.rules,
        teacher=teacher.code(),
        rule=robot.rule,
        take=form.take,
        batch_size=10,
        choices=1,
        diagnostics=False,
        watched=False,
        axes=(),
    )
    numbers = teaching.LaneNumbers(
        np.float32(config.lr), form.settings, robot.settings, teacher.settings
    )
    mind = rules.mind(learner, rules.start(4, "C"))
    for arrows in rules.candidates(4, "C")[:6]:
        states, actions = np.array(arrows, np.int32).T
        stepped = core_step(
            program, task.world(0), states, np.array([0, 3, 1, 2])[actions], numbers, mind
        )
        mind = rules.update("C", learner, mind, arrows, rules.best("C", mind.belief, arrows))
        jax.tree.map(
            functools.partial(np.testing.assert_allclose, atol=2e-4),
            (mind.belief, mind.memory),
            stepped,
        )


def test_starts(config, rules):
    starts = np.array([rules.start(number, name) for number in range(40) for name in MAPS])
    assert starts.dtype == np.float32
    assert starts.min() >= -2
    assert starts.max() <= 2
    assert starts.std() == pytest.approx(4 / np.sqrt(12), rel=0.03)
    assert len({start.tobytes() for start in starts}) == len(starts)


def test_candidates(rules):
    seen = set()
    for number, name in [(1, "A"), (2, "A"), (1, "B"), (7, "E"), (1, "warm-up")]:
        drawn = rules.candidates(number, name)
        assert len(drawn) == (10 if name == "warm-up" else 30)
        assert drawn == rules.candidates(number, name)
        before = set()
        for step in drawn:
            cells = {arrow.cell for arrow in step}
            assert len(cells) == len(step) == 10
            assert cells <= set(range(25))
            assert not cells & before
            before = cells
        seen.add(str(drawn))
    assert len(seen) == 5


def test_arrows_are_draws_of_the_true_policy(rules, reference):
    """All directions of all cells against their probabilities, and the share of optimal arrows,
    57–71 %.
    """
    shares, surprise = [], []
    for name in MAPS:
        policy = reference.policy(rules.truth(name).target.astype(float))
        count = np.zeros_like(policy)
        for number in range(60):
            for step in rules.candidates(number, name):
                for cell, action in step:
                    count[action, cell] += 1
        often = count.sum(axis=0)
        assert often.min() > 0.8 * often.mean()  # every cell has its turn
        common = np.minimum(policy, 1 - policy) * often > 5
        surprise.append(((count - often * policy) ** 2 / (often * policy * (1 - policy)))[common])
        best = policy > policy.max(axis=0) - 1e-4
        shares.append(count[best].sum() / count.sum())
    surprise = np.concatenate(surprise)
    assert len(surprise) > 300
    assert surprise.max() < 4.5**2
    assert surprise.mean() == pytest.approx(1, abs=4 * np.sqrt(2 / len(surprise)))
    assert 0.565 < min(shares) < 0.6
    assert 0.69 < max(shares) < 0.715


def test_optimal_arrows(config, rules, reference):
    optimal = study.StudyRules(dataclasses.replace(config, arrows="optimal"))
    policy = reference.policy(optimal.truth("C").target.astype(float))
    drawn = optimal.candidates(1, "C")
    for step, drawn_before in zip(drawn, rules.candidates(1, "C"), strict=True):
        assert [arrow.cell for arrow in step] == [arrow.cell for arrow in drawn_before]
        assert all(policy[action, cell] > policy[:, cell].max() - 1e-4 for cell, action in step)


def test_a_longer_study_begins_like_a_shorter_one(config, rules):
    shorter = study.StudyRules(dataclasses.replace(config, steps=10))
    assert shorter.candidates(2, "B") == rules.candidates(2, "B")[:10]
    other = study.StudyRules(dataclasses.replace(config, seed=1))
    assert other.candidates(2, "B") != rules.candidates(2, "B")


def exactly(mind):
    """The complete state of a robot, in bytes."""
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(mind)]


@pytest.mark.parametrize("learner", ["naive", "aware", "adaptive"])
def test_replay_is_what_happened_bit_for_bit(rules, learner):
    mind, choices, lived = rules.mind(learner, rules.start(9, "E")), [], []
    for arrows in rules.candidates(9, "E")[:12]:
        lived.append(mind)
        choices.append(rules.best("E", mind.belief, arrows))
        mind = rules.update("E", learner, mind, arrows, choices[-1])
    lived.append(mind)
    with ThreadPoolExecutor(4) as pool:
        replays = list(pool.map(lambda _: rules.replay(9, "E", learner, choices), range(8)))
    for replayed in replays:
        assert [exactly(each) for each in replayed] == [exactly(each) for each in lived]
    assert [each.step for each in lived] == list(range(13))
    assert len(rules.replay(9, "E", learner, [])) == 1


def test_what_the_adaptive_robot_remembers_matters(rules):
    """The same belief and arrow with and without memory give different steps.

    Else no replay would be needed.
    """
    arrows = rules.candidates(9, "E")
    choices = []
    mind = rules.mind("adaptive", rules.start(9, "E"))
    for step in arrows[:8]:
        choices.append(rules.best("E", mind.belief, step))
        mind = rules.update("E", "adaptive", mind, step, choices[-1])
    forgetful = rules.mind("adaptive", mind.belief)
    best = rules.best("E", mind.belief, arrows[8])
    one, other = (
        rules.update("E", "adaptive", each, arrows[8], best).belief for each in (mind, forgetful)
    )
    assert np.linalg.norm(one - mind.belief) > 2 * np.linalg.norm(other - mind.belief)
    for learner in ("naive", "aware"):
        assert rules.mind(learner, mind.belief).memory == ()


def test_the_adaptive_robot_is_told_the_size_of_beta_alone(config, rules):
    assert rules.robots["adaptive"].settings.beta == config.beta
    assert rules.robots["adaptive"].rule == ital.learners._adaptive.adaptive_rule("exact")


def test_what_is_not_in_the_study_is_refused(rules):
    mind, arrows = study.Mind(rules.start(0, "A")), rules.candidates(0, "A")[0]
    with pytest.raises(
        InputError, match="study 'paper' has no map 'F': its maps are A, B, C, D, E, warm-up"
    ):
        rules.start(0, "F")
    with pytest.raises(InputError, match="unknown learner 'clever'"):
        rules.update("A", "clever", mind, arrows, 0)
    for choice in (-1, 10):
        with pytest.raises(InputError, match=f"choice {choice} is not among the 10 arrows"):
            rules.update("A", "naive", mind, arrows, choice)
    with pytest.raises(InputError, match="31 choices on map 'A', which has 30 steps"):
        rules.replay(0, "A", "naive", [0] * 31)
    with pytest.raises(InputError, match=r"must lie in \[0, 2\*\*32\), not -1"):
        rules.start(-1, "A")
    with pytest.raises(FloatingPointError, match="not finite"):
        rules.update("A", "naive", study.Mind(np.full(25, np.inf)), arrows, 0)


def test_beliefs_far_out_stay_finite(rules):
    """Values in the hundreds cannot be iterated to 1e-6 in float32; they must not become NaN."""
    arrows = rules.candidates(1, "A")[0]
    for scale in (10, 50, 150):
        w = scale * rules.start(1, "A")
        for learner in ("aware", "adaptive"):
            assert np.isfinite(
                rules.update("A", learner, rules.mind(learner, w), arrows, 0).belief
            ).all()
        assert np.isfinite(list(rules.measures("A", w).values())).all()


def test_draws_are_those_of_studies_that_have_begun(rules):
    """A participant who comes back after an update of ital, or of JAX, must find the arrows that
    were shown before.
    """
    arrows = [(6, 3), (1, 2), (7, 1), (13, 1), (19, 0), (4, 2), (2, 2), (18, 1), (23, 1), (5, 2)]
    assert rules.candidates(1, "A")[0] == arrows
    np.testing.assert_allclose(
        rules.start(1, "A")[:3], [-1.3007045, -0.6033969, -0.7998643], rtol=1e-6
    )
