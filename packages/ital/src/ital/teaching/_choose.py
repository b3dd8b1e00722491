"""The teacher's part of a step: look, ask, choose."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import volume
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled
from ital.tasks import World
from ital.teachers import Answers, Choice, LearnerView, Query, TeacherView
from ital.teaching._program import (
    Drawn,
    Lane,
    LaneNumbers,
    Moment,
    Program,
    Scene,
    named,
    shapes_of,
)
from ital.tools.types import Array, Params


class Chosen(NamedTuple):
    """The teacher after its choice.

    Attributes:
        choice: what it shows.
        memory: its memory.
        signals: numbers to record.
        asked: number of answers given so far.
    """

    choice: Choice
    memory: Any
    signals: Mapping[str, Array]
    asked: Any


def view_of(
    program: Program, world: World, drawn: Drawn, scene: Scene, moment: Moment, lr: Array
) -> TeacherView:
    """What the teacher sees: its own side of the mini-batch, the feedback, and the resulting imitated volumes.

    Copies of an example get the exact volume of the first, so that rounding never decides between them.
    """
    rules, side = program.rules, (scene.teacher_examples, world.teacher.target, lr)
    see = functools.partial(TeacherView, model=rules.teacher_model, first=drawn.first)
    if not program.teacher.feedback:
        return see(None, None, *side, *moment)
    volumes = rules.volumes(scene.feedback, *side)[drawn.first]
    return see(volumes, scene.feedback, *side, *moment)


def choose(
    program: Program,
    world: World,
    drawn: Drawn,
    scene: Scene,
    moment: Moment,
    lane: Lane,
    numbers: LaneNumbers,
) -> Chosen:
    """Let the teacher ask and choose, given its side of the world, the feedback and its memory."""
    teacher, asked = program.teacher, lane.asked
    view = view_of(program, world, drawn, scene, moment, numbers.lr)
    if teacher.ask is not None:
        question = teacher.ask(drawn.noise, world.teacher, view, numbers.teacher, lane.teacher)
        view = view._replace(answers=_answers(program, world, scene, lane.params, question))
        asked = asked + jnp.where(question.asked, question.answers, 0)
    knowing = (
        [_learner_view(program, world, drawn, scene, lane.params, numbers.lr)]
        if teacher.omniscient
        else []
    )
    remembering = [] if teacher.init is None else [lane.teacher]
    returned = teacher.choose(drawn.noise, view, *knowing, numbers.teacher, *remembering)
    choice, memory, signals = (
        _with_memory(program, returned, lane.teacher) if remembering else (returned, (), {})
    )
    choice = choice if isinstance(choice, Choice) else Choice(choice)
    return Chosen(choice._replace(index=_index(program, choice.index)), memory, signals, asked)


def _answers(
    program: Program, world: World, scene: Scene, params: Params, question: Query
) -> Answers:
    """The learner's answers to a question; nothing is computed in steps without one."""
    rules, rows = program.rules, question.rows

    def outputs() -> Any:
        return rules.feedback(params, rules.show(world.learner, rows), rules.keep(scene.feedback))

    def nothing() -> Any:
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(outputs))

    given = jnp.asarray(question.asked)
    return Answers(
        rules.show(world.teacher.examples, rows), jax.lax.cond(given, outputs, nothing), given
    )


def _learner_view(
    program: Program, world: World, drawn: Drawn, scene: Scene, params: Params, lr: Array
) -> LearnerView:
    """The learner as an omniscient teacher sees it."""
    rules, target = program.rules, world.truth.target

    def coming(elsewhere: Params, steps: int) -> Gradients:
        batch = (
            drawn.batch if steps == 0 else jax.tree.map(lambda leaf: leaf[steps - 1], drawn.ahead)
        )
        examples = rules.show(world.learner, batch)
        return rules.gradients(
            elsewhere, examples, rules.feedback(elsewhere, examples, rules.keep(scene.feedback))
        )

    here = rules.gradients(params, scene.examples, scene.feedback)
    progress = here.inner(add_scaled(params, -1.0, target))
    volumes = volume.exact(lr, here.squared_norms, progress)[drawn.first]
    labels = (
        None
        if rules.ideal_labels is None
        else rules.ideal_labels(params, target, scene.examples, lr)
    )
    return LearnerView(volumes, params, target, coming, labels)


def _with_memory(
    program: Program, returned: Any, before: Any
) -> tuple[Any, Any, Mapping[str, Array]]:
    """What a teacher with memory returned; raises InputError if it has another form."""
    whose = f"a teacher with memory ({named(program.teacher.choose)})"
    if type(returned) is not tuple or len(returned) != 3 or not isinstance(returned[2], Mapping):
        raise InputError(
            f"{whose} must return (choice, memory, signals), with signals a dictionary"
        )
    given, kept = shapes_of(before, types=True), shapes_of(returned[1], types=True)
    if given != kept:
        raise InputError(
            f"{whose} must return a memory of the same form as init: {kept}, expected {given}"
        )
    return returned


def _index(program: Program, chosen: Any) -> Array:
    """A teacher's choice; raises InputError if it is not one whole number, or a constant outside the mini-batch.

    With k choices it is k whole numbers. An index that only the running program knows is checked after each block: see
    ``OUTSIDE``.
    """
    whose, expected = (
        f"a teacher ({named(program.teacher.choose)})",
        (program.choices,) if program.choices > 1 else (),
    )
    number = isinstance(chosen, int | np.integer | np.ndarray | jax.Array) and not isinstance(
        chosen, bool
    )
    if (
        not number
        or jnp.shape(chosen) != expected
        or not jnp.issubdtype(jnp.result_type(chosen), jnp.integer)
    ):
        returned = (
            f"an array of shape {jnp.shape(chosen)}"
            if isinstance(chosen, jax.Array)
            else repr(chosen)
        )
        what = (
            "one index of the mini-batch, a whole number"
            if not expected
            else f"{program.choices} whole numbers"
        )
        raise InputError(f"{whose} must choose {what}, not {returned}")
    if not isinstance(chosen, jax.core.Tracer) and not (
        np.all(chosen >= 0) and np.all(chosen < program.batch_size)
    ):
        raise InputError(
            f"{whose} chose index {chosen}: the mini-batch has the indices 0 to {program.batch_size - 1}"
        )
    return jnp.asarray(chosen)
