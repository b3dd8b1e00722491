"""The rules of the study: everything that the server computes, compiled once and shared by all participants."""

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
from ital_study.config.sections import Map
from ital_study.robots import world
from ital_study.robots.world import Arrows, Game

BLOCK = 256  # beliefs measured per call; a fixed number, so that no result depends on their number
MOST_ARROWS = 32  # other numbers of arrows than the study's share the program for this one: none compiles its own


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

    Everything depends only on the configuration and the arguments. Objects can be shared between threads. Beliefs are
    float32 arrays, one number per cell.

    Args:
        config: The study.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.game = world.game(config)
        self.robots = world.robots(config)
        self._maps = {on.name: on for on in config.all_maps}
        self._truths = {
            name: world.truths(self.game, np.asarray(on.rewards), config.arrows)
            for name, on in self._maps.items()
        }
        self._arrows = functools.lru_cache(maxsize=512)(self._draw)
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
            raise InputError(
                f"study {self.config.name!r} has no map {name!r}: its maps are {', '.join(self._maps)}"
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
        """Number of steps of a robot on a map.

        Args:
            map_name: Name of the map.

        Returns:
            The number; on the warm-up map, that of the warm-up.
        """
        warm_up = self.map(map_name) is self.config.warm_up_map
        return self.config.warm_up_steps if warm_up else self.config.steps

    def start(self, number: int, map_name: str) -> np.ndarray:
        """First belief w⁰ of a participant's robots on a map, the same for all robots.

        Args:
            number: Number of the participant.
            map_name: Name of the map.

        Returns:
            The belief.

        Raises:
            InputError: The number is not in [0, 2**32).
        """
        key = self._key(number, map_name)
        return np.array(_first_belief(self.game, key, np.float32(self.config.start)))

    def candidates(self, number: int, map_name: str) -> list[list[Arrow]]:
        """The arrows of every step of a participant on a map, the same for all robots.

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
        numbers = (self.config.seed, number, world.map_code(self.map(map_name).name))
        return _key(*map(np.uint32, numbers))

    def _draw(self, number: int, map_name: str) -> tuple[tuple[Arrow, ...], ...]:
        fixed = (
            self.game,
            self.config.candidates,
            self._key(number, map_name),
            self.truth(map_name).cumulative,
        )
        nowhere = np.zeros(self.config.size**2, bool)
        drawn = world.all_arrows(
            functools.partial(_draw_arrows, *fixed), nowhere, self.steps(map_name)
        )
        cells, actions = (part.tolist() for part in drawn)
        return tuple(tuple(map(Arrow, *step)) for step in zip(cells, actions, strict=True))

    def robot(self, learner: str) -> Learner:
        """Return the core's learner of that name.

        Args:
            learner: ``naive``, ``aware`` or ``adaptive``.

        Returns:
            The learner with the numbers of the study.

        Raises:
            InputError: There is no such learner.
        """
        if learner not in self.robots:
            raise InputError(f"unknown learner {learner!r}: choose from {', '.join(self.robots)}")
        return self.robots[learner]

    def mind(self, learner: str, w: np.ndarray) -> Mind:
        """A robot that believes w and has seen nothing yet.

        Args:
            learner: Kind of the robot.
            w: Its belief.

        Returns:
            The robot.
        """
        robot, belief = self.robot(learner), _belief(w)
        return Mind(belief, jax.tree.map(np.asarray, robot.rule.init(belief, robot.settings)))

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
            InputError: The choice is not among the arrows.
            FloatingPointError: The new belief is not finite.
        """
        self.map(map_name)
        robot = self.robot(learner)
        if not 0 <= choice < len(candidates_of_step):
            raise InputError(f"choice {choice} is not among the {len(candidates_of_step)} arrows")
        settings = robot.settings
        if len(candidates_of_step) != self.config.candidates:
            settings = settings._replace(view=np.float32(len(candidates_of_step)))
        shown = self.arrays(candidates_of_step), np.int32(choice), np.int32(mind.step)
        after = _update(
            self.game, robot.rule, self._lr, settings, _belief(mind.belief), mind.memory, *shown
        )
        belief, memory = jax.tree.map(np.array, after)
        if not np.isfinite(belief).all():
            raise FloatingPointError(
                f"the {learner} robot's belief on map {map_name!r} is not finite"
            )
        return Mind(belief, memory, mind.step + 1)

    def replay(
        self, number: int, map_name: str, learner: str, choices: Sequence[int]
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
        minds = [self.mind(learner, self.start(number, map_name))]
        for arrows, choice in zip(self._arrows(number, map_name), choices, strict=False):
            minds.append(self.update(map_name, learner, minds[-1], arrows, choice))
        if len(minds) <= len(choices):
            raise InputError(
                f"{len(choices)} choices on map {map_name!r}, which has {len(minds) - 1} steps"
            )
        return minds

    def picture(self, w: np.ndarray) -> RobotPicture:
        """What the participant sees of a belief.

        Args:
            w: The belief.

        Returns:
            The belief and the policy, as plain lists.
        """
        belief = _belief(w)
        return RobotPicture(belief.tolist(), np.asarray(_best_action(self.game, belief)).tolist())

    def volumes(
        self, map_name: str, w: np.ndarray, candidates_of_step: Sequence[Arrow]
    ) -> np.ndarray:
        """Return the exact teaching volume of every arrow: how much closer it would bring a naive robot to the truth.

        Args:
            map_name: Name of the map.
            w: The robot's belief.
            candidates_of_step: The arrows.

        Returns:
            One number per arrow.
        """
        return self.volumes_toward(self.truth(map_name).target, w, candidates_of_step)

    def volumes_toward(
        self, target: np.ndarray, w: np.ndarray, candidates_of_step: Sequence[Arrow]
    ) -> np.ndarray:
        """The exact teaching volumes for any target, such as the map that a participant sees.

        Args:
            target: Rewards to teach.
            w: The robot's belief.
            candidates_of_step: The arrows.

        Returns:
            One number per arrow.
        """
        arrows = self.arrays(candidates_of_step)
        volumes = np.array(_volumes(self.game, self._lr, _belief(w), arrows, _belief(target)))
        return volumes[: len(candidates_of_step)]

    def arrays(self, candidates_of_step: Sequence[Arrow]) -> Arrows:
        """Arrows as arrays. If their number is not the study's, the last one is repeated up to ``MOST_ARROWS``.

        Args:
            candidates_of_step: The arrows.

        Returns:
            Their cells and directions; what is computed for the repeated ones has to be left out.
        """
        cells, actions = np.asarray(candidates_of_step, np.int32).T
        count = len(cells)
        missing = 0 if count == self.config.candidates else max(0, MOST_ARROWS - count)
        return Arrows(*(np.pad(part, (0, missing), mode="edge") for part in (cells, actions)))

    def best(self, map_name: str, w: np.ndarray, candidates_of_step: Sequence[Arrow]) -> int:
        """The machine teacher's pick: the largest exact volume, ties take the lowest index.

        Args:
            map_name: Name of the map.
            w: The robot's belief.
            candidates_of_step: The arrows.

        Returns:
            Index of the arrow.
        """
        return int(np.argmax(self.volumes(map_name, w, candidates_of_step)))

    def measures(self, map_name: str, w: np.ndarray) -> dict[str, float]:
        """Distance, centred distance, policy distances and expected reward of a belief.

        Args:
            map_name: Name of the map.
            w: The belief.

        Returns:
            Values by the names of the measures.
        """
        measured = _measure(self.game, _belief(w), self.truth(map_name))
        return {name: float(measured[name]) for name in world.METRICS}

    def measures_many(self, map_name: str, ws: np.ndarray) -> dict[str, np.ndarray]:
        """The measures of many beliefs on one map.

        Args:
            map_name: Name of the map.
            ws: Beliefs; the last axis are cells.

        Returns:
            An array by the name of each measure, one value per belief.
        """
        ws = _belief(ws).reshape(-1, self.config.size**2)
        truth, blocks = self.truth(map_name), []
        for first in range(0, len(ws), BLOCK):
            block = ws[first : first + BLOCK]
            padded = np.concatenate(
                [block, np.zeros((BLOCK - len(block), ws.shape[1]), np.float32)]
            )
            measured = _measure_many(self.game, padded, truth)
            blocks.append(
                {name: np.asarray(measured[name], float)[: len(block)] for name in world.METRICS}
            )
        return {
            name: np.concatenate([np.empty(0), *(block[name] for block in blocks)])
            for name in world.METRICS
        }

    def warm_up(self) -> None:
        """Compile everything, so that no participant has to wait."""
        for name in (self.config.maps[0].name, self.config.warm_up_map.name):
            w, arrows = self.start(0, name), self.candidates(0, name)[0]
            for learner in self.config.learners:
                self.update(name, learner, self.mind(learner, w), arrows, 0)
            self.best(name, w, arrows)
            self.picture(w)
            self.measures(name, w)


def _belief(w: Any) -> np.ndarray:
    return np.asarray(w, np.float32)


# Compiled functions: static arguments are the game and sizes, so that all maps, learners and studies of one physics
# share them.


_key = jax.jit(world.key_of)
_first_belief = jax.jit(world.first_belief, static_argnums=0)
_draw_arrows = jax.jit(world.draw_arrows, static_argnums=(0, 1))
_best_action = jax.jit(world.best_action, static_argnums=0)
_measure = jax.jit(world.measure, static_argnums=0)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _update(
    game: Game, rule: Any, lr: Array, settings: Any, belief: Array, memory: Any, arrows: Arrows, choice: Array,
    step: Array,
) -> tuple[Array, Any]:  # fmt: skip
    lesson = world.lesson(game, lr, belief, arrows, choice, step)
    after = rule.update(lesson, settings, belief, memory)
    return after.params, after.memory


@functools.partial(jax.jit, static_argnums=0)
def _volumes(game: Game, lr: Array, belief: Array, arrows: Arrows, target: Array) -> Array:
    anything = jnp.int32(0)  # volumes depend on neither the choice nor the step
    return world.volumes(world.lesson(game, lr, belief, arrows, anything, anything), belief, target)


@functools.partial(jax.jit, static_argnums=0)
def _measure_many(game: Game, beliefs: Array, truth: world.Truths) -> dict[str, Array]:
    return jax.vmap(lambda belief: world.measure(game, belief, truth))(beliefs)
