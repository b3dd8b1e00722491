"""Judging a claim: its checks, one for each place, and the verdict that follows from them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ital import statistics
from ital.statistics import number, p_equals, rounded
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import STARTS

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
NEEDS_PEOPLE, NO_DATA = "needs people", "not judged"
LEVEL = 0.05
STUDY = "simulated study"  # shown where other checks show their start
NAMED = 6  # places that a summary names


class Check(NamedTuple):
    """One check of a claim in one place: whether it holds, all numbers in words, the main number, and p.

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
    """For one start: the number of places where a claim holds, of how many, and where it fails."""

    start: str
    held: int
    of: int
    failing: list[str]


class Finding(NamedTuple):
    """A claim with its verdict, its rule in words, the meaning of its number, and all its checks."""

    claim: str
    source: str
    rule: str
    verdict: str
    value: str
    checks: list[Check]

    @property
    def tallies(self) -> list[Tally]:
        """Tallies for both starts, whether or not the claim was checked there, and for the study."""
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
        return (
            (float(min(values)), float(np.median(values)), float(max(values))) if values else None
        )

    @property
    def p(self) -> float | None:
        """The largest p of the tests that count."""
        return max((check.p for check in self.checks if check.tested and check.holds), default=None)

    @property
    def summary(self) -> str:
        """Where the claim holds and where it fails, for each start, the range of its number, and the largest p."""
        if not self.checks:
            return (
                "No person has taken part yet."
                if self.verdict == NEEDS_PEOPLE
                else "This run has no data to judge it."
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
            parts.append(
                f"{self.value}: " + (low if low == high else f"{low} to {high}, median {middle}")
            )
        if self.p is not None:
            parts.append(f"paired tests where it holds: p {p_equals(self.p).replace('=', '≤')}")
        return ". ".join(part[0].upper() + part[1:] for part in parts) + "."

    def row(self) -> dict[str, Any]:
        """The finding as plain data."""
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
                [
                    check.where,
                    check.start,
                    check.holds,
                    *rounded([check.value, check.p], 4),
                    check.numbers,
                ]
                for check in self.checks
            ],
        }


class Claim(NamedTuple):
    """A claim of the paper (or a question of ours), and the rule that judges it.

    ``value`` describes the number of its checks; ``without`` is the verdict if there is nothing to check.
    """

    claim: str
    source: str
    rule: str
    check: Callable[[Data], Iterable[Check]]
    value: str
    without: str = NO_DATA


def judge(claim: Claim, data: Data) -> Finding:
    """Apply a claim's rule to the data."""
    checks = adjusted(list(claim.check(data)))
    verdict = verdict_of(checks) or claim.without
    return Finding(claim.claim, claim.source, claim.rule, verdict, claim.value, checks)


def adjusted(checks: Sequence[Check]) -> list[Check]:
    """Adjust p-values by Holm's method; a tested check holds only if its adjusted p is below the level."""
    p = statistics.holm(np.array([check.p for check in checks], float)) if checks else np.array([])
    return [
        check._replace(p=float(own), holds=check.holds and (not check.tested or bool(own < LEVEL)))
        for check, own in zip(checks, p, strict=True)
    ]


def verdict_of(checks: Sequence[Check]) -> str | None:
    """The verdict if all, some or none of the checks hold; None without checks."""
    if not checks:
        return None
    holding = sum(check.holds for check in checks)
    return HOLDS if holding == len(checks) else FAILS if holding == 0 else IN_PART
