import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ital import losses, models, tasks, theory, volume
from ital.gradients import squared_norm
from ital.learners import awareness_step, imagined_choice
from tests.test_gradients import LOSSES, problem
from tests.worlds import small_classes, small_numbers

SEEDS = st.integers(0, 2**31)
NUMBERS = st.floats(0, 10, allow_subnormal=False)  # XLA takes subnormal numbers for zero


def naive_step(loss, rows, y, params, chosen, lr):
    model = models.linear(loss)
    here = model.gradients(params, rows, y)
    naive = params - lr * here.weighted_sum((jnp.arange(len(y)) == chosen).astype(params.dtype))
    return here, naive, model.gradients(naive, rows, y)


def aware_move(beta, lr, chosen, here, there):
    """1 − q_c and the awareness step ν′ − ν̂ alone, free of the rounding of ν̂."""
    q = imagined_choice(
        beta,
        volume.imitated(lr, here.squared_norms, here.losses, there.losses),
        jnp.ones(len(here.losses), bool),
    )
    zero = jnp.zeros_like(there.weighted_sum(q))
    return 1 - float(q[chosen]), awareness_step(beta, lr, chosen, q, zero, there)


@LOSSES
@given(seed=SEEDS)
@pytest.mark.usefixtures("x64")
def test_theorem_1_large_beta_improves_where_its_conditions_hold(loss, seed):
    params, target, rows, y, _ = problem(loss, seed)
    lr = 0.05
    here = models.linear(loss).gradients(params, rows, y)
    at_target = models.linear(loss).gradients(target, rows, y).losses
    chosen = jnp.argmax(volume.imitated(lr, here.squared_norms, here.losses, at_target))
    here, naive, there = naive_step(loss, rows, y, params, chosen, lr)
    held = theory.local_improvement(lr, chosen, here, there, naive, naive, target)
    assume(bool(held.conditions))
    # The theorem is about the limit β → ∞. Float64 reaches it only if the runner-up is well ahead
    # of the third and the angle between its direction and the target is not a right angle.
    best, second, third = -np.sort(
        -np.asarray(volume.imitated(lr, here.squared_norms, here.losses, there.losses))
    )[:3]
    assume(second - third > 0.3 * (best - second))
    gap = naive - target
    assume(
        float(held.advantage)
        > 0.05 * float(jnp.sqrt(squared_norm(gap) * jnp.max(there.squared_norms)))
    )

    beta = 1.0 / (best - second)
    improved = []
    while True:
        left, move = aware_move(beta, lr, chosen, here, there)
        if left <= 1e-12:
            break
        improved.append(float(2 * jnp.sum(gap * move) + squared_norm(move)) < 0)
        beta *= 2
    assert all(improved[-3:])


@pytest.mark.usefixtures("x64")
def test_theorem_1_a_failing_second_condition_can_make_the_step_worse():
    # One dimension with bias; the learner's guess has already passed the target on what the choice
    # would move.
    rows = models.linear_rows(np.asarray([[1.0], [-0.2]]))
    rows = type(rows)(*map(jnp.asarray, rows))
    y = jnp.asarray([[1.0], [0.0]])
    params, target = jnp.asarray([[-3.0, 0.0]]), jnp.asarray([[-2.5, -1.0]])
    lr, chosen = 0.01, jnp.asarray(0)
    here, naive, there = naive_step(losses.squared, rows, y, params, chosen, lr)
    held = theory.local_improvement(lr, chosen, here, there, naive, naive, target)
    assert bool(held.chosen_is_best)
    assert float(held.advantage) < 0
    assert not bool(held.conditions)
    _, move = aware_move(2000.0, lr, chosen, here, there)
    worse = theory.local_improvement(lr, chosen, here, there, naive, naive + move, target)
    assert not bool(worse.improved)
    assert float(squared_norm(naive + move - target)) > float(squared_norm(naive - target))


@LOSSES
@given(seed=SEEDS)
@pytest.mark.usefixtures("x64")
def test_local_improvement_is_its_definition(loss, seed):
    params, target, rows, y, _ = problem(loss, seed)
    # After a long step another example may be the best.
    lr, chosen = ((0.05, 1.5)[seed % 2], seed % len(y))
    here, naive, there = naive_step(loss, rows, y, params, jnp.asarray(chosen), lr)
    aware = naive + 0.01 * params
    held = theory.local_improvement(lr, jnp.asarray(chosen), here, there, naive, aware, target)
    volumes = np.asarray(volume.imitated(lr, here.squared_norms, here.losses, there.losses))
    others = [i for i in range(len(y)) if i != chosen]
    runner_up = max(others, key=lambda i: volumes[i])
    one = lambda i: there.weighted_sum((jnp.arange(len(y)) == i).astype(params.dtype))  # noqa: E731
    advantage = float(jnp.sum((naive - target) * (one(chosen) - one(runner_up))))
    np.testing.assert_allclose(held.advantage, advantage, rtol=1e-8, atol=1e-10)
    assert bool(held.chosen_is_best) == (volumes[chosen] >= volumes[others].max())
    assert bool(held.improved) == (np.linalg.norm(aware - target) < np.linalg.norm(naive - target))


@given(values=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=12))
@pytest.mark.usefixtures("x64")
def test_monotonicity_violations_count_pairs(values):
    distances, remaining = (jnp.asarray(column) for column in zip(*values, strict=True))
    ordered = [(a, b) for a in values for b in values if a[0] < b[0]]
    expected = sum(a[1] > b[1] for a, b in ordered) / max(len(ordered), 1)
    assert float(theory.monotonicity_violations(distances, remaining)) == pytest.approx(expected)


def test_after_best_lesson_takes_the_largest_volume():
    assert float(theory.after_best_lesson(5.0, jnp.asarray([1.0, 3.0, -2.0]))) == 2.0


def test_teaching_monotonicity_is_a_share_and_nearly_holds_at_small_steps():
    for task in (small_numbers(), small_classes()):
        share = theory.teaching_monotonicity(task, lr=1e-3, samples=50, batches=4)
        assert 0 <= share < 0.05
    assert theory.teaching_monotonicity(small_numbers(), lr=3.0, samples=50, batches=4) > 0.05


def test_lipschitz_is_the_steepest_pair_and_copies_tell_nothing():
    x = jnp.asarray([0.0, 1.0, 1.0, 3.0])
    apart = jnp.abs(x[:, None] - x)
    assert float(theory.lipschitz(jnp.asarray([0.0, 2.0, 2.5, 9.0]), apart)) == 3.5
    assert float(theory.lipschitz(x, 0 * apart)) == 0


def test_covering_radius_is_that_of_the_remotest_example():
    apart = jnp.asarray([[0.0, 3.0], [2.0, 1.5], [9.0, 4.0]])
    assert float(theory.covering_radius(apart)) == 4.0


def test_the_error_allowed_turns_the_corollarys_density_around():
    steps, lr, slope, radius = 2000, 1e-3, 3.0, 0.5
    error = theory.error_allowed(steps, lr, slope, slope, radius)
    assert radius == pytest.approx(error / (steps * slope * (lr**2 + 4 * lr)))


def on_a_line(points):
    """Regression on a line through the origin, ω* = (2, 0): l = ½(νx−y)² = ½((ν−2)x)² for a learner
    without bias.
    """
    target = np.array([[2.0, 0.0]])
    x = np.asarray(points, float)[:, None]
    pool = tasks.Pool(x, x, 2 * x, target, target, x, 2 * x)
    task = tasks.from_pool("line", pool, losses.squared, beta=1.0)
    return task._replace(
        rules=task.rules._replace(start=lambda key, init, world: jnp.asarray([[5.0, 0.0]]))
    )


@pytest.mark.usefixtures("x64")
def test_premises_have_a_closed_form_on_a_line():
    """With a = ν−2: l = ½a²x², of slope a²(xᵢ+xⱼ)/2; ‖g‖² = (ax)²(x²+1).

    Both are steepest at the start, a = 3.
    """
    x = np.array([0.0, 1.0, 2.0, 4.0])
    lr, steps = 0.01, 50
    found = theory.corollary_premises(
        on_a_line(x), lr=lr, steps=steps, batch_size=200, samples=400, pools=1, examples=200
    )
    a = 3 * np.max(jax.random.uniform(theory._keys(0)[1], (400,)))
    pairs = [(i, j) for i in range(4) for j in range(i)]
    norms = (a * x) ** 2 * (x**2 + 1)
    assert found.loss_slope == pytest.approx(a**2 * (4 + 2) / 2)
    assert found.norm_slope == pytest.approx(
        max(abs(norms[i] - norms[j]) / (x[i] - x[j]) for i, j in pairs)
    )
    assert (found.radius, found.error, found.missed) == (0, 0, 0)  # the mini-batch is the pool
    assert found.convexity_violations == 0
    assert theory.failing(found, 0.0) == []
    few = theory.corollary_premises(
        on_a_line(x), lr=lr, steps=steps, batch_size=1, samples=400, pools=1, examples=200
    )
    assert few.radius in (4, 3, 2)  # from x = 0 or 4, 1, 2 to the far end
    allowed = steps * (lr**2 * found.norm_slope + 4 * lr * found.loss_slope) * few.radius
    assert few.error == pytest.approx(allowed / 9)
    assert 0 <= few.missed <= few.error
    assert theory.failing(few, 0.5) == ["density", "monotonicity"]


def test_premises_of_irl_take_examples_one_hot_and_find_that_its_loss_is_not_convex():
    found = theory.corollary_premises(
        tasks.irl_dense(size=3), samples=8, pools=1, examples=60, batch_size=5
    )
    assert found.radius == pytest.approx(np.sqrt(2))
    assert found.convexity_violations > 0.01
    assert "convexity" in theory.failing(found, 0.0)


# ---- sampled estimates a second time, in NumPy ----


def sampled(task, seed, samples):
    """Parameters between starts and the target, as the library draws them.

    The target, and the keys of examples.
    """
    world = jax.tree.map(jnp.asarray, task.world(seed))
    target = np.asarray(world.truth.target)
    start_key, scale_key, example_key = theory._keys(seed)
    starts = [
        task.rules.start(key, task.init, world) for key in jax.random.split(start_key, samples)
    ]
    shares = jax.random.uniform(scale_key, (samples,))
    points = [
        target + float(share) * (np.asarray(start) - target)
        for start, share in zip(starts, shares, strict=True)
    ]
    first = np.mean([np.sum((np.asarray(start) - target) ** 2) for start in starts])
    return world, target, points, first, example_key


def linear(params, x, y):
    """Of a linear learner with the square loss: losses, squared gradient norms, and ⟨ν−ν*, g⟩ as a
    function of ν−ν*.
    """
    residual = x @ params.T - y
    gradients = residual[:, :, None] * x[:, None]
    return 0.5 * (residual**2).sum(axis=1), (gradients**2).sum(axis=(1, 2)), gradients


def shown_rows(task, world, key, count):
    shown = task.rules.show(world.learner, task.rules.draw(key, world, count))
    return np.asarray(shown.x.x, float), np.asarray(shown.labels, float)


@pytest.mark.usefixtures("x64")
def test_monotonicity_is_that_of_a_second_look():
    task, lr = small_numbers(), 3.0
    world, target, points, _, key = sampled(task, 3, 12)
    shares = []
    for own in jax.random.split(key, 3):
        x, y = shown_rows(task, world, own, 5)
        at_target = linear(target, x, y)[0]
        found = []
        for params in points:
            losses, norms, _ = linear(params, x, y)
            volumes = -(lr**2) * norms + 2 * lr * (losses - at_target)
            distance = np.sum((params - target) ** 2)
            found.append((distance, distance - volumes.max()))
        ordered = [(one, other) for one in found for other in found if one[0] < other[0]]
        shares.append(np.mean([one[1] > other[1] for one, other in ordered]))
    assert len(set(shares)) > 1
    expected = theory.teaching_monotonicity(task, 3, lr=lr, batch_size=5, samples=12, batches=3)
    assert expected == pytest.approx(np.mean(shares))


@pytest.mark.usefixtures("x64")
def test_premises_are_those_of_a_second_look():
    task, lr, steps = small_numbers(), 0.2, 30
    world, target, points, first, key = sampled(task, 2, 4)
    slopes, norm_slopes, radii, missed, convexity = [], [], [], [], []
    for own in jax.random.split(key, 3):
        x, y = shown_rows(task, world, own, 9)
        apart = np.linalg.norm(x[:, None] - x, axis=-1)
        radii.append(max(min(row[:4]) for row in apart))
        at_target = linear(target, x, y)[0]
        for params in points:
            losses, norms, gradients = linear(params, x, y)
            pairs = [(i, j) for i in range(9) for j in range(9) if apart[i, j] > 0]
            slopes.append(max(abs(losses[i] - losses[j]) / apart[i, j] for i, j in pairs))
            norm_slopes.append(max(abs(norms[i] - norms[j]) / apart[i, j] for i, j in pairs))
            volumes = -(lr**2) * norms + 2 * lr * (losses - at_target)
            missed.append(volumes.max() - volumes[:4].max())
            progress = (gradients * (params - target)).sum(axis=(1, 2))
            convexity.append(
                np.mean(losses - at_target > progress + 0.01 * np.abs(progress).mean())
            )
    found = theory.corollary_premises(
        task, 2, lr=lr, batch_size=4, steps=steps, samples=4, pools=3, examples=9
    )
    radius = np.mean(radii)
    error = steps * (lr**2 * max(norm_slopes) + 4 * lr * max(slopes)) * radius / first
    expected = (
        max(slopes),
        max(norm_slopes),
        radius,
        error,
        steps * np.mean(missed) / first,
        np.mean(convexity),
    )
    assert tuple(found) == pytest.approx(expected)
    assert len(set(missed)) > 2


def test_a_premise_fails_above_its_bound():
    within = theory.Premises(1.0, 1.0, 1.0, theory.MOST_ERROR, 1.0, theory.MOST_VIOLATIONS)
    assert theory.failing(within, theory.MOST_VIOLATIONS) == []
    beyond = within._replace(error=0.1001, convexity_violations=0.0101)
    assert theory.failing(beyond, 0.0101) == ["density", "monotonicity", "convexity"]
