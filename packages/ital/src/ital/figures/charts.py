"""Charts as data: panels of marks, drawn by matplotlib as figures or as images for a page.

A panel is a dict with its marks, axes and size; a mark is a dict with a ``kind``. ``stored``
reduces a panel to small plain data, so that a report can be stored as text and redrawn. Names and
order of their keys are a file format: stored reports, and the hashes of their pictures, depend on
them.
"""

import itertools
import math
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
INK = "#000000"
SOFT = "#595959"
GRID = "#b0b0b0"
FAINT = "#dddddd"
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
    """Make a curve with a band of ± ``error``; ``dot`` makes it a single highlighted point."""
    mark: Mark = {"kind": "line", "label": label, "colour": colour, "width": width}
    if len(dash):
        mark["dash"] = list(dash)
    if dot:
        mark["dot"] = True
    mark |= {"x": x, "y": y}
    if error is not None:
        mark["error"] = error
    return mark


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
    """Make bars with ± ``error``, each with a text above (significance stars)."""
    mark: Mark = {"kind": "bars", "label": label, "colour": colour, "width": width}
    mark["marks"] = list(marks)
    if hatch:
        mark["hatch"] = hatch
    return mark | {"x": x, "y": y, "error": error}


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
    """Make points, with ± ``error`` along x."""
    mark: Mark = {"kind": "points", "label": label, "colour": colour}
    mark |= {"marker": marker, "size": size, "pale": pale, "x": x, "y": y}
    if error is not None:
        mark["error"] = error
    return mark


def rule(axis: str, at: float, words: str = "", *, soft: bool = False) -> Mark:
    """Make a line across the panel at a value of ``axis``, "x" or "y", with words at its end."""
    return {"kind": "rule", "axis": axis, "at": at, "words": words, "soft": soft}


def cells(
    values: np.ndarray,
    texts: Sequence[Sequence[str]],
    framed: Iterable[tuple[int, int]],
    dots: np.ndarray | None,
    limits: tuple[float, float],
    linear: bool = False,
) -> Mark:
    """Make a heat map with numbers.

    Args:
        values: the values (row, column).
        texts: what the cells say.
        framed: cells with a frame, (row, column).
        dots: where a cell has a dot (row, column); None for no dots.
        limits: the values of the first and the last colour: maps to be compared share them.
        linear: whether the scale of the colours is linear, not logarithmic.
    """
    mark: Mark = {
        "kind": "cells",
        "values": [rounded(row, 3) for row in values],
        "texts": [list(row) for row in texts],
        "framed": [[int(row), int(column)] for row, column in framed],
        "dots": [] if dots is None else np.argwhere(dots).tolist(),
        "limits": rounded(limits),
    }
    if linear:
        mark["linear"] = True
    return mark


def rewards(values: np.ndarray, policy: np.ndarray | None, limit: float) -> Mark:
    """Make a grid of rewards as colours and numbers, with one arrow per cell if there is a policy.

    Args:
        values: the rewards (row, column).
        policy: probability of going up, down, left and right (4, row, column); None for no arrows.
        limit: the reward with the strongest colour.
    """
    directions = None
    if policy is not None:
        directions = []
        for direction in policy:
            directions.append([rounded(row, 2) for row in direction])
    return {
        "kind": "rewards",
        "values": [rounded(row, 2) for row in values],
        "policy": directions,
        "limit": limit,
    }


def panel(  # noqa: PLR0913
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
    """Make a panel.

    Args:
        title: its title.
        marks: what it shows.
        x: name of the x axis.
        y: name of the y axis.
        log: its logarithmic axes: "", "x", "y" or "xy".
        zero: whether y starts at 0.
        x_range: the first and the last x.
        y_range: the first and the last y.
        x_ticks: positions and labels.
        y_ticks: positions and labels.
        size: width and height in inches.
    """
    described: Panel = {
        "title": title,
        "marks": list(marks),
        "steps": None,
        "x": x,
        "y": y,
        "log": log,
        "zero": zero,
        "size": list(size),
    }
    for name, limits in (("x_range", x_range), ("y_range", y_range)):
        if limits is not None:
            described[name] = list(limits)
    for name, ticks in (("x_ticks", x_ticks), ("y_ticks", y_ticks)):
        if ticks is not None:
            positions, labels = ticks
            described[name] = [list(positions), list(labels)]
    return described


def confusion(
    title: str,
    counts: np.ndarray,
    models: Sequence[str],
    *,
    kinds: Sequence[str] | None = None,
    size: tuple[float, float] = SIZE,
) -> Panel:
    """Make a panel of how many simulated people of each kind each model is best for.

    Args:
        title: its title.
        counts: number of people (kind, model).
        models: names of the models, in the order of the kinds.
        kinds: names of the kinds; None for those of the models.
        size: width and height in inches.
    """
    # A map is drawn from the bottom up: the first kind is at the top.
    from_below = np.asarray(counts)[::-1]
    people = from_below.sum(axis=1)[0]
    texts = np.where(from_below > 0, from_below.astype(str), "").tolist()
    share = np.where(from_below > 0, from_below / people, np.nan)
    last = len(models) - 1
    true_models = [(column, last - column) for column in range(len(models))]
    names = models if kinds is None else kinds
    return panel(
        title,
        [cells(share, texts, true_models, None, (0.01, 1.0))],
        x="Model with the lowest BIC",
        y="Simulated kind",
        x_ticks=(range(len(models)), models),
        y_ticks=(range(len(names)), names[::-1]),
        size=size,
    )


def blank(size: tuple[float, float] = SIZE) -> Panel:
    """Make an empty panel, so that the next one starts a row."""
    return panel("", [], size=size)


def stored(full: Panel) -> Panel:
    """Return a panel as plain data: curves thinned, numbers rounded, shared steps stored once."""
    marks = [_stored_mark(mark) for mark in full["marks"]]
    shared = next((mark["x"] for mark in marks if mark["kind"] == "line"), None)
    for mark in marks:
        if "x" in mark and mark["x"] == shared:
            del mark["x"]
    return full | {"marks": marks, "steps": shared}


def _stored_mark(mark: Mark) -> Mark:
    if mark["kind"] == "rule":
        (at,) = rounded([mark["at"]])
        return mark | {"at": at}
    kept: Any = thin(len(mark["x"])) if mark["kind"] == "line" else slice(None)
    numbers = {
        name: rounded(numbers_of(mark, name)[kept], digits)
        for name, digits in DIGITS.items()
        if name in mark
    }
    return mark | numbers


def thin(length: int, most: int = POINTS) -> np.ndarray:
    """Return indices of at most ``most`` points, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(int))


def legend(panels: Iterable[Panel]) -> list[Mark]:
    """Return one mark for every label."""
    marks: dict[str, Mark] = {}
    for mark in _marks_of(panels):
        if mark.get("label"):
            marks.setdefault(mark["label"], mark)
    return list(marks.values())


def reference_lines(panels: Iterable[Panel]) -> list[Mark]:
    """Return one rule for every text at the end of a rule."""
    rules: dict[str, Mark] = {}
    for mark in _marks_of(panels):
        if mark["kind"] == "rule" and mark["words"]:
            rules.setdefault(mark["words"], mark)
    return list(rules.values())


def _marks_of(panels: Iterable[Panel]) -> Iterable[Mark]:
    return itertools.chain.from_iterable(panel["marks"] for panel in panels)


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
    rows = math.ceil(len(panels) / columns)
    width, height = figsize or chart_size(panels, columns)
    head = wrapped("\n".join(part for part in (title, note) if part), width, 11)
    foot = wrapped(foot, width, 7)
    labels = [mark["label"] for mark in legend(panels)]
    # Inches of a key and of a letter.
    key_width = 0.55 + 0.06 * max(map(len, labels), default=0)
    keys_per_row = max(1, int(width / key_width))
    if figsize is None:
        # A panel of the default size has room for two rows of a legend.
        more_rows = max(0, math.ceil(len(labels) / keys_per_row) - 2)
        lines = 11 * head.count("\n") + 7 * foot.count("\n") + 9 * more_rows
        height += LINE * lines / INCH
    with mpl.rc_context(STYLE):
        figure = onto
        if figure is None:
            figure = NotebookFigure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(
            rows,
            columns,
            squeeze=False,
            width_ratios=column_widths(panels, columns),
        )
        _draw_panels(figure, axes, panels)
        labelled: dict[str, Any] = {}
        for axis in axes.flat:
            handles, texts = axis.get_legend_handles_labels()
            labelled |= dict(zip(texts, handles, strict=True))
        if labelled:
            figure.legend(
                labelled.values(),
                labelled.keys(),
                loc="outside lower center",
                ncols=keys_per_row,
                title=foot,
            )
        else:
            figure.supxlabel(foot, fontsize=7, color=SOFT)
        figure.suptitle(head, fontsize=11)
    return figure


def _draw_panels(figure: Any, axes: np.ndarray, panels: Sequence[Panel]) -> None:
    """Draw panels on axes (row, column); those that are left over stay empty."""
    left_over = axes.size - len(panels)
    drawn = [*panels, *[blank()] * left_over]
    pairs = list(zip(axes.flat, drawn, strict=True))
    # Titles first, because they take room from the axes below.
    for axis, panel in pairs:
        width, _ = panel["size"]
        title = wrapped(panel["title"], 0.75 * width, 10)
        axis.set_title(title, fontsize=10)
    if any(needs_room(panel) for panel in panels):
        figure.figure.draw_without_rendering()
    for axis, panel in pairs:
        draw(axis, panel)


def column_widths(panels: Sequence[Panel], columns: int) -> list[float]:
    """Return the widths of the columns in inches, when panels are placed row by row."""
    widths = []
    for first in range(columns):
        column = panels[first::columns]
        widths.append(max(panel["size"][0] for panel in column))
    return widths


def chart_size(panels: Sequence[Panel], columns: int = 3) -> tuple[float, float]:
    """Return width and height of a chart in inches."""
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    highest = max(panel["size"][1] for panel in panels)
    # Each row has a title, the whole has a title and a legend.
    height = rows * (highest + 0.2) + 1.0
    widths = column_widths(panels, columns)
    return sum(widths), height


def needs_room(panel: Panel) -> bool:
    """Return whether the figure must be laid out before a panel is drawn.

    The size of a grid's text depends on the size of its axes.
    """
    return any(mark["kind"] == "rewards" for mark in panel["marks"])


def draw(axis: Any, panel: Panel) -> None:
    """Draw a panel on matplotlib axes; one without marks leaves them empty."""
    if not panel["marks"]:
        axis.set_axis_off()
        return
    for name in panel["log"]:
        getattr(axis, f"set_{name}scale")("log")
    for mark in panel["marks"]:
        # A stored curve has no x of its own if several share their steps.
        DRAWINGS[mark["kind"]](axis, {"x": panel["steps"], **mark})
    width, height = panel["size"]
    axis.set(
        xlabel=wrapped(panel["x"], width, 9),
        ylabel=wrapped(panel["y"], 0.9 * height, 9),
    )
    first_mark, *_ = panel["marks"]
    kind = first_mark["kind"]
    if kind not in ("cells", "rewards"):
        _draw_grid(axis, panel)
    if panel["zero"]:
        axis.set_ylim(bottom=0)
    for name in ("x", "y"):
        _set_ticks(axis, panel, name)
        if f"{name}_range" in panel:
            getattr(axis, f"set_{name}lim")(*panel[f"{name}_range"])
    if kind == "cells":
        rows, columns = np.shape(first_mark["texts"])
        name_cells(axis, rows, columns)


def _draw_grid(axis: Any, panel: Panel) -> None:
    """Draw faint lines behind the marks, and leave the panel open at the top and the right."""
    axis.grid(alpha=0.25, lw=0.6, color=GRID)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    for name in "xy":
        if name not in panel["log"]:
            axis.locator_params(axis=name, nbins=5)


def _set_ticks(axis: Any, panel: Panel, name: str) -> None:
    """Set the ticks of one axis, if the panel has its own."""
    if f"{name}_ticks" not in panel:
        return
    positions, labels = panel[f"{name}_ticks"]
    is_map = panel["marks"][0]["kind"] == "cells"
    # The labels of a map are turned instead, see name_cells.
    if name == "x" and not is_map:
        width = 0.8 * panel["size"][0] / len(positions)
        labels = [wrapped(words, width, 8.5) for words in labels]
    getattr(axis, f"set_{name}ticks")(positions, labels)
    getattr(axis, f"{name}axis").minorticks_off()


def numbers_of(mark: Mark, name: str) -> np.ndarray:
    """Return the numbers of a mark as an array, with None as NaN."""
    return np.array(mark[name], float)


def _draw_line(axis: Any, mark: Mark) -> None:
    x = numbers_of(mark, "x")
    y = numbers_of(mark, "y")
    dash: Any = (0, tuple(mark["dash"])) if mark.get("dash") else "-"
    # Wide lines are the important ones: they lie above the others, each above its own band.
    front = 3 if mark["width"] > 2 else 2
    axis.plot(
        x,
        y,
        color=mark["colour"],
        lw=mark["width"],
        ls=dash,
        label=mark["label"],
        zorder=front,
        marker="o" if mark.get("dot") else None,
        ms=6.5,
    )
    if "error" in mark:
        error = numbers_of(mark, "error")
        axis.fill_between(
            x,
            y - error,
            y + error,
            color=mark["colour"],
            alpha=0.18,
            lw=0,
            zorder=front - 1,
        )


def _draw_bars(axis: Any, mark: Mark) -> None:
    x, y, error = (numbers_of(mark, name) for name in DIGITS)
    # A single seed has no error.
    error = np.nan_to_num(error)
    axis.bar(
        x,
        y,
        mark["width"],
        yerr=error,
        color=mark["colour"],
        label=mark["label"],
        hatch=mark.get("hatch"),
        edgecolor="#ffffff",
        linewidth=0.4,
        error_kw={"elinewidth": 0.8, "ecolor": SOFT},
    )
    axis.axhline(0, color=SOFT, lw=0.7)
    axis.margins(y=0.15)
    tops = np.maximum(y, 0) + error
    for position, top, words in zip(x, tops, mark["marks"], strict=False):
        if words:
            axis.annotate(
                words,
                (position, top),
                xytext=(0, 1),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )


def _draw_points(axis: Any, mark: Mark) -> None:
    axis.errorbar(
        numbers_of(mark, "x"),
        numbers_of(mark, "y"),
        xerr=numbers_of(mark, "error") if "error" in mark else None,
        fmt=mark["marker"],
        color=mark["colour"],
        ms=mark["size"],
        lw=1,
        label=mark["label"] or None,
        alpha=0.6 if mark["pale"] else 1,
    )


def _draw_rule(axis: Any, mark: Mark) -> None:
    colour = FAINT if mark["soft"] else SOFT
    style: dict[str, Any] = {"color": colour, "ls": "-" if mark["soft"] else "--"}
    at = mark["at"]
    # The words stand upright at the foot of the line, or above its right end.
    if mark["axis"] == "x":
        axis.axvline(at, **style, lw=0.9, zorder=1)
        position: dict[str, Any] = {"xy": (at, 0.02), "xycoords": ("data", "axes fraction")}
        position |= {"xytext": (2, 0), "rotation": 90}
    else:
        axis.axhline(at, **style, lw=0.9, zorder=1)
        position = {"xy": (1, at), "xycoords": ("axes fraction", "data")}
        position |= {"xytext": (-3, 3), "ha": "right"}
    axis.annotate(
        mark["words"],
        textcoords="offset points",
        fontsize=7.5,
        color=SOFT,
        va="bottom",
        **position,
    )


def _draw_cells(axis: Any, mark: Mark) -> None:
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle

    values = np.array(mark["values"], float)
    low, high = mark.get("limits") or colour_limits(values)
    norm = Normalize(low, high) if mark.get("linear") else LogNorm(low, high)
    rows, columns = values.shape
    axis.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(values),
        cmap="viridis",
        norm=norm,
        lw=0,
    )
    _write_cells(axis, values, mark["texts"], norm)
    for row, column in mark["framed"]:
        axis.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=FRAME, lw=1.8, clip_on=False)
        )
    for row, column in mark["dots"]:
        axis.plot([column + 0.36], [row + 0.3], ".", color=FRAME, ms=4)


def _write_cells(axis: Any, values: np.ndarray, texts: Sequence[Sequence[str]], norm: Any) -> None:
    """Write into the cells of a map: all in one size, or nothing if that is too small."""
    every = list(itertools.chain.from_iterable(texts))
    size = letter_size(every, *cell_size(axis, *values.shape), largest=6.5)
    if size < SMALLEST:
        return
    for (row, column), value in np.ndenumerate(values):
        colour = "#1d2430"
        if not np.isfinite(value):
            colour = SOFT
        # A log scale has no colour for 0; viridis is dark in its lower half.
        elif norm(max(value, norm.vmin)) < 0.55:
            colour = "#fffffe"
        axis.text(
            column,
            row,
            texts[row][column],
            ha="center",
            va="center",
            fontsize=size,
            color=colour,
        )


def colour_limits(values: np.ndarray) -> tuple[float, float]:
    """Return the values of the first and the last colour of a map on a log scale."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return 0.1, 1.0
    lowest = positive.min()
    # A scale needs two ends, also where all values are equal.
    return float(lowest), max(positive.max(), 1.001 * lowest)


def _draw_reward_grid(axis: Any, mark: Mark) -> None:
    policy = None if mark["policy"] is None else np.array(mark["policy"], float)
    draw_rewards(axis, np.array(mark["values"], float), policy, mark["limit"])


DRAWINGS: dict[str, Callable[[Any, Mark], None]] = {
    "line": _draw_line,
    "bars": _draw_bars,
    "points": _draw_points,
    "rule": _draw_rule,
    "cells": _draw_cells,
    "rewards": _draw_reward_grid,
}
