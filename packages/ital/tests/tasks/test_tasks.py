import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ital
from ital import losses, tasks
from ital.models import Init
from ital.tasks import Pool, stack_worlds
from tests.worlds import classes_pool, numbers_pool, small_classes, small_numbers


@pytest.mark.usefixtures("x64")
def test_regression_is_realisable_and_the_views_agree():
    world = tasks.regression().world(3)
    assert world.learner.x.x.shape == (300, 101)
    assert world.truth.test.x.x.shape == (300, 101)
    assert (world.learner.x.x[:, -1] == 1).all()
    assert abs(world.truth.target).max() <= 1
    learner = world.learner.x.x @ world.truth.target.T
    teacher = world.teacher.examples.x.x @ world.teacher.target.T
    np.testing.assert_allclose(learner, world.learner.labels, atol=1e-12)
    np.testing.assert_allclose(teacher, world.learner.labels, atol=1e-12)
    assert not np.allclose(world.teacher.examples.x.x, world.learner.x.x)
    np.testing.assert_allclose(
        world.teacher.examples.x.squared_norms, world.learner.x.squared_norms, rtol=1e-12
    )
    np.testing.assert_allclose(world.teacher.examples.target_losses, 0, atol=1e-20)


@pytest.mark.usefixtures("x64")
def test_gaussian_has_ten_classes_and_scikit_learns_optimum():
    world = tasks.gaussian().world(1)
    assert world.learner.x.x.shape == (900, 31)
    assert world.truth.test.x.x.shape == (900, 31)
    assert np.bincount(world.learner.labels).tolist() == [90] * 10
    x, y, w = world.learner.x.x, world.learner.labels, world.truth.target
    deviation = [x[y == k, :-1].std(axis=0).mean() for k in range(10)]
    assert 0.48 < np.mean(deviation) < 0.52
    # The gradient vanishes at the optimum of Σ cross-entropy + ½‖w‖² (scikit-learn's default).
    p = np.exp(x @ w.T)
    p /= p.sum(axis=1, keepdims=True)
    gradient = (p - np.eye(10)[y]).T @ x + w
    assert np.abs(gradient).max() < 1e-2 < np.abs(w).max()
    np.testing.assert_allclose(
        world.teacher.examples.x.x @ world.teacher.target.T, x @ w.T, atol=1e-10
    )


SYNTHETIC = pytest.mark.parametrize(
    "task",
    [tasks.regression(dim=5, points=60), tasks.gaussian(classes=3, dim=5, per_class=10)],
    ids=["regression", "gaussian"],
)


@SYNTHETIC
def test_no_test_row_is_in_the_pool(task):
    world = task.world(0)
    pool, test = world.learner.x.x, world.truth.test.x.x
    assert pool.shape == test.shape == (30, 6)
    assert not (pool[:, None] == test).all(axis=-1).any()


@SYNTHETIC
@pytest.mark.usefixtures("x64")
def test_the_teachers_view_is_turned_and_nothing_else(task):
    """Distances and the bias stay the same, coordinates do not: in the views and in the target."""
    world = task.world(0)
    for ours, theirs in (
        (world.learner.x.x, world.teacher.examples.x.x),
        (world.truth.target, world.teacher.target),
    ):
        np.testing.assert_allclose(theirs @ theirs.T, ours @ ours.T, atol=1e-10)
        np.testing.assert_array_equal(theirs[:, -1], ours[:, -1])
        assert np.linalg.norm(theirs - ours) > 0.5 * np.linalg.norm(ours[:, :-1])
    np.testing.assert_array_equal(world.teacher.examples.labels, world.learner.labels)


def test_seeds_have_worlds_of_their_own_and_keep_them():
    task = small_classes()
    same, other = task.world(1), task.world(2)
    assert (task.world(1).learner.x.x == same.learner.x.x).all()
    assert not (same.learner.x.x == other.learner.x.x).all()


def test_one_pool_is_shared_and_never_copied():
    pool = tasks.from_pool("shared", classes_pool(0), losses.cross_entropy, beta=1.0)
    stacked, axes = stack_worlds([pool.world(seed) for seed in range(5)])
    assert set(axes) == {None}
    assert stacked.learner.x.x is pool.world(0).learner.x.x
    noisy = tasks.from_pool(
        "shared", classes_pool(0), losses.cross_entropy, beta=1.0, label_noise=0.5
    )
    stacked, _ = stack_worlds([noisy.world(seed) for seed in range(5)])
    assert stacked.learner.x.x.shape == (40, 5)
    assert stacked.learner.labels.shape == (5, 40)


def test_a_pool_that_goes_to_a_device_in_pieces_arrives_whole(monkeypatch):
    at_once = tasks.from_pool("p", classes_pool(0), losses.cross_entropy, beta=1.0).world(0)
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    monkeypatch.setattr("ital.tasks._pool.PIECE", 100)
    in_pieces = tasks.from_pool("p", classes_pool(0), losses.cross_entropy, beta=1.0).world(0)
    for one, other in zip(jax.tree.leaves(at_once), jax.tree.leaves(in_pieces), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_a_shared_pool_gives_the_curves_of_its_copies():
    def copies(seed):
        return classes_pool(0)

    options = {"steps": 30, "seeds": 3, "lr": 0.01}
    shared = ital.teach(
        tasks.from_pool("p", classes_pool(0), losses.cross_entropy, beta=300.0), **options
    )
    copied = ital.teach(tasks.from_pool("p", copies, losses.cross_entropy, beta=300.0), **options)
    np.testing.assert_allclose(shared.curves["loss"], copied.curves["loss"], rtol=1e-4)


@pytest.mark.parametrize("make", [small_classes, small_numbers])
def test_label_noise_replaces_its_share_and_nothing_else(make):
    clean, noisy = make().world(7), make(label_noise=0.4).world(7)
    changed = (clean.learner.labels != noisy.learner.labels).reshape(40, -1).any(axis=1)
    assert 6 <= changed.sum() <= 26
    assert (noisy.learner.labels == noisy.teacher.examples.labels).all()
    assert (clean.truth.test.labels == noisy.truth.test.labels).all()
    assert (clean.truth.target == noisy.truth.target).all()
    if make is small_classes:
        assert set(np.unique(noisy.learner.labels)) <= {0, 1, 2}
    else:
        originals = {tuple(row) for row in clean.learner.labels}
        assert {tuple(row) for row in noisy.learner.labels} <= originals
    expected = make().rules
    side = jax.tree.map(jnp.asarray, noisy.teacher)
    # Feedback of a learner that has reached the target: only norms remain.
    alpha = side.examples.x.x @ side.target.T
    volumes = expected.volumes(alpha, side.examples, side.target, 1e-6)
    np.testing.assert_allclose(volumes, 0, atol=1e-6)


@pytest.mark.parametrize("make", [small_classes, small_numbers])
@pytest.mark.usefixtures("x64")
def test_the_teachers_volumes_are_their_formula(make):
    """−η²‖g‖² + 2η(l − l*) by autodiff.

    g is that of a model in the teacher's view with the learner's answers.
    """
    task, lr = make(), 0.7
    loss = losses.cross_entropy if make is small_classes else losses.squared
    side = jax.tree.map(jnp.asarray, task.world(0).teacher)
    z, y, omega = side.examples.x.x[:6], side.examples.labels[:6], side.target
    alpha = jnp.asarray(np.random.default_rng(0).normal(size=(6, len(omega))))
    ours = task.rules.volumes(alpha, task.rules.show(side.examples, jnp.arange(6)), omega, lr)

    def one(move, z, y, alpha):
        return loss.value((alpha + move @ z)[None], y[None])[0]

    g = jax.vmap(jax.grad(one), in_axes=(None, 0, 0, 0))(jnp.zeros_like(omega), z, y, alpha)
    gain = loss.value(alpha, y) - loss.value(z @ omega.T, y)
    np.testing.assert_allclose(
        ours, -(lr**2) * jnp.sum(g**2, axis=(1, 2)) + 2 * lr * gain, rtol=1e-9
    )


def test_the_world_and_its_label_noise_are_streams_of_their_own(monkeypatch):
    streams, default_rng = [], np.random.default_rng

    def recorded(seed):
        streams.append(tuple(np.random.SeedSequence(seed).generate_state(4)))
        return default_rng(seed)

    monkeypatch.setattr(np.random, "default_rng", recorded)
    for seed in (0, 1):
        tasks.regression(dim=3, points=22, label_noise=0.5).world(seed)
    assert len(streams) == len(set(streams)) == 4


def test_full_label_noise_leaves_no_label():
    clean, noisy = small_classes().world(0), small_classes(label_noise=1.0).world(0)
    assert (clean.learner.labels != noisy.learner.labels).all()


@pytest.mark.usefixtures("x64")
def test_measurements_are_their_definitions():
    task = small_classes()
    world = jax.tree.map(jnp.asarray, task.world(0))
    nu = jnp.asarray(np.random.default_rng(1).normal(size=(3, 5)))
    got = task.rules.measure(nu, world.truth)
    alpha = world.truth.test.x.x @ nu.T
    gap = np.asarray(nu - world.truth.target)
    assert float(got["distance"]) == pytest.approx(np.linalg.norm(gap))
    assert float(got["distance_centred"]) == pytest.approx(np.linalg.norm(gap - gap.mean(axis=0)))
    assert float(got["accuracy"]) == pytest.approx(
        np.mean(np.argmax(alpha, axis=1) == world.truth.test.labels)
    )
    assert float(got["loss"]) == pytest.approx(
        np.mean(losses.cross_entropy.value(alpha, world.truth.test.labels))
    )


@pytest.mark.usefixtures("x64")
def test_the_floor_is_what_no_method_moves():
    run = ital.teach(
        small_classes(),
        learner=[ital.learners.batch(), ital.learners.teacher_aware()],
        seeds=3,
        steps=30,
    )
    curves = run.curves
    floor = np.asarray(curves["distance"].attrs["floor"])[None, :, None]
    by_centred = np.sqrt(curves["distance"] ** 2 - curves["distance_centred"] ** 2)
    np.testing.assert_allclose(by_centred, np.broadcast_to(floor, by_centred.shape), rtol=1e-6)


def with_test_set(test_x, test_labels, outputs, **options):
    """A task whose test set is given; its other data do not matter."""
    rng = np.random.default_rng(0)
    columns = test_x.shape[1]
    x = rng.normal(size=(10, columns))
    target = np.zeros((outputs, columns + 1))
    pool = Pool(x, x, np.arange(10) % outputs, target, target, test_x, test_labels)
    return tasks.from_pool("tested", pool, losses.cross_entropy, beta=1.0, **options)


@given(
    outputs=st.lists(
        st.lists(st.integers(0, 2), min_size=7, max_size=7), min_size=4, max_size=4
    ).map(np.array),
    seed=st.integers(0, 99),
)
def test_accuracies_follow_argmax_and_ranks_in_ties_too(outputs, seed):
    labels = np.random.default_rng(seed).integers(0, 7, 4)
    task = with_test_set(outputs.astype(float), labels, 7, top5=True)
    # With these parameters the outputs are the rows themselves.
    identity = jnp.eye(7, 8)
    truth = jax.tree.map(jnp.asarray, task.world(0).truth)
    measured = task.rules.measure(identity, truth)
    assert float(measured["accuracy"]) == np.mean(np.argmax(outputs, axis=1) == labels)
    first_five = np.argsort(-outputs, axis=1, kind="stable")[:, :5]
    is_among = (first_five == labels[:, None]).any(axis=1)
    assert float(measured["top5_accuracy"]) == np.mean(is_among)


@pytest.mark.parametrize("rows", [1, 2730, 2731, 5460, 6000])
def test_measurements_do_not_depend_on_how_rows_are_sliced(rows):
    """With 3 outputs, 2730 rows are measured at a time on a CPU."""
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, 2))
    labels = rng.integers(0, 3, rows)
    task = with_test_set(x, labels, 3)
    nu = rng.normal(size=(3, 3))
    truth = jax.tree.map(jnp.asarray, task.world(0).truth)
    measured = task.rules.measure(jnp.asarray(nu, jnp.float32), truth)
    alpha = x @ nu[:, :-1].T + nu[:, -1]
    expected = losses.cross_entropy.value(jnp.asarray(alpha), jnp.asarray(labels))
    assert float(measured["loss"]) == pytest.approx(np.mean(expected).item(), rel=1e-4)


@pytest.mark.parametrize(
    ("text", "low", "high"), [("uniform", -1, 1), ("uniform:2", -2, 2), ("normal:0.1", -1, 1)]
)
def test_starts(text, low, high):
    init = Init.parse(text)
    assert str(init) == text
    weights = np.asarray(init.draw(jax.random.key(0), (4000,)))
    assert low <= weights.min() < 0 < weights.max() <= high
    deviation = 0.1 if text == "normal:0.1" else high / np.sqrt(3)
    assert weights.std() == pytest.approx(deviation, rel=0.05)


def change(**fields):
    return lambda pool: pool._replace(
        **{name: edit(getattr(pool, name)) for name, edit in fields.items()}
    )


def poisoned(array):
    array = np.array(array, float)
    array.flat[3] = np.nan
    return array


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change(learner_x=poisoned), "learner_x holds values that are not finite"),
        (change(teacher_x=lambda x: x * np.inf), "teacher_x holds values"),
        (change(labels=poisoned), "labels holds values"),
        (change(learner_target=poisoned), "learner_target holds values"),
        (change(teacher_x=lambda x: x[:-1]), "paired row by row"),
        (change(learner_x=lambda x: x[1:]), "paired row by row"),
        (change(labels=lambda y: y + 1), "class indices 0 … 2"),
        (change(labels=lambda y: y - 1), "class indices"),
        (change(test_labels=lambda y: y + 0.5), "class indices"),
        (change(test_x=lambda x: x[:, 1:]), "test_x has shape"),
        (change(teacher_target=lambda w: w[:, 1:]), "teacher_target has shape"),
        (change(learner_target=lambda w: w[:, 1:]), "learner_target has shape"),
        (
            change(learner_x=lambda x: x[:0], teacher_x=lambda x: x[:0], labels=lambda y: y[:0]),
            "no rows",
        ),
        (change(test_x=lambda x: x[:0], test_labels=lambda y: y[:0]), "test set has no rows"),
    ],
)
def test_bad_data_is_refused(edit, message):
    with pytest.raises(ValueError, match=message):
        tasks.from_pool("bad", edit(classes_pool(0)), losses.cross_entropy, beta=1.0)
    drawn = tasks.from_pool(
        "bad", lambda seed: edit(classes_pool(seed)), losses.cross_entropy, beta=1.0
    )
    with pytest.raises(ValueError, match=message):
        ital.teach(drawn, seeds=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tasks.regression(dim=0),
        lambda: tasks.gaussian(classes=1),
        lambda: tasks.regression(label_noise=1.5),
        lambda: tasks.regression(label_noise=float("nan")),
    ],
)
def test_bad_task_settings_are_refused(make):
    with pytest.raises(ValueError, match=r"must be|needs"):
        make()


def test_regression_labels_must_fit_the_outputs():
    pool = numbers_pool(0)
    with pytest.raises(ValueError, match="labels has shape"):
        tasks.from_pool("bad", pool._replace(labels=pool.labels[:, :1]), losses.squared, beta=1.0)
    one = Pool(*[getattr(numbers_pool(0, outputs=1), field) for field in Pool._fields])
    flat = one._replace(labels=one.labels[:, 0], test_labels=one.test_labels[:, 0])
    assert tasks.from_pool("flat", flat, losses.squared, beta=1.0).world(
        0
    ).learner.labels.shape == (40, 1)


def test_a_task_without_a_known_optimum_records_no_distance():
    task = tasks.from_pool(
        "blind", classes_pool(0)._replace(learner_target=None), losses.cross_entropy, beta=1.0
    )
    curves = ital.teach(task, seeds=2, steps=5).curves
    assert ital.results.metrics_of(curves) == ["accuracy", "loss"]
    with pytest.raises(ValueError, match="omniscient"):
        ital.teach(task, ital.teachers.omniscient(), seeds=1)
    with pytest.raises(ValueError, match="target"):
        ital.theory.teaching_monotonicity(task)
