"""An independent Algorithm 1 in plain NumPy, with every teacher: each gradient is materialised, one
example at a time.

Only the random numbers of a step are those of the program.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import learners, teachers, teaching
from ital.mdp import grid
from tests.test_mdp import dense

PAPER = [learners.make(name) for name in learners.PAPER]


def softmax(v):
    e = np.exp(v - v.max())
    return e / e.sum()


class NumpyLane:
    """One learner and its teacher.

    A task says what an example is: ``examples(batch)``, ``loss(nu, example)``, ``gradient(nu,
    example)``, and ``volume(nu, example)``, the cooperative teacher's.
    """

    def __init__(
        self, task, teacher, seed, lr=0.01, beta=None, batch_size=20, choices=1, methods=PAPER
    ):
        self.world, self.lr, self.batch_size, self.choices = (
            task.world(seed),
            lr,
            batch_size,
            choices,
        )
        made = teachers.make(teacher)
        self.beta = made.sign * task.beta if beta is None else beta
        self.exact = made.omniscient
        name, *numbers = teacher.split(":")
        self.make_player = functools.partial(PLAYERS[name], self, *numbers)
        run = teaching.Run(
            seeds=[seed, seed + 1], lr=lr, batch_size=batch_size, choices=choices, init=task.init
        )
        (session,) = teaching.open_sessions(task, made, methods, run)
        self.start = np.asarray(session.starts[0], float)
        key = jax.random.fold_in(teaching.key_of(seed), 1)
        world = jax.tree.map(jnp.asarray, self.world)
        drawn = jax.jit(lambda t: teaching.draw(session.program, world, jax.random.fold_in(key, t)))
        self.draw = functools.cache(drawn)

    def begin(self, method):
        self.method = method
        self.nu = self.start
        self.player = self.make_player()

    def walk(self, method, steps):
        self.begin(method)
        distances = [self.distance()]
        for t in range(steps):
            self.step(t)
            distances.append(self.distance())
        records = self.player.records
        signals = {
            name: np.array([record[name] for record in records])
            for name in (records[0] if records else ())
        }
        return Walk(np.array(distances), self.nu, self.player.estimate, signals)

    def distance(self):
        return np.linalg.norm(self.nu - self.world.truth.target)

    def imagined(self, examples, gradients, guess):
        """The volumes TVᵢ or TV̂ᵢ for the target ν̂, of the kind that the teacher uses."""
        if self.exact:
            gains = [np.sum((self.nu - guess) * g) for g in gradients]
        else:
            gains = [self.loss(self.nu, e) - self.loss(guess, e) for e in examples]
        return [
            -(self.lr**2) * np.sum(g**2) + 2 * self.lr * gain
            for g, gain in zip(gradients, gains, strict=True)
        ]

    def step(self, t):
        drawn, lr, nu = self.draw(t), self.lr, self.nu
        examples = self.examples(drawn.batch)
        chosen = self.player.choose(t, drawn, examples)
        gradients = [self.gradient(nu, e) for e in examples]
        guess = nu - lr * np.mean([gradients[c] for c in chosen], axis=0)
        imagined = np.asarray(self.imagined(examples, gradients, guess))
        self.seen = Step(examples, chosen[0], guess, imagined)
        if self.method == "batch":
            self.nu = nu - lr * np.mean(gradients, axis=0)
        elif self.method == "sgd":
            self.nu = nu - lr * gradients[int(drawn.bystander)]
        elif self.method == "imt":
            self.nu = guess
        else:
            there = gradients if self.exact else [self.gradient(guess, e) for e in examples]
            self.nu = guess - 2 * self.beta * lr**2 * self.surprise(chosen, drawn.order, there)

    def surprise(self, chosen, order, there):
        """Σ (g_c − Σᵢ qᵢgᵢ) over the choices c in turn, with q over what is in view and not yet
        chosen.
        """
        view = int(self.method.partition("-")[2] or self.batch_size)
        left = [*chosen, *[i for i in np.argsort(order) if i not in chosen][: view - len(chosen)]]
        total = np.zeros_like(self.nu)
        for c in chosen:
            q = softmax(self.beta * self.seen.imagined[left])
            total = total + there[c] - sum(p * there[i] for p, i in zip(q, left, strict=True))
            left.remove(c)
        return total

    def theorem(self):
        """Theorem 1 on the latest step: whether its conditions held, and whether the step was
        better than ν̂.
        """
        examples, chosen, guess, imagined = self.seen
        target = self.world.truth.target
        others = [i for i in range(len(examples)) if i != chosen]
        runner_up = max(others, key=lambda i: imagined[i])
        ahead = self.gradient(guess, examples[chosen]) - self.gradient(guess, examples[runner_up])
        conditions = (
            imagined[chosen] >= imagined[runner_up] and np.sum((guess - target) * ahead) > 0
        )
        return conditions, np.linalg.norm(self.nu - target) < np.linalg.norm(guess - target)


class Step(NamedTuple):
    """The intermediate values of one step of a :class:`NumpyLane`."""

    examples: list
    chosen: int
    guess: np.ndarray
    imagined: np.ndarray


class Walk(NamedTuple):
    """A run of a :class:`NumpyLane`: distances from step 0 on, the end, the teacher's memory, its
    signals by step.
    """

    distances: np.ndarray
    params: np.ndarray
    memory: np.ndarray | None
    signals: dict


class PoolLane(NumpyLane):
    """An example is a row in both views, with its label.

    A class is a distribution over the classes.
    """

    def examples(self, batch):
        learner, teacher, rows = self.world.learner, self.world.teacher.examples, np.asarray(batch)
        self.classes = np.issubdtype(learner.labels.dtype, np.integer)
        labels = (
            np.eye(len(self.world.teacher.target))[learner.labels[rows]]
            if self.classes
            else learner.labels[rows]
        )
        return list(zip(learner.x.x[rows], teacher.x.x[rows], labels, strict=True))

    def value(self, alpha, y):
        return (
            -np.sum(y * np.log(softmax(alpha))) if self.classes else 0.5 * np.sum((alpha - y) ** 2)
        )

    def slope(self, alpha, y):
        return softmax(alpha) - y if self.classes else alpha - y

    def loss(self, nu, example):
        return self.value(nu @ example[0], example[2])

    def gradient(self, nu, example):
        return np.outer(self.slope(nu @ example[0], example[2]), example[0])

    def volume(self, nu, example):
        x, z, y = example
        gain = self.value(nu @ x, y) - self.value(self.world.teacher.target @ z, y)
        return -(self.lr**2) * np.sum(np.outer(self.slope(nu @ x, y), z) ** 2) + 2 * self.lr * gain


class MapLane(NumpyLane):
    """An example is a state and an action of a 3 × 3 map; everything is a dense table."""

    discount, sharpness = 0.5, 20.0

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.transitions = dense(grid(3))
        self.plan = functools.cache(self._plan)

    def examples(self, batch):
        return list(zip(*map(np.asarray, batch), strict=True))

    def _plan(self, reward):
        """Q by many sweeps, and (I − γP_πᵀ)⁻¹, of the soft maximum's own policy."""
        values = np.zeros(9)
        for _ in range(60):
            q = self.transitions @ (np.asarray(reward) + self.discount * values)
            values = np.log(
                np.exp(self.sharpness * (q - q.max(0))).sum(0)
            ) / self.sharpness + q.max(0)
        own = np.apply_along_axis(softmax, 0, self.sharpness * q)
        onward = np.einsum("as,asn->sn", own, self.transitions)
        return q, np.linalg.inv(np.eye(9) - self.discount * onward.T)

    def loss(self, reward, example):
        state, action = example
        return -np.log(softmax(self.plan(tuple(reward))[0][:, state])[action])

    def gradient(self, reward, example):
        """−(I − γP_πᵀ)⁻¹c with c = P_a(s,·) − Σ_b π(b|s)P_b(s,·)."""
        state, action = example
        q, onward = self.plan(tuple(reward))
        leads = self.transitions[:, state]
        return -onward @ (leads[action] - softmax(q[:, state]) @ leads)

    def volume(self, reward, example):
        order = self.world.teacher.examples.encoding  # where the teacher keeps each state
        gradient = np.empty(9)
        gradient[order] = self.gradient(reward, example)
        gain = self.loss(reward, example) - self.loss(self.world.teacher.target[order], example)
        return -(self.lr**2) * np.sum(gradient**2) + 2 * self.lr * gain


class Player:
    """The cooperative teacher, and what the others share: ``choose`` returns the indices to show,
    the first one first.

    A player lives as long as a run of one learner. ``estimate`` is its memory, ``records`` what it
    records, by step.
    """

    estimate = None

    def __init__(self, lane):
        self.lane = lane
        self.records = []

    def choose(self, t, drawn, examples):
        return self.largest([self.lane.volume(self.lane.nu, e) for e in examples])

    def largest(self, values):
        return np.argsort(-np.asarray(values), kind="stable")[: self.lane.choices].tolist()


class Adversary(Player):
    def choose(self, t, drawn, examples):
        return self.largest([-self.lane.volume(self.lane.nu, e) for e in examples])


class Boltzmann(Player):
    """A draw with probability ∝ exp(ρ·TV̂), by the Gumbel trick."""

    def __init__(self, lane, rho):
        super().__init__(lane)
        self.rho = float(rho)

    def choose(self, t, drawn, examples):
        volumes = np.asarray([self.lane.volume(self.lane.nu, e) for e in examples])
        return self.largest(self.rho * volumes + drawn.noise.gumbel)


class Mixture(Player):
    """Helps with probability P, else shows a random example."""

    def __init__(self, lane, helps):
        super().__init__(lane)
        self.helps = float(helps)

    def choose(self, t, drawn, examples):
        if drawn.noise.lapse >= 1 - self.helps:
            return super().choose(t, drawn, examples)
        return self.largest(drawn.noise.gumbel)


class Switching(Player):
    """Helps before a step, and shows random examples from it on."""

    def __init__(self, lane, step, then):
        assert then == "random"
        super().__init__(lane)
        self.change = int(step)

    def choose(self, t, drawn, examples):
        return (
            super().choose(t, drawn, examples)
            if t < self.change
            else self.largest(drawn.noise.gumbel)
        )


class Omniscient(Player):
    """The progress ‖ν − ν*‖² − ‖ν − ηgᵢ − ν*‖² of each example, by taking the step."""

    def choose(self, t, drawn, examples):
        return self.largest([self.progress(self.lane.nu, [e]) for e in examples])

    def progress(self, nu, examples):
        target = self.lane.world.truth.target
        before = np.sum((nu - target) ** 2)
        for example in examples:
            nu = nu - self.lane.lr * self.lane.gradient(nu, example)
        return before - np.sum((nu - target) ** 2)


class Planner(Omniscient):
    """The best of all plans over the mini-batches that come."""

    def __init__(self, lane, horizon):
        super().__init__(lane)
        self.later = range(1, int(horizon))

    def choose(self, t, drawn, examples):
        coming = [self.lane.examples(self.lane.draw(t + h).batch) for h in self.later]
        plans = itertools.product(enumerate(examples), *map(enumerate, coming))
        best = max(
            plans, key=lambda plan: self.progress(self.lane.nu, [example for _, example in plan])
        )
        return [best[0][0]]


class LargestError(Player):
    def choose(self, t, drawn, examples):
        target = self.lane.world.teacher.target
        return self.largest([np.sum((self.lane.nu @ x - target @ z) ** 2) for x, z, _ in examples])


class Synthesis(Player):
    """A random example, whose label brings a naive learner's answer to the target's, as far as
    labels can.
    """

    def __init__(self, lane, reach=np.inf):
        super().__init__(lane)
        self.reach = float(reach)

    def choose(self, t, drawn, examples):
        lane = self.lane
        index = int(jax.random.randint(drawn.noise, (), 0, len(examples)))
        x, z, y = examples[index]
        alpha = lane.nu @ x
        # The slope at α that moves it there.
        wanted = (alpha - lane.world.truth.target @ x) / (lane.lr * x @ x)
        if lane.classes:
            label = nearest_distribution(softmax(alpha) - wanted)
        else:
            label = np.clip(alpha - wanted, y - self.reach, y + self.reach)
        examples[index] = x, z, label
        return [index]


def nearest_distribution(v):
    """The point of the simplex next to v: max(v − τ, 0) with the τ at which it sums to 1, by
    bisection.
    """
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - low, 0)


class Imitation(Player):
    """Keeps an estimate v in its own view: chooses for v, corrects v by the answer, and then takes
    the step in v.
    """

    def __init__(self, lane, rate=None):
        super().__init__(lane)
        self.estimate = np.zeros_like(lane.world.teacher.target)
        self.rate = rate

    def simulated(self, example):
        """The gradient at v in the teacher's own view."""
        _, z, y = example
        return np.outer(self.lane.slope(self.estimate @ z, y), z)

    def best(self, examples):
        """The example of largest exact volume for a learner with parameters v."""
        lr, gap = self.lane.lr, self.estimate - self.lane.world.teacher.target
        gradients = [self.simulated(e) for e in examples]
        return self.largest([-(lr**2) * np.sum(g**2) + 2 * lr * np.sum(gap * g) for g in gradients])

    def choose(self, t, drawn, examples):
        chosen = self.best(examples)
        gaps = [self.estimate @ z - self.lane.nu @ x for x, z, _ in examples]
        _, z, _ = shown = examples[chosen[0]]
        rate = 1 / (z @ z) if self.rate is None else float(self.rate)
        self.estimate = self.estimate - rate * np.outer(gaps[chosen[0]], z)
        self.estimate = self.estimate - self.lane.lr * self.simulated(shown)
        self.records.append({"imitation_error": np.sqrt(np.mean(np.sum(np.square(gaps), axis=1)))})
        return chosen


class Exam(Imitation):
    """Sees no feedback: v is fitted to the answers of an exam every few steps, and follows naive
    steps in between.
    """

    def __init__(self, lane, every, number):
        super().__init__(lane)
        self.every, self.number = int(every), int(number)

    def choose(self, t, drawn, examples):
        if t % self.every == 0:
            self.fit(drawn.noise)
        chosen = self.best(examples)
        self.estimate = self.estimate - self.lane.lr * self.simulated(examples[chosen[0]])
        return chosen

    def fit(self, key):
        """Least squares on one random row from each equal part of the pool, with the penalty
        0.001·‖v − v_before‖².
        """
        world = self.lane.world
        total = len(world.learner.labels)
        bounds = np.array([part * total // self.number for part in range(self.number + 1)])
        rows = np.asarray(jax.random.randint(key, (self.number,), bounds[:-1], bounds[1:]))
        z, answers = world.teacher.examples.x.x[rows], world.learner.x.x[rows] @ self.lane.nu.T
        weight = np.sqrt(0.001)
        left = np.vstack([z, weight * np.eye(z.shape[1])])
        right = np.vstack([answers, weight * self.estimate.T])
        self.estimate = np.linalg.lstsq(left, right, rcond=None)[0].T


PLAYERS = {
    "cooperative": Player,
    "adversarial": Adversary,
    "boltzmann": Boltzmann,
    "mixture": Mixture,
    "switching": Switching,
    "omniscient": Omniscient,
    "planner": Planner,
    "largest-error": LargestError,
    "synthesis": Synthesis,
    "imitation": Imitation,
    "exam": Exam,
}
