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
    teacher = grid.attrs.get("teacher", "")
    title = f"{task.title}: {teacher} teacher, {seeds_in_words(grid)}"
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
    reached = tuning.mean_values(grid, last)
    steps = tuning.steps_to(grid)
    has_steps = np.isfinite(steps) & ~diverged
    rows = (
        _Row(
            values=reached.where(~diverged),
            diverged=diverged,
            more_is_better=more,
            words=f"{metric} at step {last}",
        ),
        _Row(
            values=steps.where(has_steps),
            diverged=diverged,
            more_is_better=False,
            words=soon,
        ),
    )
    methods = in_legend_order([str(name) for name in grid["learner"].values])
    naive = [name for name in methods if name in tuning.naive_methods(grid)]
    others = [name for name in methods if name not in naive]
    panels = []
    for row in rows:
        if naive:
            panels.append(_naive_map(grid, row, naive))
        for name in others:
            panel = _method_map(grid, row, name)
            panels.append(panel)
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
    # They are repeated along β: any will do.
    some_beta = grid["beta"].values[0]
    labels_of_map = {"learner": names, "beta": some_beta}
    values, texts = _values_and_texts(grid, row, labels_of_map)
    # Each method has its own best η.
    framed = []
    for y, of_method in enumerate(values):
        x = _best_index(row, of_method)
        if x is not None:
            framed.append((y, x))
    cells = charts.cells(
        values,
        texts,
        framed,
        None,
        _limits(row),
        row.more_is_better,
    )
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
    cells = charts.cells(
        values,
        texts,
        framed,
        _where_it_pays(grid, name),
        _limits(row),
        row.more_is_better,
    )
    labels = [f"{value:.4g}" for value in grid["beta"].values]
    title = f"{label(grid, name)}: {row.words}"
    return _map_panel(grid, title, cells, labels, "β")


def _where_it_pays(grid: "xr.Dataset", name: str) -> np.ndarray | None:
    """Return where an aware method is better than the best naive one (β, η); None for others."""
    if name not in tuning.aware_methods(grid):
        return None
    last = int(grid["step"].values[-1])
    pays = tuning.pays(grid, name, last)
    if pays is None:
        return None
    return pays.transpose("beta", "lr").values


def _values_and_texts(
    grid: "xr.Dataset",
    row: _Row,
    labels: dict[str, Any],
) -> tuple[np.ndarray, list[list[str]]]:
    """Return the values of a map and what its cells say, both (β or learner, η)."""
    along_y = "learner" if "beta" in labels else "beta"

    def of_map(part: "xr.DataArray") -> np.ndarray:
        return part.sel(labels).transpose(along_y, "lr").values

    values = of_map(row.values)
    diverged = of_map(row.diverged)
    ran = of_map(tuning.ran(grid))
    texts = [[""] * values.shape[1] for _ in values]
    for (y, x), value in np.ndenumerate(values):
        has_diverged = bool(diverged[y, x])
        was_run = bool(ran[y, x])
        texts[y][x] = _map_text(value, has_diverged, was_run)
    return values, texts


def _best_index(row: _Row, values: np.ndarray) -> int | None:
    """Return the index of the best value; None if there is none."""
    if not np.isfinite(values).any():
        return None
    if row.more_is_better:
        return int(np.nanargmax(values))
    return int(np.nanargmin(values))


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
