"""Pictures of a fit: what people chose beside what the models predict, and which models are
mistaken for which.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.figures import charts
from ital.fit import _models
from ital.fit._fit import Fit, numbers_of
from ital.fit._recovery import Recovery

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_VALUES = 200  # of a column whose choices are counted
OBSERVED = "observed"


def shares(fit: Fit, of: str, by: str | None = None) -> pd.DataFrame:
    """Return how often people choose each value of a column, and how often each model says that
    they do.

    Predictions are posterior predictive: they use the fitted numbers of each person.

    Args:
        fit: The fit.
        of: A column of the candidates.
        by: A column of the trials, such as the condition; None for all trials together.

    Returns:
        A row per value of ``by``, value of ``of`` and source ("observed", or a model): its
        ``share`` of the trials, and the standard error ``sem`` of the observed share over people.

    Raises:
        InputError: There is no such column, or it has more than 200 values.
    """
    choices = fit.choices
    values, which = np.unique(choices[of][choices.available], return_inverse=True)
    if len(values) > MOST_VALUES:
        raise InputError(
            f"column {of!r} has {len(values)} values; shares need at most {MOST_VALUES}: round "
            "it first"
        )
    value_of = np.zeros(choices.available.shape, int)
    value_of[choices.available] = which
    picked = np.zeros(choices.available.shape)
    picked[np.arange(len(choices)), choices.chosen] = 1.0
    chances = {OBSERVED: picked} | {
        model.name: _models.probabilities(model, choices, numbers_of(fit, model))
        for model in fit.models
    }
    conditions = np.full(len(choices), "all") if by is None else choices.of_trials(by)
    tables = []
    for condition in pd.unique(conditions):
        trials = conditions == condition
        for source, chance in chances.items():
            per_trial = _summed(chance[trials], value_of[trials], len(values))
            columns = {
                by or "trials": condition,
                of: values,
                "source": source,
                "share": per_trial.mean(axis=0),
                "sem": np.nan,
            }
            if source == OBSERVED:
                columns["sem"] = _standard_error(per_trial, choices.person[trials])
            tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def draw_shares(fit: Fit, of: str, by: str | None) -> "Figure":
    """Draw observed and predicted shares, a panel per value of ``by``."""
    table = shares(fit, of, by)
    names = [OBSERVED, *(model.name for model in fit.models)]
    panels = []
    for condition, rows in table.groupby(table.columns[0], sort=False):
        marks = []
        values = rows[rows["source"] == OBSERVED][of].to_numpy()
        at = values
        if not pd.api.types.is_numeric_dtype(values):
            at = np.arange(len(values))
        for name, colour in zip(names, _palette(len(names)), strict=True):
            own = rows[rows["source"] == name]
            if name == OBSERVED:
                width = 0.8 * float(np.diff(at).min(initial=1.0))
                marks.append(
                    charts.bars(
                        name,
                        colour,
                        at,
                        own["share"].to_numpy(),
                        own["sem"].to_numpy(),
                        width=width,
                    )
                )
            else:
                marks.append(charts.line(name, colour, at, own["share"].to_numpy()))
        ticks = None
        if not pd.api.types.is_numeric_dtype(values):
            ticks = (at, [str(value) for value in values])
        title = "All trials" if by is None else f"{by} = {condition}"
        panels.append(
            charts.panel(title, marks, x=of, y="Share of the choices", zero=True, x_ticks=ticks)
        )
    return charts.chart(panels, "What people choose, and what models of a teacher predict")


def draw_confusion(recovery: Recovery) -> "Figure":
    """Draw how many people of each kind each model is best for."""
    names = [model.name for model in recovery.models]
    # A map is drawn from the bottom up.
    counts = recovery.confusion.to_numpy()[::-1]
    people = counts.sum(axis=1)[0]
    texts = [[str(count) if count else "" for count in row] for row in counts]
    framed = [(i, len(names) - 1 - i) for i in range(len(names))]
    colours_of = np.where(counts > 0, counts / people, np.nan)
    panel = charts.panel(
        f"{people} simulated people of each kind",
        [charts.cells(colours_of, texts, framed, None, (0.01, 1.0))],
        x="TeacherModel with the lowest BIC",
        y="Simulated kind",
        x_ticks=(range(len(names)), names),
        y_ticks=(range(len(names)), names[::-1]),
        size=(4.8, 3.2),
    )
    return charts.chart(
        [panel], "What the data can tell", note="SIMULATED DATA: no person took part"
    )


def _palette(count: int) -> list[str]:
    """Return grey for what was observed, and a colour for each model."""
    import matplotlib as mpl

    cycle = mpl.rcParamsDefault["axes.prop_cycle"].by_key()["color"]
    return [charts.GRID, *(cycle[i % len(cycle)] for i in range(count - 1))]


def _summed(chances: np.ndarray, value_of: np.ndarray, count: int) -> np.ndarray:
    """Add up the probabilities of candidates with the same value (N, values)."""
    totals = np.zeros((len(chances), count))
    rows = np.broadcast_to(np.arange(len(chances))[:, None], chances.shape)
    np.add.at(totals, (rows, value_of), chances)
    return totals


def _standard_error(per_trial: np.ndarray, person: np.ndarray) -> np.ndarray:
    """Return the standard error of a share over people; NaN for one person."""
    means = pd.DataFrame(per_trial).groupby(person).mean()
    return means.sem().to_numpy()
