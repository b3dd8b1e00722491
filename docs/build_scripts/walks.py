"""Counts the files that a walk of architecture.md visits.

Run it with ``python docs/build_scripts/walks.py run|click|reproduce``.

A walk is really taken: every file of ours in which a function runs is printed in the order of its
first call. What runs only because a module is imported does not count. The walks are

    run        ``ital run irl-dense``, from the command to summary.csv and the figures
    click      a participant's click, from the arrow to the database and back to the page;
               needs ``ital-study[dev]``
    reproduce  ``ital reproduce regression --quick``, from the command to index.html

Of a page, the scripts count in which the browser saw a named function run.
"""

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGES = Path(__file__).parents[2] / "packages"


class Trace:
    """The files of our packages in which functions run while ``on`` is true, in the order of their
    first calls.

    Threads count if they are started after the trace is made.
    """

    def __init__(self) -> None:
        self.on = False
        self.files: dict[str, str] = {}  # file, then the function that was called first
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.on or event != "call":
            return
        code = frame.f_code
        if code.co_filename in self.files or not code.co_filename.startswith(str(PACKAGES)):
            return
        # A function; the body of a class or module has no locals.
        if code.co_flags & 0x2 and not _importing(frame):
            self.files[code.co_filename] = code.co_qualname

    def stop(self) -> list[tuple[str, str]]:
        """Ends the trace; returns the files, relative to packages/PACKAGE/src, with their first
        functions.
        """
        self.on = False
        sys.setprofile(None)
        threading.setprofile(None)
        return [(file.partition("/src/")[2], first) for file, first in self.files.items()]


def _importing(frame: FrameType | None) -> bool:
    """Whether a call happens while a module is imported, such as that of a decorator."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(str(PACKAGES)):
            return True
        frame = frame.f_back
    return False


def command(*arguments: str) -> list[tuple[str, str]]:
    """Runs ``ital`` with some arguments in an empty folder."""
    from ital.cli import main

    # A compiled program from the cache would be used without tracing its Python.
    os.environ["ITAL_CACHE"] = "0"
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        trace.on = True
        try:
            main(list(arguments))
        except SystemExit as ended:
            if ended.code:
                raise
        finally:
            visited = trace.stop()
            os.chdir("/")
    return visited


def run() -> list[tuple[str, str]]:
    """From a mini-batch to summary.csv."""
    return command("run", "irl-dense", "--methods", "imt,ital", "--seeds", "2", "--steps", "20")


def reproduce() -> list[tuple[str, str]]:
    """From ``ital reproduce`` to a page."""
    return command("reproduce", "regression", "--quick", "--workers", "0")


def click() -> list[tuple[str, str]]:
    """From a click to the database and back, in a browser."""
    import clicks

    return clicks.walk(Trace)


WALKS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "run": run,
    "click": click,
    "reproduce": reproduce,
}


def main(name: str) -> None:
    """Takes one walk: a second one in the same process would find much in caches, where nothing
    runs.
    """
    visited = WALKS[name]()
    print(f"{name}: {len(visited)} files")
    for file, first in visited:
        print(f"  {file:48} {first}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in WALKS:
        sys.exit(f"usage: python docs/build_scripts/walks.py {'|'.join(WALKS)}")
    main(sys.argv[1])
