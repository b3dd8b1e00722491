"""Set-up of a local worker; Dask calls it when the worker starts."""

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C to the command that started the worker, and import what the first cell needs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import ital.experiments  # noqa: F401
