"""The paper's adversarial figure: all panels of all tasks."""

from ital.reproduce import _blocks, _charts, _figures
from ital.reproduce._blocks import Block
from ital.reproduce._charts import Panel
from ital.reproduce._claims import label
from ital.reproduce._data import Evidence
from ital.reproduce._numbers import number
from ital.reproduce._plan import STARTS, TASKS
from ital.reproduce.sections._context import Context
from ital.reproduce.sections._main import TASKS as MAIN

LEAD = (
    "The adversarial teacher chooses what brings the learner least, or leads him away. Batch and SGD do not listen to "
    "her: their curves show what the mini-batches alone would teach. An aware learner has a negative β, and turns her "
    "choices round."
)
COLUMNS = 3
SIZE = (3.3, 2.2)


def build(context: Context) -> list[Block]:
    """What is left of the distance, the six tasks of the main figure, and behind a fold every panel of every task."""
    there = list(context.data.every("adversarial", "batch", "imt", "ital"))
    if not there:
        return []
    note = context.scale.note
    six = [one for task in MAIN if (one := context.data.get(STARTS[0], task, "adversarial"))]
    return [
        _blocks.paragraph(LEAD),
        *_blocks.figure(
            "adversarial", "Adversarial teacher: distance to the target",
            [_figures.curves(one, "distance", one.task.title) for one in six],
            "The tasks of the main figure, uniform start, mean over seeds, bands ± 1 SE.", note=note,
        ),
        table(there),
        *(
            block
            for start in STARTS
            for block in _blocks.folded(
                f"Every panel of every task, {start} start",
                _blocks.figure(
                    f"adversarial-{_figures.name(start)}", f"Adversarial teacher, {start} start",
                    panels(context, start), "A row per task, mean over seeds, bands ± 1 SE.",
                    columns=COLUMNS, note=note,
                ),
            )
        ),
    ]  # fmt: skip


def table(there: list[Evidence]) -> Block:
    """What is left of the distance."""
    methods = [name for name in ("batch", "sgd", "imt", "ital-2", "ital-5", "ital") if there[0].has(name)]
    rows = [
        (one.condition.task, one.condition.start, *(number(float(one.left(name).mean())) for name in methods))
        for one in there
    ]
    heads = ("task", "start", *(label(there[0], name) for name in methods))
    caption = "Share of the distance at the start that is left at the end; above 1, the learner was led away."
    return _blocks.table(heads, rows, caption=caption, numbers_from=2)


def panels(context: Context, start: str) -> list[Panel]:
    """All panels of all tasks, each task in a row of its own."""
    found = []
    for one in [one for task in TASKS if (one := context.data.get(start, task, "adversarial"))]:
        row = [_figures.curves(one, metric, one.condition.task, SIZE) for metric in one.panels()]
        found += row + [_charts.blank(SIZE)] * (-len(row) % COLUMNS)
    return found
