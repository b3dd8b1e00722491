"""Bad input on the command line and in Python: one line that helps, status 2 or InputError, and
nothing written.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.newcomer import bad_inputs
from tests.typed import check_endless, check_refused

GRID = ["--lr", "0.1", "--beta", "1"]
COMMANDS = [
    (["run", "regression", "--out", ""], "--out has no value"),
    (["run", "regression", "--out="], "--out has no value"),
    (["run", "regression", "--methods", "imt,,ital"], "'imt,,ital' has an empty item"),
    (["run", "regression", "--methods", "imt,"], "has an empty item"),
    (["run", "regression", "--methods", ""], "--methods has no value"),
    (["run", "regression", "--teacher", ""], "--teacher has no value"),
    (["run", "regression", "--init", ""], "--init has no value"),
    (["run", ""], "unknown task ''"),
    (["run", "regression", "--seeds", "1000000000000"], "of memory, but"),
    (["run", "regression", "--seeds", "100000000000000000000"], "of memory, but"),
    (["run", "regression", "--seeds", "two"], "--seeds"),
    (["run", "regression", "--seeds", "2.5"], "--seeds"),
    (["run", "regression", "--seeds=-3"], "at least one seed"),
    (["run", "regression", "--first-seed=-1"], "seeds must lie in"),
    (["run", "regression", "--first-seed", "3000000000"], "seeds must lie in"),
    (["run", "regression", "--batch-size", "2000000000", "--methods", "imt"], "of memory, but"),
    (["run", "regression", "--batch-size", "0"], "batch_size must be at least 1"),
    (["run", "regression", "--steps", "2000000000", "--eval-every", "1"], "of memory, but"),
    (["run", "regression", "--steps", "1e3"], "--steps"),
    (["run", "regression", "--eval-every", "0"], "eval_every must be at least 1"),
    (["run", "regression", "--lr", "inf"], "positive and finite"),
    (["run", "regression", "--lr", "0,1"], "--lr"),
    (["run", "regression", "--beta", "1,2"], "finite number or 'auto'"),
    (["run", "regression", "--init", "normal:-1"], "start 'normal:-1'"),
    (["run", "regression", "--label-noise", "nan"], "probability"),
    (["run", "regression", "--teacher", "boltzmann:hot"], "hot"),
    (["run", "regression", "--form", "length:0"], "length"),
    (["run", "regression", "--step", "length:0"], "length"),
    (["run", "regression", "--step=length:0"], "length"),
    (["run", "regression", "--workers=-1"], "workers"),
    (["run", "regression", "--seeds-per-cell", "0"], "at least 1"),
    (["run", "regression", "--resource", "GPU"], "--workers or --scheduler"),
    (["run", "regression", "extra"], "extra"),
    (["sweep", "regression", "--lr", "0.1,", "--beta", "1"], "has an empty item"),
    (["sweep", "regression", "--lr", "0.1", "--beta", ""], "--beta has no value"),
    (["sweep", "regression", *GRID, "--methods", "imt,,ital"], "has an empty item"),
    (["sweep", "regression", *GRID, "--seeds", "1000000000000"], "of memory, but"),
    (["sweep", "regression", *GRID, "--points-per-cell", "0"], "at least 1"),
    (["bench", "--out", "x"], "--out needs --scaling"),
]


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=lambda value: " ".join(value)[:40])
def test_bad_commands_are_refused_in_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    check_refused(capsys, tmp_path, words, message)


READERS = [
    ["run", "irl", "--map", "FILE"],
    ["run", "--data", "FILE.csv", "--label", "y"],
    ["run", "--data", "FILE.parquet", "--label", "y"],
]


@pytest.mark.parametrize("kind", ["device", "folder"])
@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_what_has_no_end_is_not_read(words, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    check_endless(capsys, tmp_path, words, kind)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The messages for a user without a type checker (the tests' own would raise first); the
    folder stays empty.
    """
    folder = tmp_path_factory.mktemp("user")
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    command = [sys.executable, "-m", "tests.newcomer.bad_inputs"]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder, env=environment
    )
    assert not list(folder.iterdir())
    return json.loads(ran.stdout)


@pytest.mark.parametrize("case", bad_inputs.CASES)
def test_bad_calls_are_refused_in_one_line(said, case):
    assert said[case].startswith("InputError: ")
    assert re.search(bad_inputs.CASES[case][1], said[case])
    assert "\n" not in said[case]
