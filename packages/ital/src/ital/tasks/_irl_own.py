"""Online inverse reinforcement learning in worlds of a user's own: maps of rewards, and tables."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ital import mdp
from ital.errors import InputError
from ital.mdp import Planning
from ital.tasks._base import Task
from ital.tasks._irl import from_rewards, on_grid
from ital.tasks._irl_map import as_map, read_map


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
