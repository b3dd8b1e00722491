"""A learner that finds out what kind of teacher it has: neither the size nor the sign of β is given.

Before each update it scores the mini-batch by what it knows, without using the choice, and ranks the chosen example by
these scores. A helpful teacher chooses examples of high rank, an adversary of low rank, and an indifferent one of any
rank. Three hypotheses are weighted by how well they predicted the ranks (places) so far, in a mixture updated online:

    it helps            p(place) ∝ exp( κ·place),  κ ∈ {0, 1, 2, 4, 8}, unknown and changing
    it harms            p(place) ∝ exp(−κ·place),  the same
    it is indifferent   all places alike

κ = 0 under the first two means that the scores say nothing at the moment: a teacher that was helpful keeps its credit
for a while when its choices cannot be predicted. The learner uses the share ``trust`` of |β|: P(helps) − P(harms),
reduced by a threshold.
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

TILTS = (0.0, 1.0, 2.0, 4.0, 8.0)
SCORES = 2
WINDOW = 20  # steps over which the spread of the imagined volumes is averaged


class AdaptiveNumbers(NamedTuple):
    """``beta``: |β| by the ``auto`` rule at the start; how fast κ and the teacher may change; the threshold of trust;
    the largest 2βη. ``view`` None means the whole mini-batch.
    """

    beta: Any
    tilt_change: Any
    mind_change: Any
    threshold: Any
    most_awareness: Any = LINEAR
    view: Any = None


class Memory(NamedTuple):
    """Weights of "helps" and "harms" (2, score, κ) and of "indifferent"; the spread of the volumes at first and now."""

    partial: Float[Array, "2 S T"]
    indifferent: Scalar
    first_spread: Scalar
    spread: Scalar


def scores(lesson: Lesson, seen: Bool[Array, " B"] | None = None) -> Float[Array, "S B"]:
    """Two predictions of the teaching volumes that use neither target nor choice.

    The first is the volume of a target without any loss, −η²‖gᵢ‖² + 2ηlᵢ. The second is ⟨gᵢ, mean gradient⟩, which is
    robust to losses that no target can avoid (noisy labels, random actions).
    """
    here = lesson.here
    if seen is None:
        weights = jnp.full_like(here.losses, 1 / here.losses.shape[0])
    else:
        weights = seen / jnp.sum(seen, dtype=here.losses.dtype)
    mean = here.weighted_sum(weights)
    return jnp.stack(
        [teaching_volume.exact(lesson.lr, here.squared_norms, here.losses), here.inner(mean)]
    )


def place(scores: PerExample, chosen: Array, seen: Bool[Array, " B"] | None = None) -> Array:
    """The rank of each chosen example by score, from −1 (lowest) to 1 (highest); ties share their middle rank."""
    score = scores[chosen][..., None]
    lower = jnp.sum(scores < score, axis=-1, where=seen)
    higher = jnp.sum(scores > score, axis=-1, where=seen)
    if seen is None:
        return (lower - higher) / max(scores.shape[0] - 1, 1)
    return (lower - higher) / jnp.maximum(jnp.sum(seen) - 1, 1)


def tilted(
    chosen_place: Scalar, count: int, seen: Bool[Array, " B"] | None = None
) -> Float[Array, " T"]:
    """p(place) ∝ exp(κ·place) for every κ, relative to the uniform distribution over ``count`` places.

    Of ``count`` examples those that are ``seen`` have a place.
    """
    tilts = jnp.asarray(TILTS)
    if seen is None:
        places = jnp.linspace(-1, 1, count)
    else:
        # The n-th of them has the n-th place. Values elsewhere are left out of the mean.
        others = jnp.maximum(jnp.sum(seen) - 1, 1)
        places = jnp.where(seen, 2 * (jnp.cumsum(seen) - 1) / others - 1, 0.0)
    return jnp.exp(tilts * chosen_place) / jnp.mean(
        jnp.exp(tilts[:, None] * places), axis=1, where=seen
    )


def first_weights() -> tuple[Array, Array]:
    """Initial weights: a third for each hypothesis, divided equally over scores and κ."""
    return jnp.full((2, SCORES, len(TILTS)), 1 / (3 * SCORES * len(TILTS))), jnp.asarray(1 / 3)


def weigh(
    memory: Memory,
    places: Float[Array, " S"],
    count: int,
    settings: AdaptiveNumbers,
    seen: Bool[Array, " B"] | None = None,
) -> tuple[Array, Array]:
    """The weights after one more choice: κ and (rarely) the kind of teacher may have changed, then Bayes' rule."""
    prior, prior_indifferent = first_weights()
    total = jnp.sum(memory.partial, axis=(1, 2), keepdims=True)
    partial = memory.partial + settings.tilt_change * (total * 3 * prior - memory.partial)
    partial = partial + settings.mind_change * (prior - partial)
    indifferent = memory.indifferent + settings.mind_change * (
        prior_indifferent - memory.indifferent
    )
    likelihood = jax.vmap(functools.partial(tilted, count=count, seen=seen))
    partial = partial * jnp.stack([likelihood(places), likelihood(-places)])
    total = jnp.sum(partial) + indifferent
    return partial / total, indifferent / total


def trust_of(partial: Float[Array, "2 S T"], threshold: Scalar) -> Float[Array, ""]:
    """P(helps) − P(harms), reduced by the threshold (0 below it) and scaled to lie from −1 to 1."""
    helps, harms = jnp.sum(partial, axis=(1, 2))
    return (
        jnp.sign(helps - harms)
        * jnp.maximum(jnp.abs(helps - harms) - threshold, 0.0)
        / (1 - threshold)
    )


def init(params: Params, settings: AdaptiveNumbers) -> Memory:
    """No opinion."""
    return Memory(*first_weights(), jnp.zeros(()), jnp.zeros(()))


def update(
    lesson: Lesson, settings: AdaptiveNumbers, params: Params, memory: Memory, *, volume: str
) -> Update:
    """Take ITAL's step with β = trust·|β|, limited to a safe length.

    |β| follows the spread of the imagined volumes, so that q stays as sharp as the ``auto`` rule made it at the
    start, within the rule's own cap.
    """
    count = lesson.order.shape[0]
    seen = None if settings.view is None else in_view(lesson, settings.view)
    places = jax.vmap(lambda row: place(row, lesson.chosen, seen))(scores(lesson, seen))
    places = places if lesson.chosen.ndim == 0 else jnp.mean(places, axis=-1)
    partial, indifferent = weigh(memory, places, count, settings, seen)
    trust = trust_of(partial, settings.threshold)

    imagined = imagine(lesson, params, Literal(chosen=1.0), volume)
    share = 1 / jnp.minimum(lesson.step + 1, WINDOW)
    spread = memory.spread + share * (jnp.std(imagined.volumes, where=seen) - memory.spread)
    first = jnp.where(lesson.step < WINDOW, spread, memory.first_spread)
    sharper = jnp.where(spread > 0, first / jnp.where(spread > 0, spread, 1.0), 1.0)
    beta = trust * jnp.minimum(settings.beta * sharper, settings.most_awareness / (2 * lesson.lr))

    all_or_seen = jnp.ones(count, bool) if seen is None else seen
    q = imagined_choice(beta, imagined.volumes, all_or_seen, lesson.chosen)
    proposed = awareness_step(beta, lesson.lr, lesson.chosen, q, imagined.naive, imagined.gradients)
    after = within_reach(lesson, (), params, proposed)
    return Update(after, Memory(partial, indifferent, first, spread), {"trust": trust})


@functools.cache
def rule(volume: str) -> Rule:
    """The rule for a learner that imagines the ``imitated`` or the ``exact`` volume."""
    return Rule(init=init, update=functools.partial(update, volume=volume))


def resolve(learner: Learner, situation: Situation) -> Learner:
    """Find |β| by the ``auto`` rule as if the teacher helped, since the sign is not known."""
    beta = situation.auto_beta(imagined_volumes(situation.volume), 1.0)
    settings = learner.settings._replace(beta=beta, most_awareness=situation.most_awareness)
    return learner._replace(rule=rule(situation.volume), settings=settings)


def adaptive(
    *, tilt_change: float = 0.02, mind_change: float = 0.001, threshold: float = 0.5
) -> Learner:
    """Finds out whether the teacher helps or harms and how much to trust it; needs no β (ITAL adaptive).

    Args:
        tilt_change: share of the beliefs about κ forget per step.
        mind_change: share of the beliefs about the teacher forget per step.
        threshold: the learner ignores the teacher unless ``|P(helps) − P(harms)|`` exceeds this number.

    Returns:
        The learner.

    Raises:
        InputError: if a number does not lie in [0, 1).
    """
    for name, value in (
        ("tilt_change", tilt_change),
        ("mind_change", mind_change),
        ("threshold", threshold),
    ):
        if not (math.isfinite(value) and 0 <= value < 1):
            raise InputError(f"{name} must lie in [0, 1), not {value!r}")
    settings = AdaptiveNumbers(None, tilt_change, mind_change, threshold)
    return Learner("ital-adaptive", "ITAL adaptive", rule("imitated"), settings, resolve, version=2)
