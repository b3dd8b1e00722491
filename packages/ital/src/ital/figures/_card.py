"""A result in a notebook: the final numbers as a table, and a small figure."""

import base64
import html
import math
from typing import TYPE_CHECKING

from ital.figures._curves import in_legend_order, label, plot_curves
from ital.results import summarise
from ital.statistics import number
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr

DPI = 72


def card(curves: "xr.Dataset", task: Task) -> str:
    """A result as HTML: mean ± standard error at the last step per method and metric, and the task's panels.

    Args:
        curves: curves of a run.
        task: the task.

    Returns:
        HTML with the figure embedded.
    """
    from ital.figures._display import as_png  # matplotlib is imported only to draw

    # The last row, even if its mean is not known; GroupBy.last would take the last known mean instead.
    last = (
        summarise(curves)
        .drop_duplicates(["method", "metric"], keep="last")
        .set_index(["method", "metric"])
    )
    metrics = list(dict.fromkeys(last.index.get_level_values("metric")))
    rows = []
    for method in in_legend_order([str(name) for name in curves["learner"].values]):
        ends = [
            last.loc[(method, metric)] if (method, metric) in last.index else None
            for metric in metrics
        ]
        cells = [
            "–" if end is None else _mean_and_error(float(end["mean"]), float(end["sem"]))
            for end in ends
        ]
        rows.append([label(curves, method), *cells])
    titles = [
        task.metrics[name].title if name in task.metrics else name.replace("_", " ")
        for name in metrics
    ]
    head = "".join(f"<th>{html.escape(title)}</th>" for title in ("learner", *titles))
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    teacher, seeds = curves.attrs.get("teacher", ""), curves.sizes["seed"]
    caption = f"{task.title}, {teacher} teacher: step {int(curves['step'].values[-1])}, mean ± SE over {seeds} seeds"
    picture = base64.b64encode(as_png(plot_curves(curves, task), DPI)).decode()
    return (
        f"<div><p>{html.escape(caption)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<img alt="learning curves" src="data:image/png;base64,{picture}"></div>'
    )


def _mean_and_error(mean: float, error: float) -> str:
    return number(mean) if math.isnan(error) else f"{number(mean)} ± {number(error, 2)}"
