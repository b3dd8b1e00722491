"""The sections of a study's configuration: what they hold, and how they are read."""

import itertools
import re
from dataclasses import dataclass
from typing import Any

from ital.errors import InputError
from ital_study.config.panel import CODE, FIELD, Panel
from ital_study.config.toml import TomlTable

# Pictures that the pages can draw.
PICTURES = ("world", "maps", "arrow", "controls", "local-global", "belief", "whole-map")

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Map:
    """A named square of rewards.

    Attributes:
        name: Name of the map; its draws depend on it, not on its place in the file.
        rewards: Rewards of the cells, row by row from the top.
    """

    name: str
    rewards: Rows

    @property
    def cells(self) -> list[float]:
        """The rewards of all cells, row by row from the top."""
        return list(itertools.chain.from_iterable(self.rewards))


@dataclass(frozen=True)
class Physics:
    """How the robot moves and plans: section ``[world]``.

    Attributes:
        slip: Probability of moving in each direction that the robot did not choose.
        death: Probability that a walk ends at each step.
        discount: Weight of the value of the next cell.
        sharpness: Sharpness of the soft maximum over actions in planning.
    """

    slip: float = 0.06
    death: float = 0.02
    discount: float = 0.5
    sharpness: float = 200.0


@dataclass(frozen=True)
class AssumedTeacher:
    """How the robot ``ital-posterior`` takes its teacher to choose: section ``[assumed_teacher]``.

    Attributes:
        rho: The teacher's rationality ρ, such as a fitted one; None: the robot weighs all.
        unit: The difference of teaching volumes that counts as 1 for ρ.
        lapse: The share ε of choices by chance.
    """

    rho: float | None = None
    unit: float = 1.0
    lapse: float = 0.01


@dataclass(frozen=True)
class ConsentForm:
    """What participants agree to.

    Attributes:
        version: Version of the text; change it whenever the text changes.
        text: The text.
    """

    version: str
    text: str


@dataclass(frozen=True)
class Instruction:
    """One page of instructions.

    Attributes:
        title: Heading of the page.
        text: Its text.
        picture: Name of the drawing on it; None: none.
    """

    title: str
    text: str
    picture: str | None = None


@dataclass(frozen=True)
class Question:
    """A question of the comprehension check.

    Attributes:
        question: The question.
        options: The possible answers.
        answer: Index of the right answer, from 0.
    """

    question: str
    options: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class EarlyEnd:
    """What participants get whose part ends early.

    Sections ``[completion.declined]``, ``.failed_check``, ``.left``.

    Attributes:
        code: Code that says so; None: none.
        redirect: Address of the page to return to; None: nowhere.
    """

    code: str | None = None
    redirect: str | None = None


@dataclass(frozen=True)
class Completion:
    """What a participant gets at the end.

    Attributes:
        code: Code that proves the participation.
        redirect: Address of the page to send the participant to; None: nowhere.
        per_person: Whether every participant gets a code of their own in place of the fixed ones.
        declined: What those get who decline to take part.
        failed_check: What those get who fail the comprehension check.
        left: What those get who leave early.
    """

    code: str
    redirect: str | None = None
    per_person: bool = False
    declined: EarlyEnd | None = None
    failed_check: EarlyEnd | None = None
    left: EarlyEnd | None = None


def map_of(table: TomlTable) -> Map:
    """Read a map: a square of numbers."""
    rows = table.get("rewards")
    name = table.text("name", most=40)
    if not _is_square(rows) or not 3 <= len(rows) <= 8:
        raise InputError(f"{table.prefix}rewards must be a square of numbers with 3 to 8 rows")
    for cell in itertools.chain.from_iterable(rows):
        # True is an int, and NaN compares false: both are refused.
        if type(cell) not in (int, float) or not abs(cell) <= 100:
            raise InputError(
                f"{table.prefix}rewards must be numbers from -100 to 100, not {cell!r}"
            )
    return Map(name, tuple(tuple(map(float, row)) for row in rows))


def _is_square(rows: Any) -> bool:
    """Say whether rows are lists, as many as each is long."""
    if not isinstance(rows, list):
        return False
    return all(isinstance(row, list) and len(row) == len(rows) for row in rows)


def instruction_of(table: TomlTable) -> Instruction:
    """Read a page of instructions."""
    picture = None
    if "picture" in table.content:
        picture = table.one_of("picture", PICTURES)
    return Instruction(table.text("title", most=200), table.text("text"), picture)


def question_of(table: TomlTable) -> Question:
    """Read a question of the comprehension check."""
    options = tuple(table.texts("options"))
    return Question(table.text("question"), options, table.whole("answer", 0, len(options) - 1))


def completion_of(table: TomlTable, panel: Panel) -> Completion:
    """Read what participants get at the end."""
    early = {}
    for key in ("declined", "failed_check", "left"):
        if key in table.content:
            early[key] = _early_end(
                TomlTable(f"{table.prefix}{key}.", table.content[key], EarlyEnd), panel
            )
    return Completion(
        table.text("code", most=100),
        _redirect(table, panel),
        per_person=table.yes_or_no("per_person"),
        **early,
    )


def _early_end(table: TomlTable, panel: Panel) -> EarlyEnd:
    """Read what participants get whose part ends early."""
    code = None
    if "code" in table.content:
        code = table.text("code", most=100)
    return EarlyEnd(code, _redirect(table, panel))


def _redirect(table: TomlTable, panel: Panel) -> str | None:
    """Read an address; its fields are parameters of the link, or the code."""
    if "redirect" not in table.content:
        return None
    redirect = table.text("redirect")
    if not re.fullmatch(r"https?://[^\s]+", redirect):
        raise InputError(
            f"{table.prefix}redirect must be an address that begins with https://, not {redirect!r}"
        )
    allowed = (CODE, *panel.identity, *panel.pass_through)
    for name in FIELD.findall(redirect):
        if name not in allowed:
            raise InputError(
                f"{table.prefix}redirect has the unknown field {{{name}}}: "
                f"the fields are {', '.join(allowed)}; name others in panel.pass_through"
            )
    return redirect


def assumed_teacher_of(table: TomlTable) -> AssumedTeacher:
    """Read how a robot takes its teacher to choose."""
    rho = None
    if "rho" in table.content:
        rho = table.number("rho", least=0.0, most=1e9)
    unit = table.number("unit", above=0.0, most=1e9)
    if rho is None and unit != AssumedTeacher.unit:
        raise InputError(f"{table.prefix}unit is that of rho: give rho too, or leave unit out")
    return AssumedTeacher(rho, unit, table.number("lapse", above=0.0, most=0.99))


def physics_of(table: TomlTable) -> Physics:
    """Read how the robot moves and plans."""
    slip = table.number("slip", least=0.0, most=1.0)
    death = table.number("death", above=0.0, most=1.0)
    # The chosen direction has the probability that the other three and the end of the walk leave.
    if death + 3 * slip > 1:
        raise InputError(
            f"{table.prefix}slip and death must be probabilities with death + 3·slip at most 1"
        )
    discount = table.number("discount", least=0.0, most=0.99)
    return Physics(slip, death, discount, table.number("sharpness", above=0.0, most=1e4))
