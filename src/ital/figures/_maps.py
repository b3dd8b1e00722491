"""Maps of a sweep: how close each method gets with each η and β, and how soon."""

from typing import TYPE_CHECKING

import numpy as np

from ital import tuning
from ital.figures import charts
from ital.figures._curves import in_legend_order, label
from ital.statistics import number
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

NOTE = (
    "Framed: the best of each method.  ×: diverged, or farther than at the start.  –: not reached.  "
    "●: closer than every naive method at its own best η."
)


def plot_sweep(grid: "xr.Dataset", task: Task) -> "Figure":
    """Draw two rows of heat maps: the naive methods in one panel, and each method with a β in its own.

    The upper row shows the final distance (mean over seeds), the lower row the steps to a tenth of the distance at the
    start (median).

    Args:
        grid: the grid of a sweep.
        task: the task.

    Returns:
        The figure.
    """
    panels, seeds = sweep_panels(grid), grid.sizes["seed"]
    title = f"{task.title}: {grid.attrs.get('teacher', '')} teacher, {seeds} seed{'s' if seeds > 1 else ''}"
    return charts.chart(panels, title, columns=len(panels) // 2, foot=NOTE)


def sweep_panels(grid: "xr.Dataset") -> list[charts.Panel]:
    """The panels of :func:`plot_sweep`, row by row.

    Args:
        grid: the curves of a sweep, with dimensions ``lr`` and ``beta``.

    Returns:
        Two rows of maps; the maps of a row share one colour scale.

    """
    last = int(grid["step"].values[-1])
    methods = in_legend_order([str(name) for name in grid["learner"].values])
    naive = [name for name in methods if name in tuning.naive_methods(grid)]
    groups = [*([naive] if naive else []), *([name] for name in methods if name not in naive)]
    bad, steps = tuning.diverged(grid, last), tuning.steps_to(grid)
    return [
        _map(grid, values, bad, names, f"{label(grid, names[0]) if names != naive else 'Naive'}: {what}")
        for values, what in (
            (tuning.mean_distances(grid, last).where(~bad), f"distance at step {last}"),
            (steps.where(np.isfinite(steps) & ~bad), f"steps to {tuning.SHARE:.0%}"),
        )
        for names in groups
    ]


def _map(grid: "xr.Dataset", values: "xr.DataArray", bad: "xr.DataArray", names: list[str], title: str) -> charts.Panel:
    """One heat map: η along x; β, or the methods without one, along y."""
    has_beta = names[0] not in tuning.without_beta(grid)
    place = {"learner": names[0]} if has_beta else {"learner": names, "beta": grid["beta"].values[0]}
    shown, diverged = values.sel(place).values, bad.sel(place).values
    if has_beta:
        shown, diverged = shown.T, diverged.T
    texts = [
        [number(value, 2) if np.isfinite(value) else "×" if far else "–" for value, far in zip(*both, strict=True)]
        for both in zip(shown, diverged, strict=True)
    ]
    framed = []
    for row, of_method in [(0, shown)] if has_beta else list(enumerate(shown[:, None])):
        if np.isfinite(of_method).any():
            y, x = np.unravel_index(np.nanargmin(of_method), of_method.shape)
            framed.append((row + int(y), int(x)))
    aware = names[0] in tuning.aware_methods(grid)
    pays = tuning.pays(grid, names[0], int(grid["step"].values[-1])) if aware else None
    dots = None if pays is None else pays.transpose("beta", "lr").values
    rows = [f"{value:.4g}" for value in grid["beta"].values] if has_beta else [label(grid, name) for name in names]
    columns = [f"{value:.4g}" for value in grid["lr"].values]
    return charts.panel(
        title, [charts.cells(shown, texts, framed, dots, charts.colour_limits(values.values))], x="η",
        y="β" if has_beta else "", x_ticks=(range(len(columns)), columns), y_ticks=(range(len(rows)), rows),
        size=(4.6, 1.0 + 0.27 * max(len(rows), 4)),
    )  # fmt: skip
