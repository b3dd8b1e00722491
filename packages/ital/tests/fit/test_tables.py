"""Tables in, tables out: fits against an independent computation, and bad tables in one line
each.
"""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from ital import fit
from ital.cli import main
from ital.errors import InputError

pytestmark = pytest.mark.usefixtures("undrawn")


def long_table(people=6, trials=20, candidates=5, seed=0):
    """People who choose by ``a`` with ρ = 2; trials have different numbers of candidates."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        for trial in range(trials):
            count = candidates - trial % 2
            a, b = rng.normal(size=(2, count))
            odds = np.exp(2 * a)
            chosen = rng.choice(count, p=odds / odds.sum())
            for i in range(count):
                one = int(i == chosen)
                group = "even" if person % 2 == 0 else "odd"
                rows.append((f"p{person}", trial, one, a[i], b[i], group, ["x", "y"][trial % 2]))
    names = ["person", "trial", "chosen", "a", "b", "group", "condition"]
    return pd.DataFrame(rows, columns=names)


@pytest.fixture(scope="module")
def table():
    return long_table()


def mixed(choices, weight):
    return choices["a"] + weight * choices["b"]


MODELS = [
    fit.TeacherModel("a", "a", unit=1.0),
    fit.TeacherModel("mixed", mixed, numbers={"weight": (-1.0, 1.0)}, unit=1.0),
    fit.TeacherModel("strict", "a", rho=2.0, epsilon=0.0, unit=1.0),
    fit.uniform(),
]


def by_hand(rows, rho, epsilon, weight):
    """The log-likelihood of a person's rows, one trial after the other."""
    total = 0.0
    for _, trial in rows.groupby("trial"):
        scores = trial["a"].to_numpy() + weight * trial["b"].to_numpy()
        odds = np.exp(rho * scores)
        chance = epsilon / len(scores) + (1 - epsilon) * odds / odds.sum()
        total += np.log(chance[trial["chosen"].to_numpy() == 1][0])
    return total


def test_numbers_are_those_of_an_independent_search(table):
    found = fit.fit(fit.read(table), MODELS, by="group")
    assert found.groups["group"].tolist() == ["even"] * 4 + ["odd"] * 4
    for row in found.people.to_dict("records"):
        person, model = row["person"], row["model"]
        own = table[table["person"] == person]
        if model == "uniform":
            sizes = own.groupby("trial").size()
            assert row["log_likelihood"] == pytest.approx(-np.log(sizes).sum(), abs=1e-9)
            continue
        weight = row["weight"] if model == "mixed" else 0.0
        epsilon = np.nan_to_num(row["epsilon"])
        again = by_hand(own, row["rho"], epsilon, weight)
        assert row["log_likelihood"] == pytest.approx(again, abs=1e-9)
        if model == "strict":
            assert (row["rho"], row["epsilon"]) == (2.0, 0.0)
            continue
        start = [row["rho"] * 0.8, 0.05] + [0.1] * (model == "mixed")
        bounds = [(0, 100), (0, 1), (-1, 1)][: len(start)]
        best = optimize.minimize(
            lambda at, own=own: -by_hand(own, *at, *[0.0] * (3 - len(at))),
            start,
            method="Nelder-Mead",
            bounds=bounds,
            options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000},
        )
        assert row["log_likelihood"] >= -best.fun - 1e-6
        if abs(row["log_likelihood"] + best.fun) < 1e-6 and row["rho"] < 50:
            np.testing.assert_allclose(row["rho"], best.x[0], atol=1e-3 * (1 + row["rho"]))


def test_alpha_of_all_together_is_that_of_a_second_computation():
    """The design of the turtles: lessons, two priors, the base measure 1/(n+1)."""
    lessons = pd.DataFrame([(k, n) for n in range(1, 7) for k in range(n + 1)], columns=["k", "n"])
    k, n = lessons.to_numpy().T
    shares = np.arange(0.1, 1, 0.1)
    combinations = np.array([special_comb(a, b) for a, b in zip(n, k, strict=True)])
    matrix = combinations[:, None] * shares ** k[:, None] * (1 - shares) ** (n - k)[:, None] / 6
    priors = {"high": shares**9 * (1 - shares), "low": shares * (1 - shares) ** 9}
    world = fit.Hypotheses(matrix, target=6, belief=priors, by="prior", base=1 / (n + 1))
    rows = pd.DataFrame({"person": np.repeat(range(30), 16), "prior": ["high", "low"] * 240})
    trials = fit.cross(rows.assign(k=0, n=1), lessons, on=["k", "n"])
    made = fit.simulate(trials, world.pedagogical(), rho=1.0, epsilon=0.1, seed=3)
    found = fit.fit(made, [world.pedagogical(), world.literal()])
    row = found.together.set_index("model").loc["pedagogical"]

    def minus_log_likelihood(numbers):
        alpha, epsilon = numbers
        total = 0.0
        for chosen, prior in zip(made.chosen, made.of_trials("prior"), strict=True):
            joint = matrix * priors[prior] / priors[prior].sum()
            odds = (joint[:, 6] / joint.sum(axis=1)) ** alpha / (n + 1)
            total += np.log(epsilon / len(odds) + (1 - epsilon) * odds[chosen] / odds.sum())
        return -total

    at_ours = -minus_log_likelihood([row["rho"], row["epsilon"]])
    assert row["log_likelihood"] == pytest.approx(at_ours, abs=1e-9)
    options = {"xatol": 1e-7, "fatol": 1e-11}
    best = optimize.minimize(
        minus_log_likelihood, [0.8, 0.2], method="Nelder-Mead", options=options
    )
    assert row["log_likelihood"] == pytest.approx(-best.fun, abs=1e-8)
    assert row["rho"] == pytest.approx(best.x[0], abs=1e-3)
    assert row["rho"] == pytest.approx(1.0, abs=0.2)


def special_comb(n, k):
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))


def test_predictions_of_choices_held_out(table):
    choices = fit.read(table)
    for across in ("trials", "people"):
        predicted = fit.cross_validate(choices, MODELS, folds=3, across=across)
        means = predicted.groupby("model")["predicted"].mean()
        assert means["a"] > means["uniform"] + 0.1
        assert means["uniform"] == pytest.approx((1 / 5 + 1 / 4) / 2)
        assert len(predicted) == 6 * 4
    with pytest.raises(InputError, match="a person has only 20 trials"):
        fit.cross_validate(choices, MODELS, folds=21)
    with pytest.raises(InputError, match="with 6 people, give 2 to 6"):
        fit.cross_validate(choices, MODELS, folds=7, across="people")
    with pytest.raises(InputError, match="across must be trials or people"):
        fit.cross_validate(choices, MODELS, across="rows")


@pytest.mark.parametrize("across", ["trials", "people"])
def test_held_out_choices_are_predicted_by_the_fit_to_all_others(table, across):
    """One fold after the other, with the formula of ``by_hand``."""
    folds = 4
    people = table["person"].unique().tolist()
    number = table["trial"] if across == "trials" else table["person"].map(people.index)
    part = number % folds
    log_scores = dict.fromkeys(people, 0.0)
    for fold in range(folds):
        rest = fit.fit(fit.read(table[part != fold]), MODELS[:1])
        held_out = table[part == fold]
        for person in held_out["person"].unique():
            row = rest.together.iloc[0]
            if across == "trials":
                row = rest.people.set_index("person").loc[person]
            own = held_out[held_out["person"] == person]
            log_scores[person] += by_hand(own, row["rho"], np.nan_to_num(row["epsilon"]), 0.0)
    found = fit.cross_validate(fit.read(table), MODELS[:1], folds=folds, across=across)
    expected = np.array([log_scores[person] / 20 for person in found["person"]])
    np.testing.assert_allclose(found["log_score"], expected, atol=1e-5)


def test_recovery_finds_strong_kinds_and_is_the_same_each_time(table):
    design = fit.read(table).like(people=8, trials=40)
    models = [MODELS[0], fit.TeacherModel("b", "b"), fit.uniform()]
    found = fit.recover(design, models, rho=4.0)
    assert (found.confusion.to_numpy().diagonal() >= 7).all()
    assert found.confusion.sum(axis=1).tolist() == [8, 8, 8]
    medians = found.parameters.set_index(["kind", "number"])["median"]
    assert medians["a", "rho"] == pytest.approx(4.0, rel=0.4)
    again = fit.recover(design, models, rho=4.0)
    pd.testing.assert_frame_equal(found.people, again.people)
    assert found.plot() is not None
    with pytest.raises(InputError, match="ρ must lie between 0 and 100"):
        fit.recover(design, models, rho=-1)
    with pytest.raises(InputError, match="ε must lie between 0 and 1"):
        fit.simulate(design, models[0], epsilon=2)
    with pytest.raises(InputError, match="has no number 'c'"):
        fit.simulate(design, models[0], numbers={"c": 1})


def test_shares_are_those_of_the_choices(table):
    found = fit.fit(fit.read(table), MODELS)
    shares = fit.shares(found, "group", "condition")
    observed = shares[shares["source"] == "observed"]
    assert (observed.groupby("condition")["share"].sum() == pytest.approx(1.0)).all
    totals = shares.groupby(["condition", "source"])["share"].sum()
    np.testing.assert_allclose(totals, 1.0)
    assert found.plot("group", "condition") is not None
    with pytest.raises(InputError, match="has 540 values"):
        fit.shares(found, "a")


def test_parts_of_choices(table):
    choices = fit.read(table)
    assert len(choices) == 120
    assert repr(choices).startswith("<choices: 6 people, 120 trials")
    assert len(choices.where(condition="x")) == 60
    assert choices.of_people("group").tolist() == ["even", "odd"] * 3
    assert choices["a"].shape == (120, 5)
    for call, message in (
        (lambda: choices["aa"], "unknown column 'aa': did you mean 'a'"),
        (lambda: choices.of_trials("a"), "differs between the candidates of person p0, trial 1"),
        (lambda: choices.of_people("condition"), "changes within person p0"),
        (lambda: choices.where(condition="z"), "no trial has condition = 'z'"),
        (lambda: fit.fit(choices, []), "there is no model to fit"),
        (lambda: fit.fit(choices, [MODELS[0]] * 2), "two models are called 'a'"),
        (lambda: fit.fit(choices, [fit.TeacherModel("g", "group")]), "expected numbers"),
        (lambda: fit.fit(choices, [fit.TeacherModel("n", lambda c: np.ones(7))]), "shape"),
    ):
        with pytest.raises(InputError, match=message):
            call()


# ---- bad tables ----

LESSONS = pd.DataFrame({"k": [0, 1], "n": [1, 1]})
BAD = {
    "no rows": (lambda t: t[:0], "the table has no rows"),
    "no person": (lambda t: t.drop(columns="person"), "unknown column 'person'"),
    "no trial": (lambda t: t.drop(columns="trial"), "unknown column 'trial'"),
    "no chosen": (lambda t: t.rename(columns={"chosen": "choosen"}), "did you mean 'choosen'"),
    "no score": (lambda t: t.drop(columns="a"), "unknown column 'a'"),
    "missing person": (lambda t: put(t, 3, "person", None), "row 4, column 'person': the value is"),
    "missing trial": (lambda t: put(t, 8, "trial", np.nan), "row 9, column 'trial': the value is"),
    "missing choice": (lambda t: put(t, 2, "chosen", np.nan), "row 3, column 'chosen': expected 1"),
    "choice of 2": (lambda t: put(t, 2, "chosen", 2), "row 3, column 'chosen': expected 1"),
    "choice in words": (lambda t: put(t, 2, "chosen", "yes"), "row 3, column 'chosen': expected 1"),
    "nothing chosen": (
        lambda t: t.assign(chosen=0),
        "row 1: the trial with person p0, trial 0 has no",
    ),
    "two chosen": (lambda t: t.assign(chosen=1), "row 1: .* has several chosen candidates"),
    "one candidate": (lambda t: t[t["chosen"] == 1], "row 1: .* has 1 candidate"),
    "score in words": (lambda t: put(t, 6, "a", "high"), "row 7, column 'a': expected a number"),
    "decimal comma": (lambda t: put(t, 6, "a", "1,5"), "row 7, column 'a': .*'1,5'"),
    "missing score": (lambda t: put(t, 6, "a", np.nan), "row 7, column 'a': expected a number"),
    "infinite score": (lambda t: put(t, 6, "a", np.inf), "row 7, column 'a': expected a number"),
    "all impossible": (
        lambda t: t.assign(a=-np.inf),
        "every candidate of person p0, trial 1 is impos",
    ),
    "changing group": (
        lambda t: put(t, 200, "group", "odd").assign(),
        "differs between|changes within",
    ),
}


def put(table, row, column, value):
    changed = table.astype({column: object})
    changed.loc[changed.index[row], column] = value
    return changed


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_one_line_and_status_2(table, name, tmp_path, capsys):
    change, message = BAD[name]
    file = tmp_path / "choices.csv"
    change(table).to_csv(file, index=False)
    arguments = ["fit", str(file), "--models", "a", "--by", "group", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert printed.count("\n") == 1
    assert pd.Series([printed]).str.contains(message).all(), printed
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "cannot read the table nowhere.csv"),
        (["choices.txt"], "must end in .csv or .parquet"),
        (["."], "is a folder, but not the export of a study: give a table"),
        (["choices.csv", "--unit", "0"], "--unit 0: give a number above 0"),
        (["choices.csv", "--folds", "1"], "folds 1"),
    ],
)
def test_wrong_use_is_one_line(table, arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.to_csv("choices.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        main(["fit", *arguments, "--models", "a"])
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert pd.Series([printed]).str.contains(message).all(), printed


def test_tables_of_two_kinds_that_do_not_fit_together():
    rows = pd.DataFrame({"person": [1, 1], "k": [0, 1], "n": [1, 1]})
    assert len(fit.cross(rows, LESSONS, on=["k", "n"])) == 2
    for trials, candidates, message in (
        (rows.assign(k=5), LESSONS, "row 1: no candidate has k 5, n 1"),
        (rows.assign(k=["a", "b"]), LESSONS, "different kinds of values"),
        (rows, pd.concat([LESSONS, LESSONS]), "row 3 of the candidates repeats k 0, n 1"),
        (rows, LESSONS.drop(columns="n"), "the table of candidates has no such column"),
        (rows.drop(columns="person"), LESSONS, "unknown column 'person'"),
    ):
        with pytest.raises(InputError, match=message):
            fit.cross(trials, candidates, on=["k", "n"])
    with pytest.raises(InputError, match="that its trial does not have"):
        fit.from_arrays(rows[["person"]], [0, 2], {"a": np.zeros((2, 2))})
    with pytest.raises(InputError, match="must be trials × candidates"):
        fit.from_arrays(rows[["person"]], [0, 1], {"a": np.zeros((3, 2))})


def test_the_command_writes_tables(table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.to_csv("choices.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        main(["fit", "choices.csv", "--models", "a,b,uniform", "--by", "group", "--folds", "2"])
    assert ended.value.code == 0
    assert "log_likelihood" in capsys.readouterr().out
    names = {file.name for file in (tmp_path / "fit").iterdir()}
    assert names == {f"fit_{name}.csv" for name in ("people", "groups", "together", "predicted")}
    people = pd.read_csv(tmp_path / "fit" / "fit_people.csv")
    assert len(people) == 18
    assert people.columns[0] == "group"


def test_the_module_loads_no_plotting():
    code = "import sys, ital.fit; print([m for m in ('matplotlib', 'xarray') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "matplotlib" not in done.stdout
