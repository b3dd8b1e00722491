"""Which teacher is each person? The models of a teacher fitted to the choices of every participant with every robot."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital.errors import InputError
from ital_study.analysis.measures import rows_of_mode
from ital_study.config.configuration import Config
from ital_study.data.left_out import left_out
from ital_study.data.table import StudyData, check_unique, unreadable
from ital_study.fitting import likelihood
from ital_study.fitting import scores as _scores
from ital_study.fitting import selection as _selection
from ital_study.fitting.likelihood import Choices, Maximum
from ital_study.fitting.scores import MODELS, NAMES, SCORED
from ital_study.robots.rules import StudyRules
from ital_study.robots.world import Arrows
from ital_study.simulation import arms

if TYPE_CHECKING:
    import pandas as pd

ALL_ROBOTS = "all"  # the choices for all robots of a person together
REPLAYED = 0.01  # largest difference of a stored distance from the replayed one
PERSON = ["teacher", "participant"]
Show = Callable[[float], None]


class Fit(NamedTuple):
    """Which teacher each person is.

    Attributes:
        config: The study.
        kind: ``human`` or ``simulated``.
        mode: Mode of the participants.
        participants: Number of participants by teacher.
        people: A row per teacher, participant, robot and model: parameters, log-likelihood, BIC.
        models: A row per teacher, robot and model: how frequent the model is.
        units: The spread of each score that counts as 1 for ρ.
        notes: What a reader must know.
    """

    config: Config
    kind: str
    mode: str
    participants: dict[str, int]
    people: "pd.DataFrame"
    models: "pd.DataFrame"
    units: dict[str, float]
    notes: list[str]


def fit(study: StudyData, mode: str | None = None, show: Show = lambda percent: None) -> Fit:
    """Fit models of a teacher to the choices of every participant with every robot, and with all robots together.

    A model says p(c) = ε/B + (1−ε)·softmax(ρs)_c. Its score s is replayed from the stored choices: the exact and the
    imitated teaching volume, the loss and minus the loss of the robot, the norm of its gradient, nearness to the goal,
    or nothing (random). ρ ≥ 0 is per typical spread of the score among the arrows of a step.

    Steps after a missing one are left out, because the robot's belief is then unknown. So are participants who are not
    usable, and those whose stored distances differ from a replay under this configuration.

    Args:
        study: Configuration and step table.
        mode: Mode of the participants; None: ``live`` if there are any, else ``simulated``.
        show: Called with the percentage that is done.

    Returns:
        Tables of people and of models.

    Raises:
        InputError: There are no steps of that mode, a step is in the table twice, or nobody can be fitted.
    """
    import pandas as pd

    config, steps = study.config, study.steps
    check_unique(steps)
    mode, steps, notes = rows_of_mode(steps, mode)
    notes += unreadable(study.participants, mode)
    steps, incomplete = _usable(config, steps)
    gone = left_out(config, steps, study.participants)
    if gone.everybody:
        raise InputError("everybody who taught is excluded: there is nobody to fit")
    steps = gone.without(steps)
    notes += [f"{gone.size} people are left out: see Data quality."] if gone.size else []
    rules = StudyRules(config)
    rows, beliefs, arrows, not_replayed = _replayed(rules, steps, lambda share: show(30 * share))
    units = _scores.units(rules)
    scores = (
        _scores.scores_many(rules, rows["map"].tolist(), beliefs, arrows) / units[:, None, None]
    )
    robots = [*config.learners, ALL_ROBOTS]
    people = []
    for i, learner in enumerate(robots):
        own = (
            np.ones(len(rows), bool)
            if learner == ALL_ROBOTS
            else (rows["learner"] == learner).to_numpy()
        )
        show(30 + 70 * i / len(robots))
        if own.any():
            people.append(
                _people(rows[own], scores[:, own], config.candidates).assign(learner=learner)
            )
    table, models = with_selection(pd.concat(people, ignore_index=True), ["teacher", "learner"])
    named = {model.name: float(unit) for model, unit in zip(SCORED, units, strict=True)}
    show(100)
    taught_by = list(dict.fromkeys(rows["teacher"]))
    return Fit(
        config=config,
        kind="human" if "human" in taught_by else "simulated",
        mode=mode,
        participants={
            name: int(rows[rows["teacher"] == name]["participant"].nunique()) for name in taught_by
        },
        people=table,
        models=models.assign(unit=models["model"].map(named)),
        units=named,
        notes=[*notes, *incomplete, *not_replayed],
    )


def _usable(config: Config, steps: "pd.DataFrame") -> tuple["pd.DataFrame", list[str]]:
    """The steps of usable participants on the maps of the study up to the first gap, sorted; and notes on the rest."""
    notes, everyone = [], steps.groupby(PERSON).ngroups
    names = [on.name for on in config.maps]
    rows = steps[
        steps["usable"] & steps["learner"].isin(config.learners) & steps["map"].isin(names)
    ]
    if rows.empty:
        raise InputError("no participant of this study is usable: there is nothing to fit yet")
    wrong = (
        (rows["choice"] < 0) | (rows["choice"] >= config.candidates) | (rows["step"] > config.steps)
    )
    if wrong.any():
        row = rows[wrong].iloc[0]
        raise InputError(
            f"participant {row['participant']} chose arrow {row['choice']} in step {row['step']} on map "
            f"{row['map']!r}, but this study has {config.steps} steps of {config.candidates} arrows: check study.toml"
        )
    if rows.groupby(PERSON).ngroups < everyone:
        count = everyone - rows.groupby(PERSON).ngroups
        notes.append(f"{count} of {everyone} participants are not usable and are left out.")
    lane = [*PERSON, "learner", "map"]
    rows = rows.sort_values([*lane, "step"], kind="stable")
    no_gap = rows["step"] == rows.groupby(lane, sort=False).cumcount() + 1
    if not no_gap.all():
        notes.append(
            f"{(~no_gap).sum()} steps follow a missing step and are left out: the belief before them is unknown."
        )
        rows = rows[no_gap]
    return rows.reset_index(drop=True), notes


def _replayed(
    rules: StudyRules, rows: "pd.DataFrame", show: Show
) -> tuple["pd.DataFrame", np.ndarray, Arrows, list[str]]:
    """The rows of people whose robots can be replayed, with the belief and the arrows of each, and a note."""
    groups = rows.groupby([*PERSON, "learner", "map"], sort=False)
    which, when = groups.ngroup().to_numpy(), rows["step"].to_numpy()
    heads = groups.head(1)
    given = np.full((len(heads), rules.config.steps), -1)
    given[which, when - 1] = rows["choice"]
    taught = [
        arms.Taught(int(number), name, choices.tolist())
        for number, name, choices in zip(heads["participant"], heads["map"], given, strict=True)
    ]
    trace = arms.follow(
        rules, taught, heads["learner"].tolist(), show=lambda done: show(done / len(taught))
    )
    targets = np.stack([rules.truth(name).target for name in heads["map"]])
    distance = np.linalg.norm(trace.beliefs[which, when] - targets[which], axis=-1)
    differs = ~(np.abs(distance - rows["distance"].to_numpy()) < REPLAYED)
    person = rows.groupby(PERSON, sort=False).ngroup()
    kept = ~person.isin(person[differs]).to_numpy()
    notes = []
    if not kept.all():
        people = f"{person[~kept].nunique()} of {person.nunique()} participants"
        if not kept.any():
            raise InputError(
                f"stored distances of {people} differ from a replay of the choices: these data were not made under "
                "the configuration in study.toml, or not by this version of ital"
            )
        notes.append(
            f"{people} are left out: a replay of their choices does not give the stored distances."
        )
    arrows = Arrows(*(part[which, when - 1][kept] for part in trace.arrows))
    return rows[kept].reset_index(drop=True), trace.beliefs[which, when - 1][kept], arrows, notes


def _people(rows: "pd.DataFrame", scores: np.ndarray, count: int) -> "pd.DataFrame":
    """The fits of people whose rows are sorted."""
    new = rows[PERSON].ne(rows[PERSON].shift()).any(axis=1).to_numpy()
    choices = Choices(rows["choice"].to_numpy(), np.flatnonzero(new), count)
    return fitted(rows[new][PERSON], scores, choices)


def fitted(people: "pd.DataFrame", scores: np.ndarray, choices: Choices) -> "pd.DataFrame":
    """Fit every model to every person.

    Args:
        people: Who they are, a row each (P).
        scores: Scores by model, step and arrow, in units of their spread (M, N, B).
        choices: What they chose.

    Returns:
        The rows of ``people`` for every model, with ``steps``, ``rho``, ``epsilon``, ``log_likelihood`` and ``bic``.
    """
    import pandas as pd

    nothing = np.full(len(choices.first), np.nan)
    chance = Maximum(nothing, nothing, -choices.steps * np.log(choices.among))
    tables = []
    for model in MODELS:
        best = (
            chance
            if model.score is None
            else likelihood.maximise(scores[SCORED.index(model)], choices)
        )
        bic = model.parameters * np.log(choices.steps) - 2 * best.log_likelihood
        own = people.assign(model=model.name, steps=choices.steps, **best._asdict(), bic=bic)
        tables.append(own.assign(person=np.arange(len(own))))
    table = pd.concat(tables, ignore_index=True).sort_values("person", kind="stable")
    return table.drop(columns="person").reset_index(drop=True)


def with_selection(
    people: "pd.DataFrame", groups: Sequence[str]
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Select models: the best of each person, and how frequent each is in every group.

    Args:
        people: What :func:`fitted` returned, for one or several groups.
        groups: The columns that tell groups apart.

    Returns:
        The table with the columns ``best`` (the lowest BIC, or the first of several) and ``probability`` (that the
        person uses the model, given the group), and a table with one row per group and model.
    """
    import pandas as pd

    told, models = [], []
    for place, group in people.groupby(list(groups), sort=False):
        evidence = -group["bic"].to_numpy().reshape(-1, len(NAMES)) / 2
        selection = _selection.select(evidence)
        best = evidence.argmax(axis=1)[:, None] == np.arange(len(NAMES))
        rows = group.assign(best=best.ravel(), probability=selection.responsibility.ravel())
        winners = rows[rows["best"]].groupby("model")[["rho", "epsilon"]].median().reindex(NAMES)
        told.append(rows)
        models.append(
            pd.DataFrame(
                dict(zip(groups, place, strict=True))
                | {
                    "model": NAMES,
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
    columns = [*groups, *(name for name in people if name not in groups), "best", "probability"]
    return pd.concat(told, ignore_index=True)[columns], pd.concat(models, ignore_index=True)
