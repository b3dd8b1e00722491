"""Researchers with names and roles, and tokens with which programs download data."""

import hashlib
import re
from typing import NamedTuple

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.store import operations
from ital_study.store.tables import researchers, tokens

# What researchers may do: look and download; also run the study; also delete people and unblind.
ROLES = ("see", "run", "own")
OWNER = "owner"  # whoever knows the study's own password
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class Researcher(NamedTuple):
    """A researcher with a name.

    Attributes:
        name: Name, which the audit keeps.
        role: One of :data:`ROLES`.
        password: Argon2 hash of the password.
        added_at: Time of adding.
    """

    name: str
    role: str
    password: str
    added_at: int


class Token(NamedTuple):
    """A token for downloads, of which only a hash is stored.

    Attributes:
        hash: Hash of the token.
        name: Name, which the audit keeps.
        created_at: Time of creation.
        revoked_at: Time since when it opens nothing; None if it is valid.
    """

    hash: str
    name: str
    created_at: int
    revoked_at: int | None


def check_name(name: str) -> None:
    """Raise for a name that is not fit for the audit."""
    if not NAME.fullmatch(name):
        raise InputError(f"a name has 1 to 40 letters, digits, ., _ and -, not {name!r}")
    if name.lower() == OWNER:
        raise InputError(f"{OWNER} is whoever knows the study's own password: choose another name")


def check_role(role: str) -> None:
    """Raise for a role that there is not."""
    if role not in ROLES:
        raise InputError(f"the role must be one of {', '.join(ROLES)}, not {role!r}")


def listed(connection: sa.Connection) -> list[Researcher]:
    """Return the researchers by name."""
    query = sa.select(researchers).order_by(researchers.c.name)
    return [Researcher(*row) for row in connection.execute(query)]


def find(connection: sa.Connection, name: str) -> Researcher | None:
    """Return the researcher of a name, if there is one."""
    row = connection.execute(sa.select(researchers).where(researchers.c.name == name)).first()
    if row is None:
        return None
    return Researcher(*row)


def add(connection: sa.Connection, name: str, role: str, password: str) -> None:
    """Add a researcher.

    Args:
        connection: The transaction.
        name: Name of the researcher.
        role: One of :data:`ROLES`.
        password: Argon2 hash of the password.

    Raises:
        InputError: The name is not fit or taken, or there is no such role.
    """
    check_name(name)
    check_role(role)
    if find(connection, name) is not None:
        raise InputError(f"{name} is a researcher already: remove {name} first to change the role")
    added = Researcher(name, role, password, operations.now())
    connection.execute(researchers.insert().values(added._asdict()))
    operations.note(connection, "researcher added", detail=f"{name} ({role})")


def renew(connection: sa.Connection, name: str, password: str) -> None:
    """Replace the password of a researcher, whose sessions end.

    Args:
        connection: The transaction.
        name: Name of the researcher.
        password: Argon2 hash of the new password.

    Raises:
        InputError: There is no such researcher.
    """
    _need(connection, name)
    own = researchers.c.name == name
    connection.execute(researchers.update().where(own).values(password=password))
    operations.note(connection, "password renewed", detail=name)


def remove(connection: sa.Connection, name: str) -> None:
    """Remove a researcher, whose sessions end.

    Args:
        connection: The transaction.
        name: Name of the researcher.

    Raises:
        InputError: There is no such researcher.
    """
    _need(connection, name)
    connection.execute(researchers.delete().where(researchers.c.name == name))
    operations.note(connection, "researcher removed", detail=name)


def _need(connection: sa.Connection, name: str) -> None:
    if find(connection, name) is None:
        names = ", ".join(each.name for each in listed(connection)) or "nobody yet"
        raise InputError(f"there is no researcher {name}: there is {names}")


def hash_token(token: str) -> str:
    """Return the stored hash of a token; it has 256 random bits, so nobody can try them."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def listed_tokens(connection: sa.Connection) -> list[Token]:
    """Return all tokens, the oldest first."""
    query = sa.select(tokens).order_by(tokens.c.created_at, tokens.c.name)
    return [Token(*row) for row in connection.execute(query)]


def add_token(connection: sa.Connection, name: str, token: str) -> None:
    """Store the hash of a new token.

    Args:
        connection: The transaction.
        name: Name of the token.
        token: The token.

    Raises:
        InputError: The name is not fit, or a valid token has it.
    """
    check_name(name)
    if _valid(connection, name):
        raise InputError(f"there is a token {name} already: revoke it first")
    added = Token(hash_token(token), name, operations.now(), None)
    connection.execute(tokens.insert().values(added._asdict()))
    operations.note(connection, "token created", detail=name)


def revoke_token(connection: sa.Connection, name: str) -> None:
    """Revoke a token: from now on it opens nothing.

    Args:
        connection: The transaction.
        name: Name of the token.

    Raises:
        InputError: There is no valid token of this name.
    """
    valid = _valid(connection, name)
    if not valid:
        raise InputError(f"there is no valid token {name}")
    own = tokens.c.hash == valid[0].hash
    connection.execute(tokens.update().where(own).values(revoked_at=operations.now()))
    operations.note(connection, "token revoked", detail=name)


def _valid(connection: sa.Connection, name: str) -> list[Token]:
    return [
        token
        for token in listed_tokens(connection)
        if token.name == name and token.revoked_at is None
    ]


def token_name(connection: sa.Connection, token: str) -> str | None:
    """Return the name of a valid token; None for any other text."""
    t = tokens.c
    query = sa.select(t.name).where(t.hash == hash_token(token), t.revoked_at.is_(None))
    return connection.execute(query).scalar_one_or_none()
