"""Simulated participants in this process.

Arms whose learners share a rule are lanes of one compiled program.

An arm is a teacher with a learner. Teachers are numbers: the choice is
argmaxᵢ(ρ·TVᵢ + noise·Gumbelᵢ), which is the machine's pick for ρ = 1 without noise, a draw with
probability ∝ exp(ρ·TV) with noise, and a random arrow for ρ = 0 with noise.
"""

import functools
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ital import __version__
from ital.errors import InputError
from ital.learners import Learner
from ital_study.config import lineup as _lineup
from ital_study.config import map_orders
from ital_study.config.configuration import Config
from ital_study.config.lineup import AWARE, KINDS, LEARNERS
from ital_study.config.sections import Map
from ital_study.data.table import frame
from ital_study.robots import world
from ital_study.robots.rules import StudyRules
from ital_study.robots.world import METRICS, Arrows
from ital_study.simulation.lanes import ArmLane, StudyNumbers, Trace, run_lanes

if TYPE_CHECKING:
    import pandas as pd

MATCHED = "imt-matched"
"""The control: steps along the naive robot's gradient, as long as the aware robot's would be."""

PickFor = Callable[[np.ndarray, int, Arrows, np.ndarray], np.ndarray]
"""Chooses for some lanes.

Their indices among all lanes, the step from 0, its arrows and the beliefs → the choices.
"""

# Lanes per call. The number is fixed, so that no result depends on how many lanes there are.
LANES = 128

# Columns of the step table: programs have no clock and no window.
OF_NO_CLOCK = {
    "shown_at": "",
    "chosen_at": "",
    "confirmed_at": "",
    "stored_at": "",
    "seconds_to_choice": np.nan,
    "seconds_to_confirm": np.nan,
    "choice_changes": 0,
    "focus_losses": 0,
}


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
    kind, _, rho_in_name = name.partition(":")
    if kind not in ("machine", "random", "boltzmann") or (rho_in_name and kind != "boltzmann"):
        raise InputError(
            f"teacher must be machine, random, boltzmann or boltzmann:RHO, not {name!r}"
        )
    if rationality is not None and (rho_in_name or kind != "boltzmann"):
        raise InputError(f"a rationality needs the plain teacher boltzmann, not {name!r}")
    rho = _finite_rho(rho_in_name or rationality, default)
    if kind == "machine":
        return ArmTeacher(kind, rationality=1.0, noise=0.0)
    if kind == "random":
        return ArmTeacher(kind, rationality=0.0, noise=1.0)
    rho_as_text = repr(rho).removesuffix(".0")
    return ArmTeacher(f"boltzmann:{rho_as_text}", rationality=rho, noise=1.0)


def _finite_rho(rho: str | float | None, default: float) -> float:
    """Return ρ of a teacher as a number; raise if it is none."""
    value = default
    if rho is not None:
        try:
            value = float(rho)
        except ValueError:
            value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"the rationality of a boltzmann teacher must be a finite number, not {rho!r}"
        )
    return value


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
    if learners is None:
        learners = config.learners
    numbers = _participant_numbers(participants)
    arms = list(itertools.product(teachers, learners))
    lanes = []
    learners_of_lanes = []
    for number, map_, arm in itertools.product(numbers, config.maps, arms):
        lanes.append(_lane(rules, number, map_, arm))
        _, learner = arm
        learners_of_lanes.append(learner)

    def show_participants(done: int) -> None:
        show(done * len(numbers) // len(lanes))

    flat_trace = _run_all(rules, lanes, learners_of_lanes, show_participants)
    axes = (len(numbers), len(config.maps), len(arms))

    def unflattened(leaf: np.ndarray) -> np.ndarray:
        return leaf.reshape(*axes, *leaf.shape[1:])

    trace = jax.tree.map(unflattened, flat_trace)
    return ArmsRun(
        numbers=numbers,
        maps=[map_.name for map_ in config.maps],
        arms=[(teacher.name, learner) for teacher, learner in arms],
        trace=trace,
        measures=_measures_of_arms(rules, trace.beliefs),
    )


def _participant_numbers(participants: int | Sequence[int]) -> list[int]:
    """Return the numbers of participants; raise if there are none."""
    if isinstance(participants, int):
        numbers = list(range(1, participants + 1))
    else:
        numbers = list(participants)
    if not numbers:
        raise InputError("at least one participant is needed")
    return numbers


def _measures_of_arms(rules: StudyRules, beliefs: np.ndarray) -> dict[str, np.ndarray]:
    """Return the measures of beliefs with axes participant, map, arm, step and cell."""
    # A map at a time: its measures need its truth.
    per_map = []
    for index, map_ in enumerate(rules.config.maps):
        of_map = beliefs[:, index]
        per_map.append(rules.measures_many(map_.name, of_map))
    participants, _, arms, steps, _ = beliefs.shape
    shape = (participants, arms, steps)
    measures = {}
    for name in METRICS:
        values = [measured[name].reshape(shape) for measured in per_map]
        measures[name] = np.stack(values, axis=1)
    return measures


def _run_all(
    rules: StudyRules,
    lanes: Sequence[ArmLane],
    learners: Sequence[str],
    show: Callable[[int], None] = lambda n: None,
    pick: PickFor | None = None,
) -> Trace:
    """Run the compiled programs, one per rule, on all lanes.

    Return traces in the order of the lanes.
    """
    lanes_of_rule: dict[Any, list[int]] = {}
    for index, learner in enumerate(learners):
        rule = _robot_of_steps(rules, learner).rule
        lanes_of_rule.setdefault(rule, []).append(index)
    traces = []
    lanes_done: list[int] = []
    for rule, indices in lanes_of_rule.items():
        for first in range(0, len(indices), LANES):
            some = indices[first : first + LANES]
            trace = _run_some(rules, rule, lanes, some, pick)
            traces.append(trace)
            lanes_done += some
            show(len(lanes_done))
    # Traces stand in the order in which lanes were run; sorting those indices puts them back.
    order = np.argsort(np.asarray(lanes_done))
    return jax.tree.map(lambda *blocks: np.concatenate(blocks)[order], *traces)


def _run_some(
    rules: StudyRules,
    rule: Any,
    lanes: Sequence[ArmLane],
    some: Sequence[int],
    pick: PickFor | None,
) -> Trace:
    """Run the compiled program on a few of the lanes: pad them, run, and cut the padding off."""
    config = rules.config
    count = len(some)
    numbers = StudyNumbers(
        lr=np.float32(config.lr),
        start=np.float32(config.start),
        seed=np.uint32(config.seed),
    )
    # The last lane is repeated: the program always runs LANES lanes.
    padding = itertools.repeat(some[-1], LANES - count)
    padded = np.array([*some, *padding])
    lanes_to_run = [lanes[index] for index in padded]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *lanes_to_run)
    pick_padded = None
    if pick is not None:
        pick_padded = functools.partial(pick, padded)
    trace = run_lanes(
        rules.game,
        rule,
        config.steps,
        config.candidates,
        numbers,
        stacked,
        pick_padded,
    )
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], trace)


def _robot_of_steps(rules: StudyRules, learner: str) -> Learner:
    """Return the robot that determines a learner's step lengths.

    For the control, the aware robot.
    """
    if learner == MATCHED:
        return rules.robots[AWARE]
    if learner not in rules.robots:
        allowed = ", ".join(rules.robots)
        raise InputError(f"unknown learner {learner!r}: choose from {allowed} and {MATCHED}")
    return rules.robots[learner]


def _lane(
    rules: StudyRules,
    number: int,
    map_: Map,
    arm: tuple[ArmTeacher, str],
    choices: Sequence[int] | None = None,
) -> ArmLane:
    """Return the lane of a participant on a map; without choices, the teacher chooses."""
    teacher, learner = arm
    truth = rules.truth(map_.name)
    if choices is None:
        choices = [-1] * rules.config.steps
    return ArmLane(
        number=np.uint32(number),
        code=np.uint32(world.map_code(map_.name)),
        target=truth.target,
        cumulative=truth.cumulative,
        rationality=np.float32(teacher.rationality),
        noise=np.float32(teacher.noise),
        # Each robot is taught separately: a random teacher draws separately for each.
        stream=np.uint32(world.map_code(f"{teacher.name} {learner}")),
        settings=_robot_of_steps(rules, learner).settings,
        matched=np.bool_(learner == MATCHED),
        given=np.asarray(choices, np.int32),
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
    # Robots, and steps with the one before the first.
    shape = trace.beliefs.shape[:2]
    measures = {name: np.empty(shape) for name in METRICS}
    # A map at a time: its measures need its truth.
    for name in {each.map for each in taught}:
        rows = [index for index, each in enumerate(taught) if each.map == name]
        measured = rules.measures_many(name, trace.beliefs[rows])
        for metric, values in measured.items():
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
    nobody = ArmTeacher("nobody", rationality=0.0, noise=0.0)
    lanes = []
    for each, learner in zip(taught, learners, strict=True):
        map_ = rules.map(each.map)
        arm = (nobody, learner)
        lanes.append(_lane(rules, each.number, map_, arm, each.choices))
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
    steps = trace.choice.shape[-1]
    # One row per participant, map, arm and step, in the order of the flattened arrays of the run.
    index = pd.MultiIndex.from_product(
        [numbers, maps, range(len(arms)), range(1, steps + 1)],
        names=["participant", "map", "arm", "step"],
    )
    rows = index.to_frame(index=False)
    robots = _robots_taught(config, run)
    rows_per_person = len(rows) // len(numbers)
    # Cells and actions of the candidates, shape (row, candidate, 2).
    pairs = np.stack([trace.arrows.cells, trace.arrows.actions], axis=-1)
    arrows = pairs.reshape(len(rows), -1, 2)
    choice = trace.choice.ravel()
    chosen = arrows[np.arange(len(rows)), choice]
    columns = {
        "participant": rows["participant"],
        "mode": "simulated",
        "teacher": [arms[arm][0] for arm in rows["arm"]],
        "config": config.hash,
        "code_version": __version__,
        "order": np.repeat([each.order for each in robots], rows_per_person),
        "map": rows["map"],
        "learner": [arms[arm][1] for arm in rows["arm"]],
        "robot": np.repeat([each.numbers for each in robots], steps),
        "step": rows["step"],
        "usable": True,
        "choice": choice,
        "cell": chosen[:, 0],
        "action": chosen[:, 1],
        "machine_choice": trace.machine_choice.ravel(),
        "candidates": [json.dumps(candidates) for candidates in arrows.tolist()],
        **_measures_of_steps(measures),
        **OF_NO_CLOCK,
    }
    return frame(pd.DataFrame(columns))


def _measures_of_steps(measures: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the columns of measures: those after every step, then those before it."""
    after = {}
    before = {}
    for name, values in measures.items():
        after[name] = values[..., 1:].ravel()
        before[f"{name}_before"] = values[..., :-1].ravel()
    return after | before


class RobotsTaught(NamedTuple):
    """In which order a simulated participant teaches the robots.

    Attributes:
        order: The order, as in :func:`order_of`.
        numbers: Number of the robot on its map (1, 2, …), a list of all arms for each map.
    """

    order: str
    numbers: list[list[int]]


def _robots_taught(config: Config, run: ArmsRun) -> list[RobotsTaught]:
    """Return the order of robots of every participant of a run."""
    taught = [learner for _, learner in run.arms]
    # A robot that the study does not include is simulated as if it did.
    learners = tuple(name for name in KINDS if name in (*config.learners, *taught))
    maps = len(run.maps)
    robots = []
    for number in run.numbers:
        order = order_of(number, maps, learners)
        if config.map_order == "balanced":
            rows = map_orders.rows_of_parts(config.part_sizes)
            row = (number - 1) % len(rows)
            order = map_orders.with_row(order, row)
        of_maps = [_robot_numbers(order, index, learners, taught) for index in range(maps)]
        robots.append(RobotsTaught(order, of_maps))
    return robots


def _robot_numbers(
    order: str,
    map_index: int,
    learners: Sequence[str],
    taught: Sequence[str],
) -> list[int]:
    """Return the number of each robot on a map.

    The control, which nobody teaches in a study, counts as the last.
    """
    robots = _lineup.robots(order, map_index, learners)
    numbers = {learner: number for number, learner in enumerate(robots, start=1)}
    return [numbers.get(learner, len(learners)) for learner in taught]


def order_of(number: int, maps: int, learners: tuple[str, ...] = LEARNERS) -> str:
    """Return the order of a simulated participant; participants cycle through all orders."""
    all_orders = _lineup.orders(maps, learners)
    index = (number - 1) % len(all_orders)
    return all_orders[index]
