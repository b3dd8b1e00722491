"""Looking somebody up: by identity, resume code, completion code or number."""

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.config.configuration import Config
from ital_study.config.panel import Panel
from ital_study.server import _endings, _flow, _links
from ital_study.server._arrival import external_hash
from ital_study.server._keys import Keys, normalized_code
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
        who: An identity, a resume code, a completion code, or a number; ``#7`` is a number and
            nothing else.

    Returns:
        What is known about everybody who fits, with how they were found under ``matched``.

    Raises:
        InputError: The database was served with another secret, so that nobody would be found.
    """
    keys = Keys(secret)
    configs = store.configs()
    if store.key_fingerprint() != keys.fingerprint():
        raise InputError(
            f"{store.name} was served with another key: put that key back into {store.key_file}"
        )
    sought = _Sought(keys, configs, who.strip())
    found: list[dict[str, Any]] = []
    with store.reading() as connection:
        for each in operations.everyone(connection):
            how = sought.match(each.uid, each.number, each.external_hash, each.resume_hash)
            if how is not None:
                facts = _facts(connection, keys, configs[each.config], each)
                found.append(facts | {"matched": how})
        deleted = sa.select(tombstones).order_by(tombstones.c.number)
        for row in connection.execute(deleted):
            # A tombstone keeps no hash of the resume code: nobody can resume.
            how = sought.match(row.uid, row.number, row.external_hash, None)
            if how is not None:
                # The code is derived from the uid, so it still proves who is to be paid.
                found.append(_deleted(row) | {"matched": how} | sought.proven(row.uid))
    return found


def nobody_found(store: Store, who: str) -> str:
    """Return why nobody was found.

    Args:
        store: The database.
        who: What was looked for.

    Returns:
        A sentence; it explains a completion code that everybody gets.
    """
    for config in store.configs().values():
        for outcome, code in _endings.fixed_codes(config).items():
            if normalized_code(code) == normalized_code(who):
                return (
                    f"everybody who {DOES[outcome]} gets this code, so it finds nobody: look for "
                    "an identity, a resume code or a number; with completion.per_person = true "
                    "everybody gets a code of their own"
                )
    return "nobody was found: those who declined, or never agreed to take part, leave no identity"


class _Sought:
    """Somebody who is looked for; what was typed is hashed at once."""

    def __init__(self, keys: Keys, configs: dict[str, Config], who: str) -> None:
        self.keys = keys
        self.number = _participant_number_in(who)
        self.hashes: set[str] = set()
        self.resume_hash = ""
        self.code = ""
        if not who.startswith("#"):
            # Who types an identity does not say by which parameter of the link it came.
            for value in _links.values_in(who):
                self.hashes |= _hashes_of(keys, configs, value)
            self.resume_hash = keys.resume_hash(who)
            self.code = normalized_code(who)
        # All completion codes have one length. Of other texts none can be a code, and trying them
        # on everybody would be slow.
        self.is_code = len(self.code) == len(normalized_code(keys.completion_code("", "")))

    def match(self, uid: str, number: int, external: str | None, resume: str | None) -> str | None:
        """Return how somebody fits; None if they do not."""
        if external is not None and external in self.hashes:
            return "identity"
        if resume is not None and resume == self.resume_hash:
            return "resume code"
        if self.proven(uid):
            return "completion code"
        if number == self.number:
            return "number"
        return None

    def proven(self, uid: str) -> dict[str, str]:
        """Return the outcome that the typed code proves; empty if it is not one of theirs."""
        if not self.is_code:
            return {}
        for outcome in _endings.OUTCOMES:
            if normalized_code(self.keys.completion_code(uid, outcome)) == self.code:
                return {"code_proves": outcome}
        return {}


def _hashes_of(keys: Keys, configs: dict[str, Config], value: str) -> set[str]:
    """Return the hashes of everybody whom a text may identify."""
    hashes = {external_hash(keys, name, value) for name in identity_names(configs)}
    number = _links.number_in(value)
    if number is not None:
        hashes.add(_links.external_hash(keys, number))
    return hashes


def _participant_number_in(who: str) -> int | None:
    digits = who.removeprefix("#").strip()
    # Twelve digits decide whether a number is too large: int() of thousands of them is refused.
    if not digits.isdecimal() or int(digits[:12]) > LARGEST:
        return None
    return int(digits)


def identity_names(configs: Mapping[str, Config]) -> set[str]:
    """Return the parameters of links that carried an identity in any version of the study."""
    names = set(Panel().identity)
    for config in configs.values():
        names |= set(config.panel.identity)
    return names


def _facts(
    connection: sa.Connection, keys: Keys, config: Config, participant: Participant
) -> dict[str, Any]:
    began, ended = times_of_part(connection, participant)
    minutes = None
    if began is not None and ended is not None:
        minutes = round((ended - began) / 60_000, 1)
    outcome = _endings.outcome_of(participant)
    code = None
    if outcome is not None:
        code = _endings.completion(config, keys, participant.uid, outcome)["code"]
    return {
        "number": participant.number,
        "mode": participant.mode,
        "stage": participant.stage,
        "joined": iso(participant.joined_at),
        "last_seen": iso(participant.seen_at),
        "ended": iso(ended),
        "minutes": minutes,
        "done": participant.done,
        "total": config.total_steps,
        "language": participant.language,
        "outcome": outcome,
        "code": code,
        "pay": _pay(participant, outcome, code),
        "excluded": participant.excluded,
    }


def times_of_part(
    connection: sa.Connection, participant: Participant
) -> tuple[int | None, int | None]:
    """Return when somebody agreed to take part, and when their part ended."""
    e = events.c
    # Only the server's events: a page can send events at any time.
    query = (
        sa.select(e.kind, e.at)
        .where(e.participant == participant.number, e.source == "server")
        .order_by(e.number)
    )
    happened = connection.execute(query).all()
    began = next((row.at for row in happened if row.kind == "consent"), None)
    if not happened or participant.stage not in operations.ENDED:
        return began, None
    return began, happened[-1].at


def _pay(participant: Participant, outcome: str | None, code: str | None) -> str:
    if outcome is None and participant.stage == "consent":
        return "nothing yet: has not agreed to take part"
    if outcome is None and _flow.is_late(participant):
        return f"did not come to part {participant.part + 1} in time"
    if outcome is None:
        return "nothing yet: not finished"
    ending = PAY[outcome]
    # Whoever taught all robots is entitled to the code, also without the last page.
    if participant.usable and participant.stage != "finished":
        ending = "taught all robots"
    if code is None:
        return f"{ending}: the study has no code for this"
    return f"{ending}: entitled to the code {code}"


def _deleted(row: Any) -> dict[str, Any]:
    return {
        "number": row.number,
        "stage": "deleted",
        "deleted": iso(row.deleted_at),
        "deleted_by": row.by,
        "pay": (
            "not known: the data are deleted; a completion code of their own would still prove it"
        ),
    }


def person_lines(person: dict[str, Any]) -> Iterator[str]:
    """Yield what the command line prints about somebody.

    Args:
        person: One of those that :func:`look_up` found.

    Yields:
        Lines.
    """
    yield f"participant {person['number']}: {person['stage']} (found by {person['matched']})"
    if person["stage"] == "deleted":
        yield f"  deleted     {person['deleted']}, by {person['deleted_by']}"
    else:
        yield from _progress_lines(person)
    if "code_proves" in person:
        yield f"  this code   proves: {PAY[person['code_proves']]}"
    yield f"  pay         {person['pay']}"


def _progress_lines(person: dict[str, Any]) -> Iterator[str]:
    yield f"  mode        {person['mode']}"
    yield f"  joined      {person['joined']}"
    yield f"  last seen   {person['last_seen']}"
    yield f"  ended       {person['ended'] or 'not yet'}"
    if person["minutes"] is not None:
        yield f"  duration    {person['minutes']} minutes from consent to end"
    yield f"  progress    {person['done']} of {person['total']} steps"
    yield f"  language    {person['language']}"
    yield f"  excluded    {person['excluded'] or 'no'}"
