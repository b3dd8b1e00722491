"""What people chose beside what the models predict."""

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.figures import OBSERVED
from ital.fit import _models
from ital.fit._fit import Fit
from ital.fit._likelihood import Maximum

MOST_VALUES = 200  # of a column whose choices are counted


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
    conditions = np.full(len(choices), "all") if by is None else choices.of_trials(by)
    condition_of, names = pd.factorize(conditions)
    trial, _ = np.nonzero(choices.available)
    candidates = pd.DataFrame(
        {
            "condition": condition_of[trial],
            "person": choices.person[trial],
            "value": choices[of][choices.available],
        }
    )
    values = candidates["value"].nunique()
    if values > MOST_VALUES:
        raise InputError(
            f"column {of!r} has {values} values; shares need at most {MOST_VALUES}: round it first"
        )
    chances = _chances(fit)
    for number, of_source in enumerate(chances.values()):
        candidates[number] = of_source[choices.available]
    long = candidates.melt(["condition", "person", "value"], var_name="source", value_name="chance")
    # In how many trials a person chooses each value: rows are condition, source and person.
    keys = ["condition", "source", "person", "value"]
    counts = long.groupby(keys)["chance"].sum().unstack(fill_value=0)
    of_people = counts.div(counts.sum(axis=1), axis=0)
    totals = counts.groupby(keys[:2]).sum()
    share = totals.div(totals.sum(axis=1), axis=0)
    sem = of_people.groupby(keys[:2]).sem()
    table = pd.DataFrame({"share": share.T.unstack(), "sem": sem.T.unstack()}).reset_index()
    return pd.DataFrame(
        {
            by or "trials": names[table["condition"]],
            of: table["value"],
            "source": np.array(list(chances))[table["source"].to_numpy(int)],
            "share": table["share"],
            "sem": table["sem"].where(table["source"] == 0),  # of what was observed
        }
    )


def _chances(fit: Fit) -> dict[str, np.ndarray]:
    """Return the probability of each candidate (N, B): observed, which is 0 or 1, and by model."""
    choices = fit.choices
    picked = np.arange(choices.available.shape[1]) == choices.chosen[:, None]
    chances = {OBSERVED: picked.astype(float)}
    for model in fit.models:
        rows = fit.people[fit.people["model"] == model.name]
        own = {name: rows[name].to_numpy() for name in model.numbers}
        fitted = Maximum(
            rows["rho"].to_numpy(),
            rows["epsilon"].to_numpy(),
            rows["log_likelihood"].to_numpy(),
            own,
        )
        chances[model.name] = _models.probabilities(model, choices, fitted)
    return chances
