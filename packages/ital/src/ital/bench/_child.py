"""A separate process for one measurement: ``python -m ital.bench._child memory ROWS`` or ``worker``.

``memory`` prints its peak memory after a few steps on a shared pool. ``worker`` compiles, prints ``ready``, reads a
number of seconds from its input, teaches for that long, and prints its speed.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import jax

from ital import tasks
from ital.bench import scaling

LANES = 8 * scaling.SEEDS


def memory(rows: int) -> dict[str, Any]:
    """Teach 160 lanes for a few steps on one pool of ``rows`` rows, both views float32; return the peak memory."""
    session = scaling.endless(scaling.pool(rows), LANES)
    session.advance(1)
    stats = jax.devices()[0].memory_stats() or {}
    views = session.numbers.worlds.learner.x.x, session.numbers.worlds.teacher.examples.x.x
    return {
        "rows": rows,
        "pool_bytes": sum(view.nbytes for view in views),
        "peak_bytes": peak_resident(),
        "device_peak_bytes": stats.get("peak_bytes_in_use"),
    }


def peak_resident() -> int:
    """Peak memory of this process, without that of its parent (getrusage starts from the parent's)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )


def worker() -> dict[str, Any]:
    """Teach regression for the number of seconds read from the input; return the speed."""
    session = scaling.endless(tasks.regression(), LANES)
    session.advance(1)
    print("ready", flush=True)
    seconds = float(sys.stdin.readline())
    began, first = time.perf_counter(), session.step
    while time.perf_counter() - began < seconds:
        session.advance(8)
    return {"steps_per_second": (session.step - first) * LANES / (time.perf_counter() - began)}


if __name__ == "__main__":
    print(json.dumps(memory(int(sys.argv[2])) if sys.argv[1] == "memory" else worker()))
