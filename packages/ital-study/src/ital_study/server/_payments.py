"""The payment list: who took part, how it ended, and what they are paid."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.config.configuration import Config
from ital_study.config.payment import Payment
from ital_study.data import table
from ital_study.server import _endings, _flow, _links
from ital_study.server._arrival import external_hash
from ital_study.server._keys import Keys
from ital_study.server._lookup import identity_names, times_of_part
from ital_study.store import Store, operations
from ital_study.store.records import Participant
from ital_study.store.tables import tombstones
from ital_study.store.times import iso

if TYPE_CHECKING:
    import pandas as pd

MOST_LINKS = 100_000  # numbers of links that are tried, to find whose hash is stored


class PaymentRow(NamedTuple):
    """One line of the payment list; texts are empty where nothing is known."""

    participant: int
    identity: str
    link: str
    ending: str
    code: str
    began_at: str
    ended_at: str
    minutes: str
    amount: str
    currency: str
    excluded: str


class PaymentList(NamedTuple):
    """Everybody whose part has ended, and how many others there are.

    Attributes:
        rows: One row per participant, by number.
        unfinished: Number of participants whose part has not ended.
        unknown: Number of people of whom only the hash of their identity is known.
    """

    rows: list[PaymentRow]
    unfinished: int
    unknown: int

    def csv(self, *, raw: bool = False) -> str:
        """Return the list as CSV.

        Args:
            raw: Whether to leave texts as they are that a spreadsheet would take for formulas.

        Returns:
            The text.
        """
        return table.csv_text(self._frame(), raw=raw)

    def _frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(PaymentRow._fields), dtype=object)


class _Identities:
    """Whose hash is stored: identities that the researcher named, and numbers of signed links."""

    def __init__(self, keys: Keys, configs: Mapping[str, Config], named: Iterable[str]) -> None:
        self.by_hash: dict[str, tuple[str, str]] = {}
        for name in identity_names(configs):
            for identity in named:
                self.by_hash[external_hash(keys, name, identity)] = (identity, "")
        self._keys = keys
        self._next_link = 1
        self._most_links = 0
        if any(config.links == "signed" for config in configs.values()):
            self._most_links = MOST_LINKS

    def of(self, digest: str | None) -> tuple[str, str]:
        """Return the identity and the number of the link of a stored hash; both may be empty."""
        if digest is None:
            return "", ""
        # Numbers are tried as far as needed: the first links are handed out first.
        while digest not in self.by_hash and self._next_link <= self._most_links:
            number = self._next_link
            self.by_hash[_links.external_hash(self._keys, number)] = ("", str(number))
            self._next_link += 1
        return self.by_hash.get(digest, ("", ""))


def payment_list(
    store: Store, secret: bytes, mode: str = "live", identities: Iterable[str] = ()
) -> PaymentList:
    """Return what everybody is paid whose part has ended.

    Args:
        store: The database.
        secret: Secret of the server that wrote it.
        mode: Mode of the participants.
        identities: Identities to look for: the database has only their hashes.

    Returns:
        The list.

    Raises:
        InputError: The database was served with another secret, or there is no such mode.
    """
    keys = Keys(secret)
    if mode not in table.MODES:
        raise InputError(f"the mode must be one of {', '.join(table.MODES)}, not {mode!r}")
    check_key(store, keys)
    configs = store.configs()
    known = _Identities(keys, configs, list(identities))
    with store.reading() as connection:
        people = operations.everyone(connection, mode=mode)
        ended = [each for each in people if _ending_of(each) is not None]
        rows = [_row(connection, keys, configs, known, each) for each in ended]
        if mode == "live":  # tombstones say nothing of their mode
            deleted = connection.execute(sa.select(tombstones).order_by(tombstones.c.number))
            rows += [_deleted_row(configs, known, row) for row in deleted]
    hashed = [each.external_hash for each in ended]
    unknown = sum(digest is not None and known.of(digest) == ("", "") for digest in hashed)
    return PaymentList(
        sorted(rows, key=lambda row: row.participant), len(people) - len(ended), unknown
    )


def check_key(store: Store, keys: Keys) -> None:
    """Raise if the database was served with another key."""
    if store.key_fingerprint() != keys.fingerprint():
        raise InputError(
            f"{store.name} was served with another key: put that key back into {store.key_file}"
        )


def _ending_of(participant: Participant) -> str | None:
    outcome = _endings.outcome_of(participant)
    if outcome is None and participant.excluded is not None:
        return "excluded"
    if outcome is None and _flow.is_late(participant):
        return "late"
    return outcome


def _row(
    connection: sa.Connection,
    keys: Keys,
    configs: Mapping[str, Config],
    known: _Identities,
    participant: Participant,
) -> PaymentRow:
    config = configs[participant.config]
    ending = _ending_of(participant)
    assert ending is not None
    code = None
    if ending in _endings.OUTCOMES:
        code = _endings.completion(config, keys, participant.uid, ending)["code"]
    began, ended = times_of_part(connection, participant)
    minutes = ""
    if began is not None and ended is not None:
        minutes = f"{(ended - began) / 60_000:.1f}"
    identity, link = known.of(participant.external_hash)
    return PaymentRow(
        participant=participant.number,
        identity=identity,
        link=link,
        ending=ending,
        code=code or "",
        began_at=iso(began),
        ended_at=iso(ended),
        minutes=minutes,
        **_paid(payment_for(configs, config), ending),
        excluded=participant.excluded or "",
    )


def _deleted_row(configs: Mapping[str, Config], known: _Identities, row: Any) -> PaymentRow:
    identity, link = known.of(row.external_hash)
    # A tombstone does not say which configuration its participant saw.
    payment = list(configs.values())[-1].payment
    return PaymentRow(
        participant=row.number,
        identity=identity,
        link=link,
        ending="deleted",
        code="",
        began_at="",
        ended_at=iso(row.deleted_at),
        minutes="",
        **_paid(payment, "deleted"),
        excluded="",
    )


def payment_for(configs: Mapping[str, Config], config: Config) -> Payment:
    """Return what the participants of a configuration are paid.

    If it says nothing about payment, the newest one counts: amounts may be added later.
    """
    if config.payment != Payment():
        return config.payment
    return list(configs.values())[-1].payment


def _paid(payment: Payment, ending: str) -> dict[str, str]:
    amount = payment.amount(ending)
    if amount is None:
        return {"amount": "", "currency": ""}
    return {"amount": f"{amount:.2f}", "currency": payment.currency or ""}
