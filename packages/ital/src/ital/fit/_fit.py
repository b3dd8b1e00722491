"""Which model is each person? Models fitted to everyone, compared, and selected among over
people.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.fit import _models
from ital.fit._choices import Choices
from ital.fit._likelihood import Maximum
from ital.fit._models import TeacherModel
from ital.fit._selection import select
from ital.tools.registry import nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDS = 5
LEAST_LAPSE = 0.001  # of a teacher that a learner knows


class Fit(NamedTuple):
    """Models of a teacher fitted to choices.

    Attributes:
        choices: The choices.
        models: The models, each with its unit.
        people: A row per person and model: ``trials``, ``rho``, ``epsilon``, own numbers,
            ``log_likelihood``, ``bic``, ``best`` (the lowest BIC, or the first of several) and
            ``probability`` (that the person uses the model).
        groups: A row per model, and per group if there are several: for how many people it is best,
            medians of their ρ and ε, and how frequent the model is (random-effects selection).
        together: A row per model, fitted to all choices as if one person had made them, with the
            model's ``unit``.
    """

    choices: Choices
    models: tuple[TeacherModel, ...]
    people: pd.DataFrame
    groups: pd.DataFrame
    together: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """One row per model: the sums over people beside the fit to all choices together."""
        sums = self.people.groupby("model", sort=False)[["log_likelihood", "bic", "best"]].sum()
        numbers = self.together.set_index("model").drop(columns=["person", "trials"])
        joined = numbers.join(sums.add_prefix("people_"))
        if len(self.groups) == len(self.models):
            selected = self.groups.set_index("model")[["frequency", "protected"]]
            joined = joined.join(selected)
        return joined.reset_index()

    def teacher(self, model: str) -> dict[str, float]:
        """Return how people choose by a model of the teaching volume, as ``ital-posterior`` may
        know it.

        Args:
            model: The name of a model.

        Returns:
            The settings ``rho``, ``unit`` and ``lapse``, fitted to all choices together. Lapses are
            at least 0.1 %, so that one odd choice cannot rule out the truth.

        Raises:
            InputError: There is no such model.

        Example:
            >>> learner = ital.learners.aware_posterior(**found.teacher("imitated"))
        """
        rows = self.together.set_index("model")
        if model not in rows.index:
            raise InputError(nearest("model", model, rows.index))
        # A model without scores has no numbers; those of chance have no ε.
        numbers = rows.loc[[model]].fillna({"rho": 0.0, "unit": 1.0, "epsilon": 0.0})
        lapse = numbers["epsilon"].clip(LEAST_LAPSE, 1 - LEAST_LAPSE)
        return {
            "rho": numbers["rho"].item(),
            "unit": numbers["unit"].item(),
            "lapse": lapse.item(),
        }

    def plot(self, of: str, by: str | None = None) -> "Figure":
        """Draw how often people choose each value of a column, beside what each model predicts.

        Args:
            of: A column of the candidates.
            by: A column of the trials that makes a panel per value, such as the condition.

        Returns:
            A matplotlib figure.
        """
        from ital.figures import plot_shares
        from ital.fit._shares import shares

        return plot_shares(shares(self, of, by))


def fit(choices: Choices, models: Sequence[TeacherModel], *, by: str | None = None) -> Fit:
    """Fit models of a teacher to the choices of every person, and of all together, and select among
    the models.

    Args:
        choices: The choices.
        models: The models.
        by: A column that is constant for a person: models are selected separately in each group.

    Returns:
        Tables of people, of groups, and of all together.

    Raises:
        InputError: Two models share a name, or a model does not fit the choices.

    Example:
        >>> models = [ital.fit.TeacherModel("loss", "loss"), ital.fit.uniform()]
        >>> found = ital.fit.fit(ital.fit.read("choices.csv"), models)
        >>> print(found.table)
    """
    scaled = _models.with_units(models, choices)
    people = fit_people(choices, scaled)
    groups = []
    if by is not None:
        groups = [by]
        if by not in people:
            people.insert(1, by, np.repeat(choices.of_people(by), len(scaled)))
    people, frequencies = select_models(people, groups)
    units = {model.name: model.unit for model in scaled}
    together = fit_people(choices.as_one(), scaled)
    return Fit(
        choices,
        scaled,
        people,
        frequencies.assign(unit=frequencies["model"].map(units)),
        together.assign(unit=together["model"].map(units)),
    )


def fit_people(choices: Choices, models: Sequence[TeacherModel]) -> pd.DataFrame:
    """Fit every model to every person.

    Args:
        choices: The choices.
        models: The models, each with its unit.

    Returns:
        A row per person and model: the person, ``model``, ``trials``, ``rho``, ``epsilon``, own
        numbers, ``log_likelihood`` and ``bic``.
    """
    trials = choices.picks.trials
    tables = []
    for model in models:
        best = _models.maximise(model, choices)
        tables.append(
            choices.people.assign(
                model=model.name,
                trials=trials,
                rho=best.rho,
                epsilon=best.epsilon,
                **best.numbers,
                log_likelihood=best.log_likelihood,
                bic=model.parameters * np.log(trials) - 2 * best.log_likelihood,
            )
        )
    # Rows of different models may have different numbers.
    table = _person_by_person(tables)
    last = ["log_likelihood", "bic"]
    return table[[*table.columns.drop(last), *last]]


def select_models(people: pd.DataFrame, groups: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Select models: the best of each person, and how frequent each is in every group.

    Args:
        people: What :func:`fit_people` returned, for one or several groups.
        groups: The columns that tell groups apart; none for one group.

    Returns:
        The table with the columns ``best`` (the lowest BIC, or the first of several) and
        ``probability`` (that the person uses the model, given the group), and a table with one row
        per group and model.
    """
    names = list(people["model"].unique())
    judged = []
    selected = []
    grouped = people.groupby(list(groups), sort=False) if groups else [((), people)]
    for values, group in grouped:
        evidence = -group["bic"].to_numpy().reshape(-1, len(names)) / 2  # (people, models)
        selection = select(evidence)
        is_best = evidence.argmax(axis=1)[:, None] == np.arange(len(names))
        rows = group.assign(best=is_best.ravel(), probability=selection.responsibility.ravel())
        winners = rows[rows["best"]].groupby("model")[["rho", "epsilon"]].median().reindex(names)
        columns = {
            **dict(zip(groups, values, strict=True)),
            "model": names,
            "people": len(evidence),
            "best": is_best.sum(axis=0),
            "rho_median": winners["rho"].to_numpy(),
            "epsilon_median": winners["epsilon"].to_numpy(),
            "frequency": selection.frequency,
            "frequency_sd": selection.sd,
            "exceedance": selection.exceedance,
            "protected": selection.protected,
            "equal": selection.equal,
        }
        judged.append(rows)
        selected.append(pd.DataFrame(columns))
    table = pd.concat(judged, ignore_index=True)
    others = table.columns.difference(list(groups), sort=False)
    return table[[*groups, *others]], pd.concat(selected, ignore_index=True)


def cross_validate(
    choices: Choices, models: Sequence[TeacherModel], *, folds: int = FOLDS, across: str = "trials"
) -> pd.DataFrame:
    """Return how probable each model makes choices that it was not fitted to.

    Args:
        choices: The choices.
        models: The models.
        folds: Number of parts; each is predicted from the others.
        across: "trials": the numbers of each person come from the person's other trials, of which
            there must be some. "people": they come from all choices of other people together.

    Returns:
        A row per person and model: ``predicted``, the mean probability of the person's choices, and
        ``log_score``, the mean of its logarithm.

    Raises:
        InputError: There are too few trials or people for the folds.
    """
    scaled = _models.with_units(models, choices)
    part = _parts(choices, folds, across)
    picks = choices.picks
    tables = []
    for model in scaled:
        predicted = np.zeros(len(choices))  # the probability of each choice
        for fold in range(folds):
            held_out = part == fold
            predicted[held_out] = _predict(model, choices, held_out, across)
        with np.errstate(divide="ignore"):  # a choice that was called impossible
            log_scores = np.log(predicted)
        tables.append(
            choices.people.assign(
                model=model.name,
                trials=picks.trials,
                predicted=picks.per_person(predicted) / picks.trials,
                log_score=picks.per_person(log_scores) / picks.trials,
            )
        )
    return _person_by_person(tables)


def _parts(choices: Choices, folds: int, across: str) -> np.ndarray:
    """Return the fold of each trial (N,): people or a person's trials go round the folds."""
    picks = choices.picks
    people = len(choices.people)
    fewest = int(picks.trials.min())
    if across == "people":
        most = people
        fault = f"with {people} people, give 2 to {people}"
        number = choices.person
    elif across == "trials":
        most = fewest
        fault = f"a person has only {fewest} trials; give 2 to {fewest}, or across='people'"
        number = np.arange(len(choices)) - picks.per_trial(picks.first)
    else:
        raise InputError(f"across must be trials or people, not {across!r}")
    if not 2 <= folds <= most:
        raise InputError(f"folds {folds}: {fault}")
    return number % folds


def _predict(
    model: TeacherModel, choices: Choices, held_out: np.ndarray, across: str
) -> np.ndarray:
    """Return the probability of each choice that is held out, by the numbers that fit the
    others.
    """
    test = choices.take(held_out)
    rest = choices.take(~held_out)
    if across == "people":
        best = _models.maximise(model, rest.as_one())
        whose = np.zeros(len(test.people), int)
    else:
        # Everyone has trials in both parts, in the same order.
        best = _models.maximise(model, rest)
        whose = np.unique(choices.person[held_out])
    numbers = {name: values[whose] for name, values in best.numbers.items()}
    of_people = Maximum(best.rho[whose], best.epsilon[whose], best.log_likelihood[whose], numbers)
    return test.of_chosen(_models.probabilities(model, test, of_people))


def _person_by_person(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables of models, a row per person each, as one: all models of a person together."""
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)
