"""One table of a TOML file: each key is checked when it is read, and messages name the key; and writing TOML."""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ital.errors import InputError


class TomlTable:
    """A table of the file. Reads keys one by one, and raises for keys that the dataclass ``like`` does not have."""

    def __init__(self, prefix: str, content: Any, like: type) -> None:
        if not isinstance(content, dict):
            raise InputError(f"{prefix.removesuffix('.')} must be a table of keys, not {content!r}")
        self.prefix, self.content = prefix, content
        fields = dataclasses.fields(like)
        self.defaults = {
            field.name: field.default
            for field in fields
            if field.default is not dataclasses.MISSING
        }
        self.defaults |= {
            field.name: None for field in fields if field.default_factory is not dataclasses.MISSING
        }
        unknown = [key for key in content if key not in {field.name for field in fields}]
        if unknown:
            allowed = ", ".join(field.name for field in fields)
            raise InputError(f"unknown key {prefix}{unknown[0]}: the keys here are {allowed}")

    def get(self, key: str) -> Any:
        """The unchecked value, or the default."""
        if key not in self.content and key not in self.defaults:
            raise InputError(f"the key {self.prefix}{key} is missing")
        return self.content.get(key, self.defaults.get(key))

    def text(self, key: str, most: int = 20_000) -> str:
        """A text that is not empty; surrounding blanks are removed."""
        value = self.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            raise InputError(
                f"{self.prefix}{key} must be a text of 1 to {most} characters, not {_short(value)}"
            )
        return value.strip()

    def slug(self, key: str) -> str:
        """A short name that is fit for a file."""
        value = self.text(key, most=60)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
            raise InputError(
                f"{self.prefix}{key} may contain only letters, digits, - and _, not {value!r}"
            )
        return value

    def whole(self, key: str, least: int, most: int) -> int:
        """A whole number in a range."""
        value = self.get(key)
        if type(value) is not int or not least <= value <= most:
            raise InputError(
                f"{self.prefix}{key} must be a whole number from {least} to {most}, not {_short(value)}"
            )
        return value

    def number(
        self, key: str, *, above: float = -math.inf, least: float = -math.inf, most: float
    ) -> float:
        """A finite number in a range."""
        value = self.get(key)
        if type(value) not in (int, float) or not (above < value and least <= value <= most):
            lower = f"above {above:g}" if above > -math.inf else f"at least {least:g}"
            raise InputError(
                f"{self.prefix}{key} must be a number {lower}, at most {most:g}, not {_short(value)}"
            )
        return float(value)

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        """One of a few words."""
        value = self.get(key)
        if value not in allowed:
            raise InputError(
                f"{self.prefix}{key} must be one of {', '.join(allowed)}, not {_short(value)}"
            )
        return value

    def yes_or_no(self, key: str) -> bool:
        """True or false."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise InputError(f"{self.prefix}{key} must be true or false, not {_short(value)}")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of at least two texts."""
        value = self.get(key)
        if (
            not isinstance(value, list)
            or len(value) < 2
            or not all(isinstance(o, str) and o.strip() for o in value)
        ):
            raise InputError(
                f"{self.prefix}{key} must be a list of at least two answers, each a text"
            )
        return value

    def tables(self, key: str, like: type) -> dict[str, "TomlTable"]:
        """The tables of a table, by name; none if the key is left out."""
        tables = self.content.get(key, {})
        if not isinstance(tables, dict):
            raise InputError(f"{self.prefix}{key} must be written as tables [{key}.NAME]")
        return {
            name: TomlTable(f"{self.prefix}{key}.{name}.", table, like)
            for name, table in tables.items()
        }

    def section(self, key: str, like: type) -> "TomlTable":
        """The table under a key; an empty one if the key may be left out."""
        content = self.content.get(key, {}) if key in self.defaults else self.get(key)
        return TomlTable(f"{self.prefix}{key}.", content, like)

    def sections(self, key: str, like: type) -> list["TomlTable"]:
        """The tables of a list; at least one."""
        tables = self.get(key)
        if not isinstance(tables, list) or not tables:
            raise InputError(f"{self.prefix}{key} must be written as one or more tables [[{key}]]")
        return [
            TomlTable(f"{self.prefix}{key}[{i + 1}].", table, like)
            for i, table in enumerate(tables)
        ]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def plain(value: Any) -> Any:
    """Convert tuples to lists and drop keys without a value."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def toml_text(content: Mapping[str, Any], prefix: str = "") -> str:
    """Write keys first, then tables: enough TOML for a configuration."""
    lines, tables = [], []
    for key, value in content.items():
        if isinstance(value, dict):
            tables.append(f"\n[{prefix}{key}]\n{toml_text(value, f'{prefix}{key}.')}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            tables += [
                f"\n[[{prefix}{key}]]\n{toml_text(item, f'{prefix}{key}.')}" for item in value
            ]
        else:
            lines.append(f"{_key(key)} = {_value(value)}\n")
    return "".join(lines + tables)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value).lower() if isinstance(value, bool) else repr(value)
