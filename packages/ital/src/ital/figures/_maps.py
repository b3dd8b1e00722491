"""Maps of a sweep: how close each method gets with each η and β, and how soon."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital import tuning
from ital.figures import charts
from ital.figures._curves import in_legend_order, label, seeds_in_words
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
    """Draw two rows of heat maps: the naive methods in one panel, each method with a β in its own.

    The upper row shows the final distance, or the metric by which the sweep is judged (mean over
    seeds). The lower row shows the steps to a tenth of the distance at the start (median), as
    :func:`ital.tuning.steps_to` counts them.

    Args:
        grid: the grid of a sweep.
        task: the task.

    Returns:
        The figure.
    """
    panels = sweep_panels(grid)
    title = f"{task.title}: {grid.attrs.get('teacher', '')} teacher, {seeds_in_words(grid)}"
    return charts.chart(panels, title, columns=len(panels) // 2, foot=NOTE)


def sweep_panels(grid: "xr.Dataset") -> list[charts.Panel]:
    """Make the panels of :func:`plot_sweep`, row by row.

    Args:
        grid: the curves of a sweep, with dimensions ``lr`` and ``beta``.

    Returns:
        Two rows of maps; the maps of a row share one colour scale.
    """
    last = int(grid["step"].values[-1])
    metric = tuning.metric_of(grid).removesuffix("_centred").replace("_", " ")
    more = tuning.more_is_better(grid)
    soon = "steps to 90% of the best gain" if more else f"steps to {tuning.SHARE:.0%}"
    # (learner, lr, beta): what each setting reached, and after how many steps
    diverged = tuning.diverged(grid, last)
    reached = tuning.mean_values(grid, last).where(~diverged)
    steps = tuning.steps_to(grid)
    steps = steps.where(np.isfinite(steps) & ~diverged)
    rows = (
        _Row(reached, diverged, more, f"{metric} at step {last}"),
        _Row(steps, diverged, False, soon),
    )
    methods = in_legend_order([str(name) for name in grid["learner"].values])
    naive = [name for name in methods if name in tuning.naive_methods(grid)]
    others = [name for name in methods if name not in naive]
    panels = []
    for row in rows:
        if naive:
            panels.append(_naive_map(grid, row, naive))
        panels += [_method_map(grid, row, name) for name in others]
    return panels


class _Row(NamedTuple):
    """What a row of maps shows.

    Attributes:
        values: the values (learner, lr, beta); NaN where there is none.
        diverged: where a seed diverged, or ended worse than at the start (learner, lr, beta).
        more_is_better: whether more of it is better.
        words: what it is.
    """

    values: "xr.DataArray"
    diverged: "xr.DataArray"
    more_is_better: bool
    words: str


def _naive_map(grid: "xr.Dataset", row: _Row, names: list[str]) -> charts.Panel:
    """Map several methods: η along x, the methods along y; they have no β."""
    values, texts = _values_and_texts(grid, row, {"learner": names, "beta": grid["beta"].values[0]})
    # Each method has its own best η.
    framed = []
    for y, of_method in enumerate(values):
        x = _best_index(row, of_method)
        if x is not None:
            framed.append((y, x))
    cells = charts.cells(values, texts, framed, None, _limits(row), row.more_is_better)
    labels = [label(grid, name) for name in names]
    return _map_panel(grid, f"Naive: {row.words}", cells, labels, "")


def _method_map(grid: "xr.Dataset", row: _Row, name: str) -> charts.Panel:
    """Map one method: η along x, β along y."""
    values, texts = _values_and_texts(grid, row, {"learner": name})
    framed = []
    best = _best_index(row, values.ravel())
    if best is not None:
        y, x = np.unravel_index(best, values.shape)
        framed.append((int(y), int(x)))
    dots = None
    if name in tuning.aware_methods(grid):
        pays = tuning.pays(grid, name, int(grid["step"].values[-1]))
        dots = None if pays is None else pays.transpose("beta", "lr").values
    cells = charts.cells(values, texts, framed, dots, _limits(row), row.more_is_better)
    labels = [f"{value:.4g}" for value in grid["beta"].values]
    return _map_panel(grid, f"{label(grid, name)}: {row.words}", cells, labels, "β")


def _values_and_texts(
    grid: "xr.Dataset",
    row: _Row,
    labels: dict[str, Any],
) -> tuple[np.ndarray, list[list[str]]]:
    """Return the values of a map and what its cells say, both (β or learner, η)."""
    order = ("beta", "lr") if "beta" not in labels else ("learner", "lr")
    values, diverged, ran = (
        part.sel(labels).transpose(*order).values
        for part in (row.values, row.diverged, tuning.ran(grid))
    )
    texts = [[""] * values.shape[1] for _ in values]
    for (y, x), value in np.ndenumerate(values):
        texts[y][x] = _map_text(value, bool(diverged[y, x]), bool(ran[y, x]))
    return values, texts


def _best_index(row: _Row, values: np.ndarray) -> int | None:
    """Return the index of the best value; None if there is none."""
    if not np.isfinite(values).any():
        return None
    return int(np.nanargmax(values) if row.more_is_better else np.nanargmin(values))


def _limits(row: _Row) -> tuple[float, float]:
    """Return the values of the first and the last colour of a row: its maps share them."""
    values = row.values.values
    finite = values[np.isfinite(values)]
    # What is better if it is larger, such as an accuracy, has a linear scale.
    if row.more_is_better and finite.size:
        return float(finite.min()), float(finite.max())
    return charts.colour_limits(values)


def _map_panel(
    grid: "xr.Dataset",
    title: str,
    cells: charts.Mark,
    labels: list[str],
    y: str,
) -> charts.Panel:
    """Make the panel of a map: η along x, and labelled rows."""
    columns = [f"{value:.4g}" for value in grid["lr"].values]
    return charts.panel(
        title,
        [cells],
        x="η",
        y=y,
        x_ticks=(range(len(columns)), columns),
        y_ticks=(range(len(labels)), labels),
        size=(4.6, 1.0 + 0.27 * max(len(labels), 4)),
    )


def _map_text(value: float, diverged: bool, ran: bool) -> str:
    """Say what a cell of a map shows; nothing where nothing was run."""
    if np.isfinite(value):
        return number(value, 2)
    if not ran:
        return ""
    return "×" if diverged else "–"
