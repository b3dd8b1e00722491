"""What every part of the registries must do: jit, vmap over lanes, keep dtypes, stay finite."""

import functools
import inspect
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import learners, tasks, teachers, teaching
from ital.teachers import Teacher
from ital.teaching import _block, _start
from ital.tools.plugins import Part
from tests import keys, registered
from tests.features import data
from tests.worlds import small_numbers

SMALL = registered.small_tasks()


@pytest.fixture(autouse=True, scope="module")
def small_features(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ITAL_FEATURES", str(data.write_features(tmp_path_factory.mktemp("features"))))
        yield


def run(task, teacher, method, **options):
    return ital.teach(
        SMALL[task](), teachers.make(teacher), learners.make(method), steps=12, seeds=2, eval_every=5, **options
    ).curves


@functools.cache
def has_target(task):
    """The target of a neural network is unknown: there is no distance to it, and no teacher that knows it."""
    return SMALL[task]().world(0).truth.target is not None


def fit(task, teacher):
    return has_target(task) or not teachers.make(teacher).omniscient


def sensible(task, teacher, method):
    """Whether the task offers what teacher and learner need."""
    made = teachers.make(teacher)
    needs = {*made.needs, *learners.make(method).needs, *(["gradients"] if made.omniscient else [])}
    return needs <= set(SMALL[task]().offers)


def simple(name):
    """Whether a teacher looks at the volumes of the mini-batch alone."""
    teacher = teachers.make(name)
    return not teacher.needs and teacher.ahead == 1


def check(task, curves):
    assert curves["step"].values.tolist() == [0, 5, 10, 12]
    for metric in ital.results.metrics_of(curves):
        there = ital.results.measured(curves, metric)
        # Signals begin with the first step.
        first = 0 if metric in (*SMALL[task]().metrics, "answers") else 1
        assert there[[first, -1]].all(), metric
        assert np.isfinite(curves[metric].values[..., there]).all(), metric
    assert (curves["diverged_at"].values == -1).all()


def test_the_sample_holds_every_part():
    for position, registry in enumerate((tasks.REGISTRY, teachers.REGISTRY, learners.REGISTRY)):
        for combinations in (registered.sampled_combinations(), registered.every_combination()):
            assert {combination[position] for combination in combinations} == set(registry)


@pytest.mark.parametrize(("task", "teacher", "method"), registered.sampled_combinations())
def test_parts_work_together(task, teacher, method):
    if not sensible(task, teacher, method):
        with pytest.raises(ital.errors.InputError, match="makes no sense on task"):
            run(task, teacher, method)
        return
    if not fit(task, teacher):
        with pytest.raises(ital.errors.InputError, match="needs the learner's target"):
            run(task, teacher, method)
        return
    curves = run(task, teacher, method)
    check(task, curves)
    assert curves[ital.results.metrics_of(curves)[0]].dtype == np.float32


def test_without_a_target_there_is_no_omniscient_teacher():
    assert not fit("mnist-mlp", "omniscient")
    with pytest.raises(ValueError, match="needs the learner's target, which task 'mnist-mlp' does not have"):
        run("mnist-mlp", "omniscient", "imt")


@pytest.mark.slow
@pytest.mark.parametrize(("task", "teacher", "method"), registered.every_combination())
def test_all_parts_work_together(task, teacher, method):
    if sensible(task, teacher, method) and fit(task, teacher):
        check(task, run(task, teacher, method))


@pytest.mark.parametrize(
    "task",
    [
        "mnist-20",
        "mnist-mlp",
        "equation-40",
        # test_teaching.py walks the loop of their kinds to nine digits.
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("regression", "gaussian", "irl-dense")),
    ],
)
@pytest.mark.usefixtures("x64")
def test_float64_is_kept(task):
    """One task of each kind; the worlds of all tasks are tested below."""
    curves = run(task, "cooperative", "ital")
    check(task, curves)
    assert curves[ital.results.metrics_of(curves)[0]].dtype == np.float64


@pytest.mark.parametrize("task", SMALL)
@pytest.mark.usefixtures("x64")
def test_worlds_are_of_float64(task):
    kinds = {leaf.dtype for leaf in jax.tree.leaves(SMALL[task]().world(0)) if leaf.dtype.kind == "f"}
    assert kinds == {np.dtype(np.float64)}


def home_of(teacher):
    """A small task that offers what the teacher needs, and a learner for it."""
    return next(((task, learner) for task, one, learner in registered.AT_HOME if one == teacher), ("regression", "imt"))


def at_home(task):
    """A teacher that draws random numbers, and a learner, for any task."""
    return next(((teacher, learner) for one, teacher, learner in registered.AT_HOME if one == task), ("mixture", "imt"))


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
        small_numbers(), Teacher("restless", choose, init=lambda key, *_: jax.random.normal(key)), learners.imt()
    )


def check_keys(task, teacher, learner):
    """Before the first step, in the steps and for ``beta="auto"``; what is drawn from is not divided either."""
    seeds = [0, 1]
    (session,) = teaching.open_sessions(task, teacher, [learner], teaching.Run(steps=12, seeds=seeds))
    uses = keys.keys_of(functools.partial(everything_random, task, session.program), session.numbers)
    draws = [given for primitive, given in uses if primitive == keys.DRAW]
    assert min(map(len, draws)) >= len(seeds)
    drawn_from = list(itertools.chain(*draws))
    assert len(drawn_from) == len(set(drawn_from))
    divided = itertools.chain(*(given for primitive, given in uses if primitive != keys.DRAW))
    assert not set(divided) & set(drawn_from)


def everything_random(task, program, numbers):
    """All draws at the start and of the first two steps of a run, and of its automatic β."""
    starts = _start.start(program, task.init.kind, jnp.asarray(task.init.scale), numbers)
    lanes, _ = _start.begin(program, numbers, starts)
    looks_ahead = program.teacher.ahead > 1  # in its first step it sees the mini-batch of the second
    for step in jnp.arange(1 if looks_ahead else 2):
        _block._step_all(program, numbers, step, _block._draw_all(program, numbers, step), lanes)
    remembers = program.teacher.init is not None  # an automatic β is found with the same first memory
    if "gradients" in task.offers and not (looks_ahead or remembers):
        one_lane = numbers._replace(lanes=jax.tree.map(lambda leaf: leaf[:, 0], numbers.lanes))
        _start.at_start(program, learners.imagined_volumes("imitated"), one_lane, starts)


@pytest.mark.parametrize("name", [name for name in teachers.REGISTRY if simple(name)])
def test_teachers_choose_an_index_under_jit_and_vmap(name):
    """Of those that look at volumes alone; test_teaching.py walks the others through the loop."""
    teacher = teachers.make(name)
    settings = teacher.resolve(teacher.settings, 100.0)
    volumes = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)

    def choose(key, volumes):
        noise = teacher.prepare(key, 5)
        view = teachers.TeacherView(volumes, volumes[:, None], None, None, 0.1, jnp.asarray(0), jnp.asarray(10))
        if teacher.omniscient:
            return teacher.choose(noise, view, teachers.LearnerView(volumes, None, None, None), settings)
        return teacher.choose(noise, view, settings)

    keys = jax.random.split(jax.random.key(0), 7)
    chosen = np.asarray(jax.jit(jax.vmap(choose))(keys, volumes))
    assert chosen.shape == (7,)
    assert ((chosen >= 0) & (chosen < 5)).all()


def test_only_the_omniscient_teacher_is_handed_anything_of_the_learner():
    seen = {"volumes", "feedback", "examples", "target", "lr", "step", "steps", "answers", "model", "first"}
    assert set(teachers.TeacherView._fields) == seen
    for name in teachers.REGISTRY:
        teacher = teachers.make(name)
        _, *others = inspect.signature(teacher.choose).parameters
        expected = ["view", *["learner"] * teacher.omniscient, "settings", *["memory"] * (teacher.init is not None)]
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


@pytest.mark.parametrize("registry", [tasks.REGISTRY, teachers.REGISTRY, learners.REGISTRY])
def test_every_part_is_described_in_one_line(registry):
    from ital.cli import describe

    for make in registry.values():
        assert describe(make).endswith(".")
