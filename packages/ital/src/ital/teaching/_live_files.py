"""Files of live sessions: JSON with a checksum, written completely or not at all."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.tools import files

FORMAT = 1
LATER = {
    "choices": 1,
    "optimizer": None,
}  # settings of a run that older files do not hold, as these runs had them


def plain(content: dict[str, Any]) -> dict[str, Any]:
    """The content as read back from a file; values that JSON does not support become text."""
    return dict(json.loads(json.dumps(content, default=str)))


def write_session(file: Path, content: dict[str, Any]) -> Path:
    """Write the file, with its format and its checksum."""
    content = plain({"ital_session": FORMAT, **content})
    files.write(
        file, json.dumps({**content, "checksum": _checksum(content)}, indent=1).encode() + b"\n"
    )
    return file


def read_session(file: Path) -> dict[str, Any]:
    """The content of the file; raises InputError if it is not what was written."""
    files.check_readable(file, f"the live session {file}")
    try:
        content = dict(json.loads(file.read_bytes()))
        intact = content.pop("checksum") == _checksum(content)
    except (ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise InputError(f"{file}: damaged, or not a saved live session")
    if content["ital_session"] != FORMAT:
        raise InputError(
            f"{file}: format {content['ital_session']}, but this version of ital reads format {FORMAT}"
        )
    return content | {"run": LATER | content["run"]}


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
