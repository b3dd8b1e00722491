"""What data can tell: simulated people of every kind, and whether the fit finds their kind and
their numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.fit import _models
from ital.fit._choices import Choices
from ital.fit._fit import fit_people, select_models
from ital.fit._likelihood import LARGEST, Maximum
from ital.fit._models import TeacherModel
from ital.tools.checks import is_finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Recovery(NamedTuple):
    """Simulated people of every kind, and what the fit says about them.

    Attributes:
        models: The models, each with its unit.
        people: A row per kind, person and model, as in a fit; ``kind`` is the model that made the
            choices.
        groups: A row per kind and model: for how many people the model is best, and how frequent it
            is.
    """

    models: tuple[TeacherModel, ...]
    people: pd.DataFrame
    groups: pd.DataFrame

    @property
    def confusion(self) -> pd.DataFrame:
        """How many people of each kind (rows) each model is best for (columns)."""
        names = [model.name for model in self.models]
        counts = self.groups.pivot_table(index="kind", columns="model", values="best")
        return counts.loc[names, names].astype(int)

    @property
    def parameters(self) -> pd.DataFrame:
        """Quartiles of ρ, ε and own numbers of the true model, a row per kind and number."""
        own = self.people[self.people["kind"] == self.people["model"]]
        numbers = ["rho", "epsilon"]
        for model in self.models:
            numbers += [name for name in model.numbers if name not in numbers]
        long = own.melt("kind", numbers, "number").dropna()
        quartiles = long.groupby(["kind", "number"], sort=False)["value"].describe()
        named = quartiles[["25%", "50%", "75%"]].set_axis(["lower", "median", "upper"], axis=1)
        return named.reset_index()

    def plot(self) -> "Figure":
        """Draw the confusion of models.

        Returns:
            A matplotlib figure.
        """
        from ital.figures import charts

        counts = self.confusion.to_numpy()
        title = f"{counts[0].sum()} simulated people of each kind"
        names = [model.name for model in self.models]
        panel = charts.confusion(title, counts, names, size=(4.8, 3.2))
        note = "SIMULATED DATA: no person took part"
        return charts.chart([panel], "What the data can tell", note=note)


def simulate(
    choices: Choices,
    model: TeacherModel,
    *,
    rho: float = 1.0,
    epsilon: float = 0.0,
    numbers: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Choices:
    """Let simulated people choose among the candidates of given trials.

    Args:
        choices: The trials; who chose what does not matter.
        model: How the people choose.
        rho: Their ρ, unless the model's is given.
        epsilon: Their ε, unless the model's is given.
        numbers: The model's own numbers; None for the middle of their ranges.
        seed: Seed of their choices.

    Returns:
        The same trials with the choices of the simulated people.

    Raises:
        InputError: A number is out of range.
    """
    if not (is_finite(rho) and 0 <= rho <= LARGEST):
        raise InputError(f"a simulated ρ must lie between 0 and {LARGEST:g}, not {rho!r}")
    if not (is_finite(epsilon) and 0 <= epsilon <= 1):
        raise InputError(f"a simulated ε must lie between 0 and 1, not {epsilon!r}")
    people = len(choices.people)
    own = model.middle(people)
    for name, value in (numbers or {}).items():
        if name not in own:
            raise InputError(f"model {model.name!r} has no number {name!r}")
        own[name] = np.full(people, value)
    of_people = Maximum(
        np.full(people, rho if model.rho is None else model.rho),
        np.full(people, epsilon if model.epsilon is None else model.epsilon),
        np.zeros(people),
        own,
    )
    (scaled,) = _models.with_units([model], choices)
    chances = _models.probabilities(scaled, choices, of_people)
    passed = chances.cumsum(axis=1)
    drawn = np.random.default_rng(seed).random(len(choices))[:, None]
    # The sum of the probabilities may end just below 1: only candidates that can be chosen count.
    is_drawn = (passed > drawn * passed[:, -1:]) & (chances > 0)
    return replace(choices, chosen=is_drawn.argmax(axis=1))


def recover(
    choices: Choices,
    models: Sequence[TeacherModel],
    *,
    rho: float = 1.0,
    epsilon: float = 0.0,
    numbers: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Recovery:
    """Simulate people of every kind in given trials, and fit all models to them.

    Args:
        choices: The trials; ``choices.like(40, 16)`` makes 40 people with 16 trials each of the
            same design.
        models: The models; each makes people of its kind.
        rho: Their ρ, unless the model's is given.
        epsilon: Their ε, unless the model's is given.
        numbers: Own numbers of the models that have them; None for the middle of their ranges.
        seed: Seed of all choices.

    Returns:
        Which models are best for whom, and the fitted numbers.

    Raises:
        InputError: A number is out of range, or two models share a name.
    """
    scaled = _models.with_units(models, choices)
    tables = []
    for i, kind in enumerate(scaled):
        own = {name: value for name, value in (numbers or {}).items() if name in kind.numbers}
        # The kinds differ in their seeds, so that equal models do not make equal people.
        own_seed = seed * len(scaled) + i
        made = simulate(choices, kind, rho=rho, epsilon=epsilon, numbers=own, seed=own_seed)
        tables.append(fit_people(made, scaled).assign(kind=kind.name))
    people, groups = select_models(pd.concat(tables, ignore_index=True), ["kind"])
    return Recovery(scaled, people, groups)
