"""Teaching as optimal control in the plane: the fewest steps to a target, with any examples.

The benchmark of Lessard, Zhang and Zhu (2019). A learner of least squares takes the naive step
w⁺ = w − η(wᵀx − y)x. The teacher may show any example with ‖x‖ ≤ 1 and |y| ≤ 1, instead of one of a
mini-batch. As η → 0, the learner follows ẇ = (y − wᵀx)x, and the fewest steps become the shortest
time.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError

# The longest course.
MOST_STEPS = 100_000
# The most evaluations of the flow on a path; a smooth path needs a few hundred.
MOST_EVALUATIONS = 4000
# First guesses at the direction of p⁰.
ANGLES = 48
# Of the optimal path.
ACCURACY = 1e-10
# The start and the target of the paper's example.
START = (0.0, 1.0)
TARGET = (1.0, 0.0)

Vector = np.ndarray
Example = tuple[Vector, float]  # x (2,) and its label y
Control = Callable[[int, Vector], Example]


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
    """Take the naive step of least squares, w⁺ = w − η(wᵀx − y)x.

    Args:
        w: the parameters before the step (2,).
        x: the example (2,).
        y: its label.
        lr: the step size η.

    Returns:
        The parameters after the step (2,).
    """
    residual = w @ x - y
    return w - lr * residual * x


def steepest(p: Vector, w: Vector, lr: float = 0.0) -> Example:
    """Return the example that moves w furthest along p.

    It maximises pᵀv − (η/2)‖v‖² over ‖x‖ ≤ 1, |y| ≤ 1, with v = (y − wᵀx)x. η = 0 is Pontryagin's
    condition. With the η of a step and p = w* − w, it is the step that ends closest to w*.

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
    # Both signs of (x, y) move w alike, so y = 1. The best x lies on the circle, or inside it.
    x = _critical_on_circle(p, w, lr)
    if lr and w @ w > 0.25:
        inside = _inside(p, w, lr)
        x = np.vstack([x, inside])
    left = 1.0 - x @ w  # (n,)
    v = left[:, None] * x
    gains = v @ p - lr / 2 * np.sum(v**2, axis=1)
    best = np.argmax(gains)
    return x[best], 1.0


def _critical_on_circle(p: Vector, w: Vector, lr: float) -> np.ndarray:
    """Return points x = exp(iθ) that include all maxima on the circle, with y = 1 (n, 2).

    With z = exp(iθ), pᵀx, wᵀx and their derivatives are polynomials in z and 1/z. So the derivative
    of what is maximised is a polynomial of degree 4 in z, divided by z².
    """
    # Coefficients of the powers z, 1, 1/z.
    along_p = _as_powers(p)
    along_w = _as_powers(w)
    turn = np.array([1j, 0.0, -1j])  # d/dθ multiplies each power by its own factor
    one = np.array([0.0, 1.0, 0.0])
    left = one - along_w  # y − wᵀx
    rising = np.convolve(turn * (along_p + lr * along_w), left)
    falling = np.convolve(along_p, turn * along_w)
    roots = np.roots(rising - falling)
    # Where the polynomial vanishes altogether it has no roots: p is a candidate as well.
    candidates = np.append(roots, complex(*p))
    # Rounding moves roots off the circle, and some of them are no points of it.
    nonzero = candidates[candidates != 0]
    z = nonzero / np.abs(nonzero)
    return np.stack([z.real, z.imag], axis=1)


def _as_powers(u: Vector) -> np.ndarray:
    """Return uᵀx as coefficients of z, 1 and 1/z, for x = exp(iθ) = z."""
    number = complex(*u)
    return np.array([number.conjugate(), 0.0, number]) / 2


def _inside(p: Vector, w: Vector, lr: float) -> Vector:
    """Return the best x inside the circle: there wᵀx = 1/2, so that v = x/2 moves on a line."""
    squared = w @ w
    w_x, w_y = w
    across = np.array([-w_y, w_x])
    # How far across w the line reaches before ‖x‖ = 1.
    most = math.sqrt(1.0 - 0.25 / squared) / math.sqrt(squared)
    best = 2 * (p @ across) / (lr * squared)
    middle = w / (2 * squared)  # the point of the line that is nearest to 0
    return middle + across * np.clip(best, -most, most)


def greedy(
    start: Any = START,
    target: Any = TARGET,
    *,
    lr: float = 0.01,
    tolerance: float = 1e-3,
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
    start, target = _checked_points(start, target, lr, tolerance)

    def control(number: int, w: Vector) -> Example:
        return steepest(target - w, w, lr)

    return _course(control, start, target, lr, tolerance)


def straight(
    start: Any = START,
    target: Any = TARGET,
    *,
    lr: float = 0.01,
    tolerance: float = 1e-3,
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
    start, target = _checked_points(start, target, lr, tolerance)

    def control(number: int, w: Vector) -> Example:
        straight_on, _ = _towards(w, target, lr)
        return straight_on

    return _course(control, start, target, lr, tolerance)


def optimal(
    start: Any = START,
    target: Any = TARGET,
    *,
    lr: float = 0.01,
    tolerance: float = 1e-3,
) -> Course:
    """Teach along the time-optimal path of the flow (:func:`extremal`), one step per η of its time.

    Each step takes the example of Pontryagin's condition at the learner's own w, with p after the
    step, as the maximum principle in discrete time has it.

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
    start, target = _checked_points(start, target, lr, tolerance)
    if np.linalg.norm(target - start) <= tolerance:
        return Course(path=start[None], x=np.empty((0, 2)), y=np.empty(0))
    path = extremal(start, target)

    def control(number: int, w: Vector) -> Example:
        after = (number + 1) * lr  # the time at the end of this step
        if after < path.time:
            _, p = path.at(after)
            return steepest(p, w)
        # What the discrete steps have missed.
        straight_on, _ = _towards(w, target, lr)
        return straight_on

    return _course(control, start, target, lr, tolerance)


def extremal(start: Any = START, target: Any = TARGET) -> Extremal:
    """Find the shortest path of the flow to the target by shooting.

    It satisfies Pontryagin's conditions: x and y maximise pᵀ(y − wᵀx)x at every time, and
    ṗ = (pᵀx)x. The length of p does not matter, so that the only unknown is the angle of p⁰: a path
    misses the target on one side or on the other, and in between it hits.

    Args:
        start: w at time 0 (2,).
        target: w* (2,), another point.

    Returns:
        The path.

    Raises:
        InputError: if an argument is not valid, or no path to the target is found.
    """
    start, target = _checked_points(start, target)
    if np.array_equal(start, target):
        raise InputError(f"start and target are both {start.tolist()}: no path is needed")
    # Several times as long as the straight line takes.
    most = 4 * straight(start, target).steps * 0.01
    gap_x, gap_y = target - start
    straight_angle = math.atan2(gap_y, gap_x)
    angles = np.linspace(0, 2 * np.pi, ANGLES + 1) + straight_angle
    misses = [_roughly(start, target, angle, most) for angle in angles]
    hits = []
    for number in range(ANGLES):
        miss_low, miss_high = misses[number : number + 2]
        # NaN, a path that is stuck, changes no sign.
        if not miss_low * miss_high < 0:
            continue
        low, high = angles[number : number + 2]
        hit = _hit_between(start, target, low, high, most)
        if hit is not None:
            hits.append(hit)
    if not hits:
        raise InputError(
            f"found no optimal path from {start.tolist()} to {target.tolist()}: "
            "use straight or greedy"
        )
    return min(hits, key=lambda hit: hit.time)


def _hit_between(
    start: Vector,
    target: Vector,
    low: float,
    high: float,
    most: float,
) -> Extremal | None:
    """Return the path that hits the target with p⁰ between two angles; None if there is none."""
    from scipy.optimize import brentq

    def miss(angle: float) -> float:
        _, missed_by = _shot(start, target, angle, most)
        return missed_by

    try:
        angle = brentq(miss, low, high, xtol=ACCURACY)
        path, missed_by = _shot(start, target, angle, most)
    except (_Stuck, ValueError):
        # The accurate misses may have other signs than the rough ones.
        return None
    # A jump from one side to the other is no hit.
    if abs(missed_by) >= 1e-6:
        return None
    return path


class _Stuck(Exception):
    """A path that takes too long to compute.

    Where p is parallel to w, x keeps jumping between two equal examples.
    """


def _roughly(start: Vector, target: Vector, angle: float, most: float) -> float:
    """Return by how much a path misses the target, to a few digits; NaN if it is stuck."""
    try:
        _, missed_by = _shot(start, target, angle, most, accuracy=1e-4)
    except _Stuck:
        return math.nan
    return missed_by


def _shot(
    start: Vector,
    target: Vector,
    angle: float,
    most: float,
    accuracy: float = ACCURACY,
) -> tuple[Extremal, float]:
    """Follow the path with p⁰ at an angle up to where it is closest to the target.

    Returns:
        The path, and by how much it misses the target on the left.
    """
    from scipy.integrate import solve_ivp

    evaluations = itertools.count()

    # The state of the flow is w and p, one after the other (4,).
    def flow(_: float, both: Vector) -> Vector:
        if next(evaluations) > MOST_EVALUATIONS:
            raise _Stuck
        w = both[:2]
        p = both[2:]
        x, y = steepest(p, w)
        change_of_w = (y - w @ x) * x
        change_of_p = (p @ x) * x
        return np.concatenate([change_of_w, change_of_p])

    def nears(time: float, both: Vector) -> float:
        change_of_w = flow(time, both)[:2]
        return (both[:2] - target) @ change_of_w

    # The path ends where this turns from negative to positive: it is closest there.
    nears.terminal = True  # type: ignore[attr-defined]
    nears.direction = 1.0  # type: ignore[attr-defined]
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
    last = found.y[:, -1]
    along, _ = np.split(flow(0.0, last), 2)
    missed_by = _missed_on_the_left(along, target - last[:2])

    def at(time: float) -> tuple[Vector, Vector]:
        both = found.sol(time)
        return both[:2], both[2:]

    return Extremal(float(found.t[-1]), at), missed_by


def _missed_on_the_left(along: Vector, gap: Vector) -> float:
    """Return the cross product of the unit direction of a path and the gap to the target."""
    along_x, along_y = along
    gap_x, gap_y = gap
    return (along_x * gap_y - along_y * gap_x) / math.hypot(along_x, along_y)


def _towards(w: Vector, target: Vector, lr: float) -> tuple[Example, bool]:
    """Return the example whose step leads straight to the target, and whether it arrives.

    With u the direction and a = wᵀu, x = ru and y = 1 give the speed c = r − ar², at most 1 − a
    (r = 1), or 1/(4a) if a > 1/2. For a smaller c, r = 2c/(1 + √(1 − 4ac)).
    """
    gap = target - w
    distance = float(np.linalg.norm(gap))
    u = gap / distance
    along = float(w @ u)
    fastest = 1.0 - along
    if along > 0.5:
        fastest = 0.25 / along
    needed = distance / lr
    speed = min(needed, fastest)
    # At the fastest speed, rounding may make the square root's argument negative.
    discriminant = max(0.0, 1 - 4 * along * speed)
    r = 2 * speed / (1 + math.sqrt(discriminant))
    return (r * u, 1.0), needed <= fastest


def _course(
    control: Control,
    start: Vector,
    target: Vector,
    lr: float,
    tolerance: float,
) -> Course:
    """Step by ``control`` until the target is within reach of one step, which then ends on it."""
    w = start
    path: list[Vector] = [start]
    examples: list[Example] = []
    while np.linalg.norm(w - target) > tolerance:
        if len(examples) == MOST_STEPS:
            raise InputError(
                f"the target {target.tolist()} is not reached in {MOST_STEPS} steps: "
                "choose a nearer one"
            )
        example, arrives = _towards(w, target, lr)
        if not arrives:
            example = control(len(examples), w)
        x, y = example
        w = step(w, x, y, lr)
        examples.append(example)
        path.append(w)
    return Course(
        path=np.array(path),
        x=np.array([x for x, _ in examples]),
        y=np.array([y for _, y in examples]),
    )


def _checked_points(
    start: Any,
    target: Any,
    lr: float = 0.01,
    tolerance: float = 1e-3,
) -> tuple[Vector, Vector]:
    """Return both points as arrays; raise InputError if an argument is not valid."""
    first = _checked_point("start", start)
    last = _checked_point("target", target)
    for name, value in (("lr", lr), ("tolerance", tolerance)):
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be a positive number, not {value}")
    return first, last


def _checked_point(name: str, value: Any) -> Vector:
    """Return a point as an array (2,); raise InputError if it is none."""
    point = np.asarray(value, float)
    if point.shape != (2,) or not np.isfinite(point).all():
        raise InputError(f"{name} must be two finite numbers, not {point.tolist()}")
    return point


__all__ = ["Course", "Extremal", "extremal", "greedy", "optimal", "steepest", "step", "straight"]
