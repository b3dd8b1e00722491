"""The learner that finds out what kind of teacher it has: no β is given, neither its size nor its sign.

Before each update it scores the mini-batch by what it knows, without the choice, and looks at the place of the chosen
example in that order. A teacher that helps shows high places, an adversary low ones, and an indifferent one any.
Three hypotheses are weighed by how well they predicted the places so far, in a small mixture updated online:

    it helps            p(place) ∝ exp( κ·place),  κ ∈ {0, 1, 2, 4, 8}, unknown and changing
    it harms            p(place) ∝ exp(−κ·place),  the same
    it is indifferent   all places alike

κ = 0 under the first two says that the scores tell nothing at the moment: a teacher that was helpful keeps its credit
for a while when its choices cannot be predicted. ``trust`` = P(helps) − P(harms), less a threshold, is the share of
|β| that the learner uses.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import volume as teaching_volume
from ital._types import Array, Float, Params, PerExample, Scalar
from ital.errors import InputError
from ital.learners._base import Learner, Lesson, Rule, Situation, Update
from ital.learners._two_step import Literal, awareness_step, imagine, imagined_choice, imagined_volumes
from ital.rationality import LINEAR
from ital.steps import within_reach

TILTS = (0.0, 1.0, 2.0, 4.0, 8.0)
SCORES = 2
WINDOW = 20  # steps over which the spread of the imagined volumes is averaged


class AdaptiveNumbers(NamedTuple):
    """``beta``: |β| by the ``auto`` rule at the start; how fast κ and the teacher may change; the least trust used;
    the most that 2βη may be.
    """

    beta: Any
    tilt_change: Any
    mind_change: Any
    threshold: Any
    most_awareness: Any = LINEAR


class Memory(NamedTuple):
    """Weights of "helps" and "harms" (2, score, κ) and of "indifferent"; the spread of the volumes at first and now."""

    partial: Float[Array, "2 S T"]
    indifferent: Scalar
    first_spread: Scalar
    spread: Scalar


def scores(lesson: Lesson) -> Float[Array, "S B"]:
    """Two predictions of the teaching volumes that need neither target nor choice.

    First the volume as if the target had no loss anywhere, −η²‖gᵢ‖² + 2ηlᵢ; then ⟨gᵢ, mean gradient⟩, which sees
    through losses that no target could avoid (noisy labels, random actions).
    """
    here = lesson.here
    mean = here.weighted_sum(jnp.full_like(here.losses, 1 / here.losses.shape[0]))
    return jnp.stack([teaching_volume.exact(lesson.lr, here.squared_norms, here.losses), here.inner(mean)])


def place(scores: PerExample, chosen: Array) -> Float[Array, ""]:
    """Of the chosen example in the order of the scores, from −1 (lowest) to 1 (highest); ties share the middle."""
    score = scores[chosen]
    return (jnp.sum(scores < score) - jnp.sum(scores > score)) / max(scores.shape[0] - 1, 1)


def tilted(chosen_place: Scalar, count: int) -> Float[Array, " T"]:
    """p(place) ∝ exp(κ·place) for every κ, relative to all ``count`` places being alike."""
    tilts, places = jnp.asarray(TILTS), jnp.linspace(-1, 1, count)
    return jnp.exp(tilts * chosen_place) / jnp.mean(jnp.exp(tilts[:, None] * places), axis=1)


def first_weights() -> tuple[Array, Array]:
    """A third for each hypothesis; scores and κ alike."""
    return jnp.full((2, SCORES, len(TILTS)), 1 / (3 * SCORES * len(TILTS))), jnp.asarray(1 / 3)


def weigh(memory: Memory, places: Float[Array, " S"], count: int, settings: AdaptiveNumbers) -> tuple[Array, Array]:
    """The weights after one more choice: κ may have changed, rarely the teacher's mind, then Bayes' rule."""
    prior, prior_indifferent = first_weights()
    total = jnp.sum(memory.partial, axis=(1, 2), keepdims=True)
    partial = memory.partial + settings.tilt_change * (total * 3 * prior - memory.partial)
    partial = partial + settings.mind_change * (prior - partial)
    indifferent = memory.indifferent + settings.mind_change * (prior_indifferent - memory.indifferent)
    likelihood = jax.vmap(functools.partial(tilted, count=count))
    partial = partial * jnp.stack([likelihood(places), likelihood(-places)])
    total = jnp.sum(partial) + indifferent
    return partial / total, indifferent / total


def trust_of(partial: Float[Array, "2 S T"], threshold: Scalar) -> Float[Array, ""]:
    """P(helps) − P(harms), from −1 to 1, and 0 where it is below the threshold."""
    helps, harms = jnp.sum(partial, axis=(1, 2))
    return jnp.sign(helps - harms) * jnp.maximum(jnp.abs(helps - harms) - threshold, 0.0) / (1 - threshold)


def init(params: Params, settings: AdaptiveNumbers) -> Memory:
    """No opinion."""
    return Memory(*first_weights(), jnp.zeros(()), jnp.zeros(()))


def update(lesson: Lesson, settings: AdaptiveNumbers, params: Params, memory: Memory, *, volume: str) -> Update:
    """ITAL's step with β = trust·|β|, no further than is safe.

    |β| follows the spread of the imagined volumes, so that q stays as sharp as the ``auto`` rule made it at the
    start, within the rule's own cap.
    """
    count = lesson.order.shape[0]
    places = jax.vmap(lambda row: place(row, lesson.chosen))(scores(lesson))
    partial, indifferent = weigh(memory, places, count, settings)
    trust = trust_of(partial, settings.threshold)

    imagined = imagine(lesson, params, Literal(chosen=1.0), volume)
    share = 1 / jnp.minimum(lesson.step + 1, WINDOW)
    spread = memory.spread + share * (jnp.std(imagined.volumes) - memory.spread)
    first = jnp.where(lesson.step < WINDOW, spread, memory.first_spread)
    sharper = jnp.where(spread > 0, first / jnp.where(spread > 0, spread, 1.0), 1.0)
    beta = trust * jnp.minimum(settings.beta * sharper, settings.most_awareness / (2 * lesson.lr))

    q = imagined_choice(beta, imagined.volumes, jnp.ones(count, bool))
    proposed = awareness_step(beta, lesson.lr, lesson.chosen, q, imagined.naive, imagined.gradients)
    after = within_reach(lesson, (), params, proposed)
    return Update(after, Memory(partial, indifferent, first, spread), {"trust": trust})


@functools.cache
def rule(volume: str) -> Rule:
    """The rule for a learner who imagines the ``imitated`` or the ``exact`` volume."""
    return Rule(init=init, update=functools.partial(update, volume=volume))


def resolve(learner: Learner, situation: Situation) -> Learner:
    """Finds |β| by the ``auto`` rule, as if the teacher helped: its sign is not known."""
    beta = situation.auto_beta(imagined_volumes(situation.volume), 1.0)
    settings = learner.settings._replace(beta=beta, most_awareness=situation.most_awareness)
    return learner._replace(rule=rule(situation.volume), settings=settings)


def adaptive(tilt_change: float = 0.02, mind_change: float = 0.001, threshold: float = 0.5) -> Learner:
    """Finds out whether the teacher helps or harms, and how far to trust that: no β (ITAL adaptive).

    Args:
        tilt_change: share by which the beliefs about κ forget per step.
        mind_change: share by which the beliefs about the teacher forget per step.
        threshold: the least trust that is used.

    Returns:
        The learner.

    Raises:
        InputError: if a number does not lie in [0, 1).
    """
    for name, value in (("tilt_change", tilt_change), ("mind_change", mind_change), ("threshold", threshold)):
        if not (math.isfinite(value) and 0 <= value < 1):
            raise InputError(f"{name} must lie in [0, 1), not {value!r}")
    settings = AdaptiveNumbers(None, tilt_change, mind_change, threshold)
    return Learner("ital-adaptive", "ITAL adaptive", rule("imitated"), settings, resolve, version=2)
