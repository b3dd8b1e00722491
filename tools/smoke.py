"""Tests a plain installation as a user would: python tools/smoke.py, with the Python that has ital installed.

It runs in an empty folder, so that it tests the installed package and not the checkout.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = (
    ("--version",),
    ("list",),
    ("run", "regression", "--methods", "imt,ital", "--seeds", "2", "--steps", "20"),
    ("run", "irl-dense", "--methods", "imt", "--seeds", "1", "--steps", "3"),
    ("plot", "results/regression/cooperative"),
    ("sweep", "regression", "--lr", "0.001,0.01", "--beta", "0,100", "--seeds", "1", "--steps", "10"),
    ("simplify", "0.5x + 1 = 2"),
)
SCRIPT = """
import ital
from sklearn.datasets import load_iris
x, y = load_iris(return_X_y=True)
result = ital.teach(ital.tasks.from_arrays(x, y=y, quiet=True), learner=["imt", "ital"], steps=20, seeds=2)
result.save("iris")
assert (ital.load("iris").curves["loss"] == result.curves["loss"]).all()
print(ital.__file__)
"""


def main() -> int:
    """Run every command and the script; return 1 if one fails."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    ital = str(Path(sys.executable).parent / "ital")
    with tempfile.TemporaryDirectory() as folder:
        for command in [*([ital, *arguments] for arguments in COMMANDS), [sys.executable, "-I", "-c", SCRIPT]]:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
                return 1
    print(f"Python {sys.version.split()[0]}: {len(COMMANDS)} commands and the script work; {done.stdout.strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
