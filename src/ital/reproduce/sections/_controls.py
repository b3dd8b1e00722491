"""The fair controls, which tell awareness from longer steps."""

import numpy as np

from ital.figures import colours
from ital.reproduce import _blocks, _charts, _figures
from ital.reproduce._blocks import Block
from ital.reproduce._claims import label
from ital.reproduce._data import Evidence
from ital.reproduce._numbers import number
from ital.reproduce.sections._context import Context

METHODS = ("batch", "imt", "ital", "imt-matched", "batch-matched")
MARKERS = {"batch": "s", "imt": "D", "ital": "o", "imt-matched": "d", "batch-matched": "v"}
SMALLEST = 1e-5  # shares below it are drawn there


def build(context: Context) -> list[Block]:
    """What is left of the distance for ITAL and for controls with steps as long: in words, drawn, and as a table."""
    there = list(context.data.every("cooperative", *METHODS))
    if not there:
        return []
    content = [_blocks.paragraph(EXPLAIN), _blocks.paragraph(found(there))]
    panels = [
        panel([one for one in there if one.condition.start == start], f"{start} start")
        for start in _figures.starts_of(context.data)
    ]
    caption = (
        "Share of the distance at the start that is left at the end, mean ± SE over seeds, cooperative teacher; "
        "further left is better. Where there is a part of the parameters that no example can move, it is left out."
    )
    title = "ITAL and controls whose steps are as long"
    content += _blocks.figure("controls", title, panels, caption, columns=2, note=context.scale.note)
    return [*content, table(there)]


EXPLAIN = (
    "An aware step is longer than a naive one, so being ahead of IMT at one step size does not show that a learner has "
    "understood the teacher's choice. The controls go exactly as far as ITAL would from where they are, with the same "
    "mini-batch, choice and β, but straight along the gradient of the chosen example (IMT matched) or the mean "
    "gradient of the mini-batch (Batch matched)."
)
WHY = (
    " Why a plain gradient can win: the aware step goes down the loss of the chosen example and up those of the "
    "others, whose labels are right as well. What is unlearned there has to be learned again, and where labels follow "
    "from the target without noise, the choice says nothing that they do not."
)


def left(one: Evidence) -> dict[str, float]:
    """Per method, the mean share of the distance that is left."""
    return {method: float(one.left(method).mean()) for method in METHODS}


def found(there: list[Evidence]) -> str:
    """In how many settings the controls end closer than ITAL."""
    shares = [left(one) for one in there]
    ahead = {name: sum(own[name] < own["ital"] for own in shares) for name in METHODS[3:]}
    words = (
        f"In {ahead['imt-matched']} of {len(there)} settings IMT matched ends closer to the target than ITAL, in "
        f"{ahead['batch-matched']} of {len(there)} Batch matched does. Where a control is ahead, the lead of ITAL over "
        "IMT at the paper's step size is the length of its steps, not their direction."
    )
    return words + (WHY if ahead["batch-matched"] else "")


def panel(there: list[Evidence], title: str) -> _charts.Panel:
    """A line per task, a point per method."""
    coloured = colours(METHODS)
    marks = [_charts.rule("x", 1.0)]
    marks += [_charts.rule("y", i + 0.5, soft=True) for i in range(len(there) - 1)]
    for j, method in enumerate(METHODS):
        shares = np.array([one.left(method) for one in there])
        mean = shares.mean(axis=1)
        error = shares.std(axis=1, ddof=1) / np.sqrt(shares.shape[1]) if shares.shape[1] > 1 else np.zeros(len(there))
        marks.append(
            _charts.points(
                label(there[0], method),
                coloured[method],
                np.maximum(mean, SMALLEST),
                np.arange(len(there)) + 0.13 * (j - 2),
                np.minimum(error, 0.9 * mean),
                marker=MARKERS[method],
            )
        )
    names = [one.condition.task for one in there]
    return _charts.panel(
        title, marks, x="Distance left, of that at the start (log scale)", log="x",
        y_ticks=(range(len(there)), names), y_range=(len(there) - 0.4, -0.6), size=(4.6, 0.42 * len(there) + 0.9),
    )  # fmt: skip


def table(there: list[Evidence]) -> Block:
    """Shares for all, and final distances of ITAL and the controls."""
    rows, best = [], []
    for i, one in enumerate(there):
        shares = left(one)
        best += [(i, 2 + j) for j, share in enumerate(shares.values()) if share == min(shares.values())]
        ends = [number(float(one.final(method).mean())) for method in METHODS[2:]]
        rows.append((one.condition.task, one.condition.start, *(number(share) for share in shares.values()), *ends))
    names = [label(there[0], method) for method in METHODS]
    heads = ("task", "start", *names, *(f"{name}, distance" for name in names[2:]))
    caption = "Share of the distance that is left at the end (the best in bold), then final distances."
    return _blocks.table(heads, rows, caption=caption, numbers_from=2, best=best)
