"""One step of one lane, as in Algorithm 1: sample, feedback, choose, update.

:func:`teaching_step` is the step; it and :func:`first_lesson` are made of the parts above them:
:func:`draw` samples, :func:`meet` shows the mini-batch to both players, :func:`show` gives the
lesson that follows from :func:`choose`. What a user's teacher or learner returns is checked here,
when the program is traced.

Python runs these functions only while they are traced, when arrays have shapes but no numbers yet.
To follow a choice in numbers, open a live session (:func:`ital.session`) and take the same steps:
before each, its ``view`` is what the teacher's ``choose`` gets. ``jax.debug.print`` in ``choose``
prints numbers in every run.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import theory, volume
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled, squared_norm
from ital.learners import Lesson, Update
from ital.tasks import Rules, World, copies
from ital.teachers import Answers, Choice, LearnerView, Query, TeacherView
from ital.teaching._program import (
    OUTSIDE,
    Drawn,
    Lane,
    LaneNumbers,
    Moment,
    Program,
    Scene,
)
from ital.tools.checks import shown
from ital.tools.types import Array, Params, PRNGKeyArray


def draw(program: Program, world: World, key: PRNGKeyArray, later: Array | None = None) -> Drawn:
    """Draw everything random in a step, which all methods of a seed share.

    That is the mini-batch, a random order of it, a random index, and the teacher's noise.

    Args:
        program: the code.
        world: the world of a seed.
        key: a random key.
        later: the keys of the next steps, for a teacher that sees their mini-batches; with None,
            these mini-batches are drawn from ``key`` and are not those of the next steps.

    Returns:
        The random numbers.
    """
    batch_key, order_key, bystander_key, teacher_key = jax.random.split(key, 4)
    size = program.batch_size
    batch = program.rules.draw(batch_key, world, size)
    same = copies(batch, size)  # (B, B)
    first = first_copies(same)
    tickets = jax.random.bits(order_key, (size,))
    return Drawn(
        batch=batch,
        first=first,
        order=_ranks(tickets),
        bystander=jax.random.randint(bystander_key, (), 0, size),
        noise=program.teacher.prepare(teacher_key, size),
        ahead=_ahead(program, world, key, later),
    )


def _ahead(program: Program, world: World, key: PRNGKeyArray, later: Array | None) -> Any:
    """Return the mini-batches of the next steps; None unless the teacher sees them."""
    count = program.teacher.ahead - 1
    if not count:
        return None
    if later is None:
        key_of_step = functools.partial(jax.random.fold_in, key)
        later = jax.vmap(key_of_step)(jnp.arange(count))

    def coming_batch(step_key: PRNGKeyArray) -> Any:
        # As ``draw`` will do in that step, with the first of its four keys.
        batch_key, *_ = jax.random.split(step_key, 4)
        return program.rules.draw(batch_key, world, program.batch_size)

    return jax.vmap(coming_batch)(later)


def _ranks(tickets: Array) -> Array:
    """Return the rank of each ticket (B,), with ties by index."""
    # For small batches, comparing pairs is faster than XLA's sort.
    if len(tickets) > 64:
        order = jnp.argsort(tickets)
        return jnp.argsort(order)
    index = jnp.arange(len(tickets))
    # Row i, column j: whether ticket j comes before ticket i.
    own_ticket = tickets[:, None]
    smaller = tickets < own_ticket
    tied = tickets == own_ticket
    earlier = index < index[:, None]
    comes_before = smaller | (tied & earlier)
    return jnp.sum(comes_before, axis=1)


def first_copies(same: Array) -> Array:
    """Return the index of the first copy of each example (B,).

    Args:
        same: which examples are copies of one another (B, B).
    """
    size = len(same)
    index = jnp.arange(size)
    index_of_copies = jnp.where(same, index, size)
    return jnp.min(index_of_copies, axis=1)


def first_previous(rules: Rules, start: Params, world: World) -> Any:
    """Return the initial value of the first feedback, if the task needs one."""
    if not rules.first_previous:
        return None
    return rules.first_previous(start, world)


def meet(program: Program, world: World, drawn: Drawn, params: Params, previous: Any) -> Scene:
    """Return the mini-batch as both players see it, with the learner's feedback."""
    rules = program.rules
    examples = rules.show(world.learner, drawn.batch)
    return Scene(
        examples=examples,
        teacher_examples=rules.show(world.teacher.examples, drawn.batch),
        feedback=rules.feedback(params, examples, previous),
    )


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
    program: Program,
    world: World,
    drawn: Drawn,
    scene: Scene,
    moment: Moment,
    lr: Array,
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
    return without_feedback._replace(
        volumes=volumes[drawn.first],
        feedback=scene.feedback,
    )


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
        question = teacher.ask(
            drawn.noise,
            world.teacher,
            view,
            numbers.teacher,
            lane.teacher,
        )
        answers = _answers_to(question, program, world, scene, lane.params)
        view = view._replace(answers=answers)
        asked = asked + jnp.where(question.asked, question.answers, 0)
    arguments = _arguments_of(program, world, drawn, scene, lane, numbers, view)

    if teacher.init is None:
        choice = teacher.choose(*arguments)
        memory: Any = ()
        signals: Mapping[str, Array] = {}
    else:
        returned = teacher.choose(*arguments, lane.teacher)
        choice, memory, signals = _with_memory(program, returned, lane.teacher)

    if not isinstance(choice, Choice):
        choice = Choice(choice)
    index = _checked_index(program, choice.index)
    return Chosen(
        choice=choice._replace(index=index),
        memory=memory,
        signals=signals,
        asked=asked,
    )


def _arguments_of(
    program: Program,
    world: World,
    drawn: Drawn,
    scene: Scene,
    lane: Lane,
    numbers: LaneNumbers,
    view: TeacherView,
) -> list[Any]:
    """Return what a teacher chooses from, which depends on its kind: see ``ChooseFn``."""
    if not program.teacher.omniscient:
        return [drawn.noise, view, numbers.teacher]
    learner = learner_view(
        program,
        world,
        drawn,
        scene,
        lane.params,
        numbers.lr,
    )
    return [drawn.noise, view, learner, numbers.teacher]


def _answers_to(
    question: Query,
    program: Program,
    world: World,
    scene: Scene,
    params: Params,
) -> Answers:
    """Return the learner's answers to a question; nothing is computed in steps without one."""
    rules = program.rules
    rows = question.rows

    def outputs() -> Any:
        examples = rules.show(world.learner, rows)
        kept = rules.keep(scene.feedback)
        return rules.feedback(params, examples, kept)

    def nothing() -> Any:
        shapes = jax.eval_shape(outputs)
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    given = jnp.asarray(question.asked)
    return Answers(
        examples=rules.show(world.teacher.examples, rows),
        outputs=jax.lax.cond(given, outputs, nothing),
        given=given,
    )


def learner_view(
    program: Program,
    world: World,
    drawn: Drawn,
    scene: Scene,
    params: Params,
    lr: Array,
) -> LearnerView:
    """Return the learner as an omniscient teacher sees it."""
    rules = program.rules
    target = world.truth.target

    def coming(elsewhere: Params, later: int) -> Gradients:
        batch = drawn.batch
        if later > 0:
            # ``ahead`` leaves out the present mini-batch: its first entry is that of the next step.
            batch = jax.tree.map(lambda leaf: leaf[later - 1], drawn.ahead)
        examples = rules.show(world.learner, batch)
        kept = rules.keep(scene.feedback)
        feedback = rules.feedback(elsewhere, examples, kept)
        return rules.gradients(elsewhere, examples, feedback)

    here = rules.gradients(params, scene.examples, scene.feedback)
    from_target = add_scaled(params, -1.0, target)
    progress = here.inner(from_target)
    volumes = volume.exact(lr, here.squared_norms, progress)
    labels = None
    if rules.ideal_labels is not None:
        labels = rules.ideal_labels(params, target, scene.examples, lr)
    # Copies of an example get the volume of the first, as in the imitated volumes.
    return LearnerView(
        volumes=volumes[drawn.first],
        params=params,
        target=target,
        gradients=coming,
        labels=labels,
    )


def _with_memory(
    program: Program,
    returned: Any,
    before: Any,
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
    choice, memory, signals = returned
    expected = shapes_of(before, types=True)
    found = shapes_of(memory, types=True)
    if found != expected:
        raise InputError(
            f"{whose} must return a memory of the same form as init: {found}, expected {expected}"
        )
    return choice, memory, signals


def _checked_index(program: Program, chosen: Any) -> Array:
    """Return a teacher's choice, one whole number or k of them.

    An index that only the running program knows is checked after each block: see ``OUTSIDE``.

    Raises:
        InputError: if it is anything else, or a constant outside the mini-batch.
    """
    whose = f"a teacher ({named(program.teacher.choose)})"
    shape: tuple[int, ...] = ()
    wanted = "one index of the mini-batch, a whole number"
    if program.choices > 1:
        shape = (program.choices,)
        wanted = f"{program.choices} whole numbers"
    if not _is_whole(chosen) or jnp.shape(chosen) != shape:
        returned = repr(chosen)
        if isinstance(chosen, jax.Array):
            returned = f"an array of shape {jnp.shape(chosen)}"
        raise InputError(f"{whose} must choose {wanted}, not {returned}")
    is_known = not isinstance(chosen, jax.core.Tracer)
    if is_known and not _is_among(program.batch_size, chosen):
        last_index = program.batch_size - 1
        raise InputError(
            f"{whose} chose index {chosen}: the mini-batch has the indices 0 to {last_index}"
        )
    return jnp.asarray(chosen)


def _is_among(size: int, index: Any) -> bool:
    """Return whether all indices lie from 0 to ``size`` − 1."""
    return bool(np.all(index >= 0) and np.all(index < size))


def _is_whole(chosen: Any) -> bool:
    """Return whether a choice consists of whole numbers."""
    # A boolean is an ``int`` in Python.
    if isinstance(chosen, bool):
        return False
    if not isinstance(chosen, int | np.integer | np.ndarray | jax.Array):
        return False
    kind = jnp.result_type(chosen)
    return bool(jnp.issubdtype(kind, jnp.integer))


def show(
    program: Program,
    world: World,
    drawn: Drawn,
    scene: Scene,
    moment: Moment,
    lane: Lane,
    numbers: LaneNumbers,
) -> tuple[Lesson, Chosen]:
    """Return the lesson that follows from the teacher's choice, and the teacher after it."""
    rules = program.rules
    chosen = choose(program, world, drawn, scene, moment, lane, numbers)
    examples = _relabelled(program, scene.examples, chosen.choice)
    _check_facts(program, chosen.choice)

    def gradients(elsewhere: Params) -> Gradients:
        # A task whose feedback is iterated begins with the result of the real one.
        imagined = rules.feedback(elsewhere, examples, rules.keep(scene.feedback))
        return rules.gradients(elsewhere, examples, imagined)

    lesson = Lesson(
        step=moment.step,
        lr=numbers.lr,
        examples=examples,
        here=rules.gradients(lane.params, examples, scene.feedback),
        gradients=gradients,
        chosen=chosen.choice.index,
        order=drawn.order,
        bystander=drawn.bystander,
        steps=moment.steps,
        rows=None if rules.rows is None else rules.rows(drawn.batch),
        likelihood=rules.likelihood,
    )
    # The form of the step needs the lesson itself, so it is added last.
    toward = functools.partial(program.take, lesson, numbers.form)
    return lesson._replace(toward=toward), chosen


def _relabelled(program: Program, examples: Any, choice: Choice) -> Any:
    """Return the mini-batch with the label that the teacher shows.

    Raises:
        InputError: if the task has no labels to replace.
    """
    if choice.label is None:
        return examples
    if program.rules.relabel is None:
        whose = f"a teacher ({named(program.teacher.choose)})"
        raise InputError(f"{whose} shows a label of its own, but the task has none")
    return program.rules.relabel(examples, choice.index, choice.label)


def _check_facts(program: Program, choice: Choice) -> None:
    """Raise InputError if a learner that takes labels for facts is shown labels made for it."""
    if choice.label is not None and program.rule.begin is not None:
        raise InputError(
            f"a teacher ({named(program.teacher.choose)}) shows labels of its own, which are no "
            "evidence about the target: leave out the methods posterior and ital-posterior"
        )


def first_lesson(
    program: Program,
    world: World,
    drawn: Drawn,
    steps: Array,
    params: Params,
    numbers: LaneNumbers,
    memory: Any = (),
) -> Lesson:
    """Return the first lesson of a run that starts with these parameters.

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
    step = jnp.zeros((), int)
    previous = first_previous(program.rules, params, world)
    lane = Lane(params, memory=(), previous=previous, teacher=memory, asked=step)
    scene = meet(program, world, drawn, params, previous)
    lesson, _ = show(program, world, drawn, scene, Moment(step, steps), lane, numbers)
    return lesson


def teaching_step(
    program: Program,
    world: World,
    drawn: Drawn,
    numbers: LaneNumbers,
    moment: Moment,
    lane: Lane,
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
        InputError: if the update returns another type, or parameters, memory or signals of another
            shape.
    """
    # Feedback: the learner says what it makes of the mini-batch.
    scene = meet(program, world, drawn, lane.params, lane.previous)

    # Choice: the teacher answers with an example, or several.
    lesson, chosen = show(program, world, drawn, scene, moment, lane, numbers)
    _check_numbers("a teacher", chosen.signals)

    # Update: the learner proposes parameters; the form of the step decides how far it goes.
    update = program.rule.update(lesson, numbers.learner, lane.params, lane.memory)
    _check_update(program, update, lane)
    after = lesson.toward(lane.params, update.params)

    _check_names(chosen.signals, update.signals)
    signals = {**chosen.signals, **update.signals, OUTSIDE: _is_outside(program, lesson)}
    if program.diagnostics:
        signals |= _theorem(lesson, lane.params, after, world.truth.target)
    next_lane = Lane(
        params=after,
        memory=update.memory,
        previous=program.rules.keep(scene.feedback),
        teacher=chosen.memory,
        asked=chosen.asked,
    )
    return next_lane, signals


def _is_outside(program: Program, lesson: Lesson) -> Array:
    """Return whether the teacher chose an index that the mini-batch does not have."""
    outside = (lesson.chosen < 0) | (lesson.chosen >= program.batch_size)
    return outside if program.choices == 1 else jnp.any(outside)


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
    # Types of the memory count too: another type would make the next block a new program.
    expected = shapes_of(lane.memory, types=True)
    returned = shapes_of(update.memory, types=True)
    if returned != expected:
        raise InputError(
            f"{whose} must return a memory of the same form as init: {returned}, "
            f"expected {expected}"
        )
    if not isinstance(update.signals, Mapping):
        raise InputError(
            f"{whose} must return signals as a dictionary, not {shown(update.signals)}"
        )
    _check_numbers(whose, update.signals)


def _check_numbers(whose: str, signals: Mapping[str, Any]) -> None:
    """Raise InputError for a signal that is not one number."""
    for name, signal in signals.items():
        is_array = isinstance(signal, np.ndarray | jax.Array)
        is_number = is_array or isinstance(signal, int | float | np.number)
        if is_number and jnp.shape(signal) == ():
            continue
        returned = shown(signal)
        if is_array:
            returned = f"shape {jnp.shape(signal)}"
        raise InputError(f"{whose}: signal {name!r} must be one number, not {returned}")


def _check_names(teacher: Mapping[str, Any], learner: Mapping[str, Any]) -> None:
    """Raise InputError for a teacher's signal that has the name of a learner's."""
    for name in teacher:
        if name in learner:
            raise InputError(f"teacher and learner both record a signal {name!r}: rename one")


def _theorem(lesson: Lesson, before: Params, after: Params, target: Params) -> dict[str, Array]:
    """Check Theorem 1 on this step, for any learner: compare the step taken with the naive one."""
    here = lesson.here
    kind = here.losses.dtype
    (batch_size,) = lesson.order.shape
    is_chosen = jnp.arange(batch_size) == lesson.chosen
    gradient = here.weighted_sum(is_chosen.astype(kind))
    naive = add_scaled(before, -lesson.lr, gradient)
    held = theory.local_improvement(
        lesson.lr,
        lesson.chosen,
        here,
        lesson.gradients(naive),
        naive,
        after,
        target,
    )
    # Two steps that differ only by rounding count as equal:
    # a compiler may round the same sum in two ways.
    precision = jnp.finfo(kind).eps
    rounding = 4 * precision**2 * squared_norm(naive)
    difference = add_scaled(after, -1.0, naive)
    differs = squared_norm(difference) > rounding
    improved = held.improved & differs
    return {
        "theorem_conditions": held.conditions.astype(kind),
        "theorem_improved": improved.astype(kind),
    }


def named(function: Callable[..., Any]) -> str:
    """Return the name of a function as an error message shows it: as written in its file."""
    # A partial and a decorated function have no name of their own; what they wrap has.
    inner = getattr(function, "func", function)
    written = inspect.unwrap(inner)
    return getattr(written, "__qualname__", repr(function))


def shapes_of(tree: Any, types: bool = False) -> str:
    """Return structure and shapes of a pytree (and the types of its numbers) in one line."""

    def leaf_in_words(leaf: Any) -> str:
        if not isinstance(leaf, int | float | np.number | np.ndarray | jax.Array):
            return type(leaf).__name__
        shape = list(jnp.shape(leaf))
        if types:
            return f"{jnp.result_type(leaf)}{shape}"
        return str(shape)

    leaves_in_words = jax.tree.map(leaf_in_words, tree)
    text = str(leaves_in_words).replace("'", "")
    return " ".join(text.split())
