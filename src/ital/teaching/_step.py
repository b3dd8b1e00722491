"""One step of one lane, as in Algorithm 1: sample, feedback, choose, update."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ital import theory, volume
from ital._checks import shown
from ital._types import Array, Params, PRNGKeyArray
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled, squared_norm
from ital.learners import Lesson, Update
from ital.tasks import Rules, World, copies
from ital.teachers import LearnerView, TeacherView
from ital.teaching._program import OUTSIDE, Drawn, Lane, LaneNumbers, Moment, Program, Scene, named


def draw(program: Program, world: World, key: PRNGKeyArray) -> Drawn:
    """Draw everything random in a step: the mini-batch, a random order of it, a random index, the teacher's noise.

    Args:
        program: the code.
        world: the world of a seed.
        key: a random key.

    Returns:
        The random numbers.
    """
    batch, order, bystander, teacher = jax.random.split(key, 4)
    size = program.batch_size
    drawn = program.rules.draw(batch, world, size)
    return Drawn(
        batch=drawn,
        first=first_copies(copies(drawn, size)),
        order=_ranks(jax.random.bits(order, (size,))),
        bystander=jax.random.randint(bystander, (), 0, size),
        noise=program.prepare(teacher, size),
    )


def _ranks(tickets: Array) -> Array:
    """The rank of each ticket, with ties by index; for small batches, comparing pairs is faster than XLA's sort."""
    if len(tickets) > 64:
        return jnp.argsort(jnp.argsort(tickets))
    index = jnp.arange(len(tickets))
    before = (tickets < tickets[:, None]) | ((tickets == tickets[:, None]) & (index < index[:, None]))
    return jnp.sum(before, axis=1)


def first_copies(same: Array) -> Array:
    """The index of the first copy of each example (B,), given which examples are copies (B, B)."""
    index = jnp.arange(len(same))
    return jnp.min(jnp.where(same, index, len(same)), axis=1)


def first_previous(rules: Rules, start: Params, world: World) -> Any:
    """The initial value of the first feedback, if the task needs one."""
    return rules.first_previous(start, world) if rules.first_previous else None


def meet(program: Program, world: World, drawn: Drawn, params: Params, previous: Any) -> Scene:
    """The mini-batch as both players see it, with the learner's feedback."""
    rules = program.rules
    examples = rules.show(world.learner, drawn.batch)
    return Scene(examples, rules.show(world.teacher.examples, drawn.batch), rules.feedback(params, examples, previous))


def view_of(program: Program, world: World, drawn: Drawn, scene: Scene, moment: Moment, lr: Array) -> TeacherView:
    """What the teacher sees: its own side of the mini-batch, the feedback, and the resulting imitated volumes.

    Copies of an example get the exact volume of the first, so that rounding never decides between them.
    """
    seen = scene.feedback, scene.teacher_examples, world.teacher.target, lr
    volumes = program.rules.volumes(*seen)[drawn.first]
    return TeacherView(volumes, *seen, *moment)


def choose(
    program: Program, world: World, drawn: Drawn, scene: Scene, moment: Moment, params: Params, numbers: LaneNumbers
) -> Array:
    """The index that the teacher chooses, given its side of the world and the feedback."""
    view = view_of(program, world, drawn, scene, moment, numbers.lr)
    if not program.omniscient:
        return _index(program, program.teacher(drawn.noise, view, numbers.teacher))
    gradients = program.rules.gradients(params, scene.examples, scene.feedback)
    progress = gradients.inner(add_scaled(params, -1.0, world.truth.target))
    volumes = volume.exact(numbers.lr, gradients.squared_norms, progress)[drawn.first]
    learner = LearnerView(volumes, params, world.truth.target)
    return _index(program, program.teacher(drawn.noise, view, learner, numbers.teacher))


def _index(program: Program, chosen: Any) -> Array:
    """A teacher's choice; raises InputError if it is not one whole number, or a constant outside the mini-batch.

    An index that only the running program knows is checked after each block: see ``OUTSIDE``.
    """
    number = isinstance(chosen, int | np.integer | np.ndarray | jax.Array) and not isinstance(chosen, bool)
    if not number or jnp.shape(chosen) != () or not jnp.issubdtype(jnp.result_type(chosen), jnp.integer):
        returned = f"an array of shape {jnp.shape(chosen)}" if isinstance(chosen, jax.Array) else repr(chosen)
        raise InputError(
            f"a teacher ({named(program.teacher)}) must choose one index of the mini-batch, a whole number, "
            f"not {returned}"
        )
    if not isinstance(chosen, jax.core.Tracer) and not 0 <= chosen < program.batch_size:
        raise InputError(
            f"a teacher ({named(program.teacher)}) chose index {chosen}: the mini-batch has the indices "
            f"0 to {program.batch_size - 1}"
        )
    return jnp.asarray(chosen)


def show(
    program: Program, world: World, drawn: Drawn, scene: Scene, moment: Moment, params: Params, numbers: LaneNumbers
) -> Lesson:
    """The lesson: the teacher's choice and the learner's own view of the mini-batch."""
    rules = program.rules

    def gradients(elsewhere: Params) -> Gradients:
        imagined = rules.feedback(elsewhere, scene.examples, rules.keep(scene.feedback))
        return rules.gradients(elsewhere, scene.examples, imagined)

    chosen = choose(program, world, drawn, scene, moment, params, numbers)
    here = rules.gradients(params, scene.examples, scene.feedback)
    lesson = Lesson(
        moment.step, numbers.lr, scene.examples, here, gradients, chosen, drawn.order, drawn.bystander, moment.steps
    )
    return lesson._replace(toward=functools.partial(program.take, lesson, numbers.form))


def first_lesson(
    program: Program, world: World, drawn: Drawn, steps: Array, params: Params, numbers: LaneNumbers
) -> Lesson:
    """The lesson of a run that starts with these parameters.

    Args:
        program: the code.
        world: the world of a seed.
        drawn: the random numbers of the step.
        steps: number of steps of the run.
        params: the parameters.
        numbers: numbers of the lane.

    Returns:
        The lesson.
    """
    scene = meet(program, world, drawn, params, first_previous(program.rules, params, world))
    return show(program, world, drawn, scene, Moment(jnp.zeros((), int), steps), params, numbers)


def teaching_step(
    program: Program, world: World, drawn: Drawn, numbers: LaneNumbers, moment: Moment, lane: Lane
) -> tuple[Lane, dict[str, Array]]:
    """Take one step in one lane: feedback, choice, update.

    Args:
        program: the code.
        world: the world of a seed.
        drawn: the random numbers of the step.
        numbers: numbers of the lane.
        moment: the position of the step in the run.
        lane: the learner before the step.

    Returns:
        The learner after the step, and the signals to record.

    Raises:
        InputError: if the update returns another type, or parameters, memory or signals of another shape.
    """
    scene = meet(program, world, drawn, lane.params, lane.previous)
    lesson = show(program, world, drawn, scene, moment, lane.params, numbers)
    update = program.rule.update(lesson, numbers.learner, lane.params, lane.memory)
    _check_update(program, update, lane)
    after = lesson.toward(lane.params, update.params)
    signals = {**update.signals, OUTSIDE: (lesson.chosen < 0) | (lesson.chosen >= program.batch_size)}
    if program.diagnostics:
        signals |= _theorem(lesson, lane.params, after, world.truth.target)
    return Lane(after, update.memory, program.rules.keep(scene.feedback)), signals


def _check_update(program: Program, update: Any, lane: Lane) -> None:
    """Raise InputError for an update that is not valid."""
    whose = f"a learner's update ({named(program.rule.update)})"
    if not isinstance(update, Update):
        returned = "a plain tuple" if isinstance(update, tuple) else f"{type(update).__name__}"
        raise InputError(f"{whose} must return ital.learners.Update(params, memory, signals), not {returned}")
    if _shapes(update.params) != _shapes(lane.params):
        raise InputError(f"{whose} must return parameters of the same shape as it was given")
    given, kept = _shapes(lane.memory, types=True), _shapes(update.memory, types=True)
    if given != kept:
        raise InputError(f"{whose} must return a memory of the same form as init: {kept}, expected {given}")
    if not isinstance(update.signals, Mapping):
        raise InputError(f"{whose} must return signals as a dictionary, not {shown(update.signals)}")
    for name, signal in update.signals.items():
        if not isinstance(signal, int | float | np.number | np.ndarray | jax.Array) or jnp.shape(signal) != ():
            what = f"shape {jnp.shape(signal)}" if isinstance(signal, np.ndarray | jax.Array) else shown(signal)
            raise InputError(f"{whose}: signal {name!r} must be one number, not {what}")


def _shapes(tree: Any, types: bool = False) -> str:
    """Structure and shapes of a pytree (and the types of its numbers) in one line."""

    def described(leaf: Any) -> str:
        numeric = isinstance(leaf, int | float | np.number | np.ndarray | jax.Array)
        return f"{jnp.result_type(leaf) if types else ''}{list(jnp.shape(leaf))}" if numeric else type(leaf).__name__

    return " ".join(str(jax.tree.map(described, tree)).replace("'", "").split())


def _theorem(lesson: Lesson, before: Params, after: Params, target: Params) -> dict[str, Array]:
    """Theorem 1 on this step, for any learner: compare the step taken with the naive one."""
    here = lesson.here
    is_chosen = (jnp.arange(lesson.order.shape[0]) == lesson.chosen).astype(here.losses.dtype)
    naive = add_scaled(before, -lesson.lr, here.weighted_sum(is_chosen))
    held = theory.local_improvement(lesson.lr, lesson.chosen, here, lesson.gradients(naive), naive, after, target)
    # Two steps that differ only by rounding count as equal: a compiler may round the same sum in two ways.
    rounding = 4 * jnp.finfo(here.losses.dtype).eps ** 2 * squared_norm(naive)
    improved = held.improved & (squared_norm(add_scaled(after, -1.0, naive)) > rounding)
    return {
        "theorem_conditions": held.conditions.astype(here.losses.dtype),
        "theorem_improved": improved.astype(here.losses.dtype),
    }
