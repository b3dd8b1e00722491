"""What every part of the registries must do: jit, vmap over lanes, keep dtypes, stay finite."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital import learners, tasks, teachers
from ital.errors import InputError
from ital.teachers import Teacher
from ital.tools.plugins import Part
from tests import registered
from tests.contract import check_float64, check_keys, check_together, kinds_of_world
from tests.worlds import small_numbers

SMALL = registered.small_tasks()


def simple(name):
    """Whether a teacher looks at the volumes of the mini-batch alone."""
    try:
        teacher = teachers.make(name)
    except InputError:
        # A broken part of another package: its own test fails, and the others are collected.
        return True
    return not teacher.needs and teacher.ahead == 1


def test_the_sample_holds_every_part():
    for position, registry in enumerate((SMALL, teachers.REGISTRY, learners.REGISTRY)):
        for combinations in (registered.sampled_combinations(), registered.every_combination()):
            assert {combination[position] for combination in combinations} == set(registry)


@pytest.mark.parametrize(("task", "teacher", "method"), registered.sampled_combinations())
def test_parts_work_together(task, teacher, method):
    check_together(SMALL[task], teacher, method)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "teacher", "method"), registered.every_combination())
def test_all_parts_work_together(task, teacher, method):
    check_together(SMALL[task], teacher, method)


@pytest.mark.parametrize(
    "task",
    [
        "kernel",
        # test_teaching.py walks the loop of their kinds to nine digits.
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("regression", "gaussian", "irl-dense")
        ),
    ],
)
@pytest.mark.usefixtures("x64")
def test_float64_is_kept(task):
    """One task of each kind; the worlds of all tasks are tested below."""
    check_float64(SMALL[task])


@pytest.mark.alone
@pytest.mark.parametrize("task", SMALL)
@pytest.mark.usefixtures("x64")
def test_worlds_are_of_float64(task):
    assert kinds_of_world(SMALL[task]) == {np.dtype(np.float64)}


def home_of(teacher):
    """A small task that offers what the teacher needs, and a learner for it."""
    return next(
        ((task, learner) for task, one, learner in registered.AT_HOME if one == teacher),
        ("regression", "imt"),
    )


def at_home(task):
    """A teacher that draws random numbers, and a learner, for any task."""
    return next(
        ((teacher, learner) for one, teacher, learner in registered.AT_HOME if one == task),
        ("mixture", "imt"),
    )


@pytest.mark.parametrize(
    ("task", "teacher", "method"),
    [
        *((task, *at_home(task)) for task in SMALL),
        *((home_of(teacher)[0], teacher, home_of(teacher)[1]) for teacher in teachers.REGISTRY),
    ],
)
def test_no_two_draws_share_a_random_key(task, teacher, method):
    check_keys(SMALL[task](), teachers.make(teacher), learners.make(method))


def test_no_two_draws_share_a_random_key_where_a_teacher_draws_its_memory():
    def choose(key, view, settings, memory):
        return jax.random.randint(key, (), 0, 20), memory, {}

    check_keys(
        small_numbers(),
        Teacher("restless", choose, init=lambda key, *_: jax.random.normal(key)),
        learners.imt(),
    )


@pytest.mark.parametrize("name", [name for name in teachers.REGISTRY if simple(name)])
def test_teachers_choose_an_index_under_jit_and_vmap(name):
    """Of those that look at volumes alone; test_teaching.py walks the others through the loop."""
    teacher = teachers.make(name)
    settings = teacher.resolve(teacher.settings, 100.0)
    volumes = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)

    def choose(key, volumes):
        noise = teacher.prepare(key, 5)
        view = teachers.TeacherView(
            volumes, volumes[:, None], None, None, 0.1, jnp.asarray(0), jnp.asarray(10)
        )
        if teacher.omniscient:
            return teacher.choose(
                noise, view, teachers.LearnerView(volumes, None, None, None), settings
            )
        return teacher.choose(noise, view, settings)

    keys = jax.random.split(jax.random.key(0), 7)
    chosen = np.asarray(jax.jit(jax.vmap(choose))(keys, volumes))
    assert chosen.shape == (7,)
    assert ((chosen >= 0) & (chosen < 5)).all()


def test_only_the_omniscient_teacher_is_handed_anything_of_the_learner():
    seen = {
        "volumes",
        "feedback",
        "examples",
        "target",
        "lr",
        "step",
        "steps",
        "answers",
        "model",
        "first",
    }
    assert set(teachers.TeacherView._fields) == seen
    for name in teachers.REGISTRY:
        teacher = teachers.make(name)
        _, *others = inspect.signature(teacher.choose).parameters
        expected = [
            "view",
            *["learner"] * teacher.omniscient,
            "settings",
            *["memory"] * (teacher.init is not None),
        ]
        assert len(others) == len(expected)
        if not isinstance(teachers.REGISTRY[name], Part):
            assert others == expected


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


@pytest.mark.alone
@pytest.mark.parametrize("registry", [tasks.REGISTRY, teachers.REGISTRY, learners.REGISTRY])
def test_every_part_is_described_in_one_line(registry):
    from ital.cli import describe

    for make in registry.values():
        assert describe(make).endswith(".")
