"""Files of live sessions: JSON with a checksum, written completely or not at all."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.tools import files

FORMAT = 1
# Settings of a run that older files do not hold, as these runs had them.
LATER = {"choices": 1, "optimizer": None}


def as_read_back(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content as a file gives it back; values that JSON does not support become text."""
    return dict(json.loads(json.dumps(content, default=str)))


def write_session(file: Path, content: dict[str, Any]) -> Path:
    """Write the file, with its format and its checksum."""
    content = as_read_back({"ital_session": FORMAT, **content})
    with_checksum = {**content, "checksum": _checksum(content)}
    files.write(file, json.dumps(with_checksum, indent=1).encode() + b"\n")
    return file


def read_session(file: Path) -> dict[str, Any]:
    """Read the content of the file; raise InputError if it is not what was written."""
    files.check_readable(file, f"the live session {file}")
    try:
        content = dict(json.loads(file.read_bytes()))
        intact = content.pop("checksum") == _checksum(content)
    except (ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise InputError(f"{file}: damaged, or not a saved live session")
    stored_format = content["ital_session"]
    if stored_format != FORMAT:
        raise InputError(
            f"{file}: format {stored_format}, but this version of ital reads format {FORMAT}"
        )
    return content | {"run": LATER | content["run"]}


def _checksum(content: dict[str, Any]) -> str:
    """Return the checksum of the content, whatever the order of its keys."""
    in_order = json.dumps(content, sort_keys=True)
    return hashlib.sha256(in_order.encode()).hexdigest()
