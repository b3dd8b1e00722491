"""The fair controls, which separate awareness from longer steps."""

import numpy as np

from ital import report
from ital.figures import charts, colours
from ital.results import mean_and_error
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence
from ital_paper.report.sections._context import Context

CONTROLS = ("imt-matched", "batch-matched")
METHODS = ("batch", "imt", "ital", *CONTROLS)
WITH_DISTANCE = ("ital", *CONTROLS)  # methods whose final distances the table has as well
MARKERS = {"batch": "s", "imt": "D", "ital": "o", "imt-matched": "d", "batch-matched": "v"}
SMALLEST = 1e-5  # smaller shares are drawn at this value
MOST_ERROR = 0.9  # of the mean: the bar of an error must end above zero on a logarithmic axis

EXPLAIN = (
    "An aware step is longer than a naive one. So a lead over IMT at one step size does not show "
    "that a learner has understood the teacher's choice. Each control takes a step exactly as long "
    "as ITAL's would be from the same point, with the same mini-batch, choice and β, but along the "
    "gradient of the chosen example (IMT matched) or along the mean gradient of the mini-batch "
    "(Batch matched)."
)
WHY = (
    " Why a plain gradient can win: the aware step lowers the loss of the chosen example and "
    "raises the losses of the others, whose labels are correct too. The learner has to relearn "
    "what it unlearned there. And if the labels follow from the target without noise, the choice "
    "tells nothing that the labels do not."
)
CAPTION = (
    "Share of the initial distance that is left at the end, mean ± SE over seeds, cooperative "
    "teacher; further left is better. The part of the parameters that no example can change is "
    "left out."
)


def controls_section(context: Context) -> list[report.Block]:
    """Compare ITAL with controls that take equally long steps: in words, a figure and a table."""
    experiments = list(context.data.every("cooperative", *METHODS))
    if not experiments:
        return []
    panels = []
    for start in figures.starts_of(context.data):
        from_start = [each for each in experiments if each.condition.start == start]
        panels.append(_left_panel(from_start, f"{start} start"))
    title = "ITAL and controls with equally long steps"
    return [
        report.paragraph(EXPLAIN),
        report.paragraph(_who_leads(experiments)),
        *report.figure("controls", title, panels, CAPTION, columns=2, note=context.scale.note),
        _controls_table(experiments),
    ]


def _shares(evidence: Evidence) -> dict[str, float]:
    """Return the mean share of the distance left, by method."""
    return {method: float(evidence.left(method).mean()) for method in METHODS}


def _who_leads(experiments: list[Evidence]) -> str:
    """Say in how many settings the controls end closer than ITAL."""
    shares = [_shares(evidence) for evidence in experiments]
    imt_ahead = sum(left["imt-matched"] < left["ital"] for left in shares)
    batch_ahead = sum(left["batch-matched"] < left["ital"] for left in shares)
    words = (
        f"In {imt_ahead} of {len(experiments)} settings IMT matched ends closer to the target than "
        f"ITAL; in {batch_ahead} of {len(experiments)} Batch matched does. Where a control is "
        "ahead, ITAL's lead over IMT at the paper's step size comes from the length of its steps, "
        "not from their direction."
    )
    return words + WHY if batch_ahead else words


def _left_panel(experiments: list[Evidence], title: str) -> charts.Panel:
    """Draw one line per task, one point per method."""
    colour_of = colours(METHODS)
    rows = np.arange(len(experiments))
    marks = [charts.rule("x", 1.0, "start")]
    marks += [charts.rule("y", row + 0.5, soft=True) for row in range(len(rows) - 1)]
    for position, method in enumerate(METHODS):
        # One experiment at a time: they may have different numbers of seeds.
        ends = [mean_and_error(evidence.left(method)) for evidence in experiments]
        mean, error = np.array(ends, float).T
        # The points of one row stand below each other, the middle method on the row itself.
        heights = rows + 0.13 * (position - 2)
        mark = charts.points(
            experiments[0].label(method),
            colour_of[method],
            np.maximum(mean, SMALLEST),
            heights,
            np.minimum(np.nan_to_num(error), MOST_ERROR * mean),
            marker=MARKERS[method],
        )
        marks.append(mark)
    return charts.panel(
        title,
        marks,
        x="Distance left, of that at the start (log scale)",
        log="x",
        y_ticks=(range(len(rows)), [evidence.condition.task for evidence in experiments]),
        y_range=(len(rows) - 0.4, -0.6),
        size=(4.6, 0.42 * len(rows) + 0.9),
    )


def _controls_table(experiments: list[Evidence]) -> report.Block:
    """Make a table of the shares of all methods, and final distances of ITAL and the controls."""
    rows = []
    best = []  # (row, column) of cells to print in bold
    for row, evidence in enumerate(experiments):
        shares = list(_shares(evidence).values())
        smallest = min(shares)
        best += [(row, 2 + j) for j, left in enumerate(shares) if left == smallest]
        ends = [float(evidence.final(method).mean()) for method in WITH_DISTANCE]
        numbers = map(number, [*shares, *ends])
        rows.append((evidence.condition.task, evidence.condition.start, *numbers))
    label = experiments[0].label
    heads = (
        "task",
        "start",
        *(label(method) for method in METHODS),
        *(f"{label(method)}, distance" for method in WITH_DISTANCE),
    )
    caption = (
        "Share of the distance that is left at the end (the best in bold), then final distances."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2, best=best)
