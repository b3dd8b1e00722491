import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ital import statistics
from ital.errors import InputError
from ital_study.analysis import measures
from ital_study.analysis.measures import ALL_MAPS, analyze
from ital_study.data import table as _table
from ital_study.data.table import StudyData
from ital_study.simulation import arms as _arms
from ital_study.simulation.arms import MATCHED


@pytest.fixture(scope="module")
def as_if_live(config, rules):
    """Rows as a server would store them for people. Made by a program, for these tests alone."""
    table = _arms.simulate(
        config, [3, 5, 8], [_arms.teacher("boltzmann:10", default=1.0)], rules=rules
    )
    return table.assign(mode="live", teacher="human")


@pytest.fixture(scope="module")
def found(config, as_if_live):
    """The analysis of those rows."""
    return analyze(StudyData(config, as_if_live))


def test_simulated_data_are_called_so(analysis):
    assert analysis.kind == analysis.mode == "simulated"
    assert analysis.participants == {"machine": 20, "random": 20}
    assert analysis.notes[0].startswith("No person took part")
    assert analysis.replay_error == 0
    arms = set(zip(analysis.summary["teacher"], analysis.summary["learner"], strict=True))
    assert arms == {(t, one) for t in ("machine", "random") for one in ("aware", "naive", MATCHED)}


def test_outcomes_and_tests_by_hand(analysis, steps):
    rows = steps[(steps["teacher"] == "machine") & (steps["map"] == "C")]
    values = {}
    for learner in ("aware", "naive"):
        own = rows[rows["learner"] == learner].sort_values(["participant", "step"])
        start = own["policy_gap_before"].to_numpy().reshape(20, 30)[:, 0]
        gap = own["policy_gap"].to_numpy().reshape(20, 30)
        values[learner] = {
            "policy_gap_first": start - gap[:, 0],
            "policy_gap_last": start - gap[:, 29],
        }
        reward = own["reward"].to_numpy().reshape(20, 30)
        values[learner]["reward"] = reward[:, 29]
        values[learner]["reward_gain"] = (
            reward[:, 29] - own["reward_before"].to_numpy().reshape(20, 30)[:, 0]
        )
    tests = analysis.tests
    for outcome in ("policy_gap_first", "policy_gap_last", "reward", "reward_gain"):
        here = tests[
            (tests["teacher"] == "machine") & (tests["map"] == "C") & (tests["second"] == "naive")
        ]
        row = here[here["outcome"] == outcome].iloc[0]
        expected = stats.ttest_rel(values["aware"][outcome], values["naive"][outcome])
        assert row["t"] == pytest.approx(expected.statistic)
        assert row["p"] == pytest.approx(expected.pvalue)
        assert row["mean_first"] == pytest.approx(values["aware"][outcome].mean())
    family = tests[
        (tests["teacher"] == "random")
        & (tests["second"] == "naive")
        & (tests["outcome"] == "distance_last")
    ]
    maps = family[family["map"] != ALL_MAPS]
    assert len(maps) == 5
    np.testing.assert_allclose(maps["p_holm"], statistics.holm(maps["p"].to_numpy()))
    overall = family[family["map"] == ALL_MAPS].iloc[0]
    assert overall["difference"] == pytest.approx(maps["difference"].mean())


def test_what_the_study_finds_with_a_machine(analysis):
    tests = analysis.tests.set_index(["teacher", "second", "outcome", "map"])
    for name in "ABCDE":
        row = tests.loc[("machine", "naive", "distance_last", name)]
        assert row["stars"] == "***"
        assert row["wilcoxon_p"] < 0.001
        assert row["low"] < row["difference"] < row["high"]
    assert tests.loc[("random", "naive", "distance_last", ALL_MAPS)]["difference"] < 0
    # The control goes as far as the aware robot and learns no less: the report must not hide it.
    assert tests.loc[("machine", MATCHED, "distance_last", ALL_MAPS)]["difference"] < 0
    paths = analysis.paths.groupby(["teacher", "learner"])["path"].mean()
    assert paths["machine", "naive"] < 0.5
    assert paths["machine", "aware"] > 20


def test_aware_robots_of_two_teachers_are_compared_by_participant(analysis):
    tests = analysis.tests
    rows = tests[(tests["second_teacher"] == "random") & (tests["teacher"] == "machine")]
    assert set(rows["second"]) == {"aware"}
    row = rows[(rows["outcome"] == "distance_last") & (rows["map"] == "D")].iloc[0]
    own = analysis.outcomes[
        (analysis.outcomes["map"] == "D") & (analysis.outcomes["learner"] == "aware")
    ]
    one, other = (
        own[own["teacher"] == who].sort_values("participant") for who in ("machine", "random")
    )
    assert row["t"] == pytest.approx(
        stats.ttest_rel(one["distance_last"], other["distance_last"]).statistic
    )
    assert analysis.agreement["machine", "aware"] == 1
    assert analysis.agreement["random", "naive"] == pytest.approx(0.1, abs=0.03)
    named = measures.contrasts(["random", "human", "machine"])
    assert (("human", "aware"), ("random", "aware")) in named
    assert (("human", "aware"), ("machine", "aware")) in named
    assert (("random", "aware"), ("machine", "aware")) not in named


def test_a_third_robot_is_compared_and_changes_no_other_number(of_three, analysis):
    arms = set(zip(of_three.summary["teacher"], of_three.summary["learner"], strict=True))
    assert arms == {
        (t, one) for t in ("machine", "random") for one in ("aware", "adaptive", "naive", MATCHED)
    }
    tests = of_three.tests
    assert of_three.replay_error == 0
    values = {
        learner: rows.sort_values("participant")["distance_last"].to_numpy()
        for (teacher, learner, name), rows in of_three.outcomes.groupby(
            ["teacher", "learner", "map"]
        )
        if (teacher, name) == ("machine", "B")
    }
    for second in ("naive", "aware"):
        rows = tests[
            (tests["first"] == "adaptive")
            & (tests["second"] == second)
            & (tests["teacher"] == "machine")
        ]
        rows = rows[rows["outcome"] == "distance_last"].set_index("map")
        assert rows.loc["B", "t"] == pytest.approx(
            stats.ttest_rel(values["adaptive"], values[second]).statistic
        )
        maps = rows.loc[["A", "B"]]
        np.testing.assert_allclose(maps["p_holm"], statistics.holm(maps["p"].to_numpy()))
    # The families of the other comparisons are as they are without the third robot.
    without = measures.compare(
        of_three.outcomes[of_three.outcomes["learner"] != "adaptive"], list(measures.measures(30))
    )
    with_it = tests[(tests["first"] != "adaptive")].reset_index(drop=True)
    pd.testing.assert_frame_equal(with_it, without)
    assert set(analysis.tests["first"]) == {"aware"}


def test_curves_begin_before_the_first_step(analysis, steps):
    curve = analysis.curves[
        (analysis.curves["teacher"] == "machine")
        & (analysis.curves["learner"] == "aware")
        & (analysis.curves["map"] == "B")
    ]
    assert curve["step"].tolist() == list(range(31))
    own = steps[
        (steps["teacher"] == "machine") & (steps["learner"] == "aware") & (steps["map"] == "B")
    ]
    first = own[own["step"] == 1]["distance_before"]
    assert curve["distance"].iloc[0] == pytest.approx(first.mean())
    last = own[own["step"] == 30]["distance"]
    assert curve["distance"].iloc[30] == pytest.approx(last.mean())
    assert curve["distance_sem"].iloc[30] == pytest.approx(last.std(ddof=1) / np.sqrt(20))
    assert (curve["n"] == 20).all()


def test_people_are_compared_with_machines_in_their_place(rules, as_if_live, found, analysis):
    assert (found.kind, found.mode, found.participants) == ("human", "live", {"human": 3})
    assert found.replay_error == 0
    teachers = ("human", "machine", "random")
    arms = set(zip(found.summary["teacher"], found.summary["learner"], strict=True))
    assert arms == {(t, one) for t in teachers for one in ("aware", "naive", MATCHED)}
    # The machine arm is that of the same participants: their starts, their arrows.
    mine = found.outcomes[
        (found.outcomes["teacher"] == "machine") & (found.outcomes["learner"] == "aware")
    ]
    known = analysis.outcomes[
        (analysis.outcomes["teacher"] == "machine")
        & (analysis.outcomes["learner"] == "aware")
        & analysis.outcomes["participant"].isin([3, 5, 8])
    ]
    pd.testing.assert_frame_equal(
        mine.sort_values(["map", "participant"], ignore_index=True),
        known.sort_values(["map", "participant"], ignore_index=True),
    )
    # Their control is shown what they chose for the aware robot.
    chosen = as_if_live[
        (as_if_live["participant"] == 5)
        & (as_if_live["map"] == "A")
        & (as_if_live["learner"] == "aware")
    ]
    again = _arms.replay(rules, [_arms.Taught(5, "A", chosen["choice"].tolist())], MATCHED)
    control = found.outcomes[
        (found.outcomes["teacher"] == "human")
        & (found.outcomes["learner"] == MATCHED)
        & (found.outcomes["map"] == "A")
        & (found.outcomes["participant"] == 5)
    ]
    fallen = again.measures["distance"][0, 0] - again.measures["distance"][0, -1]
    assert control["distance_last"].iloc[0] == pytest.approx(fallen)


def test_every_arm_of_a_teacher_has_the_same_participants(config, steps):
    apart = steps[(steps["teacher"] == "machine") == (steps["participant"] <= 2)]
    found = analyze(StudyData(config, apart[apart["participant"] <= 4].reset_index(drop=True)))
    assert found.participants == {"machine": 2, "random": 2}
    assert (found.summary["n"] == 2).all()
    assert (
        found.tests["second_teacher"] == found.tests["teacher"]
    ).all()  # nobody had both teachers
    assert (found.paths.groupby(["teacher", "learner"])["participant"].nunique() == 2).all()


def test_live_data_come_before_simulated_ones_and_are_never_mixed(config, as_if_live, steps):
    both = pd.concat([steps[steps["participant"] > 18], as_if_live], ignore_index=True)
    found = analyze(StudyData(config, both))
    assert found.participants == {"human": 3}
    assert "Rows of other modes (simulated) are left out." in found.notes
    assert analyze(StudyData(config, both), "simulated").participants == {"machine": 2, "random": 2}
    with pytest.raises(
        InputError, match="no steps of mode pilot in this study: there are simulated, live"
    ):
        analyze(StudyData(config, both), "pilot")


def test_whoever_did_not_finish_is_left_out_and_counted(config, as_if_live):
    cut = as_if_live[
        ~((as_if_live["participant"] == 8) & (as_if_live["map"] == "E") & (as_if_live["step"] > 20))
    ]
    kept, notes = measures.complete(config, cut)
    assert set(kept["participant"]) == {3, 5}
    assert notes == ["1 of 3 participants did not finish or are not usable, and are left out."]
    withdrawn = as_if_live.assign(usable=as_if_live["participant"] != 3)
    assert set(measures.complete(config, withdrawn)[0]["participant"]) == {5, 8}
    with pytest.raises(InputError, match="no participant of this study has finished all steps"):
        measures.complete(config, as_if_live.assign(usable=False))
    other, notes = measures.complete(config, as_if_live.assign(config="another"))
    assert len(other) == len(as_if_live)
    assert "not only from the one in study.toml" in notes[0]


def test_a_table_that_was_changed_is_noticed(config, as_if_live):
    forged = as_if_live.assign(distance=as_if_live["distance"].where(as_if_live["step"] != 30, 1.0))
    found = analyze(StudyData(config, forged))
    assert found.replay_error > 1
    assert any("differ from a replay" in note for note in found.notes)


def test_through_files_the_numbers_are_the_same(config, as_if_live, found, tmp_path):
    _table.write_study(tmp_path, config, as_if_live)
    again = analyze(_table.read_study(tmp_path))
    for name in ("outcomes", "summary", "tests", "curves"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(again, name), check_exact=True)


def test_names_of_arms():
    assert measures.arm("human", "aware") == "Human ITAL"
    assert measures.arm("boltzmann:30", "naive") == "Boltzmann 30 IMT"
    order = measures.teachers_in_order(["random", "boltzmann:3", "machine", "human", "random"])
    assert order == ["human", "machine", "boltzmann:3", "random"]
