"""Online inverse reinforcement learning.

The learner infers the reward of every state from demonstrated actions.
"""

import functools
import hashlib
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital import mdp
from ital.errors import InputError, PrecisionWarning
from ital.mdp import Dynamics, Planning
from ital.models import Init
from ital.tasks._base import Metric, Picture, Task, TeacherSide, Truth, World, as_float
from ital.tasks._irl_likelihood import reward_of
from ital.tasks._irl_map import Cell, as_map, read_map
from ital.tasks._irl_rules import Side, TrueWorld, irl_rules
from ital.tools.checks import require_whole
from ital.tools.types import Array

COARSE = 0.1  # error of Q at which π ∝ exp(Q) is wrong by a tenth


def from_rewards(  # noqa: PLR0913
    name: str,
    weights: Callable[[np.random.Generator], np.ndarray],
    dynamics: Dynamics,
    *,
    beta: float,
    title: str,
    planning: Planning,
    features: np.ndarray | None = None,
    settings: dict[str, Any] | None = None,
    picture: Picture | None = None,
    starts: tuple[int, ...] = (),
) -> Task:
    """Make an online IRL task from a function that draws the reward weights for a seed.

    r = features · weights; without ``features``, one weight per state. The teacher has the same
    features in another order. The robot starts in one of ``starts``, or anywhere but in a goal.
    """
    try:
        mdp.check(dynamics, planning)
    except InputError as error:
        raise InputError(f"task {name!r}: {error}") from None
    planned = jax.jit(functools.partial(mdp.plan, dynamics, planning))

    def world(seed: int) -> World:
        rng = np.random.default_rng(seed)
        # The teacher's weight ``order[i]`` is the learner's weight i.
        if features is None:
            order = rng.permutation(dynamics.states)
            learner_encoding = None
            teacher_encoding = order.astype(np.int32)
        else:
            order = rng.permutation(features.shape[1])
            learner_encoding = as_float(features)
            teacher_encoding = learner_encoding[:, np.argsort(order)]
        target = as_float(weights(rng))
        teacher_target = np.empty_like(target)
        teacher_target[order] = target
        reward = np.asarray(reward_of(learner_encoding, jnp.asarray(target)))
        solution = planned(reward)
        check_precision(name, solution.values)
        log_pi = np.asarray(mdp.log_policy(solution.q))
        return World(
            learner=Side(learner_encoding),
            teacher=TeacherSide(Side(teacher_encoding, log_pi), teacher_target),
            truth=Truth(target, TrueWorld(reward, log_pi, learner_encoding)),
        )

    stored: dict[str, Any] = {"states": dynamics.states, **planning._asdict()}
    if settings is not None:
        stored |= settings
    return Task(
        name=name,
        title=title,
        world=world,
        rules=irl_rules(dynamics, planning, starts),
        beta=beta,
        metrics={
            "distance": Metric("Distance to the target"),
            "distance_centred": Metric("Distance to the target, centred"),
            "policy_tv": Metric("Policy total variation"),
            "policy_gap": Metric("Largest difference of policies"),
            "reward": Metric(
                "Expected reward", higher_is_better=True, reference="teacher's own policy"
            ),
        },
        panels=("distance", "policy_tv", "reward"),
        init=Init("uniform", 2.0),
        settings=stored,
        picture=picture,
        offers=("gradients", "likelihood", "target losses"),
    )


def check_precision(name: str, values: Array) -> None:
    """Raise for values that are not finite, warn of values too large to tell actions apart."""
    largest = float(jnp.max(jnp.abs(values)))
    kind = values.dtype.name
    remedy = "lower the discount, raise the probability of death, or scale the rewards down"
    if not math.isfinite(largest):
        raise InputError(
            f"task {name!r}: the values of these rewards are too large for {kind}: {remedy}"
        )
    # The error of Q, as measured against float64.
    coarseness = 32 * float(jnp.finfo(values.dtype).eps) * largest
    if coarseness > COARSE:
        warnings.warn(
            f"task {name!r}: values reach {largest:.2g}, so {kind} tells actions apart only to "
            f"about {coarseness:.1g}: {remedy}",
            PrecisionWarning,
            stacklevel=3,
        )


def on_grid(  # noqa: PLR0913
    name: str,
    reward: Callable[[np.random.Generator], np.ndarray],
    size: int | tuple[int, int],
    *,
    slip: float = 0.06,
    death: float = 0.02,
    walls: tuple[Cell, ...] = (),
    goals: tuple[Cell, ...] = (),
    starts: tuple[Cell, ...] = (),
    planning: Planning,
    **options: Any,
) -> Task:
    """Make an online IRL task on a grid.

    It can be drawn as a map of rewards with the policy as arrows. ``reward`` draws the rewards of
    the cells without a wall, row by row.
    """
    if isinstance(size, tuple):
        rows, columns = size
    else:
        rows = columns = size
    require_whole(size=rows)
    try:
        dynamics = mdp.grid(size, slip, death, walls=walls, goals=goals)
        number = mdp.numbered(rows, columns, walls)  # the state of each cell, −1 for walls
    except InputError as error:
        raise InputError(f"task {name!r}: {error}") from None
    is_wall = number < 0
    without_arrows = is_wall | np.isin(number, dynamics.goals)

    @jax.jit
    def policy(reward: Array) -> Array:
        return jnp.exp(mdp.log_policy(mdp.plan(dynamics, planning, reward).q))

    def on_map(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Return values (…, S) as (…, rows, columns), masked where there are none."""
        if not missing.any():
            return np.reshape(values, (*values.shape[:-1], rows, columns))
        # Walls have the number −1: they get the last state's value, which the mask hides.
        everywhere = values[..., number]
        return np.ma.masked_array(everywhere, np.broadcast_to(missing, everywhere.shape))

    def cells(params: Any) -> tuple[np.ndarray, np.ndarray]:
        arrows = np.asarray(policy(jnp.asarray(params)))
        return on_map(np.asarray(params), is_wall), on_map(arrows, without_arrows)

    caption = (
        "Reward of entering each cell; arrows: where the policy leads, longer if more certain."
    )
    if goals:
        caption += " Framed: everything ends here."
    if starts:
        caption += " Dotted: the robot starts here."
    return from_rewards(
        name,
        reward,
        dynamics,
        planning=planning,
        picture=Picture(cells, "reward", caption, goals=goals, starts=starts),
        starts=tuple(int(number[cell]) for cell in starts),
        **options,
    )


def irl_dense(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, every cell's reward ~ U[−2, 2];
    the teacher's encoding is shuffled. β = 25000.

    Args:
        size: number of cells along a side.

    Returns:
        The task.
    """
    return on_grid(
        "irl-dense",
        lambda rng: rng.uniform(-2, 2, size * size),
        size,
        beta=25000.0,
        title="Online IRL, dense rewards",
        planning=Planning(sharpness=220.0),
    )


def irl_sparse(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, three random cells with reward 1, else 0; encoding shuffled. β =
    30000.

    Args:
        size: number of cells along a side.

    Returns:
        The task.

    Raises:
        InputError: if the grid is too small for three cells.
    """
    require_whole(size=size)
    if size < 2:
        raise InputError(f"three rewarding cells need a grid of size at least 2, not {size}")

    def reward(rng: np.random.Generator) -> np.ndarray:
        cells = np.zeros(size * size)
        cells[rng.choice(size * size, 3, replace=False)] = 1.0
        return cells

    return on_grid(
        "irl-sparse",
        reward,
        size,
        beta=30000.0,
        title="Online IRL, sparse rewards",
        planning=Planning(sharpness=200.0),
    )


def irl(  # noqa: PLR0913
    rewards: ArrayLike | Path | str | None = None,
    *,
    goals: Sequence[Sequence[int]] = (),
    starts: Sequence[Sequence[int]] = (),
    slip: float = 0.06,
    death: float = 0.02,
    discount: float = 0.5,
    sharpness: float = 220.0,
    tolerance: float = 1e-6,
    beta: float = 25000.0,
) -> Task:
    """Online IRL on your own map, a file or an array of rewards (--map FILE). β = 25000.

    Args:
        rewards: the reward of each cell (n, m), or a text or CSV file with them. NaN, None, "#" and
            an empty text are walls; "1G" is a goal with reward 1, "0S" a start.
        goals: cells in which everything ends, as (row, column), beside those marked with G.
        starts: cells in which the robot may start, beside those marked with S; if there are none,
            it starts anywhere. The metric ``reward`` is the mean over them.
        slip: probability of moving in each other direction.
        death: probability of dying in a step.
        discount: the discount γ.
        sharpness: sharpness k of the soft maximum.
        tolerance: largest change at which planning stops, if rounding lets the values come so
            close.
        beta: β of the task.

    Returns:
        The task.

    Raises:
        InputError: if there is no map, or it is not a rectangle of numbers and walls.

    Example:
        >>> ital.teach(ital.tasks.irl([[0, 0, "1G"], [0, "#", 0]]), steps=200, seeds=5).plot()
    """
    if rewards is None:
        raise InputError(
            "task 'irl' needs a map of rewards: --map FILE, "
            "a text or CSV file with one line per row"
        )
    if isinstance(rewards, Path | str):
        drawn = read_map(rewards)
    else:
        drawn = as_map("the map", rewards)
    drawn = drawn.marked(goals, starts)
    rows, columns = drawn.rewards.shape
    size: int | tuple[int, int] = (rows, columns)
    if rows == columns:
        # Grids are cached by their arguments: so a square shares the programs of irl-dense.
        size = rows
    free = ~np.isnan(drawn.rewards)
    return on_grid(
        "irl",
        lambda rng: drawn.rewards[free],
        size,
        walls=drawn.walls,
        goals=drawn.goals,
        starts=drawn.starts,
        slip=slip,
        death=death,
        beta=beta,
        title=f"Online IRL, {rows} × {columns} map",
        planning=Planning(discount, sharpness, tolerance),
        settings={"map": drawn.digest(), "slip": slip, "death": death},
    )


def irl_tabular(
    transitions: ArrayLike,
    weights: ArrayLike,
    features: ArrayLike | None = None,
    *,
    discount: float = 0.5,
    sharpness: float = 220.0,
    tolerance: float = 1e-6,
    beta: float = 25000.0,
    name: str = "irl-tabular",
) -> Task:
    """Online IRL in any world: ``transitions[a, s, s′]``, reward = ``features`` (S, d) ·
    ``weights`` (d,).

    Args:
        transitions: the table (A, S, S); each row sums to 1 minus the probability of dying.
        weights: weights of the reward (d,).
        features: features of the states (S, d); None for one weight per state.
        discount: the discount γ.
        sharpness: sharpness k of the soft maximum.
        tolerance: largest change at which planning stops, if rounding lets the values come so
            close.
        beta: β of the task.
        name: name of the task.

    Returns:
        The task.

    Raises:
        InputError: if shapes do not fit, or numbers are not finite.
    """
    dynamics = mdp.tabular(transitions)
    target = mdp.real("weights", weights)
    columns = dynamics.states
    encoded = None
    if features is not None:
        encoded = mdp.real("features", features)
        _check_features(name, encoded, dynamics.states)
        columns = encoded.shape[1]
    if target.shape != (columns,):
        raise InputError(f"task {name!r}: weights have shape {target.shape}, expected {(columns,)}")
    given = [target] if encoded is None else [target, encoded]
    if not all(np.isfinite(array).all() for array in given):
        raise InputError(f"task {name!r}: weights and features must be finite numbers")
    digest = hashlib.sha256()
    for array in (transitions, *given):
        digest.update(np.asarray(array, float).tobytes())
    return from_rewards(
        name,
        lambda rng: target,
        dynamics,
        beta=beta,
        title=f"Online IRL, {dynamics.states} states",
        planning=Planning(discount, sharpness, tolerance),
        features=encoded,
        settings={"world": digest.hexdigest()[:16]},
    )


def _check_features(name: str, features: np.ndarray, states: int) -> None:
    """Raise InputError unless there is a row of features for each state."""
    if features.ndim != 2 or len(features) != states or features.shape[1] == 0:
        raise InputError(
            f"task {name!r}: features have shape {features.shape}, expected ({states}, d)"
        )
