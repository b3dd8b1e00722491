"""Print comparisons of methods or runs as a table on the terminal."""

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from ital.statistics import decimals, number, p_value, signed

if TYPE_CHECKING:
    import pandas as pd


def print_differences(title: str, comparison: "pd.DataFrame", console: Console | None = None) -> None:
    """Print a comparison: mean difference, its 95 % interval, p after Holm, and P(improvement).

    Args:
        title: the title of the table.
        comparison: what :func:`ital.results.compare` returned; if empty, nothing is printed.
        console: where to print; None for standard output.
    """
    if comparison.empty:
        return
    shown = Table(title=title, title_justify="left")
    for column in ("metric", "method", "minus"):
        shown.add_column(column)
    for column in ("difference", "95 % interval", "seeds", "p (Holm)", "P(improvement)"):
        shown.add_column(column, justify="right")
    for row in comparison.to_dict("records"):
        interval = f"[{number(row['low'])}, {number(row['high'])}]" if np.isfinite(row["low"]) else "–"
        shown.add_row(
            row["metric"].replace("_", " "),
            row["method"],
            row["against"],
            signed(row["difference"]),
            interval,
            str(row["n"]),
            p_value(row["p_holm"]),
            decimals(row["improvement"]),
        )
    (console or Console()).print(shown)
