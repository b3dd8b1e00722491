"""The scripts in examples/ run."""

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")
EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.mark.parametrize("name", ["select_torch", "select_jax"])
def test_an_example_runs(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [name, "--steps", "20"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    told = capsys.readouterr().out.splitlines()
    assert [re.sub(r"[\d.]+$", "", line) for line in told] == [
        "reference, trained on 200 trusted rows: ",
        "uniform batches of 32: ",
        "32 of 320 by teaching volume: ",
    ]
    assert all(0.0 < float(line.rpartition(" ")[2]) <= 1.0 for line in told)
