"""Maps of a sweep: how near each method comes with each η and β, and how soon."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ital import tuning
from ital.figures._curves import in_legend_order, label
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

NOTE = (
    "Framed: the best of each method.  ×: diverged, or farther than at the start.  –: not reached.  "
    "●: closer than every naive method at its own best η."
)


def plot_sweep(grid: "xr.Dataset", task: Task) -> "Figure":
    """Two rows of heat maps, the naive methods in one panel and each method with a β in its own.

    Above the final distance (mean over seeds), below the steps to a tenth of the distance at the start (median).

    Args:
        grid: the grid of a sweep.
        task: the task.

    Returns:
        The figure.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    last = int(grid["step"].values[-1])
    methods = in_legend_order([str(name) for name in grid["method"].values])
    naive = [name for name in methods if name in tuning.naive_methods(grid)]
    panels = [*([naive] if naive else []), *([name] for name in methods if name not in naive)]
    distances, bad = tuning.mean_distances(grid, last), tuning.diverged(grid, last)
    steps = tuning.steps_to(grid)
    described = task.metrics.get(tuning.metric_of(grid))
    rows = (
        (distances.where(~bad), "{:.2g}", described.title if described else tuning.metric_of(grid)),
        (steps.where(np.isfinite(steps) & ~bad), "{:.0f}", f"Steps to {tuning.SHARE:.0%} of the start"),
    )
    width, height = 1.2 + 0.46 * grid.sizes["lr"], 1.1 + 0.3 * max(3, grid.sizes["beta"])
    figure = Figure(figsize=(max(6.5, 0.9 + width * len(panels)), 0.9 + 2 * height), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False)
    for row, (values, form, title) in zip(axes, rows, strict=True):
        shown = values.values[np.isfinite(values.values) & (values.values > 0)]
        norm = LogNorm(shown.min(), max(shown.max(), 1.001 * shown.min())) if shown.size else LogNorm(0.1, 1)
        images = [_panel(axis, grid, values, bad, names, norm, form) for axis, names in zip(row, panels, strict=True)]
        figure.colorbar(images[0], ax=row, label=title, pad=0.01)
    teacher, seeds = grid.attrs.get("teacher", ""), grid.sizes["seed"]
    title = f"{task.title}: {teacher} teacher, step {last}, {seeds} seed{'s' if seeds > 1 else ''}"
    figure.suptitle(title, fontsize=11)
    figure.supxlabel(NOTE, fontsize=7, color="0.35")
    return figure


def _panel(
    axis: Any, grid: "xr.Dataset", values: "xr.DataArray", bad: "xr.DataArray", names: list[str], norm: Any, form: str
) -> Any:
    """One heat map, η to the right; upwards β, or methods that have none."""
    from matplotlib.patches import Rectangle

    last = int(grid["step"].values[-1])
    has_beta = names[0] not in tuning.without_beta(grid)
    selection = {"method": names[0]} if has_beta else {"method": names, "beta": grid["beta"].values[0]}
    shown, diverged = values.sel(selection).values, bad.sel(selection).values
    if has_beta:
        shown, diverged = shown.T, diverged.T
    axis.set_facecolor("0.93")
    image = axis.imshow(np.ma.masked_invalid(shown), cmap="viridis", norm=norm, origin="lower", aspect="auto")
    for (y, x), value in np.ndenumerate(shown):
        text = form.format(value) if np.isfinite(value) else "×" if diverged[y, x] else "–"
        dark = np.isfinite(value) and norm(max(value, norm.vmin)) < 0.55
        axis.text(x, y, text, ha="center", va="center", fontsize=6, color="white" if dark else "0.15")
    for row, of_method in [(0, shown)] if has_beta else enumerate(shown[:, None]):
        if np.isfinite(of_method).any():
            y, x = np.unravel_index(np.nanargmin(of_method), of_method.shape)
            axis.add_patch(Rectangle((x - 0.5, row + y - 0.5), 1, 1, fill=False, ec="#d55e00", lw=1.8, clip_on=False))
    pays = tuning.pays(grid, names[0], last) if names[0] in tuning.aware_methods(grid) else None
    if pays is not None:
        y, x = np.nonzero(pays.transpose("beta", "lr").values)
        axis.plot(x + 0.38, y + 0.32, ".", color="#d55e00", ms=4)
    ticks = [f"{value:g}" for value in grid["beta"].values] if has_beta else [label(grid, name) for name in names]
    axis.set_yticks(range(len(ticks)), ticks, fontsize=7)
    axis.set_xticks(range(grid.sizes["lr"]), [f"{value:g}" for value in grid["lr"].values], fontsize=7, rotation=45)
    axis.set(xlabel="η", ylabel="β" if has_beta else "")
    axis.set_title(label(grid, names[0]) if has_beta else "Naive", fontsize=10)
    return image
