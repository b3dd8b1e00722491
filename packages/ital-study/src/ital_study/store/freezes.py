"""Frozen plans: what was decided before the data came, and what was changed afterwards."""

import json
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from ital_study.config.configuration import Config
from ital_study.config.differences import differences
from ital_study.config.load import config_of, parse_config
from ital_study.store import blinding, operations
from ital_study.store.tables import audit, configurations, freezes
from ital_study.store.times import iso

FORMAT = "ital study freeze 1"
# What researchers do after a freeze that a reader of the results should know.
TOLD = {
    "excluded": "participant {number} was excluded: {detail}",
    "included": "participant {number} was included again",
    "imported": "data were imported: {detail}",
    "restored": "the database was restored: {detail}",
    "unblinded": "the curves by condition were looked at before the end of the intake",
}


class StoredFreeze(NamedTuple):
    """A frozen plan.

    Attributes:
        id: Number of the freeze, from 1.
        at: Time of freezing.
        content: The plan, as TOML.
        signature: Signature of the plan by the key of the study.
    """

    id: int
    at: int
    content: str
    signature: str

    @property
    def plan(self) -> dict[str, Any]:
        """The plan as a dictionary."""
        return tomllib.loads(self.content)

    @property
    def config(self) -> Config:
        """The configuration that was frozen."""
        return config_of(self.plan["study"])


class Change(NamedTuple):
    """Something that was changed after a freeze, and when."""

    at: int
    what: str


def add(connection: sa.Connection, at: int, content: str, signature: str) -> StoredFreeze:
    """Store a frozen plan; the audit has its signature too.

    Args:
        connection: The transaction.
        at: Time of freezing.
        content: The plan.
        signature: Its signature.

    Returns:
        The stored freeze.
    """
    number = len(listed(connection)) + 1
    frozen = StoredFreeze(number, at, content, signature)
    connection.execute(freezes.insert().values(frozen._asdict()))
    operations.note(connection, "frozen", detail=signature)
    return frozen


def listed(connection: sa.Connection) -> list[StoredFreeze]:
    """Return the frozen plans, the first one first."""
    query = sa.select(freezes).order_by(freezes.c.id)
    return [StoredFreeze(*row) for row in connection.execute(query)]


def changes(connection: sa.Connection, first: StoredFreeze) -> list[Change]:
    """Return what was changed after a freeze: configurations, exclusions, later freezes.

    Args:
        connection: The transaction.
        first: The freeze.

    Returns:
        Changes in the order of time.
    """
    found = [
        *_changes_of_configuration(connection, first),
        *_actions(connection, first.at),
        *(
            Change(later.at, f"the plan was frozen again ({later.signature[:12]})")
            for later in listed(connection)
            if later.id > first.id
        ),
    ]
    return sorted(found, key=lambda change: change.at)


def _changes_of_configuration(connection: sa.Connection, first: StoredFreeze) -> Iterator[Change]:
    """Return each version of the configuration that came later, by what differs."""
    frozen = first.config
    query = sa.select(configurations).order_by(configurations.c.added_at)
    for row in connection.execute(query.where(configurations.c.added_at > first.at)):
        if row.hash == frozen.hash:
            continue
        config = parse_config(row.text, "the stored configuration")
        for line in differences(frozen, config):
            yield Change(row.added_at, f"configuration {row.hash[:12]}: {line}")


def _actions(connection: sa.Connection, since: int) -> Iterator[Change]:
    a = audit.c
    query = sa.select(audit).where(a.at > since, a.action.in_(TOLD)).order_by(a.id)
    for row in connection.execute(query):
        yield Change(row.at, TOLD[row.action].format(number=row.number, detail=row.detail))


def summary(connection: sa.Connection) -> dict[str, Any] | None:
    """Return the first freeze and what was changed afterwards, for an export or a report.

    Args:
        connection: The transaction.

    Returns:
        Values that can be written as JSON; None if nothing was frozen.
    """
    all_freezes = listed(connection)
    if not all_freezes:
        return None
    first = all_freezes[0]
    plan = first.plan
    return {
        "frozen_at": iso(first.at),
        "signature": first.signature,
        "participants": plan["participants"],
        "test": plan["test"],
        "exclusion": plan["exclusion"],
        "unblinded_at": iso(blinding.unblinded_at(connection)),
        "changes": [
            {"at": iso(change.at), "what": change.what} for change in changes(connection, first)
        ],
        "content": first.content,
    }


def summary_text(connection: sa.Connection) -> str | None:
    """Return :func:`summary` as JSON; None if nothing was frozen."""
    told = summary(connection)
    if told is None:
        return None
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"
