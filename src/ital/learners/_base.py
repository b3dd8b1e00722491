"""What a learner is, and what he may see."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ital._types import Array, Int, Params, Scalar
from ital.gradients import Gradients
from ital.learners.protocols import AutoBetaFn, InitFn, ResolveLearnerFn, UpdateFn


class Lesson(NamedTuple):
    """All that a learner sees of one step: nothing of the teacher but her choice.

    ``here`` is his own model on the mini-batch as he is now, its losses and gradients; ``gradients(ν)`` the same for
    any other parameters; ``order`` is a random order of the mini-batch (0 … B−1), the same for all methods of a
    seed; ``bystander`` is the index of a random example. ``steps`` is the number of steps of the run, and
    ``toward(ν, ν′)`` where a step from ν ends that wants to go to ν′: the form of the step decides.
    """

    step: Int[Array, ""]
    lr: Scalar
    examples: Any
    here: Gradients
    gradients: Callable[[Params], Gradients]
    chosen: Int[Array, ""]
    order: Int[Array, " B"]
    bystander: Int[Array, ""]
    steps: Any = None
    toward: Callable[[Params, Params], Params] = lambda params, wanted: wanted


class Update(NamedTuple):
    """The learner after a step: parameters, memory of his own, signals to record (averaged between measurements)."""

    params: Params
    memory: Any = ()
    signals: Mapping[str, Array] = MappingProxyType({})


class Rule(NamedTuple):
    """The code of a learner. Learners that share a rule differ in numbers only and run as lanes of one program.

    ``init(params, settings) -> memory``; ``update(lesson, settings, params, memory) -> Update``.
    """

    init: InitFn
    update: UpdateFn


class Situation(NamedTuple):
    """What a learner is told about the experiment before it starts, to fill in settings he left open.

    ``beta`` is a number with the sign that fits the teacher, or "auto"; ``auto_beta(volumes)`` finds one per seed
    from the teaching volumes that the learner imagines, ``volumes(lesson, params) -> (B,)``; with a ``sign`` as second
    argument it does so without knowing the teacher's.
    """

    beta: float | str
    beta_decay: float
    batch_size: int
    volume: str
    auto_beta: AutoBetaFn


class Learner(NamedTuple):
    """A named rule with its numbers. ``resolve(learner, situation)`` fills in what the experiment decides.

    ``version`` changes whenever the same lessons would lead elsewhere.
    """

    name: str
    label: str
    rule: Rule
    settings: Any = ()
    resolve: ResolveLearnerFn = lambda learner, situation: learner
    version: int = 1
