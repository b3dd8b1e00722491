"""The update shared by Batch, SGD, IMT and ITAL: a literal step, then an awareness step (Algorithm 1).

    ν̂ = ν − η Σᵢ aᵢ gᵢ(ν),     ν′ = ν̂ − 2βη² Σᵢ (1[i=c] − qᵢ) gᵢ(ν̂)

The methods differ only in numbers: the literal weights a, β, and how much of the mini-batch q covers.

With an optimiser, both steps are one gradient, which is handed to it: Σᵢ aᵢ gᵢ(ν) + 2βη Σᵢ (1[i=c] − qᵢ) gᵢ(ν̂). The
imagined teacher still sees a learner with plain steps: η in ν̂ and in the volumes is the step size of the run.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import volume as teaching_volume
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled
from ital.learners._base import Learner, Rule, Situation, Update
from ital.learners._optimizers import Optimizer, descend, first_state
from ital.lessons import Lesson
from ital.tools.types import Array, Bool, Int, Params, PerExample, Scalar

Schedule = Callable[[Array], Array]  # β as a function of the step


class Literal(NamedTuple):
    """Weights of the literal step: on the chosen example, on a random one, and on the mean of the mini-batch.

    Attributes:
        chosen: weight of the chosen example.
        bystander: weight of a random example.
        mean: weight of the mean over the mini-batch.
    """

    chosen: float = 0.0
    bystander: float = 0.0
    mean: float = 0.0


class AwareNumbers(NamedTuple):
    """Numbers of a two-step learner. ``beta`` None means the experiment's, ``view`` None the whole mini-batch.

    ``rate`` is that of the optimiser, 0 for the run's step size, None without an optimiser.
    """

    literal: Literal
    beta: Any
    beta_decay: Any
    view: Any
    rate: Any = None


def literal_weights(lesson: Lesson, literal: Literal) -> PerExample:
    """The weight a of each example of the mini-batch in the literal step.

    Args:
        lesson: what the learner sees of this step.
        literal: the weights of the literal step.

    Returns:
        The weights a (B,).
    """
    index = jnp.arange(lesson.order.shape[0])
    return (
        literal.chosen * _shares(lesson.chosen, index.shape[0])
        + literal.bystander * (index == lesson.bystander)
        + literal.mean / index.shape[0]
    )


def _shares(chosen: Array, size: int) -> Array:
    """1 for the chosen example, 0 for others; with several choices, 1/k for each."""
    index = jnp.arange(size)
    return (
        index == chosen
        if chosen.ndim == 0
        else jnp.sum(index == chosen[:, None], axis=0) / len(chosen)
    )


def in_view(lesson: Lesson, view: Scalar | int | Int[Array, ""]) -> Bool[Array, " B"]:
    """D̂, the examples in view: the chosen one and M−1 others, drawn without replacement; larger views contain smaller.

    Args:
        lesson: what the learner sees of this step.
        view: M, the number of examples in view.

    Returns:
        True for the examples in view (B,).
    """
    if lesson.chosen.ndim:
        return _several_in_view(lesson, view)
    is_chosen = jnp.arange(lesson.order.shape[0]) == lesson.chosen
    place_of_chosen = jnp.sum(jnp.where(is_chosen, lesson.order, 0))
    place = jnp.where(is_chosen, 0, lesson.order + (lesson.order < place_of_chosen))
    return place < view


def _several_in_view(lesson: Lesson, view: Scalar | int | Int[Array, ""]) -> Bool[Array, " B"]:
    """The k chosen examples and M−k others."""
    chosen = jnp.any(jnp.arange(lesson.order.shape[0]) == lesson.chosen[:, None], axis=0)
    before = jnp.sum(~chosen & (lesson.order < lesson.order[:, None]), axis=1)
    return chosen | (before + lesson.chosen.shape[0] < view)


def imagined_choice(
    beta: Scalar, volumes: PerExample, seen: Bool[Array, " B"], chosen: Array | None = None
) -> PerExample:
    """q = softmax(β·TV̂(ν̂)) over D̂, eq. (q-imit): how likely the learner thinks each choice was.

    An ordered choice of several is imagined as one choice after the other, each among the examples that are left
    (Plackett–Luce); the result is then the sum of q over these choices.

    Args:
        beta: the rationality β.
        volumes: the imagined teaching volumes TV̂(ν̂) (B,).
        seen: which examples are in view (B,).
        chosen: the choice, needed if it is one of several examples (k,).

    Returns:
        The probabilities q (B,), 0 outside the view.
    """
    if chosen is None or chosen.ndim == 0:
        return jax.nn.softmax(beta * volumes, where=seen)

    def one_of_those_left(left: Array, choice: Array) -> tuple[Array, Array]:
        return left & (jnp.arange(len(left)) != choice), jax.nn.softmax(beta * volumes, where=left)

    return jnp.sum(jax.lax.scan(one_of_those_left, seen, chosen)[1], axis=0)


def awareness_step(
    beta: Scalar, lr: Scalar, chosen: Array, q: PerExample, guess: Params, there: Gradients
) -> Params:
    """ν′ = ν̂ − 2βη² ( g_c − Σᵢ qᵢgᵢ ): one step up the gradient of log q(c), eq. (imit-update).

    Args:
        beta: the rationality β.
        lr: the step size η.
        chosen: the index c of the chosen example, or several (k,).
        q: the imagined choice (B,).
        guess: the parameters ν̂ after the literal step.
        there: gradients at ν̂.

    Returns:
        The parameters ν′.
    """
    return add_scaled(guess, -2 * beta * lr**2, there.weighted_sum(_surprise(chosen, q)))


def _surprise(chosen: Array, q: PerExample) -> PerExample:
    """1[i=c] − qᵢ of every example; with several choices, their sum."""
    is_chosen = jnp.arange(q.shape[0]) == (chosen if chosen.ndim == 0 else chosen[:, None])
    return (is_chosen if chosen.ndim == 0 else jnp.sum(is_chosen, axis=0)) - q


class Imagined(NamedTuple):
    """What the learner imagines after the literal step: ν̂, gradients for the awareness step, the teacher's volumes.

    ``naive`` is the result of the full literal step; ν̂ differs from it if the form of step shortens the step.
    """

    guess: Params
    gradients: Gradients
    volumes: PerExample
    naive: Params


def imagine(lesson: Lesson, params: Params, literal: Literal, volume: str) -> Imagined:
    """Take the literal step ν̂ = ν − η Σᵢ aᵢ gᵢ(ν), and compute the volumes TV̂(ν̂) for a teacher whose target is ν̂.

    Eq. (imit-teaching-volume) for the ``imitated`` volume, eq. (teaching-volume) for the ``exact`` one.

    Args:
        lesson: what the learner sees of this step.
        params: the parameters ν.
        literal: the weights of the literal step.
        volume: "imitated" or "exact".

    Returns:
        ν̂, the gradients for the awareness step, and the volumes.
    """
    here = lesson.here
    naive = add_scaled(params, -lesson.lr, here.weighted_sum(literal_weights(lesson, literal)))
    guess = lesson.toward(params, naive)
    if volume == "exact":
        progress = here.inner(add_scaled(params, -1.0, guess))
        return Imagined(
            guess, here, teaching_volume.exact(lesson.lr, here.squared_norms, progress), naive
        )
    there = lesson.gradients(guess)
    volumes = teaching_volume.imitated(lesson.lr, here.squared_norms, here.losses, there.losses)
    return Imagined(guess, there, volumes, naive)


def update(
    lesson: Lesson,
    settings: AwareNumbers,
    params: Params,
    memory: Any,
    *,
    volume: str,
    schedule: Schedule | None,
    make: Callable[[Any], Any] | None,
) -> Update:
    """Take both steps; ``volume`` is the teaching volume that the learner thinks the teacher uses.

    ``make`` is the code of the optimiser, if there is one; its state is the memory.
    """
    beta = settings.beta * jnp.exp(lesson.step * jnp.log1p(-settings.beta_decay))
    if schedule is not None:
        beta = schedule(lesson.step)
    imagined = imagine(lesson, params, settings.literal, volume)
    q = imagined_choice(beta, imagined.volumes, in_view(lesson, settings.view), lesson.chosen)
    if make is None:
        return Update(
            awareness_step(beta, lesson.lr, lesson.chosen, q, imagined.naive, imagined.gradients)
        )
    literal = lesson.here.weighted_sum(literal_weights(lesson, settings.literal))
    awareness = imagined.gradients.weighted_sum(_surprise(lesson.chosen, q))
    rate = jnp.where(settings.rate > 0, settings.rate, lesson.lr)
    return Update(
        *descend(make, rate, add_scaled(literal, 2 * beta * lesson.lr, awareness), params, memory)
    )


@functools.cache  # one object per structure: learners that share it are lanes of one program
def rule(
    volume: str, schedule: Schedule | None = None, make: Callable[[Any], Any] | None = None
) -> Rule:
    """The two-step rule for a learner that imagines the ``imitated`` or the ``exact`` volume."""

    def init(params: Params, settings: AwareNumbers) -> Any:
        return () if make is None else first_state(make, params)

    return Rule(
        init,
        functools.partial(update, volume=volume, schedule=schedule, make=make),
        make is not None,
    )


@functools.cache
def imagined_volumes(volume: str) -> Callable[[Lesson, Params], PerExample]:
    """The volumes that a teacher-aware learner imagines, as a function for ``beta="auto"``.

    Args:
        volume: "imitated" or "exact".

    Returns:
        ``volumes(lesson, params)``, which returns the volumes (B,).
    """
    return lambda lesson, params: imagine(lesson, params, Literal(chosen=1.0), volume).volumes


def resolve(
    learner: Learner,
    situation: Situation,
    *,
    volume: str | None = None,
    optimizer: Optimizer | None = None,
) -> Learner:
    """Fill in β, its decay, M, the imagined volume and the optimiser; raise InputError if M exceeds the mini-batch."""
    literal, beta, decay, view, _ = learner.settings
    optimizer = optimizer or situation.optimizer
    schedule = beta if callable(beta) else None
    volume = volume or situation.volume
    if decay is None:
        decay = situation.beta_decay if beta is None else 0.0
    if beta is None:
        beta = situation.beta
    if isinstance(beta, str):
        beta = situation.auto_beta(imagined_volumes(volume))
    elif schedule is not None:
        beta = float(schedule(jnp.zeros((), int)))  # for the record
    view = situation.batch_size if view is None else view
    if view > situation.batch_size:
        raise InputError(
            f"method {learner.name!r} sees {view} examples, but the batch size is {situation.batch_size}: "
            "choose a larger batch or leave the method out"
        )
    if view < situation.choices:
        raise InputError(
            f"method {learner.name!r} sees {view} examples, but the teacher shows {situation.choices}"
        )
    make, rate = (None, None) if optimizer is None else (optimizer.make, optimizer.rate)
    numbers = AwareNumbers(literal, beta, decay, view, rate)
    return learner._replace(rule=rule(volume, schedule, make), settings=numbers)


def naive(name: str, label: str, literal: Literal) -> Learner:
    """A learner that takes only the literal step: β = 0."""
    return Learner(name, label, rule("imitated"), AwareNumbers(literal, 0.0, 0.0, None), resolve)


def with_own(optimizer: Optimizer | None, learner: Learner, volume: str | None = None) -> Learner:
    """The two-step learner with an optimiser of its own, which is part of its name."""
    learner = learner._replace(
        resolve=functools.partial(resolve, volume=volume, optimizer=optimizer)
    )
    if optimizer is None:
        return learner
    return learner._replace(
        name=f"{learner.name}-{optimizer.name}", label=f"{learner.label} {optimizer.name}"
    )
