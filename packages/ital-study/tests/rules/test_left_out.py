"""The filtered analysis beside the full one."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from ital.errors import InputError
from ital_study import fit
from ital_study.analysis.measures import ALL_MAPS, analyze
from ital_study.config.quality import FLAGS, Quality
from ital_study.data import flags
from ital_study.data.left_out import left_out
from ital_study.data.table import StudyData
from ital_study.report import page as _report
from ital_study.report import quality_report


@pytest.fixture(scope="module")
def live(steps):
    """The choices of six simulated participants, three of them at random, as if people had made
    them.
    """
    good = steps[(steps["teacher"] == "machine") & (steps["participant"] <= 3)]
    bad = steps[(steps["teacher"] == "random") & steps["participant"].between(4, 6)]
    return pd.concat([good, bad], ignore_index=True).assign(mode="live", teacher="human")


def people(live, config, **columns):
    """The table of participants."""
    return flags.people(live, config).assign(**{"excluded": "", **columns})


@pytest.fixture(scope="module")
def told(live, config):
    """Participant 2 failed a check, and was excluded too; participant 5 was excluded."""
    return people(
        live,
        config,
        flag_attention=[False, True, False, False, False, False],
        excluded_by_rule=["", "attention", "", "", "", ""],
        excluded=["", "on the phone", "", "", "came twice", ""],
    )


@pytest.fixture(scope="module")
def filtered(live, config, told):
    return analyze(StudyData(config, live, participants=told))


def test_both_analyses_have_their_people(filtered, live, config):
    assert filtered.participants == {"human": 4}
    assert (filtered.left_out.size, sorted(filtered.left_out.numbers)) == (2, [2, 5])
    main = {
        "teacher": "human",
        "first": "aware",
        "second": "naive",
        "second_teacher": "human",
        "map": ALL_MAPS,
    }
    for tests, kept in ((filtered.tests, [1, 3, 4, 6]), (filtered.full, [1, 2, 3, 4, 5, 6])):
        rows = tests[
            (tests[list(main)] == pd.Series(main)).all(axis=1)
            & (tests["outcome"] == "distance_last")
        ]
        last = live[(live["step"] == config.steps) & live["participant"].isin(kept)]
        first = live[(live["step"] == 1) & live["participant"].isin(kept)].set_index(
            ["participant", "map", "learner"]
        )
        fell = (
            first["distance_before"] - last.set_index(["participant", "map", "learner"])["distance"]
        )
        mean = fell.groupby("learner").mean()
        assert rows["n"].tolist() == [len(kept)]
        np.testing.assert_allclose(rows["difference"], mean["aware"] - mean["naive"], rtol=1e-5)
    machine = filtered.outcomes[filtered.outcomes["teacher"] == "machine"]
    # Simulated in the places of those who stay.
    assert sorted(machine["participant"].unique()) == [1, 3, 4, 6]
    assert filtered.agreement["human", "aware"] == pytest.approx(0.55, abs=0.06)


def test_models_are_fitted_to_those_who_stay(live, config, told):
    found = fit(StudyData(config, live[live["map"] == "A"], participants=told))
    assert found.participants == {"human": 4}
    assert sorted(found.people["participant"].unique()) == [1, 3, 4, 6]
    assert found.notes == ["2 people are left out: see Data quality."]


def test_reasons_and_when_they_were_decided(filtered):
    rows = filtered.left_out.reasons[["participant", "reason", "decided"]].values.tolist()
    assert rows == [
        [2, "attention", "before"],
        [2, "on the phone", "later"],
        [5, "came twice", "later"],
    ]
    table = quality_report.reasons_table(filtered)["rows"]
    assert table[0][1:] == ["the configuration's rule, stated before the data came", "1"]
    assert table[1][1:] == ["the researcher, afterwards", "1"]


def test_the_report_shows_both(filtered, tmp_path):
    page = _report.html_page(filtered)
    assert "2 of 6 people who finished are left out" in page
    assert "with and without those left out" in page
    for name in FLAGS:
        assert f"<td>{name}</td>" in page
    shown = quality_report.both(filtered, ("human", "aware"), ("human", "naive"))[0]
    assert [row[0] for row in shown["rows"]] == ["A", "B", "C", "D", "E", "mean over maps"]
    assert {(row[1], row[5]) for row in shown["rows"]} == {("6", "4")}
    files = quality_report.write(filtered, tmp_path)
    assert [file.name for file in files] == ["tests_full.csv", "left_out.csv"]
    assert pd.read_csv(files[1])["participant"].tolist() == [2, 2, 5]
    assert len(pd.read_csv(files[0])) == len(filtered.full)


def test_the_rule_is_that_of_the_configuration(live, config):
    strict = dataclasses.replace(config, quality=Quality(exclude=("at_chance",)))
    gone = left_out(strict, live, None)
    assert gone.reasons[["participant", "reason"]].values.tolist() == [
        [4, "at_chance"],
        [5, "at_chance"],
        [6, "at_chance"],
    ]
    assert left_out(config, live, None).size == 0


def test_if_everybody_is_excluded_the_headline_says_so(live, config, tmp_path):
    two_maps = dataclasses.replace(config, maps=config.maps[:2])
    told = people(live, config, excluded="all of them")
    study = StudyData(two_maps, live[live["map"].isin(["A", "B"])], participants=told)
    found = analyze(study)
    assert found.left_out.everybody
    assert found.participants == {"human": 0}
    assert found.outcomes.empty
    assert found.tests.empty
    headline = "NOBODY IS LEFT TO ANALYSE: All 6 people who finished are excluded (live data)."
    assert _report.findings(found) == [headline]
    files = _report.write(found, tmp_path)
    assert {file.name for file in files} == {path.name for path in tmp_path.iterdir()}
    assert not (tmp_path / "bars.png").exists()
    page = (tmp_path / "report.html").read_text()
    assert page.index(headline) < page.index("<h1>")
    assert "all of them" in page
    assert "leave out everybody who finished (6)" in page
    assert "paper claims" not in page
    assert list(pd.read_csv(tmp_path / "tests.csv")["teacher"]) == []
    assert set(pd.read_csv(tmp_path / "tests_full.csv")["n"]) == {6}
    with pytest.raises(InputError, match="everybody who taught is excluded"):
        fit(study)


def test_if_all_people_of_one_teacher_are_excluded_the_report_is_about_the_other(steps, config):
    two_maps = dataclasses.replace(config, maps=config.maps[:2])
    few = steps[(steps["participant"] <= 3) & steps["map"].isin(["A", "B"])]
    told = flags.people(few, config).assign(excluded="")
    told.loc[told["teacher"] == "machine", "excluded"] = "out of order"
    found = analyze(StudyData(two_maps, few, participants=told))
    assert found.participants == {"machine": 0, "random": 3}
    assert _report.findings(found)[0].count("Random ITAL") == 1


def test_one_participant_cannot_be_judged(live, config):
    two_maps = dataclasses.replace(config, maps=config.maps[:2])
    first = live[(live["participant"] == 1) & live["map"].isin(["A", "B"])]
    found = analyze(StudyData(two_maps, first))
    words = " ".join(_report.findings(found))
    assert "For Human ITAL this cannot be judged: a paired test needs at least two" in words
    assert "does not hold" not in words
    assert "at least as well" not in words  # the control cannot be judged either
    assert "–" not in words  # no empty interval


def test_a_teacher_of_whom_nobody_remains(steps, config):
    strict = dataclasses.replace(config, quality=Quality(exclude=("at_chance",)))
    few = steps[steps["participant"] <= 4]
    found = analyze(StudyData(strict, few))
    assert found.participants == {"machine": 4, "random": 0}
    assert found.left_out.numbers == frozenset()
    assert "Machine ITAL against Random ITAL" not in _report.html_page(found)
    assert len(_report.findings(found)) > 3


def test_nobody_is_left_out_of_a_study_without_checks(analysis):
    assert analysis.left_out.size == 0
    pd.testing.assert_frame_equal(analysis.full, analysis.tests)
    assert "Nobody of the 40 people who finished is left out" in quality_report.summary(analysis)
