"""The supplement's figures, task by task, from both starts; and reward maps where there are any."""

from typing import Any

from ital.reproduce import _blocks, _figures, _maps
from ital.reproduce._blocks import Block
from ital.reproduce._claims import label
from ital.reproduce._data import Evidence
from ital.reproduce._numbers import number
from ital.reproduce._plan import STARTS, TASKS
from ital.reproduce.sections._context import Context

FEW = 5  # measured steps: the lines between them are no curves
LEAD = (
    "The cooperative teacher, every panel of the paper's main and supplementary figures, and the same from the other "
    "start. Behind each task: the share of the distance at the start that is left at the end, uniform start."
)


def build(context: Context) -> list[Block]:
    """Every task with the cooperative teacher, from both starts; the first in sight, the others folded."""
    content: list[Block] = []
    for task in TASKS:
        starts = [one for start in STARTS if (one := context.data.get(start, task, "cooperative"))]
        shown = [block for one in starts for block in figure(one, context.scale.note)]
        maps: list[dict[str, Any]] = _maps.stored(context.out, task) if starts else []
        shown += _blocks.figure(
            f"maps-{task}", "What a naive and an aware learner take the rewards to be", maps,
            "Reward of entering each cell, with the policy that follows from it, on one seed; the truth last.",
            columns=3, note=context.scale.note,
        )  # fmt: skip
        title = f"{starts[0].task.title}. Left of the distance: {left(starts[0])}" if starts else ""
        content += _blocks.folded(title, shown, unfolded=not content)
    return [_blocks.paragraph(LEAD), *content] if content else []


def left(one: Evidence) -> str:
    """What is left of the distance at the end, for some methods, in words."""
    methods = [method for method in ("batch", "imt", "ital-2", "ital") if one.has(method)]
    return ", ".join(f"{label(one, method)} {number(float(one.left(method).mean()))}" for method in methods)


def figure(one: Evidence, note: str) -> list[Block]:
    """All panels of one experiment, with what is left of the distance in words."""
    task, start, teacher = one.condition.task, one.condition.start, one.condition.teacher
    caption = (
        f"{one.task.title}: {teacher} teacher, {start} start; mean over {one.curves.sizes['seed']} seeds, bands ± 1 "
        f"SE. Left of the distance at the end: {left(one)}."
    )
    if len(one.curve(_figures.shown_methods(one)[0])[0]) <= FEW:
        caption += " Few points, for its exam is slow."
    panels = _figures.all_panels(one)
    name, title = f"{task}-{teacher}-{_figures.name(start)}", f"{task}: {teacher} teacher, {start} start"
    return _blocks.figure(name, title, panels, caption, columns=max(3, len(panels)), note=note)
