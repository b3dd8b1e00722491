"""Learners that keep a belief over their target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

import ital
from ital import learners, losses, tasks
from ital.errors import InputError
from ital.learners.posterior import _evidence
from ital.learners.posterior._types import StepWindow

FOUR = tasks.irl(np.random.default_rng(1).uniform(-2, 2, (4, 4)))


@pytest.fixture
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=[False, True], ids=["float32", "float64"])
def tolerance(request):
    """The precision of the loop, and how near it comes to float64."""
    with jax.enable_x64(request.param):
        yield 1e-6 if request.param else 1e-3


def small_pool(loss=losses.squared, noise=0.5, rows=40, dim=3, outputs=1):
    """A pool with noisy labels, one view for both players."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (rows, dim))
    target = rng.uniform(-1, 1, (outputs, dim + 1))
    alpha = x @ target[:, :-1].T + target[:, -1]
    if loss.classes:
        y = (alpha + rng.gumbel(size=alpha.shape)).argmax(axis=1)
    else:
        y = alpha + noise * rng.standard_normal(alpha.shape)
    return x, y, target


def pool_task(loss=losses.squared, **options):
    x, y, target = small_pool(loss, **options)
    pool = tasks.Pool(x, x, y, target, target, x, y)
    return tasks.from_pool("small", pool, loss, beta=1000.0)


def final(result, method, metric="distance"):
    return result.curves[metric].sel(learner=method).isel(step=-1).mean("seed").item()


def taught(live, steps):
    """Teach like the cooperative teacher; return the shown parameters, candidates and choices."""
    shown, batches, choices = [], [], []
    for _ in range(steps):
        shown.append(np.asarray(live.params, float))
        batches.append(live.candidates)
        choices.append(int(live.volumes.argmax()))
        live.choose(choices[-1])
    return shown, batches, choices


def test_without_choices_and_with_known_noise_the_posterior_is_the_closed_form(tolerance):
    task = pool_task()
    learner = learners.posterior(sigma=0.5, scale=2.0, window=2)
    live = ital.session(task, learner, batch_size=5, steps=30)
    _, batches, _ = taught(live, 30)
    x = np.concatenate([np.asarray(batch.x.x) for batch in batches])
    y = np.concatenate([np.asarray(batch.labels) for batch in batches])
    # The label of a row is one fact: each row counts once, however often it was drawn.
    rows, first = np.unique(x, axis=0, return_index=True)
    assert len(rows) < len(x)
    precision = rows.T @ rows / 0.5**2 + np.eye(4) / 2.0**2
    mean = np.linalg.solve(precision, rows.T @ y[first] / 0.5**2)
    np.testing.assert_allclose(live.params[0], mean[:, 0], rtol=tolerance)
    entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * np.linalg.inv(precision))[1]
    assert live.metrics["entropy"] == pytest.approx(entropy, rel=tolerance)


@pytest.mark.parametrize("loss", [losses.squared, losses.cross_entropy], ids=lambda loss: loss.name)
def test_the_maximum_is_that_of_scipy(loss, tolerance):
    outputs = 3 if loss.classes else 1
    task = pool_task(loss, outputs=outputs)
    settings = {"scale": 1.5, "sigma": 0.5, "lapse": 0.02, "chance": 1e-9, "grid": (5.0,)}
    # With one b, and a window and a sharpness without limit, the belief is one exact function.
    learner = learners.aware_posterior(**settings, sharpest=1e9, window=20, iterations=60)
    live = ital.session(task, learner, batch_size=6, steps=8, lr=1e-3)
    shown, candidates, choices = taught(live, 8)
    batches = [(np.asarray(batch.x.x, float), np.asarray(batch.labels)) for batch in candidates]
    found = np.asarray(live.params, float)
    found_in_float64 = np.asarray(live.params).dtype == np.float64
    variance = 0.25 if loss is losses.squared else 1.0

    # A second implementation of both losses, in NumPy.
    def losses_at(params, x, y):
        alpha = x @ params.T
        if loss is losses.squared:
            return 0.5 * np.sum((alpha - y) ** 2, axis=1)
        return scipy.special.logsumexp(alpha, axis=1) - alpha[np.arange(len(y)), y]

    def gradients_at(params, x, y):
        alpha = x @ params.T
        if loss is losses.squared:
            residuals = alpha - y
        else:
            residuals = scipy.special.softmax(alpha, axis=1) - np.eye(outputs)[y]
        return (residuals[:, :, None] * x[:, None]).reshape(len(residuals), -1)

    first = gradients_at(shown[0], *batches[0])
    centred = first - first.mean(axis=0)
    spread = 2e-3 * np.sqrt(np.mean(1.5**2 * np.sum(centred**2, axis=1)))
    b = 5.0 / spread

    x = np.concatenate([of_batch for of_batch, _ in batches])
    y = np.concatenate([of_batch for _, of_batch in batches])
    _, once = np.unique(x, axis=0, return_index=True)

    def minus_log_belief(flat):
        params = flat.reshape(found.shape)
        total = 0.5 * np.sum(flat**2) / 1.5**2
        total += np.sum(losses_at(params, x[once], y[once])) / variance
        for params_then, batch, choice in zip(shown, batches, choices, strict=True):
            gain = losses_at(params_then, *batch) - losses_at(params, *batch)
            norms = np.sum(gradients_at(params_then, *batch) ** 2, axis=1)
            scores = b * (-1e-6 * norms + 2e-3 * gain)
            q = np.exp(scores - scores.max())
            total -= np.log(0.02 / 6 + 0.98 * q[choice] / q.sum())
        return total

    best = scipy.optimize.minimize(minus_log_belief, found.ravel(), tol=1e-10)
    # The belief in a hostile teacher has next to no weight, but some. In float32 the volumes of a
    # sharp choice carry few digits.
    nearness = 0.02 if found_in_float64 else 0.05
    assert np.abs(best.x - found.ravel()).max() < nearness * np.abs(found).max()
    assert minus_log_belief(found.ravel()) - best.fun < 0.05


def test_exact_volumes_are_a_conditional_logit(float64):
    """With volumes linear in ν*, the choices alone are a conditional logit with known offsets."""
    rng = np.random.default_rng(2)
    steps, size, dim = 60, 5, 3
    directions = rng.standard_normal((steps, size, dim))
    offsets = 0.3 * rng.standard_normal((steps, size))
    truth = rng.standard_normal(dim)
    scores = offsets - directions @ truth
    chosen = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    ring = np.zeros((steps, size))
    window = StepWindow((), ring, offsets, directions, chosen[:, None], np.ones(steps))
    # 2η = 1 and b = 1: the volumes are the scores themselves.
    window, rows = jax.tree.map(jnp.asarray, (window, directions))
    at = jax.jit(
        lambda params: _evidence.windowed_choices(
            rows @ params, rows, window, jnp.ones(steps), 1e-12, 0.5
        )
    )

    def minus_log_likelihood(params):
        logits = offsets - directions @ params
        chosen_logits = np.take_along_axis(logits, chosen[:, None], axis=1)[:, 0]
        return np.sum(scipy.special.logsumexp(logits, axis=1) - chosen_logits)

    best = scipy.optimize.minimize(minus_log_likelihood, np.zeros(dim), tol=1e-10)
    here = at(best.x)
    np.testing.assert_allclose(here.value, best.fun, rtol=1e-9)
    np.testing.assert_allclose(here.gradient, 0, atol=1e-4)
    # The problem is convex, and Gauss–Newton is Newton: the curvature is the information matrix.
    information = jax.hessian(lambda params: at(params).value)(jnp.asarray(best.x))
    np.testing.assert_allclose(here.curvature, information, rtol=1e-6)


def test_choices_have_the_gradient_of_autodiff(float64):
    rng = np.random.default_rng(3)
    steps, size, dim, choices = 4, 6, 3, 2
    directions = rng.standard_normal((steps, size, dim))
    chosen = np.stack([rng.permutation(size)[:choices] for _ in range(steps)])
    window = StepWindow(
        (), np.zeros((steps, size)), rng.standard_normal((steps, size)), (), chosen, np.ones(steps)
    )

    def value(params):
        progress = jnp.sum(jnp.sin(directions * params), axis=2)
        gradients = directions * jnp.cos(directions * params)
        sharpness = jnp.linspace(-3.0, 3.0, steps)
        return _evidence.windowed_choices(progress, gradients, window, sharpness, 0.1, 0.5)

    window, directions = jax.tree.map(jnp.asarray, (window, directions))
    params = jnp.asarray(rng.standard_normal(dim))
    expected = jax.grad(lambda params: value(params).value)(params)
    np.testing.assert_allclose(value(params).gradient, expected, rtol=1e-9)


@pytest.mark.parametrize("wrong", [0.0, 0.3])
@pytest.mark.parametrize(
    "task",
    [pool_task(), pool_task(losses.cross_entropy, outputs=3), FOUR],
    ids=["squares", "classes", "demonstrations"],
)
def test_a_likelihood_has_the_gradient_of_autodiff(task, wrong, float64):
    world = jax.tree.map(jnp.asarray, task.world(0))
    likelihood = task.rules.likelihood
    drawn = task.rules.draw(jax.random.key(0), world, 9)
    examples = task.rules.show(world.learner, drawn)
    kept = likelihood.keep(examples)
    params = jax.random.normal(jax.random.key(1), np.shape(world.truth.target))
    at = likelihood.at(params, examples)
    weights = jnp.arange(9.0)

    def total(params):
        return jnp.sum(weights * likelihood.at(params, examples).losses(kept))

    rows = at.gradients(kept)
    # Forward mode: planning is a loop of unknown length.
    expected = jax.jacfwd(total)(params).ravel()
    np.testing.assert_allclose(weights @ rows, expected, rtol=1e-4, atol=1e-6)
    curvature = at.curvature(kept, weights)
    np.testing.assert_allclose(curvature, curvature.T, atol=1e-9)
    assert np.linalg.eigvalsh(curvature).min() > -1e-6
    if likelihood.statistics is None:
        return
    counted = likelihood.statistics.add(likelihood.statistics.empty(params, kept), kept, weights)
    share = wrong if likelihood.mixes else 0.0
    value = lambda params: likelihood.at(params, examples).counted(counted, share).value  # noqa: E731
    quadratic = at.counted(counted, share)
    expected = jax.jacfwd(value)(params).ravel()
    np.testing.assert_allclose(quadratic.gradient, expected, rtol=1e-4, atol=1e-6)
    if not share:
        np.testing.assert_allclose(quadratic.value, total(params), rtol=1e-6)


def test_what_leaves_the_window_is_folded_not_dropped():
    """Exactly so for labels that are Gaussian; nearly so for choices."""
    names = ["ital-posterior:window=40", "ital-posterior:window=15", "ital-posterior:window=2"]
    result = ital.teach(FOUR, learner=names, steps=40, seeds=3, batch_size=10, eval_every=40)
    whole, folded, short = (final(result, name, "distance_centred") for name in names)
    assert folded < 2 * whole + 0.02
    assert np.isfinite(short)


@pytest.mark.slow
def test_the_folded_history_is_nearly_as_good_as_the_whole_one():
    names = ["ital-posterior:window=200", "ital-posterior"]
    result = ital.teach("irl-dense", learner=names, steps=200, seeds=4, eval_every=200)
    whole, folded = (final(result, name, "distance_centred") for name in names)
    # Both are within 1 % of the start's distance; which is nearer is a matter of luck.
    assert folded < 1.05 * whole + 0.02


@pytest.mark.parametrize("teacher", ["cooperative", "omniscient", "adversarial"])
def test_choices_are_evidence_whoever_makes_them(teacher):
    both = ["posterior", "ital-posterior"]
    result = ital.teach(FOUR, teacher, both, steps=40, seeds=3, batch_size=10)
    assert final(result, "ital-posterior", "distance_centred") < 0.5 * final(
        result, "posterior", "distance_centred"
    )
    sign = -1 if teacher == "adversarial" else 1
    assert sign * final(result, "ital-posterior", "trust") > 0.9
    helps = [final(result, "ital-posterior", f"weight_helps_{size}") for size in range(1, 6)]
    harms = [final(result, "ital-posterior", f"weight_harms_{size}") for size in range(1, 6)]
    chance = final(result, "ital-posterior", "weight_chance")
    assert sum(helps) + sum(harms) + chance == pytest.approx(1, abs=1e-5)
    trust = final(result, "ital-posterior", "trust")
    assert sum(helps) - sum(harms) == pytest.approx(trust, abs=1e-5)
    bits = result.curves["bits"].sel(learner="ital-posterior").isel(step=slice(1, None))
    assert 0.3 < float(bits.mean()) < np.log2(10)


def test_a_teacher_that_chooses_by_chance_costs_next_to_nothing():
    both = ["posterior", "ital-posterior"]
    result = ital.teach(FOUR, "random", both, steps=40, seeds=5, batch_size=10)
    alone, aware = (final(result, method, "distance_centred") for method in both)
    assert aware < 1.02 * alone
    assert final(result, "ital-posterior", "weight_chance") > 0.8


def test_the_order_of_a_mini_batch_does_not_matter(float64):
    task = pool_task(losses.cross_entropy, outputs=3)
    learner = learners.aware_posterior(scale=1.0)
    shuffled = task._replace(
        rules=task.rules._replace(draw=lambda *given: task.rules.draw(*given)[::-1])
    )
    found = []
    for each in (task, shuffled):
        live = ital.session(each, learner, batch_size=5, steps=6)
        for _ in range(6):
            # The example with the largest first feature, wherever it stands; no ties by copies.
            live.choose(int(np.asarray(live.candidates.x.x)[:, 0].argmax()))
        found.append(live.params)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-9)


def test_only_chosen_labels_may_count():
    settings = {"steps": 30, "seeds": 3, "eval_every": 30}
    task = pool_task()
    every = ital.teach(task, "random", "posterior:sigma=0.5", **settings)
    few = ital.teach(task, "random", "posterior:sigma=0.5", labels="chosen", **settings)
    assert final(few, "posterior:sigma=0.5", "entropy") > final(
        every, "posterior:sigma=0.5", "entropy"
    )
    naive = [
        ital.teach(task, "random", "imt", labels=each, **settings) for each in ("all", "chosen")
    ]
    assert final(naive[0], "imt") == final(naive[1], "imt")
    with pytest.raises(InputError, match="'batch' cannot leave labels out"):
        ital.teach(task, "random", "batch", labels="chosen", **settings)
    with pytest.raises(InputError, match="labels must be all or chosen"):
        ital.teach(task, "random", "imt", labels="some", **settings)


def test_noise_and_scale_are_estimated():
    task = tasks.regression(dim=10, points=2000, noise=0.3)
    result = ital.teach(task, "random", "posterior:scale=auto", steps=60, seeds=2, eval_every=60)
    assert final(result, "posterior:scale=auto") < 0.15


def test_noise_and_scale_follow_mackays_fixed_point(float64):
    """The recursion of s and σ, step by step in NumPy."""
    learner = learners.posterior(scale="auto", sigma="auto", mean="start")
    live = ital.session(pool_task(), learner, batch_size=5, steps=12, init="normal:0.5")
    start = np.asarray(live.params)[0]
    # s begins with the spread of the task's own start, which is uniform in [−1, 1].
    first_scale = scale = 1 / np.sqrt(3)
    rows, labels = np.zeros((0, 4)), np.zeros(0)
    sigma = least_sigma = None
    for _ in range(12):
        batch = live.candidates
        live.choose(0)
        x, y = np.asarray(batch.x.x), np.asarray(batch.labels)[:, 0]
        if sigma is None:
            size = np.sqrt(np.mean(y**2))
            sigma, least_sigma = 0.1 * size, 1e-3 * size
        rows, first = np.unique(np.concatenate([rows, x]), axis=0, return_index=True)
        labels = np.concatenate([labels, y])[first]
        precision = rows.T @ rows / sigma**2 + np.eye(4) / scale**2
        mean = np.linalg.solve(precision, rows.T @ labels / sigma**2 + start / scale**2)
        np.testing.assert_allclose(np.asarray(live.params)[0], mean, atol=2e-5)
        determined = 4 - np.trace(np.linalg.inv(precision)) / scale**2
        scale = np.sqrt((first_scale**2 + np.sum((mean - start) ** 2)) / (1 + determined))
        squares = np.sum((rows @ mean - labels) ** 2)
        free = max(len(labels) - determined, 0.0)
        sigma = max(np.sqrt((sigma**2 + squares) / (1 + free)), least_sigma)


def test_several_choices_are_read_in_order():
    both = ["posterior", "ital-posterior"]
    result = ital.teach(
        FOUR, learner=both, steps=20, seeds=3, batch_size=10, choices=3, eval_every=20
    )
    alone, aware = (final(result, method, "distance_centred") for method in both)
    assert aware < 0.6 * alone


def test_settings_follow_the_name_which_holds_those_that_are_not_the_default():
    made = learners.make("ital-posterior:window=20:grid=1/10:lapse=0.10")
    assert made.name == "ital-posterior:lapse=0.1:grid=1/10:window=20"
    given = learners.aware_posterior(window=20, grid=(1.0, 10.0), lapse=0.1)
    assert given.name == made.name
    assert learners.posterior(window=50).name == "posterior"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("posterior:20", "written posterior:NAME=VALUE"),
        ("posterior:width=20", "written posterior:NAME=VALUE"),
        ("posterior:window=1", "window must be"),
        ("posterior:scale=0", "scale must be"),
        ("posterior:lapse=0.1", "reads no choices"),
        ("ital-posterior:lapse=0", "lapse must be"),
        ("ital-posterior:grid=10/1", "grid must be"),
        ("ital-posterior:chance=1", "chance must be"),
        ("ital-posterior:rho=often", "rho must be"),
        ("ital-posterior:rho=2:unit=0", "unit must be"),
        ("ital-posterior:unit=2", "unit is that of rho"),
        ("ital-posterior:rho=2:grid=1/10", "rho says how the teacher chooses, so leave grid out"),
        ("posterior:rho=2", "reads no choices"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, message):
    with pytest.raises(InputError, match=message):
        learners.make(name)


def test_a_known_teacher_follows_the_name():
    made = learners.make("ital-posterior:rho=1.5:unit=0.5:lapse=0.1")
    assert made.name == "ital-posterior:lapse=0.1:rho=1.5:unit=0.5"
    assert learners.aware_posterior(rho=1.5, unit=0.5, lapse=0.1).name == made.name
    # What a session or a result is of: ρ per unit of volume.
    numbers = ital.session(FOUR, made, steps=2).identity["numbers"]
    other = ital.session(FOUR, "ital-posterior:rho=3:lapse=0.1", steps=2).identity["numbers"]
    another = ital.session(FOUR, "ital-posterior:rho=4:lapse=0.1", steps=2).identity["numbers"]
    assert numbers == other != another


def test_a_fitted_teacher_teaches_at_least_as_well_as_an_unknown_one():
    """People who choose by the imitated volume: their numbers are fitted, then known."""
    rng = np.random.default_rng(3)
    b = 30.0
    run = {"steps": 40, "batch_size": 10, "lr": 0.015}
    people = {seed: ital.session(FOUR, "imt", seed=seed, **run) for seed in range(5)}
    for live in people.values():
        for _ in range(40):
            odds = np.exp(b * (live.volumes - live.volumes.max()), dtype=float)
            live.choose(rng.choice(10, p=odds / odds.sum()))
    by_volume = ital.fit.TeacherModel("imitated", "imitated")
    known = ital.fit.fit(ital.fit.replay(people), [by_volume]).teacher("imitated")
    assert known["rho"] / known["unit"] == pytest.approx(b, rel=0.5)
    learner = learners.aware_posterior(**known)
    result = ital.teach(FOUR, f"boltzmann:{b}", ["ital-posterior", learner], seeds=8, **run)
    weighed = final(result, "ital-posterior", "distance_centred")
    assert final(result, learner.name, "distance_centred") <= 1.02 * weighed


def test_tasks_that_cannot_be_believed_about_are_refused():
    small = {"steps": 2, "seeds": 1}
    with pytest.raises(InputError, match="for at most 400"):
        ital.teach(tasks.regression(dim=500), learner="posterior", **small)
    with pytest.raises(InputError, match="needs likelihood"):
        ital.teach("hypotheses", learner="posterior", **small)
    absolute = losses.custom("absolute", lambda alpha, y: abs(alpha - y).sum())
    with pytest.raises(InputError, match="needs likelihood"):
        ital.teach(pool_task(absolute), learner="posterior", **small)
    with pytest.raises(InputError, match="wrong=SHARE needs"):
        ital.teach(pool_task(), learner="posterior:wrong=0.1", **small)
    x, y, target = small_pool()
    pool = tasks.Pool(x, x, y, target, target, x, y)
    zero = tasks.from_pool("zero", pool, losses.squared, beta=1.0, teacher_loss="zero")
    ital.teach(zero, learner="posterior", **small)
    with pytest.raises(InputError, match="needs target losses"):
        ital.teach(zero, learner="ital-posterior", **small)
    with pytest.raises(InputError, match="takes steps of its own"):
        ital.teach(pool_task(), learner="posterior", optimizer="adam", **small)
    with pytest.raises(InputError, match="labels of its own"):
        ital.teach(pool_task(), "synthesis", "posterior", **small)


def test_wrong_labels_are_allowed_for():
    x, y, target = small_pool(losses.cross_entropy, rows=400, outputs=3)
    pool = tasks.Pool(x, x, y, 3 * target, 3 * target, x, y)
    task = tasks.from_pool(
        "noisy", pool, losses.cross_entropy, beta=1000.0, label_noise=0.3, init="uniform:3"
    )
    names = ["posterior", "posterior:wrong=0.45"]
    result = ital.teach(task, "random", names, steps=30, seeds=4, eval_every=30)
    careless, careful = (final(result, name, "distance_centred") for name in names)
    assert np.isfinite(careful)
    assert careful != careless
