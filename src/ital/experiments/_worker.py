"""What a worker of this machine does when it starts; Dask calls it."""

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leaves Ctrl-C to the command that started the worker, and makes ready for the first cell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import ital.experiments  # noqa: F401
