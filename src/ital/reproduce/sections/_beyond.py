"""Beyond the paper: a learner who finds out what kind of teacher he has, and a neural one."""

import numpy as np

from ital.figures import colours, in_legend_order
from ital.reproduce import _blocks, _charts, _figures
from ital.reproduce._blocks import Block
from ital.reproduce._claims import label
from ital.reproduce._data import Evidence
from ital.reproduce._numbers import number
from ital.reproduce._plan import NEURAL
from ital.reproduce.sections._context import Context

ADAPTIVE = "ital-adaptive"


def build(context: Context) -> list[Block]:
    """Who is ahead with every teacher, trust over time, and the network."""
    there = list(context.data.beyond.values())
    linear = [one for one in there if one.condition.task != NEURAL]
    neural = [one for one in there if one.condition.task == NEURAL]
    note = context.scale.note
    content: list[Block] = []
    if linear:
        content.append(
            _blocks.paragraph(
                "ITAL must be told whether its teacher helps and how much. ITAL adaptive is told nothing: it compares "
                "her choices with what it can predict of them, and trusts her as far as they agree. The switching "
                "teacher helps for half of the run and is an adversary from then on."
            )
        )
        content.append(_left(linear))
        caption = (
            "Trust of ITAL adaptive, from 1 (she helps) over 0 (ignore her) to −1 (she harms): a line per teacher, "
            "mean over seeds, bands ± 1 standard error."
        )
        tasks = list(dict.fromkeys(one.condition.task for one in linear))
        panels = [_trust([one for one in linear if one.condition.task == task]) for task in tasks]
        content += _blocks.figure("trust", "What the learner thinks of his teacher", panels, caption, note=note)
    caption = (
        "A neural network, all layers learning, taught on MNIST pictures by a teacher who has another network. The "
        "matched controls take steps as long as ITAL's in the naive directions."
    )
    panels = [
        _figures.curves(one, metric, f"{one.condition.teacher} teacher", methods=_methods(one))
        for one in neural
        for metric in ("accuracy", "loss")
    ]
    return content + _blocks.figure("neural", "A neural learner", panels, caption, columns=2, note=note)


def _methods(one: Evidence) -> list[str]:
    """All methods, controls among them."""
    return in_legend_order([str(name) for name in one.curves["method"].values])


def _of_start(left: float) -> str:
    return f"{number(100 * left)} %" if np.isfinite(left) else number(left)


def _left(several: list[Evidence]) -> Block:
    """What is left of the distance: a row per task and teacher, a column per method."""
    methods = _methods(several[0])
    rows, best = [], []
    for row, one in enumerate(several):
        means = [float(one.left(method).mean()) for method in methods]
        rows.append([one.condition.task, one.condition.teacher, *(_of_start(mean) for mean in means)])
        best.append((row, 2 + int(np.argmin([mean if np.isfinite(mean) else np.inf for mean in means]))))
    heads = ["Task", "Teacher", *(label(several[0], method) for method in methods)]
    caption = "Share of the distance at the start that is left at the end, mean over seeds; the least in bold."
    return _blocks.table(heads, rows, caption=caption, numbers_from=2, best=best)


def _trust(several: list[Evidence]) -> _charts.Panel:
    """Trust over time, a line per teacher."""
    shades = colours([one.condition.teacher for one in several])
    marks = [_charts.rule("y", 0.0)]
    for one in several:
        steps, values = one.curve(ADAPTIVE, "trust")
        error = values.std(axis=0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.zeros(len(steps))
        marks.append(
            _charts.line(one.condition.teacher, shades[one.condition.teacher], steps, values.mean(axis=0), error)
        )
    return _charts.panel(several[0].task.title, marks, x="Training iteration", y="Trust", y_range=(-1.05, 1.05))
