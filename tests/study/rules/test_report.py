import re

import pandas as pd
import pytest

from ital.study import _figures, _report


@pytest.fixture(scope="module")
def written(analysis, tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    return out, _report.write(analysis, out)


def test_all_files_are_there(written):
    out, files = written
    names = {file.name for file in files}
    assert names == {path.name for path in out.iterdir()}
    pictures = {f"{name}.{kind}" for name in ("bars", "curves", "control") for kind in ("png", "pdf")}
    tables = {f"{name}.csv" for name in ("outcomes", "summary", "tests", "curves")}
    assert names == pictures | tables | {"report.html", "report.pdf"}
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
    assert re.findall(r'<figure class="chart[^"]*" id="figure-(\w+)"', page) == ["bars", "curves", "control"]
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "<script" not in page
    assert page.count("<table>") == 6
    assert "Machine ITAL against Random ITAL" in page


def test_titles_cannot_bring_markup_with_them(analysis):
    import dataclasses

    sly = dataclasses.replace(analysis.config, title="<script>alert(1)</script>")
    page = _report.html_page(analysis._replace(config=sly))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_figures_carry_the_label_themselves(analysis):
    for name in _figures.DRAWINGS:
        assert "SIMULATED DATA" in _figures.draw(name, analysis).get_suptitle()
    live = analysis._replace(kind="human", mode="live", participants={"human": 7})
    assert _figures.whose(live).startswith("Human data: 7 participants; machine and random arms are simulated")
    assert _figures.whose(live._replace(mode="pilot")).startswith("PILOT RUNS, not data of the study")


def test_bars_and_stars_are_those_of_the_tables(analysis):
    figure = _figures.draw("bars", analysis)
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
    tests = tests[(tests["outcome"] == "distance_last") & (tests["second"] == "naive") & (tests["map"] != "all")]
    assert sorted(text.get_text() for text in axis.texts) == sorted(mark for mark in tests["stars"] if mark)


def test_the_third_robot_is_in_the_report_where_a_study_has_it(of_three, analysis):
    page = _report.html_page(of_three)
    assert page.count("<table>") == 6 + 4
    assert "Machine ITAL adaptive against Machine IMT" in page
    assert "finds out by itself whether its teacher helps" in page
    assert "β of 3333 at most, the aware robot 10000" in page
    assert "what people learn from that one carries over" in page
    figure = _figures.draw("bars", of_three)
    heights = sorted(bar.get_height() for bar in figure.axes[3].patches)
    summary = of_three.summary[(of_three.summary["outcome"] == "distance_last") & (of_three.summary["map"] != "all")]
    shown = summary[summary["learner"].isin(["aware", "adaptive", "naive"])]
    assert heights == pytest.approx(sorted(shown["mean"]))
    tests = of_three.tests[(of_three.tests["outcome"] == "distance_last") & (of_three.tests["second"] == "naive")]
    marks = [mark for mark in tests[tests["map"] != "all"]["stars"] if mark]
    assert sorted(text.get_text() for text in figure.axes[3].texts) == sorted(marks)
    labels = {text.get_text() for text in _figures.draw("curves", of_three).legends[0].get_texts()}
    assert {"Machine ITAL adaptive", "Random ITAL adaptive"} <= labels
    assert set(_report.text_table(of_three)["first"]) == {"aware", "adaptive"}
    assert "first" not in _report.text_table(analysis)
    assert not any("adaptive" in text for text in [*_report.findings(analysis), *_report.notes(analysis)])


def test_the_verdict_follows_the_control():
    against = {"p": 0.001, "difference": -0.5}
    assert "does not by itself show" in _report._verdict(against)
    assert "does not by itself show" in _report._verdict({"p": 0.4, "difference": 0.5})
    assert "Longer steps alone do not" in _report._verdict({"p": 0.001, "difference": 0.5})
