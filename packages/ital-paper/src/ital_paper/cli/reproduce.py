"""``ital reproduce``."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ital.cli.options import EQUATIONS, PLATFORM, say_once
from ital.tools.platform import set_up_jax

# Single line breaks are kept in the second paragraph of a help text.
HELP = (
    "Reproduce every figure and table of the paper, and report which claims hold. "
    "Interrupted work resumes.\n\n"
    "Runs all tasks with cooperative and adversarial teachers, from both starts, on 20 seeds. "
    "The report is\n"
    "OUT/index.html; it appears when the first task is done and grows with each further task."
)
app = typer.Typer()


@app.command(help=HELP, epilog="Example: ital reproduce --quick")
def reproduce(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="TASK", help="Registered tasks (default: those of the paper)."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Few seeds and steps: a few minutes on two cores; "
            "every figure is marked as quick.",
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
            help="Number of local worker processes (default: one per core); "
            "0: compute in this process."
        ),
    ] = None,
    equations: EQUATIONS = None,
    platform: PLATFORM = None,
) -> None:
    """Compute what is missing and write the report."""
    if workers != 0:
        # Leaves the GPU's memory to the workers.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    set_up_jax(platform)
    from ital_paper import reproduce as paper

    report = paper.reproduce(
        tasks or (),
        quick=quick,
        out=out,
        report_only=report_only,
        workers=workers,
        equations=equations,
        platform=platform,
        progress=True,
        say=say_once(),
    )
    print(f"report: {report}")
