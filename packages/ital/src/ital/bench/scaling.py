"""``ital bench --scaling``: speed by lanes, rows and processes; memory; what limits each."""

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital import losses, tasks
from ital.bench import _cases, _limits, _thousands
from ital.bench._cases import EVERY
from ital.errors import InputError
from ital.tasks import Task
from ital.teaching import BLOCK, Session
from ital.tools.devices import named
from ital.tools.files import check_writable, write

if TYPE_CHECKING:
    from rich.table import Table

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
    load_before, *_ = os.getloadavg()
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
    report["rows"] = [_against_rows(rows, limits, say) for rows in ROWS]
    report["workers"] = [_against_workers(workers, say) for workers in WORKERS]
    say("memory")
    empty = memory(100)
    report["memory"] = [_above(empty, memory(rows)) for rows in MEMORY_ROWS]
    # A load beyond this benchmark's own makes the figures doubtful.
    load_after, *_ = os.getloadavg()
    report["load"] = [load_before, load_after]
    return report


def _against_rows(
    rows: int,
    limits: _limits.Limits,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure the speed on a pool of that many rows."""
    say(f"a pool of {rows:,} rows")
    point = _point(pool(rows), 8 * SEEDS, limits)
    return {"rows": rows, **point}


def _against_workers(workers: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure the speed of that many processes together."""
    say(_processes_in_words(workers))
    return {"workers": workers, "steps_per_second": _together(workers)}


def _processes_in_words(number: int) -> str:
    if number == 1:
        return "1 process"
    return f"{number} processes"


def _against_lanes(
    name: str, task: Task, limits: _limits.Limits, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure one series; it stops where the next point would take too long."""
    task = _few_worlds(task)
    points: list[dict[str, Any]] = []
    first = None
    for lanes in LANES:
        if points and _expected_seconds(points[-1], lanes) > LONGEST:
            break
        say(f"{name}, {lanes} lanes")
        points.append(_point(task, lanes, limits, first))
        first = points[0]
    return points


def _expected_seconds(last: Mapping[str, Any], lanes: int) -> float:
    """Return seconds of the steps between two measurements, from the last point of a series."""
    # A step takes at most as much longer as there are more lanes.
    step = last["seconds_per_step"] * lanes / last["lanes"]
    return EVERY * step


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
    slopes = target[:, :-1]
    bias = target[:, -1]
    y = x @ slopes.T + bias
    data = tasks.Pool(
        learner_x=x,
        teacher_x=z,
        labels=y,
        teacher_target=target,
        learner_target=target,
        test_x=x[:100].copy(),
        test_labels=y[:100].copy(),
    )
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
    task: Task,
    lanes: int,
    limits: _limits.Limits,
    first: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure the speed at a number of lanes, and its bounds.

    The cost of one lane's step is taken from the ``first`` point of the series, if there is one.
    """
    session = endless(task, lanes)
    # With the lanes that pad the program.
    lanes = session.numbers.lanes.lr.size
    if first:
        cost = _limits.Cost(**first["cost"])
    else:
        cost = _limits.cost(session, EVERY)
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
        fitting = ENOUGH / 3 / took * intervals
        intervals = int(np.clip(fitting, 1, BLOCK))
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
        command,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
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
        return sum(_reported_speed(child) for child in children)
    finally:
        for child in children:
            child.kill()
            child.wait()


def _reported_speed(child: "subprocess.Popen[str]") -> float:
    """Wait for the end of a process; return the steps per second that it prints."""
    out, _ = child.communicate()
    return json.loads(out)["steps_per_second"]


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
    above = dict(full)
    above["above_empty_bytes"] = full["peak_bytes"] - empty["peak_bytes"]
    # A CPU reports no memory of a device.
    on_device = full["device_peak_bytes"]
    if on_device is not None:
        above["device_above_empty_bytes"] = on_device - empty["device_peak_bytes"]
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
        _make_folder(out)
    report = measure(lambda line: print(line, file=sys.stderr))
    text = json.dumps(report, indent=1)
    files: list[Path] = []
    if out is not None:
        files = _write_files(out, text, report)
    if as_json:
        print(text)
        return
    _print(report)
    for file in files:
        print(file)


def _make_folder(out: Path) -> None:
    """Make the folder for the files before the measurements: a fault there would lose them."""
    check_writable(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot write to {out}: {reason}") from None


def _write_files(out: Path, text: str, report: Mapping[str, Any]) -> list[Path]:
    """Write the report and its figure; return the files."""
    from ital import figures

    data = out / "scaling.json"
    write(data, text.encode())
    figure = figures.plot_scaling(report)
    return [data, *figures.save(figure, out / "scaling")]


def _print(report: Mapping[str, Any]) -> None:
    """Print the report as tables."""
    from rich.console import Console

    console = Console()
    console.print(_table_of_speeds(report))
    for point in report["workers"]:
        processes = _processes_in_words(point["workers"])
        speed = _thousands(point["steps_per_second"])
        console.print(f"{processes}: {speed} steps/s together")
    for point in report["memory"]:
        console.print(_memory_in_words(point))


def _table_of_speeds(report: Mapping[str, Any]) -> "Table":
    """Return the table of the series by lanes and by rows, a section for each."""
    from rich.table import Table

    table = Table(title=f"Scaling on {report['device']}", title_justify="left")
    table.add_column("")
    table.add_column("steps/s", justify="right")
    table.add_column("step of all lanes", justify="right")
    table.add_column("nearest bound")
    table.add_column("distance", justify="right")
    for name, points in report["lanes"].items():
        for point in points:
            table.add_row(f"{name}, {point['lanes']} lanes", *_cells_of(point))
        table.add_section()
    for point in report["rows"]:
        table.add_row(f"pool, 160 lanes, {point['rows']:,} rows", *_cells_of(point))
    return table


def _cells_of(point: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return speed, time of a step, nearest bound and distance from it, in words."""
    microseconds = 1e6 * point["seconds_per_step"]
    return (
        _thousands(point["steps_per_second"]),
        f"{microseconds:,.0f} µs",
        point["bound"],
        f"{point['distance']:.1f}×",
    )


def _memory_in_words(point: Mapping[str, Any]) -> str:
    """Say how much memory a pool needs, as a multiple of its own bytes."""
    pool_bytes = point["pool_bytes"]
    mebibytes = pool_bytes / 2**20
    share = point["above_empty_bytes"] / pool_bytes
    size = f"{point['rows']:,} rows × {DIM}, both views {mebibytes:,.0f} MiB"
    line = f"{size}: peak {share:.2f}×"
    if "device_above_empty_bytes" in point:
        share_of_device = point["device_above_empty_bytes"] / pool_bytes
        line += f", on the device {share_of_device:.2f}×"
    return f"{line} of that above an empty run"
