"""Blocks as HTML, and the page that stands by itself."""

import html
from collections.abc import Callable, Iterable
from importlib import resources
from typing import Any

from ital.reproduce import _charts
from ital.reproduce._blocks import Block
from ital.reproduce._numbers import number
from ital.statistics import p_equals, p_value

CLASSES = {
    "holds": "holds",
    "holds in part": "in-part",
    "does not hold": "does-not-hold",
    "needs people": "open",
    "not judged": "open",
}
LONG = 12  # panels: a figure with more may be cut between pages
TITLE = "Iterative Teacher-Aware Learning, reproduced"
LEAD = (
    "Every figure and table of the paper, measured anew, beside what the paper says of them. Each claim is judged by a "
    "rule that the data could have failed."
)
OPEN_BEFORE_PRINT = "addEventListener('beforeprint',()=>document.querySelectorAll('details').forEach(d=>d.open=true))"


def page(report: dict[str, Any]) -> str:
    """A whole report (see ``_report.build``) as one page that needs no other file."""
    sections = report["sections"]
    links = "".join(f'<a href="#{one["id"]}">{text(one["title"])}</a>' for one in sections)
    body = "".join(
        f'<section id="{one["id"]}"><h2>{text(one["title"])}</h2>{blocks(one["blocks"], one["id"])}</section>'
        for one in sections
    )
    banner = f'<p class="banner">{text(report["warning"])}</p>' if report["warning"] else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style()}{style('report.css')}</style><script>{OPEN_BEFORE_PRINT}</script></head><body>"
        f'<header><h1>{TITLE}</h1><p class="lead">{LEAD}</p>{banner}<nav aria-label="Sections">{links}</nav></header>'
        f'<main class="ital-report">{body}</main>'
        f"<footer>Made by ital {report['version']}. This page needs no network and no other file.</footer>"
        "</body></html>\n"
    )


def style(name: str = "blocks.css") -> str:
    """A style sheet of the package: that of blocks, which the documentation uses too, or that of the page."""
    return resources.files("ital.reproduce").joinpath(name).read_text("utf-8")


def blocks(some: Iterable[Block], salt: str) -> str:
    """Blocks in a row. ``salt`` keeps names in their pictures apart."""
    return "".join(SHOWN[one["kind"]](one, f"{salt}-{i}") for i, one in enumerate(some))


def text(value: Any) -> str:
    """Anything as text of a page."""
    return html.escape(str(value), quote=False)


def _paragraph(one: Block, salt: str) -> str:
    return f"<p>{text(one['words'])}</p>"


def _heading(one: Block, salt: str) -> str:
    return f"<h3>{text(one['words'])}</h3>"


def _bullets(one: Block, salt: str) -> str:
    return "<ul>" + "".join(f"<li>{text(words)}</li>" for words in one["lines"]) + "</ul>"


def _commands(one: Block, salt: str) -> str:
    rows = "".join(
        f"<dt>{text(what)}</dt><dd><pre><code>{text(command)}</code></pre></dd>" for what, command in one["pairs"]
    )
    return f'<dl class="commands">{rows}</dl>'


def _folded(one: Block, salt: str) -> str:
    inside = blocks(one["blocks"], salt)
    state = " open" if one["open"] else ""
    return f'<details class="more"{state}><summary>{text(one["title"])}</summary>{inside}</details>'


def _table(one: Block, salt: str) -> str:
    """It scrolls by itself where the page is narrow, with its first column in sight; numbers are set right."""
    best = {tuple(cell) for cell in one["best"]}

    def kind(column: int, row: int = -1) -> str:
        names = ["number"] if one["numbers_from"] is not None and column >= one["numbers_from"] else []
        names += ["best"] if (row, column) in best else []
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(f'<th scope="col"{kind(i)}>{text(words)}</th>' for i, words in enumerate(one["heads"]))
    body = "".join(
        "<tr>" + "".join(f"<td{kind(i, row)}>{text(value)}</td>" for i, value in enumerate(values)) + "</tr>"
        for row, values in enumerate(one["rows"])
    )
    return tabled(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", one["caption"])


def tabled(content: str, caption: str = "") -> str:
    """A table that may be wider than the page, and is then moved with a finger or with the keys; its caption stays."""
    about = f"<p>{text(caption)}</p>" if caption else ""
    return f'<div class="tabled">{about}<div class="scroll" tabindex="0">{content}</div></div>'


def _figure(one: Block, salt: str) -> str:
    """Panels side by side, as many as there is room for; the legend below is text."""
    panels = one["panels"]
    width = max(panel["size"][0] for panel in panels)
    tiles = "".join(tile(panel, f"{one['name']}-{i}") for i, panel in enumerate(panels))
    keys = "".join(f"<li>{key(mark)}{text(mark['label'])}</li>" for mark in _charts.legend(panels))
    note = f' <span class="note">{text(one["note"])}</span>' if one["note"] else ""
    columns = min(one["columns"], len(panels))
    sizes = f"--columns:{columns};--narrow:{62 * width:.0f}px;--wide:{116 * width:.0f}px"
    long = " long" if len(panels) > LONG else ""
    return (
        f'<figure class="chart{long}" id="figure-{one["name"]}"><div class="title">{text(one["title"])}{note}</div>'
        f'<div class="tiles" style="{sizes}">{tiles}</div>'
        + (f'<ul class="legend">{keys}</ul>' if keys else "")
        + f"<figcaption>{text(one['caption'])}</figcaption></figure>"
    )


def tile(panel: dict[str, Any], salt: str) -> str:
    """One panel, with words for who does not see it; one without marks keeps a place free."""
    if not panel["marks"]:
        return '<div class="tile blank"></div>'
    title = f"<b>{text(panel['title'])}</b>" if panel["title"] else ""
    words = html.escape(_charts.described(panel), quote=True)
    return f'<div class="tile" role="img" aria-label="{words}">{title}{_charts.svg(panel, salt)}</div>'


def key(mark: dict[str, Any]) -> str:
    """A sample of a mark, for the legend."""
    colour = _charts.in_page(mark["colour"])
    if mark["kind"] == "line" and not mark.get("dot"):
        dash = " ".join(f"{3 * part:g}" for part in mark.get("dash", ()))
        return (
            f'<svg class="key" viewBox="0 0 26 8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" '
            f'style="stroke:{colour};stroke-width:{1.4 * mark["width"]:.1f};stroke-dasharray:{dash or "none"}"/></svg>'
        )
    sign = "■" if mark["kind"] == "bars" else _charts.glyph(mark.get("marker", "o"))
    return f'<span class="key" aria-hidden="true" style="color:{colour}">{sign}</span>'


def _claims(one: Block, salt: str) -> str:
    """How many claims hold, and a row for each, with its checks inside."""
    counts = "".join(
        f'<li class="{CLASSES[verdict]}"><b>{count}</b> {text(verdict)}</li>'
        for verdict in CLASSES
        if (count := sum(row["verdict"] == verdict for row in one["rows"]))
    )
    rows = "".join(claim(row) for row in one["rows"])
    return f'<ul class="counts">{counts}</ul><div class="claims">{rows}</div>'


def claim(row: dict[str, Any]) -> str:
    """One claim: verdict, in how many places it holds from each start, its number, its largest p, and every check."""
    places = "".join(tally(one) for one in row["tallies"]) or f"<li>{text(row['summary'])}</li>"
    numbers = "".join(
        f'<li><span class="what">{text(what)}</span> {text(value)}</li>' for what, value in claim_numbers(row)
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


def tally(one: dict[str, Any]) -> str:
    """From one start: a bar of how many checks hold, and where it does not."""
    held, of = one["held"], one["of"]
    bar = f'<span class="bar" aria-hidden="true"><i style="width:{100 * held / of:.0f}%"></i></span>' if of else ""
    count = f"{held} of {of}" if of else "not run"
    failing = one["failing"]
    more = f" and {len(failing) - 4} more" if len(failing) > 5 else ""
    named = ", ".join(failing if not more else failing[:4])
    where = f' <span class="not">not on {text(named)}{more}</span>' if failing and held else ""
    return f'<li><span class="what">{text(one["start"])}</span> {bar} <b>{count}</b>{where}</li>'


def claim_numbers(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The number that tells most of a claim, as its median and range over all places, and the largest p that counts."""
    found = []
    if row["range"]:
        low, middle, high = (number(value) for value in row["range"])
        found.append((row["value"], middle if low == high else f"median {middle} ({low} to {high})"))
    if row["p"] is not None:
        found.append(("paired tests where it holds", f"p {p_equals(row['p']).replace('=', '≤')}"))
    return found


def checks(row: dict[str, Any]) -> str:
    """Every check of a claim, a line each, start by start."""
    body, before = "", None
    starts = list(dict.fromkeys(start for _, start, *_ in row["checks"]))
    for where, start, holds, value, p, words in sorted(row["checks"], key=lambda check: starts.index(check[1])):
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
    head = "".join(f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(heads, kinds, strict=True))
    return tabled(f'<table class="checks"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


SHOWN: dict[str, Callable[[Block, str], str]] = {
    "paragraph": _paragraph,
    "heading": _heading,
    "bullets": _bullets,
    "commands": _commands,
    "folded": _folded,
    "table": _table,
    "figure": _figure,
    "claims": _claims,
}
