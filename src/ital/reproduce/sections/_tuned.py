"""Every method at its own best step size and β."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ital import tuning
from ital.figures import in_legend_order, label
from ital.reproduce import _blocks, _charts, _figures
from ital.reproduce._blocks import Block
from ital.reproduce._charts import Panel
from ital.reproduce._numbers import number
from ital.reproduce.sections._context import Context

if TYPE_CHECKING:
    import xarray as xr

LEAD = (
    "One step size for all favours whoever makes long steps. Here each method has its own best step size η, and its "
    "own best β if it has one: settings from best to worst, with the distance they reach. A star means that the best "
    "setting lies at the end of its range, so that the grid and not the method decides."
)
CAPTION = (
    "Every step size η and every β. Above: distance at the end, mean over seeds. Below: steps to a tenth of the "
    "distance at the start, median. Framed: the best of each method. ×: diverged, or farther than at the start. –: not "
    "reached. ●: closer than every naive method at its own best η."
)


def build(context: Context) -> list[Block]:
    """Best settings as a table, and one map per task and start: the first in sight, the others folded."""
    rows: list[tuple[Any, ...]] = []
    maps: list[Block] = []
    for condition, grid in context.data.sweeps.items():
        for found in (tuning.judge(grid, step) for step in tuning.judged_steps(grid)):
            best = [f"{one} {number(one.mean)}{'*' if one.edge else ''}" for one in found.best]
            rows.append((condition.task, condition.start, found.step, *best))
        seeds = grid.sizes["seed"]
        title = f"{condition.task}, {condition.start} start: step sizes and β, {seeds} seeds"
        shown = _blocks.figure(
            f"sweep-{condition.task}-{_figures.name(condition.start)}", title, panels(grid), CAPTION, columns=2,
            note=context.scale.note.replace(f"{context.scale.seeds} seeds", f"{seeds} seeds"),
        )  # fmt: skip
        maps += _blocks.folded(title, shown) if maps else shown
    if not rows:
        return []
    heads = ("task", "start", "step", "best", *(["then"] * (max(map(len, rows)) - 4)))
    return [
        _blocks.paragraph(LEAD),
        _blocks.table(heads, rows, caption="Each method at its best.", numbers_from=2),
        *maps,
    ]


def panels(grid: "xr.Dataset") -> list[Panel]:
    """Two rows of maps: the naive methods in one panel, each method with a β in its own."""
    last = int(grid["step"].values[-1])
    methods = in_legend_order([str(name) for name in grid["method"].values])
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


def _map(grid: "xr.Dataset", values: "xr.DataArray", bad: "xr.DataArray", names: list[str], title: str) -> Panel:
    """One heat map, η to the right; upwards β, or methods that have none."""
    has_beta = names[0] not in tuning.without_beta(grid)
    one = {"method": names[0]} if has_beta else {"method": names, "beta": grid["beta"].values[0]}
    shown, diverged = values.sel(one).values, bad.sel(one).values
    if has_beta:
        shown, diverged = shown.T, diverged.T
    texts = [
        [number(value, 2) if np.isfinite(value) else "×" if far else "–" for value, far in zip(*both, strict=True)]
        for both in zip(shown, diverged, strict=True)
    ]
    framed = []
    for row, some in [(0, shown)] if has_beta else list(enumerate(shown[:, None])):
        if np.isfinite(some).any():
            y, x = np.unravel_index(np.nanargmin(some), some.shape)
            framed.append((row + int(y), int(x)))
    aware = names[0] in tuning.aware_methods(grid)
    pays = tuning.pays(grid, names[0], int(grid["step"].values[-1])) if aware else None
    dots = None if pays is None else pays.transpose("beta", "lr").values
    rows = [f"{value:g}" for value in grid["beta"].values] if has_beta else [label(grid, name) for name in names]
    columns = [f"{value:g}" for value in grid["lr"].values]
    return _charts.panel(
        title, [_charts.cells(shown, texts, framed, dots)], x="η", y="β" if has_beta else "",
        x_ticks=(range(len(columns)), columns), y_ticks=(range(len(rows)), rows),
        size=(4.6, 1.0 + 0.27 * max(len(rows), 4)),
    )  # fmt: skip
