"""Judging a claim: its checks, one for each place, and the verdict that follows from them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ital import statistics
from ital.reproduce._data import Data
from ital.reproduce._plan import STARTS
from ital.statistics import number, p_equals, rounded

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
NEEDS_PEOPLE, NO_DATA = "needs people", "not judged"
LEVEL = 0.05
STUDY = "simulated study"  # stands where other checks have their start
NAMED = 6  # places that a summary names


class Check(NamedTuple):
    """A claim in one place: whether it holds there, all numbers in words, the one number that tells most, and p.

    A ``tested`` check holds only if p is below the level as well.
    """

    where: str
    start: str
    holds: bool
    numbers: str
    value: float = float("nan")
    p: float = float("nan")
    tested: bool = False


class Tally(NamedTuple):
    """From one start: in how many places a claim holds, of how many, and where it does not."""

    start: str
    held: int
    of: int
    failing: list[str]


class Finding(NamedTuple):
    """A claim with its verdict, the rule in words, what its number is, and all checks behind it."""

    claim: str
    source: str
    rule: str
    verdict: str
    value: str
    checks: list[Check]

    @property
    def tallies(self) -> list[Tally]:
        """Both starts, whether the claim was checked from there or not; and the study."""
        starts = dict.fromkeys(check.start for check in self.checks)
        if any(start in STARTS for start in starts):
            starts = dict.fromkeys((*STARTS, *starts))
        own = {start: [check for check in self.checks if check.start == start] for start in starts}
        return [
            Tally(
                start if start == STUDY else f"{start} start",
                sum(check.holds for check in checks),
                len(checks),
                [check.where for check in checks if not check.holds],
            )
            for start, checks in own.items()
        ]

    @property
    def range(self) -> tuple[float, float, float] | None:
        """Smallest, median and largest number of the checks."""
        values = [check.value for check in self.checks if not np.isnan(check.value)]
        return (float(min(values)), float(np.median(values)), float(max(values))) if values else None

    @property
    def p(self) -> float | None:
        """The largest p of the tests that count."""
        return max((check.p for check in self.checks if check.tested and check.holds), default=None)

    @property
    def summary(self) -> str:
        """Where it holds and where not, from which start, the range of its number, and the largest p that counts."""
        if not self.checks:
            return (
                "No person has taken part yet."
                if self.verdict == NEEDS_PEOPLE
                else "Nothing in this run to judge it by."
            )
        parts = []
        for start, held, of, failing in self.tallies:
            words = f"{start}: {held} of {of}" if of else f"{start}: not run"
            if failing and held:
                more = f" and {len(failing) - NAMED} more" if len(failing) > NAMED else ""
                words += f", not on {', '.join(failing[:NAMED])}{more}"
            parts.append(words)
        if self.range is not None:
            low, middle, high = (number(value) for value in self.range)
            parts.append(f"{self.value}: " + (low if low == high else f"{low} to {high}, median {middle}"))
        if self.p is not None:
            parts.append(f"paired tests where it holds: p {p_equals(self.p).replace('=', '≤')}")
        return ". ".join(part[0].upper() + part[1:] for part in parts) + "."

    def row(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "claim": self.claim,
            "source": self.source,
            "rule": self.rule,
            "verdict": self.verdict,
            "value": self.value,
            "summary": self.summary,
            "tallies": [tally._asdict() for tally in self.tallies],
            "range": self.range and rounded(self.range, 5),
            "p": None if self.p is None else rounded([self.p], 3)[0],
            "checks": [
                [check.where, check.start, check.holds, *rounded([check.value, check.p], 4), check.numbers]
                for check in self.checks
            ],
        }


class Claim(NamedTuple):
    """A claim of the paper (or a question of ours), and the rule that judges it.

    ``value`` says what the number of its checks is; ``without`` is the verdict where there is nothing to check.
    """

    claim: str
    source: str
    rule: str
    check: Callable[[Data], Iterable[Check]]
    value: str
    without: str = NO_DATA


def judge(claim: Claim, data: Data) -> Finding:
    """Applies a claim's rule to the data."""
    checks = adjusted(list(claim.check(data)))
    verdict = verdict_of(checks) or claim.without
    return Finding(claim.claim, claim.source, claim.rule, verdict, claim.value, checks)


def adjusted(checks: Sequence[Check]) -> list[Check]:
    """p-values after Holm's adjustment; a tested check holds only if its own is still below the level."""
    p = statistics.holm(np.array([check.p for check in checks], float)) if checks else np.array([])
    return [
        check._replace(p=float(own), holds=check.holds and (not check.tested or bool(own < LEVEL)))
        for check, own in zip(checks, p, strict=True)
    ]


def verdict_of(checks: Sequence[Check]) -> str | None:
    """All, some, or none of the checks; None without any."""
    if not checks:
        return None
    holding = sum(check.holds for check in checks)
    return HOLDS if holding == len(checks) else FAILS if holding == 0 else IN_PART
