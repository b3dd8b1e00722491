"""Tasks for the workers of a cluster, which load this module when they start."""

import os
import signal
import time
from pathlib import Path

from ital import tasks
from tests.worlds import small_classes

LOG = "ITAL_TEST_WORLDS"  # names a file: a line for every world that a worker makes


def task(name, world, **options):
    made = small_classes(**options)
    return made._replace(name=name, world=lambda seed: world(seed) or made.world(seed))


def counted(seed):
    if os.environ.get(LOG):
        with Path(os.environ[LOG]).open("a") as log:
            log.write(f"{seed} {os.getpid()}\n")


def slow(seed):
    counted(seed)
    time.sleep(0.2)


def faulty(seed):
    """Seed 3 raises; seed 4 kills its process."""
    counted(seed)
    if seed == 3:
        raise RuntimeError("no world of this number")
    if seed == 4:
        os.kill(os.getpid(), signal.SIGKILL)


def register():
    tasks.REGISTRY["small"] = lambda **options: task("small", counted, **options)
    tasks.REGISTRY["slow"] = lambda **options: task("slow", slow, **options)
    tasks.REGISTRY["faulty"] = lambda **options: task("faulty", faulty, **options)


def dask_setup(worker):
    """Called by Dask in every worker."""
    register()
