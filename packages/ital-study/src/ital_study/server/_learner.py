"""The learner for other front ends. Nothing is stored: the state travels with the client."""

import itertools
import secrets
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from ital.errors import InputError
from ital_study.config.lineup import KINDS
from ital_study.robots import learner
from ital_study.robots.rules import MOST_ARROWS, Arrow, StudyRules
from ital_study.server._app_state import address_of
from ital_study.server._errors import Refused, as_sentence
from ital_study.server._guard import RateLimit
from ital_study.server._messages import problems
from ital_study.store.rows import Choice, Message

Name = Annotated[str, Field(min_length=1, max_length=40)]
ParticipantNumber = Annotated[int, Field(ge=0, le=2**32 - 1)]
BoundedNumber = Annotated[
    float, Field(ge=-learner.LARGEST, le=learner.LARGEST, allow_inf_nan=False)
]
Numbers = Annotated[list[BoundedNumber], Field(max_length=1000)]
ERRORS = problems(400, 403, 413, 422, 429)


class LearnerArrow(Message):
    """A candidate: a cell, row by row from the top left, and a direction.

    Directions: 0 up, 1 right, 2 down, 3 left.
    """

    cell: Annotated[int, Field(ge=0, le=63)]
    action: Annotated[int, Field(ge=0, le=3)]


LearnerArrows = Annotated[list[LearnerArrow], Field(min_length=1, max_length=MOST_ARROWS)]


class LearnerState(Message):
    """A robot between two steps. Keep it, and send it with the next step."""

    version: Annotated[int, Field(ge=0, le=1000)]
    config: Name
    map: Name
    robot: Name
    number: ParticipantNumber
    step: Annotated[int, Field(ge=0, le=100_000)]
    belief: Numbers
    memory: Annotated[list[Numbers], Field(max_length=20)]


class LearnerStart(Message):
    """A map, a kind of robot, and the number that start and candidates follow from.

    A number is drawn if it is missing.
    """

    map: Name
    robot: Name
    number: ParticipantNumber | None = None


class LearnerLook(Message):
    """A robot and arrows that it might be shown."""

    state: LearnerState
    candidates: LearnerArrows


class LearnerStep(LearnerLook):
    """A robot, the arrows of a step, and the index of the one that it is shown."""

    choice: Choice


class LearnerSignals(BaseModel):
    """Measures of the belief, and what the request's candidates were worth before the step."""

    distance: float
    distance_centred: float
    policy_tv: float
    policy_gap: float
    reward: float
    change: float | None
    best: int | None
    volumes: list[float] | None
    imitated_volumes: list[float] | None


class LearnerAnswer(BaseModel):
    """The robot, what it believes and would do, signals, and the study's arrows for the next step.

    The arrows are null after the last step.
    """

    state: LearnerState
    belief: list[float]
    plan: list[int]
    candidates: list[LearnerArrow] | None
    signals: LearnerSignals


class LearnerMap(BaseModel):
    """A map: its name, its true rewards row by row, its number of steps."""

    name: str
    rewards: list[float]
    steps: int


class LearnerStudy(BaseModel):
    """What can be taught here."""

    version: int
    config: str
    name: str
    size: int
    candidates: int
    palette: str
    robots: list[str]
    maps: list[LearnerMap]


def limited(request: Request) -> None:
    """Count a request; refuse it if there are too many from its address."""
    limit: RateLimit = request.app.state.limit
    seconds = limit.wait(address_of(request))
    if seconds:
        sentence = f"Too many requests. Please wait {seconds} seconds."
        raise Refused(429, "too_many", sentence, {"wait": seconds})


router = APIRouter(prefix="/api/learner", tags=["learner"], dependencies=[Depends(limited)])


# Not async: FastAPI runs such functions in threads, so a program that has to be compiled keeps
# nobody else waiting.


@router.get("", responses=problems(429))
def describe(request: Request) -> LearnerStudy:
    """Return the maps and robots of this learner."""
    rules: StudyRules = request.app.state.rules
    config = rules.config
    maps = [
        LearnerMap(
            name=study_map.name,
            rewards=list(itertools.chain.from_iterable(study_map.rewards)),
            steps=rules.steps(study_map.name),
        )
        for study_map in config.all_maps
    ]
    return LearnerStudy(
        version=learner.VERSION,
        config=config.hash[:12],
        name=config.name,
        size=config.size,
        candidates=config.candidates,
        palette=config.palette,
        robots=learner.robots_offered(rules),
        maps=maps,
    )


@router.post("/start", responses=ERRORS)
def start(request: Request, body: LearnerStart) -> LearnerAnswer:
    """Return a robot that has seen nothing yet."""
    number = body.number
    if number is None:
        number = secrets.randbelow(2**31)
    return _answered(learner.start, request, body.map, body.robot, number)


@router.post("/look", responses=ERRORS)
def look(request: Request, body: LearnerLook) -> LearnerAnswer:
    """Return what each of these arrows is worth now; the robot learns nothing."""
    return _answered(learner.look, request, body.state.model_dump(), _arrows(body))


@router.post("/step", responses=ERRORS)
def step(request: Request, body: LearnerStep) -> LearnerAnswer:
    """Show one of the arrows to the robot."""
    return _answered(learner.step, request, body.state.model_dump(), _arrows(body), body.choice)


def _arrows(body: LearnerLook) -> list[Arrow]:
    return [Arrow(arrow.cell, arrow.action) for arrow in body.candidates]


def _answered(
    compute: Callable[..., learner.JsonDict], request: Request, *values: Any
) -> LearnerAnswer:
    try:
        return LearnerAnswer.model_validate(compute(request.app.state.rules, *values))
    except InputError as error:
        raise Refused(422, "invalid", as_sentence(str(error))) from None


def warm_up(rules: StudyRules) -> None:
    """Compile all that requests need, for every kind of robot.

    So nobody has to wait for it, and no request makes the server's programs grow.
    """
    name = rules.config.maps[0].name
    candidates = rules.candidates(0, name)[0]
    for robot in learner.robots_offered(rules):
        state = learner.start(rules, name, robot, 0)["state"]
        learner.step(rules, state, candidates, 0)
        # Any number of arrows other than the study's is padded to one size and shares a program.
        if not KINDS[robot].believes:
            learner.step(rules, state, candidates[:-1], 0)
