"""Panels as small SVG elements that use the font and the colours of the page around them."""

import functools
import io
import json
import re

from ital.figures import charts

MARGINS = (0.56, 0.43)  # inches left of and below the axes, for numbers and a title
NOT_SEEN = (
    r"<metadata>.*?</metadata>",
    r"<style[^>]*>.*?</style>",
    r"<!--.*?-->",
    r'<path d="[^"]*" style="fill: none; opacity: 0"/>',
    r'(?<=<svg)( (?:width|height|version|xmlns|xmlns:xlink)="[^"]*")+',
    r" font-family: [^;\"]*;",  # the page's own font
    r' transform="rotate\(-?0[ .\d]*\)"',
)


def svg(panel: charts.Panel, salt: str) -> str:
    """A stored panel as an SVG element without a title; ``salt`` keeps its ids distinct from other panels' ids."""
    return _svg(json.dumps(panel), salt)


@functools.lru_cache(maxsize=1024)  # a report that is updated draws only new panels
def _svg(content: str, salt: str) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panel: charts.Panel = json.loads(content)
    with mpl.rc_context({**charts.STYLE, "svg.hashsalt": salt}):
        usual = (
            "y_ticks" not in panel and panel["marks"][0]["kind"] != "rewards"
        )  # space for names has to be measured
        figure = Figure(figsize=panel["size"], layout=None if usual else "constrained")
        figure.patch.set_alpha(0)
        axis = figure.subplots()
        if usual:
            width, height = panel["size"]
            figure.subplots_adjust(
                MARGINS[0] / width, MARGINS[1] / height, 1 - 0.12 / width, 1 - 0.08 / height
            )
        axis.patch.set_alpha(0)
        if charts.needs_room(panel):
            figure.draw_without_rendering()
        charts.draw(axis, panel)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return compact(buffer.getvalue())


def compact(text: str) -> str:
    """Only what is visible: one decimal, no metadata, no unused ids, colours that a page can change."""
    text = text[text.index("<svg") :]
    for pattern in NOT_SEEN:
        text = re.sub(pattern, "", text, flags=re.S)
    text = re.sub(
        r' (d|x|y|points|transform)="([^"]*)"',
        lambda match: f' {match[1]}="{_shorter(match[2])}"',
        text,
    )
    used = set(re.findall(r"#([\w-]+)[\")]", text))
    text = re.sub(r' id="([\w.-]+)"', lambda match: match[0] if match[1] in used else "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(
        r"(stroke|fill): (#[0-9a-f]{6})", lambda match: f"{match[1]}:{in_page(match[2])}", text
    )
    text = re.sub(r">\s+<", "><", re.sub(r"[ \t]*\n[ \t]*", " ", text)).replace("; ", ";")
    while (less := re.sub(r"<g></g>|<defs></defs>", "", text)) != text:
        text = less
    return text.strip()


def _shorter(numbers: str) -> str:
    """Coordinates to a tenth of a point."""
    numbers = re.sub(
        r"\d+\.\d+", lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), numbers
    )
    return re.sub(r"\s*([A-Za-z])\s*(?=[\d.-])", r"\1", re.sub(r"\s+", " ", numbers)).strip()


def in_page(colour: str) -> str:
    """A colour that the page's style sheet may replace, for instance on a dark background."""
    return f"var(--c{colour[1:]},{colour})"
