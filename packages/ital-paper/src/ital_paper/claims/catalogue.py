"""The paper's claims, each a rule that the data may fail.

A rule checks every experiment that the claim is about, from both starts. A claim holds if all its
checks hold, holds in part if some do (as for a claim that depends on the start), and does not hold
if none does. Tests are paired over seeds; p-values are adjusted (Holm) within a claim.

A new claim is a rule here and an entry in ``CLAIMS``. The docstring of the rule is its text in the
report. A claim about a task that is not in the paper belongs to another package, which declares it
under ``ital.claims``: :meth:`Data.every` yields the paper's experiments only, ``Data.others`` has
the runs of other tasks.
"""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

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

Rule = Callable[[Data], Iterable[Check]]

# Shares of the initial distance:
ALIKE = 0.05  # a smaller difference counts as equal
BARELY = 0.10  # a learner that gained less has barely learned
FLAT = 0.05  # gaining less in the last quarter of the steps is convergence
RISE = 0.01  # a smaller rise is none

NETWORKS = {
    "MNIST": ("mnist-20", "mnist-30"),
    "CIFAR-10": ("cifar10-6", "cifar10-12"),
    "Tiny ImageNet": ("tiny-imagenet-lite0", "tiny-imagenet-lite2"),
    "Tiny ImageNet, VGG": ("tiny-imagenet-13", "tiny-imagenet-19"),
    "equations": ("equation-40", "equation-50"),
}
BASELINES = ("batch", "sgd", "imt")
# The size of the paper's runs, and what its longest setting took:
STEPS = 2000
SEEDS = 20
METHODS = 8
HOURS = 12
CORES = 16
EVIDENCE_STEPS = (100, 200)  # after which choices must have told something


# ---- what rules are made of ----


def closer(
    evidence: Evidence, first: str, second: str, metric: str | None = None, where: str | None = None
) -> Check:
    """Check whether the first method ends better than the second, by a paired test."""
    metric = metric or evidence.main
    # The final values are negated where more is better, so that less is better here.
    finals = [evidence.final(method, metric) for method in (first, second)]
    test = statistics.paired(*finals)
    improvement = statistics.probability_of_improvement(*finals)

    # The words give the metric itself, with its own sign.
    sign = -1 if evidence.higher_is_better(metric) else 1
    first_mean, second_mean = (sign * float(np.mean(final)) for final in finals)
    numbers = (
        f"{evidence.label(first)} {number(first_mean)}, "
        f"{evidence.label(second)} {number(second_mean)}; "
        f"difference {signed(sign * test.difference)}{_interval_in_words(test, sign)}, "
        f"P(improvement) {improvement:.2f}"
    )
    # A ratio of other metrics, such as accuracies, would not compare with a ratio of distances.
    value = float("nan")
    if metric == evidence.main and second_mean:
        value = first_mean / second_mean
    check = _check_experiment(evidence, test.difference < 0, numbers, value, test.p, tested=True)
    return check._replace(where=where) if where else check


def _check_experiment(
    evidence: Evidence,
    holds: bool,
    numbers: str,
    value: float = np.nan,
    p: float = np.nan,
    *,
    tested: bool = False,
) -> Check:
    """Make the check of one experiment, at its task and start."""
    condition = evidence.condition
    return Check(condition.task, condition.start, holds, numbers, value, p, tested)


def _interval_in_words(test: statistics.Paired, sign: int) -> str:
    if not np.isfinite(test.low):
        return ""
    low, high = sorted((sign * test.low, sign * test.high))
    return f" [{signed(low)}, {signed(high)}]"


def _both_hold(first: Check, second: Check) -> Check:
    """Combine two tests in one check: both must hold, so the larger p counts."""
    return first._replace(
        holds=first.holds and second.holds,
        numbers=f"{first.numbers}. {second.numbers}",
        value=max(first.value, second.value),
        p=_larger(first.p, second.p),
    )


def _larger(first: float, second: float) -> float:
    # max() with a NaN depends on the order of its arguments.
    if np.isnan(first) or np.isnan(second):
        return float("nan")
    return max(first, second)


def _mean_left(evidence: Evidence, method: str) -> float:
    """Return the mean share of the initial distance that is left."""
    return float(np.mean(evidence.left(method)))


def _judged_metric(evidence: Evidence, metric: str) -> str:
    """Return the metric that judges a panel: the distance is judged by the main metric."""
    return evidence.main if metric == "distance" else metric


# ---- the cooperative teacher ----


def batch_is_sgd(data: Data) -> Iterable[Check]:
    """The 95 % interval of the difference lies within ±5 % of the initial distance."""
    for evidence in data.every("cooperative", "batch", "sgd"):
        test = statistics.paired(evidence.left("batch"), evidence.left("sgd"))
        alike = bool(max(abs(test.low), abs(test.high)) <= ALIKE)
        numbers = (
            f"share of the initial distance left: Batch {_mean_left(evidence, 'batch'):.3f}, "
            f"SGD {_mean_left(evidence, 'sgd'):.3f}; "
            f"difference {signed(test.difference)}{_interval_in_words(test, 1)}"
        )
        yield _check_experiment(evidence, alike, numbers, test.difference, test.p)


def imt_is_better(data: Data) -> Iterable[Check]:
    """IMT ends closer than Batch and SGD, and gains less on Batch than ITAL gains on IMT."""
    for evidence in data.every("cooperative", *BASELINES, "ital"):
        gain = _mean_left(evidence, "batch") - _mean_left(evidence, "imt")
        gain_of_ital = _mean_left(evidence, "imt") - _mean_left(evidence, "ital")
        check = _both_hold(closer(evidence, "imt", "batch"), closer(evidence, "imt", "sgd"))
        modest = (
            f"gain over Batch {signed(gain)} of the initial distance; "
            f"ITAL's gain over IMT {signed(gain_of_ital)}"
        )
        yield check._replace(
            holds=check.holds and gain < gain_of_ital, numbers=f"{check.numbers}. {modest}"
        )


def ital_is_best(data: Data) -> Iterable[Check]:
    """On every metric of the task's figure, ITAL ends better than the best of Batch, SGD and
    IMT.
    """
    for evidence in data.every("cooperative", *BASELINES, "ital"):
        for panel in evidence.panels():
            metric = _judged_metric(evidence, panel)
            means = {name: float(np.mean(evidence.final(name, metric))) for name in BASELINES}
            best = min(means, key=means.__getitem__)
            where = f"{evidence.condition.task} {metric.replace('_', ' ')}"
            yield closer(evidence, "ital", best, metric, where=where)


def ital_2_beats_imt(data: Data) -> Iterable[Check]:
    """ITAL-2, which sees two examples of each mini-batch, ends closer than IMT."""
    for evidence in data.every("cooperative", "ital-2", "imt"):
        yield closer(evidence, "ital-2", "imt")


def more_is_faster(data: Data) -> Iterable[Check]:
    """The mean distance over the run falls with M: no rise above 1 % of the initial distance, a
    trend over seeds.
    """
    log_views = np.log(np.array([2, 5, 10, 15, 20], float))  # of METHODS_BY_VIEW
    for evidence in data.every("cooperative", *METHODS_BY_VIEW):
        areas = _mean_distances(evidence)
        if not np.isfinite(areas).all():
            yield _check_experiment(evidence, False, "a learner has diverged")
            continue
        # For each seed, how the ranks of the methods go with M: −1 if every larger M is closer.
        ranks = np.argsort(np.argsort(areas, axis=0), axis=0)
        trends = np.array([np.corrcoef(log_views, of_seed)[0, 1] for of_seed in ranks.T])
        test = statistics.paired(trends, np.zeros_like(trends))

        means = areas.mean(axis=1)
        ordered = bool((np.diff(means) <= RISE).all())
        numbers = (
            "mean distance over the run, as a share of the initial one, M = 2, 5, 10, 15, 20: "
            f"{', '.join(f'{mean:.3f}' for mean in means)}"
        )
        value = float(means[-1] / means[0])
        holds = ordered and test.difference < 0
        yield _check_experiment(evidence, holds, numbers, value, test.p, tested=True)


def _mean_distances(evidence: Evidence) -> np.ndarray:
    """Return the mean over the run of the share of the distance left, (method, seed)."""
    areas = []
    for method in METHODS_BY_VIEW:
        _, values = evidence.curve(method)  # (seed, step)
        areas.append((values / values[:, :1]).mean(axis=1))
    return np.stack(areas)


def ital_converges(data: Data) -> Iterable[Check]:
    """After 2000 steps at least half the initial distance is gained, at most 5 % of it in the last
    quarter.
    """
    for evidence in data.every("cooperative", "ital"):
        if evidence.steps < STEPS:
            continue
        steps, values = evidence.curve("ital")  # (step,) and (seed, step)
        last_quarter = int(np.argmin(np.abs(steps - 0.75 * steps[-1])))
        shares = values / values[:, :1]
        left = float(shares[:, -1].mean())
        late = float((shares[:, last_quarter] - shares[:, -1]).mean())
        reached = [
            median_if_most(statistics.steps_to_reach(steps, values, level))
            for level in statistics.SHARES
        ]
        numbers = (
            f"share of the initial distance left {left:.3f}, "
            f"gained in the last quarter {signed(late)}; "
            f"steps to 50 %, 10 %, 1 %: {', '.join(reached)}"
        )
        holds = left <= 0.5 and abs(late) <= FLAT
        yield _check_experiment(evidence, holds, numbers, left)


def median_if_most(steps: np.ndarray) -> str:
    """Return the median number of steps, if most seeds reached the level."""
    reached = np.isfinite(steps)
    return f"{np.median(steps[reached]):.0f}" if reached.mean() > 0.5 else "–"


def both_networks(data: Data) -> Iterable[Check]:
    """With the smaller and with the larger teacher network, ITAL ends closer than IMT."""
    starts = dict.fromkeys(condition.start for condition in data.experiments)
    for name, tasks in NETWORKS.items():
        for start in starts:
            found = [data.get(start, task, "cooperative") for task in tasks]
            pair = [evidence for evidence in found if evidence and evidence.has("ital", "imt")]
            # A family without results for one of its networks is not judged.
            if len(pair) == len(tasks):
                smaller, larger = (closer(evidence, "ital", "imt") for evidence in pair)
                yield _both_hold(smaller, larger)._replace(where=name)


def never_behind(data: Data) -> Iterable[Check]:
    """At 99 % of all measured steps of all seeds, ITAL is no farther away than IMT plus 1 % of the
    initial distance.
    """
    for evidence in data.every("cooperative", "imt", "ital"):
        _, naive = evidence.curve("imt")  # (seed, step)
        _, aware = evidence.curve("ital")
        ahead = float(np.mean(aware <= naive + RISE * naive[:, :1]))
        numbers = f"no farther away at {share(ahead)} of all points"
        yield _check_experiment(evidence, ahead >= 0.99, numbers, ahead)


def hours(data: Data) -> Iterable[Check]:
    """Every setting of the paper's size (2000 steps, at least 8 methods, 20 seeds) takes less than
    12 hours here.
    """
    for evidence in data.every("cooperative"):
        sizes = evidence.curves.sizes
        if evidence.steps < STEPS or sizes["seed"] < SEEDS or sizes["learner"] < METHODS:
            continue
        took = float(evidence.curves.attrs["seconds"])
        yield _check_experiment(evidence, took < 3600 * HOURS, duration(took), took / 60)


def duration(took: float) -> str:
    """Say a number of seconds in words."""
    if took < 120:
        return f"{took:.0f} s"
    if took < 7200:
        return f"{took / 60:.0f} min"
    return f"{took / 3600:.1f} h"


def awareness(data: Data) -> Iterable[Check]:
    """ITAL ends closer than both controls, which take equally long steps along a gradient, without
    awareness.
    """
    for evidence in data.every("cooperative", "ital", "imt-matched", "batch-matched"):
        controls = ("imt-matched", "batch-matched")
        yield _both_hold(*(closer(evidence, "ital", control) for control in controls))


def awareness_when_tuned(data: Data) -> Iterable[Check]:
    """With each method at its own best η and β, the best aware method ends closer than the best
    naive one.
    """
    from ital import tuning

    for condition, grid in data.sweeps.items():
        verdict = tuning.judge(grid, int(grid["step"].values[-1]))
        aware = verdict.aware
        naive = verdict.naive
        if aware is None or naive is None:
            continue
        test = statistics.paired(aware.values.values, naive.values.values)
        numbers = f"{aware} {number(aware.mean)}, {naive} {number(naive.mean)}"
        on_edge = [best for best in (aware, naive) if best.edge]
        if on_edge:
            ends = ", ".join(f"{best.label}: {' and '.join(best.edge)}" for best in on_edge)
            numbers += f"; at the end of its range: {ends}"
        yield Check(
            condition.task,
            condition.start,
            test.difference < 0,
            numbers,
            value=aware.mean / naive.mean if naive.mean else float("nan"),
            p=test.p,
            tested=True,
        )


def awareness_as_evidence(data: Data) -> Iterable[Check]:
    """After 100 steps and after 200, the belief from labels and choices is closer to the target
    than the belief from the same labels alone.
    """
    for evidence in data.evidence.values():
        for step in EVIDENCE_STEPS:
            # A shorter run says nothing about a later step.
            if evidence.steps >= step:
                where = f"{evidence.condition.task} after {step} steps"
                yield closer(evidence.until(step), "ital-posterior", "posterior", where=where)


# ---- other teachers and tasks ----


def adversary(data: Data) -> Iterable[Check]:
    """IMT gains less than 10 % of the initial distance; ITAL gains more than that and ends closer
    than IMT.
    """
    for evidence in data.every("adversarial", "imt", "ital"):
        naive = 1 - _mean_left(evidence, "imt")
        aware = 1 - _mean_left(evidence, "ital")
        check = closer(evidence, "ital", "imt")
        numbers = (
            f"share of the initial distance gained: IMT {signed(naive)}, ITAL {signed(aware)}. "
            f"{check.numbers}"
        )
        yield check._replace(holds=check.holds and naive < BARELY < aware, numbers=numbers)


def sparse(data: Data) -> Iterable[Check]:
    """With sparse rewards ITAL ends better than IMT on every metric of the figure."""
    for evidence in data.every("cooperative", "imt", "ital", tasks=("irl-sparse",)):
        for panel in evidence.panels():
            metric = _judged_metric(evidence, panel)
            yield closer(evidence, "ital", "imt", metric, where=metric.replace("_", " "))


def random_teacher(data: Data) -> Iterable[Check]:
    """With a random teacher ITAL learns no more than IMT, and its results vary more over seeds or
    participants.
    """
    for evidence in data.every("random", "imt", "ital"):
        check = closer(evidence, "ital", "imt")
        holds, spread = _no_gain(evidence.final("ital"), evidence.final("imt"))
        numbers = f"{check.numbers} (p {p_equals(check.p)}). {spread}"
        # The test of the difference is part of the rule, so its p is not adjusted as a claim's.
        yield _check_experiment(evidence, holds, numbers, check.value)
    if data.study is None:
        return
    for name, arms in data.study.random.items():
        aware = np.array(arms["aware"])
        naive = np.array(arms["naive"])
        # The arms hold by how much the distance fell: more is better there.
        holds, spread = _no_gain(-aware, -naive)
        numbers = (
            f"distance fell by {number(aware.mean())} (ITAL) and {number(naive.mean())} (IMT), "
            f"simulated. {spread}"
        )
        yield Check(f"map {name}", STUDY, holds, numbers)


def _no_gain(aware: np.ndarray, naive: np.ndarray) -> tuple[bool, str]:
    """Judge that the first is not significantly better and varies significantly more.

    Less is better. Also return the ratio of the deviations in words.
    """
    test = statistics.paired(aware, naive)
    gains = test.difference < 0 and test.p < LEVEL
    ratio, p = statistics.spread_ratio(aware, naive)
    varies_more = bool(ratio > 1 and p < LEVEL)
    spread = f"Spread: {number(ratio, 2)} times IMT's (p {p_equals(p)})"
    return not gains and varies_more, spread


# ---- the study ----


def study_arms(data: Data) -> Iterable[Check]:
    """Machine-taught, simulated: on each map ITAL's distance and policy total variation fall
    further, and its reward ends higher, than IMT's.
    """
    if data.study is None:
        return
    for row in data.study.tests:
        if row["outcome"] in CLAIMED:
            yield _check_arms(row, CLAIMED[row["outcome"]])


def _check_arms(row: dict[str, Any], measure: str) -> Check:
    """Make the check of one map and measure."""
    difference = row["difference"]
    numbers = (
        f"{measure}: {number(row['mean_first'])} (ITAL) and {number(row['mean_second'])} (IMT); "
        f"difference {signed(difference)}, simulated"
    )
    return Check(
        f"map {row['map']}, {measure}",
        STUDY,
        difference > 0,
        numbers,
        # The summary's range must not mix differences of distances and of rewards.
        value=difference if measure == "distance" else float("nan"),
        p=row["p"],
        tested=True,
    )


def _nobody(data: Data) -> Iterable[Check]:
    """Needs data from people: the study platform collects them, and its own report judges this
    claim.
    """
    return ()


# ---- the theory ----


def theorem(data: Data) -> Iterable[Check]:
    """On sampled steps where both conditions hold, the aware step beats the naive one at the
    largest β tried.
    """
    for (start, task), panel in data.theory.items():
        guarantee = panel["guarantee"]
        if not guarantee["held"]:
            continue
        shares = guarantee["where_held"]
        betas = guarantee["beta"]
        lowest = int(np.argmin(shares))
        numbers = (
            f"conditions hold on {guarantee['held']} of {guarantee['steps']} sampled steps; "
            f"the aware step is the better one on {share(shares[-1])} of these "
            f"at β = {number(betas[-1], 1)}, on {share(shares[lowest])} "
            f"at β = {number(betas[lowest], 1)}, where the step overshoots"
        )
        yield Check(task, start, shares[-1] >= 0.999, numbers, shares[-1])


def monotonicity(data: Data) -> Iterable[Check]:
    """At most 1 % of sampled pairs violate teaching monotonicity, which the corollary assumes."""
    for (start, task), panel in data.theory.items():
        violated = panel["monotonicity_violations"]
        numbers = f"{share(violated, 2)} of sampled pairs violate it"
        yield Check(task, start, violated <= 0.01, numbers, violated)


# ---- the catalogue ----

MAIN = "main text"
SUPPLEMENT = "supplement"
OURS = "our question"


def _claim(
    claim: str,
    source: str,
    rule: Rule,
    value: str,
    without: str = NO_DATA,
) -> Claim:
    """Make a claim from a rule, whose docstring is the rule in words."""
    in_words = " ".join((rule.__doc__ or "").split())
    return Claim(claim, source, in_words, rule, value, without)


CLAIMS = (
    _claim(
        "Batch and SGD learn alike", MAIN, batch_is_sgd, "difference, of the distance at the start"
    ),
    _claim(
        "IMT is better than both, modestly",
        MAIN,
        imt_is_better,
        "final distance, times that of Batch or SGD",
    ),
    _claim(
        "ITAL is best on every task and metric",
        MAIN,
        ital_is_best,
        "final distance, times the best baseline's",
    ),
    _claim(
        "ITAL beats IMT even if it sees 2 examples",
        MAIN,
        ital_2_beats_imt,
        "final distance, times IMT's",
    ),
    _claim(
        "The more of the mini-batch it sees, the faster it learns",
        MAIN,
        more_is_faster,
        "mean distance over the run with all 20, times that with 2",
    ),
    _claim("ITAL converges within 2000 steps", MAIN, ital_converges, "distance left, of the start"),
    _claim(
        "It works with a smaller and with a larger teacher network",
        SUPPLEMENT,
        both_networks,
        "final distance, times IMT's",
    ),
    _claim(
        "Adversary: a naive learner barely learns, ITAL does",
        MAIN,
        adversary,
        "final distance, times IMT's",
    ),
    _claim("It works with sparse rewards too", SUPPLEMENT, sparse, "final distance, times IMT's"),
    _claim(
        "A random teacher brings no gain and a larger spread",
        SUPPLEMENT,
        random_teacher,
        "final distance, times IMT's",
    ),
    _claim(
        "Study: ITAL over IMT on all five maps and three measures (simulated teachers here)",
        MAIN,
        study_arms,
        "further decrease of the distance",
    ),
    _claim("Machine teachers do better than human ones", MAIN, _nobody, "", without=NEEDS_PEOPLE),
    _claim(
        "Theorem 1: large β makes the aware step the better one",
        MAIN,
        theorem,
        "share of steps at the largest β",
    ),
    _claim(
        "Corollary, its assumption: teaching monotonicity",
        MAIN,
        monotonicity,
        "share of pairs that violate it",
    ),
    _claim(
        "Corollary, its promise: ITAL is never behind IMT",
        MAIN,
        never_behind,
        "share of points not behind",
    ),
    _claim(
        f"The longest setting takes {HOURS} hours on {CORES} cores",
        SUPPLEMENT,
        hours,
        "minutes here",
    ),
    _claim(
        "ITAL leads by its awareness, not only by its longer step",
        OURS,
        awareness,
        "ITAL's final distance, times the better control's",
    ),
    _claim(
        "Awareness pays when every method is tuned",
        OURS,
        awareness_when_tuned,
        "final distance of the best aware method, times the best naive one's",
    ),
    _claim(
        "Awareness pays as evidence",
        OURS,
        awareness_as_evidence,
        "distance with choices as evidence, times that from labels alone",
    ),
)


def all_claims() -> list[Claim]:
    """List the paper's claims and ours, then those that other packages declare in ``ital.claims``.

    A broken claim of another package is left out with a warning, so that the long computation is
    not lost.

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
