"""The overview that the dashboard shows."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from ital_study.config import orders as _orders
from ital_study.config.configuration import Config
from ital_study.data.table import MODES, unreadable_note
from ital_study.robots.rules import StudyRules
from ital_study.server._endings import has_consented
from ital_study.server._flags import FlagsOfPeople, UnreadableRows
from ital_study.server._page_state import study_facts
from ital_study.store import Store, operations
from ital_study.store.records import Participant
from ital_study.store.tables import audit, participants, steps
from ital_study.store.times import iso

MOST_LISTED = 2000  # participants on the dashboard; the export includes all


class Dashboard:
    """Recruitment, progress, drop-outs, balance and learning curves, for the current configuration."""

    def __init__(self, store: Store, config: Config, rules: Callable[[str], StudyRules]) -> None:
        self._store, self._config = store, config
        self._flags = FlagsOfPeople(store, rules)
        self._unreadable = UnreadableRows(store, rules)
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, tuple[dict[int, float], dict[str, Any]]]] = {}

    def overview(self, mode: str) -> dict[str, Any]:
        """Everything that the dashboard shows for one mode."""
        config = self._config
        since = operations.now() - operations.release_after(config)
        with self._store.reading() as connection:
            everyone = operations.everyone(connection)
            paused = operations.is_paused(connection)
        pace, curves = self._of_steps(mode)
        listed = [each for each in everyone if each.mode == mode]
        shown = listed[-MOST_LISTED:]
        current = [each for each in listed if each.config == config.hash]
        joined = [each for each in current if has_consented(each)]
        open_now = [each for each in current if is_open(each, since)]
        usable = [each for each in current if counts(each)]
        orders = Counter(each.order for each in [*usable, *open_now] if each.order)
        firsts = _orders.firsts(orders, len(config.maps), config.learners)
        return {
            "study": study_facts(config.public()) | {"name": config.name},
            "mode": mode,
            "paused": paused,
            "counts": dict(Counter(each.stage for each in listed)),
            "modes": {name: sum(each.mode == name for each in everyone) for name in MODES},
            "intake": {"max": config.intake, "joined": len(joined), "usable": len(usable)},
            "orders": _orders_table(usable, open_now),
            "firsts": {on.name: row for on, row in zip(config.maps, firsts, strict=True)},
            "flags": config.quality.texts(),
            "participants": self._flags.added(
                [_listed(each, pace, config, since) for each in shown], shown
            ),
            "dropouts": _drop_outs(listed, since),
            "curves": curves,
            "warnings": _warnings(listed, config)
            + unreadable_note(self._unreadable.counts(listed)),
        }

    def _of_steps(self, mode: str) -> tuple[dict[int, float], dict[str, Any]]:
        """Pace and curves, which read every step. They are cached, longer if they take longer to compute."""
        with self._lock:
            until, pace_and_curves = self._kept.get(mode, (0.0, ({}, {})))
            began = time.monotonic()
            if began > until:
                with self._store.reading() as connection:
                    pace = {row[0]: row[1] for row in connection.execute(_pace(mode))}
                    pace_and_curves = pace, _curves(connection, self._config, mode)
                ended = time.monotonic()
                self._kept[mode] = ended + 20 * (ended - began), pace_and_curves
            return pace_and_curves

    def forget(self) -> None:
        """Clear the cache, because a participant was deleted, excluded or included."""
        with self._lock:
            self._kept.clear()


def is_open(participant: Participant, since: int) -> bool:
    """Whether a participant is active: not finished, not released or excluded, and seen recently."""
    on_the_way = (
        participant.stage in operations.OPEN
        and not participant.usable
        and participant.excluded is None
    )
    return on_the_way and not participant.released and participant.seen_at > since


def counts(participant: Participant) -> bool:
    """Whether a participant is a usable completion that the researcher did not exclude."""
    return participant.usable and participant.excluded is None


def _pace(mode: str) -> Any:
    """Mean seconds between the steps of a round, by participant."""
    s = steps.c
    per_round = (
        sa.select(
            s.participant,
            (sa.func.max(s.stored_at) - sa.func.min(s.stored_at)).label("span"),
            (sa.func.count() - 1).label("gaps"),
        )
        .join(participants, participants.c.number == s.participant)
        .where(participants.c.mode == mode)
        .group_by(s.participant, s.map, s.learner)
        .subquery()
    )
    span, gaps = sa.func.sum(per_round.c.span), sa.func.sum(per_round.c.gaps)
    seconds = sa.cast(span, sa.Float) / sa.cast(gaps, sa.Float) / 1000.0
    return (
        sa.select(per_round.c.participant, seconds)
        .group_by(per_round.c.participant)
        .having(gaps > 0)
    )


def _listed(
    participant: Participant, pace: dict[int, float], config: Config, since: int
) -> dict[str, Any]:
    seconds = pace.get(participant.number)
    columns = (
        "number",
        "mode",
        "teacher",
        "stage",
        "done",
        "order",
        "usable",
        "released",
        "excluded",
    )
    return {name: getattr(participant, name) for name in columns} | {
        "total": config.total_steps,
        "started": iso(participant.joined_at),
        "last_seen": iso(participant.seen_at),
        "seconds_per_step": None if seconds is None else round(float(seconds), 2),
        "open": is_open(participant, since),
        "current_version": participant.config == config.hash,
    }


def _orders_table(
    counted: Sequence[Participant], open_now: Sequence[Participant]
) -> list[dict[str, Any]]:
    usable = Counter(each.order for each in counted)
    on_the_way = Counter(each.order for each in open_now)
    orders = sorted({order for order in (*usable, *on_the_way) if order})
    return [
        {"order": order, "usable": usable[order], "open": on_the_way[order]} for order in orders
    ]


def _drop_outs(listed: Sequence[Participant], since: int) -> list[dict[str, Any]]:
    """Where participants who will not finish stopped: abandoned, left, declined, failed."""
    stages = Counter(
        each.stage
        for each in listed
        if each.stage in ("declined", "failed_check", "left")
        or (each.stage in operations.OPEN and not each.usable and not is_open(each, since))
    )
    return [{"stage": stage, "n": n} for stage, n in stages.items()]


def _curves(connection: sa.Connection, config: Config, mode: str) -> dict[str, Any]:
    """Mean distance to the truth after every step, over usable and active participants."""
    s = steps.c
    query = (
        sa.select(s.map, s.learner, s.step, s.state)
        .join(participants, participants.c.number == s.participant)
        .where(
            participants.c.mode == mode,
            participants.c.config == config.hash,
            participants.c.excluded.is_(None),
        )
    )
    truths = {on.name: np.asarray(on.rewards, np.float32).ravel() for on in config.maps}
    beliefs: dict[tuple[str, str, int], list[bytes]] = defaultdict(list)
    for name, learner, step, state in connection.execute(query):
        if name in truths:
            beliefs[name, learner, step].append(state)
    curves: dict[str, Any] = {}
    for name, truth in truths.items():
        curves[name] = {}
        for learner in config.learners:
            taken = [t for t in range(1, config.steps + 1) if beliefs.get((name, learner, t))]
            stacked = [
                np.frombuffer(b"".join(beliefs[name, learner, t]), "<f4").reshape(-1, truth.size)
                for t in taken
            ]
            distances = [np.linalg.norm(each - truth, axis=1) for each in stacked]
            curves[name][learner] = {
                "step": taken,
                "distance_mean": [round(float(at.mean()), 4) for at in distances],
                "distance_sem": [
                    round(float(at.std(ddof=1) / np.sqrt(len(at))), 4) if len(at) > 1 else None
                    for at in distances
                ],
                "n": len(distances[0]) if distances else 0,
            }
    return curves


def _warnings(listed: Sequence[Participant], config: Config) -> list[str]:
    others = sum(each.config != config.hash for each in listed)
    if not others:
        return []
    return [
        f"{others} participants saw another version of the configuration; balance and curves leave them out."
    ]


def audit_entries(store: Store, most: int = 1000) -> list[dict[str, Any]]:
    """The newest audit records first."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(audit).order_by(audit.c.id.desc()).limit(most)).all()
    return [
        {"at": iso(row.at), "action": row.action, "number": row.number, "detail": row.detail}
        for row in rows
    ]
