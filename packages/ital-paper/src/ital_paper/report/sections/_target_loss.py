"""Teachers that use the loss of their own target, compared with teachers that assume it is zero."""

import itertools

from ital import report
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.plan import BY_LOSS, zero_loss_conditions
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._tables import mean_in_words

METRICS = {"distance": "Distance", "accuracy": "Simplification accuracy"}
CAPTION = (
    "The loss that the teacher assumes for its target: its own, the paper's l(⟨ω*, x⟩, y), as in "
    "all other results, or zero, as in the authors' code. Mean ± SE at the end, uniform start."
)


def target_loss_table(context: Context, task: str) -> list[report.Block]:
    """Make a table with one row per teacher and method, for tasks that were taught both ways."""
    rows = []
    for condition in zero_loss_conditions([task]):
        own = context.data.experiments.get(condition)
        zero = context.data.zero_loss.get(condition)
        if own is not None and zero is not None:
            rows += [_method_row(own, zero, method) for method in BY_LOSS]
    if not rows:
        return []
    columns = itertools.product(METRICS.values(), ("own", "zero"))
    heads = ("teacher", "method", *(f"{title}, {loss}" for title, loss in columns))
    return [report.table(heads, rows, caption=CAPTION, numbers_from=2)]


def _method_row(
    own: Evidence,
    zero: Evidence,
    method: str,
) -> tuple[str, ...]:
    ends = [
        mean_in_words(*evidence.end(method, metric))
        for metric, evidence in itertools.product(METRICS, (own, zero))
    ]
    return (own.condition.teacher, own.label(method), *ends)
