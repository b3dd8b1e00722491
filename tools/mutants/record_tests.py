"""A pytest plugin for the map of who runs what: tells coverage.py which test runs, and writes how
each ended.

``covering.py`` loads it. Coverage is started by its own ``.pth`` file in every process, also in
those that tests start; those learn the test's name from the environment.
"""

import json
import os
import resource
import sys
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

NAME = "MUTANTS_TEST"  # environment variable: the test that runs
# Environment variable: the file for one line of JSON per test, and per file of tests.
ENDED = "MUTANTS_ENDED"

_failed: set[str] = set()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator:
    """Name the test as the context of all lines that run; write its seconds of CPU, which other
    work leaves alone.
    """
    os.environ[NAME] = item.nodeid
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)
    began = _cpu_seconds()
    outcome = yield
    if outcome.excinfo is not None:  # interrupted
        return
    seconds = round(_cpu_seconds() - began, 3)
    if measuring is not None:
        measuring.switch_context("")
    _write({"test": item.nodeid, "passed": item.nodeid not in _failed, "seconds": seconds})
    if nextitem is None or nextitem.path != item.path:
        _end_file(item)


def _end_file(item: pytest.Item) -> None:
    _write({"file": item.nodeid.partition("::")[0]})
    # A program that a test of another file has traced would not be traced again: its lines would
    # not be seen.
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


def _write(record: dict) -> None:
    with Path(os.environ[ENDED]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def _cpu_seconds() -> float:
    """What this process and those that it waited for have computed so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember tests of which a part does not pass; those that are skipped guard nothing."""
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Save what was measured: a worker of xdist may end without the usual goodbye."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.save()
