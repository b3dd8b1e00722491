"""What a learner sees of one step."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ital.gradients import Gradients
from ital.likelihoods import Likelihood
from ital.tools.types import Array, Int, Params, Scalar


def _whole_step(params: Params, proposed: Params) -> Params:
    """Apply all of a proposed update, as a lesson does that no form limits."""
    return proposed


class Lesson(NamedTuple):
    """Everything that a learner sees of one step. Of the teacher it sees only the choice.

    Attributes:
        step: number of the step, from 0.
        lr: the step size η.
        examples: the learner's view of the mini-batch.
        here: losses and gradients of the learner's model on the mini-batch, at its present
            parameters.
        gradients: ``gradients(ν)`` returns the same at any other parameters.
        chosen: index of the example that the teacher chose; if it chooses several, their indices
            (k,) in order.
        order: a random order of the mini-batch (0 … B−1), the same for all methods of a seed.
        bystander: index of a random example.
        steps: number of steps of the run.
        toward: ``toward(ν, ν′)`` returns the parameters after a step from ν toward ν′, as limited
            by the form of the step.
        rows: numbers of the mini-batch's rows in the pool (B,), for tasks with a pool; None for
            others.
        likelihood: how probable the task's labels are at any parameters; None if the task does
            not say.
    """

    step: Int[Array, ""]
    lr: Scalar
    examples: Any
    here: Gradients
    gradients: Callable[[Params], Gradients]
    chosen: Int[Array, ""] | Int[Array, " k"]
    order: Int[Array, " B"]
    bystander: Int[Array, ""]
    steps: Any = None
    toward: Callable[[Params, Params], Params] = _whole_step
    rows: Int[Array, " B"] | None = None
    likelihood: Likelihood | None = None


__all__ = ["Lesson"]
