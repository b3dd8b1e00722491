"""What the dashboard learns about one participant after the other.

These are the flags of data quality, and the number of unreadable rows.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ital_study.config.quality import FLAGS
from ital_study.robots.rules import StudyRules
from ital_study.store import Store, exclusions, operations
from ital_study.store.records import Participant
from ital_study.store.rows import count_unreadable

PATIENCE = 0.2  # seconds that one overview spends on new flags; the next one continues


class _KeptFlags(NamedTuple):
    """The flags of a participant, and the number of steps that they were computed from."""

    done: int
    flags: list[str]


class FlagsOfPeople:
    """Flags of participants who have stopped or finished.

    Each participant's are computed once, because that replays every step.
    """

    def __init__(self, store: Store, rules: Callable[[str], StudyRules]) -> None:
        self._store = store
        self._rules = rules
        self._lock = threading.Lock()
        self._kept: dict[str, _KeptFlags] = {}  # by uid

    def added(
        self,
        rows: Sequence[dict[str, Any]],
        people: Sequence[Participant],
    ) -> list[dict[str, Any]]:
        """Return the rows of the dashboard with their flags; None where they are not known yet."""
        # Flags of somebody who still teaches would be out of date with the next step.
        stopped = [each for each in people if _has_stopped(each)]
        with self._lock:
            self._compute(stopped)
            flags = [self._flags_of(each.uid) for each in people]
        with_flags = []
        for row, flags_of_row in zip(rows, flags, strict=True):
            with_flags.append(row | {"flags": flags_of_row})
        return with_flags

    def _flags_of(self, uid: str) -> list[str] | None:
        kept = self._kept.get(uid)
        if kept is None:
            return None
        return kept.flags

    def _compute(self, people: Sequence[Participant]) -> None:
        missing = [each for each in people if not self._is_current(each)]
        if not missing:
            return
        with self._store.reading() as connection:
            for each in _while_patient(missing[::-1]):  # the newest first
                columns = exclusions.quality_of(connection, self._rules, each)
                flags = [name for name in FLAGS if columns[f"flag_{name}"]]
                self._kept[each.uid] = _KeptFlags(each.done, flags)

    def _is_current(self, participant: Participant) -> bool:
        kept = self._kept.get(participant.uid)
        return kept is not None and kept.done == participant.done


def _has_stopped(participant: Participant) -> bool:
    return participant.done > 0 and participant.stage not in operations.OPEN


class UnreadableRows:
    """How many stored rows of each participant cannot be read.

    Everybody is counted once: what arrives while this server runs has been checked.
    """

    def __init__(self, store: Store, rules: Callable[[str], StudyRules]) -> None:
        self._store = store
        self._rules = rules
        self._lock = threading.Lock()
        self._kept: dict[str, int] = {}  # by uid

    def counts(self, people: Sequence[Participant]) -> dict[int, int]:
        """Return the numbers by participant, as far as they are known yet."""
        with self._lock:
            new = [each for each in people if each.uid not in self._kept]
            self._count(new[::-1])  # the newest first
            counted = [each for each in people if each.uid in self._kept]
            return {each.number: self._kept[each.uid] for each in counted}

    def _count(self, people: Sequence[Participant]) -> None:
        if not people:
            return
        with self._store.reading() as connection:
            for each in _while_patient(people):
                config = self._rules(each.config).config
                self._kept[each.uid] = count_unreadable(connection, config, each)


def _while_patient(people: Sequence[Participant]) -> Iterator[Participant]:
    """Iterate until the time of one overview is spent; at least one participant gets a turn."""
    until = time.monotonic() + PATIENCE
    for each in people:
        yield each
        if time.monotonic() > until:
            return
