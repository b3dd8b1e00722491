"""Options that several commands share, each declared once, and how their values are read."""

import functools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ital.errors import InputError

TASK = Annotated[str, typer.Argument(help="The task, e.g. regression (ital list shows all).", show_default=False)]
TEACHER = Annotated[str, typer.Option(help="Who chooses the examples.")]
SEEDS = Annotated[int, typer.Option(help="How many seeds.")]
FIRST_SEED = Annotated[int, typer.Option(help="The first of them.")]
STEPS = Annotated[int, typer.Option(help="Teaching steps.")]
BATCH_SIZE = Annotated[int, typer.Option(help="Examples in a mini-batch.")]
INIT = Annotated[str | None, typer.Option(help="Where learners start: uniform or normal:0.1 (default: the task's).")]
LABEL_NOISE = Annotated[float, typer.Option(help="Probability that a label of the pool is replaced.")]
MAP = Annotated[
    Path | None, typer.Option(help="Rewards of the grid, for task irl: a text or CSV file with a line per row.")
]
EVAL_EVERY = Annotated[int | None, typer.Option(help="Steps between measurements (default: the task's, mostly 10).")]
STEP = Annotated[str, typer.Option(help="How far learners go: rate (the paper), length:L, length:L:decay, or safe.")]
PLATFORM = Annotated[str | None, typer.Option(help="Where to compute: cpu or gpu (default: a GPU if there is one).")]
DEVICES = Annotated[str, typer.Option(help="How many local devices share the seeds: a number, or all.")]
OVERWRITE = Annotated[bool, typer.Option("--overwrite", help="Replace a result of other settings.")]
WORKERS = Annotated[
    int | None, typer.Option(help="Number of local worker processes (extra: cluster); 0: none, compute in this one.")
]
SCHEDULER = Annotated[
    str | None, typer.Option(help="Compute on the workers of this Dask scheduler, e.g. tcp://host:8786.")
]
RESOURCE = Annotated[
    str | None, typer.Option(help="Only on workers that declare this resource, e.g. GPU: one unit of it per cell.")
]
SEEDS_PER_CELL = Annotated[int | None, typer.Option(help="Seeds computed together (default: all; with workers one).")]
MLFLOW = Annotated[
    str | None, typer.Option(help="Also log every method to this MLflow store, e.g. ./mlruns (extra: mlflow).")
]
CSV = Annotated[bool, typer.Option("--csv", help="Also write every measured value as a table, one in a row.")]
OUT = Annotated[Path, typer.Option(help="Folder for the results.")]


def split(text: str) -> tuple[str, ...]:
    """What is written between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_beta(text: str | None) -> float | str | None:
    """β as typed: ``auto``, a finite number, or nothing for the task's."""
    if text is None or text == "auto":
        return text
    try:
        beta = float(text)
    except ValueError:
        beta = math.nan
    if not math.isfinite(beta):
        raise InputError(f"beta must be a finite number or 'auto', not {text!r}")
    return beta


def parse_devices(text: str) -> int | str:
    """How many devices, as typed: a whole number, or ``all``."""
    if text == "all":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"devices must be a whole number from 1 on, or 'all', not {text!r}") from None


def parse_numbers(name: str, text: str) -> list[float]:
    """Finite numbers, separated by commas."""
    try:
        numbers = [float(part) for part in split(text)]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise InputError(f"{name} must be finite numbers separated by commas, not {text!r}")
    return numbers


def say_once() -> Callable[[str], None]:
    """Prints lines on standard error, none of them twice: many computations of one command say the same."""
    return functools.cache(lambda line: print(line, file=sys.stderr))
