"""The tool that breaks the sources (``make mutants``), tried on a package of one module; its lists
fit the sources.
"""

import ast
from pathlib import Path

import pytest
from tools.mutants import __main__ as mutants
from tools.mutants import lists, mutations, running, sampling

ROOT = Path(__file__).parents[1]

TOY = "packages/toy/src/toy/__init__.py"
SOURCE = '''\
"""A toy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def longest(lengths: "Sequence[int]") -> int:
    """The longest of 1 + 1."""
    assert lengths[0] > 0, "nothing is shorter than 0"
    return max(lengths)


def far(metres):
    return metres > 10
'''
TESTS = """\
import subprocess
import sys

import toy


def test_longest():
    assert toy.longest([1, 3]) == 3


def test_far_in_a_process_of_its_own():
    code = "import toy; assert toy.far(12) and not toy.far(2)"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A tree with a package that has two tests, and pytest without plugins: it starts faster."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, text in {TOY: SOURCE, "packages/toy/tests/test_toy.py": TESTS}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (tmp_path / "tests").mkdir()
    return tmp_path


def judge(toy, *pairs):
    """List errors as equivalent."""
    rows = ", ".join(f'["{before}", "{after}"]' for before, after in pairs)
    (toy / lists.EQUIVALENT).write_text(f'["Nobody walks 10 m"]\n"{TOY}" = [{rows}]\n')


def test_the_list_fits_the_sources():
    entries = lists.read(ROOT, lists.EQUIVALENT)
    assert lists.stale(ROOT, entries) == []
    for entry in entries:
        ast.parse(entry.broken((ROOT / entry.file).read_text("utf-8")))
    assert len({entry[:3] for entry in entries}) == len(entries)


def test_only_what_runs_is_broken():
    found = {(one.before, one.after) for one in mutations.mutations_of(TOY, SOURCE)}
    assert found == {("max(lengths)", "min(lengths)"), ("> 10", ">= 10"), ("10", "11"), ("10", "9")}


def test_survivors_are_listed_until_a_test_notices(toy, capsys):
    command = ["--root", str(toy), "--workers", "1", "--fail-under", "100"]
    assert mutants.main(command) == 1
    said = capsys.readouterr().out
    assert f"survived: {TOY}:16" in said
    assert "-    return metres > 10" in said
    assert "2 tests: packages/toy/tests/test_toy.py::test_far_in_a_process_of_its_own" in said
    assert said.splitlines()[-1].split() == ["all", "1", "0", "1", "50", "%"]

    tests = toy / "packages" / "toy" / "tests" / "test_toy.py"
    tests.write_text(
        TESTS + "\n\ndef test_far():\n    assert [toy.far(m) for m in (10, 11)] == [False, True]\n"
    )
    assert mutants.main(command) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "2", "0", "0", "100", "%"]


def test_a_seed_draws_one_sample_and_edits_elsewhere_leave_it(toy):
    def lines(seed):
        drawn = sampling.sample(toy, toy / "cache", 5, seed)
        return [mutants.difference(mutant)[1:] for mutant in drawn]

    assert lines(0) == lines(0)
    assert len({str(lines(seed)) for seed in range(8)}) > 1
    assert [len(lines(seed)) for seed in range(3)] == [2, 2, 2]  # one for each line
    before = lines(0)
    (toy / TOY).write_text(f"import os\n{SOURCE}")
    assert lines(0) == before


def test_judged_survivors_are_not_drawn_and_stale_ones_are_refused(toy, capsys):
    judge(toy, ("metres > 10", "metres >= 10"), ("> 10", "> 11"), ("> 10", "> 9"))
    assert [mutant.kind for mutant in sampling.sample(toy, toy / "cache", 5, 0)] == [
        "mistaken_function"
    ]
    judge(toy, ("metres > 12", "metres >= 12"))
    assert mutants.main(["--root", str(toy)]) == 2
    assert f"{TOY}: 'metres > 12' occurs 0 times, not once" in capsys.readouterr().err


def test_what_hangs_is_ended_with_what_it_started(toy):
    child = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    text = f"import subprocess, sys\ndef test():\n    {child}.wait()\n"
    (toy / "test_hangs.py").write_text(text)
    assert running.run(["test_hangs.py"], toy, toy, 1.0)[0] is None
