"""One mutant against the tests that should notice it."""

import ast
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tools.mutants import trees
from tools.mutants.covering import Map, Test

# Seconds of tests per mutant, as recorded. A mutant that they do not notice has survived.
BUDGET = 60.0
MIRROR = 5  # tests of the mutated package count as this many times quicker
KILLED = "killed"
SURVIVED = "survived"
HANGS = "timeout"


class Mutant(NamedTuple):
    """A broken source file: its path from the root, the line, the kind of error, and both texts."""

    file: str
    line: int
    kind: str
    text: str
    broken: str


class Verdict(NamedTuple):
    """What became of a mutant, what noticed it, and the tests that ran."""

    outcome: str
    by: str
    tests: list[str]


def _in_function(text: str, line: int) -> bool:
    """Whether a line belongs to the body of a function: other lines run when the module is
    imported.
    """
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS)]
    return any(node.body[0].lineno <= line <= (node.end_lineno or 0) for node in functions)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def mirrors(test: str, file: str) -> bool:
    """Whether a file of tests belongs to the package or module of a source file."""
    distribution = file.partition("src/")[0]
    part = trees.package_of(file).rpartition("/")[2].removesuffix(".py").lstrip("_")
    stem = PurePosixPath(file).stem.lstrip("_")
    place = PurePosixPath(test)
    named = part in place.parts or place.stem in {f"test_{part}", f"test_{stem}"}
    return named and test.startswith(distribution)


def tests_for(covered: Map, file: str, line: int, text: str, budget: float) -> list[Test]:
    """The tests for a line, those first that ran it, quick ones first, as many as fit the budget.

    A program that a test has traced is not traced again for the next, so the other tests of the
    same files follow.
    """
    anywhere = covered.recorded(file, 0, text)
    exact = covered.recorded(file, line, text) if _in_function(text, line) else anywhere
    near = {test for test in anywhere if test.file in {one.file for one in exact}}
    mirrored = {test for test in covered.tests.values() if mirrors(test.file, file)}
    chosen: list[Test] = []
    left = budget
    for group in (exact, near - exact, mirrored - near - exact):
        for test in sorted(group, key=lambda test: (_cost(test, file), test.name)):
            if test.seconds <= left or not chosen:
                chosen.append(test)
                left -= test.seconds
    return chosen


def _cost(test: Test, file: str) -> float:
    return test.seconds / (MIRROR if mirrors(test.file, file) else 1)


def try_out(mutant: Mutant, tests: Sequence[Test], root: Path, tree: Path) -> Verdict:
    """Break a tree's file, run the tests up to the first that fails, and mend it again."""
    file = tree / mutant.file
    _write(file, mutant.broken)
    try:
        return _verdict(
            [test.name for test in tests], sum(test.seconds for test in tests), root, tree
        )
    finally:
        _write(file, mutant.text)


def _write(file: Path, text: str) -> None:
    """Write a source; old bytecode would fit a text as long from the same second."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()
    file.write_text(text, "utf-8")


def _verdict(tests: list[str], seconds: float, root: Path, tree: Path) -> Verdict:
    if not tests:
        return Verdict(SURVIVED, "no test runs it", [])
    limit = patience(seconds)
    status, output = run(tests, root, tree, limit, "-x")
    if status is None:
        return Verdict(HANGS, f"after {limit:.0f} s", tests)
    lost = _not_found(tests, output)
    if lost:  # the mutant changes the names of tests
        return _verdict([test for test in tests if test not in lost], seconds, root, tree)
    if status in {0, 5}:
        return Verdict(SURVIVED, "", tests)
    last = [line for line in output.splitlines() if line.strip()][-1:]
    return Verdict(KILLED, [*failed(tests, output), *last, f"pytest ended with {status}"][0], tests)


def patience(seconds: float) -> float:
    """Seconds after which tests hang that usually compute for ``seconds``: more where other work
    shares the CPU.
    """
    share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return (30 + 3 * seconds) * share


_alive: set[subprocess.Popen] = set()


def run(
    tests: Iterable[str], root: Path, tree: Path, seconds: float, *options: str
) -> tuple[int | None, str]:
    """Run tests in a tree; return pytest's exit status (None if it hangs) and what it said."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            trees.pytest_command("--tb=line", *options, *tests),
            cwd=tree,
            env={**trees.environment(root, tree), "HYPOTHESIS_PROFILE": "mutants"},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _alive.add(process)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
        said.seek(0)
        return status, said.read()


def _end(process: subprocess.Popen) -> None:
    """End what a run of tests has started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _alive.discard(process)


def end_all() -> None:
    """End all runs of tests, in whichever thread."""
    for process in [*_alive]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def failed(tests: Iterable[str], output: str) -> list[str]:
    """The tests that pytest's summary names as failed."""
    lines = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    named = [line.partition(" ")[2] for line in lines]
    return [test for test in sorted(tests, key=len, reverse=True) if _names(named, test)]


def _names(lines: list[str], test: str) -> bool:
    return any(line == test or line.startswith(f"{test} - ") for line in lines)


def _not_found(tests: Iterable[str], output: str) -> set[str]:
    lines = [line for line in output.splitlines() if line.startswith("ERROR: not found")]
    return {test for test in tests if any(line.endswith(test) for line in lines)}
