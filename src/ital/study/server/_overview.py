"""What the dashboard shows."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from ital.study import _orders
from ital.study._config import Config
from ital.study.server import _flow
from ital.study.server._study import study_facts
from ital.study.store import Store
from ital.study.store import _operations as operations
from ital.study.store._operations import Participant
from ital.study.store._tables import audit, participants, steps
from ital.study.store._times import iso

MOST_LISTED = 2000  # participants on the dashboard; the export has all


class Dashboard:
    """Recruitment, progress, drop-outs, balance and learning curves, under today's configuration."""

    def __init__(self, store: Store, config: Config) -> None:
        self._store, self._config = store, config
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, tuple[dict[int, float], dict[str, Any]]]] = {}

    def overview(self, mode: str) -> dict[str, Any]:
        """Everything that the dashboard shows of one mode."""
        config = self._config
        since = operations.now() - operations.release_after(config)
        with self._store.reading() as connection:
            everyone = [Participant(*row) for row in connection.execute(sa.select(participants).order_by("number"))]
            paused = operations.is_paused(connection)
        pace, curves = self._of_steps(mode)
        listed = [one for one in everyone if one.mode == mode]
        mine = [one for one in listed if one.config == config.hash]
        open_now = [one for one in mine if is_open(one, since)]
        taken = Counter(one.order for one in [*(p for p in mine if p.usable), *open_now] if one.order)
        firsts = _orders.firsts(taken, len(config.maps), config.learners)
        return {
            "study": study_facts(config.public()) | {"name": config.name},
            "mode": mode,
            "paused": paused,
            "counts": dict(Counter(one.stage for one in listed)),
            "modes": {name: sum(one.mode == name for one in everyone) for name in operations.MODES},
            "intake": {"max": config.intake, "joined": len(mine), "usable": sum(one.usable for one in mine)},
            "orders": _orders_table(mine, open_now),
            "firsts": {one.name: row for one, row in zip(config.maps, firsts, strict=True)},
            "participants": [_listed(one, pace, config, since) for one in listed[-MOST_LISTED:]],
            "dropouts": _drop_outs(listed, since),
            "curves": curves,
            "warnings": _warnings(listed, config),
        }

    def _of_steps(self, mode: str) -> tuple[dict[int, float], dict[str, Any]]:
        """Pace and curves, which read every step: kept for a while, the longer the more work they are."""
        with self._lock:
            until, kept = self._kept.get(mode, (0.0, ({}, {})))
            began = time.monotonic()
            if began > until:
                with self._store.reading() as connection:
                    pace = {row[0]: row[1] for row in connection.execute(_pace(mode))}
                    kept = pace, _curves(connection, self._config, mode)
                ended = time.monotonic()
                self._kept[mode] = ended + 20 * (ended - began), kept
            return kept

    def forget(self) -> None:
        """Reads every step again next time: somebody was deleted."""
        with self._lock:
            self._kept.clear()


def is_open(one: Participant, since: int) -> bool:
    """Whether a participant is on the way: not at an end, not released, seen not too long ago."""
    return one.stage in operations.OPEN and not one.released and one.seen_at > since


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
    return sa.select(per_round.c.participant, seconds).group_by(per_round.c.participant).having(gaps > 0)


def _listed(one: Participant, pace: dict[int, float], config: Config, since: int) -> dict[str, Any]:
    seconds = pace.get(one.number)
    return {
        "number": one.number,
        "mode": one.mode,
        "teacher": one.teacher,
        "stage": one.stage,
        "done": one.done,
        "total": _flow.total_steps(config),
        "order": one.order,
        "started": iso(one.joined_at),
        "last_seen": iso(one.seen_at),
        "seconds_per_step": None if seconds is None else round(float(seconds), 2),
        "usable": one.usable,
        "released": one.released,
        "open": is_open(one, since),
        "current_version": one.config == config.hash,
    }


def _orders_table(mine: Sequence[Participant], open_now: Sequence[Participant]) -> list[dict[str, Any]]:
    usable = Counter(one.order for one in mine if one.usable)
    on_the_way = Counter(one.order for one in open_now)
    seen = sorted({order for order in (*usable, *on_the_way) if order})
    return [{"order": order, "usable": usable[order], "open": on_the_way[order]} for order in seen]


def _drop_outs(listed: Sequence[Participant], since: int) -> list[dict[str, Any]]:
    """Where those stopped who will not finish: abandoned, left, declined, failed."""
    gone = Counter(
        one.stage
        for one in listed
        if one.stage in ("declined", "failed_check", "left")
        or (one.stage in operations.OPEN and not is_open(one, since))
    )
    return [{"stage": stage, "n": n} for stage, n in gone.items()]


def _curves(connection: sa.Connection, config: Config, mode: str) -> dict[str, Any]:
    """Mean distance to the truth after every step, of usable participants and those on their way."""
    s = steps.c
    query = (
        sa.select(s.map, s.learner, s.step, s.state)
        .join(participants, participants.c.number == s.participant)
        .where(participants.c.mode == mode, participants.c.config == config.hash)
    )
    truths = {one.name: np.asarray(one.rewards, np.float32).ravel() for one in config.maps}
    beliefs: dict[tuple[str, str, int], list[bytes]] = defaultdict(list)
    for name, learner, step, state in connection.execute(query):
        if name in truths:
            beliefs[name, learner, step].append(state)
    curves: dict[str, Any] = {}
    for name, truth in truths.items():
        curves[name] = {}
        for learner in config.learners:
            found = [t for t in range(1, config.steps + 1) if beliefs.get((name, learner, t))]
            stacked = [np.frombuffer(b"".join(beliefs[name, learner, t]), "<f4").reshape(-1, truth.size) for t in found]
            distances = [np.linalg.norm(one - truth, axis=1) for one in stacked]
            curves[name][learner] = {
                "step": found,
                "distance_mean": [round(float(one.mean()), 4) for one in distances],
                "distance_sem": [
                    round(float(one.std(ddof=1) / np.sqrt(len(one))), 4) if len(one) > 1 else None for one in distances
                ],
                "n": len(distances[0]) if distances else 0,
            }
    return curves


def _warnings(listed: Sequence[Participant], config: Config) -> list[str]:
    others = sum(one.config != config.hash for one in listed)
    if not others:
        return []
    return [
        f"{others} participants came under another version of the configuration; balance and curves leave them out."
    ]


def audit_entries(store: Store, most: int = 1000) -> list[dict[str, Any]]:
    """The newest audit records first."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(audit).order_by(audit.c.id.desc()).limit(most)).all()
    return [{"at": iso(row.at), "action": row.action, "number": row.number, "detail": row.detail} for row in rows]
