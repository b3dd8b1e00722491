"""Options that several commands share, and functions that parse their values.

An option is declared once here, as an annotated type, and becomes a parameter of each command that
has it. Its default stands in the command, because commands may differ in it.
"""

import functools
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ital.errors import InputError
from ital.tools.registry import number


def label_noise(text: str | float) -> str | float:
    """Return a label noise as a number where it is one: results store the number."""
    try:
        return float(text)
    except ValueError:
        return str(text)


TASK_OR_TABLE = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK",
        help="The task, e.g. regression (ital list shows all); leave it out with --data.",
        show_default=False,
    ),
]
DATA = Annotated[
    Path | None, typer.Option(help="Your own table instead of a TASK: a CSV or Parquet file.")
]
LABEL = Annotated[str | None, typer.Option(help="The table column with the labels.")]
TEACHER_COLUMNS = Annotated[
    str | None,
    typer.Option(
        help="Columns that the teacher sees, comma-separated (default: all but the labels)."
    ),
]
LEARNER_COLUMNS = Annotated[
    str | None,
    typer.Option(
        help="Columns that the learner sees, comma-separated (default: all but the labels)."
    ),
]
KIND = Annotated[
    str | None,
    typer.Option(
        help="Kind of labels: classification or regression (default: inferred and printed)."
    ),
]
TEACHER = Annotated[str, typer.Option(help="The teacher, which chooses the examples.")]
BETA = Annotated[
    str | None,
    typer.Option(
        help="β, how rational aware learners think the teacher is: auto or a number "
        "(default: the task's)."
    ),
]
LABELS = Annotated[
    str,
    typer.Option(help="Labels of a mini-batch that are evidence: all, or only the chosen one's."),
]
LR = Annotated[float, typer.Option(help="The learner's step size.")]
SEEDS = Annotated[int, typer.Option(help="Number of seeds.")]
FIRST_SEED = Annotated[int, typer.Option(help="The first seed.")]
STEPS = Annotated[int, typer.Option(help="Teaching steps.")]
BATCH_SIZE = Annotated[int, typer.Option(help="Examples in a mini-batch.")]
CHOICES = Annotated[
    int, typer.Option(help="Examples that the teacher shows in each step, in order.")
]
INIT = Annotated[
    str | None,
    typer.Option(help="Start of the learners: uniform or normal:0.1 (default: the task's)."),
]
LABEL_NOISE = Annotated[
    str,
    typer.Option(
        parser=label_noise,
        metavar="SHARE|sd:NUMBER",
        help=(
            "Probability that a label of the pool is replaced, or sd:NUMBER for Gaussian noise on "
            "numeric labels."
        ),
    ),
]
MAP = Annotated[
    Path | None,
    typer.Option(
        help="For task irl: rewards of the grid, a text or CSV file with one line per row."
    ),
]
TEACHER_LOSS = Annotated[
    str | None,
    typer.Option(
        help="For equation tasks: the loss that the teacher assumes for its target, own "
        "(the default) or zero."
    ),
]
EQUATIONS = Annotated[
    int | None,
    typer.Option(
        help="For equation tasks: number of equations in an exam (default: 30).", show_default=False
    ),
]
EVAL_EVERY = Annotated[
    int | None, typer.Option(help="Steps between measurements (default: the task's, mostly 10).")
]
FORM = Annotated[
    str,
    typer.Option(
        help="How much of a proposed update is applied: rate (the paper), length:L, "
        "length:L:decay, or safe."
    ),
]
OPTIMIZER = Annotated[
    str | None,
    typer.Option(
        help="Optax optimiser of the steps, e.g. adam:0.01 (default: none); without a rate it uses "
        "--lr."
    ),
]
PLATFORM = Annotated[
    str | None, typer.Option(help="Where to compute: cpu or gpu (default: a GPU if there is one).")
]
DEVICES = Annotated[str, typer.Option(help="Number of local devices that share the seeds, or all.")]
OVERWRITE = Annotated[
    bool, typer.Option("--overwrite", help="Replace a result that has other settings.")
]
WORKERS = Annotated[
    int | None,
    typer.Option(
        help="Number of local worker processes (extra: cluster); 0: compute in this process."
    ),
]
SCHEDULER = Annotated[
    str | None,
    typer.Option(help="Compute on the workers of this Dask scheduler, e.g. tcp://host:8786."),
]
RESOURCE = Annotated[
    str | None,
    typer.Option(
        help="Use only workers that declare this resource, e.g. GPU; a cell takes one unit."
    ),
]
SEEDS_PER_CELL = Annotated[
    int | None, typer.Option(help="Seeds computed together (default: all; with workers, one).")
]
MLFLOW = Annotated[
    str | None,
    typer.Option(help="Also log every method to this MLflow store, e.g. ./mlruns (extra: mlflow)."),
]
CSV = Annotated[
    bool,
    typer.Option(
        "--csv", help="Also write every measured value to a CSV table, one value per row."
    ),
]
OUT = Annotated[Path, typer.Option(help="Folder for the results.")]


def task_settings(
    task: str | None,
    data: Path | None,
    label: str | None,
    teacher_columns: str | None,
    learner_columns: str | None,
    kind: str | None,
) -> dict[str, Any]:
    """Return the settings that define the task.

    It is a registered task, or a table, which is named after its file.
    """
    if task is None and data is None:
        raise InputError(
            "argument TASK is missing: name a task (ital list shows all), "
            "or use --data FILE --label COLUMN"
        )
    if task is not None and data is not None:
        raise InputError(f"TASK and --data exclude each other: leave out {task!r}, or --data")
    return {
        "task": task if data is None else data.stem,
        "data": None if data is None else str(data),
        "label": label,
        "teacher_columns": teacher_columns,
        "learner_columns": learner_columns,
        "kind": kind,
    }


def split(name: str, text: str) -> tuple[str, ...]:
    """Return the comma-separated items; raise InputError for an empty one."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise InputError(f"{name}: {text!r} has an empty item; write a list like a,b,c")
    return parts


def check_values(arguments: Sequence[str]) -> None:
    """Raise InputError for an option with an empty value: it would silently mean the default."""
    for before, argument in itertools.pairwise(["", *arguments]):
        # Two ways to give no value: --option "" and --option=
        if argument == "":
            option = before
        elif argument.endswith("="):
            option = argument.removesuffix("=")
        else:
            continue
        if option.startswith("--"):
            raise InputError(f"{option} has no value: give it one, or leave it out")


def parse_beta(text: str | None) -> float | str | None:
    """Return β as typed: ``auto``, a finite number, or None for the task's."""
    if text is None or text == "auto":
        return text
    beta = number(text)
    if not math.isfinite(beta):
        raise InputError(f"beta must be a finite number or 'auto', not {text!r}")
    return beta


def parse_devices(text: str) -> int | str:
    """Return the number of devices as typed: a whole number, or ``all``."""
    if text == "all":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"devices must be a whole number of at least 1, or 'all', not {text!r}"
        ) from None


def parse_numbers(name: str, text: str) -> list[float]:
    """Return the comma-separated text as finite numbers."""
    parts = split(name, text)
    numbers = [number(part) for part in parts]
    if not all(map(math.isfinite, numbers)):
        hint = "; auto is for ital run" if "auto" in parts else ""
        raise InputError(f"{name} must be finite numbers separated by commas, not {text!r}{hint}")
    return numbers


def say_once() -> Callable[[str], None]:
    """Return a function that prints a line on standard error, but never the same line twice."""
    return functools.cache(lambda line: print(line, file=sys.stderr))
