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
from ital.fit._models import Fitted, TeacherModel
from ital.fit._selection import select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDS = 5


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
        together: A row per model, fitted to all choices as if one person had made them.
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

    def plot(self, of: str, by: str | None = None) -> "Figure":
        """Draw how often people choose each value of a column, beside what each model predicts.

        Args:
            of: A column of the candidates.
            by: A column of the trials that makes a panel per value, such as the condition.

        Returns:
            A matplotlib figure.
        """
        from ital.fit._pictures import draw_shares

        return draw_shares(self, of, by)


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
    check_models(models)
    scaled = tuple(_models.with_unit(model, choices) for model in models)
    people = fit_people(choices, scaled)
    groups = []
    if by is not None:
        of_people = choices.of_people(by)
        if by not in people:
            people.insert(1, by, np.repeat(of_people, len(scaled)))
        groups = [by]
    people, frequencies = select_models(people, groups)
    units = {model.name: model.unit for model in scaled}
    return Fit(
        choices,
        scaled,
        people,
        frequencies.assign(unit=frequencies["model"].map(units)),
        fit_people(choices.as_one(), scaled),
    )


def check_models(models: Sequence[TeacherModel]) -> None:
    """Raise InputError unless there are models, with different names."""
    if not models:
        raise InputError("there is no model to fit: give at least one")
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two models are called {name!r}: give each a name of its own")


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
    # All models of the first person come first. Rows of different models may have different
    # numbers.
    table = pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)
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
        evidence = -group["bic"].to_numpy().reshape(-1, len(names)) / 2
        selection = select(evidence)
        best = evidence.argmax(axis=1)[:, None] == np.arange(len(names))
        rows = group.assign(best=best.ravel(), probability=selection.responsibility.ravel())
        winners = rows[rows["best"]].groupby("model")[["rho", "epsilon"]].median().reindex(names)
        of_group = dict(zip(groups, values, strict=True))
        judged.append(rows)
        selected.append(
            pd.DataFrame(
                of_group
                | {
                    "model": names,
                    "people": len(evidence),
                    "best": best.sum(axis=0),
                    "rho_median": winners["rho"].to_numpy(),
                    "epsilon_median": winners["epsilon"].to_numpy(),
                    "frequency": selection.frequency,
                    "frequency_sd": selection.sd,
                    "exceedance": selection.exceedance,
                    "protected": selection.protected,
                    "equal": selection.equal,
                }
            )
        )
    others = [name for name in people if name not in groups]
    columns = [*groups, *others, "best", "probability"]
    return pd.concat(judged, ignore_index=True)[columns], pd.concat(selected, ignore_index=True)


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
    check_models(models)
    scaled = [_models.with_unit(model, choices) for model in models]
    part = _parts(choices, folds, across)
    tables = []
    for model in scaled:
        predicted = np.zeros(len(choices))
        for fold in range(folds):
            held_out = part == fold
            predicted[held_out] = _predict(model, choices, held_out, across)
        tables.append(_scored(model, choices, predicted))
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)


def _parts(choices: Choices, folds: int, across: str) -> np.ndarray:
    """Return the fold of each trial (N,): people or a person's trials go round the folds."""
    picks = choices.picks
    if across == "people":
        if not 2 <= folds <= len(choices.people):
            raise InputError(
                f"folds {folds}: with {len(choices.people)} people, give 2 to {len(choices.people)}"
            )
        return choices.person % folds
    if across != "trials":
        raise InputError(f"across must be trials or people, not {across!r}")
    fewest = int(picks.trials.min())
    if not 2 <= folds <= fewest:
        raise InputError(
            f"folds {folds}: a person has only {fewest} trials; give 2 to {fewest}, or "
            "across='people'"
        )
    of_person = np.arange(len(choices)) - picks.per_trial(picks.first)
    return of_person % folds


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
        everyone = np.zeros(len(test.people), int)
        fitted = _of_people(best, everyone)
    else:
        # Everyone has trials in both parts, in the same order.
        best = _models.maximise(model, rest)
        tested = np.unique(choices.person[held_out])
        fitted = _of_people(best, tested)
    chances = _models.probabilities(model, test, fitted)
    return chances[np.arange(len(test)), test.chosen]


def _of_people(fitted: Fitted, rows: np.ndarray) -> Fitted:
    """Return the numbers of some people, one row after the other."""
    numbers = {name: values[rows] for name, values in fitted.numbers.items()}
    return Fitted(fitted.rho[rows], fitted.epsilon[rows], fitted.log_likelihood[rows], numbers)


def _scored(model: TeacherModel, choices: Choices, predicted: np.ndarray) -> pd.DataFrame:
    picks = choices.picks
    with np.errstate(divide="ignore"):  # a choice that was called impossible
        logs = np.log(predicted)
    return choices.people.assign(
        model=model.name,
        trials=picks.trials,
        predicted=picks.per_person(predicted) / picks.trials,
        log_score=picks.per_person(logs) / picks.trials,
    )


def numbers_of(fitted: Fit, model: TeacherModel) -> Fitted:
    """Return the numbers of each person under a model, from the table of a fit."""
    rows = fitted.people[fitted.people["model"] == model.name]
    return Fitted(
        rows["rho"].to_numpy(),
        rows["epsilon"].to_numpy(),
        rows["log_likelihood"].to_numpy(),
        {name: rows[name].to_numpy() for name in model.numbers},
    )
