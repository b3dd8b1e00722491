"""The functions that make up a learner."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ital.tools.types import Params, PerExample

if TYPE_CHECKING:
    from ital.learners._base import Beginning, Learner, Situation, Update
    from ital.lessons import Lesson


@runtime_checkable
class InitFn(Protocol):
    """Make a learner's memory before the first step."""

    def __call__(self, params: Params, settings: Any, /) -> Any:
        """Return the memory: a pytree of arrays, ``()`` for none.

        Args:
            params: the parameters ν⁰ at the start.
            settings: the learner's numbers, traced.

        """


@runtime_checkable
class BeginFn(Protocol):
    """Makes a learner's first parameters and its memory."""

    def __call__(self, beginning: "Beginning", settings: Any, /) -> tuple[Params, Any]:
        """Return the parameters before the first step, and the memory: a pytree of arrays.

        Args:
            beginning: what the learner knows of the run.
            settings: the learner's numbers, traced.

        """


@runtime_checkable
class UpdateFn(Protocol):
    """Take one step."""

    def __call__(self, lesson: "Lesson", settings: Any, params: Params, memory: Any, /) -> "Update":
        """Return the parameters that the learner proposes, its memory, and signals to record.

        Args:
            lesson: everything that the learner sees of the step.
            settings: the learner's numbers, traced.
            params: the parameters ν before the step.
            memory: the memory from the previous step, or from ``init``.

        """


@runtime_checkable
class ResolveLearnerFn(Protocol):
    """Fill in settings that depend on the experiment."""

    def __call__(self, learner: "Learner", situation: "Situation", /) -> "Learner":
        """Return the learner with all settings filled in.

        Args:
            learner: the learner as the user gave it.
            situation: the experiment's values: β, its decay, the mini-batch, the volume.

        """


@runtime_checkable
class ImagineFn(Protocol):
    """Imagine the teacher's volumes."""

    def __call__(self, lesson: "Lesson", params: Params, /) -> PerExample:
        """Return the teaching volumes of the mini-batch as a learner imagines them, shape (B,).

        Args:
            lesson: a lesson at the start.
            params: the parameters ν⁰.

        """


@runtime_checkable
class AutoBetaFn(Protocol):
    """Find a rationality β for every seed from the volumes that a learner imagines."""

    def __call__(self, volumes: ImagineFn, sign: float = ..., /) -> Any:
        """Return β, one number per seed.

        Args:
            volumes: imagines the teacher's volumes.
            sign: the sign of β; the teacher's if omitted.

        """
