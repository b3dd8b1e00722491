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
NOTE = (
    "Dashed: the nearest bound of each point; its marker says which: "
    "● memory, ■ arithmetic, ▲ launch."
)
SERIES = {"above_empty_bytes": "peak of the process", "device_above_empty_bytes": "of the device"}


def plot_scaling(report: Mapping[str, Any]) -> "Figure":
    """Draw four panels: speed against lanes, rows of the pool and processes; memory against rows.

    Args:
        report: the measurements of ``ital bench --scaling``.

    Returns:
        The figure.
    """
    lanes = []
    for name, points in report["lanes"].items():
        lanes += _speed_marks(points, "lanes", name)
    rows = _speed_marks(report["rows"], "rows", "pool")
    panels = [
        charts.panel(
            "",
            lanes,
            x="Lanes",
            y="Steps per second, all lanes",
            log="xy",
            size=(4.7, 2.7),
        ),
        charts.panel(
            "",
            rows,
            x="Rows of the pool (160 lanes, d = 100)",
            log="xy",
            size=(3.6, 2.7),
        ),
        _workers_panel(report["workers"]),
        _memory_panel(report["memory"]),
    ]
    return charts.chart(panels, f"Scaling on {report['device']}", columns=4, foot=NOTE)


def _speed_marks(points: Sequence[Mapping[str, Any]], against: str, name: str) -> list[charts.Mark]:
    """Make the lines of the measured speed, and of the speed at the nearest bound above it."""
    colour = COLOURS.get(name, charts.SOFT)
    at = []
    measured = []
    bounds = []
    markers = []
    for point in points:
        x = point[against]
        nearest = point["bound"]
        # A bound is a time per step of all lanes.
        bound = point["lanes"] / point["bounds"][nearest]
        marker = charts.points("", colour, [x], [bound], marker=MARKERS[nearest], size=4)
        at.append(x)
        measured.append(point["steps_per_second"])
        bounds.append(bound)
        markers.append(marker)
    return [
        charts.line(name, colour, at, measured, width=1.8),
        charts.line("", colour, at, bounds, width=1.0, dash=(4, 2)),
        *markers,
    ]


def _workers_panel(points: Sequence[Mapping[str, Any]]) -> charts.Panel:
    names = [str(point["workers"]) for point in points]
    speeds = [point["steps_per_second"] / 1e3 for point in points]
    errors = [0.0] * len(names)
    bars = charts.bars("", COLOURS["regression"], range(len(names)), speeds, errors, width=0.6)
    return charts.panel(
        "",
        [bars],
        x="Processes",
        y="Thousand steps per second, regression",
        x_ticks=(range(len(names)), names),
        size=(2.0, 2.7),
    )


def _memory_panel(points: Sequence[Mapping[str, Any]]) -> charts.Panel:
    """Show peak memory beyond that of an empty run, beside the size of the pool and twice it."""
    rows = [point["rows"] for point in points]
    pool = [point["pool_bytes"] / 2**20 for point in points]
    twice = [2 * size for size in pool]
    marks = [
        charts.line("the pool", charts.SOFT, rows, pool, dash=(4, 2), width=1.0),
        charts.line("twice the pool", charts.SOFT, rows, twice, dash=(1, 1.5), width=1.0),
    ]
    for (field, label), colour in zip(SERIES.items(), (charts.INK, charts.FRAME), strict=True):
        # A CPU has no memory of its own.
        if all(field in point for point in points):
            sizes = [max(point[field], 1) / 2**20 for point in points]
            marks.append(charts.line(label, colour, rows, sizes, dot=True))
    return charts.panel(
        "",
        marks,
        x="Rows of the pool",
        y="MiB above an empty run",
        log="xy",
        size=(3.3, 2.7),
    )
