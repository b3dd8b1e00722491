"""``ital play``: teach a naive and an aware robot side by side. Nothing is stored: each request holds all choices."""

import functools
import secrets
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from ital.study import _languages
from ital.study._config import LEARNERS
from ital.study._rules import Mind, StudyRules
from ital.study.server import _messages as messages
from ital.study.server._participants import ERRORS
from ital.study.server._plain import Refused

router = APIRouter(prefix="/api/play", tags=["play"])


@router.get("/words")
async def words() -> dict[str, Any]:
    """The words that this page shares with participants' pages, in English."""
    return {"language": "en", "words": _languages.shipped_words("en")}


@router.post("/new", responses=ERRORS)
async def new(request: Request, body: messages.PlayNew) -> dict[str, Any]:
    """Two robots that know nothing yet."""
    rules: StudyRules = request.app.state.rules
    seed = secrets.randbelow(2**31) if body.seed is None else body.seed
    return scene(rules, body.map or rules.config.maps[0].name, seed, [])


@router.post("/step", responses=ERRORS)
async def step(request: Request, body: messages.PlayStep) -> dict[str, Any]:
    """The robots after all these choices."""
    return scene(request.app.state.rules, body.map, body.seed, body.choices)


def scene(rules: StudyRules, name: str, seed: int, choices: list[int]) -> dict[str, Any]:
    """Both robots after the same choices, and the arrows that come next."""
    config = rules.config
    if name not in [on.name for on in config.maps]:
        raise Refused(422, "invalid", "There is no such map.")
    arrows = rules.candidates(seed, name)
    if len(choices) > len(arrows) or any(choice >= config.candidates for choice in choices):
        raise Refused(422, "invalid", "There is no such arrow.")
    beliefs = {learner: _replayed(rules, seed, name, learner, tuple(choices)) for learner in LEARNERS}
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
        "best": None if shown is None else {kind: rules.best(name, w, shown) for kind, w in beliefs.items()},
        "best_reward": rules.measures(name, np.asarray(rules.truth(name).target))["reward"],
        **{kind: rules.picture(w)._asdict() | {"measures": rules.measures(name, w)} for kind, w in beliefs.items()},
    }


def _replayed(rules: StudyRules, seed: int, name: str, learner: str, choices: tuple[int, ...]) -> np.ndarray:
    """The belief after these choices; usually only the last choice is new."""
    for i in range(len(choices)):  # shorter sequences first, so that each finds its predecessor in the cache
        _after(rules, seed, name, learner, choices[:i])
    return _after(rules, seed, name, learner, choices).belief


@functools.lru_cache(maxsize=4096)
def _after(rules: StudyRules, seed: int, name: str, learner: str, choices: tuple[int, ...]) -> Mind:
    if not choices:
        return rules.mind(learner, rules.start(seed, name))
    arrows = rules.candidates(seed, name)[len(choices) - 1]
    return rules.update(name, learner, _after(rules, seed, name, learner, choices[:-1]), arrows, choices[-1])
