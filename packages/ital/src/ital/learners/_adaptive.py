"""A learner that finds out what kind of teacher it has: it is given neither size nor sign of β.

Before each update it scores the mini-batch by what it knows, without using the choice, and ranks
the chosen example by these scores. A helpful teacher chooses examples of high rank, an adversary of
low rank, and an indifferent one of any rank. Three hypotheses are weighted by how well they
predicted the ranks so far, in a mixture updated online; ranks lie between −1 (lowest) and 1
(highest):

    it helps            p(rank) ∝ exp( κ·rank),  κ ∈ {0, 1, 2, 4, 8}, unknown and changing
    it harms            p(rank) ∝ exp(−κ·rank),  the same
    it is indifferent   all ranks alike

κ = 0 under the first two means that the scores say nothing at the moment: a teacher that was
helpful keeps its credit for a while when its choices cannot be predicted. The learner uses the
share ``trust`` of |β|: P(helps) − P(harms), reduced by a threshold.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import volume as teaching_volume
from ital.errors import InputError
from ital.learners._base import Learner, Rule, Situation, Update
from ital.learners._two_step import (
    Literal,
    awareness_step,
    imagine,
    imagined_choice,
    imagined_volumes,
    in_view,
)
from ital.lessons import Lesson
from ital.rationality import LINEAR
from ital.steps import within_reach
from ital.tools.types import Array, Bool, Float, Params, PerExample, Scalar

# The values of κ, the tilt of the ranks.
TILTS = (0.0, 1.0, 2.0, 4.0, 8.0)
# Number of scores: see :func:`scores`.
SCORES = 2
# Steps over which the spread of the imagined volumes is averaged.
WINDOW = 20


class AdaptiveNumbers(NamedTuple):
    """Numbers of the adaptive learner.

    Attributes:
        beta: |β| by the ``auto`` rule at the start.
        tilt_change: share of the beliefs about κ forgotten per step.
        mind_change: share of the beliefs about the teacher forgotten per step.
        threshold: the threshold of trust.
        most_awareness: the largest 2βη.
        view: M, the number of examples in view; None means the whole mini-batch.
    """

    beta: Any
    tilt_change: Any
    mind_change: Any
    threshold: Any
    most_awareness: Any = LINEAR
    view: Any = None


class Memory(NamedTuple):
    """What the learner believes about its teacher.

    Attributes:
        partial: weights of "helps" and "harms" (2, score, κ).
        indifferent: the weight of "is indifferent"; all weights sum to 1.
        first_spread: the spread of the imagined volumes in the first steps.
        spread: their spread now.
    """

    partial: Float[Array, "2 S T"]
    indifferent: Scalar
    first_spread: Scalar
    spread: Scalar


def scores(lesson: Lesson, seen: Bool[Array, " B"] | None = None) -> Float[Array, "S B"]:
    """Return two predictions of the teaching volumes that use neither target nor choice (S, B).

    The first is the volume of a target without any loss, −η²‖gᵢ‖² + 2ηlᵢ. The second is
    ⟨gᵢ, mean gradient⟩, which is robust to losses that no target can avoid (noisy labels, random
    actions).
    """
    here = lesson.here
    if seen is None:
        count = here.losses.shape[0]
        weights = jnp.full_like(here.losses, 1 / count)
    else:
        weights = seen / jnp.sum(seen, dtype=here.losses.dtype)
    mean_gradient = here.weighted_sum(weights)
    without_loss = teaching_volume.exact(lesson.lr, here.squared_norms, here.losses)
    along_mean = here.inner(mean_gradient)
    return jnp.stack([without_loss, along_mean])


def rank_of(
    scores: PerExample,
    chosen: Array,
    seen: Bool[Array, " B"] | None = None,
) -> Array:
    """Return the rank of each chosen example by score, from −1 to 1; ties share a middle rank."""
    score = scores[chosen][..., None]
    lower = jnp.sum(scores < score, axis=-1, where=seen)
    higher = jnp.sum(scores > score, axis=-1, where=seen)
    if seen is None:
        count = scores.shape[0]
        return (lower - higher) / max(count - 1, 1)
    count_seen = jnp.sum(seen)
    return (lower - higher) / jnp.maximum(count_seen - 1, 1)


def tilted(
    rank: Scalar,
    count: int,
    seen: Bool[Array, " B"] | None = None,
) -> Float[Array, " T"]:
    """Return p(rank) ∝ exp(κ·rank) for every κ (T,), relative to the uniform distribution.

    Args:
        rank: the rank of the choice.
        count: examples in the mini-batch.
        seen: which of them are in view and have a rank (B,); None for all.
    """
    tilts = jnp.asarray(TILTS)
    if seen is None:
        ranks = jnp.linspace(-1, 1, count)
    else:
        # The n-th example in view has the n-th rank. Values elsewhere are left out of the mean.
        others = jnp.maximum(jnp.sum(seen) - 1, 1)
        in_view_before = jnp.cumsum(seen) - 1
        ranks = jnp.where(seen, 2 * in_view_before / others - 1, 0.0)
    # (T, count): the normalising constant of each κ is a mean over the ranks.
    of_all_ranks = jnp.exp(tilts[:, None] * ranks)
    of_rank = jnp.exp(tilts * rank)
    return of_rank / jnp.mean(of_all_ranks, axis=1, where=seen)


def first_weights() -> tuple[Array, Array]:
    """Return the initial weights: a third per hypothesis, divided equally over scores and κ."""
    parts = SCORES * len(TILTS)
    partial = jnp.full((2, SCORES, len(TILTS)), 1 / (3 * parts))
    indifferent = jnp.asarray(1 / 3)
    return partial, indifferent


def weigh(
    memory: Memory,
    ranks: Float[Array, " S"],
    count: int,
    settings: AdaptiveNumbers,
    seen: Bool[Array, " B"] | None = None,
) -> tuple[Array, Array]:
    """Return the weights after one more choice.

    Before it, κ and (rarely) the kind of teacher may have changed; then follows Bayes' rule.
    """
    prior, prior_indifferent = first_weights()
    # Within a hypothesis, κ and the score drift back to the prior; its total weight stays.
    total = jnp.sum(memory.partial, axis=(1, 2), keepdims=True)
    unopinionated = total * 3 * prior
    partial = memory.partial + settings.tilt_change * (unopinionated - memory.partial)
    # The hypotheses themselves drift back to a third each.
    partial = partial + settings.mind_change * (prior - partial)
    drift = prior_indifferent - memory.indifferent
    indifferent = memory.indifferent + settings.mind_change * drift

    # Likelihoods are relative to the uniform distribution: that of "indifferent" is 1.
    likelihood = jax.vmap(functools.partial(tilted, count=count, seen=seen))
    if_it_helps = likelihood(ranks)  # (S, T)
    if_it_harms = likelihood(-ranks)
    partial = partial * jnp.stack([if_it_helps, if_it_harms])
    evidence = jnp.sum(partial) + indifferent
    return partial / evidence, indifferent / evidence


def trust_of(partial: Float[Array, "2 S T"], threshold: Scalar) -> Float[Array, ""]:
    """Return P(helps) − P(harms), reduced by the threshold (0 below it) and scaled to [−1, 1]."""
    helps, harms = jnp.sum(partial, axis=(1, 2))
    difference = jnp.abs(helps - harms)
    beyond = jnp.maximum(difference - threshold, 0.0)
    return jnp.sign(helps - harms) * beyond / (1 - threshold)


def begin_without_opinion(params: Params, settings: AdaptiveNumbers) -> Memory:
    """Begin without an opinion about the teacher."""
    partial, indifferent = first_weights()
    return Memory(
        partial,
        indifferent,
        first_spread=jnp.zeros(()),
        spread=jnp.zeros(()),
    )


def update_adaptively(
    lesson: Lesson,
    settings: AdaptiveNumbers,
    params: Params,
    memory: Memory,
    *,
    volume: str,
) -> Update:
    """Take ITAL's step with β = trust·|β|, limited to a safe length.

    |β| follows the spread of the imagined volumes, so that q stays as sharp as the ``auto`` rule
    made it at the start, within the rule's own cap.
    """
    count = lesson.order.shape[0]
    seen = None
    if settings.view is not None:
        seen = in_view(lesson, settings.view)

    def rank_by(score: PerExample) -> Array:
        return rank_of(score, lesson.chosen, seen)

    # Trust: how the ranks of this choice speak for each hypothesis.
    ranks = jax.vmap(rank_by)(scores(lesson, seen))
    if lesson.chosen.ndim:
        # With several choices, their mean rank counts.
        ranks = jnp.mean(ranks, axis=-1)
    partial, indifferent = weigh(memory, ranks, count, settings, seen)
    trust = trust_of(partial, settings.threshold)

    # β: the more the volumes agree by now, the sharper the learner must read them.
    imagined = imagine(lesson, params, Literal(chosen=1.0), volume)
    first, spread = _spreads(lesson, memory, jnp.std(imagined.volumes, where=seen))
    # The divisor keeps 0/0 out of the branch that is not taken.
    divisor = jnp.where(spread > 0, spread, 1.0)
    sharper = jnp.where(spread > 0, first / divisor, 1.0)
    most = settings.most_awareness / (2 * lesson.lr)
    beta = trust * jnp.minimum(settings.beta * sharper, most)

    # ITAL's two steps, as in Algorithm 1.
    all_or_seen = seen
    if all_or_seen is None:
        all_or_seen = jnp.ones(count, bool)
    q = imagined_choice(beta, imagined.volumes, all_or_seen, lesson.chosen)
    proposed = awareness_step(
        beta,
        lesson.lr,
        lesson.chosen,
        q,
        guess=imagined.naive,
        there=imagined.gradients,
    )
    after = within_reach(lesson, (), params, proposed)
    memory = Memory(partial, indifferent, first, spread)
    return Update(after, memory, {"trust": trust})


def _spreads(lesson: Lesson, memory: Memory, spread_now: Array) -> tuple[Array, Array]:
    """Return the spread of the volumes in the first steps, and its running mean."""
    # The share of this step begins at 1 and ends at 1/WINDOW.
    share = 1 / jnp.minimum(lesson.step + 1, WINDOW)
    spread = memory.spread + share * (spread_now - memory.spread)
    first = jnp.where(lesson.step < WINDOW, spread, memory.first_spread)
    return first, spread


@functools.cache
def adaptive_rule(volume: str) -> Rule:
    """Return the rule for a learner that imagines the ``imitated`` or the ``exact`` volume."""
    return Rule(
        init=begin_without_opinion,
        update=functools.partial(update_adaptively, volume=volume),
    )


def resolve_adaptive(learner: Learner, situation: Situation) -> Learner:
    """Find |β| by the ``auto`` rule as if the teacher helped, since the sign is not known."""
    helpful = 1.0
    beta = situation.auto_beta(imagined_volumes(situation.volume), helpful)
    settings = learner.settings._replace(beta=beta, most_awareness=situation.most_awareness)
    return learner._replace(rule=adaptive_rule(situation.volume), settings=settings)


def adaptive(
    *,
    tilt_change: float = 0.02,
    mind_change: float = 0.001,
    threshold: float = 0.5,
) -> Learner:
    """Finds out whether the teacher helps or harms, and how much to trust it (ITAL adaptive).

    It needs no β.

    Args:
        tilt_change: share of the beliefs about κ that is forgotten per step.
        mind_change: share of the beliefs about the teacher that is forgotten per step.
        threshold: the learner ignores the teacher unless ``|P(helps) − P(harms)|`` exceeds it.

    Returns:
        The learner.

    Raises:
        InputError: if a number does not lie in [0, 1).
    """
    settings = AdaptiveNumbers(
        beta=None,
        tilt_change=tilt_change,
        mind_change=mind_change,
        threshold=threshold,
    )
    for name in ("tilt_change", "mind_change", "threshold"):
        value = getattr(settings, name)
        if not (math.isfinite(value) and 0 <= value < 1):
            raise InputError(f"{name} must lie in [0, 1), not {value!r}")
    return Learner(
        "ital-adaptive",
        "ITAL adaptive",
        adaptive_rule("imitated"),
        settings,
        resolve_adaptive,
        version=2,
    )
