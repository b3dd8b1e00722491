"""Teaching as optimal control in the plane: the fewest steps from a start to a target, with any examples.

The benchmark of Lessard, Zhang and Zhu (2019). A learner of least squares takes the naive step
w⁺ = w − η(wᵀx − y)x. The teacher may show any example with ‖x‖ ≤ 1 and |y| ≤ 1, instead of one of a mini-batch.
As η → 0, the learner follows ẇ = (y − wᵀx)x, and the fewest steps become the shortest time.
"""

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError

MOST_STEPS = 100_000
MOST_EVALUATIONS = 4000  # of the flow; a smooth path needs a few hundred
ANGLES = 48  # first guesses at the direction of p⁰
ACCURACY = 1e-10  # of the optimal path
START, TARGET = (0.0, 1.0), (1.0, 0.0)

Vector = np.ndarray
Control = Callable[[int, Vector], tuple[Vector, float]]


class Course(NamedTuple):
    """A sequence of examples and the path of a learner that steps on them.

    Attributes:
        path: the learner's parameters before and after each step (T + 1, 2).
        x: the examples (T, 2).
        y: their labels (T,).
    """

    path: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return len(self.y)


class Extremal(NamedTuple):
    """A path of the flow that satisfies Pontryagin's conditions and ends at the target.

    Attributes:
        time: the time T at which it reaches the target; T/η estimates the fewest steps.
        at: ``at(t)`` returns w and p at time t.
    """

    time: float
    at: Callable[[float], tuple[Vector, Vector]]


def step(w: Vector, x: Vector, y: float, lr: float) -> Vector:
    """The naive step of least squares, w⁺ = w − η(wᵀx − y)x.

    Args:
        w: the parameters before the step (2,).
        x: the example (2,).
        y: its label.
        lr: the step size η.

    Returns:
        The parameters after the step (2,).
    """
    return w - lr * (w @ x - y) * x


def steepest(p: Vector, w: Vector, lr: float = 0.0) -> tuple[Vector, float]:
    """The example that moves w furthest along p: the maximum of pᵀv − (η/2)‖v‖² over ‖x‖ ≤ 1, |y| ≤ 1; v = (y − wᵀx)x.

    η = 0 is Pontryagin's condition. With the η of a step and p = w* − w, it is the step that ends closest to w*.
    Both signs of (x, y) move w alike, so y = 1. On the circle x = z = exp(iθ), the derivative is a polynomial of degree
    4 in z, divided by z². Inside it, wᵀx = 1/2, so that v moves on the line wᵀv = 1/4.

    Args:
        p: the direction (2,), not zero.
        w: the parameters (2,).
        lr: the step size η.

    Returns:
        x (2,) and y.
    """
    if lr and np.any(p):
        example, arrives = _towards(w, w + p, lr)
        if arrives:
            return example
    along_p, along_w = (
        np.array([number.conjugate(), 0.0, number]) / 2 for number in (complex(*p), complex(*w))
    )
    turn, left = (
        np.array([1j, 0.0, -1j]),
        np.array([0.0, 1.0, 0.0]) - along_w,
    )  # d/dθ; y − wᵀx as powers z, 1, 1/z
    slope = np.convolve(turn * (along_p + lr * along_w), left) - np.convolve(
        along_p, turn * along_w
    )
    z = np.append(np.roots(slope), complex(*p))
    z = z[z != 0] / np.abs(z[z != 0])
    x = np.stack([z.real, z.imag], axis=1)
    if lr and w @ w > 0.25:
        x = np.concatenate([x, [_inside(p, w, lr)]])
    v = (1.0 - x @ w)[:, None] * x
    return x[np.argmax(v @ p - lr / 2 * np.sum(v**2, axis=1))], 1.0


def _inside(p: Vector, w: Vector, lr: float) -> Vector:
    """The best x with wᵀx = 1/2, where v = x/2."""
    squared, across = w @ w, np.array([-w[1], w[0]])
    most = math.sqrt(1.0 - 0.25 / squared) / math.sqrt(squared)  # at ‖x‖ = 1
    return w / (2 * squared) + across * np.clip(2 * (p @ across) / (lr * squared), -most, most)


def greedy(
    start: Any = START, target: Any = TARGET, *, lr: float = 0.01, tolerance: float = 1e-3
) -> Course:
    """Teach with the example whose step ends closest to the target, step by step.

    Args:
        start: the learner's first parameters (2,).
        target: the target w* (2,).
        lr: the step size η.
        tolerance: the distance to w* at which the course ends.

    Returns:
        The course.

    Raises:
        InputError: if an argument is not valid, or the target is out of reach.
    """
    start, target = _checked(start, target, lr, tolerance)
    return _course(lambda _, w: steepest(target - w, w, lr), start, target, lr, tolerance)


def straight(
    start: Any = START, target: Any = TARGET, *, lr: float = 0.01, tolerance: float = 1e-3
) -> Course:
    """Teach along the straight line to the target, as fast as possible.

    Args:
        start: the learner's first parameters (2,).
        target: the target w* (2,).
        lr: the step size η.
        tolerance: the distance to w* at which the course ends.

    Returns:
        The course.

    Raises:
        InputError: if an argument is not valid, or the target is out of reach.
    """
    start, target = _checked(start, target, lr, tolerance)
    return _course(lambda _, w: _towards(w, target, lr)[0], start, target, lr, tolerance)


def optimal(
    start: Any = START, target: Any = TARGET, *, lr: float = 0.01, tolerance: float = 1e-3
) -> Course:
    """Teach along the time-optimal path of the flow (:func:`extremal`), one step per η of its time.

    Each step takes the example of Pontryagin's condition at the learner's own w, with p after the step, as the maximum
    principle in discrete time has it.

    Args:
        start: the learner's first parameters (2,).
        target: the target w* (2,).
        lr: the step size η.
        tolerance: the distance to w* at which the course ends.

    Returns:
        The course.

    Raises:
        InputError: if an argument is not valid, or no path to the target is found.
    """
    start, target = _checked(start, target, lr, tolerance)
    if np.linalg.norm(target - start) <= tolerance:
        return Course(start[None], np.empty((0, 2)), np.empty(0))
    path = extremal(start, target)

    def control(number: int, w: Vector) -> tuple[Vector, float]:
        if (number + 1) * lr < path.time:
            return steepest(path.at((number + 1) * lr)[1], w)
        return _towards(w, target, lr)[0]  # what the discrete steps have missed

    return _course(control, start, target, lr, tolerance)


def extremal(start: Any = START, target: Any = TARGET) -> Extremal:
    """The shortest path of the flow to the target that satisfies Pontryagin's conditions, by shooting.

    x and y maximise pᵀ(y − wᵀx)x at every time, and ṗ = (pᵀx)x. The length of p does not matter, so that the only
    unknown is the angle of p⁰: a path misses the target on one side or on the other, and in between it hits.

    Args:
        start: w at time 0 (2,).
        target: w* (2,), another point.

    Returns:
        The path.

    Raises:
        InputError: if an argument is not valid, or no path to the target is found.
    """
    from scipy.optimize import brentq

    start, target = _checked(start, target)
    if np.array_equal(start, target):
        raise InputError(f"start and target are both {start.tolist()}: no path is needed")
    most = (
        4 * straight(start, target).steps * 0.01
    )  # several times as long as the straight line takes
    angles = np.linspace(0, 2 * np.pi, ANGLES + 1) + math.atan2(*(target - start)[::-1])
    misses = [_roughly(start, target, angle, most) for angle in angles]
    paths = []
    for before, after in itertools.pairwise(zip(angles, misses, strict=True)):
        if before[1] * after[1] < 0:
            with contextlib.suppress(
                _Stuck, ValueError
            ):  # the rough misses may have had other signs
                angle = brentq(
                    lambda a: _shot(start, target, a, most)[1], before[0], after[0], xtol=ACCURACY
                )
                paths.append(_shot(start, target, angle, most))
    times = {path.time: path for path, miss in paths if abs(miss) < 1e-6}
    if not times:
        raise InputError(
            f"found no optimal path from {start.tolist()} to {target.tolist()}: use straight or greedy"
        )
    return times[min(times)]


class _Stuck(Exception):
    """A path that takes too long to compute: where p is parallel to w, x keeps jumping between two equal examples."""


def _roughly(start: Vector, target: Vector, angle: float, most: float) -> float:
    """By how much a path misses the target, to a few digits; NaN if it is stuck."""
    try:
        return _shot(start, target, angle, most, 1e-4)[1]
    except _Stuck:
        return math.nan


def _shot(
    start: Vector, target: Vector, angle: float, most: float, accuracy: float = ACCURACY
) -> tuple[Extremal, float]:
    """The path with p⁰ at an angle, up to where it is closest to the target, and by how much it misses on the left."""
    from scipy.integrate import solve_ivp

    evaluations = itertools.count()

    def flow(_: float, both: Vector) -> Vector:
        if next(evaluations) > MOST_EVALUATIONS:
            raise _Stuck
        w, p = both[:2], both[2:]
        x, y = steepest(p, w)
        return np.concatenate([(y - w @ x) * x, (p @ x) * x])

    def nears(time: float, both: Vector) -> float:
        return (both[:2] - target) @ flow(time, both)[:2]

    nears.terminal, nears.direction = True, 1.0  # type: ignore[attr-defined]
    first = np.array([*start, math.cos(angle), math.sin(angle)])
    found = solve_ivp(
        flow,
        (0.0, most),
        first,
        "DOP853",
        rtol=accuracy,
        atol=accuracy,
        events=nears,
        dense_output=True,
    )
    (gap_x, gap_y), (along_x, along_y) = target - found.y[:2, -1], flow(0.0, found.y[:, -1])[:2]
    miss = (along_x * gap_y - along_y * gap_x) / math.hypot(along_x, along_y)
    path = Extremal(float(found.t[-1]), lambda t: (found.sol(t)[:2], found.sol(t)[2:]))
    return path, miss


def _towards(w: Vector, target: Vector, lr: float) -> tuple[tuple[Vector, float], bool]:
    """The example whose step leads straight to the target, as far as possible, and whether it arrives.

    With u the direction and a = wᵀu, x = ru and y = 1 give the speed c = r − ar², at most 1 − a (r = 1), or 1/(4a) if
    a > 1/2. For a smaller c, r = 2c/(1 + √(1 − 4ac)).
    """
    gap = target - w
    distance = float(np.linalg.norm(gap))
    u = gap / distance
    along = float(w @ u)
    fastest = 1.0 - along if along <= 0.5 else 0.25 / along
    speed = min(distance / lr, fastest)
    r = 2 * speed / (1 + math.sqrt(max(0.0, 1 - 4 * along * speed)))
    return (r * u, 1.0), distance / lr <= fastest


def _course(control: Control, start: Vector, target: Vector, lr: float, tolerance: float) -> Course:
    """Step by ``control`` until the target is within reach of one step, which then ends on it."""
    path: list[Vector] = [start]
    examples: list[tuple[Vector, float]] = []
    while np.linalg.norm(path[-1] - target) > tolerance:
        if len(examples) == MOST_STEPS:
            raise InputError(
                f"the target {target.tolist()} is not reached in {MOST_STEPS} steps: choose a nearer one"
            )
        straight_on, arrives = _towards(path[-1], target, lr)
        examples.append(straight_on if arrives else control(len(examples), path[-1]))
        path.append(step(path[-1], *examples[-1], lr))
    return Course(
        np.array(path), np.array([x for x, _ in examples]), np.array([y for _, y in examples])
    )


def _checked(
    start: Any, target: Any, lr: float = 0.01, tolerance: float = 1e-3
) -> tuple[Vector, Vector]:
    """Both points as arrays; raises InputError if an argument is not valid."""
    points = [np.asarray(point, float) for point in (start, target)]
    for name, point in zip(("start", "target"), points, strict=True):
        if point.shape != (2,) or not np.isfinite(point).all():
            raise InputError(f"{name} must be two finite numbers, not {point.tolist()}")
    for name, value in (("lr", lr), ("tolerance", tolerance)):
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be a positive number, not {value}")
    return points[0], points[1]


__all__ = ["Course", "Extremal", "extremal", "greedy", "optimal", "steepest", "step", "straight"]
