"""What every section may read."""

from pathlib import Path
from typing import NamedTuple

from ital.reproduce._data import Data
from ital.reproduce._judging import Finding
from ital.reproduce._plan import Scale


class Context(NamedTuple):
    """All results, what they say of the claims, the scale, the folder, this call's time if it computed, and the tasks
    that are still being computed.
    """

    data: Data
    findings: list[Finding]
    scale: Scale
    out: Path
    took: float | None
    pending: tuple[str, ...] = ()
