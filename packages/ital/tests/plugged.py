"""A made-up package of somebody else's: its commands and parts are declared as entry points."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = '''
import typer

app = typer.Typer()


@app.command()
def hello(name: str):
    """Greet."""
    print(f"hello {name}")


@app.command()
def bye():
    """Leave."""


only = typer.Typer()


@only.command()
def alone(loud: bool = False):
    """The one command of an app."""
    print("ALONE" if loud else "alone")


def add(a: int, b: int = 1):
    """Add two numbers."""
    print(a + b)


number = 5


def contrary(rationality="-1e9"):
    """Chooses what helps least, and is called contrary."""
    from ital import teachers

    return teachers.boltzmann(float(rationality))._replace(name="contrary")


def timid():
    """ITAL with a small β."""
    from ital import learners

    return learners.teacher_aware(3.0)


def tiny(points=30):
    """A small regression."""
    from ital import tasks

    return tasks.regression(dim=3, points=points)._replace(name="tiny")
'''
ENTRIES = """[ital.commands]
greet = made_up:app
add = made_up:add
alone = made_up:only
lost = made_up:nothing
gone = made_up_elsewhere:app
number = made_up:number
run = made_up:add

[ital.teachers]
contrary = made_up:contrary
cooperative = made_up:contrary
lost = made_up:nothing

[ital.learners]
timid = made_up:timid

[ital.tasks]
tiny = made_up:tiny

[other.group]
add = made_up:add
"""


def install(folder, code=CODE, entries=ENTRIES):
    """Put the package into a folder, as pip would; return what describes it."""
    described = folder / "made_up-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\nSummary: Made-up commands.\n"
    )
    (described / "entry_points.txt").write_text(entries)
    (folder / "made_up.py").write_text(code)
    return described


def python(folder, *arguments):
    """Python in a process of its own, with the package in ``folder`` and the tests on its path."""
    path = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, cwd=folder, text=True, capture_output=True, check=False
    )
