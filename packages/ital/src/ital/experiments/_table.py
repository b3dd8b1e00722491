"""Tables on the terminal: of a run, of a sweep, and of comparisons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ital import tuning
from ital.errors import Incomplete
from ital.experiments._run import Outcome
from ital.experiments._sweep import Sweep
from ital.figures import in_legend_order, label
from ital.results import (
    behind_note,
    computed,
    divergence,
    divergence_note,
    mean_and_error,
    measured,
    metrics_of,
    questions_of,
)
from ital.statistics import decimals, number, p_value, signed
from ital.tasks import Metric

if TYPE_CHECKING:
    import pandas as pd


def print_outcome(outcome: Outcome, console: Console | None = None) -> None:
    """Print mean ± standard error at the last step per method (best in bold), divergence notes, and the files.

    Args:
        outcome: what :func:`run` returned.
        console: where to print; None for standard output.
    """
    console = console or Console()
    for part in _tables_that_fit(outcome, console):
        console.print(part)
    for method in outcome.curves["learner"].values:
        note = divergence_note(outcome.curves, method, "a smaller --lr or --beta")
        if note is not None:
            console.print(Text(note, style="bold red"), soft_wrap=True)
    if outcome.curves.attrs.get("beta") == "auto":
        better_high = [
            name for name, metric in outcome.task.metrics.items() if metric.higher_is_better
        ]
        behind = behind_note(outcome.curves, better_high, ("--beta", "--lr"))
        if behind is not None:
            console.print(Text(behind, style="bold"), soft_wrap=True)
    _print_files(outcome, console)


def _print_files(outcome: Outcome | Sweep, console: Console) -> None:
    if not outcome.lanes_computed:
        console.print("All results were stored already; nothing was computed.")
    for file in outcome.files:
        console.print(str(file), soft_wrap=True, highlight=False)


def _tables_that_fit(outcome: Outcome, console: Console) -> list[Table]:
    """The table of the last step; where the console is too narrow for it, several with some metrics each."""
    tables: list[Table] = []
    shown: list[str] = []
    for metric in metrics_of(outcome.curves):
        wider = table(outcome, [*shown, metric])
        if shown and not _fits(wider, console):
            shown = []
            wider = table(outcome, [metric])
        if shown:
            tables.pop()
        shown.append(metric)
        tables.append(wider)
    return tables


def _fits(table: Table, console: Console) -> bool:
    """Whether no cell of a table must be wrapped or cut."""
    return (
        console.measure(table, options=console.options.update(width=10_000)).maximum
        <= console.width
    )


def table(outcome: Outcome, metrics: Sequence[str]) -> Table:
    """A table of the last step: a row per method, a column per metric."""
    curves, task = outcome.curves, outcome.task
    last = int(curves["step"].values[-1])
    title = f"{task.title}, {curves.attrs['teacher']} teacher: step {last}, mean ± standard error over seeds"
    shown = Table(title=title, title_justify="left")
    shown.add_column("method", no_wrap=True)
    methods = in_legend_order([str(m) for m in curves["learner"].values])
    for metric in metrics:
        shown.add_column(metric.replace("_", " "), justify="right", no_wrap=True)
    shown.add_column("seeds", justify="right")
    cells: dict[str, list[tuple[float, float]]] = {}
    for metric in metrics:
        curve = [
            computed(curves, method)[metric].transpose("seed", "step").values for method in methods
        ]
        last_measured = np.append(0, np.flatnonzero(measured(curves, metric)))[-1]
        ends = [
            mean_and_error(lanes[:, last_measured], questions_of(curves, metric)) for lanes in curve
        ]
        cells[metric] = [(float(mean), float(error)) for mean, error in ends]
    best = {
        metric: _best(task.metrics.get(metric), [mean for mean, _ in cells[metric]])
        for metric in metrics
    }
    for i, method in enumerate(methods):
        diverged = divergence(curves, method) is not None
        row = [
            _cell(*cells[metric][i], bold=cells[metric][i][0] == best[metric], diverged=diverged)
            for metric in metrics
        ]
        shown.add_row(label(curves, method), *row, str(computed(curves, method).sizes["seed"]))
    start = computed(curves, methods[0])
    first = [float(start[metric].values[..., 0].mean()) for metric in metrics]
    shown.add_section()
    shown.add_row(
        Text("start", style="dim"), *[Text(_number(value), style="dim") for value in first], ""
    )
    return shown


def print_sweep(sweep: Sweep, console: Console | None = None) -> None:
    """Print each method's best setting, the winner, where awareness helps, and the files.

    Args:
        sweep: what :func:`sweep` returned.
        console: where to print; None for standard output.
    """
    console = console or Console()
    verdicts = sweep.verdicts()
    tables = [
        best_settings(sweep, verdicts, details) for details in (("of start", "edge"), ("edge",), ())
    ]
    console.print(next((table for table in tables if _fits(table, console)), tables[-1]))
    for verdict in verdicts:
        for line in conclusions(sweep, verdict):
            console.print(line, soft_wrap=True, highlight=False)
    if any(setting.edge for verdict in verdicts for setting in verdict.best):
        console.print(
            "edge: this value is at the end of its range; a wider grid may contain a better one. "
            "Rerun the command with more values: only those are computed.",
            soft_wrap=True,
        )
    _print_files(sweep, console)


def print_failures(incomplete: Incomplete, console: Console | None = None) -> None:
    """Print each failed cell with the traceback of its last attempt and the command to try it again.

    Args:
        incomplete: the error that :func:`run` or :func:`sweep` raised.
        console: where to print; None for standard error.
    """
    console = console or Console(stderr=True)
    for failure in incomplete.failures:
        cell = failure.cell
        line = f"[bold red]failed[/] after {failure.attempts} attempts: cell {cell}"
        console.print(line, soft_wrap=True, highlight=False)
        console.print(Text(failure.traceback.rstrip()), soft_wrap=True)
        settings = cell.experiment.settings
        if isinstance(settings.task, str):
            again = f"with: {cell.experiment.command(cell.seeds, incomplete.out)}"
        else:
            again = "from Python: the same call computes only what is missing"
        console.print(Text(f"try it again {again}"), soft_wrap=True)


def best_settings(sweep: Sweep, verdicts: list[tuning.Verdict], details: Sequence[str]) -> Table:
    """A table of each method at its own best setting: a section per step, the winner first and in bold.

    ``details`` names the last columns, which a narrow console leaves out.
    """
    grid = sweep.grid
    metric = tuning.metric_of(grid).replace("_", " ")
    title = (
        f"{sweep.task.title}, {grid.attrs['teacher']} teacher: each method at its own best setting"
    )
    shown = Table(title=title, title_justify="left")
    shown.add_column("step", justify="right")
    shown.add_column("method", no_wrap=True)
    for column in ("η", "β", f"{metric} ± SE", *details):
        shown.add_column(column, justify="left" if column == "edge" else "right", no_wrap=True)
    for verdict in verdicts:
        for rank, best in enumerate(verdict.best):
            is_first = rank == 0
            detail = {
                "of start": f"{best.share:.2g}" if np.isfinite(best.share) else "",
                "edge": ", ".join(best.edge),
            }
            shown.add_row(
                str(verdict.step) if is_first else "",
                Text(best.label, style="bold" if is_first else ""),
                f"{best.lr:g}",
                "" if best.beta is None else f"{best.beta:g}",
                _cell(best.mean, best.error, bold=is_first, diverged=not np.isfinite(best.mean)),
                *[detail[name] for name in details],
            )
        shown.add_section()
    return shown


def conclusions(sweep: Sweep, verdict: tuning.Verdict) -> list[str]:
    """Lines about a step: the winner, best naive against best aware, and in how many settings awareness helps."""
    grid, step = sweep.grid, verdict.step
    better = "closer" if tuning.metric_of(grid).startswith("distance") else "better"
    first, second, closer = verdict.best[0], verdict.best[1:2], verdict.closer
    if second and first.mean == second[0].mean:
        lines = [f"Step {step}: {first} and {second[0]} tie."]
    else:
        than = (
            ""
            if closer is None
            else f", {better} than {second[0]} on {closer[0]} of {closer[1]} seeds"
        )
        lines = [f"Step {step}: {first} wins{than}."]
    if verdict.naive and verdict.aware:
        naive, aware = verdict.naive, verdict.aware
        lines.append(
            f"  Best naive: {naive}, {_number(naive.mean)}. Best aware: {aware}, {_number(aware.mean)}."
        )
    for method in tuning.aware_methods(grid):
        over_naive, over_imt = (
            tuning.pays(grid, method, step),
            tuning.pays_at_same_lr(grid, method, step),
        )
        settings = int(tuning.ran(grid).sel({"learner": method}).sum())
        counted = [
            f"{int(where.sum())} of {settings} settings is {better} than {whom}"
            for where, whom in ((over_naive, "the best naive"), (over_imt, "IMT at the same η"))
            if where is not None
        ]
        if counted:
            lines.append(f"  {label(grid, method)} in {', in '.join(counted)}.")
    return lines


def _best(described: Metric | None, means: list[float]) -> float | None:
    finite = [mean for mean in means if np.isfinite(mean)]
    if not finite or described is None:
        return None
    return max(finite) if described.higher_is_better else min(finite)


def _cell(mean: float, error: float, *, bold: bool, diverged: bool) -> Text:
    text = "diverged" if diverged and not np.isfinite(mean) else _number(mean)
    if np.isfinite(mean) and np.isfinite(error):
        text += f" ± {_number(error)}"
    return Text(text, style="bold" if bold else "")


def _number(value: float) -> str:
    return number(value) if np.isfinite(value) else "–"


def print_differences(
    title: str, comparison: "pd.DataFrame", console: Console | None = None
) -> None:
    """Print a comparison: mean difference, its 95 % interval, p after Holm, and P(improvement).

    Args:
        title: the title of the table.
        comparison: what :func:`ital.results.compare` returned; if empty, nothing is printed.
        console: where to print; None for standard output.
    """
    if comparison.empty:
        return
    shown = Table(title=title, title_justify="left")
    for column in ("metric", "method", "minus"):
        shown.add_column(column)
    for column in ("difference", "95 % interval", "seeds", "p (Holm)", "P(improvement)"):
        shown.add_column(column, justify="right")
    for row in comparison.to_dict("records"):
        interval = (
            f"[{number(row['low'])}, {number(row['high'])}]" if np.isfinite(row["low"]) else "–"
        )
        shown.add_row(
            row["metric"].replace("_", " "),
            row["method"],
            row["against"],
            signed(row["difference"]),
            interval,
            str(row["n"]),
            p_value(row["p_holm"]),
            decimals(row["improvement"]),
        )
    (console or Console()).print(shown)
