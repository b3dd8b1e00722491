"""What differs between two configurations, in one line per key."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from ital_study.config.configuration import Config
from ital_study.config.toml import toml_content

LONGEST = 40  # characters of a value that is shown; longer ones are only said to differ


def differences(old: Config, new: Config) -> list[str]:
    """List what differs between two versions of a study.

    Args:
        old: The earlier version.
        new: The later one.

    Returns:
        One line per key, in the order of the keys.
    """
    before = dict(_values(toml_content(dataclasses.asdict(old))))
    after = dict(_values(toml_content(dataclasses.asdict(new))))
    lines = []
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) == after.get(key):
            continue
        lines.append(f"{key}: {_shown(before.get(key))} → {_shown(after.get(key))}")
    return lines


def _values(content: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over the values of a configuration, each with its key; short lists are values."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _values(value, f"{key}.{name}".removeprefix("."))
    elif isinstance(content, list) and any(isinstance(item, dict) for item in content):
        for number, item in enumerate(content, start=1):
            yield from _values(item, f"{key}[{number}]")
    else:
        yield key, content


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = repr(value)
    if len(text) <= LONGEST:
        return text
    if isinstance(value, str):
        return "another text"
    return "other values"
