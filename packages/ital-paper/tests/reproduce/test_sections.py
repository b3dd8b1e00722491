"""Every number that a section of the report shows, computed a second time.

The experiments differ in everything: a wrong axis, sign or step changes a number.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from ital import theory as theorem
from ital.figures import charts
from ital.learners import CONTROLS, PAPER
from ital.report import figures_in
from ital.statistics import number, p_value, share, signed, stars
from ital_paper.claims import catalogue
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import QUICK, STARTS, Condition
from tests.experiments.made_up import QUESTIONS, sweep
from tests.experiments.plain import edges, kept, last, main, reached, t_test, table, wins
from tests.reproduce.made_up import blocks_of, experiment, in_context, theory, various

COOPERATIVE, ADVERSARIAL, RANDOM = (
    various(),
    various("adversarial", imt=1.1),
    various("random", ital=0.9),
)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    data = Data([*COOPERATIVE, *ADVERSARIAL, *RANDOM])
    return in_context(data, out=tmp_path_factory.mktemp("out"))


def tables(blocks):
    """All tables among blocks, also within folds."""
    found = []
    for block in blocks:
        found += [block] if block["kind"] == "table" else tables(block.get("blocks", ()))
    return found


def xs(panel, mark):
    """Where the points of a mark are: lines over the same steps share those of the panel."""
    return mark.get("x", panel["steps"])


def spread(values, questions=None):
    """Mean and standard error in words."""
    values = np.asarray(values)
    error = values.std(ddof=1) / np.sqrt(len(values))
    if questions:
        error = np.sqrt(error**2 + np.mean(values * (1 - values)) / (questions - 1))
    return f"{number(values.mean())} ± {number(error, 2)}"


def bootstrap(values, statistic):
    """The 95 % interval of the statistic of 2000 resamples."""
    places = np.random.default_rng(0).integers(0, len(values), (2000, len(values)))
    drawn = [statistic(np.asarray(values)[own]) for own in places]
    return " … ".join(map(number, np.quantile(drawn, (0.025, 0.975))))


def middle(values):
    return stats.trim_mean(values, 0.25)


# ---- the tables of the last step ----


@pytest.mark.parametrize("i", range(4))
def test_the_table_of_an_experiment(i):
    evidence = COOPERATIVE[i]
    (shown,) = tables(blocks_of("tables", in_context(Data([evidence]))))
    theirs = last(evidence, "imt")
    rows = []
    for method in (*PAPER, *CONTROLS):
        ours = last(evidence, method)
        test = t_test(ours - (theirs if method != "imt" else 0.0))
        against = (
            signed(test.mean),
            f"{number(test.low)} … {number(test.high)}",
            p_value(test.p),
            f"{wins(ours, theirs):.2f}",
        )
        rows.append(
            [
                method.upper(),
                spread(ours),
                bootstrap(ours, np.mean),
                number(middle(ours)),
                bootstrap(ours, middle),
                *(("–",) * 4 if method == "imt" else against),
                *(reached(table(evidence, method), level) for level in (0.5, 0.1, 0.01)),
                spread(last(evidence, method, "loss")),
                spread(last(evidence, method, "accuracy"), QUESTIONS),
            ]
        )
    assert shown["rows"] == rows
    assert shown["heads"][1] == main(evidence).replace("_", " ")
    end = evidence.curves["step"].values.max()
    start = number(table(evidence, "batch")[0].mean())
    assert (
        f"step {end}. {main(evidence).replace('_', ' ').capitalize()} at the start: {start}."
        in shown["caption"]
    )


def test_every_experiment_has_its_table(context):
    shown = blocks_of("tables", context)
    assert len(tables(shown)) == 30
    titles = [block["title"] for block in shown if block["kind"] == "folded"]
    assert titles[0] == "regression: 6 experiments"


def test_the_table_of_another_run():
    evidence = COOPERATIVE[1]
    (shown,) = tables(blocks_of("others", in_context(Data([], others=[evidence]))))
    for row, method in zip(shown["rows"], evidence.methods, strict=True):
        values = [last(evidence, method, metric) for metric in ("distance", "loss", "accuracy")]
        assert row == [method.upper(), *map(spread, values)]


# ---- shares of the distance ----


def shares(evidence, methods):
    return {method: kept(evidence, method).mean() for method in methods}


PREMISES = ("loss_slope", "norm_slope", "radius", "error", "missed")
METHODS = ("batch", "imt", "ital", "imt-matched", "batch-matched")


def test_the_controls(context):
    blocks = blocks_of("controls", context)
    (shown,) = tables(blocks)
    for i, (evidence, row) in enumerate(zip(COOPERATIVE, shown["rows"], strict=True)):
        left = shares(evidence, METHODS)
        ends = [number(last(evidence, method).mean()) for method in METHODS[2:]]
        assert row == [
            evidence.condition.task,
            evidence.condition.start,
            *map(number, left.values()),
            *ends,
        ]
        assert [cell[1] for cell in shown["best"] if cell[0] == i] == [
            2 + list(left).index(min(left, key=left.get))
        ]
    ahead = {
        name: sum(kept(one, name).mean() < kept(one, "ital").mean() for one in COOPERATIVE)
        for name in METHODS[3:]
    }
    assert 0 < ahead["batch-matched"] < 10
    assert f"In {ahead['imt-matched']} of 10 settings IMT matched ends closer" in blocks[1]["words"]
    assert f"in {ahead['batch-matched']} of 10 Batch matched does" in blocks[1]["words"]
    own = COOPERATIVE[5:]
    (figure,) = figures_in(blocks)
    panel = figure["panels"][1]
    points = [mark for mark in panel["marks"] if mark["kind"] == "points"]
    for j, (mark, method) in enumerate(zip(points, METHODS, strict=True)):
        left = [kept(one, method) for one in own]
        errors = [one.std(ddof=1) / np.sqrt(len(one)) for one in left]
        np.testing.assert_allclose(mark["x"], [one.mean() for one in left], rtol=1e-3)
        np.testing.assert_allclose(mark["error"], errors, rtol=5e-2)
        np.testing.assert_allclose(mark["y"], np.arange(5) + 0.13 * (j - 2), rtol=1e-3)
    ticks = [one.condition.task for one in own]
    assert panel["y_ticks"][1] == ticks


def test_a_control_that_is_never_ahead():
    why = "Why a plain gradient can win"
    behind = [
        experiment(rough=0.02, seeds=6),
        experiment(rough=0.02, seeds=5, draw=7, start=STARTS[1]),
    ]
    words = blocks_of("controls", in_context(Data(behind)))[1]["words"]
    assert "In 0 of 2 settings" in words
    assert why not in words
    ahead = experiment({"batch-matched": 0.01}, seeds=4)
    assert why in blocks_of("controls", in_context(Data([ahead])))[1]["words"]


def test_errors_and_shares_fit_on_a_logarithmic_axis():
    wide = experiment({"ital": 1e-7}, spread={"imt": 3.0}, seeds=3)
    (figure,) = figures_in(blocks_of("controls", in_context(Data([wide]))))
    (panel,) = figure["panels"]
    marks = {mark["label"]: mark for mark in panel["marks"] if mark["kind"] == "points"}
    assert marks["ITAL"]["x"][0] == 1e-5
    imt = kept(wide, "imt")
    assert marks["IMT"]["error"][0] == pytest.approx(
        min(imt.std(ddof=1) / np.sqrt(3), 0.9 * imt.mean()), rel=5e-2
    )


def test_the_adversary_and_the_tasks(context):
    (shown,) = tables(blocks_of("adversary", context))
    names = ("batch", "sgd", "imt", "ital-2", "ital-5", "ital")
    for evidence, row in zip(ADVERSARIAL, shown["rows"], strict=True):
        start, task, _ = evidence.condition
        assert row == [task, start, *map(number, shares(evidence, names).values())]
    first = COOPERATIVE[0]
    left = ", ".join(
        f"{method.upper()} {number(value)}"
        for method, value in shares(first, ("batch", "imt", "ital-2", "ital")).items()
    )
    folded = [block for block in blocks_of("tasks", context) if block["kind"] == "folded"]
    assert folded[0]["title"] == f"The task regression. Left of the distance: {left}"
    figures = {figure["name"]: figure for figure in figures_in(folded)}
    assert len(figures) == 10
    assert (
        f"mean over 7 seeds, bands ± 1 SE. Left of the distance at the end: {left}."
        in figures["regression-cooperative-uniform"]["caption"]
    )
    assert (
        "includes the variation from its choice of questions"
        in figures["regression-cooperative-uniform"]["caption"]
    )


def test_a_dot_for_every_seed_of_a_random_teacher(context):
    (figure,) = figures_in(blocks_of("random-teacher", context))
    assert len(figure["panels"]) == len(RANDOM)
    evidence = RANDOM[2]
    panel = figure["panels"][2]
    dots = [mark for mark in panel["marks"] if mark["kind"] == "points"]
    bars = [mark for mark in panel["marks"] if mark["kind"] == "line"]
    for i, (method, dot, bar) in enumerate(zip(evidence.methods, dots, bars, strict=True)):
        left = kept(evidence, method)
        np.testing.assert_allclose(dot["y"], left, rtol=1e-3)
        np.testing.assert_allclose([np.min(dot["x"]), np.max(dot["x"])], [i - 0.14, i + 0.14])
        assert bar["y"] == pytest.approx([left.mean()] * 2, rel=1e-3)
        assert xs(panel, bar) == pytest.approx([i - 0.25, i + 0.25])


def test_beyond_the_paper():
    """Shares in per cent, the smallest in bold; trust per teacher."""
    made = []
    for i, teacher in enumerate(("cooperative", "random", "switching")):
        one = experiment(
            {"ital": 0.2 + 0.4 * i, "ital-adaptive": 0.4},
            teacher=teacher,
            rough=0.05,
            seeds=[1, 4, 6, 8][: 4 - i % 2],
            draw=i,
        )
        rng = np.random.default_rng(i)
        trust = rng.uniform(-1, 1, one.curves["distance"].shape)
        trust[:, :, 0] = np.nan
        one.curves["trust"] = (("learner", "seed", "step"), trust)
        made.append(one)
    made[1].curves["distance"].loc[{"learner": "imt", "seed": 4, "step": 2000}] = np.nan
    made[1].curves["diverged_at"].loc[{"learner": "imt", "seed": 4}] = 2000
    blocks = blocks_of("beyond", in_context(Data([], beyond=made)))
    (shown,) = tables(blocks)
    for i, (evidence, row) in enumerate(zip(made, shown["rows"], strict=True)):
        left = shares(evidence, evidence.methods)
        if i == 1:
            left["imt"] = np.inf
        words = [
            f"{number(100 * one)} %" if np.isfinite(one) else "diverged" for one in left.values()
        ]
        assert row == ["regression", evidence.condition.teacher, *words]
        assert [cell[1] for cell in shown["best"] if cell[0] == i] == [
            2 + list(left).index(min(left, key=left.get))
        ]
    (figure,) = figures_in(blocks)
    (panel,) = figure["panels"]
    lines = [mark for mark in panel["marks"] if mark["kind"] == "line"]
    assert [line["label"] for line in lines] == ["cooperative", "random", "switching"]
    for evidence, line in zip(made, lines, strict=True):
        values = table(evidence, "ital-adaptive", "trust")
        assert 0 not in values
        drawn = charts.stored(
            charts.panel(
                "", [charts.line("", "#000000", values.columns, values.mean(), values.sem())]
            )
        )
        assert line["y"] == drawn["marks"][0]["y"]
        assert line["error"] == drawn["marks"][0]["error"]


def test_what_the_main_figure_shows(context):
    figure = next(
        block for block in blocks_of("main-figure", context) if block.get("name") == "main"
    )
    assert [panel["title"] for panel in figure["panels"]] == [
        "The task regression",
        "The task gaussian",
    ]
    evidence = COOPERATIVE[3]
    panel = figure["panels"][1]
    steps = panel["steps"]
    for mark in panel["marks"][:-1]:
        rows = table(evidence, mark["label"].lower(), "distance")
        assert steps == rows.columns.tolist()
        np.testing.assert_allclose(mark["y"], rows.mean(), rtol=1e-3)
        np.testing.assert_allclose(mark["error"], rows.sem(), rtol=5e-2)
    assert panel["marks"][-1]["at"] == pytest.approx(
        np.mean(evidence.curves["distance"].attrs["floor"]), rel=1e-3
    )
    assert panel["x_range"] == [0, evidence.curves["step"].values.max()]


# ---- settings, target losses, tuning ----


def test_settings_and_times(context):
    experiments = [*COOPERATIVE, *ADVERSARIAL, *RANDOM]
    one, other = (evidence for evidence in COOPERATIVE if evidence.condition.task == "gaussian")
    shown, remarks = blocks_of("settings", context)[:2]
    row = next(row for row in shown["rows"] if row[0] == "gaussian")
    seconds = [
        evidence.curves.attrs["seconds"]
        for evidence in experiments
        if evidence.condition.task == "gaussian"
    ]
    assert len(set(seconds)) == 2
    assert row == [
        "gaussian",
        "±5000",
        f"{one.curves.attrs['lr']:g}",
        "20",
        "2000",
        "8",
        "uniform, normal:0.1",
        "6",
        catalogue.duration(sum(seconds)),
    ]
    assert other.curves.attrs["seconds"] > one.curves.attrs["seconds"]
    everything = sum(evidence.curves.attrs["seconds"] for evidence in experiments)
    assert f"over all calls: {everything / 3600:.1f} h." in remarks["lines"][-1]
    fading = experiment(beta=-300.0, beta_decay=0.0005)
    shown = blocks_of("settings", context._replace(data=Data([fading]), took=7300.0))
    assert shown[0]["rows"][0][1] == "±300·(1 − 0.0005)ᵗ"
    assert shown[1]["lines"][-1].endswith("This call took 2.0 h in all.")


@pytest.mark.parametrize(
    ("seconds", "words"), [(119.4, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2.0 h")]
)
def test_durations_in_words(seconds, words):
    assert catalogue.duration(seconds) == words


def test_losses_of_the_target(tmp_path):
    own = experiment({"imt": 0.6}, task="equation-40", rough=0.1, seeds=6)
    zero = experiment({"imt": 0.5}, task="equation-40", rough=0.1, seeds=7, draw=9)
    data = Data([own], zero_loss=[zero])
    shown = tables(blocks_of("tasks", in_context(data, out=tmp_path)))[-1]
    questions = {"distance": None, "accuracy": QUESTIONS}
    assert shown["rows"] == [
        [
            "cooperative",
            method.upper(),
            *(
                spread(last(one, method, metric), asked)
                for metric, asked in questions.items()
                for one in (own, zero)
            ),
        ]
        for method in ("imt", "ital")
    ]
    assert [head.rpartition(", ")[2] for head in shown["heads"][2:]] == ["own", "zero"] * 2


def test_tuned_settings_at_every_step():
    grid = sweep(lead=0.5, steps=np.array([0, 130, 480, 700, 1010, 1300]))
    condition = Condition(STARTS[1], "gaussian", "cooperative")
    blocks = blocks_of("tuned", in_context(Data([], sweeps={condition: grid}), QUICK))
    (shown,) = tables(blocks)
    for row, step in zip(shown["rows"], (480, 1010, 1300), strict=True):
        assert row[:3] == ["gaussian", STARTS[1], str(step)]
        at = grid["distance"].sel(step=step)
        gone = (grid["diverged_at"] >= 0) & (grid["diverged_at"] <= step)
        means = (
            at.where(~gone, np.inf).where(grid["computed"] == 1).mean("seed").to_series().dropna()
        )
        best = means.groupby("learner").min().sort_values()
        assert [words.split(" ")[0] for words in row[3:]] == [name.upper() for name in best.index]
        for words, (name, least) in zip(row[3:], best.items(), strict=True):
            assert words.rstrip("*").endswith(f") {number(least)}")
            _, lr, beta = means[[name]].idxmin()
            assert f"(η = {lr:g}" in words
            edge = edges(means.index, (name, lr, beta), None if name in ("batch", "imt") else beta)
            assert words.endswith("*") == bool(edge)
    (figure,) = figures_in(blocks)
    assert figure["note"] == "quick run: 6 seeds, 400 steps"


# ---- theory ----


@pytest.fixture(scope="module")
def panels():
    """The theory of three conditions, with different numbers in each."""
    made = {}
    rng = np.random.default_rng(8)
    conditions = [(STARTS[0], "regression"), (STARTS[1], "regression"), (STARTS[0], "irl-dense")]
    for i, condition in enumerate(conditions):
        one = theory(held=0.9 + 0.03 * i, violations=0.004 * (i + 1), error=0.05 + 0.04 * i)
        one["guarantee"] |= {
            "steps": 200 + i,
            "held": 150 + 10 * i,
            "where_held": [1.0, 0.5 + 0.1 * i, 0.9 + 0.03 * i],
        }
        one["taught"] = {
            "beta": [50.0, 5000.0, 15000.0],
            "task_beta": 5000.0,
            **{name: rng.uniform(size=3).tolist() for name in ("left", "conditions", "improved")},
        }
        one["sharpness"] |= {
            "auto": rng.uniform(20, 9e4, 5 + i).tolist(),
            "at_task_beta": 0.9 - 0.1 * i,
            "task_beta": 5000.0 - i,
        }
        one["premises"] |= dict(
            zip(
                ("loss_slope", "norm_slope", "radius", "missed"),
                rng.uniform(1, 900, 4).tolist(),
                strict=True,
            )
        )
        one["premises"]["convexity_violations"] = 0.006 * i
        one["teaching_risk"] = None if i == 2 else 0.2 + 0.1 * i
        made[condition] = one
    return made


def test_theory_tables(panels):
    blocks = blocks_of("theory", in_context(Data([], panels)))
    sampled, taught, corollary = (shown["rows"] for shown in tables(blocks))
    lines = iter(taught)
    for (start, task), panel in panels.items():
        held, sharp, premises = panel["guarantee"], panel["sharpness"], panel["premises"]
        assert sampled.pop(0) == [
            task,
            start,
            share(held["held"] / held["steps"]),
            share(held["where_held"][2]),
            share(panel["monotonicity_violations"], 2),
            number(np.median(sharp["auto"])),
            f"{sharp['task_beta']:g}",
            number(sharp["at_task_beta"]),
        ]
        for i, beta in enumerate(("50", "5000 (task's)", "15000")):
            own = panel["taught"]
            shown = share(own["conditions"][i]), share(own["improved"][i]), number(own["left"][i])
            assert next(lines) == [task, start, beta, *shown]
        fails = ["density"] * (premises["error"] > 0.1)
        fails += ["monotonicity"] * (panel["monotonicity_violations"] > 0.01)
        fails += ["convexity"] * (premises["convexity_violations"] > 0.01)
        assert corollary.pop(0) == [
            task,
            start,
            *(number(premises[name]) for name in PREMISES),
            share(panel["monotonicity_violations"], 2),
            share(premises["convexity_violations"], 1),
            "–" if panel["teaching_risk"] is None else number(panel["teaching_risk"]),
            f"fails: {', '.join(fails)}" if fails else "may hold",
        ]
    assert not sampled
    assert not corollary
    assert (theorem.MOST_ERROR, theorem.MOST_VIOLATIONS) == (0.1, 0.01)


def test_theory_panels(panels):
    promised, sharp = figures_in(blocks_of("theory", in_context(Data([], panels))))
    assert [panel["title"] for panel in promised["panels"]] == ["regression", "irl-dense"]
    full = promised["panels"][0]
    lines = [mark for mark in full["marks"] if mark["kind"] == "line"]
    starts = [panels[start, "regression"]["guarantee"] for start in STARTS]
    expected = [one[name] for one in starts for name in ("where_held", "elsewhere")]
    assert [line["y"] for line in lines] == expected
    assert all(xs(full, line) == starts[0]["beta"] for line in lines)
    assert full["marks"][-1]["at"] == panels[STARTS[1], "regression"]["sharpness"]["task_beta"]
    dots = [mark for panel in sharp["panels"] for mark in panel["marks"] if mark.get("dot")]
    for dot, panel in zip(dots, panels.values(), strict=True):
        own = panel["sharpness"]
        auto = np.median(own["auto"])
        places = np.log10(own["beta"])
        right = int(np.searchsorted(places, np.log10(auto)).clip(1, 2))
        part = (np.log10(auto) - places[right - 1]) / (places[right] - places[right - 1])
        height = own["sharpness"][right - 1] + part * (
            own["sharpness"][right] - own["sharpness"][right - 1]
        )
        assert dot["x"] == [pytest.approx(auto, rel=1e-4)]
        assert dot["y"] == [pytest.approx(height, rel=1e-3)]


# ---- the simulated study ----


STUDY_OUTCOMES = ("distance_last", "policy_tv_last", "reward")  # those that the claim is about
OTHER_OUTCOMES = ("distance_first", "policy_tv_first", "reward_gain")


@pytest.fixture(scope="module")
def study():
    """A study with different numbers for every arm, map and outcome."""
    rng = np.random.default_rng(5)
    outcomes = (*STUDY_OUTCOMES, *OTHER_OUTCOMES)
    tests = [
        {
            "outcome": outcome,
            "map": name,
            "p": rng.uniform(0, 0.02),
            "p_holm": rng.uniform(0, 0.06),
            "mean_first": rng.normal(),
            "mean_second": rng.normal(),
            "difference": rng.normal(),
        }
        for outcome, name in itertools.product(outcomes, "ABC")
    ]
    arms = itertools.product(
        ("random", "machine"), ("naive", "imt-matched", "aware"), "ABC", outcomes
    )
    means = [
        {
            "teacher": teacher,
            "learner": robot,
            "map": name,
            "outcome": outcome,
            "mean": rng.normal(),
            "sem": rng.uniform(),
        }
        for teacher, robot, name, outcome in arms
    ]
    titles = {name: f"Title of {name}" for name in outcomes}
    return SimpleNamespace(
        participants=8, maps=[], tests=tests, means=means, titles=titles, control={}, references={}
    )


def test_the_table_of_the_study(study):
    (shown,) = tables(blocks_of("study", in_context(Data([], study=study))))
    for row, test in zip(shown["rows"], study.tests[:9], strict=True):
        assert row == [
            f"Title of {test['outcome']}",
            test["map"],
            number(test["mean_first"]),
            number(test["mean_second"]),
            signed(test["difference"]),
            p_value(test["p"]),
            f"{p_value(test['p_holm'])} {stars(test['p_holm'])}".strip(),
        ]


def test_the_bars_of_the_study(study):
    blocks = blocks_of("study", in_context(Data([], study=study)))
    (figure,) = [one for one in figures_in(blocks) if one["name"] == "study-outcomes"]
    (panel,) = [one for one in figure["panels"] if one["title"] == "Title of reward"]
    marks = [mark for mark in panel["marks"] if mark["kind"] == "bars"]
    arms = itertools.product(("machine", "random"), ("aware", "naive"))
    for i, (mark, (teacher, robot)) in enumerate(zip(marks, arms, strict=True)):
        own = [
            row
            for row in study.means
            if (row["teacher"], row["learner"], row["outcome"]) == (teacher, robot, "reward")
        ]
        np.testing.assert_allclose(mark["y"], [row["mean"] for row in own], rtol=1e-3)
        np.testing.assert_allclose(mark["error"], [row["sem"] for row in own], rtol=5e-2)
        np.testing.assert_allclose(mark["x"], np.arange(3) + 0.21 * (i - 1.5), rtol=1e-3)
        starred = [stars(test["p_holm"]) for test in study.tests[6:9]] if i == 0 else [""] * 3
        assert mark["marks"] == starred
