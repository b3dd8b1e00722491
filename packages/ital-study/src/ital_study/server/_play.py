"""``ital play``: teach three robots side by side. Nothing is stored: requests hold all choices."""

import functools
import itertools
import secrets
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from ital_study.config import languages
from ital_study.config.configuration import Config
from ital_study.config.lineup import AWARE, KINDS, NAIVE
from ital_study.robots.rules import Arrow, Mind, StudyRules
from ital_study.server import _messages as messages
from ital_study.server._errors import Refused
from ital_study.server._participants import ERRORS
from ital_study.simulation.arms import MATCHED

# Learners of a study that names no robots, by their name in the page's messages.
ROBOTS = {"naive": NAIVE, "matched": MATCHED, "aware": AWARE}

# What the page calls the robots.
NAMES = {
    "naive": "Naive robot",
    "matched": "Naive, longer steps",
    "aware": "Teacher-aware robot",
    "adaptive": "Adaptive robot",
    "posterior": "Belief from arrows",
    "ital-posterior": "Belief from choices too",
}
ABOUT = {name: kind.about for name, kind in KINDS.items()}
ABOUT["matched"] = "moves as the naive one would, but as far as the aware one"

router = APIRouter(prefix="/api/play", tags=["play"])


@router.get("/words")
async def words() -> dict[str, Any]:
    """Return the words that this page shares with participants' pages, in English."""
    return {"language": "en", "words": languages.shipped_words("en")}


@router.post("/new", responses=ERRORS)
async def new(request: Request, body: messages.PlayNew) -> dict[str, Any]:
    """Return robots that know nothing yet."""
    rules: StudyRules = request.app.state.rules
    seed = body.seed
    if seed is None:
        seed = secrets.randbelow(2**31)
    return scene(rules, body.map or rules.config.maps[0].name, seed, [])


@router.post("/step", responses=ERRORS)
async def step(request: Request, body: messages.PlayStep) -> dict[str, Any]:
    """Return the robots after all these choices."""
    return scene(request.app.state.rules, body.map, body.seed, body.choices)


def robots_of(config: Config) -> dict[str, str]:
    """Return the learners that are played, by their name in the page's messages."""
    if config.robots:
        return {name: name for name in config.robots}
    return ROBOTS


def scene(
    rules: StudyRules,
    name: str,
    seed: int,
    choices: list[int],
) -> dict[str, Any]:
    """Return all robots after the same choices, and the arrows that come next."""
    config = rules.config
    _check_choices(rules, name, seed, choices)
    # The last belief of each robot, by its name in messages.
    beliefs = {
        kind: _replayed(rules, seed, name, learner, tuple(choices))
        for kind, learner in robots_of(config).items()
    }
    target = np.asarray(rules.truth(name).target)
    return {
        "map": name,
        "robots": [{"kind": kind, "name": NAMES[kind], "about": ABOUT[kind]} for kind in beliefs],
        "maps": [study_map.name for study_map in config.maps],
        "seed": seed,
        "size": config.size,
        "palette": config.palette,
        "truth": list(itertools.chain.from_iterable(rules.map(name).rewards)),
        "step": len(choices),
        **_offer(rules, name, rules.candidates(seed, name), len(choices), beliefs),
        "best_reward": rules.measures(name, target)["reward"],
        **{kind: _robot_shown(rules, name, belief) for kind, belief in beliefs.items()},
    }


def _robot_shown(rules: StudyRules, name: str, belief: np.ndarray) -> dict[str, Any]:
    return {
        **rules.picture(belief)._asdict(),
        "measures": rules.measures(name, belief),
    }


def _offer(
    rules: StudyRules,
    name: str,
    arrows_by_step: list[list[Arrow]],
    step: int,
    beliefs: dict[str, np.ndarray],
) -> dict[str, Any]:
    """Return the arrows of a step and each robot's best one; nothing after the last step."""
    steps = len(arrows_by_step)
    if step == steps:
        return {"steps": steps, "arrows": None, "best": None}
    arrows = arrows_by_step[step]
    return {
        "steps": steps,
        "arrows": [arrow._asdict() for arrow in arrows],
        "best": {kind: rules.best(name, belief, arrows) for kind, belief in beliefs.items()},
    }


def _check_choices(
    rules: StudyRules,
    name: str,
    seed: int,
    choices: list[int],
) -> None:
    """Raise if there is no such map, or no arrow that was chosen."""
    names = [study_map.name for study_map in rules.config.maps]
    if name not in names:
        raise Refused(422, "invalid", "There is no such map.")
    is_too_long = len(choices) > len(rules.candidates(seed, name))
    is_too_large = any(choice >= rules.config.candidates for choice in choices)
    if is_too_long or is_too_large:
        raise Refused(422, "invalid", "There is no such arrow.")


def _replayed(
    rules: StudyRules,
    seed: int,
    name: str,
    learner: str,
    choices: tuple[int, ...],
) -> np.ndarray:
    """Return the belief after these choices; usually only the last choice is new."""
    # Shorter sequences first: each finds its predecessor in the cache, so the recursion is never
    # deeper than one call, however long the play.
    for count in range(len(choices)):
        _after(rules, seed, name, learner, choices[:count])
    return _after(rules, seed, name, learner, choices).belief


@functools.lru_cache(maxsize=4096)
def _after(
    rules: StudyRules,
    seed: int,
    name: str,
    learner: str,
    choices: tuple[int, ...],
) -> Mind:
    if not choices:
        # The control begins as the naive robot and stays one, but for the length of its steps.
        kind = NAIVE if learner == MATCHED else learner
        return rules.first_mind(seed, name, kind)
    before = _after(rules, seed, name, learner, choices[:-1])
    arrows = rules.candidates(seed, name)[len(choices) - 1]
    if learner == MATCHED:
        return _matched_update(rules, name, before, arrows, choices[-1])
    return rules.update(name, learner, before, arrows, choices[-1])


def _matched_update(
    rules: StudyRules,
    name: str,
    before: Mind,
    arrows: list[Arrow],
    choice: int,
) -> Mind:
    """Move in the naive robot's direction by the length of the aware robot's step."""
    naive = rules.update(name, "naive", before, arrows, choice)
    aware = rules.update(name, "aware", before, arrows, choice)
    direction = naive.belief - before.belief
    length = np.linalg.norm(aware.belief - before.belief)
    # Without a direction there is no step: dividing by infinity makes it zero, not NaN.
    own_length = np.linalg.norm(direction) or np.inf
    scale = length / own_length
    return naive._replace(belief=before.belief + direction * scale)
