"""``ital reproduce``."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ital._platform import set_up_jax
from ital.cli._options import EQUATIONS, PLATFORM, say_once


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(epilog="Example: ital reproduce --quick")(reproduce)


def reproduce(
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK", help="Registered tasks (default: those of the paper).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds and steps: a few minutes on two cores, and every figure says so.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results (default: results; with --quick results/quick).")
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Compute nothing: make the report of what is there.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="Worker processes that share the tasks (default: one per core); 0: compute in this one."),
    ] = None,
    equations: EQUATIONS = None,
    platform: PLATFORM = None,
) -> None:
    """Every figure and table of the paper, and a report on what holds of its claims. Interrupted work resumes.

    All tasks with cooperative and adversarial teachers, from both starts, 20 seeds; the report is OUT/index.html.
    It exists as soon as the first task is done, and fills up from then on.
    """
    if workers != 0:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a GPU is the workers'
    set_up_jax(platform)
    from ital import reproduce as paper

    report = paper.reproduce(
        tasks or (), quick=quick, out=out, report_only=report_only, workers=workers, equations=equations,
        platform=platform, progress=True, say=say_once(),
    )  # fmt: skip
    print(f"report: {report}")
