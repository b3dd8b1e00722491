"""What the data can tell: simulated people of every kind, and whether the fit finds their kind and
their numbers.
"""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.fit import LARGEST, probabilities, select_models
from ital_study.config.configuration import Config
from ital_study.fitting.people import ALL_ROBOTS, Show, fit_models
from ital_study.fitting.scores import MODELS, NAMES, RANDOM, SCORED, score_units, scores_many
from ital_study.robots.rules import StudyRules
from ital_study.robots.world import Arrows
from ital_study.simulation import arms

if TYPE_CHECKING:
    import pandas as pd

RATIONALITIES = (0.5, 1.0, 2.0)
LAPSE = 0.1


class SimulatedPeople(NamedTuple):
    """What simulated people saw and chose.

    Attributes:
        scores: Scores by model, kind, person, robot, step and arrow.
        at_start: The same at the robot's first belief on the map.
        chosen: Choices by kind, person, robot and step.
    """

    scores: np.ndarray
    at_start: np.ndarray
    chosen: np.ndarray


class StudyRecovery(NamedTuple):
    """Simulated people of every kind, and what the fit says about them.

    Attributes:
        config: The study.
        participants: Number of people per kind.
        steps: Number of steps of a person with each robot.
        lapse: Their ε.
        people: A row per ρ, robot, kind, participant and model, as in a fit.
        models: A row per ρ, robot, kind and model: for how many people the model is best, and how
            frequent it is.
        parameters: A row per ρ, robot and kind: quartiles of ρ and ε of the true model.
        correlations: A row per robot and pair of scores: their correlation within a step, for
            random teachers. The other one of ``at the start`` is the same score at the robot's
            first belief.
    """

    config: Config
    participants: int
    steps: int
    lapse: float
    people: "pd.DataFrame"
    models: "pd.DataFrame"
    parameters: "pd.DataFrame"
    correlations: "pd.DataFrame"


def recover(
    config: Config,
    participants: int = 40,
    steps: int = 60,
    rationalities: Sequence[float] = RATIONALITIES,
    lapse: float = LAPSE,
    show: Show = lambda percent: None,
) -> StudyRecovery:
    """Simulate people of every kind and fit all models to them.

    A person chooses by the probabilities of its kind, with the given ρ and ε. It teaches every
    robot on as many maps as the steps need; participant n begins with map n. The same arguments
    give the same people.

    Args:
        config: The study.
        participants: Number of people per kind.
        steps: Number of steps of a person with each robot.
        rationalities: Values of ρ, in units of the spread of a score; each makes people of its own.
        lapse: Their ε.
        show: Called with the percentage that is done.

    Returns:
        Which models are best for whom, and how close the fitted parameters are.

    Raises:
        InputError: A number is out of range.
    """
    import pandas as pd

    _check_numbers(config, participants, steps, rationalities, lapse)
    rules = StudyRules(config)
    units = score_units(rules)
    people = []
    correlations = []
    for i, rho in enumerate(rationalities):
        made = _simulate(rules, units, participants, steps, rho, lapse)
        for j, learner in enumerate((*config.learners, ALL_ROBOTS)):
            show(100 * (i + (j + 1) / (len(config.learners) + 2)) / len(rationalities))
            own = slice(None) if learner == ALL_ROBOTS else slice(j, j + 1)
            fitted = _fit_all(made.scores[:, :, :, own], made.chosen[:, :, own])
            people.append(fitted.assign(simulated_rho=rho, learner=learner))
            # The random kind, which is the last, does not depend on ρ: once is enough.
            if i == 0 and learner != ALL_ROBOTS:
                found = _correlations(made.scores[:, -1, :, j], made.at_start[:, -1, :, j])
                correlations.append(found.assign(learner=learner))
    show(100)
    table, models = select_models(
        pd.concat(people, ignore_index=True), ["simulated_rho", "learner", "kind"]
    )
    columns = ["learner", "score", "other", "correlation"]
    return StudyRecovery(
        config=config,
        participants=participants,
        steps=steps,
        lapse=lapse,
        people=table,
        models=models,
        parameters=_parameters(table),
        correlations=pd.concat(correlations, ignore_index=True)[columns],
    )


def _check_numbers(
    config: Config, participants: int, steps: int, rationalities: Sequence[float], lapse: float
) -> None:
    """Raise InputError if a number of the simulation is out of range."""
    most = len(config.maps) * config.steps
    if participants < 1:
        raise InputError(f"--participants {participants}: at least one person per kind is needed")
    if not 1 <= steps <= most:
        raise InputError(
            f"--steps {steps}: a person teaches each robot of this study for 1 to {most} steps"
        )
    if not rationalities or not all(0 < rho <= LARGEST for rho in rationalities):
        raise InputError(f"a simulated ρ must lie above 0 and be at most {LARGEST:g}")
    if len(set(rationalities)) < len(rationalities):
        raise InputError("the simulated values of ρ must differ")
    if not 0 <= lapse < 1:
        raise InputError(f"--lapse {lapse:g}: the share of lapses must lie in [0, 1)")


def _simulate(
    rules: StudyRules, units: np.ndarray, participants: int, steps: int, rho: float, lapse: float
) -> SimulatedPeople:
    """Let people of every kind choose."""
    config = rules.config
    maps = math.ceil(steps / config.steps)
    # A lane is one person with one robot on one map; all lanes advance together.
    shape = (len(MODELS), participants, len(config.learners), maps)
    kind, person, robot, turn = (axis.ravel() for axis in np.indices(shape))
    names = np.array([on.name for on in config.maps])[(person + turn) % len(config.maps)]
    # A person's draws depend on nobody else.
    keys = zip(kind, person, robot, turn, strict=True)
    draws = np.stack(
        [np.random.default_rng((config.seed, *key)).random(config.steps) for key in keys]
    )
    no_choices = [-1] * config.steps
    taught = [
        arms.Taught(int(number) + 1, str(name), no_choices)
        for number, name in zip(person, names, strict=True)
    ]

    def score(maps: np.ndarray, beliefs: np.ndarray, arrows: Arrows) -> np.ndarray:
        return scores_many(rules, maps.tolist(), beliefs, arrows) / units[:, None, None]

    def pick(lanes: np.ndarray, t: int, arrows: Arrows, beliefs: np.ndarray) -> np.ndarray:
        scores = score(names[lanes], beliefs, arrows)
        # The random kind, which is the last, finds all arrows equal.
        scores = np.concatenate([scores, np.zeros_like(scores[:1])])
        own = scores[kind[lanes], np.arange(len(lanes))]
        chances = probabilities(own, rho, lapse)
        passed = chances.cumsum(axis=-1)[:, :-1] < draws[lanes, t][:, None]
        return passed.sum(axis=-1).astype(np.int32)

    trace = arms.follow(rules, taught, [config.learners[i] for i in robot], pick=pick)
    arrows = Arrows(*(part.reshape(-1, config.candidates) for part in trace.arrows))
    # Maps follow each other: a person's steps with a robot are cut at the number that was asked
    # for.
    per_robot = (*shape[:3], maps * config.steps)

    def replayed(beliefs: np.ndarray) -> np.ndarray:
        """Return the scores of all steps (model, kind, person, robot, step, arrow) at these
        beliefs.
        """
        flat = beliefs.reshape(len(arrows.cells), -1)
        scores = score(names.repeat(config.steps), flat, arrows)
        every = scores.reshape(len(SCORED), *per_robot, config.candidates)
        return every[..., :steps, :]

    before = trace.beliefs[:, :-1]
    return SimulatedPeople(
        scores=replayed(before),
        at_start=replayed(np.broadcast_to(before[:, :1], before.shape)),
        chosen=trace.choice.reshape(per_robot)[..., :steps],
    )


def _fit_all(scores: np.ndarray, chosen: np.ndarray) -> "pd.DataFrame":
    """Fit all models to simulated people: axes (model, kind, person, robot, step, arrow) and
    without the ends.
    """
    import pandas as pd

    kind, person = (axis.ravel() for axis in np.indices(chosen.shape)[:2])
    steps = pd.DataFrame({"kind": np.array(NAMES)[kind], "participant": person + 1})
    return fit_models(steps, chosen.ravel(), scores.reshape(len(scores), -1, scores.shape[-1]))


def _correlations(scores: np.ndarray, at_start: np.ndarray) -> "pd.DataFrame":
    """Return the correlations of scores among the arrows of a step, with each other and with the
    first belief's.
    """
    import pandas as pd

    every = np.concatenate([scores, at_start])
    centred = every - every.mean(axis=-1, keepdims=True)
    matrix = np.corrcoef(centred.reshape(len(every), -1))
    names = [model.name for model in SCORED]
    pairs = [
        (names[i], names[j], matrix[i, j]) for i, j in itertools.combinations(range(len(names)), 2)
    ]
    pairs += [(name, "at the start", matrix[i, len(names) + i]) for i, name in enumerate(names)]
    return pd.DataFrame(pairs, columns=["score", "other", "correlation"])


def _parameters(people: "pd.DataFrame") -> "pd.DataFrame":
    """Return quartiles of ρ and ε of the true model over people.

    Where ρ = 0, nothing determines ε: it is left out.
    """
    import pandas as pd

    own = people[(people["kind"] == people["model"]) & (people["kind"] != RANDOM.name)]
    each = own.groupby(["simulated_rho", "learner", "kind"], sort=False)[["rho", "epsilon"]]
    tables = [each.quantile(percent / 100).add_suffix(f"_{percent}") for percent in (25, 50, 75)]
    return pd.concat(tables, axis=1).reset_index()
