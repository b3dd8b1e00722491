"""The study's configuration: one TOML file, every key checked, its hash stored with each participant."""

import dataclasses
import functools
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ital.errors import InputError

LEARNERS = ("naive", "aware")  # of every study
ADAPTIVE = "adaptive"  # the third, where the key of that name is true
ARROWS = ("boltzmann", "optimal")
PALETTES = ("safe", "paper")
PICTURES = ("maps", "arrow", "controls", "local-global", "belief", "whole-map")  # that the pages can draw

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Map:
    """A named square of rewards, first row at the top."""

    name: str
    rewards: Rows


@dataclass(frozen=True)
class Physics:
    """How the robot moves and plans: section ``[world]``."""

    slip: float = 0.06
    death: float = 0.02
    discount: float = 0.5
    sharpness: float = 200.0


@dataclass(frozen=True)
class ConsentForm:
    """What participants agree to. A new text wants a new version."""

    version: str
    text: str


@dataclass(frozen=True)
class Instruction:
    """One page of instructions, with the name of a drawing where there is one."""

    title: str
    text: str
    picture: str | None = None


@dataclass(frozen=True)
class Question:
    """A question of the comprehension check; ``answer`` is the index of the right option, from 0."""

    question: str
    options: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class Completion:
    """What a participant gets at the end: a code, and where to send them, if anywhere."""

    code: str
    redirect: str | None = None


@dataclass(frozen=True)
class Config:
    """A study. Made by :func:`load_config`; ``docs/study.md`` explains every key."""

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
        """The maps that count, then the one of the warm-up."""
        return (*self.maps, self.warm_up_map)

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the content, whatever the layout of the file."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """The content as plain lists, dictionaries, text and numbers, without keys that are not set."""
        content = dataclasses.asdict(self)
        if not self.adaptive:
            del content["adaptive"]  # studies that began before there was this key keep their hash
        return _plain(content)

    def public(self) -> dict[str, Any]:
        """What a participant's browser may know: no answers, no kinds of learner, no seed, nothing of the end."""
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
            "check": [{"question": one.question, "options": list(one.options)} for one in self.check],
        }

    def to_toml(self) -> str:
        """The content as a file that :func:`load_config` reads back to the same hash."""
        return _toml(self.as_dict())


def load_config(path: str | Path | None = None) -> Config:
    """Reads a study from a TOML file, or the one of its name that comes with ital; None is the paper's.

    Refuses with one line that names the file and the key.
    """
    shipped = "paper" if path is None else str(path)
    if shipped in ("paper", "short"):
        file = resources.files(__package__) / "configs" / f"{shipped}.toml"
        return parse_config(file.read_text("utf-8"), file.name)
    try:
        text = Path(shipped).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InputError(f"cannot read the configuration {path}: {reason}") from None
    return parse_config(text, str(path))


def parse_config(text: str, name: str = "study.toml") -> Config:
    """Reads a study from the text of a TOML file; ``name`` is the file's name in messages."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}") from None
    try:
        return _config(content)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _config(content: Mapping[str, Any]) -> Config:
    """Checks every key and puts them together."""
    read = _Section("", content, Config)
    maps = tuple(_map(_Section(f"maps[{i + 1}].", table, Map)) for i, table in enumerate(read.tables("maps")))
    warm_up_map = _map(_Section("warm_up_map.", read.table("warm_up_map"), Map))
    every = (*maps, warm_up_map)
    size = len(warm_up_map.rewards)
    for each in every:
        if len(each.rewards) != size:
            raise InputError(
                f"maps must all have one size, but {each.name!r} has {len(each.rewards)} rows "
                f"and {warm_up_map.name!r} has {size}"
            )
    names = [each.name for each in every]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"maps and warm_up_map must have names of their own, but {twice!r} is there twice")
    consent, completion = (read.table(name) for name in ("consent", "completion"))
    adaptive = read.yes_or_no("adaptive")
    return Config(
        name=read.slug("name"),
        title=read.text("title"),
        seed=read.whole("seed", 0, 2**32 - 1),
        maps=maps,
        warm_up_map=warm_up_map,
        consent=_consent(_Section("consent.", consent, ConsentForm)),
        instructions=tuple(
            _instruction(_Section(f"instructions[{i + 1}].", table, Instruction))
            for i, table in enumerate(read.tables("instructions"))
        ),
        check=tuple(
            _question(_Section(f"check[{i + 1}].", table, Question)) for i, table in enumerate(read.tables("check"))
        ),
        debriefing=read.text("debriefing"),
        completion=_completion(_Section("completion.", completion, Completion)),
        steps=read.whole("steps", 1, 1000),
        warm_up_steps=read.whole("warm_up_steps", 1, 1000),
        warm_up_learner=read.one_of("warm_up_learner", (*LEARNERS, ADAPTIVE) if adaptive else LEARNERS),
        # No cell may come twice in a row, so two steps must fit into the map.
        candidates=read.whole("candidates", 2, size * size // 2),
        lr=read.number("lr", above=0.0, most=1.0),
        beta=read.number("beta", least=0.0, most=1e9),
        start=read.number("start", above=0.0, most=1e3),
        arrows=read.one_of("arrows", ARROWS),
        palette=read.one_of("palette", PALETTES),
        numbers=read.yes_or_no("numbers"),
        hint=read.yes_or_no("hint"),
        release_after_minutes=read.number("release_after_minutes", above=0.0, most=1e6),
        intake=read.whole("intake", 1, 10**6) if "intake" in content else None,
        adaptive=adaptive,
        world=_physics(_Section("world.", read.table("world", {}), Physics)),
    )


def _map(read: "_Section") -> Map:
    rows = read.get("rewards")
    name = read.text("name", most=40)
    square = isinstance(rows, list) and all(isinstance(row, list) and len(row) == len(rows) for row in rows)
    if not square or not 3 <= len(rows) <= 8:
        raise InputError(f"{read.prefix}rewards must be a square of numbers, 3 to 8 rows of as many")
    for row in rows:
        for cell in row:
            if isinstance(cell, bool) or not isinstance(cell, int | float) or not abs(cell) <= 100:
                raise InputError(f"{read.prefix}rewards must be numbers from -100 to 100, not {cell!r}")
    return Map(name, tuple(tuple(float(cell) for cell in row) for row in rows))


def _consent(read: "_Section") -> ConsentForm:
    return ConsentForm(read.text("version", most=40), read.text("text"))


def _instruction(read: "_Section") -> Instruction:
    picture = read.one_of("picture", PICTURES) if read.has("picture") else None
    return Instruction(read.text("title", most=200), read.text("text"), picture)


def _question(read: "_Section") -> Question:
    options = read.get("options")
    if not isinstance(options, list) or len(options) < 2 or not all(isinstance(o, str) and o.strip() for o in options):
        raise InputError(f"{read.prefix}options must be a list of two answers at least, each a text")
    return Question(read.text("question"), tuple(options), read.whole("answer", 0, len(options) - 1))


def _completion(read: "_Section") -> Completion:
    redirect = read.text("redirect") if read.has("redirect") else None
    if redirect is not None and not re.fullmatch(r"https?://[^\s]+", redirect):
        raise InputError(f"{read.prefix}redirect must be an address that begins with https://, not {redirect!r}")
    return Completion(read.text("code", most=100), redirect)


def _physics(read: "_Section") -> Physics:
    slip, death = read.number("slip", least=0.0, most=1.0), read.number("death", above=0.0, most=1.0)
    if death + 3 * slip > 1:
        raise InputError(f"{read.prefix}slip and death must be probabilities with death + 3·slip at most 1")
    discount = read.number("discount", least=0.0, most=0.99)
    return Physics(slip, death, discount, read.number("sharpness", above=0.0, most=1e4))


class _Section:
    """A table of the file: reads its keys one by one, and refuses those that the dataclass ``like`` does not know."""

    def __init__(self, prefix: str, content: Any, like: type) -> None:
        if not isinstance(content, dict):
            raise InputError(f"{prefix.removesuffix('.')} must be a table of keys, not {content!r}")
        self.prefix, self.content = prefix, content
        fields = dataclasses.fields(like)
        self.defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
        unknown = [key for key in content if key not in {field.name for field in fields}]
        if unknown:
            allowed = ", ".join(field.name for field in fields)
            raise InputError(f"unknown key {prefix}{unknown[0]}: the keys here are {allowed}")

    def has(self, key: str) -> bool:
        """Whether the file sets the key."""
        return key in self.content

    def get(self, key: str) -> Any:
        """The value as it stands, or the default."""
        if key not in self.content and key not in self.defaults:
            raise InputError(f"the key {self.prefix}{key} is missing")
        return self.content.get(key, self.defaults.get(key))

    def text(self, key: str, most: int = 20_000) -> str:
        """A text that is not empty; blanks around it do not count."""
        value = self.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            raise InputError(f"{self.prefix}{key} must be a text of 1 to {most} characters, not {_short(value)}")
        return value.strip()

    def slug(self, key: str) -> str:
        """A short name that is fit for a file."""
        value = self.text(key, most=60)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
            raise InputError(f"{self.prefix}{key} may hold letters, digits, - and _ only, not {value!r}")
        return value

    def whole(self, key: str, least: int, most: int) -> int:
        """A whole number in a range."""
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InputError(f"{self.prefix}{key} must be a whole number from {least} to {most}, not {_short(value)}")
        return value

    def number(self, key: str, *, above: float = -math.inf, least: float = -math.inf, most: float) -> float:
        """A finite number in a range."""
        value = self.get(key)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or not (above < value and least <= value <= most)
        ):
            lower = f"above {above:g}" if above > -math.inf else f"at least {least:g}"
            raise InputError(f"{self.prefix}{key} must be a number {lower}, at most {most:g}, not {_short(value)}")
        return float(value)

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        """One of a few words."""
        value = self.get(key)
        if value not in allowed:
            raise InputError(f"{self.prefix}{key} must be one of {', '.join(allowed)}, not {_short(value)}")
        return value

    def yes_or_no(self, key: str) -> bool:
        """True or false."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise InputError(f"{self.prefix}{key} must be true or false, not {_short(value)}")
        return value

    def table(self, key: str, default: Any = None) -> Any:
        """A table, ``default`` if there is none."""
        return self.content.get(key, default) if default is not None else self.get(key)

    def tables(self, key: str) -> list[Any]:
        """A list of tables, one at least."""
        value = self.get(key)
        if not isinstance(value, list) or not value:
            raise InputError(f"{self.prefix}{key} must be written as one or more tables [[{key}]]")
        return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _plain(value: Any) -> Any:
    """Tuples as lists, and no keys without a value."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _toml(content: Mapping[str, Any], prefix: str = "") -> str:
    """Keys first, then tables: enough of TOML for a configuration."""
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
