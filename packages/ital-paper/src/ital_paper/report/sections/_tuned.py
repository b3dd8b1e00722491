"""Every method at its own best step size and β."""

from typing import Any

from ital import report, tuning
from ital.figures import sweep_panels
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.report.sections._context import Context

LEAD = (
    "One step size for all favours methods that make long steps. Here each method has its own best step size η, and "
    "its own best β if it has one. Methods are listed from best to worst, with the distance they reach. A star means "
    "that the best setting lies at the end of its range, so that the grid limits the method."
)
CAPTION = (
    "Every step size η and every β. Above: distance at the end, mean over seeds. Below: median number of steps to a "
    "tenth of the initial distance. Framed: the best of each method. ×: diverged, or farther away than at the start. "
    "–: not reached. ●: closer than every naive method at its own best η."
)


def build(context: Context) -> list[report.Block]:
    """A table of the best settings, and one map per task and start: the first is visible, the others are folded."""
    rows: list[tuple[Any, ...]] = []
    maps: list[report.Block] = []
    for condition, grid in context.data.sweeps.items():
        for verdict in (tuning.judge(grid, step) for step in tuning.judged_steps(grid)):
            best = [
                f"{tuned} {number(tuned.mean)}{'*' if tuned.edge else ''}" for tuned in verdict.best
            ]
            rows.append((condition.task, condition.start, verdict.step, *best))
        seeds = grid.sizes["seed"]
        title = f"{condition.task}, {condition.start} start: step sizes and β, {seeds} seeds"
        shown = report.figure(
            f"sweep-{condition.task}-{figures.name(condition.start)}", title, sweep_panels(grid), CAPTION, columns=2,
            note=context.scale.noted(seeds, context.scale.steps),
        )  # fmt: skip
        maps += report.folded(title, shown) if maps else shown
    if not rows:
        return []
    heads = ("task", "start", "step", "best", *(["then"] * (max(map(len, rows)) - 4)))
    return [
        report.paragraph(LEAD),
        report.table(heads, rows, caption="Each method at its best setting.", numbers_from=2),
        *maps,
    ]
