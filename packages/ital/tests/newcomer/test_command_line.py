"""What a newcomer types, and what the command line answers."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import ital
from ital import learners
from ital.errors import InputError
from ital.tools import progress as _progress
from tests.typed import ital as type_in

ROOT = Path(__file__).parents[2]


def test_any_view_has_a_name(capsys):
    assert learners.make("ital-7").name == "ital-7"
    assert learners.make("ital-7").label == "ITAL 7"
    assert learners.make("ital-7").settings.view == 7
    assert learners.make("ital-7").rule is learners.make("ital-5").rule
    for name in ("ital-0", "ital--2", "ital-1.5", "ital-x"):
        with pytest.raises(InputError, match="unknown method"):
            learners.make(name)
    assert "ital-M" in type_in(capsys, "list")[1]


def test_a_view_is_at_most_the_mini_batch(capsys, tmp_path):
    task = ital.tasks.regression(dim=10, points=100)
    taught = ital.teach(task, learner=["ital", "ital-7", "ital-20"], steps=5, seeds=2)
    whole, part, all_of_it = taught.curves["distance"].values
    np.testing.assert_array_equal(whole, all_of_it)
    assert (whole != part).any()
    code, _, err = type_in(
        capsys, "run", "regression", "--methods", "ital-21", "--steps", "5", "--out", str(tmp_path)
    )
    assert code == 2
    assert err.splitlines()[-1].startswith(
        "ital: method 'ital-21' sees 21 examples, but the batch size is 20"
    )


def test_the_progress_line_fits_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    display = _progress._open_display()
    for title in ("short", "tiny-imagenet-lite2, cooperative teacher, normal:0.1, 12 of 345 cells"):
        display.add_task(title, total=10, completed=4)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(display.get_renderable())
    short, long = console.export_text().rstrip().splitlines()
    assert len(long.rstrip()) <= 80
    assert "… " in long
    assert long.startswith("tiny-imagenet-lite2")
    assert "short " in short
    assert "…" not in short


def test_the_progress_line_is_not_redrawn_in_the_output_of_a_notebook_cell(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as the kernel sets it, beside its own process number
    assert _progress._open_display().console.is_terminal
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert not _progress._open_display().console.is_terminal


@pytest.mark.parametrize("wait", [0.5, pytest.param(6.0, marks=pytest.mark.slow)])
def test_ctrl_c_with_workers_says_one_line(tmp_path, wait):
    """As in a terminal: every process of the group gets the signal, while workers start or while
    they work.
    """
    pytest.importorskip("distributed")
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    sweep = [
        "sweep",
        "regression",
        "--lr",
        "1e-3",
        "--beta",
        "0,9",
        "--seeds",
        "3",
        "--steps",
        "1000000",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "ital", *sweep, "--workers", "2", "--out", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    said = process.stderr.readline()
    assert said.startswith("one seed per cell")
    time.sleep(wait)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    progress, *lines = err.splitlines()
    assert progress.startswith("regression, cooperative")
    assert lines == ["ital: interrupted; finished work is kept, and the same command resumes it"]
    assert out == ""
