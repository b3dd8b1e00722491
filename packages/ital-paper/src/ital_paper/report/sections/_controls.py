"""The fair controls, which separate awareness from longer steps."""

import numpy as np

from ital import report
from ital.figures import charts, colours
from ital.results import mean_and_error
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence
from ital_paper.report.sections._context import Context

METHODS = ("batch", "imt", "ital", "imt-matched", "batch-matched")
MARKERS = {"batch": "s", "imt": "D", "ital": "o", "imt-matched": "d", "batch-matched": "v"}
SMALLEST = 1e-5  # smaller shares are drawn at this value


def build(context: Context) -> list[report.Block]:
    """The distance left for ITAL and for controls with equally long steps: in words, as a figure and as a table."""
    experiments = list(context.data.every("cooperative", *METHODS))
    if not experiments:
        return []
    content = [report.paragraph(EXPLAIN), report.paragraph(who_leads(experiments))]
    panels = [
        panel(
            [evidence for evidence in experiments if evidence.condition.start == start],
            f"{start} start",
        )
        for start in figures.starts_of(context.data)
    ]
    caption = (
        "Share of the initial distance that is left at the end, mean ± SE over seeds, cooperative teacher; "
        "further left is better. The part of the parameters that no example can change is left out."
    )
    title = "ITAL and controls with equally long steps"
    content += report.figure("controls", title, panels, caption, columns=2, note=context.scale.note)
    return [*content, table(experiments)]


EXPLAIN = (
    "An aware step is longer than a naive one. So a lead over IMT at one step size does not show that a learner has "
    "understood the teacher's choice. Each control takes a step exactly as long as ITAL's would be from the same "
    "point, with the same mini-batch, choice and β, but along the gradient of the chosen example (IMT matched) or "
    "along the mean gradient of the mini-batch (Batch matched)."
)
WHY = (
    " Why a plain gradient can win: the aware step lowers the loss of the chosen example and raises the losses of the "
    "others, whose labels are correct too. The learner has to relearn what it unlearned there. And if the labels "
    "follow from the target without noise, the choice tells nothing that the labels do not."
)


def left(evidence: Evidence) -> dict[str, float]:
    """The mean share of the distance left, by method."""
    return {method: float(evidence.left(method).mean()) for method in METHODS}


def who_leads(experiments: list[Evidence]) -> str:
    """The number of settings in which the controls end closer than ITAL."""
    shares = [left(evidence) for evidence in experiments]
    ahead = {name: sum(own[name] < own["ital"] for own in shares) for name in METHODS[3:]}
    settings = f"of {len(experiments)}"
    words = (
        f"In {ahead['imt-matched']} {settings} settings IMT matched ends closer to the target than ITAL; in "
        f"{ahead['batch-matched']} {settings} Batch matched does. Where a control is ahead, ITAL's lead over "
        "IMT at the paper's step size comes from the length of its steps, not from their direction."
    )
    return words + (WHY if ahead["batch-matched"] else "")


def panel(experiments: list[Evidence], title: str) -> charts.Panel:
    """One line per task, one point per method."""
    coloured, rows = colours(METHODS), len(experiments)
    marks = [
        charts.rule("x", 1.0, "start"),
        *(charts.rule("y", i + 0.5, soft=True) for i in range(rows - 1)),
    ]
    for j, method in enumerate(METHODS):
        # Experiments may have different numbers of seeds.
        ends = [mean_and_error(evidence.left(method)) for evidence in experiments]
        mean, error = np.array(ends, float).T
        x, error = np.maximum(mean, SMALLEST), np.minimum(np.nan_to_num(error), 0.9 * mean)
        y, name = np.arange(rows) + 0.13 * (j - 2), experiments[0].label(method)
        marks.append(charts.points(name, coloured[method], x, y, error, marker=MARKERS[method]))
    return charts.panel(
        title, marks, x="Distance left, of that at the start (log scale)", log="x",
        y_ticks=(range(rows), [evidence.condition.task for evidence in experiments]), y_range=(rows - 0.4, -0.6),
        size=(4.6, 0.42 * rows + 0.9),
    )  # fmt: skip


def table(experiments: list[Evidence]) -> report.Block:
    """Shares of all methods, and final distances of ITAL and the controls."""
    rows, best = [], []
    for i, evidence in enumerate(experiments):
        shares = left(evidence)
        best += [
            (i, 2 + j) for j, share in enumerate(shares.values()) if share == min(shares.values())
        ]
        ends = [number(float(evidence.final(method).mean())) for method in METHODS[2:]]
        rows.append(
            (
                evidence.condition.task,
                evidence.condition.start,
                *(number(share) for share in shares.values()),
                *ends,
            )
        )
    names = [experiments[0].label(method) for method in METHODS]
    heads = ("task", "start", *names, *(f"{name}, distance" for name in names[2:]))
    caption = (
        "Share of the distance that is left at the end (the best in bold), then final distances."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2, best=best)
