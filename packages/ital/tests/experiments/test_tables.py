"""Every number of a printed table, computed a second time on results that differ in everything."""

import io
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

from ital import experiments, figures, results, tasks
from ital.statistics import decimals, number, p_value, signed
from tests.experiments.made_up import QUESTIONS, experiment, sweep
from tests.experiments.plain import edges, last, t_test

SEEDS = [4, 9, 2, 7, 5, 11]


@pytest.fixture(scope="module")
def uneven():
    """A run in which two methods lack seeds, one diverges on a seed, and the last step has no
    accuracy.
    """
    made = experiment(
        seeds=SEEDS,
        steps=np.array([0, 90, 200, 310, 500, 640, 900, 1000]),
        rough=0.1,
        spread={"ital": 0.3, "imt": 0.2},
    )
    curves = made.curves.sel(learner=["ital-2", "imt", "batch", "ital"])
    curves["computed"].loc[{"learner": "imt", "seed": [9, 5]}] = 0
    curves["computed"].loc[{"learner": "batch", "seed": [4]}] = 0
    curves["diverged_at"].loc[{"learner": "ital-2", "seed": [2, 7]}] = [640, 310]
    dead = (curves["diverged_at"] >= 0) & (curves["step"] >= curves["diverged_at"])
    alive = ~dead & (curves["computed"] == 1)
    curves = curves.map(
        lambda own: own.where(alive) if "step" in own.dims else own, keep_attrs=True
    )
    return made._replace(curves=curves)


def ends(evidence, method, metric):
    """The last value of each seed that was run."""
    values = (
        evidence.curves[metric]
        .sel(learner=method, step=900 if metric == "accuracy" else 1000)
        .to_series()
    )
    return values[evidence.curves["computed"].sel(learner=method).to_series() == 1]


def printed(show, *arguments):
    """What a function prints: the title, the cells of the table's rows, and the lines below it."""
    console = Console(file=io.StringIO(), width=400)
    show(*arguments, console)
    lines = console.file.getvalue().splitlines()
    title = list(itertools.takewhile(lambda line: not line.startswith("┏"), lines))
    rows = [re.split("[│┃]", line)[1:-1] for line in lines if line[0] in "│┃"]
    below = itertools.dropwhile(lambda line: not line.startswith("└"), lines)
    return " ".join(title), [[cell.strip() for cell in row] for row in rows], list(below)[1:]


def outcome(evidence, computed=3):
    return SimpleNamespace(
        curves=evidence.curves, task=evidence.task, lanes_computed=computed, files=["a file"]
    )


def test_the_table_of_a_run(uneven):
    title, (head, *rows), lines = printed(experiments.print_outcome, outcome(uneven))
    assert head == ["method", "distance", "loss", "accuracy", "seeds"]
    assert " ".join(title.split()) == (
        "The task regression, cooperative teacher: step 1000, mean ± standard error over seeds"
    )
    counts = {"batch": 5, "imt": 4, "ital": 6, "ital-2": 6}
    for row, (method, count) in zip(rows, counts.items(), strict=False):
        cells = []
        for metric in ("distance", "loss", "accuracy"):
            values = ends(uneven, method, metric).to_numpy()
            error = values.std(ddof=1) / np.sqrt(count)
            if metric == "accuracy":
                error = np.sqrt(error**2 + np.mean(values * (1 - values)) / (QUESTIONS - 1))
            cells.append(
                "diverged" if method == "ital-2" else f"{number(values.mean())} ± {number(error)}"
            )
        assert row == [method.upper(), *cells, str(count)]
    start = uneven.curves.sel(learner="batch", step=0)
    firsts = [
        start[metric].sel(seed=[9, 2, 7, 5, 11]).values.mean()
        for metric in ("distance", "loss", "accuracy")
    ]
    assert rows[4] == ["start", *map(number, firsts), ""]
    note, file = lines
    assert note.startswith(
        "ITAL-2 diverged: values are not finite from step 310 on (2 of 6 seeds)."
    )
    assert file == "a file"
    assert printed(experiments.print_outcome, outcome(uneven, 0))[2][-2] == (
        "All results were stored already; nothing was computed."
    )


def test_the_best_method_of_a_metric_is_in_bold(uneven):
    """Per metric: the smallest distance, the largest accuracy; a diverged method is never the
    best.
    """
    swapped = uneven.curves.copy(deep=True)
    swapped["accuracy"].loc[{"learner": "batch"}] = 0.999
    text = Console(file=io.StringIO(), width=400, force_terminal=True, color_system="standard")
    experiments.print_outcome(outcome(SimpleNamespace(curves=swapped, task=uneven.task)), text)
    rows = {
        line.split("│")[1].strip(): line
        for line in text.file.getvalue().splitlines()
        if line.startswith("│")
    }
    bold = {name: line.count("\x1b[1m") for name, line in rows.items()}
    assert {name: bold[name] for name in ("BATCH", "IMT", "ITAL", "ITAL-2")} == {
        "BATCH": 1, "IMT": 0, "ITAL": 2, "ITAL-2": 0
    }  # fmt: skip
    assert "\x1b[1m0.999" in rows["BATCH"]
    assert f"\x1b[1m{number(ends(uneven, 'ital', 'distance').mean())}" in rows["ITAL"]


# ---- paired differences ----


def holm(values):
    """Holm's adjustment of a few p-values without ties."""
    adjusted, largest = {}, 0.0
    for rank, value in enumerate(sorted(values)):
        largest = max(largest, min(1.0, (len(values) - rank) * value))
        adjusted[value] = largest
    return [adjusted[value] for value in values]


@pytest.mark.parametrize("against", [None, "ital"])
def test_differences_between_methods(uneven, against):
    table = results.compare(uneven.curves, against, higher_is_better=["accuracy"])
    found = list(table.itertuples())
    base = against or "imt"
    others = [name for name in ("batch", "imt", "ital", "ital-2") if name != base]
    for metric in ("distance", "loss", "accuracy"):
        own = sorted(
            (one for one in found if one.metric == metric),
            key=lambda one: others.index(one.method.lower()),
        )
        assert [(one.method, one.against) for one in own] == [
            (name.upper(), base.upper()) for name in others
        ]
        p = []
        for one, method in zip(own, others, strict=True):
            pairs = pd.concat(
                [ends(uneven, method, metric), ends(uneven, base, metric)], axis=1, join="inner"
            )
            first, second = pairs.to_numpy().T
            assert one.n == len(first)
            assert (one.mean, one.mean_against) == pytest.approx(
                (first.mean(), second.mean()), nan_ok=True
            )
            better = (
                first[:, None] > second if metric == "accuracy" else first[:, None] < second
            ).mean()
            assert one.improvement == pytest.approx(better + (first[:, None] == second).mean() / 2)
            if method == "ital-2":
                alive = np.isfinite(first)
                below, above = (first < second)[alive].sum(), (first > second)[alive].sum()
                p.append(stats.binomtest(int(below), int(below + above)).pvalue)
            else:
                test = t_test(first - second)
                p.append(test.p)
                assert (one.difference, one.low) == pytest.approx((test.mean, test.low))
            assert one.p == pytest.approx(p[-1])
        np.testing.assert_allclose([one.p_holm for one in own], holm(p))
    _, rows, _ = printed(experiments.print_differences, "Title", table)
    assert rows[0] == [
        "metric",
        "method",
        "minus",
        "difference",
        "95 % interval",
        "seeds",
        "p (Holm)",
        "P(improvement)",
    ]
    for row, one in zip(rows[1:], found, strict=True):
        interval = f"[{number(one.low)}, {number(one.high)}]" if np.isfinite(one.low) else "–"
        assert row == [
            one.metric,
            one.method,
            one.against,
            signed(one.difference),
            interval,
            str(one.n),
            p_value(one.p_holm),
            decimals(one.improvement),
        ]


def test_differences_between_runs(uneven):
    """On the seeds of both, whatever their order; Holm over the methods of a metric."""
    first = experiment(seeds=[7, 5, 4, 1, 11], steps=np.array([0, 300, 800]), rough=0.1, draw=8)
    ordered = uneven.curves.sel(learner=["batch", "imt", "ital", "ital-2"])
    found = list(results.compare_runs(ordered, first.curves, "the first").itertuples())
    assert [one.metric for one in found] == [
        metric for metric in ("distance", "loss", "accuracy") for _ in range(4)
    ]
    for metric in ("distance", "loss", "accuracy"):
        own = [one for one in found if one.metric == metric and one.method != "ITAL-2"]
        p = []
        for one, method in zip(own, ("batch", "imt", "ital"), strict=True):
            pairs = pd.concat(
                [ends(uneven, method, metric), last(first, method, metric)], axis=1, join="inner"
            ).to_numpy()
            test = t_test(pairs[:, 0] - pairs[:, 1])
            assert one.n == len(pairs) == {"batch": 3, "imt": 3, "ital": 4}[method]
            assert (one.difference, one.p) == pytest.approx((test.mean, test.p))
            p.append(test.p)
        p += [one.p for one in found if one.metric == metric and one.method == "ITAL-2"]
        np.testing.assert_allclose([one.p_holm for one in own], holm(p)[:3])
    assert {one.against for one in found} == {"the first"}
    apart = first.curves.assign_coords(seed=[100, 101, 102, 103, 104])
    assert results.compare_runs(uneven.curves, apart, "elsewhere").empty
    # What only one of them has is left out, also if it is asked for.
    wanted = ["distance", "loss"]
    for here, there in ((ordered, first.curves.drop_vars("loss")), (ordered, first.curves)):
        shared = [name for name in wanted if name in there]
        both = results.compare_runs(here, there, "the first", wanted)
        assert both["metric"].unique().tolist() == shared


# ---- sweeps ----


@pytest.fixture(scope="module", params=[1.0, 0.4, 0.0])
def swept(request):
    grid = sweep(draw=2, lead=request.param, steps=np.array([0, 130, 480, 700, 1010, 1300]))
    return experiments.Sweep(grid, tasks.regression(), [], 0)


def test_the_table_and_the_words_of_a_sweep(swept):
    _, rows, lines = printed(experiments.print_sweep, swept)
    grid = swept.grid
    rows, lines = iter(rows[1:]), iter(lines)
    naive, aware = ("batch", "imt"), ("ital", "ital-5")
    for step in (480, 1010, 1300):
        at = grid["distance"].sel(step=step)
        gone = (grid["diverged_at"] >= 0) & (grid["diverged_at"] <= step)
        seeds = at.where(~gone, np.inf).where(grid["computed"] == 1).to_series().dropna()
        starts = (
            grid["distance"]
            .sel(step=0)
            .to_series()
            .loc[seeds.index]
            .groupby(["learner", "lr", "beta"])
            .mean()
        )
        means = seeds.groupby(["learner", "lr", "beta"]).mean()
        best = {name: means[[name]].idxmin() for name in grid["learner"].values}
        ranked = sorted(best, key=lambda name: means[best[name]])
        words = {}
        for i, name in enumerate(ranked):
            _, lr, beta = best[name]
            own = seeds[best[name]]
            in_words = "" if name in naive else f"{beta:g}"
            ends = edges(means.index, best[name], None if name in naive else beta)
            reached = f"{number(own.mean())} ± {number(own.std(ddof=1) / np.sqrt(len(own)))}"
            share = f"{means[best[name]] / starts[best[name]]:.2g}"
            assert next(rows) == [
                "" if i else str(step),
                name.upper(),
                f"{lr:g}",
                in_words,
                reached,
                share,
                ", ".join(ends),
            ]
            words[name] = f"{name.upper()} (η = {lr:g}" + (
                f", β = {in_words})" if in_words else ")"
            )
        first, second = (seeds[best[name]] for name in ranked[:2])
        shared = first.index.intersection(second.index)
        closer = (first[shared] < second[shared]).sum()
        assert next(lines) == (
            f"Step {step}: {words[ranked[0]]} wins, "
            f"closer than {words[ranked[1]]} on {closer} of {len(shared)} seeds."
        )
        of = {
            kind: min(names, key=lambda name: means[best[name]])
            for kind, names in (("naive", naive), ("aware", aware))
        }
        shown = [
            f"Best {kind}: {words[name]}, {number(means[best[name]])}." for kind, name in of.items()
        ]
        assert next(lines) == "  " + " ".join(shown)
        for name in aware:
            places = list(itertools.product(grid["lr"].values, grid["beta"].values))
            own = {
                place: means[(name, *place)] for place in places if (name, *place) in means.index
            }
            over_naive = sum(value < means[best[of["naive"]]] for value in own.values())
            over_imt = sum(value < means["imt", lr, 0.0] for (lr, _), value in own.items())
            assert next(lines) == (
                f"  {name.upper()} "
                f"in {over_naive} of {len(own)} settings is closer than the best naive, "
                f"in {over_imt} of {len(own)} settings is closer than IMT at the same η."
            )


def test_the_best_setting_of_a_step_is_in_bold(swept):
    console = Console(file=io.StringIO(), width=400, force_terminal=True, color_system="standard")
    experiments.print_sweep(swept, console)
    rows = [
        line.split("│")[1:-1]
        for line in console.file.getvalue().splitlines()
        if line.startswith("│")
    ]
    bold = [[cell.strip().startswith("\x1b[1m") for cell in row] for row in rows]
    first = [row[0].strip() != "" for row in rows]  # the step is said once
    assert sum(first) == 3
    assert [row[1] for row in bold] == [row[4] for row in bold] == first


# ---- matrices ----


@pytest.fixture(scope="module")
def matrix():
    """Teachers and learners, with different numbers of seeds for each teacher."""
    runs = {}
    for i, teacher in enumerate(("cooperative", "random", "adversarial")):
        left = {
            "imt": 0.5 + 0.1 * i,
            "ital-helpful": 0.3 + 0.2 * i,
            "ital-hostile": 0.4,
            "imt-matched": 0.45,
        }
        one = experiment(left, teacher=teacher, rough=0.1, seeds=5 + i, draw=i, centred=True)
        runs[teacher] = one.curves.sel(learner=list(left))
    runs["adversarial"]["distance_centred"].loc[
        {"learner": "ital-helpful", "seed": 3, "step": slice(500, None)}
    ] = np.nan
    runs["adversarial"]["diverged_at"].loc[{"learner": "ital-helpful", "seed": 3}] = 500
    return experiments.Matrix(runs, one.task)


def cells_by_hand(matrix):
    found = {}
    for teacher, curves in matrix.runs.items():
        ends = {
            name: curves["distance_centred"].sel(learner=name, step=2000).values
            for name in curves["learner"].values
        }
        for name, values in ends.items():
            error = values.std(ddof=1) / np.sqrt(len(values))
            found[teacher, name] = values.mean(), error, values.mean() / ends["imt"].mean()
    return found


def test_the_numbers_of_a_matrix(matrix, tmp_path):
    from ital.experiments import _matrix

    expected = cells_by_hand(matrix)
    for (teacher, name), numbers in expected.items():
        np.testing.assert_allclose(matrix.cells[teacher][name], numbers)
    (file,) = _matrix._write_matrix(matrix, tmp_path, False)
    table = pd.read_csv(file).set_index(["teacher", "learner"])
    assert list(table.index) == list(expected)
    assert set(table["metric"]) == {"distance_centred"}
    assert table["assumes"].tolist()[:4] == ["nothing", "a helper", "an adversary", "control"]
    for place, numbers in expected.items():
        shown = table.loc[place][["mean", "standard_error", "over_naive"]].to_numpy(float)
        np.testing.assert_allclose(shown, numbers, rtol=1e-5)
    _, rows, _ = printed(experiments.print_matrix, matrix)
    assert rows[0] == ["real teacher", "nothing", "a helper", "an adversary", "IMT-MATCHED"]
    for i, (teacher, curves) in enumerate(matrix.runs.items()):
        cells = [expected[teacher, name] for name in curves["learner"].values]
        diverged = [not np.isfinite(mean) for mean, _, _ in cells]
        above = [
            "diverged" if far else f"{number(mean)} ± {number(error, 2)}"
            for far, (mean, error, _) in zip(diverged, cells, strict=True)
        ]
        below = [
            "" if far else f"{number(ratio, 2)} ×"
            for far, (_, _, ratio) in zip(diverged, cells, strict=True)
        ]
        assert rows[1 + 2 * i] == [teacher, *above]
        assert rows[2 + 2 * i] == ["", *below]


def test_the_map_of_a_matrix(matrix):
    expected = cells_by_hand(matrix)
    panel = figures.matrix_panel(matrix.runs, matrix.task)
    (mark,) = panel["marks"]
    teachers, learners = panel["y_ticks"][1], list(matrix.runs["random"]["learner"].values)
    assert teachers == ["adversarial", "random", "cooperative"]
    assert mark["limits"] == [0.1, 10]
    for (i, teacher), (j, name) in itertools.product(enumerate(teachers), enumerate(learners)):
        mean, _, ratio = expected[teacher, name]
        if np.isfinite(mean):
            assert mark["values"][i][j] == pytest.approx(ratio, rel=1e-2)
            assert mark["texts"][i][j] == f"{number(mean)}\n{number(ratio, 2)} ×"
        else:
            assert (mark["values"][i][j], mark["texts"][i][j]) == (None, "diverged")
    for i, j in mark["framed"]:
        ratios = [expected[teachers[i], name][2] for name in learners]
        assert j == int(np.nanargmin(ratios))
    assert len(mark["framed"]) == 3


def test_what_best_responses_predict(matrix):
    words = matrix.best_responses()
    expected = cells_by_hand(matrix)
    order = [
        ("cooperative", "ital-helpful"),
        ("cooperative", "imt"),
        ("random", "imt"),
        ("random", "ital-helpful"),
    ]
    assumed = {"imt": "nothing", "ital-helpful": "a helper"}
    means = [expected[place][0] for place in order]
    for (teacher, name), mean in zip(order, means, strict=True):
        assert f"{teacher} teacher, learner assumes {assumed[name]}: {number(mean)}" in words
    broken = next(i for i in range(3) if means[i] > means[i + 1])
    assert f"fails between places {broken + 1} and {broken + 2}" in words
    # where more is better, the order is the other way round, and a diverged learner is the worst
    turned = {
        teacher: curves.drop_vars(["distance", "distance_centred", "loss"])
        for teacher, curves in matrix.runs.items()
    }
    assert experiments.Matrix(turned, matrix.task).metric == "accuracy"
    means = [
        turned[teacher]["accuracy"].sel(learner=name, step=2000).values.mean()
        for teacher, name in order
    ]
    broken = next(i for i in range(3) if means[i] < means[i + 1])
    assert (
        f"fails between places {broken + 1} and {broken + 2}"
        in experiments.Matrix(turned, matrix.task).best_responses()
    )
