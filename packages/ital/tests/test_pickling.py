"""Parts and results survive pickling, also on the way to a process that was spawned."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pickled import CHECKS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def lost():
    command = [sys.executable, "-m", "tests.pickled"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, cwd=ROOT)
    return json.loads(ran.stdout)


@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_nothing_is_lost(lost, check):
    assert lost[check] == []
