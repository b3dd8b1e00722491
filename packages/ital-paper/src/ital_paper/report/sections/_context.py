"""The data that every section may read."""

from pathlib import Path
from typing import NamedTuple

from ital_paper.claims.judging import Finding
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import Scale


class Context(NamedTuple):
    """The data that a section may read.

    Attributes:
        data: all results.
        findings: the verdicts on the claims.
        scale: the scale of the run, quick or full.
        out: the folder for results.
        took: seconds that this call took, if it computed.
        pending: the tasks that are still being computed.
    """

    data: Data
    findings: list[Finding]
    scale: Scale
    out: Path
    took: float | None
    pending: tuple[str, ...] = ()
