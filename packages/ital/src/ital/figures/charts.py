"""Charts as data: panels of marks, drawn by matplotlib as figures or as images for a page.

A panel is a dict with its marks, axes and size; a mark is a dict with a ``kind``. ``stored`` reduces a panel to small
plain data, so that a report can be stored as text and redrawn.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.figures._fit import INCH, LINE, cell_size, letter_size, name_cells, wrapped
from ital.figures._reward_map import draw_rewards
from ital.statistics import rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Mark = dict[str, Any]
Panel = dict[str, Any]
Number = float | int
Numbers = Sequence[Any] | np.ndarray

POINTS = 25  # of a stored curve: enough for a small panel
DIGITS = {"x": 5, "y": 4, "error": 2}  # of stored numbers
INK, SOFT, GRID, FAINT = "#000000", "#595959", "#b0b0b0", "#dddddd"
FRAME = "#d55e00"
SMALLEST = 4.0  # smallest font size of numbers in a map; smaller ones are hidden
SIZE = (3.5, 2.6)  # inches of a panel
STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.title_fontsize": 7,
    "svg.fonttype": "none",  # text stays text, so that it takes the page's font and colour
}


# ---- describing ----


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
    """A curve with a band of ± ``error``; ``dot`` makes it a single highlighted point."""
    optional = ({"dash": list(dash)} if len(dash) else {}) | ({"dot": True} if dot else {})
    mark = {
        "kind": "line",
        "label": label,
        "colour": colour,
        "width": width,
        **optional,
        "x": x,
        "y": y,
    }
    return mark if error is None else mark | {"error": error}


def bars(
    label: str,
    colour: str,
    x: Numbers,
    y: Numbers,
    error: Numbers,
    *,
    width: float,
    marks: Sequence[str] = (),
    hatch: str = "",
) -> Mark:
    """Bars with ± ``error``, each with a text above (significance stars)."""
    mark = {"kind": "bars", "label": label, "colour": colour, "width": width, "marks": list(marks)}
    return mark | ({"hatch": hatch} if hatch else {}) | {"x": x, "y": y, "error": error}


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
    mark = {
        "kind": "points",
        "label": label,
        "colour": colour,
        "marker": marker,
        "size": size,
        "pale": pale,
    }
    return mark | {"x": x, "y": y} | ({} if error is None else {"error": error})


def rule(axis: str, at: float, words: str = "", *, soft: bool = False) -> Mark:
    """A line across the panel at a value of ``axis`` ("x" or "y"), with words at its end."""
    return {"kind": "rule", "axis": axis, "at": at, "words": words, "soft": soft}


def cells(
    values: np.ndarray,
    texts: Sequence[Sequence[str]],
    framed: Iterable[tuple[int, int]],
    dots: np.ndarray | None,
    limits: tuple[float, float],
    linear: bool = False,
) -> Mark:
    """A heat map (row, column) with numbers; some cells are framed, some have a dot.

    ``limits`` are the values of the first and the last colour: maps to be compared share them. The scale is logarithmic
    unless ``linear``.
    """
    return {
        "kind": "cells",
        "values": [rounded(row, 3) for row in values],
        "texts": [list(row) for row in texts],
        "framed": [[int(i) for i in place] for place in framed],
        "dots": [] if dots is None else np.argwhere(dots).tolist(),
        "limits": rounded(limits),
        **({"linear": True} if linear else {}),
    }


def rewards(values: np.ndarray, policy: np.ndarray | None, limit: float) -> Mark:
    """A grid of rewards as colours and numbers, with one arrow per cell if there is a policy."""
    directions = (
        policy
        if policy is None
        else [[rounded(row, 2) for row in direction] for direction in policy]
    )
    return {
        "kind": "rewards",
        "values": [rounded(row, 2) for row in values],
        "policy": directions,
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
    """A panel. ``log`` names its logarithmic axes; ``zero`` starts y at 0; ticks are positions and labels."""
    described = {
        "title": title,
        "marks": list(marks),
        "steps": None,
        "x": x,
        "y": y,
        "log": log,
        "zero": zero,
    }
    ranges = {"x_range": x_range and list(x_range), "y_range": y_range and list(y_range)}
    ticks = {
        "x_ticks": x_ticks and [list(part) for part in x_ticks],
        "y_ticks": y_ticks and [*map(list, y_ticks)],
    }
    return (
        described
        | {"size": list(size)}
        | {name: own for name, own in (ranges | ticks).items() if own is not None}
    )


def blank(size: tuple[float, float] = SIZE) -> Panel:
    """An empty panel, so that the next one starts a row."""
    return panel("", [], size=size)


def stored(full: Panel) -> Panel:
    """A panel as plain data: curves thinned, numbers rounded, and steps shared by several curves stored once."""
    marks = [_stored(mark) for mark in full["marks"]]
    shared = next((mark["x"] for mark in marks if mark["kind"] == "line"), None)
    marks = [
        {name: own for name, own in mark.items() if name != "x" or own != shared} for mark in marks
    ]
    return full | {"marks": marks, "steps": shared}


def _stored(mark: Mark) -> Mark:
    if mark["kind"] == "rule":
        return mark | {"at": rounded([mark["at"]])[0]}
    kept = thin(len(mark["x"])) if mark["kind"] == "line" else slice(None)
    return mark | {
        n: rounded(numbers_of(mark, n)[kept], digits) for n, digits in DIGITS.items() if n in mark
    }


def thin(length: int, most: int = POINTS) -> np.ndarray:
    """Indices of at most ``most`` points, evenly spaced, including the first and the last."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(int))


def legend(panels: Iterable[Panel]) -> list[Mark]:
    """One mark for every label."""
    marks: dict[str, Mark] = {}
    for mark in (mark for shown in panels for mark in shown["marks"] if mark.get("label")):
        marks.setdefault(mark["label"], mark)
    return list(marks.values())


def reference_lines(panels: Iterable[Panel]) -> list[Mark]:
    """One rule for every text at the end of a rule."""
    rules: dict[str, Mark] = {}
    for mark in (
        mark
        for shown in panels
        for mark in shown["marks"]
        if mark["kind"] == "rule" and mark["words"]
    ):
        rules.setdefault(mark["words"], mark)
    return list(rules.values())


# ---- drawing ----


def chart(
    panels: Sequence[Panel],
    title: str,
    *,
    columns: int = 3,
    note: str = "",
    foot: str = "",
    onto: Any = None,
    figsize: tuple[float, float] | None = None,
) -> "Figure":
    """Draw panels as one matplotlib figure with title and legend, for stand-alone files.

    Args:
        panels: the panels, row by row; one without marks leaves an empty place.
        title: the title above all panels.
        columns: largest number of panels in a row.
        note: a line below the title.
        foot: a note in small print below the panels.
        onto: a part of another figure to draw on, instead of a new figure.
        figsize: width and height in inches (default: the size of the panels).

    Returns:
        The figure, or the part that was drawn on.

    """
    import matplotlib as mpl

    from ital.figures._display import NotebookFigure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    width, height = figsize or chart_size(panels, columns)
    head = wrapped("\n".join(part for part in (title, note) if part), width, 11)
    foot = wrapped(foot, width, 7)
    labels = [mark["label"] for mark in legend(panels)]
    ncols = max(
        1, int(width / (0.55 + 0.06 * max(map(len, labels), default=0)))
    )  # inches per key and per letter
    below = 9 * max(
        0, -(-len(labels) // ncols) - 2
    )  # a panel of the default size has room for two legend rows
    height += 0 if figsize else LINE * (11 * head.count("\n") + 7 * foot.count("\n") + below) / INCH
    with mpl.rc_context(STYLE):
        figure = (
            NotebookFigure(figsize=(width, height), layout="constrained") if onto is None else onto
        )
        widths = [
            max(shown["size"][0] for shown in panels[column::columns]) for column in range(columns)
        ]
        axes = figure.subplots(rows, columns, squeeze=False, width_ratios=widths)
        placed = list(
            zip(axes.flat, [*panels, *[blank()] * (rows * columns - len(panels))], strict=True)
        )
        for axis, shown in placed:
            axis.set_title(wrapped(shown["title"], 0.75 * shown["size"][0], 10), fontsize=10)
        if any(needs_room(shown) for shown in panels):
            figure.figure.draw_without_rendering()
        for axis, shown in placed:
            draw(axis, shown)
        labelled = [axis.get_legend_handles_labels() for axis in axes.flat]
        handles = {text: handle for both in labelled for handle, text in zip(*both, strict=True)}
        if handles:
            figure.legend(
                handles.values(),
                handles.keys(),
                loc="outside lower center",
                ncols=ncols,
                title=foot,
            )
        else:
            figure.supxlabel(foot, fontsize=7, color=SOFT)
        figure.suptitle(head, fontsize=11)
    return figure


def chart_size(panels: Sequence[Panel], columns: int = 3) -> tuple[float, float]:
    """Width and height of a chart in inches."""
    columns = min(columns, len(panels))
    width = sum(
        max(shown["size"][0] for shown in panels[column::columns]) for column in range(columns)
    )
    height = max(shown["size"][1] for shown in panels)
    return width, -(-len(panels) // columns) * (height + 0.2) + 1.0


def needs_room(shown: Panel) -> bool:
    """Whether a panel's text size depends on the size of its axes, so that the figure must be laid out first."""
    return any(mark["kind"] == "rewards" for mark in shown["marks"])


def draw(axis: Any, shown: Panel) -> None:
    """Draw a panel on matplotlib axes; one without marks leaves them empty."""
    if not shown["marks"]:
        axis.set_axis_off()
        return
    for name in shown["log"]:
        getattr(axis, f"set_{name}scale")("log")
    for mark in shown["marks"]:
        DRAWINGS[mark["kind"]](axis, {"x": shown["steps"], **mark})
    (wide, high), is_map = shown["size"], shown["marks"][0]["kind"] == "cells"
    axis.set(xlabel=wrapped(shown["x"], wide, 9), ylabel=wrapped(shown["y"], 0.9 * high, 9))
    if shown["marks"][0]["kind"] not in ("cells", "rewards"):
        axis.grid(alpha=0.25, lw=0.6, color=GRID)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        for name in "xy":
            if name not in shown["log"]:
                axis.locator_params(axis=name, nbins=5)
    if shown["zero"]:
        axis.set_ylim(bottom=0)
    for name in ("x", "y"):
        if f"{name}_ticks" in shown:
            places, names = shown[f"{name}_ticks"]
            if name == "x" and not is_map:
                names = [wrapped(words, 0.8 * wide / len(places), 8.5) for words in names]
            getattr(axis, f"set_{name}ticks")(places, names)
            getattr(axis, f"{name}axis").minorticks_off()
        if f"{name}_range" in shown:
            getattr(axis, f"set_{name}lim")(*shown[f"{name}_range"])
    if is_map:
        name_cells(axis, *np.shape(shown["marks"][0]["texts"]))


def numbers_of(mark: Mark, name: str) -> np.ndarray:
    """The numbers of a mark as an array, with None as NaN."""
    return np.array(mark[name], float)


def _line(axis: Any, mark: Mark) -> None:
    x, y = numbers_of(mark, "x"), numbers_of(mark, "y")
    dash: Any = (0, tuple(mark["dash"])) if mark.get("dash") else "-"
    front = 3 if mark["width"] > 2 else 2
    axis.plot(
        x, y, color=mark["colour"], lw=mark["width"], ls=dash, label=mark["label"], zorder=front,
        marker="o" if mark.get("dot") else None, ms=6.5,
    )  # fmt: skip
    if "error" in mark:
        error = numbers_of(mark, "error")
        axis.fill_between(
            x, y - error, y + error, color=mark["colour"], alpha=0.18, lw=0, zorder=front - 1
        )


def _bars(axis: Any, mark: Mark) -> None:
    x, y, error = (numbers_of(mark, name) for name in DIGITS)
    error = np.nan_to_num(error)
    axis.bar(
        x, y, mark["width"], yerr=error, color=mark["colour"], label=mark["label"], hatch=mark.get("hatch"),
        edgecolor="#ffffff", linewidth=0.4, error_kw={"elinewidth": 0.8, "ecolor": SOFT},
    )  # fmt: skip
    axis.axhline(0, color=SOFT, lw=0.7)
    axis.margins(y=0.15)
    for place, high, words in zip(x, np.maximum(y, 0) + error, mark["marks"], strict=False):
        if words:
            axis.annotate(
                words,
                (place, high),
                xytext=(0, 1),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )


def _points(axis: Any, mark: Mark) -> None:
    axis.errorbar(
        numbers_of(mark, "x"), numbers_of(mark, "y"), xerr=numbers_of(mark, "error") if "error" in mark else None,
        fmt=mark["marker"], color=mark["colour"], ms=mark["size"], lw=1, label=mark["label"] or None,
        alpha=0.6 if mark["pale"] else 1,
    )  # fmt: skip


def _rule(axis: Any, mark: Mark) -> None:
    colour = FAINT if mark["soft"] else SOFT
    across = axis.axvline if mark["axis"] == "x" else axis.axhline
    across(mark["at"], color=colour, ls="-" if mark["soft"] else "--", lw=0.9, zorder=1)
    place: dict[str, Any] = (
        {
            "xy": (mark["at"], 0.02),
            "xycoords": ("data", "axes fraction"),
            "xytext": (2, 0),
            "rotation": 90,
        }
        if mark["axis"] == "x"
        else {
            "xy": (1, mark["at"]),
            "xycoords": ("axes fraction", "data"),
            "xytext": (-3, 3),
            "ha": "right",
        }
    )
    axis.annotate(
        mark["words"], textcoords="offset points", fontsize=7.5, color=SOFT, va="bottom", **place
    )


def _cells(axis: Any, mark: Mark) -> None:
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle

    values = np.array(mark["values"], float)
    low, high = mark.get("limits") or colour_limits(values)
    norm = Normalize(low, high) if mark.get("linear") else LogNorm(low, high)
    edges = [np.arange(size + 1) - 0.5 for size in values.shape]
    axis.pcolormesh(
        edges[1], edges[0], np.ma.masked_invalid(values), cmap="viridis", norm=norm, lw=0
    )
    size = letter_size(
        [text for row in mark["texts"] for text in row],
        *cell_size(axis, *values.shape),
        largest=6.5,
    )
    for (row, column), value in np.ndenumerate(values) if size >= SMALLEST else ():
        dark = np.isfinite(value) and norm(max(value, norm.vmin)) < 0.55
        axis.text(
            column, row, mark["texts"][row][column], ha="center", va="center", fontsize=size,
            color="#fffffe" if dark else "#1d2430" if np.isfinite(value) else SOFT,
        )  # fmt: skip
    for row, column in mark["framed"]:
        axis.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=FRAME, lw=1.8, clip_on=False)
        )
    for row, column in mark["dots"]:
        axis.plot([column + 0.36], [row + 0.3], ".", color=FRAME, ms=4)


def colour_limits(values: np.ndarray) -> tuple[float, float]:
    """Values of the first and the last colour of a map on a log scale."""
    positive = values[np.isfinite(values) & (values > 0)]
    return (
        (float(positive.min()), max(positive.max(), 1.001 * positive.min()))
        if positive.size
        else (0.1, 1.0)
    )


def _rewards(axis: Any, mark: Mark) -> None:
    policy = mark["policy"] if mark["policy"] is None else np.array(mark["policy"], float)
    draw_rewards(axis, np.array(mark["values"], float), policy, mark["limit"])


DRAWINGS: dict[str, Callable[[Any, Mark], None]] = {
    "line": _line,
    "bars": _bars,
    "points": _points,
    "rule": _rule,
    "cells": _cells,
    "rewards": _rewards,
}
