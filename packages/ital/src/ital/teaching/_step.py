"""One step of one lane, as in Algorithm 1: sample, feedback, choose, update."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ital import theory
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled, squared_norm
from ital.learners import Lesson, Update
from ital.tasks import Rules, World, copies
from ital.teachers import Choice
from ital.teaching._choose import Chosen, choose
from ital.teaching._program import (
    OUTSIDE,
    Drawn,
    Lane,
    LaneNumbers,
    Moment,
    Program,
    Scene,
    named,
    shapes_of,
)
from ital.tools.checks import shown
from ital.tools.types import Array, Params, PRNGKeyArray


def draw(program: Program, world: World, key: PRNGKeyArray, later: Array | None = None) -> Drawn:
    """Draw everything random in a step: the mini-batch, a random order of it, a random index, the teacher's noise.

    Args:
        program: the code.
        world: the world of a seed.
        key: a random key.
        later: the keys of the next steps, for a teacher that sees their mini-batches; None draws other ones.

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
        noise=program.teacher.prepare(teacher, size),
        ahead=_ahead(program, world, key, later),
    )


def _ahead(program: Program, world: World, key: PRNGKeyArray, later: Array | None) -> Any:
    """The mini-batches of the next steps, each as ``draw`` draws it; None unless the teacher sees them."""
    count = program.teacher.ahead - 1
    if not count:
        return None
    keys = (
        jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(count))
        if later is None
        else later
    )
    return jax.vmap(
        lambda key: program.rules.draw(jax.random.split(key, 4)[0], world, program.batch_size)
    )(keys)


def _ranks(tickets: Array) -> Array:
    """The rank of each ticket, with ties by index; for small batches, comparing pairs is faster than XLA's sort."""
    if len(tickets) > 64:
        return jnp.argsort(jnp.argsort(tickets))
    index = jnp.arange(len(tickets))
    before = (tickets < tickets[:, None]) | (
        (tickets == tickets[:, None]) & (index < index[:, None])
    )
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
    return Scene(
        examples,
        rules.show(world.teacher.examples, drawn.batch),
        rules.feedback(params, examples, previous),
    )


def show(
    program: Program,
    world: World,
    drawn: Drawn,
    scene: Scene,
    moment: Moment,
    lane: Lane,
    numbers: LaneNumbers,
) -> tuple[Lesson, Chosen]:
    """The lesson (the teacher's choice and the learner's own view of the mini-batch), and the teacher after it."""
    rules = program.rules
    chosen = choose(program, world, drawn, scene, moment, lane, numbers)
    examples = _relabelled(program, scene.examples, chosen.choice)

    def gradients(elsewhere: Params) -> Gradients:
        imagined = rules.feedback(elsewhere, examples, rules.keep(scene.feedback))
        return rules.gradients(elsewhere, examples, imagined)

    here, index = rules.gradients(lane.params, examples, scene.feedback), chosen.choice.index
    lesson = Lesson(
        moment.step,
        numbers.lr,
        examples,
        here,
        gradients,
        index,
        drawn.order,
        drawn.bystander,
        moment.steps,
    )
    return lesson._replace(toward=functools.partial(program.take, lesson, numbers.form)), chosen


def _relabelled(program: Program, examples: Any, choice: Choice) -> Any:
    """The mini-batch with the label that the teacher shows; raises InputError if the task has no labels to replace."""
    if choice.label is None:
        return examples
    if program.rules.relabel is None:
        raise InputError(
            f"a teacher ({named(program.teacher.choose)}) shows a label of its own, but the task has none"
        )
    return program.rules.relabel(examples, choice.index, choice.label)


def first_lesson(
    program: Program,
    world: World,
    drawn: Drawn,
    steps: Array,
    params: Params,
    numbers: LaneNumbers,
    memory: Any = (),
) -> Lesson:
    """The lesson of a run that starts with these parameters.

    Args:
        program: the code.
        world: the world of a seed.
        drawn: the random numbers of the step.
        steps: number of steps of the run.
        params: the parameters.
        numbers: numbers of the lane.
        memory: the teacher's memory.

    Returns:
        The lesson.
    """
    lane = Lane(
        params, (), first_previous(program.rules, params, world), memory, jnp.zeros((), int)
    )
    scene = meet(program, world, drawn, params, lane.previous)
    return show(program, world, drawn, scene, Moment(jnp.zeros((), int), steps), lane, numbers)[0]


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
    lesson, chosen = show(program, world, drawn, scene, moment, lane, numbers)
    update = program.rule.update(lesson, numbers.learner, lane.params, lane.memory)
    _check_update(program, update, lane)
    after = lesson.toward(lane.params, update.params)
    _check_signals(chosen.signals, update.signals)
    outside = (lesson.chosen < 0) | (lesson.chosen >= program.batch_size)
    signals = {
        **chosen.signals,
        **update.signals,
        OUTSIDE: outside if program.choices == 1 else jnp.any(outside),
    }
    if program.diagnostics:
        signals |= _theorem(lesson, lane.params, after, world.truth.target)
    return Lane(
        after, update.memory, program.rules.keep(scene.feedback), chosen.memory, chosen.asked
    ), signals


def _check_update(program: Program, update: Any, lane: Lane) -> None:
    """Raise InputError for an update that is not valid."""
    whose = f"a learner's update ({named(program.rule.update)})"
    if not isinstance(update, Update):
        returned = "a plain tuple" if isinstance(update, tuple) else f"{type(update).__name__}"
        raise InputError(
            f"{whose} must return ital.learners.Update(params, memory, signals), not {returned}"
        )
    if shapes_of(update.params) != shapes_of(lane.params):
        raise InputError(f"{whose} must return parameters of the same shape as it was given")
    given, kept = shapes_of(lane.memory, types=True), shapes_of(update.memory, types=True)
    if given != kept:
        raise InputError(
            f"{whose} must return a memory of the same form as init: {kept}, expected {given}"
        )
    if not isinstance(update.signals, Mapping):
        raise InputError(
            f"{whose} must return signals as a dictionary, not {shown(update.signals)}"
        )
    _check_numbers(whose, update.signals)


def _check_numbers(whose: str, signals: Mapping[str, Any]) -> None:
    """Raise InputError for a signal that is not one number."""
    for name, signal in signals.items():
        if (
            not isinstance(signal, int | float | np.number | np.ndarray | jax.Array)
            or jnp.shape(signal) != ()
        ):
            what = (
                f"shape {jnp.shape(signal)}"
                if isinstance(signal, np.ndarray | jax.Array)
                else shown(signal)
            )
            raise InputError(f"{whose}: signal {name!r} must be one number, not {what}")


def _check_signals(teacher: Mapping[str, Any], learner: Mapping[str, Any]) -> None:
    """Raise InputError for a teacher's signal that is not one number, or has the name of a learner's."""
    _check_numbers("a teacher", teacher)
    for name in teacher:
        if name in learner:
            raise InputError(f"teacher and learner both record a signal {name!r}: rename one")


def _theorem(lesson: Lesson, before: Params, after: Params, target: Params) -> dict[str, Array]:
    """Theorem 1 on this step, for any learner: compare the step taken with the naive one."""
    here = lesson.here
    is_chosen = (jnp.arange(lesson.order.shape[0]) == lesson.chosen).astype(here.losses.dtype)
    naive = add_scaled(before, -lesson.lr, here.weighted_sum(is_chosen))
    held = theory.local_improvement(
        lesson.lr, lesson.chosen, here, lesson.gradients(naive), naive, after, target
    )
    # Two steps that differ only by rounding count as equal: a compiler may round the same sum in two ways.
    rounding = 4 * jnp.finfo(here.losses.dtype).eps ** 2 * squared_norm(naive)
    improved = held.improved & (squared_norm(add_scaled(after, -1.0, naive)) > rounding)
    return {
        "theorem_conditions": held.conditions.astype(here.losses.dtype),
        "theorem_improved": improved.astype(here.losses.dtype),
    }
