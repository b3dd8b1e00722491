"""Looking somebody up: by identity, resume code, completion code or number."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.config.configuration import Config
from ital_study.config.panel import Panel
from ital_study.server import _endings
from ital_study.server._arrival import external_hash
from ital_study.server._security import Keys, plain_code
from ital_study.store import Store, operations
from ital_study.store.records import Participant
from ital_study.store.tables import events, tombstones
from ital_study.store.times import iso

LARGEST = 2**31 - 1
PAY = {
    "finished": "finished",
    "declined": "declined to take part",
    "failed_check": "failed the comprehension check",
    "left": "left early",
}
DOES = {
    "finished": "finishes",
    "declined": "declines",
    "failed_check": "fails the check",
    "left": "leaves early",
}


def look_up(store: Store, secret: bytes, who: str) -> list[dict[str, Any]]:
    """Find participants, and deleted ones.

    Args:
        store: The database.
        secret: Secret of the server that wrote it.
        who: An identity, a resume code, a completion code, or a number; ``#7`` is a number and nothing else.

    Returns:
        What is known about everybody who fits, with how they were found under ``matched``.

    Raises:
        InputError: The database was served with another secret, so that nobody would be found.
    """
    keys, configs = Keys(secret), store.configs()
    if store.key_fingerprint() != keys.fingerprint():
        raise InputError(
            f"{store.name} was served with another key: put that key back into {store.key_file}"
        )
    with store.reading() as connection:
        sought = _Sought(keys, configs, who.strip())
        found = [
            _facts(connection, keys, configs[each.config], each) | {"matched": how}
            for each in operations.everyone(connection)
            if (how := sought.match(each.uid, each.number, each.external_hash, each.resume_hash))
            is not None
        ]
        found += [
            _deleted(row) | {"matched": how, **sought.proven(row.uid)}
            for row in connection.execute(sa.select(tombstones).order_by(tombstones.c.number))
            if (how := sought.match(row.uid, row.number, row.external_hash, None)) is not None
        ]
    return found


def nobody_found(store: Store, who: str) -> str:
    """Why nobody was found.

    Args:
        store: The database.
        who: What was looked for.

    Returns:
        A sentence; it explains a completion code that everybody gets.
    """
    for config in store.configs().values():
        for outcome, code in _endings.fixed_codes(config).items():
            if plain_code(code) == plain_code(who):
                return (
                    f"everybody who {DOES[outcome]} gets this code, so it finds nobody: look for an identity, a resume "
                    "code or a number; with completion.per_person = true everybody gets a code of their own"
                )
    return "nobody was found: those who declined, or never agreed to take part, leave no identity"


class _Sought:
    """Somebody who is looked for; what was typed is hashed at once."""

    def __init__(self, keys: Keys, configs: dict[str, Config], who: str) -> None:
        self.keys = keys
        digits = who.removeprefix("#").strip()
        self.number = int(digits) if digits.isdecimal() and int(digits[:12]) <= LARGEST else None
        self.names = {name for config in configs.values() for name in config.panel.identity} | set(
            Panel().identity
        )
        self.hashes, self.resume_hash, self.code = set[str](), "", ""
        if not who.startswith("#"):
            self.hashes = {external_hash(keys, name, who) for name in self.names}
            self.resume_hash, self.code = keys.resume_hash(who), plain_code(who)
        self.is_code = len(self.code) == len(plain_code(keys.completion_code("", "")))

    def match(self, uid: str, number: int, external: str | None, resume: str | None) -> str | None:
        """How somebody fits; None if they do not."""
        if external is not None and external in self.hashes:
            return "identity"
        if resume is not None and resume == self.resume_hash:
            return "resume code"
        if self.proven(uid):
            return "completion code"
        return "number" if number == self.number else None

    def proven(self, uid: str) -> dict[str, str]:
        """The outcome that the typed completion code proves; empty if it is not one of theirs."""
        outcomes = _endings.OUTCOMES if self.is_code else ()
        return next(
            (
                {"code_proves": each}
                for each in outcomes
                if plain_code(self.keys.completion_code(uid, each)) == self.code
            ),
            {},
        )


def _facts(
    connection: sa.Connection, keys: Keys, config: Config, participant: Participant
) -> dict[str, Any]:
    began, ended = _times(connection, participant)
    outcome = _endings.outcome_of(participant)
    code = (
        None
        if outcome is None
        else _endings.completion(config, keys, participant.uid, outcome)["code"]
    )
    return {
        "number": participant.number,
        "mode": participant.mode,
        "stage": participant.stage,
        "joined": iso(participant.joined_at),
        "last_seen": iso(participant.seen_at),
        "ended": iso(ended),
        "minutes": None if began is None or ended is None else round((ended - began) / 60_000, 1),
        "done": participant.done,
        "total": config.total_steps,
        "language": participant.language,
        "outcome": outcome,
        "code": code,
        "pay": _pay(participant, outcome, code),
        "excluded": participant.excluded,
    }


def _times(connection: sa.Connection, participant: Participant) -> tuple[int | None, int | None]:
    """When somebody agreed to take part, and when their part ended."""
    e = events.c
    mine = (
        sa.select(e.kind, e.at)
        .where(e.participant == participant.number, e.source == "server")
        .order_by(e.number)
    )
    happened = [(row.kind, row.at) for row in connection.execute(mine)]
    began = next((at for kind, at in happened if kind == "consent"), None)
    ended = happened[-1][1] if happened and participant.stage in operations.ENDED else None
    return began, ended


def _pay(participant: Participant, outcome: str | None, code: str | None) -> str:
    if outcome is None:
        return (
            "nothing yet: has not agreed to take part"
            if participant.stage == "consent"
            else "nothing yet: not finished"
        )
    said = (
        "taught all robots"
        if participant.usable and participant.stage != "finished"
        else PAY[outcome]
    )
    return (
        f"{said}: entitled to the code {code}"
        if code is not None
        else f"{said}: the study has no code for this"
    )


def _deleted(row: Any) -> dict[str, Any]:
    return {
        "number": row.number,
        "stage": "deleted",
        "deleted": iso(row.deleted_at),
        "deleted_by": row.by,
        "pay": "not known: the data are deleted; a completion code of their own would still prove it",
    }


def person_lines(person: dict[str, Any]) -> Iterator[str]:
    """What the command line prints about somebody.

    Args:
        person: One of those that :func:`look_up` found.

    Yields:
        Lines.
    """
    yield f"participant {person['number']}: {person['stage']} (found by {person['matched']})"
    if person["stage"] != "deleted":
        yield f"  mode        {person['mode']}"
        yield f"  joined      {person['joined']}"
        yield f"  last seen   {person['last_seen']}"
        yield f"  ended       {person['ended'] or 'not yet'}"
        if person["minutes"] is not None:
            yield f"  duration    {person['minutes']} minutes from consent to end"
        yield f"  progress    {person['done']} of {person['total']} steps"
        yield f"  language    {person['language']}"
        yield f"  excluded    {person['excluded'] or 'no'}"
    else:
        yield f"  deleted     {person['deleted']}, by {person['deleted_by']}"
    if "code_proves" in person:
        yield f"  this code   proves: {PAY[person['code_proves']]}"
    yield f"  pay         {person['pay']}"
