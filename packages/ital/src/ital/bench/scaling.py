"""``ital bench --scaling``: speed by lanes, rows and processes; memory; what limits each."""

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ital import losses, tasks
from ital.bench import _cases, _limits, _thousands
from ital.bench._cases import EVERY
from ital.errors import InputError
from ital.tasks import Task
from ital.teaching import BLOCK, Session
from ital.tools.devices import named
from ital.tools.files import check_writable

TASKS = {name: tasks.REGISTRY[name] for name in ("regression", "gaussian", "irl-dense")}
LANES = (8, 64, 512, 4096, 16384)
ROWS = (100, 1000, 10_000, 100_000, 1_000_000)
MEMORY_ROWS = (10_000, 100_000, 1_000_000)
WORKERS = (1, 2)
SEEDS = 20
DIM = 100
LONGEST = 3.0  # seconds; a point whose 20 steps take longer is skipped
ENOUGH = 0.4  # seconds of timing per point
WORLDS = 32  # different worlds; further seeds reuse them


def measure(say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Measure all series: speed by number of lanes, rows and processes; and memory.

    Args:
        say: Called with one line about what is being measured.

    Returns:
        The limits of the machine and, for each series, its points with the limit that applies to
        each.
    """
    load_before = os.getloadavg()[0]
    say("limits of the machine")
    limits = _limits.measure_limits()
    copy = {str(size): rate for size, rate in limits.copy.items()}  # JSON has no other keys
    report: dict[str, Any] = {
        "device": named(jax.devices()[:1]),
        "jax": jax.__version__,
        "every": EVERY,
        "limits": {**limits._asdict(), "copy": copy},
    }
    report["lanes"] = {
        name: _against_lanes(name, make(), limits, say) for name, make in TASKS.items()
    }
    report["rows"] = []
    for rows in ROWS:
        say(f"a pool of {rows:,} rows")
        report["rows"].append({"rows": rows, **_point(pool(rows), 8 * SEEDS, limits)})
    report["workers"] = []
    for workers in WORKERS:
        say(_processes_in_words(workers))
        report["workers"].append({"workers": workers, "steps_per_second": _together(workers)})
    say("memory")
    empty = memory(100)
    report["memory"] = [_above(empty, memory(rows)) for rows in MEMORY_ROWS]
    # A load beyond this benchmark's own makes the figures doubtful.
    report["load"] = [load_before, os.getloadavg()[0]]
    return report


def _processes_in_words(number: int) -> str:
    return f"{number} process" if number == 1 else f"{number} processes"


def _against_lanes(
    name: str, task: Task, limits: _limits.Limits, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure one series; it stops where the next point would take too long."""
    task = _few_worlds(task)
    points: list[dict[str, Any]] = []
    for lanes in LANES:
        if points:
            last = points[-1]
            # A step takes at most as much longer as there are more lanes.
            expected = EVERY * last["seconds_per_step"] * lanes / last["lanes"]
            if expected > LONGEST:
                break
        say(f"{name}, {lanes} lanes")
        points.append(_point(task, lanes, limits, points[0] if points else None))
    return points


def _few_worlds(task: Task) -> Task:
    """Return the same task with few different worlds.

    Drawing thousands takes longer than teaching on them.
    """
    world = functools.cache(task.world)
    return task._replace(world=lambda seed: world(seed % WORLDS))


def pool(rows: int) -> Task:
    """Make a regression task on one shared pool of random rows; the two views are different arrays.

    Args:
        rows: Number of rows.

    Returns:
        The task.
    """
    rng = np.random.default_rng(0)
    x = rng.random((rows, DIM), dtype=np.float32)
    z = rng.random((rows, DIM), dtype=np.float32)
    target = rng.random((1, DIM + 1), dtype=np.float32)
    y = x @ target[:, :-1].T + target[:, -1]
    data = tasks.Pool(x, z, y, target, target, x[:100].copy(), y[:100].copy())
    return tasks.from_pool("pool", data, losses.squared, beta=100.0)


def endless(task: Task, lanes: int) -> Session:
    """Open a session of the paper's eight methods that never reaches its last step.

    Args:
        task: The task.
        lanes: Number of lanes, a multiple of 8.

    Returns:
        A session before its first step.
    """
    return _cases.session(task, lanes, steps=2**30)


def _point(
    task: Task, lanes: int, limits: _limits.Limits, first: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Measure the speed at a number of lanes, and its bounds.

    The cost of one lane's step is taken from the ``first`` point of the series, if there is one.
    """
    session = endless(task, lanes)
    # With the lanes that pad the program.
    lanes = session.numbers.lanes.lr.size
    cost = _limits.Cost(**first["cost"]) if first else _limits.cost(session, EVERY)
    seconds = _seconds_per_step(session)
    bounds = _limits.bounds(limits, cost, lanes)
    nearest = max(bounds, key=lambda reason: bounds[reason])
    return {
        "lanes": lanes,
        "seconds_per_step": seconds,
        "steps_per_second": lanes / seconds,
        "cost": cost._asdict(),
        "bounds": bounds,
        "bound": nearest,
        "distance": seconds / bounds[nearest],
    }


def _seconds_per_step(session: Session) -> float:
    """Return seconds of one step of all lanes, after compilation: the shortest of a few blocks."""
    session.advance(1)
    intervals = 1
    best = np.inf
    total = 0.0
    while total < ENOUGH:
        began = time.perf_counter()
        session.advance(intervals)
        took = time.perf_counter() - began
        best = min(best, took / intervals)
        total += took
        # The next block should take a third of the time, so that there are about three.
        intervals = int(np.clip(ENOUGH / 3 / took * intervals, 1, BLOCK))
    return best / EVERY


def _start_child(*arguments: str) -> "subprocess.Popen[str]":
    """Start a separate process on the same platform; on a GPU it takes only what it needs."""
    # Each process compiles its own program: one loaded from disk would make its peak memory look
    # smaller.
    environment = {
        **os.environ,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
    if jax.default_backend() == "cpu":
        environment["JAX_PLATFORMS"] = "cpu"
    command = [sys.executable, "-m", "ital.bench._child", *arguments]
    return subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _together(workers: int, seconds: float = 2.0) -> float:
    """Return steps per second of several processes together.

    Each teaches the same 160 lanes of regression.
    """
    children = [_start_child("worker") for _ in range(workers)]
    try:
        for child in children:
            assert child.stdout is not None
            if child.stdout.readline() != "ready\n":
                raise InputError(
                    f"one of {workers} parallel processes failed: check that there is enough memory"
                )
        # All have compiled: now they start at the same moment.
        for child in children:
            assert child.stdin is not None
            child.stdin.write(f"{seconds}\n")
            child.stdin.flush()
        return sum(json.loads(child.communicate()[0])["steps_per_second"] for child in children)
    finally:
        for child in children:
            child.kill()
            child.wait()


def memory(rows: int) -> dict[str, Any]:
    """Measure the peak memory of a fresh process that teaches 160 lanes on a pool.

    Args:
        rows: Number of rows of the pool.

    Returns:
        Bytes of the pool, of the process and, on a GPU, of the device.

    Raises:
        InputError: The process failed.
    """
    child = _start_child("memory", str(rows))
    out, _ = child.communicate()
    if child.returncode:
        raise InputError(
            f"the process that measures memory with {rows} rows failed: "
            "check that there is enough memory"
        )
    return json.loads(out)


def _above(empty: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, Any]:
    """Add the memory that a pool needs beyond an almost empty one."""
    above = {**full, "above_empty_bytes": full["peak_bytes"] - empty["peak_bytes"]}
    if full["device_peak_bytes"] is not None:
        above["device_above_empty_bytes"] = full["device_peak_bytes"] - empty["device_peak_bytes"]
    return above


def main(as_json: bool, out: Path | None) -> None:
    """Measure, write ``scaling.json`` and the figure if a folder is given, and print.

    Args:
        as_json: Whether to print JSON instead of tables.
        out: Folder for the files; None: no files.

    Raises:
        InputError: The folder cannot be made, or a process failed.
    """
    if out is not None:
        check_writable(out)
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to {out}: {error.strerror or error}") from None
    report = measure(lambda line: print(line, file=sys.stderr))
    text = json.dumps(report, indent=1)
    files = []
    if out is not None:
        from ital import figures
        from ital.tools.files import write

        write(out / "scaling.json", text.encode())
        files = [out / "scaling.json", *figures.save(figures.plot_scaling(report), out / "scaling")]
    if as_json:
        print(text)
        return
    _print(report)
    for file in files:
        print(file)


def _print(report: Mapping[str, Any]) -> None:
    """Print the report as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"Scaling on {report['device']}", title_justify="left")
    for column in ("", "steps/s", "step of all lanes", "nearest bound", "distance"):
        table.add_column(column, justify="left" if column in ("", "nearest bound") else "right")

    def add(
        title: str,
        points: Iterable[Mapping[str, Any]],
        describe: Callable[[Mapping[str, Any]], str],
    ) -> None:
        for point in points:
            step = f"{1e6 * point['seconds_per_step']:,.0f} µs"
            speed = _thousands(point["steps_per_second"])
            table.add_row(
                f"{title}, {describe(point)}",
                speed,
                step,
                point["bound"],
                f"{point['distance']:.1f}×",
            )
        table.add_section()

    for name, points in report["lanes"].items():
        add(name, points, lambda point: f"{point['lanes']} lanes")
    add("pool, 160 lanes", report["rows"], lambda point: f"{point['rows']:,} rows")
    console.print(table)
    for point in report["workers"]:
        speed = _thousands(point["steps_per_second"])
        console.print(f"{_processes_in_words(point['workers'])}: {speed} steps/s together")
    for point in report["memory"]:
        pool_bytes = point["pool_bytes"]
        views = f"both views {pool_bytes / 2**20:,.0f} MiB"
        share = point["above_empty_bytes"] / pool_bytes
        line = f"{point['rows']:,} rows × {DIM}, {views}: peak {share:.2f}×"
        if "device_above_empty_bytes" in point:
            share_of_device = point["device_above_empty_bytes"] / pool_bytes
            line += f", on the device {share_of_device:.2f}×"
        console.print(f"{line} of that above an empty run")
