"""Judging a claim: its checks, one for each place, and the verdict that follows from them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ital import statistics
from ital.statistics import number, p_equals, rounded
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import STARTS

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold"
NEEDS_PEOPLE = "needs people"
NO_DATA = "not judged"

LEVEL = 0.05
# The study has no start: its checks have this name where others have their start.
STUDY = "simulated study"
MOST_NAMED = 6  # of the places where a claim fails, in its summary


class Check(NamedTuple):
    """One check of a claim in one place.

    Attributes:
        where: the place, usually a task.
        start: the start of the learner's parameters, or ``STUDY``.
        holds: whether the claim holds there.
        numbers: all its numbers, in words.
        value: the number that the summary of the claim uses; NaN if there is none.
        p: the p-value of its test; NaN if there is none.
        tested: whether the check holds only if p is below the level as well.
    """

    where: str
    start: str
    holds: bool
    numbers: str
    value: float = float("nan")
    p: float = float("nan")
    tested: bool = False


class Tally(NamedTuple):
    """How often a claim holds from one start.

    Attributes:
        start: the start in words.
        held: the number of checks that hold.
        of: the number of checks.
        failing: the places where the claim fails.
    """

    start: str
    held: int
    of: int
    failing: list[str]


class Finding(NamedTuple):
    """A claim with its verdict.

    Attributes:
        claim: the claim in words.
        source: who claims it.
        rule: its rule in words.
        verdict: whether it holds.
        value: the meaning of the number of its checks.
        checks: all its checks, with adjusted p-values.
    """

    claim: str
    source: str
    rule: str
    verdict: str
    value: str
    checks: list[Check]

    @property
    def tallies(self) -> list[Tally]:
        """Tallies for both starts, even if only one was checked, and for the study."""
        starts = dict.fromkeys(check.start for check in self.checks)
        if any(start in STARTS for start in starts):
            # A start without checks gets a tally of zero, which the report shows as "not run".
            starts = dict.fromkeys((*STARTS, *starts))
        return [_tally_start(start, self.checks) for start in starts]

    @property
    def range(self) -> tuple[float, float, float] | None:
        """Smallest, median and largest number of the checks."""
        values = [check.value for check in self.checks if not np.isnan(check.value)]
        if not values:
            return None
        return float(min(values)), float(np.median(values)), float(max(values))

    @property
    def p(self) -> float | None:
        """The largest p of the tests that count."""
        return max((check.p for check in self.checks if check.tested and check.holds), default=None)

    @property
    def summary(self) -> str:
        """Where the claim holds and where it fails, the range of its number, and the largest p."""
        if not self.checks and self.verdict == NEEDS_PEOPLE:
            return "No person has taken part yet."
        if not self.checks:
            return "This run has no data to judge it."
        sentences = [_tally_in_words(tally) for tally in self.tallies]
        if self.range is not None:
            sentences.append(f"{self.value}: {_range_in_words(self.range)}")
        if self.p is not None:
            largest = p_equals(self.p).replace("=", "≤")
            sentences.append(f"paired tests where it holds: p {largest}")
        return " ".join(f"{_capitalised(sentence)}." for sentence in sentences)

    def row(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        largest_p = None
        if self.p is not None:
            (largest_p,) = rounded([self.p], 3)
        return {
            "claim": self.claim,
            "source": self.source,
            "rule": self.rule,
            "verdict": self.verdict,
            "value": self.value,
            "summary": self.summary,
            "tallies": [tally._asdict() for tally in self.tallies],
            "range": self.range and rounded(self.range, 5),
            "p": largest_p,
            "checks": [_check_row(check) for check in self.checks],
        }


def _capitalised(sentence: str) -> str:
    # capitalize() would turn the other letters into small ones.
    return sentence[0].upper() + sentence[1:]


def _tally_start(start: str, checks: Sequence[Check]) -> Tally:
    """Count the checks from one start."""
    from_start = [check for check in checks if check.start == start]
    failing = [check.where for check in from_start if not check.holds]
    in_words = start if start == STUDY else f"{start} start"
    return Tally(in_words, len(from_start) - len(failing), len(from_start), failing)


def _tally_in_words(tally: Tally) -> str:
    """Say how often a claim holds; name the places where it fails only if it holds in others."""
    if not tally.of:
        return f"{tally.start}: not run"
    counts = f"{tally.start}: {tally.held} of {tally.of}"
    if not tally.failing or not tally.held:
        return counts
    named = ", ".join(tally.failing[:MOST_NAMED])
    unnamed = len(tally.failing) - MOST_NAMED
    more = f" and {unnamed} more" if unnamed > 0 else ""
    return f"{counts}, not on {named}{more}"


def _range_in_words(limits: tuple[float, float, float]) -> str:
    low, middle, high = map(number, limits)
    # Numbers that differ only beyond the digits shown are one number to the reader.
    return low if low == high else f"{low} to {high}, median {middle}"


def _check_row(check: Check) -> list[Any]:
    value, p = rounded([check.value, check.p], 4)
    return [check.where, check.start, check.holds, value, p, check.numbers]


class Claim(NamedTuple):
    """A claim of the paper (or a question of ours), and the rule that judges it.

    Attributes:
        claim: the claim in words.
        source: who claims it.
        rule: the rule in words.
        check: the rule, which yields a check for each place that the data have.
        value: the meaning of the number of its checks.
        without: the verdict if there is nothing to check.
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
    """Adjust the p-values of a claim by Holm's method.

    A tested check then holds only if its adjusted p is below the level.
    """
    if not checks:
        return []
    adjusted_p = statistics.holm(np.array([check.p for check in checks], float))
    return [
        check._replace(
            p=float(p),
            holds=check.holds and (not check.tested or bool(p < LEVEL)),
        )
        for check, p in zip(checks, adjusted_p, strict=True)
    ]


def verdict_of(checks: Sequence[Check]) -> str | None:
    """Return the verdict if all, some or none of the checks hold; None without checks."""
    if not checks:
        return None
    if all(check.holds for check in checks):
        return HOLDS
    if any(check.holds for check in checks):
        return IN_PART
    return FAILS
