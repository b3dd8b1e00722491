"""Flags of data quality on the dashboard."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ital.study._quality_config import FLAGS
from ital.study._rules import StudyRules
from ital.study.store import Store, exclusions, operations
from ital.study.store.records import Participant

PATIENCE = 0.2  # seconds that one overview spends on new flags; the next one continues


class FlagsOfPeople:
    """Flags of participants who have stopped or finished; each is computed once, because it replays every step."""

    def __init__(self, store: Store, rules: Callable[[str], StudyRules]) -> None:
        self._store, self._rules = store, rules
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, list[str]]] = {}  # by uid: number of steps, and flags

    def added(self, rows: Sequence[dict[str, Any]], people: Sequence[Participant]) -> list[dict[str, Any]]:
        """The rows of the dashboard with their flags; None where they are not known yet."""
        with self._lock:
            self._compute([each for each in people if each.done and each.stage not in operations.OPEN])
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
                self._kept[each.uid] = each.done, [name for name in FLAGS if columns[f"flag_{name}"]]
                if time.monotonic() > until:
                    return
