import json
import re

import numpy as np
import pytest

from ital import report
from ital.figures import charts
from ital.report._svg import svg

LINE = charts.panel("Panel", [charts.line("ITAL", "#08306b", [0, 1], [1.0, 0.5])], y="Distance")


def test_every_block_is_plain_data_and_shown_as_text():
    blocks = [
        report.paragraph("<b>words"),
        report.heading("<b>words"),
        report.bullets(["<b>words"]),
        report.commands([("<b>words", "<b>words")]),
        report.table(["<b>words", "n"], [["<b>words", 1.5]], caption="<b>words", numbers_from=1, best=[(0, 1)]),
        *report.figure("line", "<b>words", [LINE], "<b>words", note="<b>words"),
        *report.folded("<b>words", [report.paragraph("<b>words")]),
    ]
    assert json.loads(json.dumps(blocks)) == blocks
    page = report.html(blocks, "salt")
    assert "<b>words" not in page
    assert page.count("&lt;b&gt;words") == 13
    assert '<td class="number best">1.5</td>' in page


def test_nothing_makes_no_block():
    assert report.figure("name", "", [], "") == report.folded("", []) == []


def test_figures_are_found_in_folds():
    figure = report.figure("inside", "", [LINE], "")
    assert report.figures_in([report.paragraph(""), *report.folded("", figure), *figure]) == figure * 2


def test_a_page_says_first_what_must_be_read_first_and_leaves_empty_sections_out():
    parts = [report.section("Full", "full", [report.paragraph("words")]), report.section("Empty", "empty", [])]
    page = report.page("A <title>", parts, lead="lead", banner="SIMULATED", version="1.2")
    assert page.index("SIMULATED") < page.index("<h1>A &lt;title&gt;</h1>")
    assert '<section id="full"><h2>Full</h2><p>words</p></section>' in page
    assert "Empty" not in page
    assert "Made by ital 1.2." in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "<script" in report.page("", [report.section("", "", report.folded("more", parts[0]["blocks"]))])
    assert 'class="banner calm"' in report.page("", [], banner="People", alert=False)


def test_a_picture_takes_the_font_and_the_colours_of_the_page():
    drawn = svg(charts.stored(LINE), "salt")
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
    panel = charts.stored(charts.panel("", [mark]))
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
    assert report.pdf("Title", [*blocks, report.bullets(["left out"])], banner="whose").startswith(b"%PDF")
