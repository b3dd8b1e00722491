"""Every method at its own best step size and β."""

from typing import TYPE_CHECKING

from ital import report, tuning
from ital.figures import sweep_panels
from ital.statistics import number
from ital_paper.experiments.plan import Condition, as_file_name
from ital_paper.report.sections._context import Context

if TYPE_CHECKING:
    import xarray as xr

LEAD = (
    "One step size for all favours methods that make long steps. Here each method has its own best "
    "step size η, and its own best β if it has one. Methods are listed from best to worst, with "
    "the distance they reach. A star means that the best setting lies at the end of its range, so "
    "that the grid limits the method."
)
CAPTION = (
    "Every step size η and every β. Above: distance at the end, mean over seeds. Below: median "
    "number of steps to a tenth of the initial distance. Framed: the best of each method. ×: "
    "diverged, or farther away than at the start. –: not reached. ●: closer than every naive "
    "method at its own best η."
)


def tuned_section(context: Context) -> list[report.Block]:
    """Show a table of the best settings, and one map per task and start.

    The first map is visible, the others are folded.
    """
    rows: list[tuple[object, ...]] = []
    maps: list[report.Block] = []
    for condition, grid in context.data.sweeps.items():
        rows += _best_rows(condition, grid)
        seeds = grid.sizes["seed"]
        title = f"{condition.task}, {condition.start} start: step sizes and β, {seeds} seeds"
        figure = report.figure(
            f"sweep-{condition.task}-{as_file_name(condition.start)}",
            title,
            sweep_panels(grid),
            CAPTION,
            columns=2,
            note=context.scale.noted(seeds, context.scale.steps),
        )
        maps += report.folded(title, figure) if maps else figure
    if not rows:
        return []
    return [report.paragraph(LEAD), _best_table(rows), *maps]


def _best_rows(condition: Condition, grid: "xr.Dataset") -> list[tuple[object, ...]]:
    """Return a row per judged step: each method at its best, from best to worst."""
    rows = []
    for step in tuning.judged_steps(grid):
        verdict = tuning.judge(grid, step)
        best = []
        for tuned in verdict.best:
            star = "*" if tuned.edge else ""
            best.append(f"{tuned} {number(tuned.mean)}{star}")
        rows.append((condition.task, condition.start, verdict.step, *best))
    return rows


def _best_table(rows: list[tuple[object, ...]]) -> report.Block:
    # Task, start, step and best method, then as many columns as the longest row needs.
    others = max(len(row) for row in rows) - 4
    heads = ("task", "start", "step", "best", *["then"] * others)
    return report.table(heads, rows, caption="Each method at its best setting.", numbers_from=2)
