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
    import xarray as xr

WEIGHT = "weight_"  # prefix of signals: the probability of one of many hypotheses


def print_outcome(outcome: Outcome, console: Console | None = None) -> None:
    """Print the last step, notes about divergence, and the files.

    The table has mean ± standard error of each method; the best is in bold.

    Args:
        outcome: what :func:`run` returned.
        console: where to print; None for standard output.
    """
    console = console or Console()
    for table in _tables_that_fit(outcome, console):
        console.print(table)
    for method in outcome.curves["learner"].values:
        note = divergence_note(outcome.curves, method, "a smaller --lr or --beta")
        if note is not None:
            console.print(Text(note, style="bold red"), soft_wrap=True)
    if outcome.curves.attrs.get("beta") == "auto":
        described = outcome.task.metrics.items()
        better_high = [name for name, metric in described if metric.higher_is_better]
        note = behind_note(outcome.curves, better_high, ("--beta", "--lr"))
        if note is not None:
            console.print(Text(note, style="bold"), soft_wrap=True)
    _print_files(outcome, console)


def _print_files(outcome: Outcome | Sweep, console: Console) -> None:
    if not outcome.lanes_computed:
        console.print("All results were stored already; nothing was computed.")
    for file in outcome.files:
        console.print(str(file), soft_wrap=True, highlight=False)


def _tables_that_fit(outcome: Outcome, console: Console) -> list[Table]:
    """Return the table of the last step, or several with some metrics each on a narrow console."""
    tables: list[Table] = []
    metrics_in_last: list[str] = []
    for metric in metrics_of(outcome.curves):
        # What a learner thinks of every kind of teacher is a column each: files have them.
        if metric.startswith(WEIGHT):
            continue
        wider = last_step_table(outcome, [*metrics_in_last, metric])
        if tables and _fits(wider, console):
            tables[-1] = wider
            metrics_in_last.append(metric)
        else:
            tables.append(last_step_table(outcome, [metric]))
            metrics_in_last = [metric]
    return tables


def _fits(table: Table, console: Console) -> bool:
    """Return whether no cell of a table must be wrapped or cut."""
    unlimited = console.options.update(width=10_000)
    needed = console.measure(table, options=unlimited)
    return needed.maximum <= console.width


def last_step_table(outcome: Outcome, metrics: Sequence[str]) -> Table:
    """Make a table of the last step: a row per method, a column per metric."""
    curves = outcome.curves
    task = outcome.task
    last = int(curves["step"].values[-1])
    title = (
        f"{task.title}, {curves.attrs['teacher']} teacher: step {last}, "
        "mean ± standard error over seeds"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("method", no_wrap=True)
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right", no_wrap=True)
    table.add_column("seeds", justify="right")

    methods = in_legend_order([str(name) for name in curves["learner"].values])
    columns = {}
    best = {}
    for metric in metrics:
        column = _last_means(curves, metric, methods)
        means = [mean for mean, _ in column]
        columns[metric] = column
        best[metric] = _best_mean(task.metrics.get(metric), means)
    for row, method in enumerate(methods):
        diverged = divergence(curves, method) is not None
        cells = []
        for metric, column in columns.items():
            mean, error = column[row]
            is_best = mean == best[metric]
            cell = _mean_cell(mean, error, bold=is_best, diverged=diverged)
            cells.append(cell)
        seeds = computed(curves, method).sizes["seed"]
        table.add_row(label(curves, method), *cells, str(seeds))

    # All methods have the same start.
    start = computed(curves, methods[0]).isel(step=0)
    words = ["start"]
    for metric in metrics:
        mean = float(start[metric].values.mean())
        words.append(_number_or_dash(mean))
    table.add_section()
    dimmed = [Text(word, style="dim") for word in words]
    table.add_row(*dimmed, "")
    return table


def _last_means(
    curves: "xr.Dataset",
    metric: str,
    methods: Sequence[str],
) -> list[tuple[float, float]]:
    """Return mean and standard error of each method where a metric was last measured."""
    # Some metrics are measured rarely, so not at the last step.
    measured_steps = np.flatnonzero(measured(curves, metric))
    last_measured = np.append(0, measured_steps)[-1]
    questions = questions_of(curves, metric)
    means = []
    for method in methods:
        lanes = computed(curves, method)[metric]
        by_seed = lanes.transpose("seed", "step").values
        mean, error = mean_and_error(by_seed[:, last_measured], questions)
        means.append((float(mean), float(error)))
    return means


def print_sweep(sweep: Sweep, console: Console | None = None) -> None:
    """Print each method's best setting, the winner, where awareness helps, and the files.

    Args:
        sweep: what :func:`sweep` returned.
        console: where to print; None for standard output.
    """
    console = console or Console()
    verdicts = sweep.verdicts()
    # The first that fits, else the narrowest.
    for details in (("of start", "edge"), ("edge",), ()):
        table = best_settings(sweep, verdicts, details)
        if _fits(table, console):
            break
    console.print(table)
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
    """Print each failed cell, the traceback of its last attempt and the command to try it again.

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
    """Make a table of each method at its own best setting.

    It has a section per step, the winner first and in bold.

    Args:
        sweep: the sweep.
        verdicts: one per step.
        details: names of the last columns, which a narrow console leaves out.
    """
    grid = sweep.grid
    metric = tuning.metric_of(grid).replace("_", " ")
    title = (
        f"{sweep.task.title}, {grid.attrs['teacher']} teacher: each method at its own best setting"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("step", justify="right")
    table.add_column("method", no_wrap=True)
    for column in ("η", "β", f"{metric} ± SE", *details):
        table.add_column(column, justify="left" if column == "edge" else "right", no_wrap=True)
    for verdict in verdicts:
        for rank, best in enumerate(verdict.best):
            is_first = rank == 0
            detail = {
                "of start": f"{best.share:.2g}" if np.isfinite(best.share) else "",
                "edge": ", ".join(best.edge),
            }
            table.add_row(
                str(verdict.step) if is_first else "",
                Text(best.label, style="bold" if is_first else ""),
                f"{best.lr:g}",
                "" if best.beta is None else f"{best.beta:g}",
                _mean_cell(
                    best.mean,
                    best.error,
                    bold=is_first,
                    diverged=not np.isfinite(best.mean),
                ),
                *[detail[name] for name in details],
            )
        table.add_section()
    return table


def conclusions(sweep: Sweep, verdict: tuning.Verdict) -> list[str]:
    """Write lines about a step of a sweep.

    They name the winner, compare the best naive with the best aware method, and count the settings
    in which awareness helps.
    """
    grid = sweep.grid
    step = verdict.step
    better = "closer" if tuning.metric_of(grid).startswith("distance") else "better"
    lines = [_winner_in_words(verdict, better)]
    if verdict.naive and verdict.aware:
        naive = f"{verdict.naive}, {_number_or_dash(verdict.naive.mean)}"
        aware = f"{verdict.aware}, {_number_or_dash(verdict.aware.mean)}"
        lines.append(f"  Best naive: {naive}. Best aware: {aware}.")
    for method in tuning.aware_methods(grid):
        was_run = tuning.ran(grid).sel({"learner": method})
        settings = int(was_run.sum())
        # (lr, beta): where the method is better; None without a method to compare with
        comparisons = {
            "the best naive": tuning.pays(grid, method, step),
            "IMT at the same η": tuning.pays_at_same_lr(grid, method, step),
        }
        counted = []
        for other, where in comparisons.items():
            if where is None:
                continue
            times = int(where.sum())
            counted.append(f"{times} of {settings} settings is {better} than {other}")
        if counted:
            lines.append(f"  {label(grid, method)} in {', in '.join(counted)}.")
    return lines


def _winner_in_words(verdict: tuning.Verdict, better: str) -> str:
    """Name the winner of a step, and on how many seeds it is better than the second."""
    winner, *others = verdict.best
    at = f"Step {verdict.step}"
    if others and winner.mean == others[0].mean:
        return f"{at}: {winner} and {others[0]} tie."
    if verdict.closer is None:
        return f"{at}: {winner} wins."
    on, of = verdict.closer
    return f"{at}: {winner} wins, {better} than {others[0]} on {on} of {of} seeds."


def _best_mean(described: Metric | None, means: list[float]) -> float | None:
    """Return the best of the finite means; None if it is not known whether more is better."""
    finite = [mean for mean in means if np.isfinite(mean)]
    if not finite or described is None:
        return None
    if described.higher_is_better:
        return max(finite)
    return min(finite)


def _mean_cell(mean: float, error: float, *, bold: bool, diverged: bool) -> Text:
    text = _number_or_dash(mean)
    is_finite = np.isfinite(mean)
    if diverged and not is_finite:
        text = "diverged"
    if is_finite and np.isfinite(error):
        text += f" ± {_number_or_dash(error)}"
    style = "bold" if bold else ""
    return Text(text, style=style)


def _number_or_dash(value: float) -> str:
    return number(value) if np.isfinite(value) else "–"


def print_differences(
    title: str,
    comparison: "pd.DataFrame",
    console: Console | None = None,
) -> None:
    """Print a comparison: mean difference, its 95 % interval, p after Holm, and P(improvement).

    Args:
        title: the title of the table.
        comparison: what :func:`ital.results.compare` returned; if empty, nothing is printed.
        console: where to print; None for standard output.
    """
    if comparison.empty:
        return
    table = Table(title=title, title_justify="left")
    for column in ("metric", "method", "minus"):
        table.add_column(column)
    for column in ("difference", "95 % interval", "seeds", "p (Holm)", "P(improvement)"):
        table.add_column(column, justify="right")
    for row in comparison.to_dict("records"):
        interval = "–"
        if np.isfinite(row["low"]):
            interval = f"[{number(row['low'])}, {number(row['high'])}]"
        table.add_row(
            row["metric"].replace("_", " "),
            row["method"],
            row["against"],
            signed(row["difference"]),
            interval,
            str(row["n"]),
            p_value(row["p_holm"]),
            decimals(row["improvement"]),
        )
    (console or Console()).print(table)
