"""Teachers that use the loss of their own target, compared with teachers that assume it is zero."""

from ital import report
from ital_paper.experiments.plan import BY_LOSS, zero_loss_conditions
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._tables import spread

METRICS = {"distance": "Distance", "accuracy": "Simplification accuracy"}
CAPTION = (
    "The loss that the teacher assumes for its target: its own, the paper's l(⟨ω*, x⟩, y), as in all other results, or "
    "zero, as in the authors' code. Mean ± SE at the end, uniform start."
)


def build(context: Context, task: str) -> list[report.Block]:
    """A table with one row per teacher and method, for tasks that were taught both ways."""
    rows = []
    for condition in zero_loss_conditions([task]):
        own, zero = context.data.experiments.get(condition), context.data.zero_loss.get(condition)
        if own is not None and zero is not None:
            for method in BY_LOSS:
                ends = [
                    spread(*by_loss.end(method, metric))
                    for metric in METRICS
                    for by_loss in (own, zero)
                ]
                rows.append((condition.teacher, own.label(method), *ends))
    heads = (
        "teacher",
        "method",
        *(f"{title}, {loss}" for title in METRICS.values() for loss in ("own", "zero")),
    )
    return [report.table(heads, rows, caption=CAPTION, numbers_from=2)] if rows else []
