"""What every part of the registries must do: jit, vmap over lanes, keep dtypes, stay finite."""

import functools
import inspect
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import learners, tasks, teachers
from ital.teachers import OmniscientTeacher, Teacher
from tests.features import data

SMALL = {
    "regression": lambda: tasks.regression(dim=5, points=40),
    "gaussian": lambda: tasks.gaussian(classes=3, dim=4, per_class=8),
    "irl-dense": lambda: tasks.irl_dense(size=3),
    "irl-sparse": lambda: tasks.irl_sparse(size=3),
    "irl": lambda: tasks.irl(np.eye(3)),
    # through small feature files, see below
    **{name: functools.partial(tasks.make, name) for name in tasks.REGISTRY if "mnist" in name or "cifar" in name},
    **{name: functools.partial(tasks.make, name) for name in tasks.REGISTRY if "tiny-imagenet" in name},
    **{name: functools.partial(tasks.make, name, equations=1) for name in tasks.REGISTRY if "equation" in name},
}
SIGNALS = {"trust"}  # of learners: there is none before the first step
# Nobody knows the target of a neural network: there is no distance to it, and no teacher who could know it.
AIMLESS = {"mnist-mlp"}
ALL = [
    combination
    for combination in itertools.product(SMALL, teachers.REGISTRY, learners.REGISTRY)
    if not (combination[0] in AIMLESS and combination[1] == "omniscient")
]
# Every task, teacher and method at least once: walk through the three registries side by side.
SAMPLED = [
    tuple(list(part)[i % len(part)] for part in (SMALL, teachers.REGISTRY, learners.REGISTRY))
    for i in range(max(map(len, (SMALL, teachers.REGISTRY, learners.REGISTRY))))
]


@pytest.fixture(autouse=True, scope="module")
def small_features(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ITAL_FEATURES", str(data.write_features(tmp_path_factory.mktemp("features"))))
        yield


def run(task, teacher, method, **options):
    return ital.teach(
        SMALL[task](), teachers.make(teacher), learners.make(method), steps=12, seeds=2, eval_every=5, **options
    ).curves


def recorded(task):
    """A metric that the task has for certain."""
    return "loss" if task in AIMLESS else "distance"


def check(curves):
    assert curves["step"].values.tolist() == [0, 5, 10, 12]
    for metric in ital.results.metrics_of(curves):
        there = ital.results.measured(curves, metric)
        assert there[[0, -1] if metric not in SIGNALS else [1, -1]].all(), metric
        assert np.isfinite(curves[metric].values[..., there]).all(), metric
    assert (curves["diverged_at"].values == -1).all()


def test_every_task_has_a_small_version_here():
    assert set(SMALL) == set(tasks.REGISTRY)


@pytest.mark.parametrize("task", sorted(AIMLESS))
def test_without_a_target_there_is_no_omniscient_teacher(task):
    with pytest.raises(ValueError, match=f"needs the learner's target, which task '{task}' does not have"):
        run(task, "omniscient", "imt")


def test_the_sample_holds_every_part():
    for position, registry in enumerate((SMALL, teachers.REGISTRY, learners.REGISTRY)):
        assert {combination[position] for combination in SAMPLED} == set(registry)


@pytest.mark.parametrize(("task", "teacher", "method"), SAMPLED)
def test_parts_work_together(task, teacher, method):
    curves = run(task, teacher, method)
    check(curves)
    assert curves[recorded(task)].dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize(("task", "teacher", "method"), ALL)
def test_all_parts_work_together(task, teacher, method):
    check(run(task, teacher, method))


@pytest.mark.parametrize("task", ["regression", "gaussian", "mnist-20", "mnist-mlp", "equation-40", "irl-dense"])
@pytest.mark.usefixtures("x64")
def test_float64_is_kept(task):
    """One task of each kind; below, the worlds of all."""
    curves = run(task, "cooperative", "ital")
    check(curves)
    assert curves[recorded(task)].dtype == np.float64


@pytest.mark.parametrize("task", SMALL)
@pytest.mark.usefixtures("x64")
def test_worlds_are_of_float64(task):
    kinds = {leaf.dtype for leaf in jax.tree.leaves(SMALL[task]().world(0)) if leaf.dtype.kind == "f"}
    assert kinds == {np.dtype(np.float64)}


@pytest.mark.parametrize("name", teachers.REGISTRY)
def test_teachers_choose_an_index_under_jit_and_vmap(name):
    teacher = teachers.make(name)
    settings = teacher.resolve(teacher.settings, 100.0)
    volumes = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)

    def choose(key, volumes):
        noise = teacher.prepare(key, 5)
        view = teachers.TeacherView(volumes, volumes[:, None], None, None, 0.1, jnp.asarray(0), jnp.asarray(10))
        if isinstance(teacher, OmniscientTeacher):
            return teacher.choose(noise, view, teachers.LearnerView(volumes, None, None), settings)
        return teacher.choose(noise, view, settings)

    keys = jax.random.split(jax.random.key(0), 7)
    chosen = np.asarray(jax.jit(jax.vmap(choose))(keys, volumes))
    assert chosen.shape == (7,)
    assert ((chosen >= 0) & (chosen < 5)).all()


def test_only_the_omniscient_teacher_is_handed_anything_of_the_learner():
    assert set(teachers.TeacherView._fields) == {"volumes", "feedback", "examples", "target", "lr", "step", "steps"}
    for name in teachers.REGISTRY:
        teacher = teachers.make(name)
        arguments = list(inspect.signature(teacher.choose).parameters)
        expected = ["view", "learner", "settings"] if name == "omniscient" else ["view", "settings"]
        assert arguments[1:] == expected
        assert isinstance(teacher, OmniscientTeacher if name == "omniscient" else Teacher)


@pytest.mark.parametrize(
    ("make", "name", "nearest"),
    [
        (tasks.make, "regresion", "regression"),
        (teachers.make, "coperative", "cooperative"),
        (learners.make, "itl", "ital"),
    ],
)
def test_unknown_names_get_the_nearest(make, name, nearest):
    with pytest.raises(ValueError, match=f"did you mean '{nearest}'"):
        make(name)


@pytest.mark.parametrize("registry", [tasks.REGISTRY, teachers.REGISTRY, learners.REGISTRY])
def test_every_part_is_described_in_one_line(registry):
    from ital.cli import describe

    for make in registry.values():
        assert describe(make).endswith(".")
