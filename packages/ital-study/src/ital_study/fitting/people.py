"""Which teacher is each person? The models of a teacher fitted to the choices of every participant
with every robot.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.fit import TeacherModel, fit_people, from_arrays, select_models
from ital_study.analysis.measures import rows_of_mode
from ital_study.config.configuration import Config
from ital_study.data.left_out import left_out
from ital_study.data.table import StudyData, check_unique, read_study, unreadable
from ital_study.fitting.scores import MODELS, SCORED, score_units, scores_many
from ital_study.robots.rules import StudyRules
from ital_study.robots.world import Arrows
from ital_study.simulation import arms

if TYPE_CHECKING:
    import pandas as pd

ALL_ROBOTS = "all"  # the choices for all robots of a person together
REPLAYED = 0.01  # largest difference of a stored distance from the replayed one
PERSON = ["teacher", "participant"]
LANE = [*PERSON, "learner", "map"]  # columns that tell sequences of steps apart
Show = Callable[[float], None]

# Scores reach the fit in their units, as columns with the names of the models.
FITTED = tuple(
    TeacherModel(model.name, None if model.score is None else model.name, unit=1.0)
    for model in MODELS
)


class StudyFit(NamedTuple):
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
        choices: A row per step and arrow, as :func:`ital.fit.read` takes it: scores in their units,
            and the choice.
    """

    config: Config
    kind: str
    mode: str
    participants: dict[str, int]
    people: "pd.DataFrame"
    models: "pd.DataFrame"
    units: dict[str, float]
    notes: list[str]
    choices: "pd.DataFrame"


class Replay(NamedTuple):
    """The steps of people whose robots can be replayed, N of them.

    Attributes:
        rows: The steps.
        beliefs: The robot's belief before each step (N, S).
        arrows: The candidates of each step, both parts (N, B).
        notes: How many people are left out.
    """

    rows: "pd.DataFrame"
    beliefs: np.ndarray
    arrows: Arrows
    notes: list[str]


class Scored(NamedTuple):
    """The steps of all people who can be fitted, with the scores of their arrows.

    Attributes:
        rows: The steps, N of them.
        scores: Scores by model, step and arrow, in their units (M, N, B).
        units: The unit of each score (M,).
        mode: Mode of the participants.
        notes: Who is left out.
    """

    rows: "pd.DataFrame"
    scores: np.ndarray
    units: np.ndarray
    mode: str
    notes: list[str]

    @property
    def choices(self) -> "pd.DataFrame":
        """A row per step and arrow: who taught whom what, the scores, which arrow was chosen."""
        arrows = self.scores.shape[-1]
        lanes = self.rows[[*PERSON, "learner", "map", "step"]]
        table = lanes.loc[lanes.index.repeat(arrows)].reset_index(drop=True)
        candidate = np.tile(np.arange(arrows), len(lanes))
        is_chosen = candidate == self.rows["choice"].to_numpy().repeat(arrows)
        scores = {model.name: own.ravel() for model, own in zip(SCORED, self.scores, strict=True)}
        return table.assign(
            person=table["teacher"].astype(str) + " " + table["participant"].astype(str),
            trial=table["learner"] + " " + table["map"] + " " + table["step"].astype(str),
            candidate=candidate,
            chosen=is_chosen.astype(int),
            **scores,
        )


def fit(study: StudyData, mode: str | None = None, show: Show = lambda percent: None) -> StudyFit:
    """Fit models of a teacher to the choices of every participant with every robot, and with
    all robots together.

    A model says p(c) = ε/B + (1−ε)·softmax(ρs)_c. Its score s is replayed from the stored choices:
    the exact and the imitated teaching volume, the loss and minus the loss of the robot, the norm
    of its gradient, nearness to the goal, or nothing (random). ρ ≥ 0 is per typical spread of the
    score among the arrows of a step.

    Steps after a missing one are left out, because the robot's belief is then unknown. So are
    participants who are not usable, and those whose stored distances differ from a replay under
    this configuration.

    Args:
        study: Configuration and step table.
        mode: Mode of the participants; None: ``live`` if there are any, else ``simulated``.
        show: Called with the percentage that is done.

    Returns:
        Tables of people and of models.

    Raises:
        InputError: There are no steps of that mode, a step is in the table twice, or nobody can be
            fitted.
    """
    config = study.config
    scored = score(study, mode, lambda share: show(30 * share))
    people, models = _fit_robots(config, scored, show)
    units = map(float, scored.units)
    named = dict(zip([model.name for model in SCORED], units, strict=True))
    participants = scored.rows.groupby("teacher", sort=False)["participant"].nunique()
    show(100)
    return StudyFit(
        config=config,
        kind="human" if "human" in participants else "simulated",
        mode=scored.mode,
        participants={str(teacher): int(count) for teacher, count in participants.items()},
        people=people,
        models=models.assign(unit=models["model"].map(named)),
        units=named,
        notes=scored.notes,
        choices=scored.choices,
    )


def score(study: StudyData, mode: str | None = None, show: Show = lambda share: None) -> Scored:
    """Score the arrows of every step of every participant, as :func:`fit` does.

    Args:
        study: Configuration and step table.
        mode: Mode of the participants; None: ``live`` if there are any, else ``simulated``.
        show: Called with the share that is done.

    Returns:
        The steps and the scores of their arrows.

    Raises:
        InputError: There are no steps of that mode, a step is in the table twice, or nobody can be
            fitted.
    """
    config = study.config
    check_unique(study.steps)
    mode, steps, notes = rows_of_mode(study.steps, mode)
    notes += unreadable(study.participants, mode)
    steps, incomplete = _usable_steps(config, steps)
    gone = left_out(config, steps, study.participants)
    if gone.everybody:
        raise InputError("everybody who taught is excluded: there is nobody to fit")
    if gone.size:
        notes.append(f"{gone.size} people are left out: see Data quality.")

    rules = StudyRules(config)
    replay = _replay(rules, gone.without(steps), show)
    units = score_units(rules)
    maps = replay.rows["map"].tolist()
    scores = scores_many(rules, maps, replay.beliefs, replay.arrows) / units[:, None, None]
    return Scored(replay.rows, scores, units, mode, [*notes, *incomplete, *replay.notes])


def read_choices(folder: Path) -> "pd.DataFrame | None":
    """Read a study's export as the table that ``ital fit`` takes, with the scores in their units.

    Args:
        folder: A folder written by export or simulate.

    Returns:
        A row per step and arrow; None if the folder holds no study.

    Raises:
        InputError: The study cannot be read, or nobody can be fitted.
    """
    if not (folder / "study.toml").is_file():
        return None
    return score(read_study(folder)).choices


def fit_models(steps: "pd.DataFrame", chosen: np.ndarray, scores: np.ndarray) -> "pd.DataFrame":
    """Fit every model of the study to every person.

    Args:
        steps: The columns that tell people apart, a row per step (N).
        chosen: Index of the chosen arrow of each step (N,).
        scores: Scores by model, step and arrow, in units of their spread (M, N, B).

    Returns:
        The rows of people for every model, with ``steps``, ``rho``, ``epsilon``, ``log_likelihood``
        and ``bic``.
    """
    columns = {model.name: own for model, own in zip(SCORED, scores, strict=True)}
    table = fit_people(from_arrays(steps, chosen, columns), FITTED)
    return table.rename(columns={"trials": "steps"})


def _fit_robots(
    config: Config, scored: Scored, show: Show
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Fit the choices for each robot and for all together; return the tables of people and of
    models.
    """
    import pandas as pd

    rows = scored.rows
    tables = []
    robots = [*config.learners, ALL_ROBOTS]
    for i, learner in enumerate(robots):
        show(30 + 70 * i / len(robots))
        own = np.ones(len(rows), bool)
        if learner != ALL_ROBOTS:
            own = (rows["learner"] == learner).to_numpy()
        if own.any():
            chosen = rows["choice"].to_numpy()[own]
            fitted = fit_models(rows.loc[own, PERSON], chosen, scored.scores[:, own])
            tables.append(fitted.assign(learner=learner))
    return select_models(pd.concat(tables, ignore_index=True), ["teacher", "learner"])


def _usable_steps(config: Config, steps: "pd.DataFrame") -> tuple["pd.DataFrame", list[str]]:
    """Return the steps of usable participants up to the first gap, sorted, and notes on the
    rest.
    """
    notes = []
    everyone = steps.groupby(PERSON).ngroups
    names = [on.name for on in config.maps]
    of_study = steps["learner"].isin(config.learners) & steps["map"].isin(names)
    rows = steps[steps["usable"] & of_study]
    if rows.empty:
        raise InputError("no participant of this study is usable: there is nothing to fit yet")
    _check_steps(config, rows)
    gone = everyone - rows.groupby(PERSON).ngroups
    if gone:
        notes.append(f"{gone} of {everyone} participants are not usable and are left out.")

    rows = rows.sort_values([*LANE, "step"], kind="stable")
    no_gap = rows["step"] == rows.groupby(LANE, sort=False).cumcount() + 1
    if not no_gap.all():
        notes.append(
            f"{(~no_gap).sum()} steps follow a missing step and are left out: the belief before "
            "them is unknown."
        )
    return rows[no_gap].reset_index(drop=True), notes


def _check_steps(config: Config, rows: "pd.DataFrame") -> None:
    """Raise InputError if a choice or the number of a step is none of this study's."""
    not_an_arrow = (rows["choice"] < 0) | (rows["choice"] >= config.candidates)
    wrong = rows[not_an_arrow | (rows["step"] > config.steps)]
    if len(wrong):
        row = wrong.iloc[0]
        raise InputError(
            f"participant {row['participant']} chose arrow {row['choice']} in step {row['step']} "
            "on map "
            f"{row['map']!r}, but this study has {config.steps} steps of {config.candidates} "
            "arrows: check study.toml"
        )


def _replay(rules: StudyRules, rows: "pd.DataFrame", show: Show) -> Replay:
    """Replay the robots of all people, and leave out whoever's stored distances differ from the
    replay.
    """
    groups = rows.groupby(LANE, sort=False)
    lane = groups.ngroup().to_numpy()
    step = rows["step"].to_numpy() - 1
    heads = groups.head(1)
    given = np.full((len(heads), rules.config.steps), -1)
    given[lane, step] = rows["choice"]
    taught = [
        arms.Taught(int(number), name, choices.tolist())
        for number, name, choices in zip(heads["participant"], heads["map"], given, strict=True)
    ]
    trace = arms.follow(
        rules, taught, heads["learner"].tolist(), show=lambda done: show(done / len(taught))
    )
    targets = np.stack([rules.truth(name).target for name in heads["map"]])
    # The trace holds the belief before the first step as well.
    distance = np.linalg.norm(trace.beliefs[lane, step + 1] - targets[lane], axis=-1)
    # A missing distance differs too.
    differs = ~(np.abs(distance - rows["distance"].to_numpy()) < REPLAYED)
    person = rows.groupby(PERSON, sort=False).ngroup()
    kept = ~person.isin(person[differs]).to_numpy()
    arrows = Arrows(*(part[lane, step][kept] for part in trace.arrows))
    return Replay(
        rows[kept].reset_index(drop=True),
        trace.beliefs[lane, step][kept],
        arrows,
        _notes_on_replay(person, kept),
    )


def _notes_on_replay(person: "pd.Series", kept: np.ndarray) -> list[str]:
    """Say how many people are left out because they cannot be replayed; raises InputError if it is
    everyone.
    """
    if kept.all():
        return []
    people = f"{person[~kept].nunique()} of {person.nunique()} participants"
    if not kept.any():
        raise InputError(
            f"stored distances of {people} differ from a replay of the choices: these data were "
            "not made under "
            "the configuration in study.toml, or not by this version of ital"
        )
    return [f"{people} are left out: a replay of their choices does not give the stored distances."]
