"""The rules of the study.

Everything that the server computes, compiled once and shared by all participants.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.learners import Learner
from ital.tools.types import Array
from ital_study.config.configuration import Config
from ital_study.config.lineup import KINDS
from ital_study.config.sections import Map
from ital_study.robots import world
from ital_study.robots.world import Arrows, Game

# Beliefs measured per call. The number is fixed, so that no result depends on how many beliefs
# there are.
BLOCK = 256

# Other numbers of arrows than the study's share the program for this number: none compiles its own.
MOST_ARROWS = 32


class Arrow(NamedTuple):
    """A candidate: "if you were in this cell, go this way".

    Attributes:
        cell: Number of the cell, row by row from the top left, from 0.
        action: Direction: 0 up, 1 right, 2 down, 3 left.
    """

    cell: int
    action: int


class RobotPicture(NamedTuple):
    """What a participant sees of a robot.

    Attributes:
        belief: Reward that the robot believes each cell to have.
        policy: Its most probable action in each cell.
    """

    belief: list[float]
    policy: list[int]


class Mind(NamedTuple):
    """A robot between two steps.

    Attributes:
        belief: Its belief, a float32 array, one number per cell.
        memory: What its learner remembers besides the belief; () if nothing.
        step: Number of steps so far.
    """

    belief: np.ndarray
    memory: Any = ()
    step: int = 0


class StudyRules:
    """The world of a study: starts, candidates, the robots' updates, pictures and measures.

    Everything depends only on the configuration and the arguments. Objects can be shared between
    threads. Beliefs are float32 arrays, one number per cell.

    Args:
        config: The study.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.game = world.game(config)
        self.robots = world.core_learners(config)
        self._maps: dict[str, Map] = {}
        self._truths: dict[str, world.Truths] = {}
        for map_ in config.all_maps:
            rewards = np.asarray(map_.rewards)
            self._maps[map_.name] = map_
            self._truths[map_.name] = world.truths(self.game, rewards, config.arrows)
        # A cache of this object, not of the class: it goes when the object goes.
        self._arrows = functools.lru_cache(maxsize=512)(self._draw_all_arrows)
        self._lr = np.float32(config.lr)

    def map(self, name: str) -> Map:
        """Return the map of that name; the warm-up map is included.

        Args:
            name: Name of the map.

        Returns:
            The map.

        Raises:
            InputError: The study has no such map.
        """
        if name not in self._maps:
            allowed = ", ".join(self._maps)
            raise InputError(
                f"study {self.config.name!r} has no map {name!r}: its maps are {allowed}"
            )
        return self._maps[name]

    def truth(self, map_name: str) -> world.Truths:
        """Return the rewards w* of a map and what follows from them.

        Args:
            map_name: Name of the map.

        Returns:
            w*, the true policy and the distribution of arrows.
        """
        return self._truths[self.map(map_name).name]

    def steps(self, map_name: str) -> int:
        """Return the number of steps of a robot on a map.

        Args:
            map_name: Name of the map.

        Returns:
            The number; on the warm-up map, that of the warm-up.
        """
        if self.map(map_name) is self.config.warm_up_map:
            return self.config.warm_up_steps
        return self.config.steps

    def start(self, number: int, map_name: str) -> np.ndarray:
        """Draw the first belief w⁰ of a participant's robots on a map, the same for all robots.

        Args:
            number: Number of the participant.
            map_name: Name of the map.

        Returns:
            The belief.

        Raises:
            InputError: The number is not in [0, 2**32).
        """
        key = self._key(number, map_name)
        scale = np.float32(self.config.start)
        return np.array(_first_belief(self.game, key, scale))

    def candidates(self, number: int, map_name: str) -> list[list[Arrow]]:
        """Draw the arrows of every step of a participant on a map, the same for all robots.

        Args:
            number: Number of the participant.
            map_name: Name of the map.

        Returns:
            A list of arrows for each step.

        Raises:
            InputError: The number is not in [0, 2**32).
        """
        return [list(step) for step in self._arrows(number, map_name)]

    def _key(self, number: int, map_name: str) -> Array:
        if not 0 <= number < 2**32:
            raise InputError(f"a participant's number must lie in [0, 2**32), not {number}")
        code = world.map_code(self.map(map_name).name)
        return _key(
            np.uint32(self.config.seed),
            np.uint32(number),
            np.uint32(code),
        )

    def _draw_all_arrows(self, number: int, map_name: str) -> tuple[tuple[Arrow, ...], ...]:
        draw_block = functools.partial(
            _draw_arrows,
            self.game,
            self.config.candidates,
            self._key(number, map_name),
            self.truth(map_name).cumulative,
        )
        no_cell_used = np.zeros(self.config.size**2, bool)
        drawn = world.all_arrows(draw_block, no_cell_used, self.steps(map_name))
        # Both of shape (steps, candidates).
        cells = drawn.cells.tolist()
        actions = drawn.actions.tolist()
        all_arrows = []
        for cells_of_step, actions_of_step in zip(cells, actions, strict=True):
            arrows = map(Arrow, cells_of_step, actions_of_step)
            all_arrows.append(tuple(arrows))
        return tuple(all_arrows)

    def robot(self, learner: str) -> Learner:
        """Return the core's learner of that name.

        Args:
            learner: One of :data:`~ital_study.config.lineup.KINDS`.

        Returns:
            The learner with the numbers of the study.

        Raises:
            InputError: There is no such learner.
        """
        if learner not in self.robots:
            allowed = ", ".join(self.robots)
            raise InputError(f"unknown learner {learner!r}: choose from {allowed}")
        return self.robots[learner]

    def mind(self, learner: str, w: np.ndarray) -> Mind:
        """Return a robot that has seen nothing yet.

        Args:
            learner: Kind of the robot.
            w: Its belief. A robot that keeps a belief over its target begins with the mean of its
                prior instead.

        Returns:
            The robot.
        """
        robot = self.robot(learner)
        first = _first_mind(
            self.game,
            robot.rule,
            self.config.candidates,
            _belief(w),
            robot.settings,
        )
        belief, memory = jax.tree.map(np.asarray, first)
        return Mind(belief, memory)

    def first_mind(
        self,
        number: int,
        map_name: str,
        learner: str,
    ) -> Mind:
        """Return a participant's robot on a map before its first step.

        Args:
            number: Number of the participant.
            map_name: Name of the map.
            learner: Kind of the robot.

        Returns:
            The robot. If it keeps a belief over its target, it begins with the mean of its prior
            instead of w⁰.
        """
        return self.mind(learner, self.start(number, map_name))

    def update(
        self,
        map_name: str,
        learner: str,
        mind: Mind,
        candidates_of_step: Sequence[Arrow],
        choice: int,
    ) -> Mind:
        """Return the robot after one arrow: the core's update for this kind of learner.

        Args:
            map_name: Name of the map.
            learner: Kind of the robot.
            mind: The robot before the step.
            candidates_of_step: The arrows of the step.
            choice: Index of the arrow that is shown to the robot.

        Returns:
            The robot after the step.

        Raises:
            InputError: The choice is not among the arrows, or this kind of robot cannot read that
                number of arrows.
            FloatingPointError: The new belief is not finite.
        """
        self.map(map_name)
        robot = self.robot(learner)
        count = len(candidates_of_step)
        if not 0 <= choice < count:
            raise InputError(f"choice {choice} is not among the {count} arrows")
        settings = robot.settings
        # The learner assumes that the teacher saw the study's number of arrows. Front ends may
        # offer another number.
        if count != self.config.candidates:
            if KINDS[learner].believes:
                raise InputError(
                    f"a robot {learner!r} keeps all arrows of its steps, so a step must have "
                    f"{self.config.candidates} of them, not {count}"
                )
            settings = settings._replace(view=np.float32(count))
        before = (_belief(mind.belief), mind.memory)
        after = _update(
            self.game,
            robot.rule,
            self._lr,
            settings,
            before,
            self.arrays(candidates_of_step),
            np.int32(choice),
            np.int32(mind.step),
        )
        belief, memory = jax.tree.map(np.array, after)
        if not np.isfinite(belief).all():
            raise FloatingPointError(
                f"the {learner} robot's belief on map {map_name!r} is not finite"
            )
        return Mind(belief, memory, mind.step + 1)

    def replay(
        self,
        number: int,
        map_name: str,
        learner: str,
        choices: Sequence[int],
    ) -> list[Mind]:
        """Return the robot before the first step and after each step.

        Args:
            number: Number of the participant.
            map_name: Name of the map.
            learner: Kind of the robot.
            choices: Index of the chosen arrow of each step so far.

        Returns:
            One robot more than choices; on one machine bitwise equal to successive updates.

        Raises:
            InputError: There are more choices than steps.
        """
        mind = self.first_mind(number, map_name, learner)
        arrows_of_steps = self._arrows(number, map_name)
        steps = len(arrows_of_steps)
        if len(choices) > steps:
            raise InputError(f"{len(choices)} choices on map {map_name!r}, which has {steps} steps")
        minds = [mind]
        for arrows, choice in zip(arrows_of_steps, choices, strict=False):
            mind = self.update(map_name, learner, mind, arrows, choice)
            minds.append(mind)
        return minds

    def picture(self, w: np.ndarray) -> RobotPicture:
        """Return what the participant sees of a belief.

        Args:
            w: The belief.

        Returns:
            The belief and the policy, as plain lists.
        """
        belief = _belief(w)
        policy = np.asarray(_best_action(self.game, belief))
        return RobotPicture(belief.tolist(), policy.tolist())

    def volumes(
        self,
        map_name: str,
        w: np.ndarray,
        candidates_of_step: Sequence[Arrow],
    ) -> np.ndarray:
        """Return the exact teaching volume of every arrow.

        It says how much closer the arrow would bring a naive robot to the truth.

        Args:
            map_name: Name of the map.
            w: The robot's belief.
            candidates_of_step: The arrows.

        Returns:
            One number per arrow.
        """
        truth = self.truth(map_name)
        return self.volumes_toward(truth.target, w, candidates_of_step)

    def volumes_toward(
        self,
        target: np.ndarray,
        w: np.ndarray,
        candidates_of_step: Sequence[Arrow],
    ) -> np.ndarray:
        """Return the exact teaching volumes for a target, such as the map on the screen.

        Args:
            target: Rewards to teach.
            w: The robot's belief.
            candidates_of_step: The arrows.

        Returns:
            One number per arrow.
        """
        volumes = _candidate_volumes(
            self.game,
            self._lr,
            _belief(w),
            self.arrays(candidates_of_step),
            _belief(target),
        )
        # The arrays may be padded.
        count = len(candidates_of_step)
        return np.array(volumes)[:count]

    def arrays(self, candidates_of_step: Sequence[Arrow]) -> Arrows:
        """Return arrows as arrays.

        If their number is not the study's, the last one is repeated up to ``MOST_ARROWS``.

        Args:
            candidates_of_step: The arrows.

        Returns:
            Their cells and directions; what is computed for the repeated ones has to be left out.
        """
        cells, actions = np.asarray(candidates_of_step, np.int32).T
        count = len(cells)
        if count == self.config.candidates:
            return Arrows(cells, actions)
        missing = max(0, MOST_ARROWS - count)
        return Arrows(
            np.pad(cells, (0, missing), mode="edge"),
            np.pad(actions, (0, missing), mode="edge"),
        )

    def best(
        self,
        map_name: str,
        w: np.ndarray,
        candidates_of_step: Sequence[Arrow],
    ) -> int:
        """Return the machine teacher's pick: the largest exact volume, ties take the lowest index.

        Args:
            map_name: Name of the map.
            w: The robot's belief.
            candidates_of_step: The arrows.

        Returns:
            Index of the arrow.
        """
        volumes = self.volumes(map_name, w, candidates_of_step)
        return int(np.argmax(volumes))

    def measures(self, map_name: str, w: np.ndarray) -> dict[str, float]:
        """Return distance, centred distance, policy distances and expected reward of a belief.

        Args:
            map_name: Name of the map.
            w: The belief.

        Returns:
            Values by the names of the measures.
        """
        measured = _measure(self.game, _belief(w), self.truth(map_name))
        return {name: float(measured[name]) for name in world.METRICS}

    def measures_many(self, map_name: str, ws: np.ndarray) -> dict[str, np.ndarray]:
        """Return the measures of many beliefs on one map.

        Args:
            map_name: Name of the map.
            ws: Beliefs; the last axis are cells.

        Returns:
            An array by the name of each measure, one value per belief.
        """
        cells = self.config.size**2
        beliefs = _belief(ws).reshape(-1, cells)
        truth = self.truth(map_name)
        measures = {name: np.empty(len(beliefs)) for name in world.METRICS}
        for first in range(0, len(beliefs), BLOCK):
            block = beliefs[first : first + BLOCK]
            count = len(block)
            padding = np.zeros((BLOCK - count, cells), np.float32)
            padded = np.concatenate([block, padding])
            measured = _measure_many(self.game, padded, truth)
            for name, values in measures.items():
                values[first : first + count] = np.asarray(measured[name])[:count]
        return measures

    def warm_up(self) -> None:
        """Compile everything, so that no participant has to wait."""
        first_map = self.config.maps[0]
        for name in (first_map.name, self.config.warm_up_map.name):
            w = self.start(0, name)
            arrows = self.candidates(0, name)[0]
            for learner in self.config.learners:
                mind = self.mind(learner, w)
                self.update(name, learner, mind, arrows, 0)
            self.best(name, w, arrows)
            self.picture(w)
            self.measures(name, w)


def _belief(w: Any) -> np.ndarray:
    return np.asarray(w, np.float32)


# Compiled functions. Static arguments are the game, rules and sizes, so that all maps, learners and
# studies of one physics share them.


_key = jax.jit(world.key_of)
_first_belief = jax.jit(world.first_belief, static_argnums=0)
_draw_arrows = jax.jit(world.draw_arrows, static_argnums=(0, 1))
_first_mind = jax.jit(world.first_mind, static_argnums=(0, 1, 2))
_best_action = jax.jit(world.best_action, static_argnums=0)
_measure = jax.jit(world.measure, static_argnums=0)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _update(
    game: Game,
    rule: Any,
    lr: Array,
    settings: Any,
    mind: tuple[Array, Any],
    arrows: Arrows,
    choice: Array,
    step: Array,
) -> tuple[Array, Any]:
    """Return belief and memory after one step, given those before it."""
    belief, memory = mind
    lesson = world.lesson(game, lr, belief, arrows, choice, step)
    after = rule.update(lesson, settings, belief, memory)
    return after.params, after.memory


@functools.partial(jax.jit, static_argnums=0)
def _candidate_volumes(
    game: Game,
    lr: Array,
    belief: Array,
    arrows: Arrows,
    target: Array,
) -> Array:
    # Volumes depend on neither the choice nor the step.
    anything = jnp.int32(0)
    lesson = world.lesson(game, lr, belief, arrows, anything, anything)
    return world.volumes(lesson, belief, target)


@functools.partial(jax.jit, static_argnums=0)
def _measure_many(game: Game, beliefs: Array, truth: world.Truths) -> dict[str, Array]:
    def measure(belief: Array) -> dict[str, Array]:
        return world.measure(game, belief, truth)

    return jax.vmap(measure)(beliefs)
