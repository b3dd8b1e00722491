"""The functions that make up a teacher."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ital._types import Array, Int, PRNGKeyArray

if TYPE_CHECKING:
    from ital.teachers._base import LearnerView, TeacherView


@runtime_checkable
class ChooseFn(Protocol):
    """Chooses an example of the mini-batch."""

    def __call__(self, noise: Any, view: "TeacherView", settings: Any, /) -> Int[Array, ""]:
        """Return the index of the example to show, from 0 to B − 1.

        Args:
            noise: what ``prepare`` drew for this step; by default the random key of the step.
            view: everything that the teacher sees.
            settings: the teacher's numbers, traced.

        """


@runtime_checkable
class ChooseKnowingFn(Protocol):
    """Chooses an example of the mini-batch, knowing the learner."""

    def __call__(self, noise: Any, view: "TeacherView", learner: "LearnerView", settings: Any, /) -> Int[Array, ""]:
        """Return the index of the example to show, from 0 to B − 1.

        Args:
            noise: what ``prepare`` drew for this step; by default the random key of the step.
            view: what every teacher sees.
            learner: the learner's parameters, its optimum, and exact teaching volumes.
            settings: the teacher's numbers, traced.

        """


@runtime_checkable
class PrepareFn(Protocol):
    """Draws the random part of a choice."""

    def __call__(self, key: PRNGKeyArray, batch_size: int, /) -> Any:
        """Return the ``noise`` of one choice: a pytree of arrays.

        Args:
            key: the random key of the step.
            batch_size: the number B of examples.

        """


@runtime_checkable
class ResolveFn(Protocol):
    """Fills in settings that depend on the task."""

    def __call__(self, settings: Any, beta: float | str, /) -> Any:
        """Return the settings with all values filled in.

        Args:
            settings: the teacher's numbers as the user gave them.
            beta: the rationality β of the task, or "auto".

        """
