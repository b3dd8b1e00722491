"""Which tests run a line: recorded once with coverage.py, then only for files of tests that
changed.

Each recording is a layer, a folder with coverage's data, the sources as they were, and one line of
JSON per test. A test's newest layer counts. Where a source has changed since, its lines are found
again by comparing the texts.
"""

import contextlib
import difflib
import functools
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import coverage
from tools.mutants import record_tests, trees

# Each takes many seconds, and the server's own tests run the same pages.
SKIPPED = "packages/ital-study/tests/browser"

RC = """\
[run]
source =
    {sources}
data_file = {data}
parallel = true
core = ctrace
patch = _exit
context = ${{{name}-}}
disable_warnings =
    no-data-collected, module-not-imported, module-not-measured, already-imported,
    trace-changed
"""


class Test(NamedTuple):
    """A test that passed: its name, its seconds, and the number of the layer that has its lines."""

    name: str
    seconds: float
    layer: int

    @property
    def file(self) -> str:
        """The file of the test."""
        return file_of(self.name)


def file_of(test: str) -> str:
    """The file in a test's name."""
    return test.partition("::")[0]


def digest(text: bytes) -> str:
    """A short name of a text."""
    return hashlib.sha256(text).hexdigest()[:16]


def files_of_tests(root: Path) -> dict[str, str]:
    """Every file of tests, by its path from the root, with its digest."""
    found = [path for folder in trees.tests_of(root) for path in sorted(folder.rglob("test_*.py"))]
    names = {path.relative_to(root).as_posix(): path for path in found}
    return {
        name: digest(path.read_bytes())
        for name, path in names.items()
        if not name.startswith(SKIPPED)
    }


class Layer:
    """One recording."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """The files of tests it ran, with their digests then."""
        return json.loads((self.folder / "files.json").read_text("utf-8"))

    @functools.cached_property
    def ended(self) -> list[dict]:
        """One record per test that ended."""
        return [record for record in _records(self.folder / "tests.jsonl") if "test" in record]

    @functools.cached_property
    def _data(self) -> coverage.CoverageData:
        data = coverage.CoverageData(str(self.folder / "coverage"))
        data.read()
        return data

    def tests_of(self, file: str, line: int, text: str) -> Iterator[str]:
        """The tests that ran a line of a source file whose text is now ``text``; all that ran the
        file for line 0.
        """
        stored = self.folder / "sources" / file
        if not stored.exists():
            return
        ends_so = [path for path in self._data.measured_files() if path.endswith("/" + file)]
        if not ends_so:
            return
        contexts = _contexts(self._data, ends_so[0])
        lines = [_line_then(stored.read_text("utf-8"), text, line)] if line else [*contexts]
        for one in lines:
            yield from contexts.get(one, ())


@functools.cache
def _contexts(data: coverage.CoverageData, path: str) -> dict[int, list[str]]:
    return data.contexts_by_lineno(path)


@functools.cache
def _moved(then: str, now: str) -> dict[int, int]:
    """For each line of a text that was there then: its number then, both from 1."""
    matcher = difflib.SequenceMatcher(None, then.splitlines(), now.splitlines(), autojunk=False)
    blocks = matcher.get_matching_blocks()
    return {b.b + i + 1: b.a + i + 1 for b in blocks for i in range(b.size)}


def _line_then(then: str, now: str, line: int) -> int | None:
    return line if then == now else _moved(then, now).get(line)


def _records(file: Path) -> list[dict]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


class Map:
    """All recordings of a tree of sources and tests."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self._read()

    def _read(self) -> None:
        found = sorted(
            self.folder.glob("layer-*"), key=lambda path: int(path.name.partition("-")[2])
        )
        self.layers = [Layer(path) for path in found if (path / "files.json").exists()]
        self.now = files_of_tests(self.root)
        newest = {}
        for number, layer in enumerate(self.layers):
            for record in layer.ended:
                file = file_of(record["test"])
                if layer.digests.get(file) == self.now.get(file, ""):
                    newest[record["test"]] = (number, record)
        self.tests = {
            name: Test(name, record["seconds"], number)
            for name, (number, record) in newest.items()
            if record["passed"]
        }

    def missing(self) -> list[str]:
        """The files of tests that no recording has as they are now."""
        known = {(file, name) for layer in self.layers for file, name in layer.digests.items()}
        return [file for file, name in self.now.items() if (file, name) not in known]

    def record(self, workers: int, scratch: Path) -> None:
        """Run the files of tests that are missing, measuring who runs what."""
        files = self.missing()
        if not files:
            return
        tree = trees.copy_tree(self.root, scratch)
        taken = [int(path.name.partition("-")[2]) for path in self.folder.glob("layer-*")]
        layer = self.folder / f"layer-{max(taken, default=0) + 1}"
        (layer / "data").mkdir(parents=True)
        rc = layer / "coveragerc"
        data = layer / "data" / "part"
        sources = trees.sources_of(tree)
        for source in sources:
            kept = layer / "sources" / source.relative_to(tree)
            shutil.copytree(source, kept, ignore=shutil.ignore_patterns("__pycache__"))
        measured = "\n    ".join(map(str, sources))
        rc.write_text(RC.format(sources=measured, data=data, name=record_tests.NAME), "utf-8")
        variables = {
            **trees.environment(self.root, tree),
            "COVERAGE_PROCESS_START": str(rc),
            record_tests.ENDED: str(layer / "tests.jsonl"),
        }
        shared = ("-n", str(workers), "--dist", "loadfile") if workers > 1 else ()
        command = trees.pytest_command("-p", "record_tests", *shared, *files)
        with subprocess.Popen(command, cwd=tree, env=variables) as process:
            # Pytest hears it too, and saves what it has.
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
            status = process.wait()
        ended = {record["file"] for record in _records(layer / "tests.jsonl") if "file" in record}
        if not ended:
            raise SystemExit(f"the tests could not be recorded: pytest ended with {status}")
        whole = coverage.Coverage(data_file=str(layer / "coverage"), config_file=False)
        whole.combine([str(path) for path in (layer / "data").iterdir()])
        whole.save()
        digests = {file: self.now[file] for file in files if file in ended}
        (layer / "files.json").write_text(json.dumps(digests), "utf-8")
        if status not in {0, 1}:
            raise KeyboardInterrupt
        self._read()

    def recorded(self, file: str, line: int, text: str) -> set[Test]:
        """The tests that ran a line of a source file; for line 0, those that ran any line."""
        names = {
            (name, number)
            for number, layer in enumerate(self.layers)
            for name in layer.tests_of(file, line, text)
        }
        known = (self.tests.get(name) for name, number in names if name)
        return {test for test in known if test is not None and (test.name, test.layer) in names}

    def of_files(self, files: Iterable[str]) -> set[Test]:
        """All tests of some files."""
        wanted = {*files}
        return {test for test in self.tests.values() if test.file in wanted}
