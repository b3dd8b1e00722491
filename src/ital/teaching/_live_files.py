"""Files of live sessions: JSON with a checksum, written wholly or not at all."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ital import _files
from ital.errors import InputError

FORMAT = 1


def plain(content: dict[str, Any]) -> dict[str, Any]:
    """The content as a file gives it back; what JSON does not know becomes text."""
    return dict(json.loads(json.dumps(content, default=str)))


def write_session(file: Path, content: dict[str, Any]) -> Path:
    """Writes the file, with its format and its checksum."""
    content = plain({"ital_session": FORMAT, **content})
    _files.write(file, json.dumps({**content, "checksum": _checksum(content)}, indent=1).encode() + b"\n")
    return file


def read_session(file: Path) -> dict[str, Any]:
    """What the file holds, refused in a line where it is not what was written."""
    try:
        content = dict(json.loads(file.read_bytes()))
        intact = content.pop("checksum") == _checksum(content)
    except (ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise InputError(f"{file}: damaged, or not a saved live session")
    if content["ital_session"] != FORMAT:
        raise InputError(f"{file}: format {content['ital_session']}, but this version of ital reads format {FORMAT}")
    return content


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
