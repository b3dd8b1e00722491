"""``ital plot``."""

from pathlib import Path
from typing import Annotated

import typer

from ital.cli.options import split
from ital.tools.platform import set_up_jax

FOLDERS = typer.Argument(
    metavar="FOLDER…",
    help="Folders that ital run, ital sweep or result.save wrote.",
    show_default=False,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: ital plot results/regression/cooperative results/regression/random"
    )(plot)


def plot(
    folders: Annotated[list[Path], FOLDERS],
    metrics: Annotated[
        str | None,
        typer.Option(help="Metrics to show, comma-separated (default: the task's panels)."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods to show, comma-separated (default: all).")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Method to compare the others with (default: imt, or the first)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The figure, without suffix (default: FOLDER/curves; FOLDER/selection with "
            "--metrics or --methods; comparison for several runs)."
        ),
    ] = None,
) -> None:
    """Redraw stored results, several runs in one figure, and print differences with intervals."""
    # Nothing is taught: a GPU would only take time to start.
    set_up_jax("cpu")
    from ital import experiments

    files = experiments.redraw(
        folders,
        metrics=metrics and split("metrics", metrics),
        methods=methods and split("methods", methods),
        against=against,
        out=out,
    )
    for file in files:
        print(file)
