"""The overview that the dashboard shows."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from ital_study.config import lineup as _lineup
from ital_study.config import map_orders
from ital_study.config.configuration import Config
from ital_study.data.table import MODES, unreadable_note
from ital_study.robots.rules import StudyRules
from ital_study.server import _flow
from ital_study.server._endings import has_consented
from ital_study.server._flags import FlagsOfPeople, UnreadableRows
from ital_study.server._session import study_facts
from ital_study.store import Store, blinding, operations
from ital_study.store.records import Participant
from ital_study.store.tables import audit, participants, steps
from ital_study.store.times import iso

MOST_LISTED = 2000  # participants on the dashboard; the export includes all
# Pace and curves read every step. They are kept for this many times as long as they took, so that
# an open dashboard takes no more than a twentieth of a processor.
KEPT_TIMES = 20
GONE = ("declined", "failed_check", "left")  # stages of people who will not finish
LISTED_COLUMNS = (
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


_BeliefsByStep = dict[int, list[bytes]]
"""The stored beliefs of all participants who took a step, by step."""


class _OfSteps(NamedTuple):
    """What the dashboard computes from all steps: seconds per step by participant, and curves."""

    pace: Mapping[int, float]
    curves: Mapping[str, Any]


class Dashboard:
    """Recruitment, progress, drop-outs, balance and curves, for the current configuration."""

    def __init__(self, store: Store, config: Config, rules: Callable[[str], StudyRules]) -> None:
        self._store = store
        self._config = config
        self._flags = FlagsOfPeople(store, rules)
        self._unreadable = UnreadableRows(store, rules)
        self._lock = threading.Lock()
        # By mode, and whether curves are hidden: until when it is kept (monotonic), and what was
        # computed.
        self._kept: dict[tuple[str, bool], tuple[float, _OfSteps]] = {}

    def overview(self, mode: str) -> dict[str, Any]:
        """Return everything that the dashboard shows for one mode."""
        config = self._config
        with self._store.reading() as connection:
            everyone = operations.everyone(connection)
            paused = operations.is_paused(connection)
            is_blind = blinding.is_blind(connection, config, mode)
        listed = [each for each in everyone if each.mode == mode]
        # Whoever was seen before that gave the slot back, and counts as a drop-out.
        since = operations.now() - operations.release_after(config)
        of_steps = self._of_steps(mode, is_blind)
        return {
            "study": study_facts(config.public()) | {"name": config.name},
            "mode": mode,
            "paused": paused,
            "counts": dict(Counter(each.stage for each in listed)),
            "modes": _numbers_by_mode(everyone),
            **_recruitment(listed, config, since),
            "flags": config.quality.texts(),
            "participants": self._rows(listed, of_steps.pace, since),
            "dropouts": _drop_outs(listed, since),
            "curves": of_steps.curves,
            "blind": is_blind,
            "warnings": self._warnings(listed),
        }

    def _rows(
        self, listed: Sequence[Participant], pace: Mapping[int, float], since: int
    ) -> list[dict[str, Any]]:
        newest = listed[-MOST_LISTED:]
        rows = [_listed_row(each, pace, self._config, since) for each in newest]
        return self._flags.added(rows, newest)

    def _warnings(self, listed: Sequence[Participant]) -> list[str]:
        unreadable = unreadable_note(self._unreadable.counts(listed))
        others = sum(each.config != self._config.hash for each in listed)
        if not others:
            return unreadable
        of_others = (
            f"{others} participants saw another version of the configuration; balance and curves "
            "leave them out."
        )
        return [of_others, *unreadable]

    def _of_steps(self, mode: str, is_blind: bool) -> _OfSteps:
        """Return pace and curves, from the cache if they were computed a moment ago."""
        # The lock is held while they are computed: two dashboards share one computation.
        with self._lock:
            until, kept = self._kept.get((mode, is_blind), (0.0, _OfSteps({}, {})))
            began = time.monotonic()
            if began <= until:
                return kept
            computed = self._compute(mode, is_blind)
            ended = time.monotonic()
            until = ended + KEPT_TIMES * (ended - began)
            self._kept[mode, is_blind] = (until, computed)
            return computed

    def _compute(self, mode: str, is_blind: bool) -> _OfSteps:
        with self._store.reading() as connection:
            rows = connection.execute(_pace_query(mode))
            pace = {number: float(seconds) for number, seconds in rows}
            # Who is blind gets no curves: hiding them on the page alone would not hide them.
            curves: Mapping[str, Any] = {}
            if not is_blind:
                curves = _mean_distances(connection, self._config, mode)
        return _OfSteps(pace, curves)

    def forget(self) -> None:
        """Clear the cache, because a participant was deleted, excluded or included."""
        with self._lock:
            self._kept.clear()


def is_open(participant: Participant, since: int) -> bool:
    """Return whether a participant is active: on the way, with a slot, and seen recently."""
    if participant.stage not in (*operations.OPEN, operations.WAITING) or participant.usable:
        return False
    if participant.released or participant.excluded is not None:
        return False
    if participant.stage == operations.WAITING:
        return not _flow.is_late(participant)
    return participant.seen_at > since


def is_counted(participant: Participant) -> bool:
    """Return whether a participant is a usable completion, and not excluded by the researcher."""
    return participant.usable and participant.excluded is None


def _numbers_by_mode(everyone: Sequence[Participant]) -> dict[str, int]:
    numbers = Counter(each.mode for each in everyone)
    return {mode: numbers[mode] for mode in MODES}


def _recruitment(listed: Sequence[Participant], config: Config, since: int) -> dict[str, Any]:
    """Return the intake and the balance of orders; other versions of the study do not count."""
    current = [each for each in listed if each.config == config.hash]
    usable = [each for each in current if is_counted(each)]
    on_the_way = [each for each in current if is_open(each, since)]
    joined = sum(has_consented(each) for each in current)
    return {
        "intake": {
            "max": config.intake,
            "joined": joined,
            "usable": len(usable),
        },
        **_balance(usable, on_the_way, config),
    }


def _balance(
    usable: Sequence[Participant],
    on_the_way: Sequence[Participant],
    config: Config,
) -> dict[str, Any]:
    """Return how often each order is in use, and how often each learner came first on each map."""
    # Before the check there is no order yet.
    usable_orders = [each.order for each in usable if each.order]
    open_orders = [each.order for each in on_the_way if each.order]
    usable_by_order = Counter(map(map_orders.robots_of, usable_orders))
    open_by_order = Counter(map(map_orders.robots_of, open_orders))
    in_use = usable_by_order + open_by_order
    firsts = _lineup.firsts(in_use, len(config.maps), config.learners)
    names = [study_map.name for study_map in config.maps]
    return {
        "orders": [
            {
                "order": order,
                "usable": usable_by_order[order],
                "open": open_by_order[order],
            }
            for order in sorted(in_use)
        ],
        "firsts": dict(zip(names, firsts, strict=True)),
        "map_orders": _balance_of_maps(usable_orders, open_orders, config),
    }


def _balance_of_maps(
    usable: Sequence[str], on_the_way: Sequence[str], config: Config
) -> list[dict[str, Any]]:
    """Return how often each balanced order of maps is in use; none if maps come as in the file."""
    usable_rows = Counter(map(map_orders.row_of, usable))
    open_rows = Counter(map(map_orders.row_of, on_the_way))
    rows = []
    for number, row in enumerate(map_orders.rows_of_parts(config.part_sizes)):
        if usable_rows[number] or open_rows[number]:
            maps = [config.maps[index].name for index in row]
            in_use = {"usable": usable_rows[number], "open": open_rows[number]}
            rows.append({"maps": maps, **in_use})
    return rows


def _pace_query(mode: str) -> Any:
    """Return a query of the mean seconds between the steps of a round, by participant."""
    s = steps.c
    # Within rounds, because between them people read, answer questions and rest. A round with n
    # steps has n - 1 gaps, and its span is their sum.
    span_of_round = sa.func.max(s.stored_at) - sa.func.min(s.stored_at)
    gaps_of_round = sa.func.count() - 1
    per_round = (
        sa.select(
            s.participant,
            span_of_round.label("span"),
            gaps_of_round.label("gaps"),
        )
        .join(participants, participants.c.number == s.participant)
        .where(participants.c.mode == mode)
        .group_by(s.participant, s.map, s.learner)
        .subquery()
    )
    span = sa.func.sum(per_round.c.span)
    gaps = sa.func.sum(per_round.c.gaps)
    # Without the casts, PostgreSQL would divide whole numbers.
    milliseconds = sa.cast(span, sa.Float) / sa.cast(gaps, sa.Float)
    seconds = milliseconds / 1000.0
    return (
        sa.select(per_round.c.participant, seconds)
        .group_by(per_round.c.participant)
        .having(gaps > 0)
    )


def _listed_row(
    participant: Participant, pace: Mapping[int, float], config: Config, since: int
) -> dict[str, Any]:
    seconds = pace.get(participant.number)
    if seconds is not None:
        seconds = round(seconds, 2)
    return {
        **{name: getattr(participant, name) for name in LISTED_COLUMNS},
        "total": config.total_steps,
        "started": iso(participant.joined_at),
        "last_seen": iso(participant.seen_at),
        "seconds_per_step": seconds,
        "open": is_open(participant, since),
        "current_version": participant.config == config.hash,
    }


def _drop_outs(listed: Sequence[Participant], since: int) -> list[dict[str, Any]]:
    """Count where participants who will not finish stopped: abandoned, left, declined, failed."""
    stages = Counter(each.stage for each in listed if _has_dropped_out(each, since))
    return [{"stage": stage, "n": n} for stage, n in stages.items()]


def _has_dropped_out(participant: Participant, since: int) -> bool:
    if participant.stage in GONE:
        return True
    if participant.stage not in (*operations.OPEN, operations.WAITING) or participant.usable:
        return False
    return not is_open(participant, since)


def _mean_distances(connection: sa.Connection, config: Config, mode: str) -> dict[str, Any]:
    """Return the mean distance to the truth after every step, over participants who count."""
    beliefs = _beliefs_by_step(connection, config, mode)
    curves: dict[str, Any] = {}
    for study_map in config.maps:
        truth = np.asarray(study_map.rewards, np.float32).ravel()
        curves[study_map.name] = {}
        for learner in config.learners:
            by_step = beliefs[study_map.name, learner]
            curves[study_map.name][learner] = _curve(by_step, truth, config.steps)
    return curves


def _beliefs_by_step(
    connection: sa.Connection, config: Config, mode: str
) -> dict[tuple[str, str], _BeliefsByStep]:
    """Return stored beliefs by map and learner, and by step therein."""
    s = steps.c
    p = participants.c
    query = (
        sa.select(s.map, s.learner, s.step, s.state)
        .join(participants, p.number == s.participant)
        .where(
            p.mode == mode,
            p.config == config.hash,
            p.excluded.is_(None),
        )
    )
    names = {study_map.name for study_map in config.maps}
    beliefs: dict[tuple[str, str], _BeliefsByStep] = defaultdict(lambda: defaultdict(list))
    for map_name, learner, step, state in connection.execute(query):
        if map_name in names:  # not the warm-up
            beliefs[map_name, learner][step].append(state)
    return beliefs


def _curve(
    beliefs: _BeliefsByStep,
    truth: np.ndarray,
    steps: int,
) -> dict[str, Any]:
    """Return the curve of one robot on one map; steps that nobody has taken are left out."""
    taken = [step for step in range(1, steps + 1) if step in beliefs]
    distances = []
    for step in taken:
        # All beliefs of a step are read at once, because there are many: (participant, cell).
        stored = b"".join(beliefs[step])
        believed = np.frombuffer(stored, "<f4").reshape(-1, truth.size)
        distances.append(np.linalg.norm(believed - truth, axis=1))
    return {
        "step": taken,
        "distance_mean": [round(float(of_step.mean()), 4) for of_step in distances],
        "distance_sem": [_standard_error(of_step) for of_step in distances],
        "n": len(distances[0]) if distances else 0,
    }


def _standard_error(values: np.ndarray) -> float | None:
    if len(values) < 2:
        return None
    error = values.std(ddof=1) / np.sqrt(len(values))
    return round(float(error), 4)


def audit_entries(store: Store, most: int = 1000) -> list[dict[str, Any]]:
    """Return audit records, the newest first."""
    newest_first = sa.select(audit).order_by(audit.c.id.desc())
    with store.reading() as connection:
        rows = connection.execute(newest_first.limit(most)).all()
    return [
        {
            "at": iso(row.at),
            "action": row.action,
            "number": row.number,
            "detail": row.detail,
            "who": row.who,
        }
        for row in rows
    ]
