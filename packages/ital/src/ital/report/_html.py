"""Blocks as HTML, and the self-contained page around them."""

from collections.abc import Callable, Iterable
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
RULE_KEY = (
    '<svg class="key" viewBox="0 0 26 8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" '
    f'style="stroke:{in_page(charts.SOFT)};stroke-width:1.3;stroke-dasharray:5 3"/></svg>'
)
LONG = 12  # panels: a figure with more may be cut between pages
OPEN_BEFORE_PRINT = "<script>addEventListener('beforeprint',()=>document.querySelectorAll('details').forEach(d=>d.open=true))</script>"


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
    shown = [part for part in sections if part["blocks"]]
    links = "".join(f'<a href="#{part["id"]}">{text(part["title"])}</a>' for part in shown)
    body = "".join(
        f'<section id="{part["id"]}"><h2>{text(part["title"])}</h2>{html(part["blocks"], part["id"])}</section>'
        for part in shown
    )
    above = f'<p class="banner{"" if alert else " calm"}">{text(banner)}</p>' if banner else ""
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
        name: ``blocks.css`` for blocks, which the documentation uses too, or ``page.css`` for the page around them.

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
    return "".join(SHOWN[block["kind"]](block, f"{salt}-{i}") for i, block in enumerate(blocks))


def text(value: Any) -> str:
    """Any value as escaped text."""
    return escape(str(value), quote=False)


def _paragraph(block: Block, salt: str) -> str:
    return f"<p>{text(block['words'])}</p>"


def _heading(block: Block, salt: str) -> str:
    return f"<h3>{text(block['words'])}</h3>"


def _bullets(block: Block, salt: str) -> str:
    return "<ul>" + "".join(f"<li>{text(words)}</li>" for words in block["lines"]) + "</ul>"


def _commands(block: Block, salt: str) -> str:
    rows = "".join(
        f"<dt>{text(what)}</dt><dd><pre><code>{text(command)}</code></pre></dd>"
        for what, command in block["pairs"]
    )
    return f'<dl class="commands">{rows}</dl>'


def _terms(block: Block, salt: str) -> str:
    rows = "".join(
        f"<dt>{text(term)}</dt><dd>{text(meaning)}</dd>" for term, meaning in block["pairs"]
    )
    return f'<dl class="terms">{rows}</dl>'


def _folded(block: Block, salt: str) -> str:
    inside = html(block["blocks"], salt)
    state = " open" if block["open"] else ""
    return (
        f'<details class="more"{state}><summary>{text(block["title"])}</summary>{inside}</details>'
    )


def _table(block: Block, salt: str) -> str:
    """Scrolls on narrow screens while its first column stays visible; numbers are right-aligned."""
    best = {tuple(cell) for cell in block["best"]}

    def kind(column: int, row: int = -1) -> str:
        names = (
            ["number"]
            if block["numbers_from"] is not None and column >= block["numbers_from"]
            else []
        )
        names += ["best"] if (row, column) in best else []
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(
        f'<th scope="col"{kind(i)}>{text(words)}</th>' for i, words in enumerate(block["heads"])
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind(i, row)}>{text(value)}</td>" for i, value in enumerate(values))
        + "</tr>"
        for row, values in enumerate(block["rows"])
    )
    return tabled(
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", block["caption"]
    )


def tabled(content: str, caption: str = "") -> str:
    """A table that scrolls, by touch or by keyboard, if it is wider than the page; its caption stays in place."""
    about = f"<p>{text(caption)}</p>" if caption else ""
    return f'<div class="tabled">{about}<div class="scroll" tabindex="0">{content}</div></div>'


def _figure(block: Block, salt: str) -> str:
    """Panels side by side, as many as there is room for; the legend below is text."""
    panels = block["panels"]
    width = max(panel["size"][0] for panel in panels)
    tiles = "".join(tile(panel, f"{block['name']}-{i}") for i, panel in enumerate(panels))
    keys = "".join(f"<li>{key(mark)}{text(mark['label'])}</li>" for mark in charts.legend(panels))
    keys += "".join(
        f"<li>{RULE_KEY}{text(mark['words'])}</li>" for mark in charts.reference_lines(panels)
    )
    note = f' <span class="note">{text(block["note"])}</span>' if block["note"] else ""
    columns = min(block["columns"], len(panels))
    sizes = f"--columns:{columns};--narrow:{62 * width:.0f}px;--wide:{116 * width:.0f}px"
    long = " long" if len(panels) > LONG else ""
    return (
        f'<figure class="chart{long}" id="figure-{block["name"]}"><div class="title">{text(block["title"])}{note}</div>'
        f'<div class="tiles" style="{sizes}">{tiles}</div>'
        + (f'<ul class="legend">{keys}</ul>' if keys else "")
        + f"<figcaption>{text(block['caption'])}</figcaption></figure>"
    )


def _picture(block: Block, salt: str) -> str:
    alt = escape(block["alt"], quote=True)
    return (
        f'<figure class="chart" id="figure-{block["name"]}"><div class="title">{text(block["title"])}</div>'
        f'<img class="picture" alt="{alt}" src="{block["source"]}">'
        f"<figcaption>{text(block['caption'])}</figcaption></figure>"
    )


def tile(panel: charts.Panel, salt: str) -> str:
    """One panel with a text description for screen readers; a panel without marks leaves its place empty."""
    if not panel["marks"]:
        return '<div class="tile blank"></div>'
    title = f"<b>{text(panel['title'])}</b>" if panel["title"] else ""
    words = escape(described(panel), quote=True)
    return f'<div class="tile" role="img" aria-label="{words}">{title}{svg(panel, salt)}</div>'


def described(panel: charts.Panel) -> str:
    """A panel in words, for screen readers: the last value of every curve."""
    ends = [
        f"{mark['label']} {number(mark['y'][-1])}"
        for mark in panel["marks"]
        if mark["kind"] == "line"
        and mark["label"]
        and not mark.get("dot")
        and mark["y"]
        and mark["y"][-1] is not None
    ]
    about = ", ".join(part for part in (panel["title"], panel["y"]) if part)
    return f"{about}. At the end: {', '.join(ends)}." if ends else about


def key(mark: charts.Mark) -> str:
    """A sample of a mark, for the legend."""
    colour = in_page(mark["colour"])
    if mark["kind"] == "line" and not mark.get("dot"):
        dash = " ".join(f"{3 * part:g}" for part in mark.get("dash", ()))
        return (
            f'<svg class="key" viewBox="0 0 26 8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" '
            f'style="stroke:{colour};stroke-width:{1.4 * mark["width"]:.1f};stroke-dasharray:{dash or "none"}"/></svg>'
        )
    sign = "■" if mark["kind"] == "bars" else GLYPHS.get(mark.get("marker", "o"), "●")
    return f'<span class="key" aria-hidden="true" style="color:{colour}">{sign}</span>'


def _claims(block: Block, salt: str) -> str:
    """The number of claims with each verdict, then one row per claim with its checks inside."""
    counts = "".join(
        f'<li class="{CLASSES[verdict]}"><b>{count}</b> {text(verdict)}</li>'
        for verdict in CLASSES
        if (count := sum(row["verdict"] == verdict for row in block["rows"]))
    )
    rows = "".join(claim(row) for row in block["rows"])
    return f'<ul class="counts">{counts}</ul><div class="claims">{rows}</div>'


def claim(row: dict[str, Any]) -> str:
    """One claim: its verdict, the number of places where it holds by start, its value, its largest p, its checks."""
    places = (
        "".join(tally(counts) for counts in row["tallies"]) or f"<li>{text(row['summary'])}</li>"
    )
    numbers = "".join(
        f'<li><span class="what">{text(what)}</span> {text(value)}</li>'
        for what, value in claim_numbers(row)
    )
    facts = "".join(f'<ul class="facts">{some}</ul>' for some in (places, numbers) if some)
    inside = f"<p><b>Rule.</b> {text(row['rule'])}</p>" + (checks(row) if row["checks"] else "")
    return (
        f'<details class="claim"><summary><span class="name">{text(row["claim"])} '
        f'<span class="source">{text(row["source"])}</span></span>'
        f'<span class="pill {CLASSES[row["verdict"]]}">{text(row["verdict"])}</span>'
        f"{facts}</summary>"
        f'<div class="inside">{inside}</div></details>'
    )


def tally(counts: dict[str, Any]) -> str:
    """For one start: a bar for the share of checks that hold, and the places where the claim fails."""
    held, of = counts["held"], counts["of"]
    bar = (
        f'<span class="bar" aria-hidden="true"><i style="width:{100 * held / of:.0f}%"></i></span>'
        if of
        else ""
    )
    count = f"{held} of {of}" if of else "not run"
    failing = counts["failing"]
    more = f" and {len(failing) - 4} more" if len(failing) > 5 else ""
    named = ", ".join(failing if not more else failing[:4])
    where = f' <span class="not">not on {text(named)}{more}</span>' if failing and held else ""
    return f'<li><span class="what">{text(counts["start"])}</span> {bar} <b>{count}</b>{where}</li>'


def claim_numbers(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The main number of a claim, as median and range over all places, and the largest p that counts."""
    numbers = []
    if row["range"]:
        low, middle, high = (number(value) for value in row["range"])
        numbers.append(
            (row["value"], middle if low == high else f"median {middle} ({low} to {high})")
        )
    if row["p"] is not None:
        numbers.append(("paired tests where it holds", f"p {p_equals(row['p']).replace('=', '≤')}"))
    return numbers


def checks(row: dict[str, Any]) -> str:
    """Every check of a claim, one per line, grouped by start."""
    body, before = "", None
    starts = list(dict.fromkeys(start for _, start, *_ in row["checks"]))
    for where, start, holds, value, p, words in sorted(
        row["checks"], key=lambda check: starts.index(check[1])
    ):
        if start != before:
            body += f'<tr class="group"><th colspan="5" scope="colgroup">{text(start)}</th></tr>'
            before = start
        mark = '<span class="yes">yes</span>' if holds else '<span class="no">no</span>'
        much, sure = "–" if value is None else number(value), "–" if p is None else p_value(p)
        body += (
            f'<tr><td>{text(where)}</td><td>{mark}</td><td class="number">{much}</td>'
            f'<td class="number">{text(sure)}</td><td class="words">{text(words)}</td></tr>'
        )
    heads = ("where", "holds", row["value"] or "number", "p", "in full")
    kinds = ("", "", ' class="number"', ' class="number"', ' class="words"')
    head = "".join(
        f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(heads, kinds, strict=True)
    )
    return tabled(
        f'<table class="checks"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


SHOWN: dict[str, Callable[[Block, str], str]] = {
    "paragraph": _paragraph,
    "heading": _heading,
    "bullets": _bullets,
    "commands": _commands,
    "terms": _terms,
    "folded": _folded,
    "table": _table,
    "figure": _figure,
    "picture": _picture,
    "claims": _claims,
}
