"""Where nothing of ours is installed, the source folders on the path are enough to find all
commands and tasks.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[1] / "packages").glob("*/src"))


@pytest.fixture(scope="module")
def ital(tmp_path_factory):
    """Run a command with the sources and what they need on the path, and nothing else."""
    dependencies = tmp_path_factory.mktemp("dependencies")
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.startswith("ital"):
            (dependencies / installed.name).symlink_to(installed)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*SOURCES, dependencies]))}

    def run(*arguments):
        # Without site, Python looks nowhere else.
        command = [sys.executable, "-S", "-m", "ital", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=dependencies, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_every_command_is_found(ital):
    said = ital("--help")
    for name in ("run", "study", "play", "reproduce", "simplify", "features", "data"):
        assert f"│ {name} " in said


@pytest.mark.parametrize("command", ["reproduce", "study", "play"])
def test_commands_of_other_packages_explain_themselves(ital, command):
    assert f"Usage: ital {command} " in ital(command, "--help")


def test_every_task_is_listed(ital):
    said = ital("list")
    for name in ("regression", "mnist-20", "tiny-imagenet-lite0", "equation-50"):
        assert f"  {name} " in said
