"""What the data can tell: simulated people of every kind, and whether the fit finds their kind and their numbers."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital.errors import InputError
from ital_study.config.configuration import Config
from ital_study.fitting import likelihood
from ital_study.fitting import scores as _scores
from ital_study.fitting.likelihood import Choices
from ital_study.fitting.people import ALL_ROBOTS, Show, fitted, with_selection
from ital_study.fitting.scores import MODELS, NAMES, SCORED
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


class Recovery(NamedTuple):
    """Simulated people of every kind, and what the fit says about them.

    Attributes:
        config: The study.
        participants: Number of people per kind.
        steps: Number of steps of a person with each robot.
        lapse: Their ε.
        people: A row per ρ, robot, kind, participant and model, as in a fit.
        models: A row per ρ, robot, kind and model: for how many people the model is best, and how frequent it is.
        parameters: A row per ρ, robot and kind: quartiles of ρ and ε of the true model.
        correlations: A row per robot and pair of scores: their correlation within a step, for random teachers. The
            other one of ``at the start`` is the same score at the robot's first belief.
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
) -> Recovery:
    """Simulate people of every kind and fit all models to them.

    A person chooses by the probabilities of its kind, with the given ρ and ε. It teaches every robot on as many maps as
    the steps need; participant n begins with map n. The same arguments give the same people.

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

    _check(config, participants, steps, rationalities, lapse)
    rules = StudyRules(config)
    units = _scores.units(rules)
    people, together = [], []
    for i, rho in enumerate(rationalities):
        scores, at_start, chosen = _simulate(rules, units, participants, steps, rho, lapse)
        for j, learner in enumerate((*config.learners, ALL_ROBOTS)):
            show(100 * (i + (j + 1) / (len(config.learners) + 2)) / len(rationalities))
            own = slice(None) if learner == ALL_ROBOTS else slice(j, j + 1)
            people.append(
                _fit_all(scores[:, :, :, own], chosen[:, :, own]).assign(
                    simulated_rho=rho, learner=learner
                )
            )
            if (
                not i and learner != ALL_ROBOTS
            ):  # the random kind, which is the last, does not depend on ρ
                together.append(
                    _correlations(scores[:, -1, :, j], at_start[:, -1, :, j]).assign(
                        learner=learner
                    )
                )
    show(100)
    table, models = with_selection(
        pd.concat(people, ignore_index=True), ["simulated_rho", "learner", "kind"]
    )
    correlations = pd.concat(together, ignore_index=True)[
        ["learner", "score", "other", "correlation"]
    ]
    return Recovery(
        config, participants, steps, lapse, table, models, _parameters(table), correlations
    )


def _check(
    config: Config, participants: int, steps: int, rationalities: Sequence[float], lapse: float
) -> None:
    most = len(config.maps) * config.steps
    if participants < 1:
        raise InputError(f"--participants {participants}: at least one person per kind is needed")
    if not 1 <= steps <= most:
        raise InputError(
            f"--steps {steps}: a person teaches each robot of this study for 1 to {most} steps"
        )
    if not rationalities or not all(0 < rho <= likelihood.LARGEST for rho in rationalities):
        raise InputError(f"a simulated ρ must lie above 0 and be at most {likelihood.LARGEST:g}")
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
    shape = (len(MODELS), participants, len(config.learners), maps)
    kind, person, robot, turn = (axis.ravel() for axis in np.indices(shape))
    names = np.array([on.name for on in config.maps])[(person + turn) % len(config.maps)]
    # A person's draws depend on nobody else.
    keys = zip(kind, person, robot, turn, strict=True)
    draws = np.stack(
        [np.random.default_rng((config.seed, *key)).random(config.steps) for key in keys]
    )
    unseen = [-1] * config.steps
    taught = [
        arms.Taught(int(number) + 1, str(name), unseen)
        for number, name in zip(person, names, strict=True)
    ]

    def score(maps: np.ndarray, beliefs: np.ndarray, arrows: Arrows) -> np.ndarray:
        return _scores.scores_many(rules, maps.tolist(), beliefs, arrows) / units[:, None, None]

    def pick(lanes: np.ndarray, t: int, arrows: Arrows, beliefs: np.ndarray) -> np.ndarray:
        scores = score(names[lanes], beliefs, arrows)
        scores = np.concatenate(
            [scores, np.zeros_like(scores[:1])]
        )  # of the random kind, which is the last
        chances = likelihood.probabilities(scores[kind[lanes], np.arange(len(lanes))], rho, lapse)
        passed = chances.cumsum(axis=-1)[:, :-1] < draws[lanes, t][:, None]
        return passed.sum(axis=-1).astype(np.int32)

    trace = arms.follow(rules, taught, [config.learners[i] for i in robot], pick=pick)
    arrows = Arrows(*(part.reshape(-1, config.candidates) for part in trace.arrows))
    before = trace.beliefs[:, :-1]
    per_robot = (*shape[:3], maps * config.steps)
    scores, at_start = (
        score(names.repeat(config.steps), beliefs.reshape(len(arrows.cells), -1), arrows)
        .reshape(len(SCORED), *per_robot, config.candidates)[..., :steps, :]
        for beliefs in (before, np.broadcast_to(before[:, :1], before.shape))
    )  # fmt: skip
    return SimulatedPeople(scores, at_start, trace.choice.reshape(per_robot)[..., :steps])


def _fit_all(scores: np.ndarray, chosen: np.ndarray) -> "pd.DataFrame":
    """Fit all models to simulated people: axes (model, kind, person, robot, step, arrow) and without the ends."""
    import pandas as pd

    kinds, people = chosen.shape[:2]
    count, choices = scores.shape[-1], chosen.reshape(kinds * people, -1)
    who = pd.DataFrame(
        {"kind": np.repeat(NAMES, people), "participant": np.tile(np.arange(1, people + 1), kinds)}
    )
    first = np.arange(len(choices)) * choices.shape[1]
    return fitted(
        who, scores.reshape(len(scores), -1, count), Choices(choices.ravel(), first, count)
    )


def _correlations(scores: np.ndarray, at_start: np.ndarray) -> "pd.DataFrame":
    """The correlations of scores among the arrows of a step, with each other and with those at the first belief."""
    import pandas as pd

    every = np.concatenate([scores, at_start])
    matrix = np.corrcoef((every - every.mean(axis=-1, keepdims=True)).reshape(len(every), -1))
    names = [model.name for model in SCORED]
    pairs = [
        (names[i], names[j], matrix[i, j]) for i, j in itertools.combinations(range(len(names)), 2)
    ]
    pairs += [(name, "at the start", matrix[i, len(names) + i]) for i, name in enumerate(names)]
    return pd.DataFrame(pairs, columns=["score", "other", "correlation"])


def _parameters(people: "pd.DataFrame") -> "pd.DataFrame":
    """Quartiles of ρ and ε of the true model over people; an ε that is not determined (ρ = 0) is left out."""
    import pandas as pd

    own = people[(people["kind"] == people["model"]) & (people["kind"] != _scores.RANDOM.name)]
    each = own.groupby(["simulated_rho", "learner", "kind"], sort=False)[["rho", "epsilon"]]
    tables = [each.quantile(percent / 100).add_suffix(f"_{percent}") for percent in (25, 50, 75)]
    return pd.concat(tables, axis=1).reset_index()
