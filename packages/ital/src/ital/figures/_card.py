"""A result in a notebook: the final numbers as a table, and a small figure."""

import base64
import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ital.figures._curves import in_legend_order, label, plot_curves
from ital.results import summarise
from ital.statistics import number
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr

DPI = 72


def card(curves: "xr.Dataset", task: Task) -> str:
    """Write a result as HTML: a table of the last step, and the task's panels.

    The table has mean ± standard error per method and metric.

    Args:
        curves: curves of a run.
        task: the task.

    Returns:
        HTML with the figure embedded.
    """
    # matplotlib is imported only to draw.
    from ital.figures._display import as_png

    # The last row, even if its mean is not known; GroupBy.last would take the last known mean
    # instead.
    keys = ["method", "metric"]
    at_steps = summarise(curves)
    last = at_steps.drop_duplicates(keys, keep="last").set_index(keys)
    metrics = list(last.index.get_level_values("metric").unique())
    rows = []
    for method in in_legend_order([str(name) for name in curves["learner"].values]):
        row = [label(curves, method)]
        for metric in metrics:
            words = "–"
            if (method, metric) in last.index:
                end = last.loc[(method, metric)]
                words = _number_and_error(float(end["mean"]), float(end["sem"]))
            row.append(words)
        rows.append(row)
    head = ["learner"]
    for name in metrics:
        words = name.replace("_", " ")
        if name in task.metrics:
            words = task.metrics[name].title
        head.append(words)
    step = int(curves["step"].values[-1])
    caption = (
        f"{task.title}, {curves.attrs.get('teacher', '')} teacher: step {step}, "
        f"mean ± SE over {curves.sizes['seed']} seeds"
    )
    figure = plot_curves(curves, task)
    picture = base64.b64encode(as_png(figure, DPI)).decode()
    body = [_row_as_html("td", row) for row in rows]
    return (
        f"<div><p>{html.escape(caption)}</p>"
        f"<table><thead>{_row_as_html('th', head)}</thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
        f'<img alt="learning curves" src="data:image/png;base64,{picture}"></div>'
    )


def _row_as_html(tag: str, texts: Sequence[str]) -> str:
    cells = "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)
    return f"<tr>{cells}</tr>"


def _number_and_error(mean: float, error: float) -> str:
    # A single seed has no error.
    if math.isnan(error):
        return number(mean)
    return f"{number(mean)} ± {number(error, 2)}"
