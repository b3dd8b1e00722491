"""The learner for other front ends.

(state, candidates, choice) → (state, belief, signals), in plain numbers.

Nothing is kept between calls: a state holds all that a robot needs for its next step. Robots that
keep a belief have a large memory: their states hold what they were shown, and it is replayed.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.tools.types import Array
from ital_study.config.lineup import KINDS
from ital_study.robots import world
from ital_study.robots.rules import Arrow, Mind, StudyRules
from ital_study.robots.world import Arrows, Game

# The version of states. Front ends keep states, so a change of their content needs another number.
VERSION = 1

# The largest absolute value of a state's numbers: float32 cannot plan with much larger ones.
LARGEST = 1000.0
TOO_LARGE = "the robot's numbers are too large to plan with: start again"

# The belief of a state may differ from that of a replay by this much: machines round differently.
REPLAY_TOLERANCE = 0.01

# Signals that need candidates or a choice. They are None in answers to requests without them.
OF_STEP = ("change", "best", "volumes", "imitated_volumes")

JsonDict = dict[str, Any]  # what JSON can hold


class PastStep(NamedTuple):
    """A step of a robot's history: the arrows, and the index of the one that was chosen."""

    arrows: tuple[Arrow, ...]
    choice: int


def robots_offered(rules: StudyRules) -> list[str]:
    """Return the kinds of robot that front ends can teach.

    Robots that keep a belief take long to compile: only studies that include them offer them.
    """
    offered = []
    for name in rules.robots:
        is_included = name in rules.config.learners
        if is_included or not KINDS[name].believes:
            offered.append(name)
    return offered


def start(
    rules: StudyRules,
    map_name: str,
    robot: str,
    number: int,
) -> JsonDict:
    """Return a robot that has seen nothing yet, and the arrows of its first step.

    Args:
        rules: The study.
        map_name: Name of the map.
        robot: Kind of the robot.
        number: Number of the participant; start and candidates follow from it.

    Returns:
        State, belief, plan, candidates and signals.

    Raises:
        InputError: There is no such map, robot or number.
    """
    _check_robot(rules, robot)
    mind = rules.first_mind(number, map_name, robot)
    state = state_of(rules, map_name, robot, number, mind)
    return _answer_with(rules, state, mind)


def look(rules: StudyRules, state: JsonDict, candidates: Sequence[Arrow]) -> JsonDict:
    """Return what each of these arrows is worth now; the robot learns nothing.

    Args:
        rules: The study.
        state: The robot.
        candidates: The arrows.

    Returns:
        The keys of :func:`start`; the signals include those of the arrows.

    Raises:
        InputError: The state or an arrow is not one of this study.
    """
    mind = mind_of(rules, state)
    worth = _worth_of_arrows(rules, state["map"], mind, candidates)
    return _answer_with(rules, state, mind, **worth)


def step(
    rules: StudyRules,
    state: JsonDict,
    candidates: Sequence[Arrow],
    choice: int,
) -> JsonDict:
    """Show one of the arrows to the robot.

    Args:
        rules: The study.
        state: The robot before the step.
        candidates: The arrows of the step: the study's or others.
        choice: Index of the arrow that the robot sees.

    Returns:
        The robot after the step, and the arrows of the next. The signals' measures are those after
        the step; volumes and the machine's pick are those that the arrows had before it.

    Raises:
        InputError: The state, an arrow or the choice is not valid, or the robot's numbers grew too
            large.
    """
    before = mind_of(rules, state)
    map_name = state["map"]
    robot = state["robot"]
    worth = _worth_of_arrows(rules, map_name, before, candidates)
    try:
        after = rules.update(map_name, robot, before, candidates, choice)
    except FloatingPointError:
        raise InputError(TOO_LARGE) from None
    change = float(np.linalg.norm(after.belief - before.belief))
    history = None
    if KINDS[robot].believes:
        now = PastStep(tuple(candidates), choice)
        history = (*_history_of(rules, state), now)
    state_after = state_of(rules, map_name, robot, state["number"], after, history)
    return _answer_with(rules, state_after, after, change=change, **worth)


def state_of(
    rules: StudyRules,
    map_name: str,
    robot: str,
    number: int,
    mind: Mind,
    history: Sequence[PastStep] | None = None,
) -> JsonDict:
    """Return a robot in plain numbers.

    Args:
        rules: The study.
        map_name: Name of the map.
        robot: Kind of the robot.
        number: Number of the participant.
        mind: The robot.
        history: What a robot that keeps a belief was shown so far.

    Returns:
        The state.
    """
    # A list per array of the memory; the kind of robot determines how they fit together.
    memory = [np.ravel(leaf).tolist() for leaf in jax.tree.leaves(mind.memory)]
    if KINDS[robot].believes:
        memory = _written(history or ())
    return {
        "version": VERSION,
        "config": rules.config.hash[:12],
        "map": map_name,
        "robot": robot,
        "number": number,
        "step": mind.step,
        "belief": mind.belief.tolist(),
        "memory": memory,
    }


def mind_of(rules: StudyRules, state: JsonDict) -> Mind:
    """Return the robot of a state.

    Args:
        rules: The study.
        state: The state.

    Returns:
        The robot, bitwise equal to the one that the state was made of.

    Raises:
        InputError: The state is of another version or configuration, or its numbers do not fit.
    """
    _check_origin(rules, state)
    _check_robot(rules, state["robot"])
    rules.map(state["map"])
    belief = np.asarray(state["belief"], np.float32)
    cells = rules.config.size**2
    if belief.shape != (cells,):
        raise InputError(f"the belief has {belief.size} numbers, the map has {cells} cells")
    if KINDS[state["robot"]].believes:
        return _mind_replayed(rules, state, belief)
    # A new robot of this kind says how many arrays the memory has, and their types and shapes.
    new = rules.mind(state["robot"], belief)
    leaves, structure = jax.tree.flatten(new.memory)
    sizes = [np.size(leaf) for leaf in leaves]
    parts = state["memory"]
    if [len(part) for part in parts] != sizes:
        raise InputError(f"the memory of a robot {state['robot']!r} has parts of {sizes} numbers")
    arrays = []
    for part, leaf in zip(parts, leaves, strict=True):
        flat = np.asarray(part, leaf.dtype)
        arrays.append(flat.reshape(leaf.shape))
    memory = jax.tree.unflatten(structure, arrays)
    return Mind(belief, memory, state["step"])


def _check_robot(rules: StudyRules, robot: str) -> None:
    """Raise for a kind of robot that this study does not offer."""
    offered = robots_offered(rules)
    if robot not in offered:
        allowed = ", ".join(offered)
        raise InputError(f"unknown learner {robot!r}: choose from {allowed}")


def _written(history: Sequence[PastStep]) -> list[list[int]]:
    """Return a history in plain numbers: the cells, the directions and the choices."""
    arrows: list[Arrow] = []
    for past in history:
        arrows += past.arrows
    cells = [arrow.cell for arrow in arrows]
    actions = [arrow.action for arrow in arrows]
    choices = [past.choice for past in history]
    return [cells, actions, choices]


def _history_of(rules: StudyRules, state: JsonDict) -> tuple[PastStep, ...]:
    """Read the history of a robot that keeps a belief; raise if it cannot have been."""
    count = rules.config.candidates
    cells = rules.config.size**2
    steps = state["step"]
    sizes = [steps * count, steps * count, steps]
    memory = state["memory"]
    if [len(part) for part in memory] != sizes:
        raise InputError(
            f"the memory of a robot {state['robot']!r} after {steps} steps has parts of {sizes} "
            "numbers: cells, directions and choices"
        )
    # What each number must stay below.
    limits = (cells, 4, count)
    for part, limit in zip(memory, limits, strict=True):
        if not all(_is_index(number, limit) for number in part):
            raise InputError("the memory has numbers that are no cells, directions or choices")
    cells_shown, actions_shown, choices = memory
    arrows = []
    for cell, action in zip(cells_shown, actions_shown, strict=True):
        arrows.append(Arrow(int(cell), int(action)))
    history = []
    for number, choice in enumerate(choices):
        first = number * count
        of_step = arrows[first : first + count]
        history.append(PastStep(tuple(of_step), int(choice)))
    return tuple(history)


def _is_index(number: float, limit: int) -> bool:
    return 0 <= number < limit and number == int(number)


def _mind_replayed(rules: StudyRules, state: JsonDict, belief: np.ndarray) -> Mind:
    """Return the robot of a state that holds a history."""
    history = _history_of(rules, state)
    about = (rules, state["map"], state["robot"], state["number"])
    # Shorter histories first: each finds its predecessor in the cache, so the recursion is never
    # deeper than one call.
    for steps in range(len(history)):
        _mind_after(*about, history[:steps])
    mind = _mind_after(*about, history)
    if not np.allclose(mind.belief, belief, rtol=REPLAY_TOLERANCE, atol=REPLAY_TOLERANCE):
        raise InputError("the belief is not that of a robot that was shown these arrows")
    # The belief that was sent is the one that people saw.
    return mind._replace(belief=belief)


# The memory of one robot holds about 100 kB.
@functools.lru_cache(maxsize=512)
def _mind_after(
    rules: StudyRules,
    map_name: str,
    robot: str,
    number: int,
    history: tuple[PastStep, ...],
) -> Mind:
    if not history:
        return rules.first_mind(number, map_name, robot)
    before = _mind_after(rules, map_name, robot, number, history[:-1])
    last = history[-1]
    try:
        return rules.update(map_name, robot, before, last.arrows, last.choice)
    except FloatingPointError:
        raise InputError(TOO_LARGE) from None


def _check_origin(rules: StudyRules, state: JsonDict) -> None:
    """Raise for a state of another version of the program or another study."""
    if state["version"] != VERSION:
        raise InputError(
            f"the state has version {state['version']}, this is version {VERSION}: start again"
        )
    if state["config"] != rules.config.hash[:12]:
        raise InputError("the state belongs to another configuration: start again")


def _answer_with(rules: StudyRules, state: JsonDict, mind: Mind, **of_step: Any) -> JsonDict:
    """Return the answer to a request: the robot, the arrows of its next step, and signals."""
    picture = rules.picture(mind.belief)
    measures = rules.measures(state["map"], mind.belief)
    _check_numbers(mind, measures, believes=KINDS[state["robot"]].believes)
    arrows_of_steps = rules.candidates(state["number"], state["map"])
    # None after the last step. States may also come from front ends that take more steps than the
    # study.
    candidates = None
    if mind.step < len(arrows_of_steps):
        candidates = [arrow._asdict() for arrow in arrows_of_steps[mind.step]]
    signals = {
        **measures,
        **dict.fromkeys(OF_STEP),
        **of_step,
    }
    return {
        "state": state,
        "belief": picture.belief,
        "plan": picture.policy,
        "candidates": candidates,
        "signals": signals,
    }


def _check_numbers(mind: Mind, measures: dict[str, float], *, believes: bool) -> None:
    """Raise for a robot whose numbers are too large to plan with."""
    # The memory of a robot that keeps a belief holds precisions, which may be large.
    parts = [mind.belief]
    if not believes:
        parts += jax.tree.leaves(mind.memory)
    numbers = np.concatenate([np.ravel(part) for part in parts])
    are_small = (np.abs(numbers) <= LARGEST).all()  # NaN is not small either
    are_finite = np.isfinite(list(measures.values())).all()
    if not (are_small and are_finite):
        raise InputError(TOO_LARGE)


def _worth_of_arrows(
    rules: StudyRules,
    map_name: str,
    mind: Mind,
    candidates: Sequence[Arrow],
) -> JsonDict:
    """Return the signals of arrows: their volumes, and which one the machine teacher would pick."""
    cells = rules.config.size**2
    last_cell = max(arrow.cell for arrow in candidates)
    if last_cell >= cells:
        raise InputError(f"an arrow lies outside of the map, which has {cells} cells")
    if len(set(candidates)) < len(candidates):
        raise InputError("two of the arrows are the same")
    volumes = rules.volumes(map_name, mind.belief, candidates)
    imitated = imitated_volumes(rules, map_name, mind.belief, candidates)
    if not np.isfinite([volumes, imitated]).all():
        raise InputError(TOO_LARGE)
    return {
        "best": int(np.argmax(volumes)),
        "volumes": volumes.tolist(),
        "imitated_volumes": imitated.tolist(),
    }


def imitated_volumes(
    rules: StudyRules,
    map_name: str,
    w: np.ndarray,
    candidates: Sequence[Arrow],
) -> np.ndarray:
    """Return the imitated teaching volume of every arrow, estimated from the robot's losses.

    Args:
        rules: The study.
        map_name: Name of the map.
        w: The robot's belief.
        candidates: The arrows.

    Returns:
        One number per arrow.
    """
    volumes = _imitated_volumes(
        rules.game,
        np.float32(rules.config.lr),
        np.asarray(w, np.float32),
        rules.arrays(candidates),
        rules.truth(map_name),
    )
    # The arrays may be padded: see StudyRules.arrays.
    count = len(candidates)
    return np.array(volumes)[:count]


@functools.partial(jax.jit, static_argnums=0)
def _imitated_volumes(
    game: Game,
    lr: Array,
    belief: Array,
    arrows: Arrows,
    truth: world.Truths,
) -> Array:
    # Volumes depend on neither the choice nor the step.
    anything = jnp.int32(0)
    lesson = world.lesson(game, lr, belief, arrows, anything, anything)
    return world.imitated_volumes(lesson, truth)
