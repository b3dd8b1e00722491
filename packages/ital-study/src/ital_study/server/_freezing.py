"""Freezing the plan of a study: a dated summary, signed with the study's key, and its check."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ital import __version__
from ital_study.config.configuration import Config
from ital_study.config.differences import differences
from ital_study.config.toml import toml_text
from ital_study.server._keys import Keys, same_secret
from ital_study.store import Store, freezes, operations
from ital_study.store.freezes import StoredFreeze
from ital_study.store.times import iso

SIGNATURE = "signature = "


class StudyPlan(NamedTuple):
    """What is decided before the data come.

    Attributes:
        participants: Planned number of usable participants.
        test: The main test, by what it needs: outcome, robots, level.
    """

    participants: int
    test: dict[str, Any]


class FreezeCheck(NamedTuple):
    """What a check of the frozen plans found.

    Attributes:
        lines: What to tell people: every freeze, and every later change.
        problems: What is wrong.
    """

    lines: list[str]
    problems: list[str]


def freeze(store: Store, secret: bytes, config: Config, plan: StudyPlan) -> StoredFreeze:
    """Freeze the plan of a study.

    Args:
        store: The database.
        secret: Secret of the study's server.
        config: The configuration to freeze.
        plan: The rest of the plan.

    Returns:
        The stored freeze.
    """
    at = operations.now()
    content = toml_text(_content(config, plan, at))
    signature = Keys(secret).freeze_signature(content)
    return store.write(lambda connection: freezes.add(connection, at, content, signature))


def _content(config: Config, plan: StudyPlan, at: int) -> dict[str, Any]:
    rules = config.quality.texts()
    return {
        "format": freezes.FORMAT,
        "frozen_at": iso(at),
        "ital": __version__,
        "configuration": config.hash,
        "participants": plan.participants,
        "test": plan.test,
        "exclusion": {
            "flags": list(config.quality.exclude),
            "rules": [f"{flag}: {rules[flag]}" for flag in config.quality.exclude],
        },
        "study": config.as_dict(),
    }


def freeze_text(frozen: StoredFreeze) -> str:
    """Return a freeze as a file for people: its signature, then the plan as TOML.

    Args:
        frozen: The freeze.

    Returns:
        The text.
    """
    return f"{SIGNATURE}{json.dumps(frozen.signature)}\n{frozen.content}"


def check_freezes(
    store: Store, secret: bytes | None, folder: Path | None, config: Config | None
) -> FreezeCheck:
    """Check the signatures of all frozen plans, and list what was changed afterwards.

    Args:
        store: The database.
        secret: Secret of the study's server; None if there is none here.
        folder: Folder whose files ``freeze*.toml`` must be what was frozen; None: no folder.
        config: The configuration of now; None if there is none here.

    Returns:
        Lines for people, and the problems.
    """
    lines: list[str] = []
    problems: list[str] = []
    with store.reading() as connection:
        frozen = freezes.listed(connection)
        changes = []
        if frozen:
            changes = freezes.changes(connection, frozen[0])
    for each in frozen:
        state = _state_of_signature(each, secret)
        lines.append(f"frozen at {iso(each.at)}, {each.plan['participants']} participants: {state}")
        if state == FORGED:
            problems.append(f"freeze {each.id} was changed after it was signed")
    lines += [f"  {iso(change.at)}: {change.what}" for change in changes]
    if frozen and config is not None:
        lines += [f"  now: {line}" for line in differences(frozen[0].config, config)]
    if folder is not None:
        problems += _wrong_files(folder, frozen)
    return FreezeCheck(lines, problems)


GOOD = "signature good"
FORGED = "signature wrong"
UNCHECKED = "signature not checked, because the key is not here"


def _state_of_signature(frozen: StoredFreeze, secret: bytes | None) -> str:
    if secret is None:
        return UNCHECKED
    right = Keys(secret).freeze_signature(frozen.content)
    if not same_secret(right, frozen.signature):
        return FORGED
    return GOOD


def _wrong_files(folder: Path, frozen: list[StoredFreeze]) -> Iterator[str]:
    """Yield the files that are not what was frozen."""
    texts = {freeze_text(each) for each in frozen}
    for file in sorted(folder.glob("freeze*.toml")):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""
        if text not in texts:
            yield f"{file} is not what was frozen"
