"""Shares of choices: what people chose beside what models of a teacher predict."""

from typing import TYPE_CHECKING

import numpy as np

from ital.figures import charts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

OBSERVED = "observed"


def plot_shares(shares: "pd.DataFrame") -> "Figure":
    """Draw observed shares as bars and predicted ones as lines, a panel per condition.

    Args:
        shares: A table of :func:`ital.fit.shares`: its first column holds the condition, the second
            what is chosen.

    Returns:
        A matplotlib figure.
    """
    by, of = shares.columns[:2]
    panels = []
    for condition, rows in shares.groupby(by, sort=False):
        title = "All trials" if condition == "all" else f"{by} = {condition}"
        panels.append(_panel(title, of, rows))
    return charts.chart(panels, "What people choose, and what models of a teacher predict")


def _panel(title: str, of: str, rows: "pd.DataFrame") -> charts.Panel:
    import matplotlib as mpl

    values = np.asarray(rows[of].unique())
    at = values
    ticks = None
    if not np.issubdtype(values.dtype, np.number):
        at = np.arange(len(values))
        ticks = (at, [str(value) for value in values])
    colours = mpl.rcParamsDefault["axes.prop_cycle"].by_key()["color"]
    marks = []
    for source, own in rows.groupby("source", sort=False):
        share = own["share"].to_numpy()
        if source == OBSERVED:
            width = 0.8 * float(np.diff(at).min(initial=1.0))
            sem = own["sem"].to_numpy()
            marks.append(charts.bars(OBSERVED, charts.GRID, at, share, sem, width=width))
        else:
            colour = colours[(len(marks) - 1) % len(colours)]
            marks.append(charts.line(str(source), colour, at, share))
    return charts.panel(title, marks, x=of, y="Share of the choices", zero=True, x_ticks=ticks)
