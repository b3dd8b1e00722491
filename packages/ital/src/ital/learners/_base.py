"""The types of a learner, and what a learner may see."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ital.learners.protocols import AutoBetaFn, BeginFn, InitFn, ResolveLearnerFn, UpdateFn
from ital.likelihoods import Likelihood
from ital.rationality import LINEAR
from ital.tools.pickling import reduced
from ital.tools.short import called, short
from ital.tools.types import Array, Params


class Update(NamedTuple):
    """The state of the learner after a step.

    Attributes:
        params: its parameters.
        memory: its memory.
        signals: numbers to record, averaged between measurements.
    """

    params: Params
    memory: Any = ()
    # Read-only, because all updates without signals share this one default.
    signals: Mapping[str, Array] = MappingProxyType({})


class Beginning(NamedTuple):
    """What a learner knows of the run when its memory is made.

    Attributes:
        params: the parameters ν⁰ at the start of the run.
        examples: the shapes of a mini-batch as the learner sees it, without its numbers.
        likelihood: how probable the task's labels are; None if the task does not say.
        rows: number of rows of the pool; None without a pool.
        batch_size: examples B in a mini-batch.
        choices: examples that the teacher shows in a step.
    """

    params: Params
    examples: Any
    likelihood: Likelihood | None
    rows: int | None
    batch_size: int
    choices: int


class Rule(NamedTuple):
    """The code of a learner.

    Learners that share a rule differ in numbers only and run as lanes of one program.

    Attributes:
        init: ``init(params, settings)`` returns the memory before the first step.
        update: ``update(lesson, settings, params, memory)`` returns the :class:`Update` of a step.
        optimized: whether it hands its gradient to an optimiser.
        begin: ``begin(beginning, settings)``, if given, replaces ``init``: it knows more of the
            run, and returns the first parameters as well as the memory.
    """

    init: InitFn
    update: UpdateFn
    optimized: bool = False
    begin: BeginFn | None = None

    def __repr__(self) -> str:
        module = getattr(self.update, "__module__", "")
        return f"Rule({module}.{called(self.update)})"


class Optimizer(NamedTuple):
    """An optimiser: code, and its rate.

    Attributes:
        name: its name, as typed.
        make: ``make(rate)`` returns the transformation of Optax. Learners with the same function
            share a program.
        rate: its rate, traced; 0 for the step size of the run.
    """

    name: str
    make: Callable[[Any], Any]
    rate: float = 0.0


class Situation(NamedTuple):
    """What a learner knows about the experiment before it starts, used to fill in open settings.

    Attributes:
        beta: a number with the sign that fits the teacher, or "auto".
        beta_decay: the share ε that β loses per step.
        batch_size: examples in a mini-batch.
        volume: the teaching volume that fits the teacher, "imitated" or "exact".
        auto_beta: ``auto_beta(volumes)`` finds a β per seed from the teaching volumes that the
            learner imagines, ``volumes(lesson, params)`` (B,); a second argument ``sign`` replaces
            the teacher's sign.
        most_awareness: the largest 2βη, if the learner chooses β.
        choices: examples that the teacher shows in a step.
        optimizer: the optimiser of the run, if there is one.
        labels: which labels are evidence: "all" of the mini-batch, or the "chosen" one's only.
        spread_of_start: standard deviation of a parameter at the task's own start; 1 if the task
            starts at zero or draws its own.
    """

    beta: float | str
    beta_decay: float
    batch_size: int
    volume: str
    auto_beta: AutoBetaFn
    most_awareness: float = LINEAR
    choices: int = 1
    optimizer: Optimizer | None = None
    labels: str = "all"
    spread_of_start: float = 1.0


def _nothing_open(learner: "Learner", situation: Situation) -> "Learner":
    """Return a learner as it is: the experiment decides none of its settings."""
    return learner


class Learner(NamedTuple):
    """A named rule with its numbers.

    Attributes:
        name: name of the method.
        label: its name in a legend.
        rule: its code.
        settings: its numbers, a pytree.
        resolve: ``resolve(learner, situation)`` fills in what the experiment decides.
        version: changes whenever the same lessons would give other parameters.
        needs: what a task must offer: see :class:`ital.tasks.Task`.
        labels: the values of the run's setting ``labels`` that the learner can honour.
    """

    name: str
    label: str
    rule: Rule
    settings: Any = ()
    resolve: ResolveLearnerFn = _nothing_open
    version: int = 1
    needs: tuple[str, ...] = ("gradients",)
    labels: tuple[str, ...] = ("all",)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __repr__(self) -> str:
        return short("Learner", self.name, numbers=self.settings)
