import base64
import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

import ital_study as study
from ital.errors import InputError
from ital.statistics import decimals
from ital_study.report import figures
from ital_study.report import page as _report


@pytest.fixture(scope="module")
def written(analysis, tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    return out, _report.write(analysis, out)


def test_all_files_are_there(written):
    out, files = written
    names = {file.name for file in files}
    assert names == {path.name for path in out.iterdir()}
    pictures = {
        f"{name}.{kind}"
        for name in ("maps", "bars", "curves", "control")
        for kind in ("png", "pdf")
    }
    tables = {f"{name}.csv" for name in ("outcomes", "summary", "tests", "curves", "tests_full")}
    assert names == pictures | tables | {"left_out.csv", "report.html", "report.pdf"}
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF")
    for name in tables:
        assert set(pd.read_csv(out / name)["data"]) == {"simulated"}


def test_the_page_says_that_it_is_simulated_and_needs_nothing_else(written):
    page = (written[0] / "report.html").read_text()
    assert page.index("SIMULATED DATA: no person took part") < page.index("<h1>")
    assert "report on simulated data</h1>" in page
    assert "Human ITAL" not in page
    assert "hardly moves, whoever teaches it" in page
    assert "matched-step control" in page
    assert re.findall(r'<figure class="chart[^"]*" id="figure-(\w+)"', page) == [
        "bars", "maps", "interface", "curves", "control",
    ]  # fmt: skip
    assert not re.search(r'(src|href)="(?!#|data:image/)', page)
    assert "<script" not in page
    assert page.count("<table>") == 7
    assert "Machine ITAL against Random ITAL" in page


def test_titles_cannot_bring_markup_with_them(analysis):
    sly = dataclasses.replace(analysis.config, title="<script>alert(1)</script>")
    page = _report.html_page(analysis._replace(config=sly))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_figures_carry_the_label_themselves(analysis):
    for name in figures.DRAWINGS:
        of_data = name != "maps"
        assert ("SIMULATED DATA" in figures.draw(name, analysis).get_suptitle()) == of_data
    live = analysis._replace(kind="human", mode="live", participants={"human": 7})
    assert figures.whose(live).startswith(
        "Human data: 7 participants; machine and random arms are simulated"
    )
    assert figures.whose(live._replace(mode="pilot")).startswith(
        "PILOT RUNS, not data of the study"
    )


@pytest.mark.parametrize(("panel", "outcome"), list(enumerate(figures.OUTCOMES)))
def test_every_measure_has_its_stars(analysis, panel, outcome):
    tests = analysis.tests
    tests = tests[
        (tests["outcome"] == outcome) & (tests["second"] == "naive") & (tests["map"] != "all")
    ]
    shown = figures.DRAWINGS["bars"](analysis).panels[panel]
    assert "".join(mark for bars in shown["marks"] for mark in bars.get("marks", ())) == "".join(
        tests["stars"]
    )
    assert tests["stars"].any()


def test_the_claim_is_judged_on_all_three_measures(analysis):
    assert "this holds: of 5 maps, distance on 5, policy on 5, reward on 5" in _report.claim(
        analysis, "machine"
    )
    assert "this does not hold: of 5 maps, distance on 0" in _report.claim(analysis, "random")
    tests = analysis.tests
    on_b = (tests["outcome"] == "policy_tv_last") & (tests["map"] == "B")
    behind = analysis._replace(
        tests=tests.assign(difference=tests["difference"].where(~on_b, -1.0))
    )
    assert (
        "this holds in part: of 5 maps, distance on 5, policy on 4, reward on 5"
        in _report.claim(behind, "machine")
    )


def test_the_maps_are_those_of_the_study(analysis, rules):
    figure = figures.DRAWINGS["maps"](analysis)
    assert [panel["title"] for panel in figure.panels] == [f"Map {name}" for name in "ABCDE"]
    (mark,) = figure.panels[4]["marks"]
    assert np.array_equal(mark["values"], analysis.config.maps[4].rewards)
    # Up, right, down, left, as in the study.
    policy = np.array(mark["policy"])[[0, 3, 1, 2]].reshape(4, 25)
    best = rules.picture(rules.truth("E").target).policy
    assert np.array_equal(policy[best, range(25)], policy.max(axis=0))


def test_the_page_of_participants_is_in_the_report(config, tmp_path):
    shipped = study.interface(config)
    content = base64.b64decode(shipped["source"].removeprefix("data:image/svg+xml;base64,"))
    assert len(re.findall(r'class="map-svg"', content.decode())) == 3
    assert "comes with ital" not in shipped["caption"]
    other = dataclasses.replace(config, palette="paper", steps=8)
    assert "this one differs in: steps, palette." in study.interface(other)["caption"]
    own = tmp_path / "own.png"
    own.write_bytes(b"PNG")
    block = study.interface(other, own)
    assert block["source"] == "data:image/png;base64,UE5H"
    assert "comes with ital" not in block["caption"]
    with pytest.raises(
        InputError, match=r"page\.gif is not a picture that a report can show: give an \.svg or"
    ):
        study.interface(config, tmp_path / "page.gif")
    with pytest.raises(InputError, match=r"cannot read the picture .*none\.png: No such file"):
        study.interface(config, tmp_path / "none.png")


def test_bars_and_stars_are_those_of_the_tables(analysis):
    figure = figures.draw("bars", analysis)
    axis = figure.axes[3]
    assert axis.get_title() == "Decrease of the distance after 30 steps"
    heights = sorted(bar.get_height() for bar in axis.patches)
    rows = analysis.summary[
        (analysis.summary["outcome"] == "distance_last")
        & (analysis.summary["map"] != "all")
        & analysis.summary["learner"].isin(["aware", "naive"])
    ]
    assert heights == pytest.approx(sorted(rows["mean"]))
    tests = analysis.tests
    tests = tests[
        (tests["outcome"] == "distance_last")
        & (tests["second"] == "naive")
        & (tests["map"] != "all")
    ]
    assert sorted(text.get_text() for text in axis.texts) == sorted(
        mark for mark in tests["stars"] if mark
    )


def test_the_third_robot_is_in_the_report_where_a_study_has_it(of_three, analysis):
    page = _report.html_page(of_three)
    assert page.count("<table>") == 7 + 4
    assert "Machine ITAL adaptive against Machine IMT" in page
    assert "finds out by itself whether its teacher helps" in page
    assert "β of 3333 at most, the aware robot 10000" in page
    assert "what people learn from that one carries over" in page
    figure = figures.draw("bars", of_three)
    heights = sorted(bar.get_height() for bar in figure.axes[3].patches)
    summary = of_three.summary[
        (of_three.summary["outcome"] == "distance_last") & (of_three.summary["map"] != "all")
    ]
    shown = summary[summary["learner"].isin(["aware", "adaptive", "naive"])]
    assert heights == pytest.approx(sorted(shown["mean"]))
    tests = of_three.tests[
        (of_three.tests["outcome"] == "distance_last") & (of_three.tests["second"] == "naive")
    ]
    marks = [mark for mark in tests[tests["map"] != "all"]["stars"] if mark]
    assert sorted(text.get_text() for text in figure.axes[3].texts) == sorted(marks)
    labels = {text.get_text() for text in figures.draw("curves", of_three).legends[0].get_texts()}
    assert {"Machine ITAL adaptive", "Random ITAL adaptive"} <= labels
    assert {title.partition(": ")[2] for title in _report.text_tables(of_three)} == {
        "ITAL against IMT",
        "ITAL adaptive against IMT",
    }
    assert not any(
        "adaptive" in text for text in [*_report.findings(analysis), *_report.notes(analysis)]
    )


def test_the_screen_names_the_robots_and_prints_no_p_of_zero(analysis):
    tests = analysis.tests.assign(p=1e-9, p_holm=1e-9)
    tables = _report.text_tables(analysis._replace(tests=tests))
    table = tables[
        f"Decrease of the distance after {analysis.config.steps} steps: ITAL against IMT"
    ]
    of_robots = (
        (tests["outcome"] == "distance_last")
        & (tests["second"] == "naive")
        & (tests["teacher"] == "machine")
    )
    rows = table[table["teacher"] == "machine"]
    assert rows["ITAL"].tolist() == [decimals(mean) for mean in tests[of_robots]["mean_first"]]
    assert rows["IMT"].tolist() == [decimals(mean) for mean in tests[of_robots]["mean_second"]]
    assert set(table["p"]) == {"< 0.001"}
    assert set(table["p (Holm)"]) == {"< 0.001 ***", ""}  # the mean over maps is a single test


def test_the_verdict_follows_the_control():
    ahead = {"p": 0.001, "difference": 0.5, "low": 0.1, "high": 0.9}
    assert "Longer steps alone do not" in _report._verdict(ahead)
    assert "does not by itself show" in _report._verdict(ahead | {"difference": -0.5})
    assert "does not by itself show" in _report._verdict(ahead | {"p": 0.4})
    assert "cannot be judged" in _report._verdict(ahead | {"p": float("nan")})
    assert "cannot be judged" in _report._verdict(ahead | {"low": float("nan")})
