"""Every number of the study's tables and words, computed a second time on a made-up study.

People, maps, robots and steps have different numbers and different values, and teachers share only
some participants.
"""

import dataclasses
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ital import statistics
from ital.fit import probabilities, select_models
from ital.statistics import decimals, p_equals, p_value
from ital_study.analysis import measures
from ital_study.analysis.measures import ALL_MAPS
from ital_study.data import flags
from ital_study.data.left_out import WHO, LeftOut
from ital_study.fitting.people import fit_models
from ital_study.fitting.recovery import _correlations, _parameters
from ital_study.fitting.scores import NAMES
from ital_study.report import figures, fit_report, page
from ital_study.simulation.arms import MATCHED
from tests.experiments.plain import t_test

PEOPLE = {"human": [3, 5, 8, 9, 12, 14], "machine": [3, 5, 8, 9, 12], "random": [5, 8, 12, 14]}
ROBOTS = ("aware", "naive", MATCHED)
MEASURES = ("distance", "distance_centred", "policy_tv", "policy_gap", "reward")


@pytest.fixture(scope="module")
def small(config):
    """A study of three maps and four steps."""
    return dataclasses.replace(config, maps=config.maps[:3], steps=4)


@pytest.fixture(scope="module")
def made_up(small):
    """Rows of people, robots and steps in no order."""
    rng = np.random.default_rng(11)
    rows = []
    for teacher, numbers in PEOPLE.items():
        for number, robot, on in itertools.product(numbers, ROBOTS, small.maps):
            before = dict(zip(MEASURES, rng.uniform(1, 9, 5), strict=True))
            for step in range(1, 5):
                after = {name: value * rng.uniform(0.5, 1.05) for name, value in before.items()}
                rows.append(
                    {
                        "teacher": teacher,
                        "participant": number,
                        "learner": robot,
                        "map": on.name,
                        "step": step,
                    }
                    | after
                    | {f"{name}_before": value for name, value in before.items()}
                    | {"choice": rng.integers(10), "machine_choice": rng.integers(3)}
                )
                before = after
    mixed = pd.DataFrame(rows).sample(frac=1, random_state=2)
    # Tables list maps as they come.
    return mixed.sort_values("map", kind="stable", ignore_index=True)


@pytest.fixture(scope="module")
def outcomes(small, made_up):
    return measures.outcomes_of(small, made_up)


def value_of(steps, place, step, name):
    """One number of the table."""
    teacher, robot, on, number = place
    rows = steps[(steps["teacher"] == teacher) & (steps["learner"] == robot) & (steps["map"] == on)]
    rows = rows[(rows["participant"] == number) & (rows["step"] == step)]
    assert len(rows) == 1
    return rows.iloc[0][name]


def test_outcomes_are_differences_of_steps(small, made_up, outcomes):
    found = outcomes.set_index(["teacher", "learner", "map", "participant"])
    assert len(found) == sum(map(len, PEOPLE.values())) * 3 * 4
    means = {}
    for teacher, robot, on in (
        ("human", "aware", "A"),
        ("machine", "naive", "C"),
        ("random", MATCHED, "B"),
    ):
        for number in PEOPLE[teacher]:
            place = (teacher, robot, on, number)
            for name in ("distance", "policy_tv", "policy_gap"):
                start = value_of(made_up, place, 1, f"{name}_before")
                assert found.loc[place, f"{name}_first"] == start - value_of(
                    made_up, place, 1, name
                )
                assert found.loc[place, f"{name}_last"] == start - value_of(made_up, place, 4, name)
            reward = value_of(made_up, place, 4, "reward")
            assert found.loc[place, "reward"] == reward
            assert found.loc[place, "reward_gain"] == reward - value_of(
                made_up, place, 1, "reward_before"
            )
            for name in found.columns:
                means[teacher, robot, number, name] = np.mean(
                    [found.loc[(teacher, robot, one.name, number), name] for one in small.maps]
                )
    for (teacher, robot, number, name), mean in means.items():
        assert found.loc[(teacher, robot, ALL_MAPS, number), name] == pytest.approx(mean)


def test_a_summary_is_over_participants(outcomes):
    found = measures.summarise(outcomes, ["reward", "distance_last"]).set_index(
        ["teacher", "learner", "map", "outcome"]
    )
    assert len(found) == 3 * 3 * 4 * 2
    for teacher, numbers in PEOPLE.items():
        for robot, on in itertools.product(ROBOTS, ("A", "B", "C", ALL_MAPS)):
            own = outcomes[
                (outcomes["teacher"] == teacher)
                & (outcomes["learner"] == robot)
                & (outcomes["map"] == on)
            ]
            values = own["reward"].to_numpy()
            row = found.loc[(teacher, robot, on, "reward")]
            assert row["n"] == len(values) == len(numbers)
            deviation = np.sqrt(
                sum((value - values.mean()) ** 2 for value in values) / (len(values) - 1)
            )
            assert (row["mean"], row["sd"]) == pytest.approx((values.mean(), deviation))
            assert row["sem"] == pytest.approx(deviation / np.sqrt(len(values)))


def test_tests_pair_the_participants_that_both_arms_have(outcomes):
    names = ["distance_last", "reward"]
    found = measures.compare(outcomes, names)
    # Two robots within each teacher, the aware robots of three pairs.
    assert len(found) == (3 * 2 + 3) * 4 * 2
    pairs = {("human", "machine"), ("human", "random"), ("machine", "random")}
    for (teacher, first, second_teacher, second, name), rows in found.groupby(
        ["teacher", "first", "second_teacher", "second", "outcome"]
    ):
        assert (teacher, second_teacher) in pairs | {(one, one) for one in PEOPLE}
        shared = sorted(set(PEOPLE[teacher]) & set(PEOPLE[second_teacher]))
        raw = []
        for row in rows.to_dict("records"):
            values = []
            for who, robot in ((teacher, first), (second_teacher, second)):
                own = outcomes[(outcomes["teacher"] == who) & (outcomes["learner"] == robot)]
                own = own[own["map"] == row["map"]].set_index("participant")[name]
                values.append(np.array([own[number] for number in shared]))
            test = t_test(values[0] - values[1])
            sd = (values[0] - values[1]).std(ddof=1)
            assert row["n"] == len(shared)
            assert (row["mean_first"], row["mean_second"]) == pytest.approx(
                (values[0].mean(), values[1].mean())
            )
            assert (row["difference"], row["low"], row["high"]) == pytest.approx(
                (test.mean, test.low, test.high)
            )
            assert (row["p"], row["sd"], row["d"]) == pytest.approx((test.p, sd, test.mean / sd))
            assert row["t"] == pytest.approx(test.mean / sd * np.sqrt(len(shared)))
            assert row["wilcoxon_p"] == pytest.approx(stats.wilcoxon(values[0] - values[1]).pvalue)
            raw.append((row["map"], row["p"], row["p_holm"], row["stars"]))
        maps = sorted((p, on) for on, p, *_ in raw if on != ALL_MAPS)
        largest, adjusted = 0.0, {ALL_MAPS: next(p for on, p, *_ in raw if on == ALL_MAPS)}
        for rank, (p, on) in enumerate(maps):
            largest = max(largest, min(1.0, (3 - rank) * p))
            adjusted[on] = largest
        for on, _, p_holm, marks in raw:
            assert p_holm == pytest.approx(adjusted[on])
            assert marks == statistics.stars(adjusted[on])


def test_curves_are_means_at_every_step(small, made_up):
    found = measures.curves_of(made_up).set_index(["teacher", "learner", "map", "step"])
    assert len(found) == 3 * 3 * 3 * 5
    for teacher, robot, on, step in [
        ("human", "aware", "A", 0),
        ("machine", "naive", "C", 4),
        ("random", MATCHED, "B", 2),
    ]:
        for name in MEASURES:
            values = np.array([
                value_of(
                    made_up,
                    (teacher, robot, on, number),
                    max(step, 1),
                    name if step else f"{name}_before",
                )
                for number in PEOPLE[teacher]
            ])  # fmt: skip
            row = found.loc[(teacher, robot, on, step)]
            assert row[name] == pytest.approx(values.mean())
            assert row[f"{name}_sem"] == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)))
            assert row["n"] == len(values)


def test_agreement_is_a_share_of_steps(made_up):
    found = measures.agreement_of(made_up)
    for teacher, robot in itertools.product(PEOPLE, ROBOTS):
        own = made_up[(made_up["teacher"] == teacher) & (made_up["learner"] == robot)]
        same = sum(row["choice"] == row["machine_choice"] for row in own.to_dict("records"))
        assert found[teacher, robot] == same / len(own)
    assert len(set(found.values())) > 5


# ---- the report ----


@pytest.fixture(scope="module")
def told(small, made_up, outcomes):
    """The analysis of the made-up study."""
    names = list(measures.measures(small.steps))
    tests = measures.compare(outcomes, names)
    paths = made_up[made_up["step"] == 1][["teacher", "map", "participant", "learner"]].reset_index(
        drop=True
    )
    rng = np.random.default_rng(6)
    nobody = pd.DataFrame(columns=[*WHO, "reason", "decided"])
    return measures.Analysis(
        config=small,
        kind="human",
        mode="live",
        participants={name: len(numbers) for name, numbers in PEOPLE.items()},
        agreement=measures.agreement_of(made_up),
        outcomes=outcomes,
        summary=measures.summarise(outcomes, names),
        tests=tests,
        full=tests,
        curves=measures.curves_of(made_up),
        references={on.name: 3.0 + i for i, on in enumerate(small.maps)},
        paths=paths.assign(
            path=rng.uniform(1, 30, len(paths)), start=rng.uniform(5, 9, len(paths))
        ),
        replay_error=0.0,
        notes=[],
        left_out=LeftOut(made_up[WHO].drop_duplicates(), nobody, frozenset()),
    )


def row_of(told, first, second, on=ALL_MAPS, outcome="distance_last"):
    rows = told.tests[(told.tests["teacher"] == first[0]) & (told.tests["first"] == first[1])]
    rows = rows[(rows["second_teacher"] == second[0]) & (rows["second"] == second[1])]
    (row,) = rows[(rows["map"] == on) & (rows["outcome"] == outcome)].to_dict("records")
    return row


def in_words(row):
    return (
        f"a difference of {decimals(row['difference'])} (95 % interval {decimals(row['low'])} to "
        f"{decimals(row['high'])}, n = {row['n']}, t = {decimals(row['t'])}, p "
        f"{p_equals(row['p'])}, "
        f"d = {decimals(row['d'])})"
    )


def test_the_findings_quote_the_tables(told):
    naive, control = (
        row_of(told, ("human", "aware"), ("human", robot)) for robot in ("naive", MATCHED)
    )
    comparison, _, slowness, matched, others = page.findings(told)
    assert comparison == (
        "After 4 arrows, mean over maps, the distance to the truth had fallen by "
        f"{decimals(naive['mean_first'])} for "
        f"Human ITAL and by {decimals(naive['mean_second'])} for Human IMT: {in_words(naive)}."
    )
    paths = told.paths[told.paths["teacher"] == "human"].groupby("learner")["path"].mean()
    assert f"add up to a path of {decimals(paths['naive'])}" in slowness
    assert f"it began {decimals(told.paths['start'].mean())} away from the truth" in slowness
    machine = told.outcomes[
        (told.outcomes["teacher"] == "machine") & (told.outcomes["map"] == ALL_MAPS)
    ]
    nearer = machine[machine["learner"] == "naive"]["distance_last"].mean()
    assert f"brings it only {decimals(nearer)} nearer" in slowness
    assert f"path is {decimals(paths['aware'], 1)} long" in matched
    assert f"comes {decimals(control['mean_second'])} nearer to the truth" in matched
    assert f"the aware robot {decimals(control['mean_first'])}: {in_words(control)}" in matched
    assert f"own pick in {decimals(100 * told.agreement['human', 'aware'], 0)} % of steps" in others
    for name in ("machine", "random"):
        row = row_of(told, ("human", "aware"), (name, "aware"))
        means = f"{decimals(row['mean_first'])} and {decimals(row['mean_second'])}"
        assert f"Human ITAL against {name.capitalize()} ITAL: {means}, {in_words(row)}." in others


def test_the_claim_counts_maps_by_measure(told):
    """It holds on two maps by one measure, on one by another, on none by the third."""
    outcomes = told.outcomes.copy()
    ahead = {("distance_last", "A"), ("distance_last", "C"), ("reward", "B")}
    behind = {("policy_tv_last", "A"), ("reward", ALL_MAPS)}
    rng = np.random.default_rng(1)
    for sign, places in ((1, ahead), (-1, behind)):
        for name, on in places:
            rows = (
                (outcomes["teacher"] == "human")
                & (outcomes["learner"] == "aware")
                & (outcomes["map"] == on)
            )
            naive = outcomes[
                (outcomes["teacher"] == "human")
                & (outcomes["learner"] == "naive")
                & (outcomes["map"] == on)
            ]
            own = outcomes[rows]["participant"].map(naive.set_index("participant")[name])
            outcomes.loc[rows, name] = own + sign * rng.uniform(5, 6, rows.sum())
    for name, on in itertools.product(measures.CLAIMED, "ABC"):
        if (name, on) not in ahead | behind:
            rows = (
                (outcomes["teacher"] == "human")
                & (outcomes["map"] == on)
                & (outcomes["learner"] == "aware")
            )
            naive = outcomes[
                (outcomes["teacher"] == "human")
                & (outcomes["learner"] == "naive")
                & (outcomes["map"] == on)
            ]
            own = outcomes[rows]["participant"].map(naive.set_index("participant")[name])
            outcomes.loc[rows, name] = own + rng.normal(0, 1, rows.sum())
    made = told._replace(tests=measures.compare(outcomes, list(measures.CLAIMED)))
    assert "this holds in part: of 3 maps, distance on 2, policy on 0, reward on 1" in page.claim(
        made, "human"
    )


def test_tables_of_tests_have_every_number(told):
    digits = {"distance_last": 2, "policy_tv_last": 3, "reward": 1}
    for outcome, places in digits.items():
        rows = page.test_rows(told, outcome, ("human", "aware"), ("machine", "aware"))
        assert [row[0] for row in rows] == ["A", "B", "C", "mean over maps"]
        for row, on in zip(rows, ("A", "B", "C", ALL_MAPS), strict=True):
            own = row_of(told, ("human", "aware"), ("machine", "aware"), on, outcome)
            shown = [
                decimals(own[name], places)
                for name in ("mean_first", "mean_second", "difference", "low", "high")
            ]
            adjusted = f"{p_value(own['p_holm'])} {statistics.stars(own['p_holm'])}".strip()
            assert row[1:] == [
                "5", *shown[:3], f"{shown[3]} … {shown[4]}", decimals(own["t"]), p_value(own["p"]),
                "" if on == ALL_MAPS else adjusted, decimals(own["d"]), p_value(own["wilcoxon_p"]),
            ]  # fmt: skip


def test_the_table_of_all_arms(told):
    shown = page._arms_table(told)
    means = told.outcomes[told.outcomes["map"] == ALL_MAPS]
    rows = iter(shown["rows"])
    for teacher, robot in itertools.product(
        ("human", "machine", "random"), ("aware", "naive", MATCHED)
    ):
        own = means[(means["teacher"] == teacher) & (means["learner"] == robot)]
        row = next(rows)
        assert row[0] == measures.arm(teacher, robot)
        for cell, name in zip(row[1:], measures.measures(4), strict=True):
            places = 3 if name.startswith("policy") else 1 if name.startswith("reward") else 2
            error = own[name].std(ddof=1) / np.sqrt(len(own))
            assert cell == f"{decimals(own[name].mean(), places)} ± {decimals(error, places)}"


def test_bars_curves_and_paths(told):
    bars = figures.DRAWINGS["bars"](told).panels[figures.OUTCOMES.index("reward")]
    arms = list(itertools.product(("human", "machine", "random"), ("aware", "naive")))
    marks = [mark for mark in bars["marks"] if mark["kind"] == "bars"]
    for i, (mark, (teacher, robot)) in enumerate(zip(marks, arms, strict=True)):
        own = told.outcomes[
            (told.outcomes["teacher"] == teacher) & (told.outcomes["learner"] == robot)
        ]
        each = own[own["map"] != ALL_MAPS].groupby("map")["reward"]
        np.testing.assert_allclose(mark["y"], each.mean())
        np.testing.assert_allclose(mark["error"], each.std(ddof=1) / np.sqrt(each.size()))
        np.testing.assert_allclose(mark["x"], np.arange(3) + (i - 2.5) * 0.14)
    lines = [mark for mark in bars["marks"] if mark["kind"] == "line"]
    assert [line["y"] for line in lines] == [[3.0, 3.0], [4.0, 4.0], [5.0, 5.0]]
    panels = figures.DRAWINGS["curves"](told).panels
    panel = panels[3 * 2 + 1]  # the reward on map B
    drawn = {mark["label"]: mark for mark in panel["marks"] if mark["kind"] == "line"}
    curves = told.curves[(told.curves["map"] == "B")]
    for teacher, robot in arms:
        own = curves[(curves["teacher"] == teacher) & (curves["learner"] == robot)]
        np.testing.assert_allclose(
            drawn[measures.arm(teacher, robot)]["y"], own["reward"], rtol=1e-3
        )
        np.testing.assert_allclose(
            drawn[measures.arm(teacher, robot)]["error"], own["reward_sem"], rtol=1e-3
        )
    assert panel["marks"][-1]["at"] == 4.0
    every = told.curves[told.curves["learner"] != MATCHED]["reward"]
    low, high = min(3.0, every.min()), max(5.0, every.max())
    np.testing.assert_allclose(
        panel["y_range"], [low - 0.06 * (high - low), high + 0.06 * (high - low)], rtol=1e-3
    )
    control = figures.DRAWINGS["control"](told).panels[2]
    lengths = told.paths.groupby(["teacher", "learner"])["path"].mean()
    points = [mark["x"][0] for mark in control["marks"] if mark["kind"] == "points"]
    order = itertools.product(("human", "machine", "random"), ("aware", MATCHED, "naive"))
    np.testing.assert_allclose(points, [lengths[place] for place in order])
    starts = told.paths.groupby(["teacher", "learner"])["start"].mean()
    assert control["marks"][0]["at"] == pytest.approx(starts.mean())


# ---- which teacher is each person ----


@pytest.fixture(scope="module")
def guessed():
    """Scores and choices of seven people with different numbers of steps.

    Models that fit them differently.
    """
    rng = np.random.default_rng(4)
    lengths = [30, 22, 41, 35, 27, 38, 25]
    scores = rng.normal(size=(6, sum(lengths), 5))
    kinds = np.repeat([0, 2, 2, 5, 1, 2, 4], lengths)
    chances = probabilities(scores[kinds, np.arange(len(kinds))], 2.5, 0.1)
    chosen = np.array([rng.choice(5, p=own) for own in chances])
    people = pd.DataFrame(
        {"teacher": ["human"] * 4 + ["machine"] * 3, "participant": [4, 2, 9, 6, 1, 5, 3]}
    )
    return people, scores, chosen, lengths


def fitted(guessed):
    """The table of the fits of these people."""
    people, scores, chosen, lengths = guessed
    return fit_models(people.loc[people.index.repeat(lengths)], chosen, scores)


def test_the_fit_of_every_person_and_model(guessed):
    people, scores, chosen, lengths = guessed
    found = fitted(guessed)
    assert len(found) == 7 * 7
    rows = iter(found.to_dict("records"))
    ends = np.cumsum(lengths)
    for person, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        for k, name in enumerate(NAMES):
            row = next(rows)
            assert (row["participant"], row["model"], row["steps"]) == (
                people["participant"][person],
                name,
                length,
            )
            if name == "random":
                assert np.isnan([row["rho"], row["epsilon"]]).all()
                assert row["log_likelihood"] == pytest.approx(-length * np.log(5))
                assert row["bic"] == pytest.approx(2 * length * np.log(5))
                continue
            own = scores[k, end - length : end]
            picked = chosen[end - length : end]
            epsilon = 0.0 if np.isnan(row["epsilon"]) else row["epsilon"]
            odds = np.exp(row["rho"] * own)
            chances = epsilon / 5 + (1 - epsilon) * odds / odds.sum(axis=1, keepdims=True)
            total = sum(np.log(chances[step, picked[step]]) for step in range(length))
            assert row["log_likelihood"] == pytest.approx(total)
            assert row["bic"] == pytest.approx(2 * np.log(length) - 2 * total)


def test_the_selection_of_models_in_each_group(guessed):
    fits = fitted(guessed)
    told, models = select_models(fits, ["teacher"])
    assert told["participant"].tolist() == fits["participant"].tolist()
    assert told.columns.tolist() == [
        "teacher",
        *fits.columns.drop("teacher"),
        "best",
        "probability",
    ]
    models = models.set_index(["teacher", "model"])
    for teacher, own in told.groupby("teacher"):
        winners = own.loc[own.groupby("participant")["bic"].idxmin()]
        assert (
            own[own["best"]]["participant"].tolist()
            == own["participant"].drop_duplicates().tolist()
        )
        np.testing.assert_allclose(own.groupby("participant")["probability"].sum(), 1)
        for name in NAMES:
            row, best = models.loc[(teacher, name)], winners[winners["model"] == name]
            assert row["people"] == own["participant"].nunique()
            assert row["best"] == len(best)
            for column in ("rho", "epsilon"):
                assert row[f"{column}_median"] == pytest.approx(best[column].median(), nan_ok=True)
            # α of a model is one more than the people who use it
            used = own[own["model"] == name]["probability"].sum()
            assert row["frequency"] == pytest.approx((1 + used) / (7 + row["people"]))
        assert models.loc[teacher]["exceedance"].sum() == pytest.approx(1)
    assert (models["best"] > 1).any()


def test_tables_of_the_fit(guessed, config):
    _, models = select_models(fitted(guessed).assign(learner="all"), ["teacher", "learner"])
    fit = fit_report.StudyFit(
        config,
        "human",
        "live",
        {"human": 4, "machine": 3},
        pd.DataFrame(),
        models,
        {},
        [],
        pd.DataFrame(),
    )
    rows = fit_report.model_rows(fit, "human", "all")
    own = models[models["teacher"] == "human"].to_dict("records")
    assert rows == [
        [
            row["model"], f"{row['best']} of 4",
            decimals(row["rho_median"]), decimals(row["epsilon_median"]),
            f"{decimals(row['frequency'])} ± {decimals(row['frequency_sd'])}",
            decimals(row["exceedance"], 3),
            decimals(row["protected"], 3),
        ]
        for row in own
    ]  # fmt: skip
    top = max(own, key=lambda row: row["frequency"])
    assert (
        f"the model {top['model']} is the most frequent ({top['best']} of 4 people"
        in fit_report.sentence(fit, "human", "all")
    )
    (panel,) = fit_report.panels(fit)
    for i, (mark, teacher) in enumerate(zip(panel["marks"], ("human", "machine"), strict=True)):
        rows = models[models["teacher"] == teacher]
        np.testing.assert_allclose(mark["y"], rows["frequency"])
        np.testing.assert_allclose(mark["error"], rows["frequency_sd"])
        np.testing.assert_allclose(mark["x"], np.arange(7) + 0.42 * (i - 0.5))
        assert mark["marks"] == [str(best) if best else "" for best in rows["best"]]


def test_quartiles_and_correlations_of_a_recovery():
    rng = np.random.default_rng(7)
    places = itertools.product(
        (0.5, 2.0), ("naive", "all"), ("exact", "loss", "random"), range(5), NAMES
    )
    people = pd.DataFrame(
        places, columns=["simulated_rho", "learner", "kind", "participant", "model"]
    )
    people = people.assign(
        rho=rng.uniform(0, 3, len(people)), epsilon=rng.uniform(size=len(people))
    )
    people.loc[::9, "epsilon"] = np.nan
    found = _parameters(people).set_index(["simulated_rho", "learner", "kind"])
    assert len(found) == 2 * 2 * 2
    for place, row in found.iterrows():
        own = people[(people[["simulated_rho", "learner", "kind"]] == list(place)).all(axis=1)]
        own = own[own["model"] == place[2]]
        for name in ("rho", "epsilon"):
            values = own[name].dropna()
            quartiles = np.percentile(values, (25, 50, 75))
            np.testing.assert_allclose(
                [row[f"{name}_{percent}"] for percent in (25, 50, 75)], quartiles
            )
    scores, at_start = rng.normal(size=(2, 6, 4, 3, 5))
    at_start[1] = scores[1] + 0.2 * at_start[1]
    # What all arrows of a step share does not count.
    scores[2] += 0.8 * scores[0] + 100 * rng.normal(size=(4, 3, 1))
    found = _correlations(scores, at_start).set_index(["score", "other"])["correlation"]
    within = lambda values: np.concatenate([step - step.mean() for step in values.reshape(-1, 5)])  # noqa: E731
    for (i, one), (j, other) in itertools.combinations(enumerate(NAMES[:6]), 2):
        assert found[one, other] == pytest.approx(
            np.corrcoef(within(scores[i]), within(scores[j]))[0, 1]
        )
    for i, name in enumerate(NAMES[:6]):
        assert found[name, "at the start"] == pytest.approx(
            np.corrcoef(within(scores[i]), within(at_start[i]))[0, 1]
        )


# ---- quality and power ----


def test_numbers_of_data_quality(config):
    """Every number by hand, on twelve steps that differ."""
    rng = np.random.default_rng(3)
    n = 12
    cells = [rng.permutation(25)[:4] for _ in range(n)]
    choice = rng.integers(0, 4, n)
    seconds = rng.uniform(0.5, 6, n)
    seconds[3] = np.nan
    clock = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(
        np.cumsum(rng.uniform(5, 300, n)), unit="s"
    )
    steps = pd.DataFrame(
        {
            "map": ["A"] * 7 + ["C"] * 5,
            "robot": [1] * 4 + [2] * 3 + [1] * 5,
            "step": [1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 4, 5],
            "choice": choice,
            "cell": [own[i] for own, i in zip(cells, choice, strict=True)],
            "machine_choice": rng.integers(0, 2, n),
            "candidates": [json.dumps([[int(cell), 0] for cell in own]) for own in cells],
            "seconds_to_confirm": seconds,
            "stored_at": [at.isoformat() for at in clock],
            "input": ["mouse", "touch", ""] * 4,
            "focus_losses": [0, 2, 0, 1] * 3,
            "too_fast": seconds < 1.5,
            "by_script": rng.uniform(size=n) < 0.4,
        }
    )
    seen = [("1-1", 0), ("1-1", 2), ("1-2", 1), ("3-1", 4), ("2-1", 0), ("3-2", 1)]
    happened = [flags.PageEvent("chosen", {"round": name, "step": step}) for name, step in seen]
    happened += [
        flags.PageEvent("screen", {"width": w, "height": h}) for w, h in ((900, 700), (650, 800))
    ]
    happened += [
        flags.PageEvent("attention", {"passed": passed}, "server") for passed in (True, False, None)
    ]
    found = flags.numbers_of(steps, happened, config)
    assert found["too_fast_share"] == np.mean([one < 1.5 for one in seconds])
    assert found["looked_away_share"] == 0.5
    assert found["script_share"] == steps["by_script"].sum() / n
    assert found["unseen_share"] == (n - 4) / n
    known = np.sort(seconds[~np.isnan(seconds)])
    low, middle, high = np.interp([2.5, 5, 7.5], np.arange(11), known)
    assert found["time_spread"] == pytest.approx((high - low) / middle)
    same = int((choice == steps["machine_choice"]).sum())
    assert found["machine_share"] == same / n
    chance = sum(stats.binom(n, 0.25).pmf(k) for k in range(same, n + 1))
    assert found["chance_p"] == pytest.approx(chance)
    assert found["longest_pause_minutes"] == pytest.approx(
        np.diff(clock.as_unit("ns").asi8).max() / 60e9
    )
    assert (found["inputs"], found["smallest_width"], found["smallest_height"]) == (
        "mouse touch",
        650,
        700,
    )
    assert (found["attention_checks"], found["attention_failed"]) == (3, 2)
    rank = [sorted(own).index(own[i]) for own, i in zip(cells, choice, strict=True)]
    near = [False]
    for before, own, i in zip(steps["cell"], cells[1:], choice[1:], strict=False):
        moves = [
            abs(cell // config.size - before // config.size)
            + abs(cell % config.size - before % config.size)
            for cell in own
        ]
        near.append(moves[i] == min(moves))
    rules = [
        [one == value for one in column] for column in (list(choice), rank) for value in set(column)
    ] + [near]
    assert found["same_place_share"] == max(np.mean(rule) for rule in rules)
    runs = [len(list(group)) for rule in rules for held, group in itertools.groupby(rule) if held]
    assert found["same_place_run"] == max(runs)
