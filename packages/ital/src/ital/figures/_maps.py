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
    "Framed: the best of each method.  ×: diverged, or worse than at the start.  –: not reached.  "
    "Empty: not run.  ●: better than every naive method at its own best η."
)


def plot_sweep(grid: "xr.Dataset", task: Task) -> "Figure":
    """Draw two rows of heat maps: the naive methods in one panel, and each method with a β in its own.

    The upper row shows the final distance, or the metric by which the sweep is judged (mean over seeds). The lower row
    shows the steps to a tenth of the distance at the start (median), as :func:`ital.tuning.steps_to` counts them.

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
    metric = tuning.metric_of(grid).removesuffix("_centred").replace("_", " ")
    soon = (
        "steps to 90% of the best gain"
        if tuning.more_is_better(grid)
        else f"steps to {tuning.SHARE:.0%}"
    )
    methods = in_legend_order([str(name) for name in grid["learner"].values])
    naive = [name for name in methods if name in tuning.naive_methods(grid)]
    groups = [*([naive] if naive else []), *([name] for name in methods if name not in naive)]
    bad, steps = tuning.diverged(grid, last), tuning.steps_to(grid)
    rows = (
        (
            tuning.mean_values(grid, last).where(~bad),
            tuning.more_is_better(grid),
            f"{metric} at step {last}",
        ),
        (steps.where(np.isfinite(steps) & ~bad), False, soon),
    )
    return [
        _map(
            grid,
            values,
            more,
            bad,
            names,
            f"{label(grid, names[0]) if names != naive else 'Naive'}: {what}",
        )
        for values, more, what in rows
        for names in groups
    ]


def _map(
    grid: "xr.Dataset",
    values: "xr.DataArray",
    more_is_better: bool,
    bad: "xr.DataArray",
    names: list[str],
    title: str,
) -> charts.Panel:
    """One heat map: η along x; β, or the methods without one, along y."""
    best = np.nanargmax if more_is_better else np.nanargmin
    has_beta = names[0] not in tuning.without_beta(grid)
    place = (
        {"learner": names[0]} if has_beta else {"learner": names, "beta": grid["beta"].values[0]}
    )
    order = ("beta", "lr") if has_beta else ("learner", "lr")
    shown, diverged, ran = (
        part.sel(place).transpose(*order).values for part in (values, bad, tuning.ran(grid))
    )
    texts = [
        [_text(*cell) for cell in zip(*row, strict=True)]
        for row in zip(shown, diverged, ran, strict=True)
    ]
    framed = []
    for row, of_method in [(0, shown)] if has_beta else list(enumerate(shown[:, None])):
        if np.isfinite(of_method).any():
            y, x = np.unravel_index(best(of_method), of_method.shape)
            framed.append((row + int(y), int(x)))
    aware = names[0] in tuning.aware_methods(grid)
    pays = tuning.pays(grid, names[0], int(grid["step"].values[-1])) if aware else None
    dots = None if pays is None else pays.transpose("beta", "lr").values
    finite = values.values[np.isfinite(values.values)]
    if more_is_better and finite.size:
        limits = (float(finite.min()), float(finite.max()))
    else:
        limits = charts.colour_limits(values.values)
    rows = (
        [f"{value:.4g}" for value in grid["beta"].values]
        if has_beta
        else [label(grid, name) for name in names]
    )
    columns = [f"{value:.4g}" for value in grid["lr"].values]
    return charts.panel(
        title, [charts.cells(shown, texts, framed, dots, limits, more_is_better)], x="η",
        y="β" if has_beta else "", x_ticks=(range(len(columns)), columns), y_ticks=(range(len(rows)), rows),
        size=(4.6, 1.0 + 0.27 * max(len(rows), 4)),
    )  # fmt: skip


def _text(value: float, diverged: bool, ran: bool) -> str:
    """What a cell of a map says; nothing where nothing was run."""
    if np.isfinite(value):
        return number(value, 2)
    if not ran:
        return ""
    return "×" if diverged else "–"
