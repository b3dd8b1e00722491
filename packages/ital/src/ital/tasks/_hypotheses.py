"""A world of finitely many hypotheses: the teacher shows data, the learner's parameters are its log
belief log θ.
"""

import functools
import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital.errors import InputError
from ital.gradients import Gradients, autodiff
from ital.models import Init
from ital.tasks._base import Metric, Picture, Rules, Task, TeacherSide, Truth, World, as_float
from ital.tools.checks import require_whole
from ital.tools.types import Array, PRNGKeyArray, Scalar


class Likelihoods(NamedTuple):
    """What both players know: log M (n, m), and the logarithm of the prior (m,)."""

    log_m: Any
    log_prior: Any


def start(key: PRNGKeyArray, init: Init, world: World) -> Array:
    """The prior, its logarithm shifted by the start's numbers: none with the task's own start."""
    return jax.nn.log_softmax(
        world.learner.log_prior + init.draw(key, world.learner.log_prior.shape)
    )


def draw(key: PRNGKeyArray, world: World, batch_size: int) -> Array:
    """All data, in order, or ``batch_size`` of them without replacement."""
    data = world.learner.log_m.shape[0]
    return (
        jnp.arange(data) if batch_size == data else jax.random.permutation(key, data)[:batch_size]
    )


def show(side: Likelihoods, rows: Array) -> Array:
    """log P(d|h, d is in the mini-batch) (B, m)."""
    return jax.nn.log_softmax(side.log_m[rows], axis=0)


def feedback(params: Array, examples: Array, previous: None) -> Array:
    """The learner reports its belief."""
    return params


def volumes(
    belief: Array,
    examples: Array,
    target: Array,
    lr: Scalar,
) -> Array:
    """log P_L(h*|d) − log θ(h*) = log M(d,h*) − log Σ_h θ(h)M(d,h): how much d raises a naive
    learner's log belief.

    For small η it is the imitated volume of the loss −log P(d), over 2η. It is computed from the
    odds against h*, which tell data apart when the belief in h* is 1 up to rounding.
    """
    joint = examples + belief
    others = jnp.where(jnp.arange(joint.shape[1]) == target, -jnp.inf, joint)
    return -jax.nn.softplus(jax.nn.logsumexp(others, axis=1) - joint[:, target]) - belief[target]


def surprise(params: Array, row: Array) -> Array:
    """−log P(d) = −log Σ_h θ(h)M(d,h)."""
    return -jax.nn.logsumexp(row + jax.nn.log_softmax(params))


def gradients(params: Array, examples: Array, belief: Array) -> Gradients:
    """The surprise of each datum, and its gradients; no learner of this world steps along them."""
    return autodiff(surprise, params, examples)


def measure(params: Array, truth: Truth) -> dict[str, Array]:
    """The belief in h*, its log-odds against all other hypotheses, and the entropy of the belief."""
    target, belief = truth.test, jax.nn.log_softmax(params)
    others = jax.nn.logsumexp(jnp.where(jnp.arange(len(params)) == target, -jnp.inf, belief))
    return {
        "belief": jnp.exp(belief[target]),
        "log_odds": belief[target] - others,
        "entropy": -jnp.sum(jnp.exp(belief) * belief),
    }


RULES = Rules(start, draw, show, feedback, volumes, gradients, measure)


def from_likelihoods(
    likelihoods: ArrayLike,
    *,
    target: int | None = None,
    prior: ArrayLike | None = None,
    name: str = "own-hypotheses",
    title: str = "",
    settings: Mapping[str, Any] | None = None,
    picture: Picture | None = None,
) -> Task:
    """Make a task from your own likelihood matrix M(d,h) = P(d|h): a row per datum, a column per
    hypothesis.

    Args:
        likelihoods: the matrix (n, m); all positive, each column sums to 1.
        target: the hypothesis h* to teach, from 0; None draws one for each seed.
        prior: the belief before the first datum (m,), positive; None for equal beliefs.
        name: name of the task.
        title: its name in figures; empty for one with the size of the matrix.
        settings: what distinguishes this task from others of its name; None for a digest of matrix
            and prior.
        picture: how to draw a log belief.

    Returns:
        The task. Its mini-batch is the whole set of data if ``batch_size`` is n, else a draw
        without replacement.

    Raises:
        InputError: if the matrix, the prior or the target is not valid.

    Example:
        >>> task = ital.tasks.from_likelihoods([[0.8, 0.3], [0.2, 0.7]])
        >>> ital.teach(task, "scbi", ["bayes", "scbi"], steps=100, batch_size=2).plot()
    """
    matrix = _checked(name, likelihoods)
    data, hypotheses = matrix.shape
    first = np.full(hypotheses, 1 / hypotheses) if prior is None else np.asarray(prior, float)
    if first.shape != (hypotheses,) or not (np.isfinite(first).all() and (first > 0).all()):
        raise InputError(
            f"task {name!r}: the prior must hold {hypotheses} positive numbers, one per hypothesis"
        )
    if target is not None:
        require_whole(target=target)
        if not 0 <= target < hypotheses:
            raise InputError(
                f"task {name!r}: target must be a hypothesis from 0 to {hypotheses - 1}, not {target}"
            )

    @functools.cache
    def side(dtype: Any) -> Likelihoods:  # one object for all seeds, which therefore share it
        return Likelihoods(as_float(np.log(matrix)), as_float(np.log(first / first.sum())))

    def world(seed: int) -> World:
        index = np.random.default_rng(seed).integers(hypotheses) if target is None else target
        known, taught = side(jnp.result_type(float)), np.asarray(index, np.int32)
        certain = as_float(np.where(np.arange(hypotheses) == taught, 0.0, -np.inf))
        return World(known, TeacherSide(known, taught), Truth(certain, taught))

    digest = hashlib.sha256(matrix.tobytes() + first.tobytes()).hexdigest()[:16]
    return Task(
        name=name,
        title=title or f"{hypotheses} hypotheses, {data} data",
        world=world,
        rules=RULES,
        beta=1.0,
        metrics={
            "belief": Metric("Belief in the target", higher_is_better=True),
            "log_odds": Metric("Log-odds of the target", higher_is_better=True),
            "entropy": Metric("Entropy of the belief"),
        },
        panels=("belief", "log_odds", "entropy"),
        init=Init("uniform", 0.0),
        eval_every=1,
        settings={
            "likelihoods": digest,
            **({} if target is None else {"target": target}),
            **(settings or {}),
        },
        picture=picture,
        offers=("likelihoods",),
        methods=("bayes", "pedagogical", "scbi"),
        examples=data,
    )


def _checked(name: str, likelihoods: ArrayLike) -> np.ndarray:
    """The matrix as numbers; raises InputError unless each column is a positive distribution,
    unlike all others.
    """
    try:
        matrix = np.asarray(likelihoods, float)
    except (TypeError, ValueError):
        raise InputError(f"task {name!r}: the likelihoods must be a matrix of numbers") from None
    if matrix.ndim != 2 or min(matrix.shape) < 2:
        raise InputError(
            f"task {name!r}: the likelihoods need at least 2 data and 2 hypotheses, not {matrix.shape}"
        )
    if not (np.isfinite(matrix).all() and (matrix > 0).all()):
        raise InputError(
            f"task {name!r}: likelihoods must be positive: give impossible data a small probability"
        )
    sums = matrix.sum(axis=0)
    if not np.allclose(sums, 1, rtol=0, atol=1e-5):
        column = int(np.argmax(np.abs(sums - 1)))
        raise InputError(
            f"task {name!r}: column {column} of the likelihoods sums to {sums[column]:.6g}, not to 1"
        )
    if len(np.unique(matrix, axis=1).T) < matrix.shape[1]:
        raise InputError(
            f"task {name!r}: two columns of the likelihoods are equal: no datum tells them apart"
        )
    return matrix / sums


def rectangles(height: int, width: int) -> np.ndarray:
    """Whether each cell of a grid lies in each rectangle of whole cells (cells, rectangles), row by
    row.
    """
    rows, columns = (
        [(first, last) for first in range(size) for last in range(first, size)]
        for size in (height, width)
    )
    row, column = (place.ravel() for place in np.indices((height, width)))
    return np.stack(
        [
            (top <= row) & (row <= bottom) & (left <= column) & (column <= right)
            for top, bottom in rows
            for left, right in columns
        ],
        axis=1,
    )


def hypotheses(height: int = 4, width: int = 5, *, noise: float = 0.05) -> Task:
    """Which of the 150 rectangles on a 4 × 5 grid? A datum is a cell, as a rule one inside (a
    rectangle game).

    Args:
        height: number of rows of the grid.
        width: number of columns.
        noise: probability that a datum is any cell of the grid rather than a cell of the rectangle.

    Returns:
        The task. Its mini-batch is the whole grid if ``batch_size`` is the number of cells.

    Raises:
        InputError: if the grid has fewer than two cells, or the noise is not in (0, 1).
    """
    require_whole(height=height, width=width)
    if min(height, width) < 1 or height * width < 2:
        raise InputError(f"a grid of rectangles needs at least two cells, not {height} × {width}")
    if not 0 < noise < 1:
        raise InputError(f"noise must lie between 0 and 1, both excluded, not {noise!r}")
    inside = rectangles(height, width)

    def cells(params: Any) -> tuple[np.ndarray, None]:
        belief = np.exp(np.asarray(params, float))
        return (inside @ belief).reshape(height, width), None

    def note(params: Any, target: Any) -> str:
        return f"belief {np.exp(np.asarray(params)[np.argmax(target)]):.2f}"

    caption = "How sure the learner is that each cell lies in the rectangle."
    return from_likelihoods(
        (1 - noise) * inside / inside.sum(axis=0) + noise / len(inside),
        name="hypotheses",
        title=f"Rectangles on a {height} × {width} grid",
        settings={"height": height, "width": width, "noise": noise},
        picture=Picture(cells, "probability of lying inside", caption, note, limit=1.0),
    )
