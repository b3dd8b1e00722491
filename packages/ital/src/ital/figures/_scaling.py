"""Plot how speed and memory scale, as measured by ``ital bench --scaling``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ital.figures import charts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "regression": "#08306b",
    "gaussian": "#41b6a6",
    "irl-dense": "#d55e00",
    "pool": "#7b3294",
}
MARKERS = {"memory": "o", "arithmetic": "s", "launch": "^"}
NOTE = "Dashed: the nearest bound of each point; its marker says which: ● memory, ■ arithmetic, ▲ launch."
SERIES = {"above_empty_bytes": "peak of the process", "device_above_empty_bytes": "of the device"}


def plot_scaling(report: Mapping[str, Any]) -> "Figure":
    """Draw four panels: steps per second against lanes, rows of the pool and processes; memory against rows.

    Args:
        report: the measurements of ``ital bench --scaling``.

    Returns:
        The figure.
    """
    lanes = [
        mark for name, points in report["lanes"].items() for mark in _speed(points, "lanes", name)
    ]
    panels = [
        charts.panel("", lanes, x="Lanes", y="Steps per second, all lanes", log="xy", size=(4.7, 2.7)),
        charts.panel(
            "", _speed(report["rows"], "rows", "pool"), x="Rows of the pool (160 lanes, d = 100)", log="xy",
            size=(3.6, 2.7),
        ),
        _workers(report["workers"]),
        _memory(report["memory"]),
    ]  # fmt: skip
    return charts.chart(panels, f"Scaling on {report['device']}", columns=4, foot=NOTE)


def _speed(points: Sequence[Mapping[str, Any]], against: str, name: str) -> list[charts.Mark]:
    """The measured speed, and above it the speed at the nearest bound."""
    at, colour = [point[against] for point in points], COLOURS.get(name, charts.SOFT)
    bounds = [point["lanes"] / point["bounds"][point["bound"]] for point in points]
    return [
        charts.line(name, colour, at, [point["steps_per_second"] for point in points], width=1.8),
        charts.line("", colour, at, bounds, width=1.0, dash=(4, 2)),
        *(
            charts.points("", colour, [x], [bound], marker=MARKERS[point["bound"]], size=4)
            for x, bound, point in zip(at, bounds, points, strict=True)
        ),
    ]


def _workers(points: Sequence[Mapping[str, Any]]) -> charts.Panel:
    names, speeds = zip(
        *((str(point["workers"]), point["steps_per_second"] / 1e3) for point in points), strict=True
    )
    bars = charts.bars(
        "", COLOURS["regression"], range(len(names)), speeds, [0.0] * len(names), width=0.6
    )
    y = "Thousand steps per second, regression"
    return charts.panel(
        "", [bars], x="Processes", y=y, x_ticks=(range(len(names)), names), size=(2.0, 2.7)
    )


def _memory(points: Sequence[Mapping[str, Any]]) -> charts.Panel:
    """Peak memory beyond that of an empty run, compared with the size of the pool and twice its size."""
    rows, pool = (
        [point["rows"] for point in points],
        [point["pool_bytes"] / 2**20 for point in points],
    )
    marks = [
        charts.line("the pool", charts.SOFT, rows, pool, dash=(4, 2), width=1.0),
        charts.line(
            "twice the pool",
            charts.SOFT,
            rows,
            [2 * size for size in pool],
            dash=(1, 1.5),
            width=1.0,
        ),
    ]
    for (field, label), colour in zip(SERIES.items(), (charts.INK, charts.FRAME), strict=True):
        if all(field in point for point in points):
            sizes = [max(point[field], 1) / 2**20 for point in points]
            marks.append(charts.line(label, colour, rows, sizes, dot=True))
    return charts.panel(
        "", marks, x="Rows of the pool", y="MiB above an empty run", log="xy", size=(3.3, 2.7)
    )
