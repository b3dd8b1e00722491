"""Settings from the environment: the researcher's password, secrets and limits.

None of them is ever shown.
"""

import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ital.errors import InputError
from ital_study.server._keys import Keys

SHORTEST_PASSWORD = 8


@dataclass(frozen=True)
class ServerSettings:
    """Secrets and limits of a server.

    Attributes:
        password: The researcher's password, as an Argon2 hash.
        secret: Secret from which all keys of the server are derived.
        simulation_key: Key of simulated participants; None: they cannot join.
        joins_per_minute: Maximum number of participants that may join from one address per minute.
        log_ins_per_minute: Maximum number of attempts to log in from one address per minute.
        origin: The address that participants see, with the path under which a proxy offers the
            study; None: the Host header and no path.
        trial: Whether those who join only try the study out: they never count, and every page
            says so.
    """

    # Secrets stay out of the repr, because settings may end in a traceback.
    password: str = field(repr=False)
    secret: bytes = field(repr=False)
    simulation_key: str | None = field(default=None, repr=False)
    joins_per_minute: int = 60
    log_ins_per_minute: int = 5
    origin: str | None = None
    trial: bool = False

    @property
    def site(self) -> str | None:
        """The origin without its path, as browsers send it.

        Returns:
            Scheme and host; None if there is no origin.
        """
        if self.origin is None:
            return None
        return "/".join(self.origin.split("/")[:3])

    @property
    def prefix(self) -> str:
        """The path of the origin, which all addresses and cookies share.

        Returns:
            A path such as ``/teach``, without a slash at its end; empty if the study has a host of
            its own.
        """
        if self.origin is None:
            return ""
        return self.origin.removeprefix(str(self.site)).rstrip("/")

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the secret, which the database keeps.

        Returns:
            A keyed hash that does not reveal the secret.
        """
        return fingerprint_of(self.secret)


def fingerprint_of(secret: bytes) -> str:
    """Return the fingerprint of a secret, which the database keeps.

    Args:
        secret: The secret.

    Returns:
        A keyed hash that does not reveal the secret.
    """
    return Keys(secret).fingerprint()


def from_environment(
    key_file: Path, environment: Mapping[str, str] = os.environ, *, draw: bool = True
) -> ServerSettings:
    """Read the settings from the environment.

    A missing secret is generated once and stored in ``key_file``.

    Args:
        key_file: File of the secret, beside the database.
        environment: Variables, by default those of the process.
        draw: Whether to generate a missing secret; False for a database that has been served
            before.

    Returns:
        The settings.

    Raises:
        InputError: There is no password, a secret is missing, too short or readable by others, or
            a number is wrong.
    """
    # First, so that no secret is generated for a server that does not start.
    password = password_of(environment)
    return ServerSettings(
        password=password,
        secret=secret_of(key_file, environment, draw=draw),
        simulation_key=_value(environment, "ITAL_STUDY_SIMULATION_KEY"),
        joins_per_minute=_whole(environment, "ITAL_STUDY_JOINS_PER_MINUTE", 60),
        origin=origin_of(environment),
    )


def secret_of(
    key_file: Path, environment: Mapping[str, str] = os.environ, *, draw: bool = False
) -> bytes:
    """Return the secret of a server: from the environment, or from its file.

    Args:
        key_file: File of the secret, beside the database.
        environment: Variables, by default those of the process.
        draw: Whether to generate a missing secret.

    Returns:
        The secret.

    Raises:
        InputError: The secret is missing, too short or readable by others.
    """
    secret = _value(environment, "ITAL_STUDY_SECRET")
    if secret is None:
        return own_secret(key_file, draw)
    return _strong(secret)


def password_of(environment: Mapping[str, str] = os.environ) -> str:
    """Return the hash of the researcher's password.

    Args:
        environment: Variables, by default those of the process.

    Returns:
        An Argon2 hash.

    Raises:
        InputError: There is no password, or it is too short.
    """
    password = _value(environment, "ITAL_STUDY_PASSWORD")
    if password is None:
        raise InputError(
            "the dashboard needs a password: set ITAL_STUDY_PASSWORD, or ITAL_STUDY_PASSWORD_FILE "
            "to a file with it"
        )
    return hash_password(password)


def origin_of(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the address that participants see.

    Args:
        environment: Variables, by default those of the process.

    Returns:
        An address, with the path under which a proxy offers the study; None if none is set.

    Raises:
        InputError: It is not a plain address.
    """
    text = environment.get("ITAL_STUDY_ORIGIN")
    if not text:
        return None
    if re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~-]+)*/?", text) is None:
        raise InputError(
            "ITAL_STUDY_ORIGIN must be an address such as https://study.example.org or "
            f"https://lab.example.org/teach, not {text!r}"
        )
    return text


def hash_password(password: str) -> str:
    """Return the Argon2 hash of a password; a hash is returned unchanged.

    Args:
        password: The password, or its hash.

    Returns:
        The hash.

    Raises:
        InputError: The password is too short.
    """
    from argon2 import PasswordHasher

    if password.startswith("$argon2"):
        return password
    if len(password) < SHORTEST_PASSWORD:
        raise InputError(
            f"the dashboard's password must have at least {SHORTEST_PASSWORD} characters"
        )
    return PasswordHasher().hash(password)


def own_secret(file: Path, draw: bool = True) -> bytes:
    """Return the secret beside the database, generated when first needed.

    Only its owner may read the file.
    """
    if not draw and not file.exists():
        raise InputError(
            f"there is no key {file}, but the database was served with one before: put it back, "
            "or set ITAL_STUDY_SECRET to it"
        )
    # O_EXCL: of two servers that start at once, one draws the secret and the other reads it. The
    # permissions are set when the file is made, so there is no moment at which others may read it.
    try:
        handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _strong(_secret_in(file))
    with os.fdopen(handle, "w") as new_file:
        new_file.write(secrets.token_hex(32) + "\n")
        # On the disk before it is used: without it, no participant could return after a power cut.
        new_file.flush()
        os.fsync(new_file.fileno())
    return _strong(_secret_in(file))


def _strong(secret: str) -> bytes:
    if len(secret) < 32:
        raise InputError(
            "the study's secret must have at least 32 characters: leave it out to have one "
            "generated"
        )
    return secret.encode()


def _value(environment: Mapping[str, str], name: str) -> str | None:
    """Return a secret from the variable NAME, or from the file that NAME_FILE names."""
    value = environment.get(name)
    if value:
        return value
    file = environment.get(f"{name}_FILE")
    if not file:
        return None
    return _secret_in(Path(file))


def _secret_in(file: Path) -> str:
    """Return the first line of a file; raise if others than its owner may read it."""
    try:
        mode = file.stat().st_mode
        # Before reading: everybody may read devices that never end, such as /dev/zero.
        is_open_to_others = mode & (stat.S_IRWXG | stat.S_IRWXO)
        if is_open_to_others and not _is_credential(file):
            raise InputError(f"{file} holds a secret, but others may read it: run chmod 600 {file}")
        text = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InputError(f"cannot read the secret in {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"cannot read the secret in {file}: not a text file") from None
    if not text:
        raise InputError(f"{file} should hold a secret, but it is empty")
    return text.splitlines()[0]


def _is_credential(file: Path) -> bool:
    """Return whether systemd protects the file.

    The access list of such a file looks like a permission of the group.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return False
    return file.resolve().parent == Path(folder).resolve()


def _whole(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10**6:
        raise InputError(f"{name} must be a whole number from 1 to 1000000, not {text!r}")
    return int(text)
