import json
import re
from types import SimpleNamespace

import pytest

from ital.errors import InputError
from ital.figures import charts
from ital.report import claims, figures_in, html, paragraph
from ital.statistics import number
from ital_paper.claims import catalogue
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import FULL, QUICK, STARTS
from ital_paper.report import page as _report
from ital_paper.report import sections
from ital_paper.report.sections import Context, Section
from tests.reproduce.made_up import blocks_of, both_starts, experiment, in_context, theory


def context(data=None, scale=QUICK, out=None):
    data = both_starts() if data is None else data
    return Context(data, catalogue.judge_all(data), scale, out, 1.0)


def report(tmp_path, **options):
    return _report.build_report(context(out=tmp_path, **options))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The report of a quick run."""
    return report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(made):
    return _report.page(made)


def test_a_report_is_plain_data_and_makes_the_same_page_when_it_is_read_again(tmp_path, made):
    _report.publish(made, tmp_path)
    again = _report.load_report(tmp_path / "report.json")
    assert again == json.loads(json.dumps(made))
    assert _report.page(again) == (tmp_path / "index.html").read_text()


def test_every_figure_of_a_quick_run_says_so_and_of_a_full_one_does_not(tmp_path, made):
    for one, scale, noted in (
        (made, QUICK, "quick run: 5 seeds, 400 steps"),
        (report(tmp_path, scale=FULL), FULL, ""),
    ):
        figures = figures_in(block for section in one["sections"] for block in section["blocks"])
        assert figures
        assert {figure["note"] for figure in figures} == {noted}
        assert bool(one["warning"]) == scale.quick


def test_the_report_explains_its_words_before_it_uses_them(made):
    ((block,),) = [part["blocks"] for part in made["sections"] if part["id"] == "words"]
    words = dict(block["pairs"])
    assert {"Batch", "IMT", "ITAL M", "β", "Start", "Holds"} <= set(words)
    assert "p < 0.05" in words["Holds"]
    assert "p < 0.05" in next(
        part["blocks"][0]["words"] for part in made["sections"] if part["id"] == "claims"
    )


@pytest.fixture
def study(monkeypatch):
    """A study of which only the number of participants is looked at."""
    panel = charts.panel("", [charts.line("ITAL", "#08306b", [0, 1], [1.0, 0.5])])
    for module in (sections._main, sections._study):
        monkeypatch.setattr(module, "outcome_bars", lambda *args, **options: panel)
    monkeypatch.setattr(sections._study, "map_curves", lambda *args: panel)
    monkeypatch.setattr(sections._study, "tests_table", lambda study: paragraph(""))
    return SimpleNamespace(
        participants=6, maps=[panel], references={"a": 1.0}, control={}, tests=[], random={}
    )


def test_figures_of_another_size_say_their_own_numbers(tmp_path, study):
    data = Data([experiment()], {(start, "regression"): theory() for start in STARTS}, study)
    made = report(tmp_path, data=data)
    noted = {
        figure["name"]: figure["note"]
        for part in made["sections"]
        for figure in figures_in(part["blocks"])
        if part["id"] in ("study", "theory") or figure["name"] == "study-bars"
    }
    assert {
        name: note for name, note in noted.items() if name.startswith("study")
    } == dict.fromkeys(
        ["study-bars", "study-maps", "study-outcomes", "study-curves", "study-control"],
        "quick run: 6 participants per arm",
    )
    assert json.dumps(made).count("mean over 6 participants per arm") == 3
    assert noted["theorem"] == noted["sharpness"] == "quick run: 3 seeds, 200 steps"


@pytest.mark.parametrize("left", [1.5e5, 0.9])
def test_a_learner_that_ends_farther_away_than_it_started_gets_a_comment(tmp_path, left):
    beyond = experiment({"imt": 0.8, "ital-full": left, "ital-adaptive": 0.5}, teacher="random")
    beyond.curves["trust"] = 0.1 * beyond.curves["distance"]
    made = report(tmp_path, data=Data([], beyond=[beyond]))
    (blocks,) = [part["blocks"] for part in made["sections"] if part["id"] == "beyond"]
    said = [
        block["words"]
        for block in blocks
        if block["kind"] == "paragraph" and "100 %" in block["words"]
    ]
    assert bool(said) == (left > 1)
    times = float(beyond.left("ital-full").mean())
    where = "ITAL-FULL on regression with the random teacher"
    assert all(f"{where}: {number(times)} times" in words for words in said)


def test_every_line_and_point_of_a_figure_is_in_its_legend(tmp_path):
    data = both_starts()
    beyond = experiment({"imt": 0.8, "ital-adaptive": 0.1}, teacher="random")
    beyond.curves["trust"] = 0.1 * beyond.curves["distance"]
    data.beyond[beyond.condition] = beyond
    made = report(tmp_path, data=data)
    for part in made["sections"]:
        for figure in figures_in(part["blocks"]):
            marks = [mark for panel in figure["panels"] for mark in panel["marks"]]
            drawn = html([figure], "salt")
            legend = drawn[drawn.find('class="legend"') :]
            for mark in marks:
                if mark["kind"] in ("line", "points", "bars"):
                    assert mark["label"], (figure["name"], mark["kind"])
                    assert f"{mark['label']}</li>" in legend
                if mark["kind"] == "rule" and not mark["soft"]:
                    assert f"{mark['words']}</li>" in legend, figure["name"]


def test_names_within_a_page_are_unique(page):
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([^"]+)"', page)) | set(
        re.findall(r"url\(#([^)]+)\)", page)
    ) <= set(names)


def test_signs_in_numbers_are_no_marks_of_the_page(page):
    assert "&lt; 0.001" in page
    assert not re.findall(
        r"<(?![a-zA-Z/!]).{20}", re.sub(r"(?s)<(style|script)>.*?</\1>", "", page)
    )


def test_a_section_is_one_line_in_a_list_and_an_empty_one_is_left_out(tmp_path, monkeypatch):
    more = Section("Beyond", "beyond", lambda context: [paragraph("More <than> before.")])
    empty = Section("Nothing", "nothing", lambda context: [])
    monkeypatch.setattr(_report, "all_sections", lambda: [*sections.SECTIONS, more, empty])
    page = _report.page(report(tmp_path))
    assert '<section id="beyond"><h2>Beyond</h2><p>More &lt;than&gt; before.</p></section>' in page
    assert "Nothing</h2>" not in page


def test_a_call_that_computed_says_how_long_it_took(tmp_path, made):
    assert "This call took 1 s in all." in json.dumps(made)
    remade = _report.build_report(context(out=tmp_path)._replace(took=None))
    assert "This call took" not in json.dumps(remade)


def test_claims_follow_the_main_figure_with_both_starts_their_number_and_p(made):
    assert [one["id"] for one in made["sections"][:3]] == ["words", "main-figure", "claims"]
    row = next(row for row in _report.claims(made) if row["claim"].startswith("ITAL beats IMT"))
    assert [(one["start"], one["held"], one["of"]) for one in row["tallies"]] == [
        (f"{start} start", 1, 1) for start in STARTS
    ]
    assert row["p"] < 0.001
    page = html([claims([row])], "claims")
    assert "p &lt; 0.001" in page
    assert page.count("<b>1 of 1</b>") == 2


def test_a_claim_that_was_checked_from_one_start_says_that_the_other_is_missing():
    row = next(
        row
        for row in report_rows(Data([experiment()]))
        if row["claim"].startswith("ITAL beats IMT")
    )
    assert row["tallies"][1] == {"start": "normal:0.1 start", "held": 0, "of": 0, "failing": []}
    assert "not run" in html([claims([row])], "claims")


def report_rows(data):
    return [one.row() for one in catalogue.judge_all(data)]


def test_the_main_figures_take_vgg_where_it_is_there(tmp_path):
    lite, vgg = "tiny-imagenet-lite0", "tiny-imagenet-13"
    for tasks, shown in (((lite,), lite), ((lite, vgg), vgg), ((vgg, "tiny-imagenet-19"), vgg)):
        data = Data(
            [
                experiment(task=task, teacher=own)
                for task in tasks
                for own in ("cooperative", "adversarial")
            ]
        )
        made = report(tmp_path, data=data)
        figures = {
            figure["name"]: figure
            for figure in figures_in(block for part in made["sections"] for block in part["blocks"])
        }
        main = figures["main"]
        assert ("Lite networks" in main["caption"]) == (shown == lite)
        curves = data.get("uniform", shown, "cooperative").curve("ital", "distance")[1].mean(axis=0)
        assert main["panels"][0]["marks"][-1]["y"][0] == pytest.approx(curves[0], rel=1e-3)
        assert len(main["panels"]) == len(figures["adversarial"]["panels"]) == 1
        assert {f"{task}-cooperative-uniform" for task in tasks} <= set(figures)
        assert {panel["title"] for panel in figures["adversarial-uniform"]["panels"]} - {""} == set(
            tasks
        )
        assert (f"{lite} replaces {vgg}" in json.dumps(made)) == (shown == lite)
    (row,) = [
        row for row in _report.claims(made) if row["claim"].startswith("It works with a smaller")
    ]
    assert [check[0] for check in row["checks"]] == ["Tiny ImageNet, VGG"]


def test_a_matrix_has_a_row_per_teacher_and_a_verdict_on_best_responses(tmp_path):
    means = {"cooperative": (0.7, 0.1), "random": (0.8, 0.9), "exam:20:120": (0.7, 0.2)}
    rows = [
        experiment({"imt": naive, "ital-helpful": aware}, teacher=teacher)
        for teacher, (naive, aware) in means.items()
    ]
    made = report(tmp_path, data=Data([], matrix=rows), scale=FULL)
    (blocks,) = [part["blocks"] for part in made["sections"] if part["id"] == "matrix"]
    (figure,) = figures_in(blocks)
    assert figure["panels"][0]["y_ticks"][1] == ["exam:20:120", "random", "cooperative"]
    assert "Linear regression: The order that best responses predict holds" in json.dumps(
        blocks, ensure_ascii=False
    )


def test_theory_has_a_panel_per_task_with_the_chosen_beta(tmp_path):
    data = Data([], {(start, "regression"): theory() for start in STARTS})
    (section,) = [one for one in report(tmp_path, data=data)["sections"] if one["id"] == "theory"]
    theorem, sharpness = figures_in(section["blocks"])
    assert [panel["title"] for panel in theorem["panels"]] == ["regression"]
    dots = [mark for panel in sharpness["panels"] for mark in panel["marks"] if mark.get("dot")]
    assert [mark["label"] for mark in dots] == [f"auto, {start} start" for start in STARTS]


def test_the_corollarys_premises_have_a_verdict():
    panels = {
        ("uniform", "regression"): theory(),
        ("uniform", "gaussian"): theory(error=0.2),
        ("normal:0.1", "gaussian"): theory(error=0.2, violations=0.5),
    }
    blocks = blocks_of("theory", in_context(Data([], panels)))
    *_, table = [block for block in blocks if block["kind"] == "table"]
    verdicts = [row[-1] for row in table["rows"]]
    assert verdicts == ["may hold", "fails: density", "fails: density, monotonicity"]
    assert len(table["heads"]) == len(table["rows"][0])


@pytest.mark.parametrize("content", ["", "[]", '{"format": 0}', '{"claims": []}'])
def test_what_is_no_report_is_refused(tmp_path, content):
    file = tmp_path / "report.json"
    with pytest.raises(InputError, match="there is no report"):
        _report.load_report(file)
    file.write_text(content)
    with pytest.raises(InputError, match="report"):
        _report.load_report(file)


def test_a_short_table_has_the_numbers_of_the_report(made):
    lines = _report.markdown(made).splitlines()
    assert lines[0].startswith("A quick run: 5 seeds, 400 steps.")
    assert len(lines) == 4 + len(catalogue.CLAIMS)
    (line,) = [line for line in lines if line.startswith("| ITAL beats IMT")]
    assert line.startswith(
        "| ITAL beats IMT even if it sees 2 examples | holds | 1 of 1 | 1 of 1 | final distance"
    )
