"""The folder of a study, made by ``ital study init``.

Its configuration, password, settings, data and backups.
"""

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from ital.errors import InputError
from ital_study.config.template import configuration

CONFIG = "study.toml"
DATABASE = "study.db"
PASSWORD = "password"
SETTINGS = "server.env"
BACKUPS = "backups"

_SETTINGS = """\
# Settings of the server, one NAME=VALUE per line; docs/study/deployment.md explains them.
# `ital study serve`, systemd and compose read this file; the environment has precedence.

# The address that participants see, with the path under which your proxy offers the study:
# ITAL_STUDY_ORIGIN=https://lab.example.org/teach
"""
_NOTES = """\
# {name}

A study of `ital`. Try it: `ital study serve {folder} --trial`; the dashboard's password is in
`password`.

| file | what | who may see it |
|---|---|---|
| `study.toml` | everything that participants see and do | everybody, after the study |
| `server.env` | the address of the study, and limits | you |
| `password` | the dashboard's password; replace it if you like | you, nobody else |
| `study.db`, `-wal`, `-shm` | the data, once the study runs | you, nobody else |
| `study.db.key` | the key of codes and hashed IDs: keep a copy elsewhere | you, nobody else |
| `study.db.tombstones` | who was deleted, without content: copy it with every backup | you, nobody
else |
| `backups/` | what `ital study backup {folder}` writes | you, nobody else |
"""
_IGNORED = (
    "# Data and secrets do not belong in a repository.\npassword\nserver.env\nstudy.db*\nbackups/\n"
)


def create(
    folder: Path, like: str = "paper", languages: tuple[str, ...] = (), origin: str | None = None
) -> None:
    """Make the folder of a new study.

    Args:
        folder: A folder that is empty, or not there yet.
        like: The study to begin with: ``paper`` or ``short``.
        languages: Languages to keep; empty: all.
        origin: The address that participants will see.

    Raises:
        InputError: The folder is not empty or cannot be made, or there is no such study or
            language.
    """
    name = study_name(folder)
    text = configuration(name, like, languages)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise InputError(
            f"{folder} is not empty: give a folder that is, or one that is not there yet"
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / BACKUPS).mkdir(mode=0o700)
        (folder / CONFIG).write_text(text, encoding="utf-8")
        settings = _SETTINGS
        if origin is not None:
            settings = re.sub("# (ITAL_STUDY_ORIGIN=).*", rf"\1{origin}", settings)
        (folder / SETTINGS).write_text(settings, encoding="utf-8")
        notes = _NOTES.format(name=name, folder=folder)
        (folder / "README.md").write_text(notes, encoding="utf-8")
        (folder / ".gitignore").write_text(_IGNORED, encoding="utf-8")
        # The file is never readable by others, not even for a moment.
        handle = os.open(folder / PASSWORD, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(12) + "\n")
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror or error}") from None


def study_name(folder: Path) -> str:
    """Return the name of a new study: that of its folder, as far as it is fit for files."""
    return re.sub("[^A-Za-z0-9]+", "-", folder.resolve().name).strip("-")[:60] or "study"


def enter(folder: Path, database: str = DATABASE) -> tuple[str, str]:
    """Take the settings of a study's folder into the environment, where nothing else is set.

    Args:
        folder: The folder.
        database: The database, if it is another than that of the folder.

    Returns:
        The study's configuration and database.

    Raises:
        InputError: The folder holds no study, or a line of its settings is wrong.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} holds no study: it has no {CONFIG}; ital study init makes one")
    os.environ.update(settings_of(folder))
    if database == DATABASE:
        database = os.environ.get("ITAL_STUDY_DATABASE") or str(folder / DATABASE)
    return str(folder / CONFIG), database


def settings_of(folder: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings of a study.

    Those of its folder, and those of the environment, which have precedence.

    Args:
        folder: The study's folder.
        environment: Variables, by default those of the process.

    Returns:
        Values by name.

    Raises:
        InputError: A line of the file is no setting.
    """
    settings = {"ITAL_STUDY_FOLDER": str(folder), **_settings_in(folder / SETTINGS)}
    has_password = any(name in settings or name in environment for name in _PASSWORDS)
    if (folder / PASSWORD).is_file() and not has_password:
        settings["ITAL_STUDY_PASSWORD_FILE"] = str(folder / PASSWORD)
    return {**settings, **environment}


def _settings_in(file: Path) -> dict[str, str]:
    """Read NAME=VALUE from the lines of a file; none if there is no file."""
    if not file.is_file():
        return {}
    settings = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in stripped.partition("="))
        if not equals or not re.fullmatch("[A-Z][A-Z0-9_]*", name):
            raise InputError(f"{file}, line {number}: write NAME=VALUE, not {stripped[:40]!r}")
        settings[name] = value.strip("\"'")
    return settings


_PASSWORDS = ("ITAL_STUDY_PASSWORD", "ITAL_STUDY_PASSWORD_FILE")
