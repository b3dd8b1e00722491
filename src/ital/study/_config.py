"""The study's configuration: one TOML file. Every key is checked, and its hash is stored with each participant."""

import dataclasses
import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.study._toml import TomlTable

SHIPPED = ("paper", "short")  # configurations that come with ital
LEARNERS = ("naive", "aware")  # of every study
ADAPTIVE = "adaptive"  # the third, if the key of that name is true
ARROWS = ("boltzmann", "optimal")
VOLUMES = ("exact", "imitated")
PALETTES = ("safe", "paper")
LATER = {"adaptive": False, "volume": "exact"}  # keys added later: without them, older studies keep their hash
PICTURES = ("maps", "arrow", "controls", "local-global", "belief", "whole-map")  # that the pages can draw

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
class Completion:
    """What a participant gets at the end.

    Attributes:
        code: Code that proves the participation.
        redirect: Address of the page to send the participant to; None: nowhere.
    """

    code: str
    redirect: str | None = None


@dataclass(frozen=True)
class Config:
    """A study. Made by :func:`load_config`; ``docs/study.md`` explains every key.

    Attributes:
        name: Short name, fit for files.
        title: Title that participants see.
        seed: Seed of all draws.
        maps: Maps on which participants teach.
        warm_up_map: Map of the warm-up.
        consent: What participants agree to.
        instructions: Pages of instructions.
        check: Questions of the comprehension check.
        debriefing: Text at the end.
        completion: Code and address at the end.
        steps: Number of steps of each robot on a map.
        warm_up_steps: Number of steps of the warm-up.
        warm_up_learner: Kind of robot in the warm-up.
        candidates: Number of arrows to choose from in a step.
        lr: Step size η of the robots.
        beta: Rationality β that the aware robot assumes.
        start: Largest absolute reward of the first belief.
        arrows: Directions of arrows: ``boltzmann``, drawn from the true policy, or ``optimal``, its best ones.
        palette: Colours of the maps: ``safe`` or ``paper``.
        numbers: Whether maps show numbers.
        hint: Whether pages show the machine's pick after a step.
        release_after_minutes: Minutes of inactivity after which a slot is free again.
        intake: Maximum number of live participants; None: no limit.
        adaptive: Whether there is an adaptive robot on every map.
        volume: Teaching volume that robots assume their teacher uses: ``exact`` or ``imitated``.
        world: How the robot moves and plans.
    """

    name: str
    title: str
    seed: int
    maps: tuple[Map, ...]
    warm_up_map: Map
    consent: ConsentForm
    instructions: tuple[Instruction, ...]
    check: tuple[Question, ...]
    debriefing: str
    completion: Completion
    steps: int = 30
    warm_up_steps: int = 10
    warm_up_learner: str = "aware"
    candidates: int = 10
    lr: float = 0.015
    beta: float = 10000.0
    start: float = 2.0
    arrows: str = "boltzmann"
    palette: str = "safe"
    numbers: bool = False
    hint: bool = False
    release_after_minutes: float = 120.0
    intake: int | None = None
    adaptive: bool = False
    volume: str = "exact"
    world: Physics = Physics()

    @property
    def learners(self) -> tuple[str, ...]:
        """The kinds of robot on every map."""
        return (*LEARNERS, ADAPTIVE) if self.adaptive else LEARNERS

    @property
    def size(self) -> int:
        """Cells along one side of a map."""
        return len(self.warm_up_map.rewards)

    @property
    def all_maps(self) -> tuple[Map, ...]:
        """The maps that count, then the warm-up map."""
        return (*self.maps, self.warm_up_map)

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the content; it does not depend on the layout of the file."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return the content as plain lists, dictionaries, text and numbers.

        Returns:
            The keys of the TOML file with their values, without keys that are not set.
        """
        content = dataclasses.asdict(self)
        for key, default in LATER.items():
            if content[key] == default:
                del content[key]
        return _plain(content)

    def public(self) -> dict[str, Any]:
        """Return what a participant's browser may know.

        Returns:
            Texts and sizes for the pages: no answers, no kinds of learner, no seed, nothing of the end.
        """
        return {
            "title": self.title,
            "palette": self.palette,
            "numbers": self.numbers,
            "hint": self.hint,
            "size": self.size,
            "maps": len(self.maps),
            "robots": len(self.learners),
            "steps": self.steps,
            "warm_up_steps": self.warm_up_steps,
            "version": self.hash,
            "consent": dataclasses.asdict(self.consent),
            "instructions": [_plain(dataclasses.asdict(page)) for page in self.instructions],
            "check": [{"question": asked.question, "options": list(asked.options)} for asked in self.check],
        }

    def to_toml(self) -> str:
        """Return the content as a TOML file.

        Returns:
            Text that :func:`parse_config` reads back to the same hash.
        """
        return _toml(self.as_dict())


def load_config(path: str | Path | None = None) -> Config:
    """Read a study from a TOML file.

    Args:
        path: A file, or ``paper`` or ``short``, which come with ital; None: ``paper``.

    Returns:
        The configuration.

    Raises:
        InputError: The file cannot be read, or a key is wrong; the line names the file and the key.
    """
    shipped = "paper" if path is None else str(path)
    if shipped in SHIPPED:
        file = resources.files(__package__) / "configs" / f"{shipped}.toml"
        return parse_config(file.read_text("utf-8"), file.name)
    try:
        text = Path(shipped).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        allowed = f"give a TOML file, or a configuration that comes with ital: {' or '.join(SHIPPED)}"
        raise InputError(f"cannot read the configuration {path}: {reason}; {allowed}") from None
    return parse_config(text, str(path))


def parse_config(text: str, name: str = "study.toml") -> Config:
    """Read a study from the text of a TOML file.

    Args:
        text: The text.
        name: Name of the file in messages.

    Returns:
        The configuration.

    Raises:
        InputError: The text is not TOML, or a key is wrong; the line names the file and the key.
    """
    try:
        return _config(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _config(content: Mapping[str, Any]) -> Config:
    """Check every key and build the configuration."""
    table = TomlTable("", content, Config)
    maps = tuple(_map(each) for each in table.sections("maps", Map))
    warm_up_map = _map(table.section("warm_up_map", Map))
    size, names = len(warm_up_map.rewards), [each.name for each in (*maps, warm_up_map)]
    for each in maps:
        if len(each.rewards) != size:
            raise InputError(
                f"maps must all have one size, but {each.name!r} has {len(each.rewards)} rows "
                f"and {warm_up_map.name!r} has {size}"
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"maps and warm_up_map must have different names, but {twice!r} occurs twice")
    consent = table.section("consent", ConsentForm)
    adaptive = table.yes_or_no("adaptive")
    return Config(
        name=table.slug("name"),
        title=table.text("title"),
        seed=table.whole("seed", 0, 2**32 - 1),
        maps=maps,
        warm_up_map=warm_up_map,
        consent=ConsentForm(consent.text("version", most=40), consent.text("text")),
        instructions=tuple(_instruction(each) for each in table.sections("instructions", Instruction)),
        check=tuple(_question(each) for each in table.sections("check", Question)),
        debriefing=table.text("debriefing"),
        completion=_completion(table.section("completion", Completion)),
        steps=table.whole("steps", 1, 1000),
        warm_up_steps=table.whole("warm_up_steps", 1, 1000),
        warm_up_learner=table.one_of("warm_up_learner", (*LEARNERS, ADAPTIVE) if adaptive else LEARNERS),
        # No cell may occur in two successive steps, so the map must hold two steps.
        candidates=table.whole("candidates", 2, size * size // 2),
        lr=table.number("lr", above=0.0, most=1.0),
        beta=table.number("beta", least=0.0, most=1e9),
        start=table.number("start", above=0.0, most=1e3),
        arrows=table.one_of("arrows", ARROWS),
        palette=table.one_of("palette", PALETTES),
        numbers=table.yes_or_no("numbers"),
        hint=table.yes_or_no("hint"),
        release_after_minutes=table.number("release_after_minutes", above=0.0, most=1e6),
        intake=table.whole("intake", 1, 10**6) if "intake" in content else None,
        adaptive=adaptive,
        volume=table.one_of("volume", VOLUMES),
        world=_physics(table.section("world", Physics)),
    )


def _map(table: TomlTable) -> Map:
    rows = table.get("rewards")
    name = table.text("name", most=40)
    square = isinstance(rows, list) and all(isinstance(row, list) and len(row) == len(rows) for row in rows)
    if not square or not 3 <= len(rows) <= 8:
        raise InputError(f"{table.prefix}rewards must be a square of numbers with 3 to 8 rows")
    for row in rows:
        for cell in row:
            if type(cell) not in (int, float) or not abs(cell) <= 100:
                raise InputError(f"{table.prefix}rewards must be numbers from -100 to 100, not {cell!r}")
    return Map(name, tuple(tuple(float(cell) for cell in row) for row in rows))


def _instruction(table: TomlTable) -> Instruction:
    picture = table.one_of("picture", PICTURES) if "picture" in table.content else None
    return Instruction(table.text("title", most=200), table.text("text"), picture)


def _question(table: TomlTable) -> Question:
    options = table.get("options")
    if not isinstance(options, list) or len(options) < 2 or not all(isinstance(o, str) and o.strip() for o in options):
        raise InputError(f"{table.prefix}options must be a list of at least two answers, each a text")
    return Question(table.text("question"), tuple(options), table.whole("answer", 0, len(options) - 1))


def _completion(table: TomlTable) -> Completion:
    redirect = table.text("redirect") if "redirect" in table.content else None
    if redirect is not None and not re.fullmatch(r"https?://[^\s]+", redirect):
        raise InputError(f"{table.prefix}redirect must be an address that begins with https://, not {redirect!r}")
    return Completion(table.text("code", most=100), redirect)


def _physics(table: TomlTable) -> Physics:
    slip, death = table.number("slip", least=0.0, most=1.0), table.number("death", above=0.0, most=1.0)
    if death + 3 * slip > 1:
        raise InputError(f"{table.prefix}slip and death must be probabilities with death + 3·slip at most 1")
    discount = table.number("discount", least=0.0, most=0.99)
    return Physics(slip, death, discount, table.number("sharpness", above=0.0, most=1e4))


def _plain(value: Any) -> Any:
    """Convert tuples to lists and drop keys without a value."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _toml(content: Mapping[str, Any], prefix: str = "") -> str:
    """Write keys first, then tables: enough TOML for a configuration."""
    lines, tables = [], []
    for key, value in content.items():
        if isinstance(value, dict):
            tables.append(f"\n[{prefix}{key}]\n{_toml(value, f'{prefix}{key}.')}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            tables += [f"\n[[{prefix}{key}]]\n{_toml(item, f'{prefix}{key}.')}" for item in value]
        else:
            lines.append(f"{key} = {_toml_value(value)}\n")
    return "".join(lines + tables)


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value).lower() if isinstance(value, bool) else repr(value)
