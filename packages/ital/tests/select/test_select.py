"""The teacher's choice for any training loop: the core's numbers, in three array libraries."""

import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ital import errors, losses, models, select, teachers, volume
from ital.learners import _two_step
from ital.select import jax as select_jax
from tests.learners.test_two_step import lesson_on, step
from tests.test_gradients import problem

torch = pytest.importorskip("torch")
LIBRARIES = {"numpy": np.asarray, "jax": jnp.asarray, "torch": torch.tensor}
LR, BETA = 0.05, 7.0


def numbers(count=9, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=count), rng.normal(size=count), rng.random(count)


def test_volumes_are_the_imitated_teaching_volumes(x64):
    now, reference, norms = numbers()
    score = select.volumes(now, reference, norms, LR)
    core = volume.imitated(LR, jnp.asarray(norms), jnp.asarray(now), jnp.asarray(reference))
    np.testing.assert_allclose(2 * LR * score, core, rtol=1e-12)
    np.testing.assert_array_equal(select.volumes(now, reference), now - reference)


@pytest.mark.parametrize("k", [1, 4])
def test_the_choice_is_that_of_the_cooperative_teacher(x64, k):
    now, reference, norms = (jnp.asarray(each) for each in numbers())
    volumes = volume.imitated(LR, norms, now, reference)
    view = teachers.TeacherView(
        volumes, None, None, jnp.zeros(1), LR, jnp.asarray(0), jnp.asarray(1)
    )
    teacher = teachers.cooperative()
    choose = teacher.choose if k == 1 else teacher.several(k)
    shown = choose(teacher.prepare(jax.random.key(0), 9), view, teacher.settings)
    ours = select.choose(select.volumes(now, reference, norms, LR), k)
    assert np.atleast_1d(np.asarray(shown)).tolist() == np.asarray(ours).tolist()


def test_for_small_steps_the_order_is_that_of_rho_loss():
    now, reference, norms = numbers(200)
    rho = select.choose(now - reference, 200)
    near = [
        np.mean(select.choose(select.volumes(now, reference, norms, lr), 200) == rho)
        for lr in (1.0, 0.01, 1e-7)
    ]
    assert near[0] < near[1] < near[2] == 1.0


@pytest.mark.parametrize("bias", [True, False])
def test_norms_of_the_last_layer_are_those_of_autodiff(x64, bias):
    rng = np.random.default_rng(1)
    weights, offset, features = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(5, 4))
    labels = rng.integers(3, size=5)

    def loss(layer, x, y):
        return -jax.nn.log_softmax(layer[0] @ x + layer[1])[y]

    by_example = jax.vmap(jax.grad(loss), (None, 0, 0))((weights, offset), features, labels)
    squares = [np.sum(np.asarray(part).reshape(5, -1) ** 2, axis=1) for part in by_example]
    logits = features @ weights.T + offset
    expected = squares[0] + bias * squares[1]
    np.testing.assert_allclose(
        select.squared_norms_of(logits, labels, features, bias=bias), expected, rtol=1e-10
    )
    np.testing.assert_allclose(select.squared_norms_of(logits, labels), squares[1], rtol=1e-10)


def test_the_probabilities_of_all_ordered_choices_sum_to_one():
    now, then, norms = numbers(5)
    for k in (1, 2, 3, 5):
        likely = [
            np.exp(-select.choice_loss(now, then, np.asarray(chosen), 1.3, norms, 0.2))
            for chosen in itertools.permutations(range(5), k)
        ]
        assert sum(likely) == pytest.approx(1.0, abs=1e-12)


def test_the_choice_loss_is_a_sum_of_softmaxes(x64):
    now, then, norms = numbers(7)
    chosen = np.asarray([4, 0, 6])

    def plackett_luce(now):
        scores = 2 * BETA * LR * (then - now) - BETA * LR * LR * norms
        left, total = list(range(7)), 0.0
        for c in chosen:
            total -= scores[c] - jax.nn.logsumexp(scores[jnp.asarray(left)])
            left.remove(c)
        return total

    ours = jax.value_and_grad(
        lambda now: select.choice_loss(now, then, chosen, BETA * LR, norms, LR)
    )
    for one, two in zip(
        ours(jnp.asarray(now)), jax.value_and_grad(plackett_luce)(jnp.asarray(now)), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("chosen", [[2], [4, 1, 0]])
def test_one_step_on_the_choice_loss_is_the_awareness_step(x64, chosen):
    """From ν̂, Algorithm 1's; with both losses at ν, that of eq. (imit-update)."""
    rng = np.random.default_rng(5)
    x, y = jnp.asarray(rng.normal(size=(6, 4))), jnp.asarray(rng.integers(3, size=6))
    params, chosen = jnp.asarray(rng.normal(size=(3, 4))), jnp.asarray(chosen)

    def of_all(params):
        return -jax.nn.log_softmax(x @ params.T)[jnp.arange(6), y]

    gradients = jax.jacrev(of_all)
    then, norms = of_all(params), jnp.sum(gradients(params) ** 2, axis=(1, 2))
    guess = params - LR * jnp.mean(gradients(params)[chosen], axis=0)
    for at in (guess, params):
        volumes = volume.imitated(LR, norms, then, of_all(at))
        q = _two_step.imagined_choice(BETA, volumes, jnp.ones(6, bool), chosen)
        surprise = jnp.zeros(6).at[chosen].add(1.0) - q
        expected = at - 2 * BETA * LR**2 * jnp.tensordot(surprise, gradients(at), 1)
        step = jax.grad(
            lambda at: select.choice_loss(of_all(at), then, chosen, BETA * LR, norms, LR)
        )(at)
        np.testing.assert_allclose(at - LR * step, expected, rtol=1e-9, atol=1e-12)


def test_the_learner_of_the_loop_takes_the_same_step(x64):
    loss = losses.cross_entropy
    params, _, rows, y, _ = problem(loss, 1, (3, 4, 6))
    lesson = lesson_on(loss, params, rows, y, LR, seed=2)

    def of_all(params):
        return models.linear(loss).gradients(params, rows, y).losses

    def surprise(params):
        return select.choice_loss(
            of_all(params), lesson.here.losses, lesson.chosen, BETA * LR, norms, LR
        )

    norms = lesson.here.squared_norms
    guess = params - LR * jax.grad(lambda p: of_all(p)[lesson.chosen])(params)
    np.testing.assert_allclose(
        guess - LR * jax.grad(surprise)(guess),
        step(lesson, params, BETA, len(y)),
        rtol=1e-9,
        atol=1e-11,
    )


def test_three_libraries_agree(x64):
    now, then, norms = numbers(12)
    told = {}
    for name, make in LIBRARIES.items():
        one, two, three = make(now), make(then), make(norms)
        scores = select.volumes(one, two, three, LR)
        chosen = select.choose(scores, 4)
        drawn = select.choose(scores, 4, 0.5, np.random.default_rng(2))
        logits, labels = make(now.reshape(4, 3)), make(np.asarray([0, 2, 1, 1]))
        told[name] = (
            *(
                np.asarray(each)
                for each in (scores, chosen, drawn, select.squared_norms_of(logits, labels))
            ),
            float(select.choice_loss(one, two, chosen, BETA * LR, three, LR)),
        )
        assert type(scores) is type(chosen) is type(one)
    for name in ("jax", "torch"):
        for one, two in zip(told["numpy"], told[name], strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-13)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused_or_comes_last(library, bad):
    scores = np.asarray([[0.3, bad, 0.1, 0.2], [0.0, 1.0, 2.0, 3.0]])
    make = LIBRARIES[library]
    with pytest.raises(
        errors.InputError, match=r"1 of 8 scores are not finite, the first at \(0, 1\)"
    ):
        select.choose(make(scores), 2)
    with pytest.raises(errors.InputError, match="1 of 4 scores are not finite, the first at 1:"):
        select.choose(make(scores[0]), 2)
    for temperature in (0.0, 0.5):
        rng = np.random.default_rng(0)
        order = np.asarray(select.choose(make(scores), 4, temperature, rng, on_nan="last"))
        assert order[0, -1] == 1
        assert sorted(order[0]) == [0, 1, 2, 3]
    assert np.asarray(select.choose(make(scores), 4, on_nan="last")).tolist() == [
        [0, 3, 2, 1],
        [3, 2, 1, 0],
    ]


def test_inside_jit_a_score_that_is_not_finite_comes_last():
    scores = jnp.asarray([jnp.nan, 0.1, jnp.inf, 0.2])
    assert jax.jit(lambda scores: select.choose(scores, 2))(scores).tolist() == [3, 1]
    picked = select_jax.pick(lambda params, batch: batch * params, 1.0, scores, jnp.zeros(4), 2)
    assert picked.indices.tolist() == [3, 1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_scores_are_chosen_from_one_by_one(x64, library):
    make = LIBRARIES[library]
    now, then, norms = (each.reshape(3, 4) for each in numbers(12))
    volumes = select.volumes(make(now), make(then), make(norms), LR)
    chosen = select.choose(volumes, 2)
    logits, labels = (
        make(np.stack([now, then, norms], axis=-1)),
        make(np.arange(12).reshape(3, 4) % 3),
    )
    features = make(np.stack([then, norms], axis=-1))
    squared = select.squared_norms_of(logits, labels, features)
    losses_of_choices = select.choice_loss(
        make(now), make(then), chosen, BETA * LR, make(norms), LR
    )
    assert tuple(losses_of_choices.shape) == (3,)
    for row in range(3):
        one, two, three = make(now[row]), make(then[row]), make(norms[row])
        alone = select.volumes(one, two, three, LR)
        np.testing.assert_allclose(np.asarray(volumes[row]), np.asarray(alone), rtol=1e-12)
        best = select.choose(alone, 2)
        assert np.asarray(chosen[row]).tolist() == np.asarray(best).tolist()
        of_row = select.choice_loss(one, two, best, BETA * LR, three, LR)
        np.testing.assert_allclose(float(losses_of_choices[row]), float(of_row), rtol=1e-12)
        squared_of_row = select.squared_norms_of(logits[row], labels[row], features[row])
        np.testing.assert_allclose(np.asarray(squared[row]), np.asarray(squared_of_row), rtol=1e-12)


def test_gradients_agree_between_libraries(x64):
    now, then, norms = numbers(6)
    chosen = np.asarray([5, 2])
    by_jax = jax.grad(lambda now: select.choice_loss(now, then, chosen, 0.8, norms, LR))(
        jnp.asarray(now)
    )
    leaf = torch.tensor(now, requires_grad=True)
    select.choice_loss(
        leaf, torch.tensor(then), torch.tensor(chosen), 0.8, torch.tensor(norms), LR
    ).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), by_jax, rtol=1e-12)


def test_a_random_choice_has_the_probabilities_of_plackett_luce():
    scores = np.asarray([0.0, 0.7, -0.4])
    rng = np.random.default_rng(0)
    drawn = [tuple(select.choose(scores, 2, 1.0, rng)) for _ in range(20_000)]
    for pair in itertools.permutations(range(3), 2):
        likely = np.exp(-select.choice_loss(np.zeros(3), scores / 2, np.asarray(pair), 1.0))
        share = drawn.count(pair) / len(drawn)
        assert share == pytest.approx(likely, abs=4 * np.sqrt(likely * (1 - likely) / len(drawn)))


def test_every_library_brings_its_own_randomness():
    scores = np.linspace(0.0, 1.0, 50)
    one = select.choose(torch.tensor(scores), 5, 1.0, torch.Generator().manual_seed(1))
    two = select.choose(torch.tensor(scores), 5, 1.0, torch.Generator().manual_seed(1))
    assert torch.equal(one, two)
    draw = jax.jit(lambda key: select.choose(jnp.asarray(scores), 5, 1.0, key))
    assert not jnp.array_equal(draw(jax.random.key(0)), draw(jax.random.key(1)))


def test_ties_take_the_lowest_index():
    for make in LIBRARIES.values():
        assert list(np.asarray(select.choose(make(np.asarray([1.0, 2.0, 2.0, 2.0])), 2))) == [1, 2]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda a: select.volumes(a, a[:2]),
            r"all of one shape .* losses \(3,\), reference_losses \(2,\)",
        ),
        (lambda a: select.volumes(a, a, a), "squared_norms need lr"),
        (lambda a: select.choose(a, 4), "k must lie between 1 and the 3 scores, not 4"),
        (lambda a: select.choose(a, 0), "k must lie between"),
        (lambda a: select.choose(a, 1, 1.0), "needs rng"),
        (lambda a: select.choose(a, 1, -1.0), "temperature must be at least 0"),
        (lambda a: select.choose(a[None, None], 1), r"not of shape \(1, 1, 3\)"),
        (
            lambda a: select.choose(a, 1, on_nan="skip"),
            "on_nan must be 'refuse' or 'last', not 'skip'",
        ),
        (
            lambda a: select.choice_loss(a[None], a[None], np.asarray([1]), 1.0),
            "a choice is needed for each row",
        ),
        (lambda a: select.choose(a, 1, 1.0, "seed"), "rng must be a NumPy generator, not str"),
    ],
)
def test_mistakes_are_said_in_a_line(call, said):
    with pytest.raises(errors.InputError, match=said):
        call(np.arange(3.0))


def test_the_import_needs_neither_jax_nor_pytorch():
    code = "import sys, ital.select; print(sorted({'jax', 'torch', 'numpy'} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_train_step_in_jax():
    """40 % of the labels are wrong; the reference knows the classes: few wrong ones are chosen."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(5, 3))
    x = jnp.asarray(rng.normal(size=(400, 5)), jnp.float32)
    right = np.argmax(x @ truth, axis=1)
    wrong = rng.random(400) < 0.4
    y = jnp.asarray(np.where(wrong, (right + rng.integers(1, 3, 400)) % 3, right))
    optimizer = optax.sgd(0.5)

    def of_each(params, batch):
        return optax.losses.softmax_cross_entropy_with_integer_labels(batch[0] @ params, batch[1])

    @jax.jit
    def train(params, state, batch, reference):
        picked = select_jax.pick(of_each, params, batch, reference, 8)
        gradient = jax.grad(lambda p: jnp.mean(of_each(p, picked.batch)))(params)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, picked.indices

    params, shown = jnp.zeros((5, 3)), []
    state = optimizer.init(params)
    reference = of_each(jnp.asarray(2 * truth, jnp.float32), (x, y))
    for _ in range(60):
        rows = rng.permutation(400)[:80]
        params, state, indices = train(params, state, (x[rows], y[rows]), reference[rows])
        shown.append(wrong[rows][np.asarray(indices)].mean())
    assert np.mean(shown) < 0.1
    assert np.mean(np.argmax(x @ params, axis=1) == right) > 0.9


@pytest.mark.parametrize("with_norms", [False, True])
def test_nothing_is_learned_through_the_choice(with_norms):
    """Losses, scores and examples are numbers for the train step: they pass no gradient on."""
    batch = (jnp.arange(1.0, 5.0), jnp.ones(4))

    def losses(w, batch):
        return (batch[0] * w - batch[1]) ** 2

    def through(w):
        norms = (
            {"squared_norms": lambda w, batch: 4 * batch[0] ** 2 * losses(w, batch), "lr": 0.1}
            if with_norms
            else {}
        )
        picked = select_jax.pick(losses, w, batch, jnp.zeros(4), 2, **norms)
        return jnp.sum(picked.losses) + jnp.sum(picked.scores) + jnp.sum(picked.batch[0])

    value, slope = jax.value_and_grad(through)(1.5)
    assert value != 0
    assert slope == 0
