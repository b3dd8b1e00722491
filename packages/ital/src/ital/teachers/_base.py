"""The types of a teacher, and the teachers of the paper.

In this order: what a teacher sees and returns, :class:`Teacher`, the rule that the built-in
teachers share (the argmax of weight · volume + noise), and those that need nothing but this rule
and its numbers: cooperative, adversarial, omniscient, random, mixture.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.errors import InputError
from ital.gradients import Gradients
from ital.models import Model
from ital.teachers.protocols import AskFn, ChooseFn, FirstMemoryFn, PrepareFn, ResolveFn, SeveralFn
from ital.tools.pickling import reduced
from ital.tools.platform import on_cpu
from ital.tools.registry import number
from ital.tools.short import short
from ital.tools.types import Array, Bool, Int, Params, PerExample, PRNGKeyArray, Scalar


class Answers(NamedTuple):
    """The learner's answers to the questions of a teacher.

    Attributes:
        examples: the rows asked about, as the teacher sees them.
        outputs: the learner's outputs on them; 0 if nothing was asked.
        given: whether the teacher asked in this step.
    """

    examples: Any
    outputs: Array
    given: Bool[Array, ""]


class TeacherView(NamedTuple):
    """Everything that a teacher sees of one step. Of the learner it sees only the feedback.

    Attributes:
        volumes: the imitated teaching volumes of the mini-batch (B,), computed from the rest of
            this view; None for a teacher without feedback.
        feedback: the learner's report on the mini-batch; None for a teacher without feedback.
        examples: the teacher's view of the mini-batch.
        target: the teacher's target ω*.
        lr: the step size η.
        step: number of the step, from 0.
        steps: number of steps of the run.
        answers: the learner's answers, if the teacher asks questions.
        model: a learner's model in the teacher's own view, if the task offers "simulation".
        first: index of the first copy of each example in the mini-batch (B,).
    """

    volumes: Any
    feedback: Any
    examples: Any
    target: Params
    lr: Scalar
    step: Int[Array, ""]
    steps: Int[Array, ""]
    answers: Answers | None = None
    model: Model | None = None
    first: Any = None


class LearnerView(NamedTuple):
    """What the omniscient teacher sees in addition.

    Attributes:
        volumes: the exact teaching volumes of the mini-batch (B,).
        params: the learner's parameters ν.
        target: the learner's target ν*.
        gradients: ``gradients(ν, h)`` returns the losses and gradients of any ν on the mini-batch
            that comes h steps later, 0 ≤ h < ``ahead``.
        labels: the labels of the mini-batch that would bring the learner to the target's answer in
            one naive step, as far as labels can, if the task offers "ideal labels".
    """

    volumes: PerExample
    params: Params
    target: Params
    gradients: Callable[[Params, int], Gradients]
    labels: Any = None


class Choice(NamedTuple):
    """What a teacher shows.

    Attributes:
        index: an index of the mini-batch, or several distinct ones in order (k,).
        label: the label shown in place of the true one, or one per index; None for the true one.
    """

    index: Any
    label: Any = None


class Query(NamedTuple):
    """What a teacher asks: the learner's outputs on rows of the teacher's choosing.

    Attributes:
        rows: the rows, as the task draws them (for a pool: indices of rows).
        asked: whether to ask in this step; if not, the rows do not matter.
        answers: how many answers that takes.
    """

    rows: Any
    asked: Any
    answers: int


def the_key(key: PRNGKeyArray, batch_size: int) -> PRNGKeyArray:
    """Return the random key itself, for a teacher that draws from it."""
    return key


def as_given(settings: Any, beta: float | str) -> Any:
    """Return the settings as they are."""
    return settings


class Teacher(NamedTuple):
    """A teacher: a choice, and the numbers that it uses.

    Unless it is omniscient, it knows the learner only through its feedback or its answers. Teachers
    with the same code that differ only in numbers share a program.

    Attributes:
        name: its name.
        choose: ``choose(key, view, settings)`` returns an index of the mini-batch, or a
            :class:`Choice`. An omniscient teacher gets a :class:`LearnerView` after the view. A
            teacher with memory gets the memory last, and returns ``(choice, memory, signals)``.
        settings: its numbers, a pytree, traced by the compiled program.
        sign: the sign of a β that fits the teacher.
        resolve: ``resolve(settings, beta)`` fills in open settings, given the task's β.
        prepare: ``prepare(key, B)``, if given, draws what ``choose`` gets in place of the key, for
            many steps at once.
        version: changes whenever the same key would give another choice.
        omniscient: whether it also sees the learner's parameters.
        init: ``init(key, side, settings)``, if given, returns the memory before the first step, a
            pytree of arrays.
        ask: ``ask(key, side, view, settings, memory)``, if given, returns the :class:`Query` of a
            step.
        ahead: number of mini-batches that it sees, the present one included.
        feedback: whether it sees the learner's feedback.
        several: ``several(k)``, if given, returns the ``choose`` that chooses k examples in order.
        needs: what a task must offer, e.g. "simulation": see :class:`ital.tasks.Task`.
    """

    name: str
    choose: ChooseFn
    settings: Any = ()
    sign: float = 1.0
    resolve: ResolveFn = as_given
    prepare: PrepareFn = the_key
    version: int = 1
    omniscient: bool = False
    init: FirstMemoryFn | None = None
    ask: AskFn | None = None
    ahead: int = 1
    feedback: bool = True
    several: SeveralFn | None = None
    needs: tuple[str, ...] = ()

    def code(self, choices: int = 1) -> "Teacher":
        """Return the teacher without name and numbers: teachers with equal code share a program.

        Args:
            choices: number k of examples to choose in a step.

        Returns:
            A teacher that chooses k examples.
        """
        choose = self.choose
        if choices > 1 and self.several:
            choose = self.several(choices)
        return self._replace(
            name="",
            choose=choose,
            settings=(),
            sign=1.0,
            resolve=as_given,
            version=1,
            several=None,
            needs=(),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __repr__(self) -> str:
        return short("Teacher", self.name, numbers=self.settings)


# Numbers that a teacher records, averaged between measurements.
Signals = Mapping[str, Array]


def first_largest(values: PerExample) -> Int[Array, ""]:
    """Return the same as ``jnp.argmax``, also for NaN.

    Args:
        values: the values (B,).

    Returns:
        The index of the largest; ties go to the lowest index.
    """
    # XLA's argmax is slow on a CPU, but a single kernel on a GPU.
    if not on_cpu():
        return jnp.argmax(values)
    # NaN equals nothing, not even the maximum: it counts as largest by itself, as in argmax.
    is_largest = (values == jnp.max(values)) | jnp.isnan(values)
    return jnp.min(jnp.where(is_largest, jnp.arange(len(values)), len(values)))


def largest(values: PerExample, count: int) -> Int[Array, " k"]:
    """Return the indices of the ``count`` largest values; ties go to the lowest index.

    Args:
        values: the values (B,).
        count: number of indices.

    Returns:
        The indices (k,), that of the largest value first.
    """
    return jnp.argsort(-values, stable=True)[:count]


# Steps at which a teacher may change.
NEVER = math.inf
HALF_WAY = math.nan


class Rationality(NamedTuple):
    """The numbers of a teacher: how it weighs teaching volume and noise, and when that changes.

    weight 1 and noise 0 is the cooperative teacher, weight −1 the adversary, weight 0 and noise 1
    the random one, weight ρ and noise 1 the Boltzmann teacher with rationality ρ.

    Attributes:
        weight: the weight of the teaching volume.
        noise: the weight of Gumbel noise.
        change: the step from which the next two count instead.
        weight_after: the weight of the teaching volume from then on.
        noise_after: the weight of Gumbel noise from then on.
        lapse: the probability that a choice is random.
    """

    weight: Any = 1.0
    noise: Any = 0.0
    change: Any = NEVER
    weight_after: Any = 1.0
    noise_after: Any = 0.0
    lapse: Any = 0.0


class Noise(NamedTuple):
    """The random part of a choice.

    Attributes:
        gumbel: a Gumbel number for each example (B,).
        lapse: a number in [0, 1) that decides on a lapse.
    """

    gumbel: PerExample | float
    lapse: Array | float


def draw_noise(key: PRNGKeyArray, batch_size: int) -> Noise:
    """Draw the noise of one choice."""
    gumbel_key, lapse_key = jax.random.split(key)
    gumbel = jax.random.gumbel(gumbel_key, (batch_size,))
    return Noise(gumbel, jax.random.uniform(lapse_key))


def draw_none(key: PRNGKeyArray, batch_size: int) -> Noise:
    """Draw nothing, for teachers that need no noise."""
    return Noise(0.0, 1.0)


def choose(noise: Noise, view: TeacherView, settings: Rationality) -> Int[Array, ""]:
    """Return the argmax of weight · TV̂ + noise; ties go to the lowest index.

    With noise 1 this is a draw with probability ∝ exp(weight · TV̂), eq. (q-imit) with the true
    target.
    """
    return first_largest(scores(noise, view, view.volumes, settings))


def choose_knowing(
    noise: Noise, view: TeacherView, learner: LearnerView, settings: Rationality
) -> Int[Array, ""]:
    """Return the same for a teacher that sees the parameters: with eq. (teaching-volume)."""
    return first_largest(scores(noise, view, learner.volumes, settings))


@functools.cache  # one object per number: teachers that share it share a program
def several(count: int) -> ChooseFn:
    """Return the function that chooses the ``count`` largest in place of the largest.

    With noise 1 this is a draw from the Plackett–Luce distribution.
    """

    def choose_several(noise: Noise, view: TeacherView, settings: Rationality) -> Array:
        return largest(scores(noise, view, view.volumes, settings), count)

    return choose_several


@functools.cache
def several_knowing(count: int) -> ChooseFn:
    """Return the same with the exact teaching volume."""

    def choose_several(
        noise: Noise,
        view: TeacherView,
        learner: LearnerView,
        settings: Rationality,
    ) -> Array:
        return largest(scores(noise, view, learner.volumes, settings), count)

    return choose_several


def scores(
    noise: Noise,
    view: TeacherView,
    volumes: PerExample,
    settings: Rationality,
) -> PerExample:
    """Return weight · volume + noise (B,), with the numbers of this step."""
    change = jnp.where(jnp.isnan(settings.change), view.steps / 2, settings.change)
    changed = view.step >= change
    lapses = noise.lapse < settings.lapse
    weight = jnp.where(changed, settings.weight_after, settings.weight)
    scale = jnp.where(changed, settings.noise_after, settings.noise)
    # A lapse is a random choice: only the noise counts.
    weight = jnp.where(lapses, 0.0, weight)
    scale = jnp.where(lapses, 1.0, scale)
    # With weight 0, a volume that is not finite must have no effect: 0 · ∞ is NaN.
    weighted = jnp.where(weight == 0, 0.0, weight * volumes)
    return weighted + scale * noise.gumbel


def rational(name: str, numbers: Rationality, *, version: int = 1, **options: Any) -> Teacher:
    """Return a teacher with this rule; noise is drawn only if its numbers need it."""
    prepare = draw_none
    if numbers.noise != 0 or numbers.noise_after != 0 or numbers.lapse != 0:
        prepare = draw_noise
    return Teacher(
        name,
        choose,
        numbers,
        prepare=prepare,
        version=version,
        several=several,
        **options,
    )


def cooperative() -> Teacher:
    """Shows the example of largest imitated teaching volume, eq. (imit-teacher).

    Returns:
        The teacher.
    """
    return rational("cooperative", Rationality(weight=1.0))


def adversarial() -> Teacher:
    """Shows the example of smallest imitated teaching volume; a learner that knows this uses β < 0.

    Returns:
        The teacher.
    """
    return rational("adversarial", Rationality(weight=-1.0), sign=-1.0)


def omniscient() -> Teacher:
    """Shows the example of largest exact teaching volume, eq. (teaching-volume), knowing ν and ν*.

    Returns:
        The teacher.
    """
    return Teacher(
        "omniscient",
        choose_knowing,
        Rationality(weight=1.0),
        prepare=draw_none,
        omniscient=True,
        several=several_knowing,
    )


def random() -> Teacher:
    """Shows a random example of the mini-batch, all with equal probability.

    Returns:
        The teacher.
    """
    return rational("random", Rationality(weight=0.0, noise=1.0), version=2)


def mixture(helps: float | str = 0.5) -> Teacher:
    """Helps with probability P (mixture:P, default 0.5), else shows a random example.

    Args:
        helps: the probability P.

    Returns:
        The teacher.

    Raises:
        InputError: if P does not lie in [0, 1].
    """
    probability = number(helps)
    if not 0 <= probability <= 1:
        raise InputError(
            f"the probability of the mixture teacher must lie in [0, 1], not {helps!r}"
        )
    name = "mixture" if probability == 0.5 else f"mixture:{probability:g}"
    return rational(name, Rationality(lapse=1 - probability), version=2)
