"""``ital play``: teach three robots side by side. Nothing is stored: each request holds all choices."""

import functools
import secrets
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from ital_study.config import languages
from ital_study.robots.rules import Mind, StudyRules
from ital_study.server import _messages as messages
from ital_study.server._participants import ERRORS
from ital_study.server._plain import Refused
from ital_study.simulation.arms import MATCHED

ROBOTS = {
    "naive": "naive",
    "matched": MATCHED,
    "aware": "aware",
}  # learners, by their name in the page's messages

router = APIRouter(prefix="/api/play", tags=["play"])


@router.get("/words")
async def words() -> dict[str, Any]:
    """The words that this page shares with participants' pages, in English."""
    return {"language": "en", "words": languages.shipped_words("en")}


@router.post("/new", responses=ERRORS)
async def new(request: Request, body: messages.PlayNew) -> dict[str, Any]:
    """Robots that know nothing yet."""
    rules: StudyRules = request.app.state.rules
    seed = secrets.randbelow(2**31) if body.seed is None else body.seed
    return scene(rules, body.map or rules.config.maps[0].name, seed, [])


@router.post("/step", responses=ERRORS)
async def step(request: Request, body: messages.PlayStep) -> dict[str, Any]:
    """The robots after all these choices."""
    return scene(request.app.state.rules, body.map, body.seed, body.choices)


def scene(rules: StudyRules, name: str, seed: int, choices: list[int]) -> dict[str, Any]:
    """All robots after the same choices, and the arrows that come next."""
    config = rules.config
    if name not in [on.name for on in config.maps]:
        raise Refused(422, "invalid", "There is no such map.")
    arrows = rules.candidates(seed, name)
    if len(choices) > len(arrows) or any(choice >= config.candidates for choice in choices):
        raise Refused(422, "invalid", "There is no such arrow.")
    beliefs = {
        kind: _replayed(rules, seed, name, learner, tuple(choices))
        for kind, learner in ROBOTS.items()
    }
    shown = arrows[len(choices)] if len(choices) < len(arrows) else None
    return {
        "map": name,
        "maps": [on.name for on in config.maps],
        "seed": seed,
        "size": config.size,
        "step": len(choices),
        "steps": len(arrows),
        "palette": config.palette,
        "truth": [cell for row in rules.map(name).rewards for cell in row],
        "arrows": None if shown is None else [arrow._asdict() for arrow in shown],
        "best": None
        if shown is None
        else {kind: rules.best(name, w, shown) for kind, w in beliefs.items()},
        "best_reward": rules.measures(name, np.asarray(rules.truth(name).target))["reward"],
        **{
            kind: rules.picture(w)._asdict() | {"measures": rules.measures(name, w)}
            for kind, w in beliefs.items()
        },
    }


def _replayed(
    rules: StudyRules, seed: int, name: str, learner: str, choices: tuple[int, ...]
) -> np.ndarray:
    """The belief after these choices; usually only the last choice is new."""
    for i in range(
        len(choices)
    ):  # shorter sequences first, so that each finds its predecessor in the cache
        _after(rules, seed, name, learner, choices[:i])
    return _after(rules, seed, name, learner, choices).belief


@functools.lru_cache(maxsize=4096)
def _after(rules: StudyRules, seed: int, name: str, learner: str, choices: tuple[int, ...]) -> Mind:
    if not choices:
        return rules.mind("naive" if learner == MATCHED else learner, rules.start(seed, name))
    shown = rules.candidates(seed, name)[len(choices) - 1], choices[-1]
    before = _after(rules, seed, name, learner, choices[:-1])
    if learner != MATCHED:
        return rules.update(name, learner, before, *shown)
    naive, aware = (rules.update(name, kind, before, *shown) for kind in ("naive", "aware"))
    along, length = naive.belief - before.belief, np.linalg.norm(aware.belief - before.belief)
    return naive._replace(
        belief=before.belief + along * (length / (np.linalg.norm(along) or np.inf))
    )
