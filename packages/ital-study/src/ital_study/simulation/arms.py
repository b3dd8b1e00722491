"""Simulated participants in this process. Arms whose learners share a rule are lanes of one compiled program.

An arm is a teacher with a learner. Teachers are numbers: the choice is argmaxᵢ(ρ·TVᵢ + noise·Gumbelᵢ), which is the
machine's pick for ρ = 1 without noise, a draw ∝ exp(ρ·TV) with noise, and a random arrow for ρ = 0.
"""

import functools
import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ital import __version__
from ital.errors import InputError
from ital.learners import Learner
from ital_study.config import orders as _orders
from ital_study.config.configuration import ADAPTIVE, LEARNERS, Config
from ital_study.config.sections import Map
from ital_study.data.table import frame
from ital_study.robots import world
from ital_study.robots.rules import StudyRules
from ital_study.robots.world import METRICS, Arrows
from ital_study.simulation.lanes import ArmLane, Trace, run_lanes

if TYPE_CHECKING:
    import pandas as pd

MATCHED = "imt-matched"
"""The control: steps along the naive robot's gradient, each as long as the aware robot's step would be."""

PickFor = Callable[[np.ndarray, int, Arrows, np.ndarray], np.ndarray]
"""Chooses for some lanes: their places among all lanes, the step from 0, its arrows and the beliefs → the choices."""

LANES = 128  # lanes per call; a fixed number, so that no result depends on the number of lanes


class ArmTeacher(NamedTuple):
    """How a simulated participant chooses: argmaxᵢ(ρ·TVᵢ + noise·Gumbelᵢ).

    Attributes:
        name: Name of the teacher in tables.
        rationality: ρ.
        noise: 1 for a random choice, 0 for a deterministic one.
    """

    name: str
    rationality: float
    noise: float


def teacher(name: str, rationality: float | None = None, *, default: float) -> ArmTeacher:
    """Make a simulated participant from its name.

    Args:
        name: ``machine``, ``random``, ``boltzmann`` or ``boltzmann:RHO``.
        rationality: ρ of ``boltzmann``, instead of ``RHO`` in the name.
        default: ρ of ``boltzmann`` where neither is given.

    Returns:
        The teacher.

    Raises:
        InputError: There is no such teacher, ρ is not a finite number, or the teacher takes no ρ.
    """
    kind, _, rho = name.partition(":")
    if kind not in ("machine", "random", "boltzmann") or (rho and kind != "boltzmann"):
        raise InputError(
            f"teacher must be machine, random, boltzmann or boltzmann:RHO, not {name!r}"
        )
    if rationality is not None and (rho or kind != "boltzmann"):
        raise InputError(f"a rationality needs the plain teacher boltzmann, not {name!r}")
    try:
        value = float(rho) if rho else default if rationality is None else float(rationality)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"the rationality of a boltzmann teacher must be a finite number, not {rho or rationality!r}"
        )
    if kind == "machine":
        return ArmTeacher(kind, 1.0, 0.0)
    if kind == "random":
        return ArmTeacher(kind, 0.0, 1.0)
    return ArmTeacher(f"boltzmann:{repr(value).removesuffix('.0')}", value, 1.0)


class ArmsRun(NamedTuple):
    """Simulated participants: axes participant, map, arm, then step.

    Attributes:
        numbers: Numbers of the participants.
        maps: Names of the maps.
        arms: Teacher and learner of each arm.
        trace: Arrows, choices, lengths of steps and beliefs.
        measures: Values by the names of the measures; they begin with step 0.
    """

    numbers: list[int]
    maps: list[str]
    arms: list[tuple[str, str]]
    trace: Trace
    measures: dict[str, np.ndarray]


def run(
    config: Config,
    participants: int | Sequence[int],
    teachers: Sequence[ArmTeacher],
    learners: Sequence[str] | None = None,
    *,
    rules: StudyRules | None = None,
    show: Callable[[int], None] = lambda done: None,
) -> ArmsRun:
    """Let every participant teach every learner on every map, once per teacher.

    Args:
        config: The study.
        participants: Number of participants (1, 2, …), or their numbers.
        teachers: How they choose.
        learners: The study's learners if None; any others and :data:`MATCHED` are allowed.
        rules: Rules of the study, if they exist already.
        show: Called with the number of participants that have finished.

    Returns:
        Choices, beliefs and measures of all arms.

    Raises:
        InputError: There is no participant, or no such learner.
    """
    rules = rules or StudyRules(config)
    learners = config.learners if learners is None else learners
    numbers = (
        list(range(1, participants + 1)) if isinstance(participants, int) else list(participants)
    )
    if not numbers:
        raise InputError("at least one participant is needed")
    arms = [(teacher, learner) for teacher in teachers for learner in learners]
    combinations = list(itertools.product(numbers, config.maps, arms))
    lanes = [_lane(rules, number, on, arm) for number, on, arm in combinations]
    kinds = [learner for _, _, (_, learner) in combinations]
    trace = _run_all(rules, lanes, kinds, lambda done: show(done * len(numbers) // len(lanes)))
    shape = (len(numbers), len(config.maps), len(arms))
    trace = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), trace)
    measured = [
        rules.measures_many(on.name, trace.beliefs[:, i]) for i, on in enumerate(config.maps)
    ]
    beliefs = (len(numbers), len(arms), config.steps + 1)
    measures = {
        name: np.stack([m[name].reshape(beliefs) for m in measured], axis=1) for name in METRICS
    }
    names = [(teacher.name, learner) for teacher, learner in arms]
    return ArmsRun(numbers, [on.name for on in config.maps], names, trace, measures)


def _run_all(
    rules: StudyRules,
    lanes: Sequence[ArmLane],
    learners: Sequence[str],
    show: Callable[[int], None] = lambda n: None,
    pick: PickFor | None = None,
) -> Trace:
    """Run the compiled programs, one per rule, on all lanes; return traces in the order of the lanes."""
    of_rule: dict[Any, list[int]] = {}
    for i, learner in enumerate(learners):
        of_rule.setdefault(_robot(rules, learner).rule, []).append(i)
    traces, done = [], 0
    for rule, places in of_rule.items():
        for first in range(0, len(places), LANES):
            own = places[first : first + LANES]
            traces.append(_run_some(rules, rule, lanes, own, pick))
            done += len(own)
            show(done)
    back = np.argsort(np.concatenate([np.asarray(places) for places in of_rule.values()]))
    return jax.tree.map(lambda *each: np.concatenate(each)[back], *traces)


def _run_some(
    rules: StudyRules, rule: Any, lanes: Sequence[ArmLane], own: Sequence[int], pick: PickFor | None
) -> Trace:
    """Run the compiled program on a few of the lanes: pad them, run, and cut the padding off."""
    config = rules.config
    numbers = (np.float32(config.lr), np.float32(config.start), np.uint32(config.seed))
    padded = np.array([*own, *itertools.repeat(own[-1], LANES - len(own))])
    stacked = jax.tree.map(lambda *each: np.stack(each), *(lanes[i] for i in padded))
    chooses = None if pick is None else functools.partial(pick, padded)
    trace = run_lanes(rules.game, rule, config.steps, config.candidates, *numbers, stacked, chooses)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(own)], trace)


def _robot(rules: StudyRules, learner: str) -> Learner:
    """The robot that determines a learner's step lengths: for the control, the aware robot."""
    if learner != MATCHED and learner not in rules.robots:
        raise InputError(
            f"unknown learner {learner!r}: choose from {', '.join(rules.robots)} and {MATCHED}"
        )
    return rules.robots["aware" if learner == MATCHED else learner]


def _lane(
    rules: StudyRules,
    number: int,
    on: Map,
    arm: tuple[ArmTeacher, str],
    given: Sequence[int] | None = None,
) -> ArmLane:
    teacher, learner = arm
    truth = rules.truth(on.name)
    return ArmLane(
        number=np.uint32(number),
        code=np.uint32(world.map_code(on.name)),
        target=truth.target,
        cumulative=truth.cumulative,
        rationality=np.float32(teacher.rationality),
        noise=np.float32(teacher.noise),
        # Each robot is taught separately: a random teacher draws separately for each.
        stream=np.uint32(world.map_code(f"{teacher.name} {learner}")),
        settings=_robot(rules, learner).settings,
        matched=np.bool_(learner == MATCHED),
        given=np.full(rules.config.steps, -1, np.int32)
        if given is None
        else np.asarray(given, np.int32),
    )


class Taught(NamedTuple):
    """The choices of a participant on one map, for all steps."""

    number: int
    map: str
    choices: Sequence[int]


class Replayed(NamedTuple):
    """A robot after the choices: axes (which, step); ``measures`` begin with step 0."""

    length: np.ndarray
    measures: dict[str, np.ndarray]


def replay(rules: StudyRules, taught: Sequence[Taught], learner: str) -> Replayed:
    """Show the choices of people to a learner.

    Args:
        rules: Rules of the study.
        taught: The choices.
        learner: Any learner, not only the one that the choices were made for, or :data:`MATCHED`.

    Returns:
        Lengths of the steps, and measures after each.
    """
    trace = follow(rules, taught, [learner] * len(taught))
    measures = {name: np.empty(trace.beliefs.shape[:2]) for name in METRICS}
    for name in {each.map for each in taught}:
        rows = [i for i, each in enumerate(taught) if each.map == name]
        for metric, values in rules.measures_many(name, trace.beliefs[rows]).items():
            measures[metric][rows] = values.reshape(len(rows), -1)
    return Replayed(trace.length, measures)


def follow(
    rules: StudyRules,
    taught: Sequence[Taught],
    learners: Sequence[str],
    *,
    pick: PickFor | None = None,
    show: Callable[[int], None] = lambda done: None,
) -> Trace:
    """Follow robots along choices: given ones, or those that are picked step by step.

    Args:
        rules: Rules of the study.
        taught: The choices; −1 where there is none, and the first arrow is shown.
        learners: The robot of each.
        pick: Chooses instead.
        show: Called with the number of robots that are done.

    Returns:
        Arrows, choices, lengths of steps and beliefs; the first axis is that of ``taught``.
    """
    nobody = ArmTeacher("nobody", 0.0, 0.0)
    lanes = [
        _lane(rules, each.number, rules.map(each.map), (nobody, learner), each.choices)
        for each, learner in zip(taught, learners, strict=True)
    ]
    return _run_all(rules, lanes, learners, show, pick)


def simulate(
    config: Config,
    participants: int | Sequence[int],
    teachers: Sequence[ArmTeacher],
    **options: Any,
) -> "pd.DataFrame":
    """Simulate participants and return their step table.

    Args:
        config: The study.
        participants: Number of participants (1, 2, …), or their numbers.
        teachers: How they choose, from :func:`teacher`.
        **options: Further arguments of :func:`run`: ``learners``, ``rules``, ``show``.

    Returns:
        One row per step; :data:`~ital_study.data.table.CODEBOOK` explains its columns.

    Raises:
        InputError: There is no participant, or no such learner.
    """
    return table(config, run(config, participants, teachers, **options))


def table(config: Config, run: ArmsRun) -> "pd.DataFrame":
    """Make the rows of simulated participants.

    Args:
        config: The study.
        run: What the participants did.

    Returns:
        The step table, sorted by participant, map, arm and step.
    """
    import pandas as pd

    numbers, maps, arms, trace, measures = run
    shape, taught = trace.choice.shape, [learner for _, learner in arms]
    # A robot that the study does not include is simulated as if it did.
    learners = tuple(
        learner for learner in (*LEARNERS, ADAPTIVE) if learner in (*config.learners, *taught)
    )
    orders = [order_of(number, len(maps), learners) for number in numbers]
    arrows = np.stack([trace.arrows.cells, trace.arrows.actions], axis=-1)
    chosen = np.take_along_axis(arrows, trace.choice[..., None, None], axis=-2)[..., 0, :]
    robot = [[_places(order, i, learners, taught) for i in range(shape[1])] for order in orders]

    def along(values: Sequence[Any], *axes: int) -> np.ndarray:
        """Values that vary along some axes, as a column."""
        array = np.asarray(values, object if isinstance(values[0], str) else None)
        return np.broadcast_to(
            np.expand_dims(array, [a for a in range(4) if a not in axes]), shape
        ).ravel()

    return frame(
        pd.DataFrame(
            {
                "participant": along(numbers, 0),
                "mode": "simulated",
                "teacher": along([teacher for teacher, _ in arms], 2),
                "config": config.hash,
                "code_version": __version__,
                "order": along(orders, 0),
                "map": along(maps, 1),
                "learner": along(taught, 2),
                "robot": along(robot, 0, 1, 2),
                "step": along(range(1, shape[3] + 1), 3),
                "usable": True,
                "choice": trace.choice.ravel(),
                "cell": chosen[..., 0].ravel(),
                "action": chosen[..., 1].ravel(),
                "machine_choice": trace.machine_choice.ravel(),
                "candidates": [
                    json.dumps(step) for step in arrows.reshape(-1, *arrows.shape[-2:]).tolist()
                ],
                **{name: values[..., 1:].ravel() for name, values in measures.items()},
                **{f"{name}_before": values[..., :-1].ravel() for name, values in measures.items()},
                "shown_at": "",
                "chosen_at": "",
                "confirmed_at": "",
                "stored_at": "",
                "seconds_to_choice": np.nan,
                "seconds_to_confirm": np.nan,
                "choice_changes": 0,
                "focus_losses": 0,
            }
        )
    )


def _places(
    order: str, map_index: int, learners: Sequence[str], taught: Sequence[str]
) -> list[int]:
    """The number of each robot on a map; the control, which nobody teaches in a study, counts as the last."""
    places = {
        learner: i for i, learner in enumerate(_orders.robots(order, map_index, learners), start=1)
    }
    return [places.get(learner, len(learners)) for learner in taught]


def order_of(number: int, maps: int, learners: tuple[str, ...] = LEARNERS) -> str:
    """The order of a simulated participant; participants cycle through all orders."""
    all_orders = _orders.orders(maps, learners)
    return all_orders[(number - 1) % len(all_orders)]
