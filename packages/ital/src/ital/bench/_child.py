"""A process for one measurement: ``python -m ital.bench._child memory ROWS`` or ``worker``.

``memory`` prints its peak memory after a few steps on a shared pool. ``worker`` compiles, prints
``ready``, reads a number of seconds from its input, teaches for that long, and prints its speed.
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
    """Teach 160 lanes for a few steps on one pool; return the peak memory.

    The pool has ``rows`` rows; both views are float32.
    """
    session = scaling.endless(scaling.pool(rows), LANES)
    session.advance(1)
    # A CPU reports none.
    stats = jax.devices()[0].memory_stats() or {}
    worlds = session.numbers.worlds
    views = (worlds.learner.x.x, worlds.teacher.examples.x.x)
    return {
        "rows": rows,
        "pool_bytes": sum(view.nbytes for view in views),
        "peak_bytes": peak_resident(),
        "device_peak_bytes": stats.get("peak_bytes_in_use"),
    }


def peak_resident() -> int:
    """Return the peak memory of this process in bytes, without that of its parent."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    # Elsewhere getrusage must do, although it starts from the parent's peak.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def worker() -> dict[str, Any]:
    """Teach regression for the number of seconds read from the input; return the speed."""
    session = scaling.endless(tasks.regression(), LANES)
    session.advance(1)
    print("ready", flush=True)
    seconds = float(sys.stdin.readline())
    first = session.step
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        session.advance(8)
    took = time.perf_counter() - began
    return {"steps_per_second": (session.step - first) * LANES / took}


if __name__ == "__main__":
    measured = memory(int(sys.argv[2])) if sys.argv[1] == "memory" else worker()
    print(json.dumps(measured))
