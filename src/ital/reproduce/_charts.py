"""Charts as data: panels of marks, stored as text with the report and drawn as a whole or panel by panel.

A panel is a dict with its marks, axes and size; a mark is a dict with a ``kind``. Curves are thinned and rounded when
they are made, and those that share their steps name them once, so that a whole report is a small file.
"""

import functools
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.reproduce._numbers import number, rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Mark = dict[str, Any]
Panel = dict[str, Any]
Number = float | int
Numbers = Sequence[Any] | np.ndarray

POINTS = 25  # of a curve: as many as a small panel can show
INK, SOFT, GRID, FAINT = "#000000", "#595959", "#b0b0b0", "#dddddd"
FRAME = "#d55e00"
SIZE = (3.5, 2.6)  # inches of a panel
MARGINS = (0.56, 0.43)  # inches left of and below the axes, for numbers and a title
STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "svg.fonttype": "none",  # text stays text: it takes the page's font and colour
}


def line(
    label: str,
    colour: str,
    x: Numbers,
    y: Numbers,
    error: Numbers | None = None,
    *,
    dash: Numbers = (),
    width: float = 1.5,
    dot: bool = False,
) -> Mark:
    """A curve, with a band of ± ``error``; ``dot`` makes it a single point that stands out."""
    kept = thin(len(x))
    made: Mark = {"kind": "line", "label": label, "colour": colour, "width": width}
    made |= ({"dash": list(dash)} if dash else {}) | ({"dot": True} if dot else {})
    made |= {"x": rounded(np.asarray(x, float)[kept], 5), "y": rounded(np.asarray(y, float)[kept])}
    return made if error is None else made | {"error": rounded(np.asarray(error, float)[kept], 2)}


def bars(
    label: str,
    colour: str,
    x: Numbers,
    y: Numbers,
    error: Numbers,
    *,
    width: float,
    marks: Sequence[str] = (),
) -> Mark:
    """Bars with ± ``error``, each with a text above it (stars)."""
    made: Mark = {"kind": "bars", "label": label, "colour": colour, "width": width, "marks": list(marks)}
    return made | {"x": rounded(x, 5), "y": rounded(y), "error": rounded(error, 2)}


def points(
    label: str,
    colour: str,
    x: Numbers,
    y: Numbers,
    error: Numbers | None = None,
    *,
    marker: str = "o",
    size: float = 5.0,
    pale: bool = False,
) -> Mark:
    """Points, with ± ``error`` along x."""
    made: Mark = {"kind": "points", "label": label, "colour": colour, "marker": marker, "size": size, "pale": pale}
    made |= {"x": rounded(x), "y": rounded(y)}
    return made if error is None else made | {"error": rounded(error, 2)}


def rule(axis: str, at: float, words: str = "", *, soft: bool = False) -> Mark:
    """A line across the panel at a value of ``axis`` ("x" or "y"), with words at its end."""
    return {"kind": "rule", "axis": axis, "at": rounded([at])[0], "words": words, "soft": soft}


def cells(
    values: np.ndarray, texts: Sequence[Sequence[str]], framed: Iterable[tuple[int, int]], dots: np.ndarray | None
) -> Mark:
    """A heat map (row, column) on a log scale, with its numbers; some cells framed, some with a dot."""
    return {
        "kind": "cells",
        "values": [rounded(row, 3) for row in values],
        "texts": [list(row) for row in texts],
        "framed": [[int(i) for i in one] for one in framed],
        "dots": [] if dots is None else [[int(i) for i in one] for one in np.argwhere(dots)],
    }


def rewards(values: np.ndarray, policy: np.ndarray, limit: float) -> Mark:
    """A grid of rewards as colours and numbers, with an arrow per cell."""
    return {
        "kind": "rewards",
        "values": [rounded(row, 2) for row in values],
        "policy": [[rounded(row, 2) for row in one] for one in policy],
        "limit": limit,
    }


def panel(
    title: str,
    marks: Iterable[Mark],
    *,
    x: str = "",
    y: str = "",
    log: str = "",
    zero: bool = False,
    x_range: tuple[Number, Number] | None = None,
    y_range: tuple[Number, Number] | None = None,
    x_ticks: tuple[Numbers, Sequence[str]] | None = None,
    y_ticks: tuple[Numbers, Sequence[str]] | None = None,
    size: tuple[float, float] = SIZE,
) -> Panel:
    """A panel. ``log`` names its logarithmic axes; ``zero`` lets y begin there; ticks are places and their names."""
    marks = list(marks)
    shared = next((mark["x"] for mark in marks if mark["kind"] == "line"), None)
    marks = [{name: own for name, own in mark.items() if name != "x" or own != shared} for mark in marks]
    made: Panel = {
        "title": title,
        "marks": marks,
        "steps": shared,
        "x": x,
        "y": y,
        "log": log,
        "zero": zero,
        "size": list(size),
    }
    given = {"x_range": x_range, "y_range": y_range, "x_ticks": x_ticks, "y_ticks": y_ticks}
    return made | {
        name: [list(one) if isinstance(one, Iterable) else one for one in value]
        for name, value in given.items()
        if value is not None
    }


def blank(size: tuple[float, float] = SIZE) -> Panel:
    """A place left free, so that the next panel begins a row."""
    return panel("", [], size=size)


def thin(length: int, most: int = POINTS) -> np.ndarray:
    """Places of at most so many points, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(int))


def legend(panels: Iterable[Panel]) -> list[Mark]:
    """One mark for every label."""
    found: dict[str, Mark] = {}
    for one in panels:
        for mark in one["marks"]:
            if mark.get("label"):
                found.setdefault(mark["label"], mark)
    return list(found.values())


# ---- drawing ----


def whole(figure: dict[str, Any]) -> "Figure":
    """A figure block as one matplotlib figure with title, note and legend: for files that travel alone."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels, columns = figure["panels"], min(figure["columns"], len(figure["panels"]))
    rows = -(-len(panels) // columns)
    width, height = (max(one["size"][i] for one in panels) for i in (0, 1))
    with mpl.rc_context(STYLE):
        made = Figure(figsize=(columns * width, rows * (height + 0.2) + 1.0), layout="constrained")
        axes = made.subplots(rows, columns, squeeze=False)
        for axis, one in zip(axes.flat, panels, strict=False):
            if not one["marks"]:
                axis.set_axis_off()
                continue
            draw(axis, one)
            axis.set_title(one["title"], fontsize=10)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        handles = {
            text: handle for axis in axes.flat for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        if handles:
            ncols = max(2, int(1.1 * columns * width))
            made.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=ncols, frameon=False)
        made.suptitle("\n".join(part for part in (figure["title"], figure["note"]) if part), fontsize=11)
    return made


def svg(one: Panel, salt: str) -> str:
    """A panel as the text of an SVG element, without its title. ``salt`` keeps names in it apart from other panels'."""
    return _svg(json.dumps(one), salt)


@functools.lru_cache(maxsize=1024)  # a report that fills up draws only what is new
def _svg(panel: str, salt: str) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    one: Panel = json.loads(panel)
    with mpl.rc_context({**STYLE, "svg.hashsalt": salt}):
        usual = "y_ticks" not in one and one["marks"][0]["kind"] != "rewards"  # room for names has to be measured
        made = Figure(figsize=one["size"], layout=None if usual else "constrained")
        made.patch.set_alpha(0)
        axis = made.subplots()
        if usual:
            width, height = one["size"]
            made.subplots_adjust(MARGINS[0] / width, MARGINS[1] / height, 1 - 0.12 / width, 1 - 0.08 / height)
        axis.patch.set_alpha(0)
        draw(axis, one)
        buffer = io.StringIO()
        made.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return compact(buffer.getvalue())


def compact(text: str) -> str:
    """Only what is seen: one decimal, no metadata, no names that nothing refers to, colours that a page can change."""
    text = text[text.index("<svg") :]
    for nothing in (
        r"<metadata>.*?</metadata>",
        r"<style[^>]*>.*?</style>",
        r"<!--.*?-->",
        r'<path d="[^"]*" style="fill: none; opacity: 0"/>',
        r'(?<=<svg)( (?:width|height|version|xmlns|xmlns:xlink)="[^"]*")+',
        r" font-family: [^;\"]*;",  # the page's own font
        r' transform="rotate\(-?0[ .\d]*\)"',
    ):
        text = re.sub(nothing, "", text, flags=re.S)
    text = re.sub(r' (d|x|y|points|transform)="([^"]*)"', lambda found: f' {found[1]}="{_shorter(found[2])}"', text)
    used = set(re.findall(r"#([\w-]+)[\")]", text))
    text = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(r"(stroke|fill): (#[0-9a-f]{6})", lambda found: f"{found[1]}:{in_page(found[2])}", text)
    text = re.sub(r">\s+<", "><", re.sub(r"[ \t]*\n[ \t]*", " ", text)).replace("; ", ";")
    while (less := re.sub(r"<g></g>|<defs></defs>", "", text)) != text:
        text = less
    return text.strip()


def _shorter(numbers: str) -> str:
    """Coordinates to a tenth of a point."""
    numbers = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), numbers)
    return re.sub(r"\s*([A-Za-z])\s*(?=[\d.-])", r"\1", re.sub(r"\s+", " ", numbers)).strip()


def in_page(colour: str) -> str:
    """A colour that the page's style may replace, where it knows a better one for dark paper."""
    return f"var(--c{colour[1:]},{colour})"


def draw(axis: Any, one: Panel) -> None:
    """A panel on matplotlib axes."""
    for name in one["log"]:
        getattr(axis, f"set_{name}scale")("log")
    for mark in one["marks"]:
        DRAWINGS[mark["kind"]](axis, {"x": one.get("steps"), **mark})
    axis.set_xlabel(one["x"])
    axis.set_ylabel(one["y"])
    if one["marks"] and one["marks"][0]["kind"] not in ("cells", "rewards"):
        axis.grid(alpha=0.25, lw=0.6, color=GRID)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        for name in "xy":
            if name not in one["log"]:
                axis.locator_params(axis=name, nbins=5)
    if one["zero"]:
        axis.set_ylim(bottom=0)
    for name in ("x", "y"):
        if f"{name}_ticks" in one:
            getattr(axis, f"set_{name}ticks")(*one[f"{name}_ticks"])
            getattr(axis, f"{name}axis").minorticks_off()
        if f"{name}_range" in one:
            getattr(axis, f"set_{name}lim")(*one[f"{name}_range"])


def values(mark: Mark, name: str) -> np.ndarray:
    """The numbers of a mark; None is NaN again."""
    return np.array(mark[name], float)


def _line(axis: Any, mark: Mark) -> None:
    x, y = values(mark, "x"), values(mark, "y")
    dash: Any = (0, tuple(mark["dash"])) if mark.get("dash") else "-"
    front = 3 if mark["width"] > 2 else 2
    axis.plot(
        x, y, color=mark["colour"], lw=mark["width"], ls=dash, label=mark["label"], zorder=front,
        marker="o" if mark.get("dot") else None, ms=6.5,
    )  # fmt: skip
    if "error" in mark:
        error = values(mark, "error")
        axis.fill_between(x, y - error, y + error, color=mark["colour"], alpha=0.18, lw=0, zorder=front - 1)


def _bars(axis: Any, mark: Mark) -> None:
    x, y, error = (values(mark, name) for name in ("x", "y", "error"))
    error = np.nan_to_num(error)
    axis.bar(
        x, y, mark["width"], yerr=error, color=mark["colour"], label=mark["label"],
        error_kw={"elinewidth": 0.8, "ecolor": SOFT},
    )  # fmt: skip
    axis.axhline(0, color=SOFT, lw=0.7)
    axis.margins(y=0.15)
    for where, high, words in zip(x, np.maximum(y, 0) + error, mark["marks"], strict=False):
        axis.annotate(words, (where, high), xytext=(0, 1), textcoords="offset points", ha="center", fontsize=8)


def _points(axis: Any, mark: Mark) -> None:
    axis.errorbar(
        values(mark, "x"), values(mark, "y"), xerr=values(mark, "error") if "error" in mark else None,
        fmt=mark["marker"], color=mark["colour"], ms=mark["size"], lw=1, label=mark["label"] or None,
        alpha=0.6 if mark["pale"] else 1,
    )  # fmt: skip


def _rule(axis: Any, mark: Mark) -> None:
    colour = FAINT if mark["soft"] else SOFT
    across = axis.axvline if mark["axis"] == "x" else axis.axhline
    across(mark["at"], color=colour, ls="-" if mark["soft"] else "--", lw=0.9, zorder=1)
    place: dict[str, Any] = (
        {"xy": (mark["at"], 0.02), "xycoords": ("data", "axes fraction"), "xytext": (2, 0), "rotation": 90}
        if mark["axis"] == "x"
        else {"xy": (1, mark["at"]), "xycoords": ("axes fraction", "data"), "xytext": (-3, 3), "ha": "right"}
    )
    axis.annotate(mark["words"], textcoords="offset points", fontsize=7.5, color=SOFT, va="bottom", **place)


def _cells(axis: Any, mark: Mark) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    shown = np.array(mark["values"], float)
    known = shown[np.isfinite(shown) & (shown > 0)]
    norm = LogNorm(known.min(), max(known.max(), 1.001 * known.min())) if known.size else LogNorm(0.1, 1)
    edges = [np.arange(size + 1) - 0.5 for size in shown.shape]
    axis.pcolormesh(edges[1], edges[0], np.ma.masked_invalid(shown), cmap="viridis", norm=norm, lw=0)
    for (row, column), value in np.ndenumerate(shown):
        there = np.isfinite(value)
        dark = there and norm(max(value, norm.vmin)) < 0.55
        axis.text(
            column, row, mark["texts"][row][column], ha="center", va="center", fontsize=6.5,
            color="#fffffe" if dark else "#1d2430" if there else SOFT,
        )  # fmt: skip
    for row, column in mark["framed"]:
        axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=FRAME, lw=1.8, clip_on=False))
    for row, column in mark["dots"]:
        axis.plot([column + 0.36], [row + 0.3], ".", color=FRAME, ms=4)
    axis.tick_params(axis="x", rotation=45, labelsize=7.5)
    axis.tick_params(axis="y", labelsize=7.5)


def _rewards(axis: Any, mark: Mark) -> None:
    from ital.figures import draw_rewards

    axis.figure.draw_without_rendering()  # the size of its text depends on that of the panel
    draw_rewards(axis, np.array(mark["values"], float), np.array(mark["policy"], float), mark["limit"])


DRAWINGS: dict[str, Callable[[Any, Mark], None]] = {
    "line": _line,
    "bars": _bars,
    "points": _points,
    "rule": _rule,
    "cells": _cells,
    "rewards": _rewards,
}


def glyph(marker: str) -> str:
    """A marker of matplotlib as a letter, for a legend in words."""
    return {"s": "■", "D": "◆", "o": "●", "d": "♦", "v": "▼"}.get(marker, "●")


def described(one: Panel) -> str:
    """A panel in words, for readers who do not see it: the last value of every curve."""
    ends = [
        f"{mark['label']} {number(mark['y'][-1])}"
        for mark in one["marks"]
        if mark["kind"] == "line" and mark["label"] and not mark.get("dot") and mark["y"] and mark["y"][-1] is not None
    ]
    about = ", ".join(part for part in (one["title"], one["y"]) if part)
    return f"{about}. At the end: {', '.join(ends)}." if ends else about
