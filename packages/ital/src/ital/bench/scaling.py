"""``ital bench --scaling``: speed by number of lanes, pool rows and processes; memory; and what limits each."""

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
SEEDS, DIM = 20, 100
LONGEST = 3.0  # seconds; a point whose 20 steps take longer is skipped
ENOUGH = 0.4  # seconds of timing per point
WORLDS = 32  # different worlds; further seeds reuse them


def measure(say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Measure all series: speed by number of lanes, rows and processes; and memory.

    Args:
        say: Called with one line about what is being measured.

    Returns:
        The limits of the machine and, for each series, its points with the limit that applies to each.
    """
    busy = [os.getloadavg()[0]]
    say("limits of the machine")
    limits = _limits.measure_limits()
    report: dict[str, Any] = {
        "device": named(jax.devices()[:1]),
        "jax": jax.__version__,
        "every": EVERY,
        "limits": {
            **limits._asdict(),
            "copy": {str(size): rate for size, rate in limits.copy.items()},
        },
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
        say(f"{workers} process{'es' if workers > 1 else ''}")
        report["workers"].append({"workers": workers, "steps_per_second": _together(workers)})
    say("memory")
    empty = memory(100)
    report["memory"] = [_above(empty, memory(rows)) for rows in MEMORY_ROWS]
    report["load"] = [
        *busy,
        os.getloadavg()[0],
    ]  # a load beyond this benchmark's own makes the figures doubtful
    return report


def _against_lanes(
    name: str, task: Task, limits: _limits.Limits, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """One series; it stops where the next point would take too long."""
    task = _few_worlds(task)
    points: list[dict[str, Any]] = []
    for lanes in LANES:
        if (
            points
            and EVERY * points[-1]["seconds_per_step"] * lanes / points[-1]["lanes"] > LONGEST
        ):
            break
        say(f"{name}, {lanes} lanes")
        points.append(_point(task, lanes, limits, points[0] if points else None))
    return points


def _few_worlds(task: Task) -> Task:
    """The same task with few different worlds: drawing thousands takes longer than teaching on them."""
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
    x, z = (rng.random((rows, DIM), dtype=np.float32) for _ in range(2))
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
    """Speed at a number of lanes, and its bounds; the cost of one lane's step is taken from the ``first`` point."""
    session = endless(task, lanes)
    lanes = session.numbers.lanes.lr.size  # including the lanes that pad the program
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
    """Seconds of one step of all lanes, after compilation: the shortest of a few blocks."""
    session.advance(1)
    intervals, best, total = 1, np.inf, 0.0
    while total < ENOUGH:
        began = time.perf_counter()
        session.advance(intervals)
        took = time.perf_counter() - began
        best, total = min(best, took / intervals), total + took
        intervals = int(np.clip(ENOUGH / 3 / took * intervals, 1, BLOCK))
    return best / EVERY


def _start(*arguments: str) -> "subprocess.Popen[str]":
    """Start a separate process on the same platform; on a GPU it takes only the memory that it needs.

    Each process compiles its own program: one loaded from disk would make its peak memory look smaller.
    """
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
    """Steps per second of several processes together, each teaching the same 160 lanes of regression."""
    children = [_start("worker") for _ in range(workers)]
    try:
        for child in children:
            assert child.stdout is not None
            if child.stdout.readline() != "ready\n":
                raise InputError(
                    f"one of {workers} parallel processes failed: check that there is enough memory"
                )
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
    child = _start("memory", str(rows))
    out, _ = child.communicate()
    if child.returncode:
        raise InputError(
            f"the process that measures memory with {rows} rows failed: check that there is enough memory"
        )
    return json.loads(out)


def _above(empty: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, Any]:
    """The memory that a pool needs beyond an almost empty one."""
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
    """The report as tables."""
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
        plural = "es" if point["workers"] > 1 else ""
        console.print(
            f"{point['workers']} process{plural}: {_thousands(point['steps_per_second'])} steps/s together"
        )
    for point in report["memory"]:
        share = point["above_empty_bytes"] / point["pool_bytes"]
        line = f"{point['rows']:,} rows × {DIM}, both views {point['pool_bytes'] / 2**20:,.0f} MiB: peak {share:.2f}×"
        if "device_above_empty_bytes" in point:
            line += (
                f", on the device {point['device_above_empty_bytes'] / point['pool_bytes']:.2f}×"
            )
        console.print(f"{line} of that above an empty run")
