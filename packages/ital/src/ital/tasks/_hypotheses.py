"""A world of finitely many hypotheses.

The teacher shows data; the learner's parameters are its log belief log θ.
"""

import functools
import hashlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital.beliefs import Offer, log_likelihoods, offered
from ital.errors import InputError
from ital.gradients import Gradients, autodiff
from ital.models import Init
from ital.tasks._base import Metric, Picture, Rules, Task, TeacherSide, Truth, World, as_float
from ital.tools.checks import require_whole
from ital.tools.types import Array, PRNGKeyArray, Scalar


class Likelihoods(NamedTuple):
    """What a player knows.

    Attributes:
        log_m: the likelihoods log M(d,h), (n, m).
        log_prior: the logarithm of the prior (m,). On the teacher's side what the teacher thinks
            that the learner believes, (m,) or (K, m) for K possible learners.
        log_base: the logarithm of a base measure over data (n,), or None.
        cost: the cost of each datum (n,), or None.
    """

    log_m: Any
    log_prior: Any
    log_base: Any = None
    cost: Any = None


def start_belief(key: PRNGKeyArray, init: Init, world: World) -> Array:
    """Return the log prior, shifted by the start's numbers: none with the task's own start."""
    log_prior = world.learner.log_prior
    return jax.nn.log_softmax(log_prior + init.draw(key, log_prior.shape))


def draw_data(key: PRNGKeyArray, world: World, batch_size: int) -> Array:
    """Draw all data, in order, or ``batch_size`` of them without replacement."""
    data = world.learner.log_m.shape[0]
    if batch_size == data:
        return jnp.arange(data)
    return jax.random.permutation(key, data)[:batch_size]


def likelihoods_of(side: Likelihoods, rows: Array) -> Array | Offer:
    """Return log P(d|h, d is in the mini-batch) (B, m), as an offer if some data are preferred."""
    log_m = jax.nn.log_softmax(side.log_m[rows], axis=0)
    if side.log_base is None:
        return log_m
    return Offer(log_m, side.log_base[rows], side.cost[rows])


def report_belief(params: Array, examples: Array | Offer, previous: None) -> Array:
    """Return the learner's log belief (m,): it reports all that it knows."""
    return params


def raised_log_belief(
    belief: Array,
    examples: Array | Offer,
    target: Array,
    lr: Scalar,
) -> Array:
    """Return how much each datum raises a naive learner's log belief in h* (B,).

    log P_L(h*|d) − log θ(h*) = log M(d,h*) − log Σ_h θ(h)M(d,h). For small η it is the imitated
    volume of the loss −log P(d), over 2η. It is computed from the odds against h*, which tell data
    apart when the belief in h* is 1 up to rounding.
    """
    joint = offered(examples).log_m + belief  # log θ(h)M(d,h), (B, m)
    is_target = jnp.arange(joint.shape[1]) == target
    others = jnp.where(is_target, -jnp.inf, joint)
    log_others = jax.nn.logsumexp(others, axis=1)
    log_odds_against = log_others - joint[:, target]
    # softplus(log odds against h*) is −log P_L(h*|d).
    return -jax.nn.softplus(log_odds_against) - belief[target]


def surprise(params: Array, row: Array | Offer) -> Array:
    """Return −log P(d) = −log Σ_h θ(h)M(d,h)."""
    joint = offered(row).log_m + jax.nn.log_softmax(params)
    return -jax.nn.logsumexp(joint)


def surprise_gradients(params: Array, examples: Array | Offer, belief: Array) -> Gradients:
    """Return the surprise of each datum and its gradients.

    No learner of this world steps along them.
    """
    return autodiff(surprise, params, examples)


def measure_belief(params: Array, truth: Truth) -> dict[str, Array]:
    """Return the belief in h*, its log-odds against all others, and the belief's entropy."""
    target = truth.test
    belief = jax.nn.log_softmax(params)
    is_target = jnp.arange(len(params)) == target
    others = jnp.where(is_target, -jnp.inf, belief)
    log_others = jax.nn.logsumexp(others)
    return {
        "belief": jnp.exp(belief[target]),
        "log_odds": belief[target] - log_others,
        "entropy": -jnp.sum(jnp.exp(belief) * belief),
    }


METRICS = {
    "belief": Metric("Belief in the target", higher_is_better=True),
    "log_odds": Metric("Log-odds of the target", higher_is_better=True),
    "entropy": Metric("Entropy of the belief"),
}

RULES = Rules(
    start=start_belief,
    draw=draw_data,
    show=likelihoods_of,
    feedback=report_belief,
    volumes=raised_log_belief,
    gradients=surprise_gradients,
    measure=measure_belief,
)


def from_likelihoods(  # noqa: PLR0913
    likelihoods: ArrayLike,
    *,
    target: int | None = None,
    prior: ArrayLike | None = None,
    teacher_prior: ArrayLike | None = None,
    base: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    name: str = "own-hypotheses",
    title: str = "",
    settings: Mapping[str, Any] | None = None,
    picture: Picture | None = None,
) -> Task:
    """Make a task from your own likelihoods M(d,h) = P(d|h): rows are data, columns hypotheses.

    Args:
        likelihoods: the matrix (n, m); each column sums to 1. Data may be impossible: see
            :func:`ital.beliefs.log_likelihoods`. For lessons of several data see
            :func:`ital.beliefs.lessons`.
        target: the hypothesis h* to teach, from 0; None draws one for each seed.
        prior: the belief before the first datum (m,), positive; None for equal beliefs.
        teacher_prior: what the teachers ``scbi:prior`` and ``unsure`` think that the learner
            believes before the first datum, (m,) or (K, m) for K equally likely learners; None for
            the learner's own prior.
        base: a base measure over data (n,), positive; None for 1.
        cost: the cost of showing each datum (n,), in units of log belief; None for 0.
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
    matrix = _checked_matrix(name, likelihoods)
    data, hypotheses = matrix.shape
    given = _GivenWorld(
        matrix=matrix,
        prior=_checked_prior(name, prior, hypotheses),
        teacher_prior=_checked_teacher_prior(name, teacher_prior, hypotheses),
        preferences=_checked_preferences(name, base, cost, data),
    )
    if target is not None:
        _check_target(name, target, hypotheses)
    return Task(
        name=name,
        title=title or f"{hypotheses} hypotheses, {data} data",
        world=_worlds_of(given, target),
        rules=RULES,
        beta=1.0,
        metrics=METRICS,
        panels=("belief", "log_odds", "entropy"),
        init=Init("uniform", 0.0),
        eval_every=1,
        settings=_stored_settings(given, target, settings),
        picture=picture,
        offers=("likelihoods",),
        methods=("bayes", "pedagogical", "scbi"),
        examples=data,
    )


class _GivenWorld(NamedTuple):
    """A world as the user gives it, checked.

    Attributes:
        matrix: the likelihoods M(d,h) (n, m).
        prior: the learner's belief before the first datum (m,).
        teacher_prior: what some teachers think that it is, (m,) or (K, m); None for the same.
        preferences: the log base measure and the costs, (n,) each; () if there are none.
    """

    matrix: np.ndarray
    prior: np.ndarray
    teacher_prior: np.ndarray | None
    preferences: tuple[np.ndarray, ...]

    def digest(self) -> str:
        """Return a fingerprint of all numbers, 16 digits."""
        # A world without the optional parts keeps its digest, and with it its stored results.
        parts = [self.matrix, self.prior, *self.preferences]
        if self.teacher_prior is not None:
            parts.append(self.teacher_prior)
        content = b"".join(part.tobytes() for part in parts)
        return hashlib.sha256(content).hexdigest()[:16]


def _stored_settings(
    given: _GivenWorld,
    target: int | None,
    settings: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return what distinguishes a task from others of its name."""
    stored: dict[str, Any] = {"likelihoods": given.digest()}
    if target is not None:
        stored["target"] = target
    if settings is not None:
        stored |= settings
    return stored


def _worlds_of(given: _GivenWorld, target: int | None) -> Callable[[int], World]:
    """Return the function that draws the world of a seed; only the target may differ."""
    hypotheses = len(given.prior)

    # One object per precision for all seeds: they share it instead of stacking copies.
    @functools.cache
    def side(dtype: Any) -> Likelihoods:
        log_m = as_float(log_likelihoods(given.matrix))
        log_prior = as_float(np.log(given.prior / given.prior.sum()))
        return Likelihoods(log_m, log_prior, *map(as_float, given.preferences))

    @functools.cache
    def teacher_side(dtype: Any) -> Likelihoods:
        imagined = given.teacher_prior
        if imagined is None:
            return side(dtype)
        normalised = imagined / imagined.sum(axis=-1, keepdims=True)
        return side(dtype)._replace(log_prior=as_float(np.log(normalised)))

    def world(seed: int) -> World:
        index = target
        if index is None:
            index = int(np.random.default_rng(seed).integers(hypotheses))
        taught = np.asarray(index, np.int32)
        is_taught = np.arange(hypotheses) == taught
        certain = as_float(np.where(is_taught, 0.0, -np.inf))  # the log belief of who is certain
        dtype = jnp.result_type(float)
        return World(
            learner=side(dtype),
            teacher=TeacherSide(teacher_side(dtype), taught),
            truth=Truth(certain, taught),
        )

    return world


def _checked_matrix(name: str, likelihoods: ArrayLike) -> np.ndarray:
    """Return the matrix as numbers, each column with the sum 1.

    Raises:
        InputError: unless each column is a positive distribution, unlike all others.
    """
    try:
        matrix = np.asarray(likelihoods, float)
    except (TypeError, ValueError):
        raise InputError(f"task {name!r}: the likelihoods must be a matrix of numbers") from None
    if matrix.ndim != 2 or min(matrix.shape) < 2:
        raise InputError(
            f"task {name!r}: the likelihoods need at least 2 data and 2 hypotheses, "
            f"not {matrix.shape}"
        )
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise InputError(f"task {name!r}: likelihoods must be finite and not negative")
    is_possible = (matrix > 0).any(axis=1)
    if not is_possible.all():
        raise InputError(
            f"task {name!r}: row {is_possible.argmin()} of the likelihoods is impossible under "
            "every hypothesis: leave it out"
        )
    sums = matrix.sum(axis=0)
    if not np.allclose(sums, 1, rtol=0, atol=1e-5):
        errors = np.abs(sums - 1)
        column = int(np.argmax(errors))
        raise InputError(
            f"task {name!r}: column {column} of the likelihoods sums to {sums[column]:.6g}, "
            "not to 1"
        )
    hypotheses = matrix.shape[1]
    distinct = np.unique(matrix, axis=1).shape[1]
    if distinct < hypotheses:
        raise InputError(
            f"task {name!r}: two columns of the likelihoods are equal: no datum tells them apart"
        )
    return matrix / sums


def _checked_prior(name: str, prior: ArrayLike | None, hypotheses: int) -> np.ndarray:
    """Return the belief before the first datum (m,); raise InputError if it is not positive."""
    if prior is None:
        return np.full(hypotheses, 1 / hypotheses)
    belief = np.asarray(prior, float)
    _check_positive(name, "the prior", belief, hypotheses, "hypothesis")
    return belief


def _checked_teacher_prior(
    name: str,
    prior: ArrayLike | None,
    hypotheses: int,
) -> np.ndarray | None:
    """Return what teachers think of the learner's prior, (m,) or (K, m); None for the same."""
    if prior is None:
        return None
    beliefs = np.asarray(prior, float)
    for belief in np.atleast_2d(beliefs):
        _check_positive(name, "the teacher's prior", belief, hypotheses, "hypothesis")
    return beliefs


def _check_positive(name: str, what: str, values: np.ndarray, count: int, each: str) -> None:
    """Raise InputError unless there is one positive number per hypothesis or datum."""
    are_positive = np.isfinite(values).all() and (values > 0).all()
    if values.shape != (count,) or not are_positive:
        raise InputError(
            f"task {name!r}: {what} must hold {count} positive numbers, one per {each}"
        )


def _checked_preferences(
    name: str,
    base: ArrayLike | None,
    cost: ArrayLike | None,
    data: int,
) -> tuple[np.ndarray, ...]:
    """Return the log base measure (n,) and the cost of each datum (n,); () if none is given."""
    if base is None and cost is None:
        return ()
    measure = np.ones(data)
    if base is not None:
        measure = np.asarray(base, float)
    _check_positive(name, "the base measure", measure, data, "datum")
    costs = np.zeros(data)
    if cost is not None:
        costs = np.asarray(cost, float)
    if costs.shape != (data,) or not np.isfinite(costs).all():
        raise InputError(f"task {name!r}: the cost must hold {data} numbers, one per datum")
    return np.log(measure), costs


def _check_target(name: str, target: Any, hypotheses: int) -> None:
    """Raise InputError unless the target is the number of a hypothesis."""
    require_whole(target=target)
    if not 0 <= target < hypotheses:
        raise InputError(
            f"task {name!r}: target must be a hypothesis from 0 to {hypotheses - 1}, not {target}"
        )


def rectangles(height: int, width: int) -> np.ndarray:
    """Tell whether each cell of a grid lies in each rectangle (cells, rectangles).

    Cells are in order row by row, rectangles by their first row, last row, first and last column.
    """
    rows, columns = np.indices((height, width)).reshape(2, -1)
    # The first and the last row of each rectangle may be the same; so may its columns.
    spans_of_rows = itertools.combinations_with_replacement(range(height), 2)
    spans_of_columns = list(itertools.combinations_with_replacement(range(width), 2))
    inside = []
    for top, bottom in spans_of_rows:
        in_rows = (top <= rows) & (rows <= bottom)
        for left, right in spans_of_columns:
            in_columns = (left <= columns) & (columns <= right)
            inside.append(in_rows & in_columns)
    return np.stack(inside, axis=1)


def hypotheses(height: int = 4, width: int = 5, *, noise: float = 0.05) -> Task:
    """Which of the 150 rectangles on a 4 × 5 grid?
    A datum is a cell, as a rule one inside (a rectangle game).

    Args:
        height: number of rows of the grid.
        width: number of columns.
        noise: probability that a datum is any cell of the grid rather than a cell of the rectangle;
            0 makes cells outside impossible.

    Returns:
        The task. Its mini-batch is the whole grid if ``batch_size`` is the number of cells.

    Raises:
        InputError: if the grid has fewer than two cells, or the noise is not in [0, 1).
    """
    require_whole(height=height, width=width)
    if min(height, width) < 1 or height * width < 2:
        raise InputError(f"a grid of rectangles needs at least two cells, not {height} × {width}")
    if not 0 <= noise < 1:
        raise InputError(f"noise must be at least 0 and below 1, not {noise!r}")
    inside = rectangles(height, width)

    of_rectangle = (1 - noise) * inside / inside.sum(axis=0)
    of_any_cell = noise / len(inside)

    def cells(params: Any) -> tuple[np.ndarray, None]:
        belief = np.exp(np.asarray(params, float))
        of_cells = inside @ belief
        return of_cells.reshape(height, width), None

    def note(params: Any, target: Any) -> str:
        log_belief = np.asarray(params)[np.argmax(target)]
        return f"belief {np.exp(log_belief):.2f}"

    caption = "How sure the learner is that each cell lies in the rectangle."
    return from_likelihoods(
        of_rectangle + of_any_cell,
        name="hypotheses",
        title=f"Rectangles on a {height} × {width} grid",
        settings={"height": height, "width": width, "noise": noise},
        picture=Picture(cells, "probability of lying inside", caption, note, limit=1.0),
    )
