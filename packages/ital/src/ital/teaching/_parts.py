"""The parts of a run, and what they need of one another."""

from collections.abc import Container, Sequence
from typing import Any

from ital import learners, tasks, teachers
from ital.errors import InputError
from ital.learners import Learner
from ital.tasks import Task, World
from ital.teachers import Teacher


def parts(
    task: Task | str, teacher: Teacher | str, learner: Learner | str | Sequence[Learner | str]
) -> tuple[Task, Teacher, list[Learner]]:
    """Return the parts of an experiment; make those that are given by name.

    Args:
        task: a task or its name.
        teacher: a teacher or its name.
        learner: a learner or its name, or several.

    Returns:
        The task, the teacher, and the list of learners.

    Raises:
        InputError: if a name is unknown, or a part has the wrong type.
    """
    if isinstance(task, str):
        task = tasks.make(task)
    if isinstance(teacher, str):
        _check_role("teacher", teacher, teachers.REGISTRY, "learner", learners.REGISTRY)
        teacher = teachers.make(teacher)
    # A learner is a named tuple: it is one learner, not several.
    listed: list[Any] = [learner]
    if isinstance(learner, list | tuple) and type(learner) is not Learner:
        listed = list(learner)
    made = [_learner(part) if isinstance(part, str) else part for part in listed]
    _check_type("task", task, Task, "ital.tasks.regression()")
    _check_type("teacher", teacher, Teacher, "ital.teachers.cooperative()")
    for part in made:
        _check_type("learner", part, Learner, "ital.learners.teacher_aware()")
    return task, teacher, made


def _learner(name: str) -> Learner:
    _check_role("learner", name, learners.REGISTRY, "teacher", teachers.REGISTRY)
    return learners.make(name)


def _check_type(role: str, part: Any, kind: type, example: str) -> None:
    """Raise InputError for a part that is not of its kind."""
    if isinstance(part, kind):
        return
    # A likely slip: the constructor itself, without a call.
    hint = "; it is a function: call it" if callable(part) else _other_role(part)
    raise InputError(f"expected a {role} such as {example}, or its name, not {part!r}{hint}")


def _check_role(
    role: str, name: str, registered: Container[str], other: str, others: Container[str]
) -> None:
    """Raise InputError for the name of a learner in place of a teacher's, or the reverse."""
    base = name.partition(":")[0]
    if base in others and base not in registered:
        raise InputError(f"{name!r} is a {other}, not a {role}: give it as {other}={name!r}")


def _other_role(part: Any) -> str:
    """Return what a part of another kind is."""
    for kind, role in ((Task, "task"), (Teacher, "teacher"), (Learner, "learner")):
        if isinstance(part, kind):
            return f"; it is a {role}: give it as {role}=…"
    return ""


def check_parts(task: Task, teacher: Teacher, taught: Sequence[Learner], choices: int = 1) -> None:
    """Raise InputError for a teacher or learner that makes no sense on a task.

    Args:
        task: the task.
        teacher: the teacher.
        taught: the learners.
        choices: number of examples to choose in a step.

    Raises:
        InputError: if a part needs what the task does not offer, or the teacher cannot choose
            several.
    """
    teacher_needs = teacher.needs
    if teacher.omniscient:
        # The omniscient teacher's volumes are those of a step along a gradient.
        teacher_needs = (*teacher.needs, "gradients")
    _check_needs(task, f"teacher {teacher.name!r}", teacher_needs)
    for learner in taught:
        _check_needs(task, f"method {learner.name!r}", learner.needs)
    if choices > 1 and teacher.several is None:
        raise InputError(
            f"teacher {teacher.name!r} chooses one example in each step: "
            f"leave out choices ({choices})"
        )


def _check_needs(task: Task, who: str, needs: Sequence[str]) -> None:
    """Raise InputError for a part that needs what the task does not offer."""
    for need in needs:
        if need not in task.offers:
            raise InputError(
                f"{who} makes no sense on task {task.name!r}: it needs {need}, "
                f"and the task offers {', '.join(task.offers) or 'nothing'}"
            )


def check_world(task: Task, teacher: Teacher, world: World, *, diagnostics: bool = False) -> None:
    """Raise InputError if a world lacks what the teacher or the diagnostics need.

    Args:
        task: the task.
        teacher: the teacher.
        world: a world of the task.
        diagnostics: whether to check Theorem 1 on every step.

    Raises:
        InputError: if the learner's target or its gradients are needed and unknown.
    """
    if diagnostics and "gradients" not in task.offers:
        raise InputError(
            f"diagnostics check Theorem 1 on gradient steps, which task {task.name!r} does not have"
        )
    if world.truth.target is None and (teacher.omniscient or diagnostics):
        needy = f"teacher {teacher.name!r}" if teacher.omniscient else "diagnostics"
        raise InputError(
            f"{needy} needs the learner's target, which task {task.name!r} does not have"
        )
