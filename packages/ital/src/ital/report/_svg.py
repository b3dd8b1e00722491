"""Panels as small SVG elements that use the font and the colours of the page around them."""

import functools
import io
import json
import re

from ital.figures import charts

MARGINS = (0.56, 0.43)  # inches left of and below the axes, for numbers and a title
# What a reader does not see: matplotlib's metadata and style, invisible paths, sizes that the page
# sets.
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
    """Render a stored panel as an SVG element without a title.

    Args:
        panel: the panel, as plain data.
        salt: keeps its ids distinct from those of other panels.
    """
    return _cached_svg(json.dumps(panel), salt)


# A report that is updated draws only new panels.
@functools.lru_cache(maxsize=1024)
def _cached_svg(content: str, salt: str) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panel: charts.Panel = json.loads(content)
    with mpl.rc_context({**charts.STYLE, "svg.hashsalt": salt}):
        # Space for names has to be measured; all other panels have the same margins, which is
        # quicker and aligns them.
        usual = "y_ticks" not in panel and panel["marks"][0]["kind"] != "rewards"
        figure = Figure(figsize=panel["size"], layout=None if usual else "constrained")
        figure.patch.set_alpha(0)
        axis = figure.subplots()
        if usual:
            width, height = panel["size"]
            figure.subplots_adjust(
                MARGINS[0] / width,
                MARGINS[1] / height,
                1 - 0.12 / width,
                1 - 0.08 / height,
            )
        axis.patch.set_alpha(0)
        if charts.needs_room(panel):
            figure.draw_without_rendering()
        charts.draw(axis, panel)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return compact(buffer.getvalue())


def compact(text: str) -> str:
    """Keep only what is visible, with one decimal, and let the page change its colours."""
    text = text[text.index("<svg") :]
    for pattern in NOT_SEEN:
        text = re.sub(pattern, "", text, flags=re.S)
    text = re.sub(
        r' (d|x|y|points|transform)="([^"]*)"',
        lambda match: f' {match[1]}="{_shorter(match[2])}"',
        text,
    )
    # Ids that something refers to, by href or by url.
    used = set(re.findall(r"#([\w-]+)[\")]", text))
    text = re.sub(r' id="([\w.-]+)"', lambda match: match[0] if match[1] in used else "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(
        r"(stroke|fill): (#[0-9a-f]{6})", lambda match: f"{match[1]}:{in_page(match[2])}", text
    )
    text = re.sub(r"[ \t]*\n[ \t]*", " ", text)
    text = re.sub(r">\s+<", "><", text).replace("; ", ";")
    # A group is empty once the groups in it are gone.
    removed = 1
    while removed:
        text, removed = re.subn(r"<g></g>|<defs></defs>", "", text)
    return text.strip()


def _shorter(numbers: str) -> str:
    """Round coordinates to a tenth of a point, and remove needless spaces."""
    numbers = re.sub(
        r"\d+\.\d+",
        lambda match: f"{float(match[0]):.1f}".removesuffix(".0"),
        numbers,
    )
    numbers = re.sub(r"\s+", " ", numbers)
    return re.sub(r"\s*([A-Za-z])\s*(?=[\d.-])", r"\1", numbers).strip()


def in_page(colour: str) -> str:
    """Return a colour that the page's style sheet may replace, e.g. on a dark background."""
    return f"var(--c{colour[1:]},{colour})"
