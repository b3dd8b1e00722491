"""The update of Batch, SGD, IMT and ITAL: a literal step, then an awareness step (Algorithm 1).

    ν̂ = ν − η Σᵢ aᵢ gᵢ(ν),     ν′ = ν̂ − 2βη² Σᵢ (1[i=c] − qᵢ) gᵢ(ν̂)

The methods differ only in numbers: the literal weights a, β, and how much of the mini-batch q
covers. :func:`update` reads from top to bottom as Algorithm 1; each function above it is one
equation. Below it is what fills in open numbers; the four learners come last.

With an optimiser, both steps are one gradient, which is handed to it:
Σᵢ aᵢ gᵢ(ν) + 2βη Σᵢ (1[i=c] − qᵢ) gᵢ(ν̂). The imagined teacher still sees a learner with plain
steps: η in ν̂ and in the volumes is the step size of the run.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import volume as teaching_volume
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled
from ital.learners._base import Learner, Optimizer, Rule, Situation, Update
from ital.lessons import Lesson
from ital.tools import registry
from ital.tools.checks import is_finite, require_whole, shown
from ital.tools.types import Array, Bool, Int, Params, PerExample, Scalar

OPTIMIZERS = ("adabelief", "adagrad", "adam", "adamw", "lion", "nadam", "radam", "rmsprop", "sgd")
"""Optimisers that are known by name; those of Optax that need no other argument than their rate."""

# β as a function of the step.
Schedule = Callable[[Array], Array]


class Literal(NamedTuple):
    """Weights of the literal step.

    Attributes:
        chosen: weight of the chosen example.
        bystander: weight of a random example.
        mean: weight of the mean over the mini-batch.
    """

    chosen: float = 0.0
    bystander: float = 0.0
    mean: float = 0.0


class AwareNumbers(NamedTuple):
    """Numbers of a two-step learner.

    Attributes:
        literal: the weights of the literal step.
        beta: the rationality β; None means the experiment's.
        beta_decay: the share ε that β loses per step.
        view: M, the number of examples in view; None means the whole mini-batch.
        rate: the rate of the optimiser; 0 for the run's step size, None without an optimiser.
    """

    literal: Literal
    beta: Any
    beta_decay: Any
    view: Any
    rate: Any = None


def literal_weights(lesson: Lesson, literal: Literal) -> PerExample:
    """Return the weight a of each example of the mini-batch in the literal step.

    Args:
        lesson: what the learner sees of this step.
        literal: the weights of the literal step.

    Returns:
        The weights a (B,).
    """
    index = jnp.arange(lesson.order.shape[0])
    on_chosen = literal.chosen * _shares(lesson.chosen, index.shape[0])
    on_bystander = literal.bystander * (index == lesson.bystander)
    on_each = literal.mean / index.shape[0]
    return on_chosen + on_bystander + on_each


def _shares(chosen: Array, size: int) -> Array:
    """Return 1 for the chosen example, 0 for others (B,); with several choices, 1/k for each."""
    index = jnp.arange(size)
    if chosen.ndim == 0:
        return index == chosen
    return jnp.sum(index == chosen[:, None], axis=0) / len(chosen)


def in_view(lesson: Lesson, view: Scalar | int | Int[Array, ""]) -> Bool[Array, " B"]:
    """Return which examples are in view, D̂: the chosen one and M−1 others, without replacement.

    Views of one step are nested: a larger one contains the smaller.

    Args:
        lesson: what the learner sees of this step.
        view: M, the number of examples in view.

    Returns:
        True for the examples in view (B,).
    """
    if lesson.chosen.ndim:
        return _several_in_view(lesson, view)
    # Move the chosen example to the front of the random order, and view the first M.
    order = lesson.order
    is_chosen = jnp.arange(order.shape[0]) == lesson.chosen
    rank_of_chosen = jnp.sum(jnp.where(is_chosen, order, 0))
    was_before = order < rank_of_chosen
    rank = jnp.where(is_chosen, 0, order + was_before)
    return rank < view


def _several_in_view(lesson: Lesson, view: Scalar | int | Int[Array, ""]) -> Bool[Array, " B"]:
    """Return which examples are in view (B,): the k chosen ones and M−k others."""
    order = lesson.order
    chosen = lesson.chosen
    index = jnp.arange(order.shape[0])
    is_chosen = jnp.any(index == chosen[:, None], axis=0)
    # For each example, how many of those not chosen come before it in the random order.
    is_other_before = ~is_chosen & (order < order[:, None])
    others_before = jnp.sum(is_other_before, axis=1)
    rank = others_before + chosen.shape[0]
    return is_chosen | (rank < view)


def imagined_choice(
    beta: Scalar,
    volumes: PerExample,
    seen: Bool[Array, " B"],
    chosen: Array | None = None,
) -> PerExample:
    """Return how likely the learner thinks each choice was, eq. (q-imit): q = softmax(β·TV̂(ν̂)).

    An ordered choice of several is imagined as one choice after the other, each among the examples
    that are left (Plackett–Luce); the result is then the sum of q over these choices.

    Args:
        beta: the rationality β.
        volumes: the imagined teaching volumes TV̂(ν̂) (B,).
        seen: which examples are in view, D̂ (B,).
        chosen: the choice, needed if it is one of several examples (k,).

    Returns:
        The probabilities q (B,), 0 outside the view.
    """
    if chosen is None or chosen.ndim == 0:
        return jax.nn.softmax(beta * volumes, where=seen)

    def one_of_those_left(left: Array, choice: Array) -> tuple[Array, Array]:
        is_other = jnp.arange(len(left)) != choice
        left_after = left & is_other
        q = jax.nn.softmax(beta * volumes, where=left)
        return left_after, q

    _, q_of_each_choice = jax.lax.scan(one_of_those_left, seen, chosen)
    return jnp.sum(q_of_each_choice, axis=0)


def awareness_step(
    beta: Scalar,
    lr: Scalar,
    chosen: Array,
    q: PerExample,
    guess: Params,
    there: Gradients,
) -> Params:
    """Return ν′ = ν̂ − 2βη² ( g_c − Σᵢ qᵢgᵢ ), eq. (imit-update).

    It is a step up the gradient of log q(c).

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
    size = -2 * beta * lr**2
    direction = there.weighted_sum(_surprise(chosen, q))
    return add_scaled(guess, size, direction)


def _surprise(chosen: Array, q: PerExample) -> PerExample:
    """Return 1[i=c] − qᵢ of every example (B,); with several choices, their sum."""
    index = jnp.arange(q.shape[0])
    if chosen.ndim == 0:
        return (index == chosen) - q
    times_chosen = jnp.sum(index == chosen[:, None], axis=0)
    return times_chosen - q


class Imagined(NamedTuple):
    """What the learner imagines after the literal step.

    Attributes:
        guess: ν̂, as far as the form of the step lets the literal step go.
        gradients: the gradients for the awareness step.
        volumes: the volumes of a teacher whose target is ν̂ (B,).
        naive: the result of the full literal step, whatever the form.
    """

    guess: Params
    gradients: Gradients
    volumes: PerExample
    naive: Params


def imagine(lesson: Lesson, params: Params, literal: Literal, volume: str) -> Imagined:
    """Take the literal step ν̂ = ν − η Σᵢ aᵢ gᵢ(ν), and imagine a teacher whose target is ν̂.

    Its volumes follow eq. (imit-teaching-volume) if they are ``imitated``, else eq.
    (teaching-volume). Gradient norms are those at ν.

    Args:
        lesson: what the learner sees of this step.
        params: the parameters ν.
        literal: the weights of the literal step.
        volume: "imitated" or "exact".

    Returns:
        ν̂, the gradients for the awareness step, and the volumes.
    """
    here = lesson.here
    direction = here.weighted_sum(literal_weights(lesson, literal))
    naive = add_scaled(params, -lesson.lr, direction)
    guess = lesson.toward(params, naive)
    if volume == "exact":
        progress = here.inner(add_scaled(params, -1.0, guess))
        volumes = teaching_volume.exact(lesson.lr, here.squared_norms, progress)
        # The exact volume is linear in the target: its derivative has the gradients at ν, not at
        # ν̂.
        return Imagined(guess, here, volumes, naive)
    there = lesson.gradients(guess)
    volumes = teaching_volume.imitated(lesson.lr, here.squared_norms, here.losses, there.losses)
    return Imagined(guess, there, volumes, naive)


def optimizer(given: Any) -> Optimizer | None:
    """Return the optimiser of that name, e.g. ``adam`` or ``adam:0.001``.

    Args:
        given: a name, with its rate after a colon (the run's step size if there is none); a
            transformation of Optax such as ``optax.adam(1e-3)``; None for no optimiser.

    Returns:
        The optimiser, or None.

    Raises:
        InputError: if there is no such optimiser, or its rate is not a positive number.
    """
    if given is None or isinstance(given, Optimizer):
        return given
    if isinstance(given, str):
        return _named(given)
    if callable(getattr(given, "init", None)) and callable(getattr(given, "update", None)):
        return Optimizer("optax", _always(given))
    hint = ""
    if inspect.isfunction(given):
        # A likely slip: the constructor ``optax.adam`` in place of ``optax.adam(1e-3)``.
        hint = "; it is a function: call it"
    raise InputError(
        "expected an optimizer such as optax.adam(1e-3), or a name like 'adam', "
        f"not {shown(given)}{hint}"
    )


def _named(text: str) -> Optimizer:
    """Return the optimiser that is written ``name`` or ``name:rate``."""
    import optax

    name, colon, rate = text.partition(":")
    if name not in OPTIMIZERS:
        raise InputError(registry.nearest("optimizer", name, OPTIMIZERS))
    make = getattr(optax, name)
    if not colon:
        return Optimizer(name, make)
    value = registry.number(rate)
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            f"the rate of an optimizer must be a positive number, as in {name}:0.001, not {rate!r}"
        )
    written = repr(value).removesuffix(".0")
    return Optimizer(f"{name}:{written}", make, value)


@functools.cache  # one object per transformation: learners that share it share a program
def _always(transformation: Any) -> Callable[[Any], Any]:
    return lambda rate: transformation


def descend(
    make: Callable[[Any], Any],
    rate: Array,
    gradient: Params,
    params: Params,
    state: Any,
) -> tuple[Params, Any]:
    """Hand a gradient to an optimiser; return the parameters after its step, and its state."""
    import optax

    transformation = make(rate)
    updates, state = transformation.update(gradient, state, params)
    return optax.apply_updates(params, updates), state


def first_state(make: Callable[[Any], Any], params: Params) -> Any:
    """Return the state of an optimiser before the first step; it does not depend on the rate."""
    return make(jnp.ones(())).init(params)


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
    """Take both steps of Algorithm 1.

    Args:
        lesson: what the learner sees of this step.
        settings: the numbers of the learner.
        params: the parameters ν.
        memory: the state of the optimiser, if there is one.
        volume: the teaching volume that the learner thinks the teacher uses.
        schedule: β as a function of the step; None for a constant β that decays.
        make: the code of the optimiser, if there is one.

    Returns:
        The parameters ν′, and the optimiser's state.
    """
    # βₜ = β(1−ε)ᵗ, as exp(t·log(1−ε)): a power would lose the digits of a small ε.
    log_remaining = lesson.step * jnp.log1p(-settings.beta_decay)
    beta = settings.beta * jnp.exp(log_remaining)
    if schedule is not None:
        beta = schedule(lesson.step)

    imagined = imagine(lesson, params, settings.literal, volume)
    seen = in_view(lesson, settings.view)
    q = imagined_choice(beta, imagined.volumes, seen, lesson.chosen)
    if make is None:
        after = awareness_step(
            beta,
            lesson.lr,
            lesson.chosen,
            q,
            # It begins at the full literal step: the form of the step limits both steps together.
            guess=imagined.naive,
            there=imagined.gradients,
        )
        return Update(after)

    weights = literal_weights(lesson, settings.literal)
    literal = lesson.here.weighted_sum(weights)
    awareness = imagined.gradients.weighted_sum(_surprise(lesson.chosen, q))
    both = add_scaled(literal, 2 * beta * lesson.lr, awareness)
    rate = jnp.where(settings.rate > 0, settings.rate, lesson.lr)
    after, state = descend(make, rate, both, params, memory)
    return Update(after, state)


@functools.cache  # one object per structure: learners that share it are lanes of one program
def rule(
    volume: str,
    schedule: Schedule | None = None,
    make: Callable[[Any], Any] | None = None,
) -> Rule:
    """Return the two-step rule for a learner that imagines the ``imitated`` or ``exact`` volume."""

    def init(params: Params, settings: AwareNumbers) -> Any:
        if make is None:
            return ()
        return first_state(make, params)

    code = functools.partial(update, volume=volume, schedule=schedule, make=make)
    return Rule(init, code, optimized=make is not None)


@functools.cache
def imagined_volumes(volume: str) -> Callable[[Lesson, Params], PerExample]:
    """Return a function for ``beta="auto"``: the volumes that a teacher-aware learner imagines.

    Args:
        volume: "imitated" or "exact".

    Returns:
        ``volumes(lesson, params)``, which returns the volumes (B,).
    """

    def volumes(lesson: Lesson, params: Params) -> PerExample:
        return imagine(lesson, params, Literal(chosen=1.0), volume).volumes

    return volumes


def resolve(
    learner: Learner,
    situation: Situation,
    *,
    volume: str | None = None,
    optimizer: Optimizer | None = None,
) -> Learner:
    """Fill in β, its decay, M, the imagined volume and the optimiser.

    Raises:
        InputError: if M exceeds the mini-batch, or is less than the teacher shows.
    """
    own: AwareNumbers = learner.settings
    volume = volume or situation.volume
    optimizer = optimizer or situation.optimizer
    numbers = AwareNumbers(
        literal=own.literal,
        beta=_found_beta(own.beta, situation, volume),
        beta_decay=_decay_of(own, situation),
        view=_fitting_view(learner.name, own.view, situation),
    )
    schedule = None
    if callable(own.beta):
        schedule = own.beta
    make = None
    if optimizer is not None:
        make = optimizer.make
        numbers = numbers._replace(rate=optimizer.rate)
    return learner._replace(rule=rule(volume, schedule, make), settings=numbers)


def _decay_of(own: AwareNumbers, situation: Situation) -> float:
    """Return the share that β loses per step."""
    if own.beta_decay is not None:
        return own.beta_decay
    # The experiment's decay belongs to the experiment's β.
    if own.beta is None:
        return situation.beta_decay
    return 0.0


def _found_beta(beta: Any, situation: Situation, volume: str) -> Any:
    """Return β as a number, or as one per seed."""
    if beta is None:
        beta = situation.beta
    if isinstance(beta, str):
        return situation.auto_beta(imagined_volumes(volume))
    if callable(beta):
        # For the record only: the update calls the schedule itself.
        return float(beta(jnp.zeros((), int)))
    return beta


def _fitting_view(name: str, view: int | None, situation: Situation) -> int:
    """Return M; raise InputError unless it lies between what the teacher shows and the batch."""
    if view is None:
        view = situation.batch_size
    if view > situation.batch_size:
        raise InputError(
            f"method {name!r} sees {view} examples, but the batch size is "
            f"{situation.batch_size}: choose a larger batch or leave the method out"
        )
    if view < situation.choices:
        raise InputError(
            f"method {name!r} sees {view} examples, but the teacher shows {situation.choices}"
        )
    return view


def naive(name: str, label: str, literal: Literal) -> Learner:
    """Return a learner that takes only the literal step: β = 0."""
    settings = AwareNumbers(literal, beta=0.0, beta_decay=0.0, view=None)
    labels: tuple[str, ...] = ("all",)
    if literal == Literal(chosen=1.0):
        # A step on the chosen example alone reads one label, whatever labels the run allows.
        labels = ("all", "chosen")
    return Learner(name, label, rule("imitated"), settings, resolve, labels=labels)


def with_own(given: Any, learner: Learner, volume: str | None = None) -> Learner:
    """Return the two-step learner with an optimiser of its own, which is part of its name."""
    own = optimizer(given)
    learner = learner._replace(resolve=functools.partial(resolve, volume=volume, optimizer=own))
    if own is None:
        return learner
    return learner._replace(
        name=f"{learner.name}-{own.name}",
        label=f"{learner.label} {own.name}",
    )


def batch() -> Learner:
    """Steps along the mean gradient of the mini-batch and ignores the choice.

    Returns:
        The learner.
    """
    return naive("batch", "Batch", Literal(mean=1.0))


def sgd() -> Learner:
    """Steps on a random example of the mini-batch and ignores the choice.

    Returns:
        The learner.
    """
    return naive("sgd", "SGD", Literal(bystander=1.0))


def imt(*, optimizer: Any = None) -> Learner:
    """Steps on the chosen example: the naive learner of iterative machine teaching.

    Args:
        optimizer: an Optax optimiser of its own, such as ``optax.adam(1e-3)``, or its name; None
            for the run's.

    Returns:
        The learner.
    """
    return with_own(optimizer, naive("imt", "IMT", Literal(chosen=1.0)))


def teacher_aware(
    beta: float | str | Schedule | None = None,
    *,
    view: int | None = None,
    beta_decay: float | None = None,
    volume: str | None = None,
    optimizer: Any = None,
) -> Learner:
    """Steps on the chosen example, then makes the teacher's choice more likely (ITAL-M).

    Args:
        beta: how rational the learner thinks the teacher is: a number (negative for an adversary),
            a function of the step, "auto", or None for the task's.
        view: M, the number of examples of the mini-batch that the learner sees; None for all.
        beta_decay: the share ε that β loses per step, βₜ = β(1−ε)ᵗ; None for the task's if β is the
            task's, else 0.
        volume: the teaching volume that the learner imagines, "imitated" or "exact"; None for what
            fits the teacher.
        optimizer: an Optax optimiser of its own, such as ``optax.adam(1e-3)``, or its name; None
            for the run's.

    Returns:
        The learner.

    Raises:
        InputError: if an argument has a value that is not allowed.

    Example:
        >>> aware = ital.learners.teacher_aware(beta="auto", view=5)
        >>> ital.teach("regression", learner=[ital.learners.imt(), aware])
    """
    _check_beta(beta, beta_decay)
    if view is not None:
        require_whole(view=view)
        if view < 1:
            raise InputError(f"view must be at least 1 example, not {view}")
    if volume not in (None, "imitated", "exact"):
        raise InputError(f"volume must be 'imitated' or 'exact', not {volume!r}")
    name = "ital"
    label = "ITAL"
    if view is not None:
        name = f"ital-{view}"
        label = f"ITAL {view}"
    learner = Learner(
        name=name,
        label=label,
        rule=rule(volume or "imitated"),
        settings=AwareNumbers(Literal(chosen=1.0), beta, beta_decay, view),
        # Its literal step reads one label; the others only say what the teacher could have chosen.
        labels=("all", "chosen"),
    )
    return with_own(optimizer, learner, volume)


def _check_beta(beta: Any, beta_decay: Any) -> None:
    """Raise InputError for a rationality or a decay that is not allowed."""
    if isinstance(beta, str) and beta != "auto":
        raise InputError(f"beta must be a finite number or 'auto', not {beta!r}")
    if not (beta is None or isinstance(beta, str) or callable(beta) or is_finite(beta)):
        raise InputError(f"beta must be a finite number or 'auto', not {shown(beta)}")
    if beta_decay is not None and not (is_finite(beta_decay) and 0 <= beta_decay < 1):
        raise InputError(f"beta_decay must lie in [0, 1), not {shown(beta_decay)}")
