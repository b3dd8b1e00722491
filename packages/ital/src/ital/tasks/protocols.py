"""The functions that make up a task. All but :class:`WorldFn` are pure and can be compiled."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ital.gradients import Gradients
from ital.models import Init
from ital.tools.types import Array, Params, PRNGKeyArray, Scalar

if TYPE_CHECKING:
    from ital.tasks._base import Truth, World


@runtime_checkable
class WorldFn(Protocol):
    """Make the world of a seed."""

    def __call__(self, seed: int, /) -> "World":
        """Return the world of this seed: both sides and the truth.

        Args:
            seed: a whole number; the same seed always gives the same world.
        """


@runtime_checkable
class StartFn(Protocol):
    """Draw the learner's start."""

    def __call__(self, key: PRNGKeyArray, init: Init, world: "World", /) -> Params:
        """Return the parameters ν⁰.

        Args:
            key: a random key of the seed.
            init: the distribution to draw from.
            world: the world of the seed.
        """


@runtime_checkable
class DrawFn(Protocol):
    """Draw a mini-batch."""

    def __call__(self, key: PRNGKeyArray, world: "World", batch_size: int, /) -> Any:
        """Return a pytree of small arrays (rows, states, …) of length B.

        Equal examples have equal entries: so the loop knows which are copies of one another.

        Args:
            key: a random key of the step.
            world: the world of the seed.
            batch_size: the number B of examples.
        """


@runtime_checkable
class ShowFn(Protocol):
    """Look a mini-batch up on one side of the world."""

    def __call__(self, side: Any, drawn: Any, /) -> Any:
        """Return the examples as this player sees them.

        Args:
            side: ``world.learner`` or ``world.teacher.examples``.
            drawn: what ``draw`` returned.
        """


@runtime_checkable
class FeedbackFn(Protocol):
    """Report the learner's state to the teacher."""

    def __call__(self, params: Params, examples: Any, previous: Any, /) -> Any:
        """Return the learner's feedback, with anything that follows from it alone.

        Args:
            params: the learner's parameters ν.
            examples: the mini-batch as the learner sees it.
            previous: what the task keeps of the previous step, if it has ``first_previous``; else
                None.
        """


@runtime_checkable
class VolumesFn(Protocol):
    """Compute the teacher's imitated teaching volumes."""

    def __call__(self, feedback: Any, examples: Any, target: Params, lr: Array, /) -> Array:
        """Return one teaching volume per example, shape (B,).

        Args:
            feedback: what the learner reported.
            examples: the mini-batch as the teacher sees it.
            target: the teacher's optimum ω*.
            lr: the step size η.
        """


@runtime_checkable
class GradientsFn(Protocol):
    """Compute the learner's losses and gradients."""

    def __call__(self, params: Params, examples: Any, feedback: Any, /) -> Gradients:
        """Return the losses of the mini-batch and the three operations on its gradients.

        Args:
            params: the parameters ν at which to compute them.
            examples: the mini-batch as the learner sees it.
            feedback: the learner's feedback at these parameters.
        """


@runtime_checkable
class MeasureFn(Protocol):
    """Measure a learner."""

    def __call__(self, params: Params, truth: "Truth", /) -> dict[str, Array]:
        """Return a number for each metric.

        Args:
            params: the learner's parameters ν.
            truth: the learner's optimum ν* and the test set.
        """


@runtime_checkable
class ReferencesFn(Protocol):
    """Compute constants to compare a seed's curves with."""

    def __call__(self, start: Params, truth: "Truth", /) -> dict[str, dict[str, Array]]:
        """Return numbers by metric and kind.

        A "floor" is a value that no method can get below, a "reference" a line to compare with.

        Args:
            start: the parameters ν⁰.
            truth: the learner's optimum ν* and the test set.
        """


@runtime_checkable
class FirstPreviousFn(Protocol):
    """Compute the initial value of the first step, if feedback is found by iteration."""

    def __call__(self, start: Params, world: "World", /) -> Any:
        """Return the ``previous`` of the first step.

        Args:
            start: the parameters ν⁰.
            world: the world of the seed.
        """


@runtime_checkable
class KeepFn(Protocol):
    """Extract from a feedback the initial value of the next one."""

    def __call__(self, feedback: Any, /) -> Any:
        """Return the ``previous`` of the next step.

        Args:
            feedback: the feedback of this step.
        """


@runtime_checkable
class RelabelFn(Protocol):
    """Replace labels of a mini-batch."""

    def __call__(self, examples: Any, index: Array, label: Array, /) -> Any:
        """Return the learner's mini-batch with other labels.

        Args:
            examples: the mini-batch as the learner sees it.
            index: the index of an example, or several (k,).
            label: the label of the example, or one per index.
        """


@runtime_checkable
class RiskFn(Protocol):
    """Compute the teaching risk of a world."""

    def __call__(self, world: "World", /) -> float:
        """Return how much of the target the learner's view cannot express.

        Args:
            world: the world of the seed.
        """


@runtime_checkable
class IdealLabelsFn(Protocol):
    """Compute the labels that would help a learner most."""

    def __call__(self, params: Params, target: Params, examples: Any, lr: Scalar, /) -> Array:
        """Return one label per example: with it, a naive step would give the target's answer.

        Args:
            params: the learner's parameters ν.
            target: the learner's target ν*.
            examples: the mini-batch as the learner sees it.
            lr: the step size η.
        """


@runtime_checkable
class RowsFn(Protocol):
    """Tells which rows of the pool a mini-batch consists of."""

    def __call__(self, drawn: Any, /) -> Array:
        """Return the numbers of the drawn rows, shape (B,).

        Args:
            drawn: what ``draw`` returned.

        """


@runtime_checkable
class PoolSizeFn(Protocol):
    """Counts the rows of the pool."""

    def __call__(self, world: "World", /) -> int:
        """Return the number of rows.

        Args:
            world: the world of the seed.

        """
