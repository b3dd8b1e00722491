"""The teacher's part of a step: look, ask, choose."""

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
    """Return what the teacher sees: its own side of the mini-batch, feedback, imitated volumes."""
    rules = program.rules
    target = world.teacher.target
    without_feedback = TeacherView(
        volumes=None,
        feedback=None,
        examples=scene.teacher_examples,
        target=target,
        lr=lr,
        step=moment.step,
        steps=moment.steps,
        model=rules.teacher_model,
        first=drawn.first,
    )
    if not program.teacher.feedback:
        return without_feedback
    volumes = rules.volumes(scene.feedback, scene.teacher_examples, target, lr)
    # Copies of an example get the volume of the first, so that rounding never decides between them.
    return without_feedback._replace(volumes=volumes[drawn.first], feedback=scene.feedback)


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
    teacher = program.teacher
    asked = lane.asked
    view = view_of(program, world, drawn, scene, moment, numbers.lr)
    if teacher.ask is not None:
        question = teacher.ask(drawn.noise, world.teacher, view, numbers.teacher, lane.teacher)
        view = view._replace(answers=_answers_to(question, program, world, scene, lane.params))
        asked = asked + jnp.where(question.asked, question.answers, 0)

    # What a teacher gets depends on its kind: see ``ChooseFn``.
    arguments: list[Any] = [drawn.noise, view]
    if teacher.omniscient:
        arguments.append(learner_view(program, world, drawn, scene, lane.params, numbers.lr))
    arguments.append(numbers.teacher)
    if teacher.init is None:
        choice = teacher.choose(*arguments)
        memory: Any = ()
        signals: Mapping[str, Array] = {}
    else:
        returned = teacher.choose(*arguments, lane.teacher)
        choice, memory, signals = _with_memory(program, returned, lane.teacher)

    if not isinstance(choice, Choice):
        choice = Choice(choice)
    checked = choice._replace(index=_checked_index(program, choice.index))
    return Chosen(checked, memory, signals, asked)


def _answers_to(
    question: Query, program: Program, world: World, scene: Scene, params: Params
) -> Answers:
    """Return the learner's answers to a question; nothing is computed in steps without one."""
    rules = program.rules
    rows = question.rows

    def outputs() -> Any:
        examples = rules.show(world.learner, rows)
        return rules.feedback(params, examples, rules.keep(scene.feedback))

    def nothing() -> Any:
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(outputs))

    given = jnp.asarray(question.asked)
    return Answers(
        examples=rules.show(world.teacher.examples, rows),
        outputs=jax.lax.cond(given, outputs, nothing),
        given=given,
    )


def learner_view(
    program: Program, world: World, drawn: Drawn, scene: Scene, params: Params, lr: Array
) -> LearnerView:
    """Return the learner as an omniscient teacher sees it."""
    rules = program.rules
    target = world.truth.target

    def coming(elsewhere: Params, steps: int) -> Gradients:
        batch = drawn.batch
        if steps > 0:
            batch = jax.tree.map(lambda leaf: leaf[steps - 1], drawn.ahead)
        examples = rules.show(world.learner, batch)
        feedback = rules.feedback(elsewhere, examples, rules.keep(scene.feedback))
        return rules.gradients(elsewhere, examples, feedback)

    here = rules.gradients(params, scene.examples, scene.feedback)
    progress = here.inner(add_scaled(params, -1.0, target))
    volumes = volume.exact(lr, here.squared_norms, progress)
    labels = None
    if rules.ideal_labels is not None:
        labels = rules.ideal_labels(params, target, scene.examples, lr)
    # Copies of an example get the volume of the first, as in the imitated volumes.
    return LearnerView(volumes[drawn.first], params, target, coming, labels)


def _with_memory(
    program: Program, returned: Any, before: Any
) -> tuple[Any, Any, Mapping[str, Array]]:
    """Return what a teacher with memory returned.

    Raises:
        InputError: if it has another form.
    """
    whose = f"a teacher with memory ({named(program.teacher.choose)})"
    # A choice is a named tuple: only a plain one is the triple.
    is_triple = type(returned) is tuple and len(returned) == 3
    if not is_triple or not isinstance(returned[2], Mapping):
        raise InputError(
            f"{whose} must return (choice, memory, signals), with signals a dictionary"
        )
    expected = shapes_of(before, types=True)
    found = shapes_of(returned[1], types=True)
    if found != expected:
        raise InputError(
            f"{whose} must return a memory of the same form as init: {found}, expected {expected}"
        )
    return returned


def _checked_index(program: Program, chosen: Any) -> Array:
    """Return a teacher's choice, one whole number or k of them.

    An index that only the running program knows is checked after each block: see ``OUTSIDE``.

    Raises:
        InputError: if it is anything else, or a constant outside the mini-batch.
    """
    whose = f"a teacher ({named(program.teacher.choose)})"
    expected = (program.choices,) if program.choices > 1 else ()
    if not _is_whole(chosen) or jnp.shape(chosen) != expected:
        returned = repr(chosen)
        if isinstance(chosen, jax.Array):
            returned = f"an array of shape {jnp.shape(chosen)}"
        wanted = "one index of the mini-batch, a whole number"
        if program.choices > 1:
            wanted = f"{program.choices} whole numbers"
        raise InputError(f"{whose} must choose {wanted}, not {returned}")
    is_known = not isinstance(chosen, jax.core.Tracer)
    if is_known and not (np.all(chosen >= 0) and np.all(chosen < program.batch_size)):
        raise InputError(
            f"{whose} chose index {chosen}: the mini-batch has the indices 0 to "
            f"{program.batch_size - 1}"
        )
    return jnp.asarray(chosen)


def _is_whole(chosen: Any) -> bool:
    """Return whether a choice consists of whole numbers."""
    # A boolean is an ``int`` in Python.
    if isinstance(chosen, bool):
        return False
    if not isinstance(chosen, int | np.integer | np.ndarray | jax.Array):
        return False
    return bool(jnp.issubdtype(jnp.result_type(chosen), jnp.integer))
