"""Blocks as HTML, and the self-contained page around them."""

import collections
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

from ital._version import __version__
from ital.figures import charts
from ital.report._blocks import Block, PageSection
from ital.report._svg import in_page, svg
from ital.statistics import number, p_equals, p_value

CLASSES = {
    "holds": "holds",
    "holds in part": "in-part",
    "does not hold": "does-not-hold",
    "needs people": "open",
    "not judged": "open",
}
GLYPHS = {"s": "■", "D": "◆", "d": "♦", "v": "▼"}  # markers of matplotlib as letters
# The keys of a legend are drawn here, because a page has no matplotlib.
RULE_KEY = (
    '<svg class="key" viewBox="0 0 26 8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" '
    f'style="stroke:{in_page(charts.SOFT)};stroke-width:1.3;stroke-dasharray:5 3"/></svg>'
)
LONG = 12  # panels: a figure with more may be cut between pages
# What is folded would be missing on paper.
OPEN_BEFORE_PRINT = (
    "<script>addEventListener('beforeprint',()=>"
    "document.querySelectorAll('details').forEach(d=>d.open=true))</script>"
)


def page(
    title: str,
    sections: Iterable[PageSection],
    *,
    lead: str = "",
    banner: str = "",
    alert: bool = True,
    version: str = __version__,
) -> str:
    """Make a complete page that needs no other file and no network.

    Args:
        title: its heading.
        sections: the sections to show.
        lead: text below the title.
        banner: text above the title, to be read first.
        alert: whether the banner has the colour of a warning.
        version: the version of ital that computed the numbers.

    Returns:
        The text of an HTML file.
    """
    links = ""
    body = ""
    for section in sections:
        # A section without blocks is left out.
        if section["blocks"]:
            link = section["id"]
            heading = text(section["title"])
            links += f'<a href="#{link}">{heading}</a>'
            content = html(section["blocks"], link)
            body += f'<section id="{link}"><h2>{heading}</h2>{content}</section>'
    above = ""
    if banner:
        calm = "" if alert else " calm"
        above = f'<p class="banner{calm}">{text(banner)}</p>'
    script = OPEN_BEFORE_PRINT if "<details" in body else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style()}{style('page.css')}</style>{script}</head><body>"
        f'<header>{above}<h1>{text(title)}</h1><p class="lead">{text(lead)}</p>'
        f'<nav aria-label="Sections">{links}</nav></header>'
        f'<main class="ital-report">{body}</main>'
        f"<footer>Made by ital {version}. This page needs no network and no other file.</footer>"
        "</body></html>\n"
    )


def style(name: str = "blocks.css") -> str:
    """Read a style sheet of the package.

    Args:
        name: ``blocks.css`` for blocks, which the documentation uses too, or ``page.css`` for the
            page around them.

    Returns:
        The text of the style sheet.
    """
    return resources.files("ital.report").joinpath(name).read_text("utf-8")


def html(blocks: Iterable[Block], salt: str) -> str:
    """Render blocks as HTML.

    Args:
        blocks: the blocks, in order.
        salt: keeps ids within these blocks distinct from those of other blocks on the page.

    Returns:
        The HTML elements, for a page that includes the style sheet of blocks.
    """
    rendered = ""
    for position, block in enumerate(blocks):
        render = RENDERERS[block["kind"]]
        rendered += render(block, f"{salt}-{position}")
    return rendered


def text(value: Any) -> str:
    """Return any value as escaped text."""
    return escape(str(value), quote=False)


def _render_paragraph(block: Block, salt: str) -> str:
    return f"<p>{text(block['words'])}</p>"


def _render_heading(block: Block, salt: str) -> str:
    return f"<h3>{text(block['words'])}</h3>"


def _render_bullets(block: Block, salt: str) -> str:
    items = "".join(f"<li>{text(words)}</li>" for words in block["lines"])
    return f"<ul>{items}</ul>"


def _render_commands(block: Block, salt: str) -> str:
    rows = "".join(
        f"<dt>{text(what)}</dt><dd><pre><code>{text(command)}</code></pre></dd>"
        for what, command in block["pairs"]
    )
    return f'<dl class="commands">{rows}</dl>'


def _render_terms(block: Block, salt: str) -> str:
    rows = "".join(
        f"<dt>{text(term)}</dt><dd>{text(meaning)}</dd>" for term, meaning in block["pairs"]
    )
    return f'<dl class="terms">{rows}</dl>'


def _render_folded(block: Block, salt: str) -> str:
    inside = html(block["blocks"], salt)
    state = " open" if block["open"] else ""
    return (
        f'<details class="more"{state}><summary>{text(block["title"])}</summary>{inside}</details>'
    )


def _render_table(block: Block, salt: str) -> str:
    """Render a table whose numbers are right-aligned; its first column stays when it scrolls."""
    best = {tuple(cell) for cell in block["best"]}
    numbers_from = block["numbers_from"]
    if numbers_from is None:
        numbers_from = len(block["heads"])
    head = ""
    for column, words in enumerate(block["heads"]):
        names = _cell_class(number=column >= numbers_from)
        head += f'<th scope="col"{names}>{text(words)}</th>'
    body = ""
    for row, values in enumerate(block["rows"]):
        body += "<tr>"
        for column, value in enumerate(values):
            names = _cell_class(number=column >= numbers_from, best=(row, column) in best)
            body += f"<td{names}>{text(value)}</td>"
        body += "</tr>"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return tabled(table, block["caption"])


def _cell_class(**kinds: bool) -> str:
    """Return the class attribute of a cell that is of these kinds; empty if it is of none."""
    names = " ".join(name for name, applies in kinds.items() if applies)
    return f' class="{names}"' if names else ""


def tabled(content: str, caption: str = "") -> str:
    """Wrap a table so that it scrolls, by touch or by keyboard, if it is wider than the page.

    Its caption stays in place.
    """
    about = f"<p>{text(caption)}</p>" if caption else ""
    return f'<div class="tabled">{about}<div class="scroll" tabindex="0">{content}</div></div>'


def _render_figure(block: Block, salt: str) -> str:
    """Render panels side by side, as many as there is room for; the legend below is text."""
    name = block["name"]
    panels = block["panels"]
    tiles = ""
    for position, panel in enumerate(panels):
        tiles += tile(panel, f"{name}-{position}")
    legend = _legend_below(panels)
    note = ""
    if block["note"]:
        note = f' <span class="note">{text(block["note"])}</span>'
    # The style sheet chooses the number of columns from these widths in pixels.
    width = max(panel["size"][0] for panel in panels)
    columns = min(block["columns"], len(panels))
    narrow = f"{62 * width:.0f}px"
    wide = f"{116 * width:.0f}px"
    sizes = f"--columns:{columns};--narrow:{narrow};--wide:{wide}"
    long = " long" if len(panels) > LONG else ""
    return (
        f'<figure class="chart{long}" id="figure-{name}">'
        f'<div class="title">{text(block["title"])}{note}</div>'
        f'<div class="tiles" style="{sizes}">{tiles}</div>{legend}'
        f"<figcaption>{text(block['caption'])}</figcaption></figure>"
    )


def _legend_below(panels: Sequence[charts.Panel]) -> str:
    """Render the legend of panels as a list; empty if no mark has a name."""
    keys = ""
    for mark in charts.legend(panels):
        name = text(mark["label"])
        keys += f"<li>{key(mark)}{name}</li>"
    for mark in charts.reference_lines(panels):
        words = text(mark["words"])
        keys += f"<li>{RULE_KEY}{words}</li>"
    if not keys:
        return ""
    return f'<ul class="legend">{keys}</ul>'


def _render_picture(block: Block, salt: str) -> str:
    alt = escape(block["alt"], quote=True)
    return (
        f'<figure class="chart" id="figure-{block["name"]}">'
        f'<div class="title">{text(block["title"])}</div>'
        f'<img class="picture" alt="{alt}" src="{block["source"]}">'
        f"<figcaption>{text(block['caption'])}</figcaption></figure>"
    )


def tile(panel: charts.Panel, salt: str) -> str:
    """Render one panel, with a text for screen readers; one without marks stays empty."""
    if not panel["marks"]:
        return '<div class="tile blank"></div>'
    title = f"<b>{text(panel['title'])}</b>" if panel["title"] else ""
    words = escape(described(panel), quote=True)
    return f'<div class="tile" role="img" aria-label="{words}">{title}{svg(panel, salt)}</div>'


def described(panel: charts.Panel) -> str:
    """Describe a panel in words, for screen readers: the last value of every curve."""
    ends = []
    for mark in panel["marks"]:
        # A dot is a highlighted point of a curve.
        is_curve = mark["kind"] == "line" and mark["label"] and not mark.get("dot")
        if not (is_curve and mark["y"]):
            continue
        end = mark["y"][-1]
        if end is not None:
            ends.append(f"{mark['label']} {number(end)}")
    about = ", ".join(part for part in (panel["title"], panel["y"]) if part)
    if not ends:
        return about
    return f"{about}. At the end: {', '.join(ends)}."


def key(mark: charts.Mark) -> str:
    """Draw a sample of a mark, for the legend."""
    colour = in_page(mark["colour"])
    if mark["kind"] == "line" and not mark.get("dot"):
        width = f"{1.4 * mark['width']:.1f}"
        dash = " ".join(f"{3 * part:g}" for part in mark.get("dash", ())) or "none"
        return (
            '<svg class="key" viewBox="0 0 26 8" aria-hidden="true">'
            '<line x1="0" y1="4" x2="26" y2="4" '
            f'style="stroke:{colour};stroke-width:{width};stroke-dasharray:{dash}"/></svg>'
        )
    sign = "■" if mark["kind"] == "bars" else GLYPHS.get(mark.get("marker", "o"), "●")
    return f'<span class="key" aria-hidden="true" style="color:{colour}">{sign}</span>'


def _render_claims(block: Block, salt: str) -> str:
    """Render the number of claims with each verdict, then one row per claim."""
    verdicts = collections.Counter(row["verdict"] for row in block["rows"])
    counts = ""
    for verdict, css_class in CLASSES.items():
        if verdicts[verdict]:
            counts += f'<li class="{css_class}"><b>{verdicts[verdict]}</b> {text(verdict)}</li>'
    rows = "".join(claim(row) for row in block["rows"])
    return f'<ul class="counts">{counts}</ul><div class="claims">{rows}</div>'


def claim(row: dict[str, Any]) -> str:
    """Render one claim: its verdict, where it holds, its main numbers and its checks."""
    tallies = "".join(tally(counts) for counts in row["tallies"])
    numbers = ""
    for what, value in claim_numbers(row):
        numbers += f'<li><span class="what">{text(what)}</span> {text(value)}</li>'
    places = tallies or f"<li>{text(row['summary'])}</li>"
    facts = f'<ul class="facts">{places}</ul>'
    if numbers:
        facts += f'<ul class="facts">{numbers}</ul>'
    inside = f"<p><b>Rule.</b> {text(row['rule'])}</p>"
    if row["checks"]:
        inside += checks(row)
    return (
        f'<details class="claim"><summary><span class="name">{text(row["claim"])} '
        f'<span class="source">{text(row["source"])}</span></span>'
        f'<span class="pill {CLASSES[row["verdict"]]}">{text(row["verdict"])}</span>'
        f"{facts}</summary>"
        f'<div class="inside">{inside}</div></details>'
    )


def tally(counts: dict[str, Any]) -> str:
    """Render one start: the share of checks that hold, and the places where the claim fails."""
    start = text(counts["start"])
    held = counts["held"]
    of = counts["of"]
    bar = ""
    count = "not run"
    if of:
        share = f"{100 * held / of:.0f}%"
        bar = f'<span class="bar" aria-hidden="true"><i style="width:{share}"></i></span>'
        count = f"{held} of {of}"
    failing = counts["failing"]
    # Five are named, of more only four.
    named = ", ".join(failing)
    if len(failing) > 5:
        named = f"{', '.join(failing[:4])} and {len(failing) - 4} more"
    # Where it holds nowhere, the count says so.
    where = f' <span class="not">not on {text(named)}</span>' if failing and held else ""
    return f'<li><span class="what">{start}</span> {bar} <b>{count}</b>{where}</li>'


def claim_numbers(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the main number of a claim over all places, and the largest p that counts."""
    numbers = []
    if row["range"]:
        low, middle, high = (number(value) for value in row["range"])
        words = middle
        if low != high:
            words = f"median {middle} ({low} to {high})"
        numbers.append((row["value"], words))
    if row["p"] is not None:
        largest = p_equals(row["p"]).replace("=", "≤")
        numbers.append(("paired tests where it holds", f"p {largest}"))
    return numbers


def checks(row: dict[str, Any]) -> str:
    """Render every check of a claim, one per line, grouped by start."""
    by_start: dict[str, str] = {}
    for where, start, holds, value, p, words in row["checks"]:
        mark = '<span class="yes">yes</span>' if holds else '<span class="no">no</span>'
        much = "–" if value is None else number(value)
        sure = "–" if p is None else p_value(p)
        by_start.setdefault(start, "")
        by_start[start] += (
            f'<tr><td>{text(where)}</td><td>{mark}</td><td class="number">{much}</td>'
            f'<td class="number">{text(sure)}</td><td class="words">{text(words)}</td></tr>'
        )
    body = ""
    for start, lines in by_start.items():
        group = f'<tr class="group"><th colspan="5" scope="colgroup">{text(start)}</th></tr>'
        body += group + lines
    heads = (
        ("where", ""),
        ("holds", ""),
        (row["value"] or "number", ' class="number"'),
        ("p", ' class="number"'),
        ("in full", ' class="words"'),
    )
    head = ""
    for name, names in heads:
        head += f'<th scope="col"{names}>{text(name)}</th>'
    table = f'<table class="checks"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return tabled(table)


RENDERERS: dict[str, Callable[[Block, str], str]] = {
    "paragraph": _render_paragraph,
    "heading": _render_heading,
    "bullets": _render_bullets,
    "commands": _render_commands,
    "terms": _render_terms,
    "folded": _render_folded,
    "table": _render_table,
    "figure": _render_figure,
    "picture": _render_picture,
    "claims": _render_claims,
}
