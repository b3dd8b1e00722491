import json
import re

import numpy as np
import pytest

from ital import report
from ital.figures import charts

LINE = charts.panel("Panel", [charts.line("ITAL", "#08306b", [0, 1], [1.0, 0.5])], y="Distance")


def test_every_block_is_plain_data_and_shown_as_text():
    blocks = [
        report.paragraph("<b>words"),
        report.heading("<b>words"),
        report.bullets(["<b>words"]),
        report.commands([("<b>words", "<b>words")]),
        report.terms([("<b>words", "<b>words")]),
        report.table(
            ["<b>words", "n"],
            [["<b>words", 1.5]],
            caption="<b>words",
            numbers_from=1,
            best=[(0, 1)],
        ),
        *report.figure("line", "<b>words", [LINE], "<b>words", note="<b>words"),
        *report.folded("<b>words", [report.paragraph("<b>words")]),
    ]
    assert json.loads(json.dumps(blocks)) == blocks
    page = report.html(blocks, "salt")
    assert "<b>words" not in page
    assert page.count("&lt;b&gt;words") == 15
    assert '<td class="number best">1.5</td>' in page


def test_the_lines_that_a_panel_is_measured_by_are_in_the_legend():
    panel = charts.panel(
        "", [*LINE["marks"], charts.rule("y", 0.5, "floor"), charts.rule("x", 1.0, soft=True)]
    )
    legend = report.html(report.figure("line", "", [panel, panel], ""), "").partition(
        'class="legend"'
    )[2]
    assert legend.count("ITAL</li>") == legend.count("floor</li>") == 1
    assert legend.count("<li>") == 2


def test_a_table_that_goes_on_has_a_shadow_which_its_cells_do_not_hide():
    rules = dict(re.findall(r"(?m)^([^{}@/\n]+?) \{([^{}]*)\}", report.style()))
    assert {"local", "scroll"} <= set(rules[".scroll"].replace(",", " ").replace(";", " ").split())
    assert "background" not in rules[".ital-report th"]
    assert "background" not in rules[".ital-report th, .ital-report td"]


def test_nothing_makes_no_block():
    assert report.figure("name", "", [], "") == report.folded("", []) == []


def test_figures_are_found_in_folds():
    figure = report.figure("inside", "", [LINE], "")
    assert (
        report.figures_in([report.paragraph(""), *report.folded("", figure), *figure]) == figure * 2
    )


def test_a_page_says_first_what_must_be_read_first_and_leaves_empty_sections_out():
    parts = [
        report.section("Full", "full", [report.paragraph("words")]),
        report.section("Empty", "empty", []),
    ]
    page = report.page("A <title>", parts, lead="lead", banner="SIMULATED", version="1.2")
    assert page.index("SIMULATED") < page.index("<h1>A &lt;title&gt;</h1>")
    assert '<section id="full"><h2>Full</h2><p>words</p></section>' in page
    assert "Empty" not in page
    assert "Made by ital 1.2." in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "<script" in report.page(
        "", [report.section("", "", report.folded("more", parts[0]["blocks"]))]
    )
    assert 'class="banner calm"' in report.page("", [], banner="People", alert=False)


def svg(panel, name):
    """The picture of a panel in a page's figure of this name."""
    drawn = report.html(report.figure(name, "", [panel], ""), "")
    return re.search("<svg.*?</svg>", drawn, re.DOTALL)[0]


def test_a_picture_takes_the_font_and_the_colours_of_the_page():
    drawn = svg(LINE, "salt")
    assert "var(--c08306b,#08306b)" in drawn
    assert ">Distance</text>" in drawn
    assert "font-family" not in drawn


def test_a_picture_has_words_for_readers_who_do_not_see_it():
    page = report.html(report.figure("line", "", [LINE, charts.blank()], ""), "salt")
    assert 'role="img" aria-label="Panel, Distance. At the end: ITAL 0.500."' in page
    assert page.count("<svg") == 2  # the panel and its key
    assert '<div class="tile blank"></div>' in page


@pytest.mark.parametrize(
    "mark",
    [
        charts.bars("a", "#08306b", [0], [1.0], [0.1], width=0.5, hatch="//"),
        charts.points("a", "#08306b", [0], [1.0], [0.1]),
        charts.rewards(np.eye(3), np.full((4, 3, 3), 0.25), 1.0),
        charts.line("gone", "#08306b", [0, 1], [1.0, np.nan]),
    ],
)
def test_every_mark_can_be_drawn_and_names_within_it_are_its_own(mark):
    panel = charts.panel("", [mark])
    one, two = svg(panel, "first"), svg(panel, "second")
    names = [set(re.findall(r' id="([^"]+)"', drawn)) for drawn in (one, two)]
    assert not names[0] & names[1]
    for drawn, own in zip((one, two), names, strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([\w-]+)', drawn)) <= own


def test_a_pdf_has_paragraphs_tables_and_figures():
    blocks = [
        report.paragraph("words " * 60),
        report.table(["a", "b"], [["c", 1]]),
        *report.figure("f", "", [LINE], ""),
    ]
    assert report.pdf("Title", [*blocks, report.bullets(["left out"])], banner="whose").startswith(
        b"%PDF"
    )


# ---- numbers on the page ----


def claim_row(**changes):
    checks = [
        [
            f"place {i}",
            start,
            i != 1,
            1.5 * i if i else None,
            0.0004 if i == 2 else None,
            f"all of it {i}",
        ]
        for i in range(4)
        for start in ("second start", "first start")
    ]
    row = {
        "claim": "It works",
        "source": "main text",
        "rule": "A rule.",
        "verdict": "holds in part",
        "value": "times",
    }
    tallies = [
        {"start": "first start", "held": 3, "of": 4, "failing": ["place 1"]},
        {"start": "second start", "held": 1, "of": 8, "failing": [f"place {i}" for i in range(7)]},
        {"start": "third", "held": 0, "of": 0, "failing": []},
    ]
    return (
        row
        | {"tallies": tallies, "range": [0.5, 1.25, 4.0], "p": 0.031, "checks": checks}
        | changes
    )


def test_a_claim_shows_its_counts_its_number_and_its_checks():
    page = report.html(
        [report.claims([claim_row(), claim_row(verdict="holds"), claim_row()])], "salt"
    )
    assert re.findall(r"<b>(\d+)</b> ([\w ]+)</li>", page) == [
        ("1", "holds"),
        ("2", "holds in part"),
    ]
    one = page[: page.index("</details>")]
    assert re.findall(r"width:(\d+)%", one) == ["75", "12"]
    assert re.findall(r"<b>(\d of \d+|not run)</b>", one) == ["3 of 4", "1 of 8", "not run"]
    assert "not on place 1<" in one
    assert "not on place 0, place 1, place 2, place 3 and 3 more<" in one
    assert "median 1.25 (0.500 to 4.00)" in one
    assert "p ≤ 0.031" in one
    cells = re.findall(
        r"<tr><td>(.*?)</td><td>.*?>(yes|no)<.*?number\">(.*?)</td><td class=\"number\">(.*?)</td>",
        one,
    )
    assert cells == 2 * [
        ("place 0", "yes", "–", "–"),
        ("place 1", "no", "1.50", "–"),
        ("place 2", "yes", "3.00", "&lt; 0.001"),
        ("place 3", "yes", "4.50", "–"),
    ]
    groups = re.findall(r'scope="colgroup">(.*?)<', one)
    assert groups == ["second start", "first start"]
    same = report.html([report.claims([claim_row(range=[2.0, 2.0, 2.0], p=None)])], "salt")
    assert "median" not in same
    assert "> 2.00</li>" in same
    assert "paired tests" not in same


def test_words_for_a_panel_give_the_last_values():
    marks = [
        charts.line("falling", "#000000", [0, 1, 2], [3.0, 2.0, 1.0]),
        charts.line("gone", "#000000", [0, 1], [3.0, np.nan]),
        charts.line("", "#000000", [0, 1], [3.0, 4.0]),
        charts.line("a dot", "#000000", [1], [9.0], dot=True),
        charts.bars("bars", "#000000", [0], [5.0], [0.1], width=1.0),
    ]
    page = report.html(
        report.figure("f", "", [charts.panel("Title", marks, y="Height")], ""), "salt"
    )
    assert 'aria-label="Title, Height. At the end: falling 1.00."' in page


def test_a_table_shows_its_numbers_to_the_right_and_the_best_in_bold():
    page = report.html(
        [report.table(["a", "b", "c"], [["x", 1, 2], ["y", 3, 4]], numbers_from=1, best=[(1, 2)])],
        "s",
    )
    cells = re.findall(r"<t[dh]([^>]*)>(\w)</t[dh]>", page)
    plain, right, best = "", ' class="number"', ' class="number best"'
    assert [(kind.replace(' scope="col"', ""), word) for kind, word in cells] == [
        (plain, "a"),
        (right, "b"),
        (right, "c"),
        (plain, "x"),
        (right, "1"),
        (right, "2"),
        (plain, "y"),
        (right, "3"),
        (best, "4"),
    ]
