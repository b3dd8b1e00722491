"""What a person may go by: scores of the arrows of a step, under several models of a teacher."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import volume
from ital.learners import Lesson
from ital.tools.types import Array
from ital_study.robots import world
from ital_study.robots.rules import StudyRules
from ital_study.robots.world import Arrows, Game

BLOCK = 128  # steps scored per call; a fixed number, so that no result depends on their number
REFERENCES = 10  # participants whose first beliefs define the units


class MapFacts(NamedTuple):
    """What a person sees of the true map: w*, log π* (A, S) in the core's order, minus the moves to
    the goal (S,).
    """

    target: Any
    log_policy: Any
    nearness: Any


class StudyModel(NamedTuple):
    """A model of how a person chooses.

    Attributes:
        name: Name in tables.
        title: What the score is, in words.
        score: ``score(lesson, belief, facts, arrows)`` returns the score of every arrow (B,); None
            if the person goes by nothing.
    """

    name: str
    title: str
    score: Callable[[Lesson, Array, MapFacts, Arrows], Array] | None


def _exact(lesson: Lesson, belief: Array, facts: MapFacts, arrows: Arrows) -> Array:
    return world.volumes(lesson, belief, facts.target)


def _imitated(lesson: Lesson, belief: Array, facts: MapFacts, arrows: Arrows) -> Array:
    target_losses = -facts.log_policy[lesson.examples.actions, lesson.examples.states]
    return volume.imitated(lesson.lr, lesson.here.squared_norms, lesson.here.losses, target_losses)


def _loss(lesson: Lesson, belief: Array, facts: MapFacts, arrows: Arrows) -> Array:
    return lesson.here.losses


def _minus_loss(lesson: Lesson, belief: Array, facts: MapFacts, arrows: Arrows) -> Array:
    return -lesson.here.losses


def _gradient(lesson: Lesson, belief: Array, facts: MapFacts, arrows: Arrows) -> Array:
    return jnp.sqrt(lesson.here.squared_norms)


def _nearness(lesson: Lesson, belief: Array, facts: MapFacts, arrows: Arrows) -> Array:
    return facts.nearness[arrows.cells]


RANDOM = StudyModel("random", "nothing: every arrow is equally likely", None)
MODELS = (
    StudyModel(
        "exact", "exact teaching volume: how much closer the arrow brings a naive robot", _exact
    ),
    StudyModel("imitated", "imitated teaching volume: the same from losses alone", _imitated),
    StudyModel("loss", "the loss: what the robot least expects", _loss),
    StudyModel("minus-loss", "minus the loss: what the robot expects already", _minus_loss),
    StudyModel("gradient", "the norm of the gradient: what moves the robot most", _gradient),
    StudyModel("nearness", "nearness to the goal: fewest moves to the best cell", _nearness),
    RANDOM,
)
SCORED = tuple(model for model in MODELS if model.score is not None)
NAMES = tuple(model.name for model in MODELS)


def map_facts(rules: StudyRules, map_name: str) -> MapFacts:
    """Return what a person sees of a map: the truth, and how near every cell is to a cell of the
    largest reward.
    """
    truth = rules.truth(map_name)
    size = rules.config.size
    cells = np.stack(np.divmod(np.arange(size**2), size), axis=1)  # row and column of each
    goals = cells[truth.target == truth.target.max()]
    moves = np.abs(cells[:, None] - goals).sum(axis=-1).min(axis=1)
    return MapFacts(truth.target, truth.log_policy, -moves.astype(np.float32))


def scores_many(
    rules: StudyRules, maps: Sequence[str], beliefs: np.ndarray, arrows: Arrows
) -> np.ndarray:
    """Score the arrows of many steps.

    Args:
        rules: Rules of the study.
        maps: Name of the map of each step (N,).
        beliefs: The robot's belief before each step (N, S).
        arrows: The candidates of each step, both parts (N, B).

    Returns:
        The scores by model, step and arrow, in the order of ``SCORED`` (M, N, B), in float64.
    """
    names = sorted(set(maps))
    of_map = jax.tree.map(lambda *each: np.stack(each), *(map_facts(rules, name) for name in names))
    which = np.searchsorted(names, maps)
    blocks = []
    for first in range(0, len(which), BLOCK):
        # The last block is padded with its last step.
        rows = np.arange(first, first + BLOCK).clip(max=len(which) - 1)
        steps = (
            np.float32(rules.config.lr),
            beliefs[rows],
            jax.tree.map(lambda part, rows=rows: part[rows], arrows),
        )
        of_steps = jax.tree.map(lambda part, rows=rows: part[which[rows]], of_map)
        blocks.append(np.asarray(_score_block(rules.game, *steps, of_steps), float))
    return np.concatenate(blocks, axis=1)[:, : len(which)]


def score_units(rules: StudyRules) -> np.ndarray:
    """Return the unit of every score: its spread among the arrows of a step, at the robots' first
    beliefs.

    The spread is the root of the mean variance over the arrows of a step, on all maps, for
    reference participants. It is taken at the participants' first beliefs w⁰, at which all robots
    begin but those that keep a belief. So one unit per score serves all robots, and it depends on
    nobody's choices.

    Args:
        rules: Rules of the study.

    Returns:
        One number per model of ``SCORED``; 1 for a score without any spread.
    """
    names = [on.name for on in rules.config.maps]
    lanes = list(itertools.product(names, range(1, REFERENCES + 1)))  # map and participant
    drawn = np.concatenate([rules.candidates(number, name) for name, number in lanes])
    starts = np.stack([rules.start(number, name) for name, number in lanes])
    beliefs = starts.repeat(rules.config.steps, axis=0)
    maps = [name for name, _ in lanes for _ in range(rules.config.steps)]
    scores = scores_many(rules, maps, beliefs, Arrows(drawn[..., 0], drawn[..., 1]))
    spread = np.sqrt(scores.var(axis=-1).mean(axis=-1))
    return np.where(spread > 0, spread, 1.0)


@functools.partial(jax.jit, static_argnums=0)
def _score_block(game: Game, lr: Array, beliefs: Array, arrows: Arrows, facts: MapFacts) -> Array:
    def score_step(belief: Array, arrows: Arrows, facts: MapFacts) -> Array:
        # Scores depend on neither the choice nor the number of the step.
        anything = jnp.int32(0)
        lesson = world.lesson(game, lr, belief, arrows, anything, anything)
        return jnp.stack(
            [
                model.score(lesson, belief, facts, arrows)
                for model in SCORED
                if model.score is not None
            ]
        )

    return jax.vmap(score_step, out_axes=1)(beliefs, arrows, facts)
