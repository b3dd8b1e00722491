"""``ital bench``."""

from pathlib import Path
from typing import Annotated

import typer

from ital.cli.options import PLATFORM
from ital.errors import InputError
from ital.tools.platform import set_up_jax


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: ital bench --json > bench.json")(bench)


def bench(
    lanes: Annotated[
        int, typer.Option(help="Number of lanes to run in parallel (8 methods per seed).")
    ] = 160,
    steps: Annotated[int, typer.Option(help="Teaching steps per lane.")] = 2000,
    test_rows: Annotated[int, typer.Option(help="Test rows of the 200-class pool.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    scaling: Annotated[
        bool,
        typer.Option(
            "--scaling",
            help="Instead, measure how speed and memory scale with lanes, rows and processes.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="With --scaling: folder for scaling.json and its figure (default: none)."
        ),
    ] = None,
    platform: PLATFORM = None,
) -> None:
    """Measure the speed of this machine: ital against a plain NumPy loop and its own floor."""
    if out is not None and not scaling:
        raise InputError("--out needs --scaling: without it there are no files to write")
    set_up_jax(platform, cache=False)
    if scaling:
        from ital.bench import scaling as growth

        growth.main(as_json=json, out=out)
    else:
        from ital import bench as benchmark

        benchmark.main(lanes=lanes, steps=steps, test_rows=test_rows, as_json=json)
