"""``ital bench``: steps per second of a plain NumPy loop, of ital, and of ital's own floor."""

import functools
import json
import statistics
import sys
import time
from typing import Any

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from ital.bench import _cases
from ital.bench._cases import EVERY, LR
from ital.errors import InputError
from ital.teaching import BLOCK, Session

REPEATS = 3
ENOUGH_SECONDS = 10.0
NUMPY_SECONDS = 3.0
# Rough numbers of two idle cores, from which ``expected_minutes`` makes its estimate.
COMPILE_SECONDS = 5.0
STEPS_PER_SECOND = 100_000


def measure(lanes: int, steps: int, test_rows: int) -> dict[str, Any]:
    """Time all cases.

    A step is one step of one lane; every time includes a measurement every 20 steps.

    Args:
        lanes: Number of lanes, a multiple of 8: eight methods on each seed.
        steps: Number of steps of each lane.
        test_rows: Number of test rows of the 200-class pool.

    Returns:
        The device and, by the name of each case, steps per second of NumPy, of ital and of its
        floor.

    Raises:
        InputError: A number is too small, or ``lanes`` is not a multiple of 8.
    """
    _check_sizes(lanes, steps, test_rows)
    device, *_ = jax.devices()
    cases = _cases.cases(test_rows)
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "lanes": lanes,
        "steps": steps,
        "cases": {name: _timed_case(case, lanes, steps) for name, case in cases.items()},
    }


def _timed_case(case: _cases.Case, lanes: int, steps: int) -> dict[str, float]:
    """Return the figures of a case; those of the floor only where it applies."""
    session = _cases.session(case.task, lanes, steps)
    seconds, compile_seconds = _time(session)
    numpy_speed = _numpy_speed(case)
    speed = lanes * steps / seconds
    figures = {
        "numpy_steps_per_second": numpy_speed,
        "ital_steps_per_second": speed,
        "ital_over_numpy": speed / numpy_speed,
        "ital_seconds": seconds,
        "compile_seconds": compile_seconds,
    }
    if case.pool:
        floor_seconds = _floor_seconds(case, lanes, steps)
        figures["floor_steps_per_second"] = lanes * steps / floor_seconds
        figures["ital_over_floor_time"] = seconds / floor_seconds
    return figures


def _floor_seconds(case: _cases.Case, lanes: int, steps: int) -> float:
    """Return seconds of a run that computes only the matrix products of a case."""
    task, teacher, products = _cases.floor(case.task)
    # Eight lanes per seed, as many as the case itself has.
    copies = [products._replace(name=f"products-{i}") for i in range(8)]
    session = _cases.session(task, lanes, steps, teacher, copies)
    seconds, _ = _time(session)
    return seconds


def _time(session: Session) -> tuple[float, float]:
    """Return seconds of a whole run after compilation, and of the compilation.

    The first is the median of up to three runs.
    """
    # On the host: a step may reuse the memory of the carry that it is given.
    start = jax.tree.map(np.asarray, session.carry)
    began = time.perf_counter()
    session.advance(1)
    compile_seconds = time.perf_counter() - began
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < ENOUGH_SECONDS:
        on_device = jax.tree.map(jax.numpy.asarray, start)
        session.carry = jax.block_until_ready(on_device)
        began = time.perf_counter()
        while session.step < session.steps:
            session.advance(BLOCK)
        took = time.perf_counter() - began
        times.append(took)
    return statistics.median(times), compile_seconds


def _numpy_speed(case: _cases.Case) -> float:
    """Return steps per second of the NumPy baseline."""
    world = case.task.world(0)
    speed = functools.partial(case.numpy, world, case.task.beta, LR)
    # One lane on one core: threads would slow down such small products.
    with threadpool_limits(1):
        pilot = speed(100, EVERY)
        fitting = pilot * NUMPY_SECONDS / REPEATS
        steps = max(100, int(fitting))
        speeds = [speed(steps, EVERY) for _ in range(REPEATS)]
    return statistics.median(speeds)


def _check_sizes(lanes: int, steps: int, test_rows: int) -> None:
    if test_rows < 1:
        raise InputError(f"bench needs at least one test row, not {test_rows}")
    if lanes < 8 or lanes % 8 or steps < EVERY:
        raise InputError(
            f"bench needs a multiple of 8 lanes and at least {EVERY} steps, not {lanes} and {steps}"
        )


def main(lanes: int, steps: int, test_rows: int, as_json: bool) -> None:
    """Measure and print.

    Args:
        lanes: Number of lanes, a multiple of 8.
        steps: Number of steps of each lane.
        test_rows: Number of test rows of the 200-class pool.
        as_json: Whether to print JSON instead of a table.
    """
    _check_sizes(lanes, steps, test_rows)
    minutes = expected_minutes(lanes, steps)
    print(f"this takes about {minutes:.0f} min on two idle cores", file=sys.stderr)
    report = measure(lanes, steps, test_rows)
    if as_json:
        print(json.dumps(report, indent=2))
        return
    _print_report(report)


def _print_report(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"{report['lanes']} lanes × {report['steps']} steps on {report['device']}"
    table = Table(title=title, title_justify="left")
    table.add_column("case")
    for column in ("NumPy", "ital", "floor", "÷ NumPy", "× floor", "run", "compile"):
        table.add_column(column, justify="right")
    for name, row in report["cases"].items():
        # A case without a pool has no floor.
        floor = above_floor = "–"
        if "floor_steps_per_second" in row:
            floor = _thousands(row["floor_steps_per_second"])
            above_floor = f"{row['ital_over_floor_time']:.2f}×"
        table.add_row(
            name,
            _thousands(row["numpy_steps_per_second"]),
            _thousands(row["ital_steps_per_second"]),
            floor,
            f"{row['ital_over_numpy']:.1f}×",
            above_floor,
            f"{row['ital_seconds']:.3f} s",
            f"{row['compile_seconds']:.1f} s",
        )
    console = Console()
    console.print(table)
    console.print(
        "Steps per second. A step is one step of one lane; every time includes a measurement every "
        "20 steps."
    )


def expected_minutes(lanes: int, steps: int) -> float:
    """Estimate how long :func:`measure` takes, from rough speeds of two cores.

    Args:
        lanes: Number of lanes.
        steps: Number of steps of each lane.

    Returns:
        Minutes, at least one.
    """
    cases = _cases.cases(1).values()
    # A case with a pool is timed a second time, as its floor.
    timed = len(cases) + sum(case.pool for case in cases)
    run = lanes * steps / STEPS_PER_SECOND
    # Runs are repeated until they have taken long enough, at most three times.
    enough = ENOUGH_SECONDS / max(run, 1e-9)
    runs = min(REPEATS, max(1.0, enough))
    of_numpy = len(cases) * NUMPY_SECONDS
    of_programs = timed * (COMPILE_SECONDS + runs * run)
    return max(1.0, (of_numpy + of_programs) / 60)


def _thousands(per_second: float) -> str:
    """Write a speed in thousands, with a decimal below ten thousand."""
    thousands = per_second / 1000
    if thousands < 10:
        return f"{thousands:,.1f}k"
    return f"{thousands:,.0f}k"


__all__ = ["expected_minutes", "main", "measure"]
