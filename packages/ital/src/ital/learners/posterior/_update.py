"""A learner that keeps a belief over its target: how the belief begins, and what a lesson adds.

For every rationality b that the teacher may have, the belief is a normal distribution around its
maximum ν̂_b. The parameters that the learner shows are the mean of the ν̂_b, weighted by the
evidence of each b (Laplace's approximation).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular

from ital.errors import InputError
from ital.gradients import HIGHEST
from ital.learners._base import Beginning, Rule, Update
from ital.learners.posterior import _evidence
from ital.learners.posterior._lesson import (
    first_unit,
    gradient_rows,
    into_window,
    sharpness_of,
    slot_of,
    weights_of_labels,
    without_slot,
)
from ital.learners.posterior._maximum import FIRST_DAMPING, search_minimum
from ital.learners.posterior._types import Belief, BeliefNumbers, Hypothesis, StepWindow, Structure
from ital.lessons import Lesson
from ital.likelihoods import Evaluation, Likelihood, Quadratic
from ital.tools.types import Array, Float, Params, Scalar

LARGEST = 400  # parameters: each b holds a few D × D matrices, and factorises them in every step
FIRST_NOISE = 0.1  # σ before any label was seen, in units of the labels
LEAST_NOISE = 1e-3  # the smallest σ, in units of the labels: sums of squares cancel in float32
# log of the prior of chance beside a known teacher: it counts only where rounding left that belief
# without a factor.
LAST_RESORT = -1e30

Unravel = Callable[[Array], Params]
# What a search keeps beside its minimum: the leaving part, and the choices of both.
Extra = tuple[Quadratic, Array, Array]


def rationalities(structure: Structure, settings: BeliefNumbers) -> Float[Array, " J"]:
    """Return the values of b in units of the inverse spread: chance, helpful ones, hostile ones.

    If the teacher is known, there are chance, from which noise is estimated, and the teacher's b.
    """
    chance = jnp.zeros(1)
    if not structure.aware:
        return chance
    sizes = jnp.stack([jnp.asarray(size, chance.dtype) for size in settings.grid])
    if structure.known:
        return jnp.concatenate([chance, sizes])
    return jnp.concatenate([chance, sizes, -sizes])


def log_prior(structure: Structure, settings: BeliefNumbers) -> Float[Array, " J"]:
    """Return the logarithm of the prior probability of each b."""
    if not structure.aware:
        return jnp.zeros(1)
    if structure.known:
        return jnp.array([LAST_RESORT, 0.0], jnp.result_type(float))
    others = 2 * structure.sizes
    chance = jnp.asarray(settings.chance, jnp.result_type(float))
    # The helpful and hostile values share what chance leaves.
    of_each = jnp.log1p(-chance) - jnp.log(others)
    of_chance = jnp.log(chance)[None]
    of_others = jnp.broadcast_to(of_each, (others,))
    return jnp.concatenate([of_chance, of_others])


def begin_belief(
    beginning: Beginning,
    settings: BeliefNumbers,
    *,
    structure: Structure,
) -> tuple[Params, Belief]:
    """Return the mean of the prior, and a belief that has seen nothing.

    Args:
        beginning: what the learner knows of the run.
        settings: the numbers of the belief.
        structure: what decides which program runs.

    Returns:
        The first parameters, and the memory.

    Raises:
        InputError: if the task has too many parameters, or does not describe its labels.
    """
    likelihood = beginning.likelihood
    start, unravel = ravel_pytree(beginning.params)
    size = len(start)
    _check_beginning(likelihood, size, structure)
    assert likelihood is not None
    mean = settings.from_start * start

    shapes = jax.eval_shape(likelihood.keep, beginning.examples)
    nothing_kept = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    counted: Any = ()
    if likelihood.statistics is not None:
        counted = likelihood.statistics.empty(beginning.params, nothing_kept)
    window: Any = ()
    if structure.aware or likelihood.statistics is None:
        window = _empty_window(structure, beginning, nothing_kept, size, mean.dtype)
    seen: Any = ()
    if beginning.rows is not None:
        seen = jnp.zeros(beginning.rows, bool)
    one = jnp.ones((), mean.dtype)
    zero = jnp.zeros((), mean.dtype)
    belief = Belief(
        mean=mean,
        hypotheses=_first_hypotheses(structure, settings, mean),
        counted=counted,
        window=window,
        seen=seen,
        unit=one,
        scale=one * settings.scale,
        sigma=one * settings.sigma,
        least_sigma=zero,
        bits=zero,
    )
    return unravel(mean), belief


def _first_hypotheses(
    structure: Structure,
    settings: BeliefNumbers,
    mean: Float[Array, " D"],
) -> Hypothesis:
    """Return the prior as the belief under every b, with a leading axis J."""
    size = len(mean)
    count = len(rationalities(structure, settings))
    zeros = functools.partial(jnp.zeros, dtype=mean.dtype)
    nothing = Quadratic(
        value=zeros(count),
        gradient=zeros((count, size)),
        curvature=zeros((count, size, size)),
    )
    precision_factor = jnp.eye(size, dtype=mean.dtype) / settings.scale
    return Hypothesis(
        maximum=jnp.broadcast_to(mean, (count, size)),
        damping=jnp.full(count, FIRST_DAMPING, mean.dtype),
        folded=nothing,
        folded_choices=zeros(count),
        factor=jnp.broadcast_to(precision_factor, (count, size, size)),
        sharpness=zeros((count, structure.window)),
    )


def _check_beginning(likelihood: Likelihood | None, size: int, structure: Structure) -> None:
    """Raise InputError for a task on which the learner cannot keep a belief."""
    if likelihood is None:
        raise InputError(
            "a learner that keeps a belief needs the likelihood of labels, which this task does "
            "not offer: leave out the methods posterior and ital-posterior"
        )
    if size > LARGEST:
        raise InputError(
            f"a learner that keeps a belief holds matrices of all pairs of parameters, for at most "
            f"{LARGEST} of them; this task has {size}: leave out the methods posterior and "
            "ital-posterior"
        )
    estimates_sigma = structure.estimates_sigma and likelihood.gaussian
    if estimates_sigma and likelihood.statistics is None:
        raise InputError(
            "this task has no sufficient statistics from which to estimate the noise of labels: "
            "give it as posterior:sigma=NUMBER"
        )
    if structure.mixture and not likelihood.mixes:
        raise InputError(
            "wrong=SHARE needs to know what wrong labels look like, which is so for classes and "
            "demonstrations: leave wrong out on this task"
        )


def _empty_window(
    structure: Structure,
    beginning: Beginning,
    nothing_kept: Any,
    size: int,
    dtype: Any,
) -> StepWindow:
    """Return a window without steps."""
    steps = structure.window
    batch_size = beginning.batch_size
    zeros = functools.partial(jnp.zeros, dtype=dtype)

    def ring_of(leaf: Array) -> Array:
        return jnp.zeros((steps, *leaf.shape), leaf.dtype)

    directions: Any = ()
    if structure.aware and structure.exact:
        directions = zeros((steps, batch_size, size))
    return StepWindow(
        kept=jax.tree.map(ring_of, nothing_kept),
        label_weights=zeros((steps, batch_size)),
        known=zeros((steps, batch_size)),
        directions=directions,
        chosen=jnp.zeros((steps, beginning.choices), int),
        present=zeros(steps),
    )


class Found(NamedTuple):
    """The belief under every b after a search, with a leading axis J.

    Attributes:
        hypotheses: the hypotheses, with their new maxima.
        here: −log of the belief at each maximum.
        leaving: the part of it that leaves the window after this step.
        choices: −log q of all choices in the window.
        leaving_choices: −log q of the choices that leave the window.
    """

    hypotheses: Hypothesis
    here: Quadratic
    leaving: Quadratic
    choices: Array
    leaving_choices: Array


def update_belief(
    lesson: Lesson,
    settings: BeliefNumbers,
    params: Params,
    memory: Belief,
    *,
    structure: Structure,
) -> Update:
    """Take the labels and the choice into the belief, and show its mean.

    Args:
        lesson: what the learner sees of the step.
        settings: the numbers of the belief.
        params: the parameters that the learner showed.
        memory: the belief before the step.
        structure: what decides which program runs.

    Returns:
        The mean of the belief, the belief, and what it infers about the teacher.
    """
    assert lesson.likelihood is not None
    flat, unravel = ravel_pytree(params)
    belief = _with_lesson(lesson, settings, flat, memory, structure)
    search = functools.partial(_search, lesson, settings, belief, structure, unravel)
    found = jax.lax.map(search, belief.hypotheses)

    # The evidence of each b by Laplace's approximation, up to a constant.
    factors = jnp.linalg.cholesky(found.here.curvature)  # (J, D, D)
    diagonals = jnp.diagonal(factors, axis1=1, axis2=2)
    half_log_determinants = jnp.sum(jnp.log(diagonals), axis=1)
    log_evidence = -found.here.value - half_log_determinants
    # A curvature that rounding left indefinite has no factor: its b has no weight in this step.
    is_finite = jnp.isfinite(log_evidence)
    log_weights = log_prior(structure, settings) + log_evidence
    weights = jax.nn.softmax(jnp.where(is_finite, log_weights, -jnp.inf))
    shown = jnp.matmul(weights, found.hypotheses.maximum, precision=HIGHEST)

    factors = jnp.where(is_finite[:, None, None], factors, belief.hypotheses.factor)
    told = _told_by_choices(found, log_evidence)
    bits = _weighted_mean(weights, told) / jnp.log(2.0)
    signals: dict[str, Array] = {"entropy": _entropy(weights, factors)}
    if structure.aware:
        signals["bits"] = bits - belief.bits
        if not structure.known:
            signals |= _weights_of_teachers(structure, weights)
    # The first b is 0: there the labels alone decide.
    of_labels = factors[0]
    belief = _estimate_noise(structure, settings, lesson, unravel, belief, found, of_labels)
    hypotheses = found.hypotheses._replace(factor=factors)
    belief = belief._replace(hypotheses=hypotheses, bits=bits)
    params = unravel(shown)
    return Update(params, _fold(structure, lesson, belief, found), signals)


def _with_lesson(
    lesson: Lesson,
    settings: BeliefNumbers,
    shown: Float[Array, " D"],
    belief: Belief,
    structure: Structure,
) -> Belief:
    """Return the belief with the step's labels and choice in its memory, before any search."""
    likelihood = lesson.likelihood
    assert likelihood is not None
    is_first = lesson.step == 0
    weights, seen = weights_of_labels(lesson, settings, belief.seen)
    belief = belief._replace(seen=seen)
    if likelihood.statistics is not None:
        kept = likelihood.keep(lesson.examples)
        counted = likelihood.statistics.add(belief.counted, kept, weights)
        belief = belief._replace(counted=counted)
        if structure.estimates_sigma and likelihood.gaussian:
            belief = _with_first_noise(belief, kept.labels, is_first)
    if belief.window == ():
        return belief
    if not structure.aware:
        window = into_window(structure, belief.window, lesson, weights, shown, None)
        return belief._replace(window=window)
    rows = gradient_rows(lesson)
    unit = belief.unit
    if not structure.known:
        unit = jnp.where(is_first, first_unit(lesson, shown, belief, rows), unit)
    of_each_b = jax.vmap(functools.partial(sharpness_of, lesson, settings, rows))
    hypotheses = belief.hypotheses
    in_units = unit * rationalities(structure, settings)
    sharpness = of_each_b(in_units, hypotheses.factor)  # (J,)
    slot = lesson.step % structure.window
    in_ring = hypotheses.sharpness.at[:, slot].set(sharpness)
    window = into_window(structure, belief.window, lesson, weights, shown, rows)
    return belief._replace(
        unit=unit,
        window=window,
        hypotheses=hypotheses._replace(sharpness=in_ring),
    )


def _with_first_noise(belief: Belief, labels: Array, is_first: Array | bool) -> Belief:
    """Return the belief with a first guess at σ, and its least value, after the first step."""
    # The first labels give the unit of both.
    size = jnp.sqrt(jnp.mean(labels**2))
    size = jnp.where(size > 0, size, 1.0)
    return belief._replace(
        sigma=jnp.where(is_first, FIRST_NOISE * size, belief.sigma),
        least_sigma=jnp.where(is_first, LEAST_NOISE * size, belief.least_sigma),
    )


class _Evidence(NamedTuple):
    """Everything that speaks for or against a target under one b.

    Attributes:
        lesson: what the learner sees of the step.
        likelihood: the likelihood of the task's labels.
        settings: the numbers of the belief.
        structure: what decides which program runs.
        unravel: turns parameters (D,) into those of the task.
        belief: the belief with this step in its memory.
        hypothesis: the belief under this b, around its last maximum.
        precision: 1/σ² of the labels; 1 where the loss has no noise.
        leaving_slot: the slot of the step that leaves the window next.
    """

    lesson: Lesson
    likelihood: Likelihood
    settings: BeliefNumbers
    structure: Structure
    unravel: Unravel
    belief: Belief
    hypothesis: Hypothesis
    precision: Scalar
    leaving_slot: Array

    def around(self, params: Float[Array, " D"]) -> tuple[Quadratic, Extra]:
        """Return −log of the belief at a target, and the shares of it that :class:`Found` names."""
        belief = self.belief
        at = self.likelihood.at(self.unravel(params), self.lesson.examples)
        prior = _evidence.prior(params, belief.mean, belief.scale)
        folded = _evidence.moved(self.hypothesis.folded, params - self.hypothesis.maximum)
        parts = [prior, folded]
        leaving = [jax.tree.map(jnp.zeros_like, prior)]
        if at.counted is not None:
            counted = at.counted(belief.counted, self.settings.wrong)
            parts.append(_evidence.scaled(self.precision, counted))
        else:
            parts.append(self._labels_in(belief.window, at))
            slot = slot_of(belief.window, self.leaving_slot)
            leaving.append(self._labels_in(slot, at))
        zero = jnp.zeros((), params.dtype)
        choices = zero
        leaving_choices = zero
        if self.structure.aware:
            in_window, in_slot = self._choices(params, at)
            parts.append(in_window)
            leaving.append(_evidence.bounded(in_slot))
            choices = zero + in_window.value
            leaving_choices = zero + in_slot.value
        here = _evidence.total(parts)
        return here, (_evidence.total(leaving), choices, leaving_choices)

    def _labels_in(self, window: StepWindow, at: Evaluation) -> Quadratic:
        """Return −log p of the labels in the window, or in one slot of it."""
        wrong = None
        if self.structure.mixture:
            wrong = self.settings.wrong
        labels = _evidence.windowed_labels(at, window, wrong)
        return _evidence.scaled(self.precision, labels)

    def _choices(
        self,
        params: Float[Array, " D"],
        at: Evaluation,
    ) -> tuple[Quadratic, Quadratic]:
        """Return −log q of the choices in the window, and of those in the leaving slot."""
        window = self.belief.window
        if self.structure.exact:
            gradients = window.directions  # (W, B, D)
            progress = jnp.matmul(gradients, params, precision=HIGHEST)
        else:
            shape = window.known.shape  # (W, B)
            kept = _evidence.as_rows(window.kept)
            gradients = at.gradients(kept).reshape(*shape, -1)
            progress = at.losses(kept).reshape(shape)
        read = (progress, gradients, window, self.hypothesis.sharpness)
        in_window = self._read(*read)
        in_slot = self._read(*slot_of(read, self.leaving_slot))
        return in_window, in_slot

    def _read(
        self,
        progress: Float[Array, "W B"],
        gradients: Float[Array, "W B D"],
        window: StepWindow,
        sharpness: Float[Array, " W"],
    ) -> Quadratic:
        """Return −log q of the choices of some steps."""
        return _evidence.windowed_choices(
            progress,
            gradients,
            window,
            sharpness,
            lapse=self.settings.lapse,
            lr=self.lesson.lr,
        )


def _search(
    lesson: Lesson,
    settings: BeliefNumbers,
    belief: Belief,
    structure: Structure,
    unravel: Unravel,
    hypothesis: Hypothesis,
) -> Found:
    """Search for the maximum of the belief under one b, from its last one."""
    likelihood = lesson.likelihood
    assert likelihood is not None
    if likelihood.gaussian:
        precision = 1 / belief.sigma**2
    else:
        precision = jnp.ones((), hypothesis.maximum.dtype)
    evidence = _Evidence(
        lesson=lesson,
        likelihood=likelihood,
        settings=settings,
        structure=structure,
        unravel=unravel,
        belief=belief,
        hypothesis=hypothesis,
        precision=precision,
        leaving_slot=(lesson.step + 1) % structure.window,
    )
    minimum = search_minimum(
        evidence.around,
        start=hypothesis.maximum,
        damping=hypothesis.damping,
        iterations=structure.iterations,
    )
    way = minimum.params - hypothesis.maximum
    found = hypothesis._replace(
        maximum=minimum.params,
        damping=minimum.damping,
        folded=_evidence.moved(hypothesis.folded, way),
    )
    return Found(found, minimum.here, *minimum.extra)


def _fold(structure: Structure, lesson: Lesson, belief: Belief, found: Found) -> Belief:
    """Replace the oldest step of a full window by its quadratic around each maximum."""
    if belief.window == ():
        return belief
    hypotheses = belief.hypotheses
    hypotheses = hypotheses._replace(
        folded=_evidence.total([hypotheses.folded, found.leaving]),
        folded_choices=hypotheses.folded_choices + found.leaving_choices,
    )
    slot = (lesson.step + 1) % structure.window
    return belief._replace(hypotheses=hypotheses, window=without_slot(belief.window, slot))


def _estimate_noise(
    structure: Structure,
    settings: BeliefNumbers,
    lesson: Lesson,
    unravel: Unravel,
    belief: Belief,
    found: Found,
    factor: Float[Array, "D D"],
) -> Belief:
    """Return the belief with s and σ after one step of MacKay's fixed point.

    Both follow from the labels alone (b = 0), so that choices never change them. Each has the
    weight of one number that was seen beforehand, or few labels would move them too far.
    """
    likelihood = lesson.likelihood
    assert likelihood is not None
    estimates_sigma = structure.estimates_sigma and likelihood.gaussian
    if not (structure.estimates_scale or estimates_sigma):
        return belief
    maximum = found.hypotheses.maximum[0]
    size = len(maximum)
    identity = jnp.eye(size, dtype=factor.dtype)
    inverse = solve_triangular(factor, identity, lower=True)
    # The number of parameters that the labels determine, D − trace(H⁻¹)/s².
    trace = jnp.sum(inverse**2)
    determined = jnp.clip(size - trace / belief.scale**2, 0.0, size)
    if structure.estimates_scale:
        away = jnp.sum((maximum - belief.mean) ** 2)
        scale = jnp.sqrt((settings.scale**2 + away) / (1 + determined))
        belief = belief._replace(scale=scale.astype(maximum.dtype))
    if estimates_sigma:
        assert likelihood.statistics is not None
        numbers = likelihood.statistics.numbers(belief.counted)
        at = likelihood.at(unravel(maximum), lesson.examples)
        assert at.counted is not None
        labels = at.counted(belief.counted, settings.wrong)
        squares = 2 * labels.value
        free = jnp.maximum(numbers - determined, 0.0)
        sigma = jnp.sqrt((belief.sigma**2 + squares) / (1 + free))
        belief = belief._replace(sigma=jnp.maximum(sigma, belief.least_sigma))
    return belief


def _told_by_choices(found: Found, log_evidence: Float[Array, " J"]) -> Float[Array, " J"]:
    """Return what the choices told about the target under each b, in nats.

    It is −log p(choices | labels), the surprise before the target was known, less the surprise that
    is left when it is: the mutual information of choices and target.
    """
    surprise = found.hypotheses.folded_choices + found.choices
    log_evidence_of_labels = log_evidence[0] + surprise[0]
    return log_evidence_of_labels - log_evidence - surprise


def _weighted_mean(weights: Float[Array, " J"], values: Float[Array, " J"]) -> Array:
    """Return Σ wⱼxⱼ, where values without weight need not be finite."""
    return jnp.sum(jnp.where(weights > 0, weights * values, 0.0))


def _entropy(weights: Float[Array, " J"], factors: Float[Array, "J D D"]) -> Array:
    """Return the entropy of the belief in nats: the mean of the entropies of its normal parts."""
    diagonals = jnp.diagonal(factors, axis1=1, axis2=2)
    constant = 0.5 * diagonals.shape[1] * jnp.log(2 * jnp.pi * jnp.e)
    half_log_determinants = jnp.sum(jnp.log(diagonals), axis=1)
    return _weighted_mean(weights, constant - half_log_determinants)


def _weights_of_teachers(structure: Structure, weights: Float[Array, " J"]) -> dict[str, Array]:
    """Return the probability of each b, and ``trust``: that of helping less that of harming."""
    helpful = weights[1 : 1 + structure.sizes]
    hostile = weights[1 + structure.sizes :]
    signals = {
        "trust": jnp.sum(helpful) - jnp.sum(hostile),
        "weight_chance": weights[0],
    }
    for number in range(1, structure.sizes + 1):
        signals[f"weight_helps_{number}"] = helpful[number - 1]
        signals[f"weight_harms_{number}"] = hostile[number - 1]
    return signals


@functools.cache  # one object per structure: learners that share it are lanes of one program
def belief_rule(structure: Structure) -> Rule:
    """Return the rule of a learner that keeps a belief.

    Args:
        structure: what decides which program runs.

    Returns:
        The rule; the same object for the same structure.
    """
    return Rule(
        init=_no_memory,
        update=functools.partial(update_belief, structure=structure),
        begin=functools.partial(begin_belief, structure=structure),
    )


def _no_memory(params: Params, settings: Any) -> Any:
    """Raise InputError: the memory needs more than ``init`` is told."""
    raise InputError("a learner that keeps a belief begins with Rule.begin, not with Rule.init")
