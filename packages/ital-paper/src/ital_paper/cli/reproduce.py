"""``ital reproduce``."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ital.cli.options import EQUATIONS, PLATFORM, say_once
from ital.tools.platform import set_up_jax

app = typer.Typer()


@app.command(epilog="Example: ital reproduce --quick")
def reproduce(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="TASK", help="Registered tasks (default: those of the paper)."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Few seeds and steps: a few minutes on two cores; every figure is marked as quick.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results (default: results; with --quick, results/quick)."
        ),
    ] = None,
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only", help="Compute nothing: write the report from the results that exist."
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of local worker processes (default: one per core); 0: compute in this process."
        ),
    ] = None,
    equations: EQUATIONS = None,
    platform: PLATFORM = None,
) -> None:
    """Reproduce every figure and table of the paper, and report which claims hold. Interrupted work resumes.

    Runs all tasks with cooperative and adversarial teachers, from both starts, on 20 seeds. The report is
    OUT/index.html; it appears when the first task is done and grows with each further task.
    """
    if workers != 0:
        os.environ.setdefault(
            "XLA_PYTHON_CLIENT_PREALLOCATE", "false"
        )  # leaves the GPU's memory to the workers
    set_up_jax(platform)
    from ital_paper import reproduce as paper

    report = paper.reproduce(
        tasks or (), quick=quick, out=out, report_only=report_only, workers=workers, equations=equations,
        platform=platform, progress=True, say=say_once(),
    )  # fmt: skip
    print(f"report: {report}")
