"""The summary table at the end of a run."""

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ital.experiments._run import Outcome
from ital.figures import in_legend_order, label
from ital.results import computed, divergence, mean_and_error, measured, metrics_of


def print_outcome(outcome: Outcome, console: Console | None = None) -> None:
    """Prints mean ± standard error at the last step per method, the best in bold, what diverged, and the files."""
    console = console or Console()
    console.print(table(outcome))
    for method in outcome.curves["method"].values:
        found = divergence(outcome.curves, method)
        if found:
            step, seeds = found
            n = computed(outcome.curves, method).sizes["seed"]
            name = label(outcome.curves, method)
            console.print(
                f"[bold red]{name} diverged[/]: values are not finite from step {step} on ({seeds} of {n} seeds). "
                "Try a smaller --lr or --beta."
            )
    if not outcome.lanes_computed:
        console.print("Everything was there already; nothing was computed.")
    for file in outcome.files:
        console.print(str(file), soft_wrap=True, highlight=False)


def table(outcome: Outcome) -> Table:
    """The last step in numbers: a row per method, a column per metric."""
    curves, task = outcome.curves, outcome.task
    last = int(curves["step"].values[-1])
    title = f"{task.title}, {curves.attrs['teacher']} teacher: step {last}, mean ± standard error over seeds"
    shown = Table(title=title, title_justify="left")
    shown.add_column("method")
    methods = in_legend_order([str(m) for m in curves["method"].values])
    metrics = metrics_of(curves)
    for metric in metrics:
        shown.add_column(metric.replace("_", " "), justify="right")
    shown.add_column("seeds", justify="right")
    cells: dict[str, list[tuple[float, float]]] = {}
    for metric in metrics:
        curve = [computed(curves, method)[metric].transpose("seed", "step").values for method in methods]
        at = np.append(0, np.flatnonzero(measured(curves, metric)))[-1]
        cells[metric] = [tuple(map(float, mean_and_error(lanes[:, at]))) for lanes in curve]  # type: ignore[misc]
    best = {metric: _best(task.metrics, metric, [mean for mean, _ in values]) for metric, values in cells.items()}
    for i, method in enumerate(methods):
        diverged = divergence(curves, method) is not None
        row = [
            _cell(*cells[metric][i], bold=cells[metric][i][0] == best[metric], diverged=diverged) for metric in metrics
        ]
        shown.add_row(label(curves, method), *row, str(computed(curves, method).sizes["seed"]))
    start = computed(curves, methods[0])
    first = [float(start[metric].values[..., 0].mean()) for metric in metrics]
    shown.add_section()
    shown.add_row(Text("start", style="dim"), *[Text(_number(value), style="dim") for value in first], "")
    return shown


def _best(described: object, metric: str, means: list[float]) -> float | None:
    finite = [mean for mean in means if np.isfinite(mean)]
    info = described.get(metric)  # type: ignore[attr-defined]
    if not finite or info is None:
        return None
    return max(finite) if info.higher_is_better else min(finite)


def _cell(mean: float, error: float, *, bold: bool, diverged: bool) -> Text:
    text = "diverged" if diverged and not np.isfinite(mean) else _number(mean)
    if np.isfinite(mean) and np.isfinite(error):
        text += f" ± {_number(error)}"
    return Text(text, style="bold" if bold else "")


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "–"
