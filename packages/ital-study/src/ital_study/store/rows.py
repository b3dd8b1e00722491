"""What browsers cause to be stored: what it may hold, and how readers take it from the tables.

An event of a page must fit its schema when it arrives. Older versions stored whatever a page sent,
so readers check stored rows again: they skip what does not fit, and :func:`count_unreadable` counts
it.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ital.errors import InputError
from ital_study.config import map_orders, questions
from ital_study.config.configuration import Config
from ital_study.config.questions import Questionnaire
from ital_study.data.answers import read_answers
from ital_study.data.flags import LARGEST_WINDOW
from ital_study.store.records import Participant, StoredEvent
from ital_study.store.tables import events, steps

Milliseconds = Annotated[float, Field(ge=0, le=1e14, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=100_000)]
Choice = Annotated[int, Field(ge=0, le=1000)]
Round = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,16}$")]
Pixels = Annotated[int | float, Field(ge=0, le=LARGEST_WINDOW)]


class Message(BaseModel):
    """What a browser sends: values of exactly these kinds; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Timing(Message):
    """Times of one step on the participant's clock."""

    shown_at: Milliseconds | None = None
    first_choice_at: Milliseconds | None = None
    chosen_at: Milliseconds | None = None
    confirmed_at: Milliseconds | None = None
    seconds_to_choice: Seconds | None = None
    seconds_to_confirm: Seconds | None = None
    choice_changes: Count | None = None
    focus_losses: Count | None = None
    input: Annotated[str, Field(pattern=r"^[a-z]{1,16}$")] | None = None


# Events of pages


class NoData(Message):
    """Nothing but the fact that it happened."""


class AtStep(Message):
    """At which step (from 0) of which round."""

    round: Round
    step: Count


class MaybeAtStep(Message):
    """The step, if it happened while arrows were shown."""

    round: Round | None = None
    step: Count | None = None


class Pick(AtStep):
    """An arrow that was picked."""

    choice: Choice


class Window(Message):
    """Size of the window in CSS pixels, and what the browser says about the device."""

    width: Pixels
    height: Pixels
    ratio: Annotated[int | float, Field(ge=0, le=1000)] | None = None
    pointer: Literal["fine", "coarse", "none"] | None = None
    small_accepted: bool | None = None


class _PageEvent(Message):
    at: Milliseconds | None = None  # by the participant's clock


class Shown(_PageEvent):
    """Arrows were shown, or the largest change on request."""

    kind: Literal["shown", "largest_change_shown"]
    data: AtStep


class ArrowPicked(_PageEvent):
    """The first pick of a step, or another one."""

    kind: Literal["chosen", "choice_changed"]
    data: Pick


class FocusLost(_PageEvent):
    """The person turned to another window."""

    kind: Literal["focus_lost"]
    data: MaybeAtStep = MaybeAtStep()


class Screen(_PageEvent):
    """The window at the start, and whenever it became small or large."""

    kind: Literal["screen"]
    data: Window


class Happened(_PageEvent):
    """The person came back, the connection was lost or found, the page was loaded again."""

    kind: Literal["focus_regained", "offline", "online", "reloaded"]
    data: NoData = NoData()


Noticed = Annotated[
    Shown | ArrowPicked | FocusLost | Screen | Happened, Field(discriminator="kind")
]


# Events of the server, as far as somebody reads what they hold


# Later versions may store more, and older databases do: other keys are no reason to skip a row.
class _Stored(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Commented(_Stored):
    """Comments at the end."""

    text: str


class Attended(_Stored):
    """The answer to an attention check."""

    check: Count
    passed: bool


class Answered(_Stored):
    """The answers to a page of questions."""

    page: str
    place: Round
    answers: dict[str, Any]
    map: str = ""
    robot: Count | Literal[""] = ""
    learner: Annotated[str, Field(pattern=r"^[a-z]{0,16}$")] = ""
    seconds: Seconds | None = None


_NOTICED: TypeAdapter[Any] = TypeAdapter(Noticed)
_OF_SERVER: dict[str, type[BaseModel]] = {
    "comments": Commented,
    "attention": Attended,
    "answers": Answered,
}


# Reading


def read_event(row: Any) -> StoredEvent | None:
    """Read a row of the table of events.

    Args:
        row: The row.

    Returns:
        The event; None if it is not one that this version stores.
    """
    data = read_object(row.data)
    if data is None or not _is_readable(row, data):
        return None
    return StoredEvent(row.number, row.kind, row.source, row.at, row.client_at, data)


def _is_readable(row: Any, data: Mapping[str, Any]) -> bool:
    try:
        if row.source == "client":
            _NOTICED.validate_python({"kind": row.kind, "at": row.client_at, "data": data})
        elif row.kind in _OF_SERVER:
            _OF_SERVER[row.kind].model_validate(data)
    except ValidationError:
        return False
    return True


def read_timing(text: str) -> dict[str, Any] | None:
    """Read the times of a step.

    Args:
        text: The stored text.

    Returns:
        The times that are known; None if the text is not one that this version stores.
    """
    timing = read_object(text)
    if timing is None:
        return None
    try:
        return Timing.model_validate(timing).model_dump(exclude_none=True)
    except ValidationError:
        return None


def read_object(text: str) -> dict[str, Any] | None:
    """Read a JSON object.

    Args:
        text: The stored text.

    Returns:
        The object; None if the text is not one.
    """
    try:
        value = json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError):  # thousands of brackets, which a page may have sent
        return None
    if not isinstance(value, dict):
        return None
    return value


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and infinities, which JSON does not have


class AnsweredPage(NamedTuple):
    """A page of questions and the answers to it.

    Attributes:
        page: The page as it was shown.
        answers: The answers as this version would have stored them.
    """

    page: Questionnaire
    answers: dict[str, Any]


def answered_page(
    config: Config, participant: Participant, data: Mapping[str, Any]
) -> AnsweredPage | None:
    """Find the page of questions that somebody answered.

    Args:
        config: The configuration that they saw.
        participant: Who answered: in which language, and with which order of maps.
        data: The data of the event.

    Returns:
        The page with its answers; None if there is no such page, or the answers do not fit it.
    """
    pages = {page.id: page for page in config.texts(participant.language).questionnaires}
    page = pages.get(data["page"])
    # A page that is about no map has no number in its text.
    map_numbers: dict[str, int | str] = {"": "", **map_orders.numbers(participant.order, config)}
    map_number = map_numbers.get(data.get("map", ""))
    if page is None or map_number is None:
        return None
    asked_page = questions.page_about(page, map_number, data.get("robot", ""))
    try:
        return AnsweredPage(asked_page, read_answers(asked_page, data["answers"]))
    except InputError:
        return None


def count_unreadable(connection: sa.Connection, config: Config, participant: Participant) -> int:
    """Count the rows of a participant that readers skip.

    Args:
        connection: The transaction.
        config: The configuration that the participant saw.
        participant: The participant.

    Returns:
        Number of events, and of steps whose times cannot be read.
    """
    number = participant.number
    of_events = sa.select(events).where(events.c.participant == number)
    times_of_steps = sa.select(steps.c.timing).where(steps.c.participant == number)
    count = 0
    for row in connection.execute(of_events):
        event = read_event(row)
        if event is None:
            count += 1
        elif (event.kind, event.source) == ("answers", "server"):
            count += answered_page(config, participant, event.data) is None
    for timing in connection.execute(times_of_steps).scalars():
        count += read_timing(timing) is None
    return count
