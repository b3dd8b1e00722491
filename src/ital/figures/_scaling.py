"""How speed and memory grow: what ``ital bench --scaling`` measured on a machine."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"regression": "#08306b", "gaussian": "#41b6a6", "irl-dense": "#d55e00", "pool": "#7b3294"}
MARKERS = {"memory": "o", "arithmetic": "s", "launch": "^"}
NOTE = "Dashed: the nearest bound of each point; its marker says which: ● memory, ■ arithmetic, ▲ launch."


def plot_scaling(report: Mapping[str, Any]) -> "Figure":
    """Four panels: steps per second against lanes, rows of the pool and processes; memory against rows.

    Args:
        report: what ``ital bench --scaling`` measured.

    Returns:
        The figure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.5, 3.9), layout="constrained")
    lanes, rows, workers, memory = figure.subplots(1, 4, width_ratios=(1.3, 1, 0.55, 0.9))
    for name, points in report["lanes"].items():
        _speed(lanes, points, "lanes", name)
    lanes.legend(frameon=False, fontsize=8)
    _speed(rows, report["rows"], "rows", "pool")
    rows.set_ylim(bottom=min(p["steps_per_second"] for p in report["rows"]) / 10)
    lanes.set(xlabel="Lanes", ylabel="Steps per second, all lanes")
    rows.set_xlabel("Rows of the pool (160 lanes, d = 100)")
    _bars(workers, report["workers"])
    _memory(memory, report["memory"])
    for axis in (lanes, rows, workers, memory):
        axis.grid(alpha=0.25, lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Scaling on {report['device']}", fontsize=11)
    figure.supxlabel(NOTE, fontsize=7, color="0.35")
    return figure


def _speed(axis: Any, points: Sequence[Mapping[str, Any]], against: str, name: str) -> None:
    """Measured speed, and above it the speed at the nearest bound."""
    positions = [point[against] for point in points]
    colour = COLOURS.get(name, "0.3")
    axis.plot(positions, [point["steps_per_second"] for point in points], color=colour, lw=1.8, label=name)
    bound = [point["lanes"] / point["bounds"][point["bound"]] for point in points]
    axis.plot(positions, bound, color=colour, lw=1, ls="--")
    for x, y, point in zip(positions, bound, points, strict=True):
        axis.plot(x, y, MARKERS[point["bound"]], color=colour, ms=4)
    axis.set(xscale="log", yscale="log")


def _bars(axis: Any, points: Sequence[Mapping[str, Any]]) -> None:
    names = [str(point["workers"]) for point in points]
    axis.bar(names, [point["steps_per_second"] / 1e3 for point in points], color=COLOURS["regression"], width=0.6)
    axis.set(xlabel="Processes", ylabel="Thousand steps per second, regression")


def _memory(axis: Any, points: Sequence[Mapping[str, Any]]) -> None:
    """Peak memory above an empty run, beside once and twice the bytes of the pool."""
    rows = [point["rows"] for point in points]
    pool = [point["pool_bytes"] / 2**20 for point in points]
    axis.plot(rows, pool, color="0.45", ls="--", lw=1, label="the pool")
    axis.plot(rows, [2 * size for size in pool], color="0.45", ls=":", lw=1, label="twice the pool")
    series = {"above_empty_bytes": ("peak of the process", "o-"), "device_above_empty_bytes": ("of the device", "s-")}
    for field, (label, style) in series.items():
        if all(field in point for point in points):
            axis.plot(rows, [max(point[field], 1) / 2**20 for point in points], style, ms=4, lw=1.5, label=label)
    axis.set(xscale="log", yscale="log", xlabel="Rows of the pool", ylabel="MiB above an empty run")
    axis.legend(frameon=False, fontsize=8)
