"""Tests a plain installation as a user would: python tools/smoke.py, with the Python that has the
packages installed.

It runs in an empty folder, so that it tests the installed packages and not the checkout. With
--alone only ital is there: the commands and tasks of the other two name the package that has them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARY = (
    ("--version",),
    ("list",),
    ("run", "regression", "--methods", "imt,ital", "--seeds", "2", "--steps", "20"),
    ("run", "irl-dense", "--methods", "imt", "--seeds", "1", "--steps", "3"),
    ("plot", "results/regression/cooperative"),
    (
        "sweep",
        "regression",
        "--lr",
        "0.001,0.01",
        "--beta",
        "0,100",
        "--seeds",
        "1",
        "--steps",
        "10",
    ),
)
OTHERS = (
    ("run", "mnist-20", "--seeds", "1", "--steps", "5"),
    ("simplify", "0.5x + 1 = 2"),
    ("study", "simulate", "--participants", "1", "--config", "short", "--out", "people"),
)
# Who has what: the name of the package in the only line of the error.
ABSENT = {
    ("reproduce",): "ital-paper",
    ("run", "mnist-20"): "ital-paper",
    ("study", "init"): "ital-study",
}
SCRIPT = """
import ital
from sklearn.datasets import load_iris
x, y = load_iris(return_X_y=True)
task = ital.tasks.from_arrays(x, y=y, quiet=True)
result = ital.teach(task, learner=["imt", "ital"], steps=20, seeds=2)
result.save("iris")
assert (ital.load("iris").curves["loss"] == result.curves["loss"]).all()
print(ital.__file__)
"""


def tried(folder: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def named(done: subprocess.CompletedProcess[str], package: str) -> bool:
    """Whether a command ended with one line that says how to install the missing package."""
    is_one_line = done.stderr.count("\n") == 1
    # In a checkout, a path leads to the package.
    _, _, to_install = done.stderr.partition("pip install ")
    return done.returncode == 2 and is_one_line and package in to_install


def main(alone: bool) -> int:
    """Run every command and the script; return 1 if one does not do what it should."""
    ital = str(Path(sys.executable).parent / "ital")
    commands = LIBRARY if alone else LIBRARY + OTHERS
    absent = ABSENT if alone else {}
    with tempfile.TemporaryDirectory() as folder:
        for command in [
            *([ital, *arguments] for arguments in commands),
            [sys.executable, "-I", "-c", SCRIPT],
        ]:
            done = tried(folder, *command)
            if done.returncode:
                print(
                    f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
                )
                return 1
        for arguments, package in absent.items():
            said = tried(folder, ital, *arguments)
            if not named(said, package):
                print(
                    f"ital {' '.join(arguments)} does not say that {package} is missing:\n"
                    f"{said.stdout}{said.stderr}"
                )
                return 1
    worked = f"{len(commands)} commands and the script work"
    missed = f", {len(absent)} name the package they need" if alone else ""
    print(f"Python {sys.version.split()[0]}: {worked}{missed}; {done.stdout.strip()}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--alone", action="store_true", help="only ital is installed")
    sys.exit(main(parser.parse_args().alone))
