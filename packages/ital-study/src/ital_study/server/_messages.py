"""Messages that the server accepts, all of limited size."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ital_study.store.rows import Choice, Count, Message, Noticed, Round, Seconds, Timing

Ids = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")],
        Annotated[str, Field(max_length=200)],
    ],
    Field(max_length=10),
]
Code = Annotated[str, Field(min_length=1, max_length=40)]
# The database has columns of 32 bits for these numbers and fails on larger ones.
ParticipantNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
MapName = Annotated[str, Field(max_length=40)]
Responses = dict[int | str, dict[str, Any]]


class Join(Message):
    """Begin, or resume with an ID or a resume code; ``language`` lists languages, the best first.

    ``ids`` holds the parameters of the link that may identify a person, as ``/api/panel`` names
    them.
    """

    ids: Ids = Field(default={})
    resume: Code | None = None
    mode: Literal["live", "pilot", "preview", "simulated"] = "live"
    key: Annotated[str, Field(max_length=200)] | None = None
    language: Annotated[str, Field(pattern=r"^[A-Za-z0-9,-]{0,100}$")] | None = None
    teacher: (
        Annotated[str, Field(pattern=r"^(machine|random|boltzmann:[0-9.e+-]{1,20})$")] | None
    ) = None


class ChosenLanguage(Message):
    """The language in which somebody wants to read."""

    language: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,12}$")]


class Consent(Message):
    """Accept or decline a version of the consent."""

    accepted: bool
    version: Annotated[str, Field(max_length=40)]


class Nothing(Message):
    """A message without content."""


class CheckAnswers(Message):
    """Answers to the questions, by index.

    ``tries_left`` is as the page showed it, so that a double click counts once.
    """

    answers: Annotated[list[Choice], Field(max_length=100)]
    tries_left: Count | None = None


class TakeStep(Message):
    """One choice: step ``step`` (from 0) of a round, arrow ``choice``."""

    round: Round
    step: Count
    choice: Choice
    timing: Timing = Timing()


class PageAnswers(Message):
    """Answers to a page of questions, by the id of the question.

    Options and points of scales count from 1.
    """

    page: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
    place: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,16}$")]
    answers: Annotated[dict[str, Any], Field(max_length=200)]
    seconds: Seconds | None = None


class Events(Message):
    """Up to 50 events that a page recorded."""

    events: Annotated[list[Noticed], Field(max_length=50)]


class Comments(Message):
    """Comments at the end; may be empty."""

    text: Annotated[str, Field(max_length=5000)]


class Leave(Message):
    """Leave, and keep or delete what is stored.

    To delete, some browsers must send the resume code.
    """

    keep: bool
    code: Code | None = None


class LogIn(Message):
    """The researcher's password, and name; without a name, the study's own password."""

    name: Annotated[str, Field(max_length=40)] = ""
    password: Annotated[str, Field(max_length=1000)]


class Pause(Message):
    """Pause or resume the intake of new participants."""

    paused: bool


class Release(Message):
    """Free a participant's slot for somebody else."""

    number: ParticipantNumber


class Delete(Message):
    """Delete a participant; the number is given twice to prevent mistakes."""

    number: ParticipantNumber
    confirm: ParticipantNumber


class Exclude(Message):
    """Exclude a participant for a reason, or include them again (no reason)."""

    number: ParticipantNumber
    reason: Annotated[str, Field(min_length=1, max_length=500)] | None = None


class Find(Message):
    """A participant by identity, resume code, completion code or number."""

    who: Annotated[str, Field(min_length=1, max_length=200)]


class PlayNew(Message):
    """A fresh pair of robots."""

    map: MapName | None = None
    seed: Seed | None = None


class PlayStep(Message):
    """All choices so far; they determine the robots."""

    map: MapName
    seed: Seed
    choices: Annotated[list[Choice], Field(max_length=1000)]


class Problem(BaseModel):
    """An error: a sentence for people, a word for programs, and the current state if it helps."""

    error: str
    code: str
    state: dict[str, Any] | None = None


def problems(*statuses: int) -> Responses:
    """Return how the description of a route names the errors that it may answer."""
    return {status: {"model": Problem} for status in statuses}
