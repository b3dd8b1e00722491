"""What the dashboard learns about participants one after the other: flags of data quality, and unreadable rows."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ital_study.config.quality import FLAGS
from ital_study.robots.rules import StudyRules
from ital_study.store import Store, exclusions, operations
from ital_study.store.records import Participant
from ital_study.store.rows import count_unreadable

PATIENCE = 0.2  # seconds that one overview spends on new flags; the next one continues


class FlagsOfPeople:
    """Flags of participants who have stopped or finished; each is computed once, because it replays every step."""

    def __init__(self, store: Store, rules: Callable[[str], StudyRules]) -> None:
        self._store, self._rules = store, rules
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, list[str]]] = {}  # by uid: number of steps, and flags

    def added(
        self, rows: Sequence[dict[str, Any]], people: Sequence[Participant]
    ) -> list[dict[str, Any]]:
        """The rows of the dashboard with their flags; None where they are not known yet."""
        with self._lock:
            self._compute(
                [each for each in people if each.done and each.stage not in operations.OPEN]
            )
            return [
                row | {"flags": self._kept[each.uid][1] if each.uid in self._kept else None}
                for row, each in zip(rows, people, strict=True)
            ]

    def _compute(self, people: Sequence[Participant]) -> None:
        until = time.monotonic() + PATIENCE
        missing = [each for each in people if self._kept.get(each.uid, (-1, []))[0] != each.done]
        if not missing:
            return
        with self._store.reading() as connection:
            for each in reversed(missing):  # the newest first
                columns = exclusions.quality_of(connection, self._rules, each)
                self._kept[each.uid] = (
                    each.done,
                    [name for name in FLAGS if columns[f"flag_{name}"]],
                )
                if time.monotonic() > until:
                    return


class UnreadableRows:
    """How many stored rows of each participant cannot be read.

    Everybody is counted once: what arrives while this server runs has been checked.
    """

    def __init__(self, store: Store, rules: Callable[[str], StudyRules]) -> None:
        self._store, self._rules = store, rules
        self._lock = threading.Lock()
        self._kept: dict[str, int] = {}  # by uid

    def counts(self, people: Sequence[Participant]) -> dict[int, int]:
        """The numbers by participant, as far as they are known yet."""
        with self._lock:
            self._count([each for each in reversed(people) if each.uid not in self._kept])
            return {each.number: self._kept[each.uid] for each in people if each.uid in self._kept}

    def _count(self, people: Sequence[Participant]) -> None:
        if not people:
            return
        until = time.monotonic() + PATIENCE
        with self._store.reading() as connection:
            for each in people:
                config = self._rules(each.config).config
                self._kept[each.uid] = count_unreadable(connection, config, each)
                if time.monotonic() > until:
                    return
