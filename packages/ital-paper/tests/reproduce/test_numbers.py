"""Every number of a claim, computed a second time from tables with labels, on experiments that
differ in everything.

Seeds, steps, methods and tasks have different sizes and different values, and each claim holds on
some experiments and fails on others: an axis, a sign or a step that is wrong changes a number here.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ital.statistics import number, p_equals, share, signed
from ital_paper.claims import catalogue
from ital_paper.claims.judging import STUDY, Check, Finding, adjusted, judge
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import STARTS, Condition
from tests.experiments.made_up import BETAS, LRS, UNEVEN, sweep
from tests.experiments.plain import kept, last, main, reached, t_test, table, wins
from tests.reproduce.made_up import experiment, theory, various


def check(evidence, holds, numbers, value=np.nan, p=np.nan, *, tested=False, where=None):
    place = evidence.condition
    return Check(where or place.task, place.start, bool(holds), numbers, value, p, tested)


def label(evidence, method):
    return method.upper()


def interval(test):
    return f" [{signed(test.low)}, {signed(test.high)}]"


def lead(evidence, first, second, metric=None, where=None):
    """Whether the first method ends better than the second."""
    more_is_better = metric == "accuracy"
    ours, theirs = last(evidence, first, metric), last(evidence, second, metric)
    test = t_test(ours - theirs)
    better = wins(-ours, -theirs) if more_is_better else wins(ours, theirs)
    numbers = (
        f"{label(evidence, first)} {number(ours.mean())}, {label(evidence, second)} "
        f"{number(theirs.mean())}; "
        f"difference {signed(test.mean)}{interval(test)}, P(improvement) {better:.2f}"
    )
    of_main = (metric or main(evidence)) == main(evidence)
    value = ours.mean() / theirs.mean() if of_main else np.nan
    holds = test.mean > 0 if more_is_better else test.mean < 0
    return check(evidence, holds, numbers, value, test.p, tested=True, where=where)


def together(first, second):
    return first._replace(
        holds=first.holds and second.holds,
        numbers=f"{first.numbers}. {second.numbers}",
        value=max(first.value, second.value),
        p=max(first.p, second.p),
    )


def batch_is_sgd(evidence):
    test = t_test(kept(evidence, "batch") - kept(evidence, "sgd"))
    left = [kept(evidence, method).mean() for method in ("batch", "sgd")]
    numbers = (
        f"share of the initial distance left: Batch {left[0]:.3f}, SGD {left[1]:.3f}; "
        f"difference {signed(test.mean)}{interval(test)}"
    )
    yield check(evidence, test.low >= -0.05 and test.high <= 0.05, numbers, test.mean, test.p)


def imt_is_better(evidence):
    both = together(lead(evidence, "imt", "batch"), lead(evidence, "imt", "sgd"))
    left = {method: kept(evidence, method).mean() for method in ("batch", "imt", "ital")}
    gain, more = left["batch"] - left["imt"], left["imt"] - left["ital"]
    words = (
        f"gain over Batch {signed(gain)} of the initial distance; "
        f"ITAL's gain over IMT {signed(more)}"
    )
    yield both._replace(holds=both.holds and gain < more, numbers=f"{both.numbers}. {words}")


def ital_is_best(evidence):
    for metric in (main(evidence), "loss", "accuracy"):
        sign = -1 if metric == "accuracy" else 1
        means = {
            method: sign * last(evidence, method, metric).mean()
            for method in ("batch", "sgd", "imt")
        }
        best = min(means, key=means.get)
        yield lead(
            evidence, "ital", best, metric, f"{evidence.condition.task} {metric.replace('_', ' ')}"
        )


def ital_2_beats_imt(evidence):
    yield lead(evidence, "ital-2", "imt")


def more_is_faster(evidence):
    views = {"ital-2": 2, "ital-5": 5, "ital-10": 10, "ital-15": 15, "ital": 20}
    areas = pd.DataFrame(
        {
            method: table(evidence, method).T.div(table(evidence, method)[0]).mean()
            for method in views
        }
    )
    means = areas.mean()
    # Spearman's trend over M, of each seed; views are in logarithms, methods in ranks
    trend = [
        np.corrcoef(np.log(list(views.values())), own.rank())[0, 1] for _, own in areas.iterrows()
    ]
    test = t_test(np.array(trend))
    ordered = all(later <= earlier + 0.01 for earlier, later in itertools.pairwise(means))
    numbers = (
        "mean distance over the run, as a share of the initial one, M = 2, 5, 10, 15, 20: "
        f"{', '.join(f'{mean:.3f}' for mean in means)}"
    )
    holds = ordered and test.mean < 0
    yield check(evidence, holds, numbers, means["ital"] / means["ital-2"], test.p, tested=True)


def ital_converges(evidence):
    rows = table(evidence, "ital")
    end = rows.columns.max()
    if end < 2000:
        return
    late_step = min(rows.columns, key=lambda step: abs(step - 0.75 * end))
    left, late = kept(evidence, "ital").mean(), ((rows[late_step] - rows[end]) / rows[0]).mean()
    numbers = (
        f"share of the initial distance left {left:.3f}, gained in the last quarter "
        f"{signed(late)}; "
        f"steps to 50 %, 10 %, 1 %: {', '.join(reached(rows, level) for level in (0.5, 0.1, 0.01))}"
    )
    yield check(evidence, left <= 0.5 and -0.05 <= late <= 0.05, numbers, left)


def adversary(evidence):
    naive, aware = (1 - kept(evidence, method).mean() for method in ("imt", "ital"))
    ahead = lead(evidence, "ital", "imt")
    numbers = (
        f"share of the initial distance gained: IMT {signed(naive)}, ITAL {signed(aware)}. "
        f"{ahead.numbers}"
    )
    yield ahead._replace(holds=ahead.holds and naive < 0.1 < aware, numbers=numbers)


def sparse(evidence):
    if evidence.condition.task == "irl-sparse":
        for metric in (main(evidence), "loss", "accuracy"):
            yield lead(evidence, "ital", "imt", metric, metric.replace("_", " "))


def spread(ours, theirs):
    """Ratio of the deviations and p of Pitman and Morgan's test, from its formula."""
    n, ratio = len(ours), np.std(ours, ddof=1) / np.std(theirs, ddof=1)
    r = np.corrcoef(ours, theirs)[0, 1]
    t = (ratio**2 - 1) * np.sqrt(n - 2) / (2 * ratio * np.sqrt(1 - r**2))
    return ratio, 2 * stats.t(n - 2).cdf(-abs(t))


def no_gain(ours, theirs):
    test, (ratio, p) = t_test(ours - theirs), spread(ours, theirs)
    holds = not (test.mean < 0 and test.p < 0.05) and ratio > 1 and p < 0.05
    return holds, f"Spread: {number(ratio, 2)} times IMT's (p {p_equals(p)})"


def random_teacher(evidence):
    ahead = lead(evidence, "ital", "imt")
    holds, words = no_gain(last(evidence, "ital"), last(evidence, "imt"))
    yield check(evidence, holds, f"{ahead.numbers} (p {p_equals(ahead.p)}). {words}", ahead.value)


def never_behind(evidence):
    naive, aware = table(evidence, "imt"), table(evidence, "ital")
    points = [
        aware.loc[seed, step] <= naive.loc[seed, step] + 0.01 * naive.loc[seed, 0]
        for seed in naive.index
        for step in naive.columns
    ]
    ahead = np.mean(points)
    yield check(evidence, ahead >= 0.99, f"no farther away at {share(ahead)} of all points", ahead)


def awareness(evidence):
    yield together(lead(evidence, "ital", "imt-matched"), lead(evidence, "ital", "batch-matched"))


def same(found, expected):
    """Whether checks agree in words, and in numbers to rounding."""
    assert [one[:4] for one in found] == [one[:4] for one in expected]
    for name in ("value", "p"):
        np.testing.assert_allclose(
            [getattr(one, name) for one in found],
            [getattr(one, name) for one in expected],
            rtol=1e-9,
            atol=1e-14,
        )
    assert [one.tested for one in found] == [one.tested for one in expected]


def differ(values):
    """Whether a case can tell a wrong axis: its numbers differ."""
    return len({value for value in values if np.isfinite(value)}) > 1


CASES = {
    batch_is_sgd: various(batch=0.6, rough=0.2),
    imt_is_better: various(imt=0.55, ital=0.2),
    ital_is_best: various(ital=0.3),
    ital_2_beats_imt: various(),
    more_is_faster: various(),
    ital_converges: various(),
    adversary: various("adversarial", imt=1.0, batch=1.0),
    sparse: various(ital=0.55),
    random_teacher: various("random", ital=0.9),
    never_behind: various(rough=0.06),
    awareness: various(ital=0.05),
}


@pytest.mark.parametrize("expected", CASES, ids=lambda rule: rule.__name__)
def test_the_numbers_of_a_claim_are_those_of_a_second_look(expected):
    experiments = CASES[expected]
    rule = getattr(catalogue, expected.__name__)
    found = list(rule(Data(experiments)))
    same(found, [own for one in experiments for own in expected(one)])
    assert {one.holds for one in found} == {True, False}
    assert differ([one.value for one in found])


def test_both_networks_of_a_family_count():
    """Pairs of networks with different leads; a family without its second network is not judged."""
    smaller, larger = (
        ("mnist-20", "equation-40", "cifar10-6", "tiny-imagenet-13"),
        ("mnist-30", "equation-50", "cifar10-12"),
    )
    shares = {"mnist-20": 0.1, "mnist-30": 0.5, "equation-40": 0.6, "equation-50": 0.2}
    experiments = [
        experiment(
            {"ital": shares.get(task, 0.8)},
            task=task,
            start=start,
            seeds=5 + i,
            steps=UNEVEN,
            rough=0.05,
            draw=i,
        )
        for start in STARTS
        for i, task in enumerate((*larger, *smaller))
    ]
    found = list(catalogue.both_networks(Data(experiments)))
    at = {one.condition: one for one in experiments}
    names = {"mnist-20": "MNIST", "cifar10-6": "CIFAR-10", "equation-40": "equations"}
    pairs = dict(zip(smaller, larger, strict=False))
    expected = [
        together(
            *(
                lead(at[Condition(start, task, "cooperative")], "ital", "imt")
                for task in (small, pairs[small])
            )
        )._replace(where=names[small])
        for small in names
        for start in STARTS
    ]
    same(found, expected)
    assert {one.holds for one in found} == {True, False}
    assert (
        found[0].value
        > lead(at[Condition(STARTS[0], "mnist-20", "cooperative")], "ital", "imt").value
    )


def test_the_study_of_random_teachers_is_judged_robot_by_robot():
    rng = np.random.default_rng(3)
    arms = {}
    for i, name in enumerate("ABCD"):
        naive = rng.normal(0.2, 0.3, 8 + i)
        arms[name] = {
            "aware": (2 * naive + rng.normal(0.9 - 0.5 * i, 0.4, 8 + i)).tolist(),
            "naive": naive.tolist(),
        }
    found = list(catalogue.random_teacher(Data([], study=SimpleNamespace(random=arms))))
    expected = []
    for name, robots in arms.items():
        fell, naive = np.array(robots["aware"]), np.array(robots["naive"])
        holds, words = no_gain(-fell, -naive)
        numbers = (
            f"distance fell by {number(fell.mean())} (ITAL) and {number(naive.mean())} (IMT), "
            f"simulated. {words}"
        )
        expected.append(Check(f"map {name}", STUDY, holds, numbers))
    same(found, expected)
    assert {one.holds for one in found} == {True, False}


def test_the_claim_of_the_study_reads_every_row():
    rng = np.random.default_rng(4)
    measures = {"reward": "reward", "distance_last": "distance", "policy_tv_last": "policy"}
    rows = [
        {"outcome": outcome, "map": name, "p": rng.uniform(), "p_holm": 1.0}
        | dict(zip(("mean_first", "mean_second", "difference"), rng.normal(size=3), strict=True))
        for outcome in (*measures, "distance_first")
        for name in "ABC"
    ]
    found = list(catalogue.study_arms(Data([], study=SimpleNamespace(tests=rows))))
    expected = [
        Check(
            f"map {row['map']}, {measures[row['outcome']]}",
            STUDY,
            row["difference"] > 0,
            f"{measures[row['outcome']]}: {number(row['mean_first'])} (ITAL) and "
            f"{number(row['mean_second'])} (IMT); "
            f"difference {signed(row['difference'])}, simulated",
            row["difference"] if row["outcome"] == "distance_last" else np.nan,
            row["p"],
            True,
        )
        for row in rows[:9]
    ]
    same(found, expected)
    assert {one.holds for one in found} == {True, False}


def test_the_theorem_is_judged_at_the_largest_beta():
    panels = {}
    for i, (task, held) in enumerate(
        {"regression": 1.0, "gaussian": 0.998, "mnist-20": 0.9992}.items()
    ):
        one = theory(held=held)
        one["guarantee"] |= {
            "held": 40 + i,
            "steps": 50 + i,
            "where_held": [0.99 - 0.01 * i, 0.3 + 0.1 * i, held],
        }
        panels[STARTS[i % 2], task] = one
    panels[STARTS[0], "irl-dense"] = theory()
    panels[STARTS[0], "irl-dense"]["guarantee"] |= {"held": 0, "where_held": []}
    found = list(catalogue.theorem(Data([], panels)))
    assert [(one.where, one.start, one.holds, one.value) for one in found] == [
        ("regression", STARTS[0], True, 1.0),
        ("gaussian", STARTS[1], False, 0.998),
        ("mnist-20", STARTS[0], True, 0.9992),
    ]
    assert found[1].numbers == (
        "conditions hold on 41 of 51 sampled steps; the aware step is the better one on 99.8 % of "
        "these at "
        "β = 1×10¹², on 40.0 % at β = 1×10⁶, where the step overshoots"
    )


def test_monotonicity_is_a_share_of_pairs():
    shares = {"regression": 0.01, "gaussian": 0.011, "mnist-20": 0.0}
    panels = {(STARTS[1], task): theory(violations=violated) for task, violated in shares.items()}
    found = list(catalogue.monotonicity(Data([], panels)))
    assert [(one.where, one.start, one.value, one.holds) for one in found] == [
        (task, STARTS[1], violated, violated <= 0.01) for task, violated in shares.items()
    ]
    assert found[1].numbers == "1.10 % of sampled pairs violate it"


@pytest.mark.parametrize(
    ("options", "judged"),
    [
        ({}, True),
        ({"seconds": 12 * 3600.0}, False),
        ({"seconds": 12 * 3600.0 - 1}, True),
        ({"seeds": 19}, None),
        ({"steps": np.arange(0, 2000, 100)}, None),
        ({"left": {"imt": 0.5}, "methods": 7}, None),
        ({"methods": 8}, True),
    ],
)
def test_only_runs_of_the_papers_size_are_timed(options, judged):
    methods = options.pop("methods", None)
    one = experiment(**{"seconds": 5000.0} | options)
    if methods:
        one = type(one)(one.condition, one.task, one.curves.isel(learner=slice(methods)))
    found = list(catalogue.hours(Data([one])))
    assert [check.holds for check in found] == ([] if judged is None else [judged])
    if found:
        seconds = one.curves.attrs["seconds"]
        assert found[0].value == seconds / 60
        assert found[0].numbers == ("83 min" if seconds == 5000 else "12.0 h")


def test_tuned_methods_are_compared_on_their_seeds():
    """The tuned methods have the same seeds; test_tuning.py of ital compares how the best are
    found.
    """
    places = (
        Condition(STARTS[0], "regression", "cooperative"),
        Condition(STARTS[1], "gaussian", "cooperative"),
    )
    sweeps, expected = {}, []
    for place, ahead in zip(places, (1.0, 0.0), strict=True):
        grid = sweep(draw=int(ahead), lead=ahead, whole=True)
        last = grid["distance"].sel(step=grid["step"].max())
        seeds = {
            method: [
                last.sel(learner=method, lr=lr, beta=beta).to_series()
                for lr in LRS
                for beta in BETAS
            ]
            for method in ("batch", "imt", "ital", "ital-5")
        }
        aware = min(seeds["ital"] + seeds["ital-5"], key=pd.Series.mean)
        naive = min(seeds["batch"] + seeds["imt"], key=pd.Series.mean)
        test = t_test(aware - naive)
        expected.append(
            (place.task, place.start, test.mean < 0, aware.mean() / naive.mean(), test.p, True)
        )
        sweeps[place] = grid
    found = list(catalogue.awareness_when_tuned(Data([], sweeps=sweeps)))
    for one, other in zip(found, expected, strict=True):
        assert (one.where, one.start, one.holds, one.tested) == (*other[:3], other[5])
        assert (one.value, one.p) == pytest.approx(other[3:5])
    assert {one.holds for one in found} == {True, False}


def test_every_claim_is_looked_at_twice():
    alone = {
        "both_networks",
        "study_arms",
        "theorem",
        "monotonicity",
        "hours",
        "awareness_when_tuned",
        "awareness_as_evidence",
        "_nobody",
    }
    assert {claim.check.__name__ for claim in catalogue.CLAIMS} == {
        rule.__name__ for rule in CASES
    } | alone


# ---- the verdict ----


def holm(values):
    """Holm's adjustment, one value after the other."""
    known = sorted(value for value in values if not np.isnan(value))
    by_rank, largest = {}, 0.0
    for rank, value in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        by_rank.setdefault(value, largest)
    return [by_rank.get(value, np.nan) for value in values]


@pytest.mark.parametrize("name", ["ital_2_beats_imt", "ital_is_best", "adversary", "batch_is_sgd"])
def test_a_verdict_counts_what_holds_after_the_adjustment(name):
    (expected,) = [rule for rule in CASES if rule.__name__ == name]
    claim = next(claim for claim in catalogue.CLAIMS if claim.check.__name__ == name)
    data = Data(CASES[expected])
    before, finding = list(claim.check(data)), judge(claim, data)
    p = holm([one.p for one in before])
    holds = [
        one.holds and (not one.tested or own < 0.05) for one, own in zip(before, p, strict=True)
    ]
    np.testing.assert_allclose([one.p for one in finding.checks], p)
    assert [one.holds for one in finding.checks] == holds
    if before[0].tested:
        assert sum(holds) < sum(one.holds for one in before)  # the adjustment matters
    assert finding.verdict == "holds in part"
    values = sorted(one.value for one in before if not np.isnan(one.value))
    assert finding.range == pytest.approx((values[0], np.median(values), values[-1]))
    counted = [own for one, own, held in zip(before, p, holds, strict=True) if one.tested and held]
    assert finding.p == (pytest.approx(max(counted)) if counted else None)
    for start, tally in zip(STARTS, finding.tallies, strict=True):
        own = [
            (one.where, held) for one, held in zip(before, holds, strict=True) if one.start == start
        ]
        failing = [where for where, held in own if not held]
        assert tally == (f"{start} start", len(own) - len(failing), len(own), failing)
    row = finding.row()
    assert row["checks"][3][:3] == [before[3].where, before[3].start, holds[3]]
    assert row["checks"][0][3:5] == [float(f"{before[0].value:.3e}"), float(f"{p[0]:.3e}")]
    assert row["p"] == (float(f"{max(counted):.2e}") if counted else None)


def test_the_p_of_a_finding_is_the_largest_of_the_tests_that_hold():
    checks = [
        Check("a", STARTS[0], True, "", p=0.01, tested=True),
        Check("b", STARTS[0], False, "", p=0.8, tested=True),
        Check("c", STARTS[0], True, "", p=0.02, tested=True),
        Check("d", STARTS[0], True, "", p=0.6),
    ]
    finding = Finding("claim", "source", "rule", "holds in part", "value", checks)
    assert finding.p == 0.02
    assert finding.row()["p"] == 0.02
    assert "Paired tests where it holds: p ≤ 0.020" in finding.summary


def test_a_summary_names_six_places_and_counts_the_rest():
    checks = [Check(f"place {i}", STARTS[0], i == 0, "", value=float(i)) for i in range(9)]
    checks += [Check("elsewhere", STARTS[1], False, "")]
    summary = Finding("claim", "source", "rule", "holds in part", "times", checks).summary
    assert summary == (
        "Uniform start: 1 of 9, not on place 1, place 2, place 3, place 4, place 5, place 6 and 2 "
        "more. "
        "Normal:0.1 start: 0 of 1. Times: 0 to 8.00, median 4.00."
    )


def test_only_tested_checks_need_a_small_p():
    checks = [
        Check("", "", True, "", p=p, tested=tested)
        for p, tested in ((0.04, True), (0.2, False), (0.01, True))
    ]
    assert [(one.holds, one.p) for one in adjusted(checks)] == [
        (False, 0.08),
        (True, 0.2),
        (True, 0.03),
    ]
