"""Tables of a TOML file, whose keys are checked when they are read, and TOML text."""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ital.errors import InputError


class TomlTable:
    """A table of the file. Keys are read one by one; messages name them.

    Args:
        prefix: What comes before a key in messages, such as ``panel.``.
        content: What the file says.
        like: The dataclass whose fields are the keys; keys with a default may be left out.

    Raises:
        InputError: The content is no table, or has a key that the dataclass does not have.
    """

    def __init__(self, prefix: str, content: Any, like: type) -> None:
        if not isinstance(content, dict):
            name = prefix.removesuffix(".")
            raise InputError(f"{name} must be a table of keys, not {content!r}")
        self.prefix = prefix
        self.content = content
        self.defaults: dict[str, Any] = {}
        fields = dataclasses.fields(like)
        for field in fields:
            if field.default is not dataclasses.MISSING:
                self.defaults[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                # A section that may be left out: it is read as an empty table, never as this value.
                self.defaults[field.name] = None
        allowed = [field.name for field in fields]
        for key in content:
            if key not in allowed:
                keys = ", ".join(allowed)
                raise InputError(f"unknown key {prefix}{key}: the keys here are {keys}")

    def get(self, key: str) -> Any:
        """Return the unchecked value, or the default."""
        if key not in self.content and key not in self.defaults:
            raise InputError(f"the key {self.prefix}{key} is missing")
        return self.content.get(key, self.defaults.get(key))

    def text(self, key: str, most: int = 20_000) -> str:
        """Read a text that is not empty; surrounding blanks are removed."""
        value = self.get(key)
        is_short_enough = isinstance(value, str) and len(value) <= most
        if not is_short_enough or not value.strip():
            raise self._wrong(key, f"a text of 1 to {most} characters")
        return value.strip()

    def slug(self, key: str) -> str:
        """Read a short name that is fit for a file."""
        value = self.text(key, most=60)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
            raise InputError(
                f"{self.prefix}{key} may contain only letters, digits, - and _, not {value!r}"
            )
        return value

    def whole(self, key: str, least: int, most: int) -> int:
        """Read a whole number in a range."""
        value = self.get(key)
        # The type itself: True is an int for isinstance.
        if type(value) is not int or not least <= value <= most:
            raise self._wrong(key, f"a whole number from {least} to {most}")
        return value

    def number(
        self,
        key: str,
        *,
        above: float = -math.inf,
        least: float = -math.inf,
        most: float,
    ) -> float:
        """Read a finite number in a range: above a bound, or at least another one."""
        value = self.get(key)
        # NaN compares false, and so lies in no range.
        is_number = type(value) in (int, float)
        if is_number and above < value and least <= value <= most:
            return float(value)
        lower = f"at least {least:g}"
        if above > -math.inf:
            lower = f"above {above:g}"
        raise self._wrong(key, f"a number {lower}, at most {most:g}")

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        """Read one of a few words."""
        value = self.get(key)
        if value not in allowed:
            words = ", ".join(allowed)
            raise self._wrong(key, f"one of {words}")
        return value

    def yes_or_no(self, key: str) -> bool:
        """Read true or false."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def _wrong(self, key: str, expected: str) -> InputError:
        """Return the error of a value that is not what is expected; the caller raises it."""
        value = _short(self.get(key))
        return InputError(f"{self.prefix}{key} must be {expected}, not {value}")

    def texts(self, key: str) -> list[str]:
        """Read a list of at least two texts."""
        value = self.get(key)
        has_several = isinstance(value, list) and len(value) >= 2
        if not has_several or not all(map(_is_text, value)):
            raise InputError(
                f"{self.prefix}{key} must be a list of at least two answers, each a text"
            )
        return value

    def tables(self, key: str, like: type) -> dict[str, "TomlTable"]:
        """Read the tables of a table, by name; none if the key is left out."""
        tables = self.content.get(key, {})
        if not isinstance(tables, dict):
            raise InputError(f"{self.prefix}{key} must be written as tables [{key}.NAME]")
        by_name = {}
        for name, table in tables.items():
            prefix = f"{self.prefix}{key}.{name}."
            by_name[name] = TomlTable(prefix, table, like)
        return by_name

    def section(self, key: str, like: type) -> "TomlTable":
        """Read the table under a key; an empty one if the key may be left out and is."""
        if key in self.defaults:
            content = self.content.get(key, {})
        else:
            content = self.get(key)
        return TomlTable(f"{self.prefix}{key}.", content, like)

    def sections(self, key: str, like: type) -> list["TomlTable"]:
        """Read the tables of a list; at least one."""
        tables = self.get(key)
        if not isinstance(tables, list) or not tables:
            raise InputError(f"{self.prefix}{key} must be written as one or more tables [[{key}]]")
        in_order = []
        for number, table in enumerate(tables, start=1):
            prefix = f"{self.prefix}{key}[{number}]."
            in_order.append(TomlTable(prefix, table, like))
        return in_order


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _short(value: Any) -> str:
    text = repr(value)
    if len(text) <= 60:
        return text
    return text[:57] + "…"


def toml_content(value: Any) -> Any:
    """Return a value as TOML can hold it: tuples become lists, keys without a value are dropped."""
    if isinstance(value, dict):
        present = {key: item for key, item in value.items() if item is not None}
        return {key: toml_content(item) for key, item in present.items()}
    if isinstance(value, list | tuple):
        return [toml_content(item) for item in value]
    return value


def toml_text(content: Mapping[str, Any], prefix: str = "") -> str:
    """Return the text of a TOML file: enough TOML for a configuration.

    Args:
        content: Values by key.
        prefix: Name of the table that holds them, with a dot at its end.

    Returns:
        Keys first, then tables: a key that followed a table would belong to it.
    """
    lines = []
    tables = []
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            inside = toml_text(value, f"{name}.")
            tables.append(f"\n[{name}]\n{inside}")
        elif _is_list_of_tables(value):
            for item in value:
                inside = toml_text(item, f"{name}.")
                tables.append(f"\n[[{name}]]\n{inside}")
        else:
            lines.append(f"{_toml_key(key)} = {_toml_value(value)}\n")
    return "".join(lines + tables)


def _is_list_of_tables(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[0], dict)


def _toml_key(key: str) -> str:
    is_bare = key.replace("_", "").replace("-", "").isalnum()
    if is_bare:
        return key
    return json.dumps(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        items = map(_toml_value, value)
        return f"[{', '.join(items)}]"
    if isinstance(value, str):
        # TOML's texts are JSON's, but for the control character that JSON leaves as it is.
        text = json.dumps(value, ensure_ascii=False)
        return text.replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return repr(value).lower()
    return repr(value)
