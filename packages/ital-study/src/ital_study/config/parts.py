"""A study in several sessions: its parts, each with maps and the days between."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ital.errors import InputError
from ital_study.config.toml import TomlTable

LONGEST = 3650.0  # days


@dataclass(frozen=True)
class StudyPart:
    """One session of a study: section ``[[parts]]``.

    Attributes:
        maps: Names of its maps.
        after_days: Number of days after the end of the part before, at which it opens.
        within_days: Number of days for which it stays open; None: forever.
    """

    maps: tuple[str, ...]
    after_days: float = 0.0
    within_days: float | None = None


def parts_of(table: TomlTable, maps: Sequence[str]) -> tuple[StudyPart, ...]:
    """Read ``[[parts]]``: together they have all maps, in the order of the file.

    Args:
        table: The whole configuration.
        maps: Names of the maps.

    Returns:
        The parts; none if the study has one session.
    """
    if "parts" not in table.content:
        return ()
    parts = tuple(_part_in(each) for each in table.sections("parts", StudyPart))
    if len(parts) < 2:
        raise InputError(f"{table.prefix}parts must be two or more: a study without has one")
    if parts[0].after_days or parts[0].within_days is not None:
        raise InputError(
            f"{table.prefix}parts[1] begins the study: after_days and within_days are for later "
            "parts"
        )
    named = list(itertools.chain.from_iterable(part.maps for part in parts))
    if named != list(maps):
        raise InputError(
            f"{table.prefix}parts must name every map once, in the order of the file: "
            f"{', '.join(maps)}, not {', '.join(named)}"
        )
    return parts


def _part_in(table: TomlTable) -> StudyPart:
    maps = table.get("maps")
    if not isinstance(maps, list) or not maps or not all(isinstance(name, str) for name in maps):
        raise InputError(f"{table.prefix}maps must be a list of names of maps")
    within = None
    if "within_days" in table.content:
        within = table.number("within_days", above=0.0, most=LONGEST)
    return StudyPart(tuple(maps), table.number("after_days", least=0.0, most=LONGEST), within)
