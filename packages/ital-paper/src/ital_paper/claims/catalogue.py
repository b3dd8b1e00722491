"""The paper's claims, each a rule that the data may fail.

A rule checks every experiment that the claim is about, from both starts. A claim holds if all its checks hold, holds
in part if some do (as for a claim that depends on the start), and does not hold if none does. Tests are paired over
seeds; p-values are adjusted (Holm) within a claim.
"""

import warnings
from collections.abc import Callable, Iterable

import numpy as np

from ital import statistics
from ital.errors import InputError
from ital.statistics import number, p_equals, share, signed
from ital.tools import plugins
from ital_paper.claims.judging import (
    LEVEL,
    NEEDS_PEOPLE,
    NO_DATA,
    STUDY,
    Check,
    Claim,
    Finding,
    judge,
)
from ital_paper.experiments.data import METHODS_BY_VIEW, Data, Evidence
from ital_study import CLAIMED

ALIKE = 0.05  # share of the initial distance: a smaller difference counts as equal
BARELY = 0.10  # share of the initial distance: a learner that gained less has barely learned
FLAT = 0.05  # share of the initial distance: gaining less in the last quarter of the steps is convergence
NETWORKS = {
    "MNIST": ("mnist-20", "mnist-30"),
    "CIFAR-10": ("cifar10-6", "cifar10-12"),
    "Tiny ImageNet": ("tiny-imagenet-lite0", "tiny-imagenet-lite2"),
    "Tiny ImageNet, VGG": ("tiny-imagenet-13", "tiny-imagenet-19"),
    "equations": ("equation-40", "equation-50"),
}
BASELINES = ("batch", "sgd", "imt")
HOURS, CORES = 12, 16  # the paper's longest setting


def closer(
    evidence: Evidence, first: str, second: str, metric: str | None = None, where: str | None = None
) -> Check:
    """Whether the first method ends better than the second, by a paired test."""
    test = statistics.paired(evidence.final(first, metric), evidence.final(second, metric))
    sign = -1 if evidence.higher_is_better(metric or evidence.main) else 1
    means = [sign * float(np.mean(evidence.final(method, metric))) for method in (first, second)]
    improvement = statistics.probability_of_improvement(
        evidence.final(first, metric), evidence.final(second, metric)
    )
    numbers = (
        f"{evidence.label(first)} {number(means[0])}, {evidence.label(second)} {number(means[1])}; "
        f"difference {signed(sign * test.difference)}{_interval(test, sign)}, "
        f"P(improvement) {improvement:.2f}"
    )
    value = (
        means[0] / means[1]
        if (metric or evidence.main) == evidence.main and means[1]
        else float("nan")
    )
    check = _check(evidence, test.difference < 0, numbers, value, test.p, tested=True)
    return check._replace(where=where) if where else check


def _check(
    evidence: Evidence,
    holds: bool,
    numbers: str,
    value: float = np.nan,
    p: float = np.nan,
    *,
    tested: bool = False,
) -> Check:
    """A check of one experiment, at its task and start."""
    return Check(
        evidence.condition.task, evidence.condition.start, holds, numbers, value, p, tested
    )


def _interval(test: statistics.Paired, sign: int) -> str:
    if not np.isfinite(test.low):
        return ""
    low, high = sorted((sign * test.low, sign * test.high))
    return f" [{signed(low)}, {signed(high)}]"


def _both(first: Check, second: Check) -> Check:
    """Combine two tests in one check: both must hold, so the larger p counts."""
    return first._replace(
        holds=first.holds and second.holds,
        numbers=f"{first.numbers}. {second.numbers}",
        value=max(first.value, second.value),
        p=_larger(first.p, second.p),
    )


def _larger(first: float, second: float) -> float:
    return float("nan") if np.isnan(first) or np.isnan(second) else max(first, second)


def batch_is_sgd(data: Data) -> Iterable[Check]:
    """The 95 % interval of the difference lies within ±5 % of the initial distance."""
    for evidence in data.every("cooperative", "batch", "sgd"):
        test = statistics.paired(evidence.left("batch"), evidence.left("sgd"))
        alike = bool(max(abs(test.low), abs(test.high)) <= ALIKE)
        left = [float(np.mean(evidence.left(method))) for method in ("batch", "sgd")]
        numbers = (
            f"share of the initial distance left: Batch {left[0]:.3f}, SGD {left[1]:.3f}; "
            f"difference {signed(test.difference)}{_interval(test, 1)}"
        )
        yield _check(evidence, alike, numbers, test.difference, test.p)


def imt_is_better(data: Data) -> Iterable[Check]:
    """IMT ends closer than Batch and SGD, and gains less on Batch than ITAL gains on IMT."""
    for evidence in data.every("cooperative", *BASELINES, "ital"):
        gain = float(np.mean(evidence.left("batch")) - np.mean(evidence.left("imt")))
        more = float(np.mean(evidence.left("imt")) - np.mean(evidence.left("ital")))
        check = _both(closer(evidence, "imt", "batch"), closer(evidence, "imt", "sgd"))
        modest = f"gain over Batch {signed(gain)} of the initial distance; ITAL's gain over IMT {signed(more)}"
        yield check._replace(
            holds=check.holds and gain < more, numbers=f"{check.numbers}. {modest}"
        )


def ital_is_best(data: Data) -> Iterable[Check]:
    """On every metric of the task's figure, ITAL ends better than the best of Batch, SGD and IMT."""
    for evidence in data.every("cooperative", *BASELINES, "ital"):
        for metric in evidence.panels():
            judged = evidence.main if metric == "distance" else metric
            best = min(BASELINES, key=lambda method: float(np.mean(evidence.final(method, judged))))
            yield closer(
                evidence,
                "ital",
                best,
                judged,
                where=f"{evidence.condition.task} {judged.replace('_', ' ')}",
            )


def ital_2_beats_imt(data: Data) -> Iterable[Check]:
    """ITAL-2, which sees two examples of each mini-batch, ends closer than IMT."""
    for evidence in data.every("cooperative", "ital-2", "imt"):
        yield closer(evidence, "ital-2", "imt")


def more_is_faster(data: Data) -> Iterable[Check]:
    """The mean distance over the run falls with M: no rise above 1 % of the initial distance, a trend over seeds."""
    views = np.array([2, 5, 10, 15, 20], float)
    for evidence in data.every("cooperative", *METHODS_BY_VIEW):
        curves = [evidence.curve(method)[1] for method in METHODS_BY_VIEW]
        areas = np.stack(
            [(values / values[:, :1]).mean(axis=1) for values in curves]
        )  # (method, seed)
        if not np.isfinite(areas).all():
            yield _check(evidence, False, "a learner has diverged")
            continue
        means = areas.mean(axis=1)
        ranks = np.argsort(np.argsort(areas, axis=0), axis=0)
        trend = np.array([np.corrcoef(np.log(views), own)[0, 1] for own in ranks.T])
        test = statistics.paired(trend, np.zeros_like(trend))
        ordered = bool((np.diff(means) <= 0.01).all())
        falls = (
            "mean distance over the run, as a share of the initial one, M = 2, 5, 10, 15, 20: "
            f"{', '.join(f'{m:.3f}' for m in means)}"
        )
        holds = ordered and test.difference < 0
        value = float(means[-1] / means[0])
        yield _check(evidence, holds, falls, value, test.p, tested=True)


def ital_converges(data: Data) -> Iterable[Check]:
    """After 2000 steps at least half the initial distance is gained, at most 5 % of it in the last quarter."""
    for evidence in data.every("cooperative", "ital"):
        if evidence.steps < 2000:
            continue
        steps, values = evidence.curve("ital")
        at = int(np.argmin(np.abs(steps - 0.75 * steps[-1])))
        shares = values / values[:, :1]
        left, late = float(shares[:, -1].mean()), float((shares[:, at] - shares[:, -1]).mean())
        reached = [
            median_if_most(statistics.steps_to_reach(steps, values, share))
            for share in statistics.SHARES
        ]
        numbers = (
            f"share of the initial distance left {left:.3f}, gained in the last quarter {signed(late)}; "
            f"steps to 50 %, 10 %, 1 %: {', '.join(reached)}"
        )
        yield _check(evidence, left <= 0.5 and abs(late) <= FLAT, numbers, left)


def median_if_most(steps: np.ndarray) -> str:
    """The median number of steps, if most seeds reached the level."""
    reached = np.isfinite(steps)
    return f"{np.median(steps[reached]):.0f}" if reached.mean() > 0.5 else "–"


def both_networks(data: Data) -> Iterable[Check]:
    """With the smaller and with the larger teacher network, ITAL ends closer than IMT."""
    for name, (smaller, larger) in NETWORKS.items():
        for start in dict.fromkeys(condition.start for condition in data.experiments):
            pair = [data.get(start, task, "cooperative") for task in (smaller, larger)]
            ready = [
                evidence
                for evidence in pair
                if evidence is not None and evidence.has("ital", "imt")
            ]
            if len(ready) == 2:
                yield _both(*(closer(evidence, "ital", "imt") for evidence in ready))._replace(
                    where=name
                )


def adversary(data: Data) -> Iterable[Check]:
    """IMT gains less than 10 % of the initial distance; ITAL gains more than that and ends closer than IMT."""
    for evidence in data.every("adversarial", "imt", "ital"):
        naive, aware = (float(1 - np.mean(evidence.left(method))) for method in ("imt", "ital"))
        check = closer(evidence, "ital", "imt")
        numbers = f"share of the initial distance gained: IMT {signed(naive)}, ITAL {signed(aware)}. {check.numbers}"
        yield check._replace(holds=check.holds and naive < BARELY < aware, numbers=numbers)


def sparse(data: Data) -> Iterable[Check]:
    """With sparse rewards ITAL ends better than IMT on every metric of the figure."""
    for evidence in data.every("cooperative", "imt", "ital", tasks=("irl-sparse",)):
        for metric in evidence.panels():
            judged = evidence.main if metric == "distance" else metric
            yield closer(evidence, "ital", "imt", judged, where=judged.replace("_", " "))


def random_teacher(data: Data) -> Iterable[Check]:
    """With a random teacher ITAL learns no more than IMT, and its results vary more over seeds or participants."""
    for evidence in data.every("random", "imt", "ital"):
        check = closer(evidence, "ital", "imt")
        holds, spread = _no_gain(evidence.final("ital"), evidence.final("imt"))
        numbers = f"{check.numbers} (p {p_equals(check.p)}). {spread}"
        yield _check(evidence, holds, numbers, check.value)
    for name, arms in (data.study.random if data.study is not None else {}).items():
        aware, naive = np.array(arms["aware"]), np.array(arms["naive"])
        holds, spread = _no_gain(-aware, -naive)
        numbers = f"distance fell by {number(aware.mean())} (ITAL) and {number(naive.mean())} (IMT), simulated. {spread}"
        yield Check(f"map {name}", STUDY, holds, numbers)


def _no_gain(aware: np.ndarray, naive: np.ndarray) -> tuple[bool, str]:
    """Whether the first, where less is better, is not significantly better and varies significantly more."""
    test = statistics.paired(aware, naive)
    ratio, p = statistics.spread_ratio(aware, naive)
    no_gain = not (test.difference < 0 and test.p < LEVEL)
    return no_gain and bool(
        ratio > 1 and p < LEVEL
    ), f"Spread: {number(ratio, 2)} times IMT's (p {p_equals(p)})"


def study_arms(data: Data) -> Iterable[Check]:
    """Machine-taught, simulated: on each map ITAL's distance and policy total variation fall further, and its reward
    ends higher, than IMT's.
    """
    for row in data.study.tests if data.study is not None else ():
        if row["outcome"] not in CLAIMED:
            continue
        measure = CLAIMED[row["outcome"]]
        numbers = (
            f"{measure}: {number(row['mean_first'])} (ITAL) and {number(row['mean_second'])} (IMT); "
            f"difference {signed(row['difference'])}, simulated"
        )
        value = row["difference"] if measure == "distance" else float("nan")
        where, ahead = f"map {row['map']}, {measure}", row["difference"] > 0
        yield Check(where, STUDY, ahead, numbers, value, row["p"], tested=True)


def theorem(data: Data) -> Iterable[Check]:
    """On sampled steps where both conditions hold, the aware step beats the naive one at the largest β tried."""
    for (start, task), panel in data.theory.items():
        guarantee = panel["guarantee"]
        if not guarantee["held"]:
            continue
        shares, betas = guarantee["where_held"], guarantee["beta"]
        lowest = int(np.argmin(shares))
        numbers = (
            f"conditions hold on {guarantee['held']} of {guarantee['steps']} sampled steps; the aware step is the "
            f"better one on {share(shares[-1])} of these at β = {number(betas[-1], 1)}, on {share(shares[lowest])} at "
            f"β = {number(betas[lowest], 1)}, where the step overshoots"
        )
        yield Check(task, start, shares[-1] >= 0.999, numbers, shares[-1])


def monotonicity(data: Data) -> Iterable[Check]:
    """At most 1 % of sampled pairs violate teaching monotonicity, which the corollary assumes."""
    for (start, task), panel in data.theory.items():
        violated = panel["monotonicity_violations"]
        yield Check(
            task,
            start,
            violated <= 0.01,
            f"{share(violated, 2)} of sampled pairs violate it",
            violated,
        )


def never_behind(data: Data) -> Iterable[Check]:
    """At 99 % of all measured steps of all seeds, ITAL is no farther away than IMT plus 1 % of the initial distance."""
    for evidence in data.every("cooperative", "imt", "ital"):
        naive, aware = evidence.curve("imt")[1], evidence.curve("ital")[1]
        ahead = float(np.mean(aware <= naive + 0.01 * naive[:, :1]))
        numbers = f"no farther away at {share(ahead)} of all points"
        yield _check(evidence, ahead >= 0.99, numbers, ahead)


def hours(data: Data) -> Iterable[Check]:
    """Every setting of the paper's size (2000 steps, at least 8 methods, 20 seeds) takes less than 12 hours here."""
    for evidence in data.every("cooperative"):
        if (
            evidence.steps < 2000
            or evidence.curves.sizes["seed"] < 20
            or evidence.curves.sizes["learner"] < 8
        ):
            continue
        took = float(evidence.curves.attrs["seconds"])
        yield _check(evidence, took < 3600 * HOURS, duration(took), took / 60)


def duration(took: float) -> str:
    """Seconds in words."""
    return (
        f"{took:.0f} s"
        if took < 120
        else f"{took / 60:.0f} min"
        if took < 7200
        else f"{took / 3600:.1f} h"
    )


def awareness(data: Data) -> Iterable[Check]:
    """ITAL ends closer than both controls, which take equally long steps along a gradient, without awareness."""
    for evidence in data.every("cooperative", "ital", "imt-matched", "batch-matched"):
        yield _both(
            closer(evidence, "ital", "imt-matched"), closer(evidence, "ital", "batch-matched")
        )


def awareness_when_tuned(data: Data) -> Iterable[Check]:
    """With each method at its own best η and β, the best aware method ends closer than the best naive one."""
    from ital import tuning

    for condition, grid in data.sweeps.items():
        verdict = tuning.judge(grid, int(grid["step"].values[-1]))
        if verdict.aware is None or verdict.naive is None:
            continue
        aware, naive = verdict.aware.values.values, verdict.naive.values.values
        test = statistics.paired(aware, naive)
        on_edge = ", ".join(
            f"{best.label}: {' and '.join(best.edge)}"
            for best in (verdict.aware, verdict.naive)
            if best.edge
        )
        numbers = (
            f"{verdict.aware} {number(verdict.aware.mean)}, {verdict.naive} {number(verdict.naive.mean)}"
            + (f"; at the end of its range: {on_edge}" if on_edge else "")
        )
        ratio = verdict.aware.mean / verdict.naive.mean if verdict.naive.mean else float("nan")
        yield Check(
            condition.task,
            condition.start,
            test.difference < 0,
            numbers,
            ratio,
            test.p,
            tested=True,
        )


def _words(rule: Callable[[Data], Iterable[Check]]) -> str:
    return " ".join((rule.__doc__ or "").split())


def _nobody(data: Data) -> Iterable[Check]:
    """Needs data from people: the study platform collects them, and its own report judges this claim."""
    return ()


MAIN, SUPPLEMENT, OURS = "main text", "supplement", "our question"

CLAIMS = tuple(
    Claim(claim, source, _words(rule), rule, value, NEEDS_PEOPLE if rule is _nobody else NO_DATA)
    for claim, source, rule, value in (
        (
            "Batch and SGD learn alike",
            MAIN,
            batch_is_sgd,
            "difference, of the distance at the start",
        ),
        (
            "IMT is better than both, modestly",
            MAIN,
            imt_is_better,
            "final distance, times that of Batch or SGD",
        ),
        (
            "ITAL is best on every task and metric",
            MAIN,
            ital_is_best,
            "final distance, times the best baseline's",
        ),
        (
            "ITAL beats IMT even if it sees 2 examples",
            MAIN,
            ital_2_beats_imt,
            "final distance, times IMT's",
        ),
        (
            "The more of the mini-batch it sees, the faster it learns",
            MAIN,
            more_is_faster,
            "mean distance over the run with all 20, times that with 2",
        ),
        ("ITAL converges within 2000 steps", MAIN, ital_converges, "distance left, of the start"),
        (
            "It works with a smaller and with a larger teacher network",
            SUPPLEMENT,
            both_networks,
            "final distance, times IMT's",
        ),
        (
            "Adversary: a naive learner barely learns, ITAL does",
            MAIN,
            adversary,
            "final distance, times IMT's",
        ),
        ("It works with sparse rewards too", SUPPLEMENT, sparse, "final distance, times IMT's"),
        (
            "A random teacher brings no gain and a larger spread",
            SUPPLEMENT,
            random_teacher,
            "final distance, times IMT's",
        ),
        (
            "Study: ITAL over IMT on all five maps and three measures (simulated teachers here)",
            MAIN,
            study_arms,
            "further decrease of the distance",
        ),
        ("Machine teachers do better than human ones", MAIN, _nobody, ""),
        (
            "Theorem 1: large β makes the aware step the better one",
            MAIN,
            theorem,
            "share of steps at the largest β",
        ),
        (
            "Corollary, its assumption: teaching monotonicity",
            MAIN,
            monotonicity,
            "share of pairs that violate it",
        ),
        (
            "Corollary, its promise: ITAL is never behind IMT",
            MAIN,
            never_behind,
            "share of points not behind",
        ),
        (
            f"The longest setting takes {HOURS} hours on {CORES} cores",
            SUPPLEMENT,
            hours,
            "minutes here",
        ),
        (
            "ITAL leads by its awareness, not only by its longer step",
            OURS,
            awareness,
            "ITAL's final distance, times the better control's",
        ),
        (
            "Awareness pays when every method is tuned",
            OURS,
            awareness_when_tuned,
            "final distance of the best aware method, times the best naive one's",
        ),
    )
)


def all_claims() -> list[Claim]:
    """List the paper's claims and ours, then those that other packages declare in ``ital.claims``.

    A broken claim of another package is left out with a warning, so that the long computation is not lost.

    Returns:
        The claims, in the order of the report.
    """
    claims = list(CLAIMS)
    for part in plugins.parts("ital.claims", ()).values():
        try:
            claims.append(part.load())
        except InputError as error:
            warnings.warn(str(error), stacklevel=2)
    return claims


def judge_all(data: Data) -> list[Finding]:
    """Judge every claim, in the order of the report."""
    return [judge(claim, data) for claim in all_claims()]
