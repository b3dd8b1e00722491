"""The functions that make up a teacher."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ital.tools.types import PRNGKeyArray

if TYPE_CHECKING:
    from ital.teachers._base import Query, TeacherView


@runtime_checkable
class ChooseFn(Protocol):
    """Choose what to show."""

    def __call__(self, noise: Any, view: "TeacherView", /, *more: Any) -> Any:
        """Return the index of the example to show, 0 to B − 1, or a :class:`ital.teachers.Choice`.

        A teacher with memory returns ``(choice, memory, signals)``.

        Args:
            noise: what ``prepare`` drew for this step; by default the random key of the step.
            view: everything that the teacher sees.
            *more: for an omniscient teacher the :class:`ital.teachers.LearnerView`; then the
                teacher's numbers, traced; then, for a teacher with memory, the memory.

        """


@runtime_checkable
class FirstMemoryFn(Protocol):
    """Make a teacher's memory before the first step."""

    def __call__(self, key: PRNGKeyArray, side: Any, settings: Any, /) -> Any:
        """Return the memory: a pytree of arrays.

        Args:
            key: a random key of the seed.
            side: the teacher's side of the world: all its examples, and its target.
            settings: the teacher's numbers, traced.

        """


@runtime_checkable
class AskFn(Protocol):
    """Ask the learner a question."""

    def __call__(
        self, noise: Any, side: Any, view: "TeacherView", settings: Any, memory: Any, /
    ) -> "Query":
        """Return the question of this step.

        Args:
            noise: what ``prepare`` drew for this step.
            side: the teacher's side of the world.
            view: what the teacher sees before the answers.
            settings: the teacher's numbers, traced.
            memory: the teacher's memory, ``()`` for none.

        """


@runtime_checkable
class SeveralFn(Protocol):
    """Make the function that chooses several examples."""

    def __call__(self, count: int, /) -> ChooseFn:
        """Return a function that chooses ``count`` examples in order.

        It is the same object for the same number, so that teachers share a program.

        Args:
            count: number k of examples.

        """


@runtime_checkable
class PrepareFn(Protocol):
    """Draw the random part of a choice."""

    def __call__(self, key: PRNGKeyArray, batch_size: int, /) -> Any:
        """Return the ``noise`` of one choice: a pytree of arrays.

        Args:
            key: the random key of the step.
            batch_size: the number B of examples.

        """


@runtime_checkable
class ResolveFn(Protocol):
    """Fill in settings that depend on the task."""

    def __call__(self, settings: Any, beta: float | str, /) -> Any:
        """Return the settings with all values filled in.

        Args:
            settings: the teacher's numbers as the user gave them.
            beta: the rationality β of the task, or "auto".

        """
