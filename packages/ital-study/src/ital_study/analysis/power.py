"""Power analysis.

How many participants a study needs, for a given effect or for simulated teachers.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ital import statistics
from ital.errors import InputError
from ital_study.analysis import measures
from ital_study.config.configuration import Config
from ital_study.config.lineup import AWARE, KINDS, NAIVE
from ital_study.simulation import arms

if TYPE_CHECKING:
    import pandas as pd

# Participants; an effect that needs more is treated as zero.
MOST = 100_000

# Share of deviations that are left out at either end of the integral.
NEVER = 1e-15

# A study that cannot find such an effect finds none.
LARGEST = 1e12
RATIONALITIES = (1.0, 3.0, 10.0, 30.0, 100.0)


def power_of(
    n: int,
    effect: float,
    alpha: float = 0.05,
    tests: int = 1,
) -> float:
    """Return the power of a two-sided paired t-test of n participants.

    The effect is d = mean difference / its deviation.

    Given the observed deviation, S times the true one, the mean difference is normal:
    power = E[Φ(d√n − tS) + Φ(−d√n − tS)], where t is the critical value and
    S² = χ²/(n−1) with n−1 degrees of freedom. It is the integral of a bounded function, so it is
    right where SciPy's noncentral t gives no number.
    With several ``tests`` each has α/tests (Bonferroni). Holm's procedure finds at least as much.
    """
    from scipy import integrate, special, stats

    if n < 2:
        return 0.0
    away = abs(effect) * math.sqrt(n)
    limit = float(stats.t.isf(alpha / tests / 2, n - 1))
    scale = math.sqrt(n - 1)

    def found(deviation: float) -> float:
        """Return the chance that the test finds the effect, times the density of the deviation."""
        on_this_side = special.ndtr(away - limit * deviation)
        on_the_other = special.ndtr(-away - limit * deviation)
        chance = on_this_side + on_the_other
        density = stats.chi.pdf(deviation * scale, n - 1)
        return float(chance * density * scale)

    low = stats.chi.ppf(NEVER, n - 1) / scale
    high = stats.chi.isf(NEVER, n - 1) / scale
    # With few people the critical value t is large. Then the integrand falls from 1 to 0 in a
    # narrow place, within a few 1/t of S = d√n / t, which the integration must not overlook.
    turns = [(away + z) / limit for z in (-8, -2, 0, 2, 8)]
    points = [turn for turn in turns if low < turn < high]
    power, _ = integrate.quad(
        found,
        low,
        high,
        points=points,
        epsabs=1e-12,
        limit=200,
    )
    return min(float(power), 1.0)


def participants_needed(
    effect: float,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
) -> int:
    """Return the smallest number of participants that finds the effect with the given power."""
    check(power=power, alpha=alpha, tests=tests)
    check_effect(effect)
    if not effect:
        raise InputError(
            "an effect of zero cannot be found, however many people take part: give another effect"
        )
    enough = functools.partial(power_of, effect=effect, alpha=alpha, tests=tests)
    if enough(MOST) < power:
        raise InputError(f"an effect of d = {effect:g} needs more than {MOST} participants")
    return _smallest_number(lambda n: enough(n) >= power, 2, MOST)


def smallest_effect(
    n: int,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
) -> float:
    """Return the smallest d that n participants find with the given power."""
    check(power=power, alpha=alpha, tests=tests)
    if n < 2:
        raise InputError(f"a paired test needs at least two participants, not {n}")
    low = 0.0
    high = 1.0
    while power_of(n, high, alpha, tests) < power:
        if high > LARGEST:
            level = f"at a level of {alpha / tests:g}"
            raise InputError(f"{n} participants find no effect {level}: take more people")
        low = high
        high = 2 * high
    # Bisection: ``high`` is found with the given power, ``low`` is not.
    for _ in range(50):
        middle = (low + high) / 2
        if power_of(n, middle, alpha, tests) >= power:
            high = middle
        else:
            low = middle
    return high


def _smallest_number(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest n in [low, high] from which ``holds`` is true; it is at ``high``."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def share_found(
    differences: np.ndarray,
    n: int,
    alpha: float = 0.05,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> float:
    """Return the share of studies of n people that find every map's difference, Holm over maps.

    ``differences`` (participants, maps) are those of a pool, from which n are drawn with
    replacement.
    """
    from scipy import stats

    rng = np.random.default_rng(seed)
    people = rng.integers(0, len(differences), (resamples, n))
    # Shape (resamples, n, maps).
    drawn = differences[people]
    mean = drawn.mean(axis=1)
    spread = drawn.std(axis=1, ddof=1)
    # Without any spread there is no test: t is 0.
    t = mean / np.where(spread > 0, spread, np.inf) * math.sqrt(n)
    p = 2 * stats.t.sf(np.abs(t), n - 1)
    is_found = statistics.holm(p) <= alpha
    return float(is_found.all(axis=1).mean())


def needed_for_all_maps(
    differences: np.ndarray,
    power: float = 0.8,
    alpha: float = 0.05,
    most: int = 400,
) -> int | None:
    """Return the smallest number of participants for which all maps are significant.

    None if above ``most``.
    """
    check(power=power, alpha=alpha)
    if share_found(differences, most, alpha) < power:
        return None
    return _smallest_number(lambda n: share_found(differences, n, alpha) >= power, 2, most)


def simulated_effects(  # noqa: PLR0913
    config: Config,
    teachers: Sequence[arms.ArmTeacher],
    *,
    pool: int = 100,
    outcome: str = "distance_last",
    robot: str = AWARE,
    against: str = NAIVE,
    power: float = 0.8,
    alpha: float = 0.05,
    show: Callable[[int], None] = lambda done: None,
) -> "pd.DataFrame":
    """Compare robots for simulated teachers, and compute the people needed.

    ``robot`` and ``against`` may be of any kind, whether or not the study includes them. The
    control has the aware robot's step lengths, so it is a control for that one only.

    One row per teacher: Cohen's d on the mean over maps and on the map where it is smallest, how
    often the teacher agrees with the machine, and the participants needed for the mean over maps
    and for every map at once.
    """
    import pandas as pd

    check(power=power, alpha=alpha)
    check_comparison(config, outcome, robot, against)
    if pool < 10:
        raise InputError(f"the pool needs at least 10 simulated participants, not {pool}")
    arms_run = arms.run(config, pool, teachers, (robot, against), show=show)
    outcomes = measures.outcomes_of(config, arms.table(config, arms_run))
    per_map = outcomes[outcomes["map"] != measures.ALL_MAPS]
    rows = []
    for teacher in teachers:
        of_teacher = per_map[per_map["teacher"] == teacher.name]
        differences = _differences_of_arms(of_teacher, outcome, robot, against)
        effect = _effect(differences.mean(axis=1))
        effects_of_maps = [_effect(of_map) for of_map in differences.T]
        row = {
            "teacher": teacher.name,
            "agrees": _agreement_of_arm(arms_run, (teacher.name, robot)),
            "difference": float(differences.mean()),
            "d": effect,
            "smallest_d": min(effects_of_maps, key=abs),
            "needed": _needed(effect, power, alpha),
            "needed_all_maps": needed_for_all_maps(differences, power, alpha),
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.astype({"needed": "Int64", "needed_all_maps": "Int64"})


def _differences_of_arms(
    outcomes: "pd.DataFrame",
    outcome: str,
    robot: str,
    against: str,
) -> np.ndarray:
    """Return the differences of two robots by participant and map."""
    wide = outcomes.pivot_table(
        index="participant",
        columns=["learner", "map"],
        values=outcome,
        sort=False,
    )
    return (wide[robot] - wide[against]).to_numpy()


def _agreement_of_arm(arms_run: arms.ArmsRun, arm: tuple[str, str]) -> float:
    """Return how often the teacher of an arm chose the machine's pick."""
    index = arms_run.arms.index(arm)
    trace = arms_run.trace
    choice = trace.choice[:, :, index]
    machine_choice = trace.machine_choice[:, :, index]
    return float((choice == machine_choice).mean())


def check_comparison(
    config: Config,
    outcome: str,
    robot: str,
    against: str,
) -> None:
    """Raise for an outcome or robots that cannot be compared.

    Args:
        config: The study.
        outcome: The outcome.
        robot: Kind of robot.
        against: What it is compared with.

    Raises:
        InputError: One of them is unknown, or they cannot be compared.
    """
    outcomes = measures.measures(config.steps)
    others = [name for name in (*KINDS, arms.MATCHED) if name != robot]
    _check_among("outcome", outcome, list(outcomes))
    _check_among("robot", robot, list(KINDS))
    _check_among("against", against, others)
    if robot != AWARE and against == arms.MATCHED:
        raise InputError(
            f"{arms.MATCHED} takes steps as long as the aware robot's: compare it with robot aware"
        )


def _check_among(what: str, name: str, allowed: Sequence[str]) -> None:
    if name not in allowed:
        listed = ", ".join(allowed)
        raise InputError(f"{what} must be one of {listed}, not {name!r}")


def _effect(differences: np.ndarray) -> float:
    return float(differences.mean() / differences.std(ddof=1))


def _needed(effect: float, power: float, alpha: float) -> int | None:
    try:
        return participants_needed(effect, power, alpha)
    except InputError:
        return None


def check_effect(effect: float) -> None:
    """Raise for an effect that is not a number."""
    if math.isnan(effect):
        raise InputError(
            "the effect must be a number: mean difference / its deviation, such as 0.5"
        )


def check(*, power: float = 0.8, alpha: float = 0.05, tests: int = 1) -> None:
    """Raise for an invalid power, level or number of tests."""
    if not 0 < alpha < 0.5:
        raise InputError(f"alpha must lie between 0 and 0.5, not {alpha}")
    if not alpha < power < 1:
        raise InputError(f"power must lie between alpha and 1, not {power}")
    if tests < 1:
        raise InputError(f"the number of tests must be at least 1, not {tests}")
