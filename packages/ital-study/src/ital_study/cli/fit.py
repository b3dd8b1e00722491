"""``ital study fit``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ital.errors import InputError
from ital.tools.files import check_writable
from ital.tools.platform import set_up_jax
from ital_study.cli.analysis import read_source
from ital_study.cli.serve import CONFIG

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add ``fit`` to ``ital study``."""
    app.command(epilog="Example: ital study fit data · ital study fit --recovery --out recovery")(
        fit
    )


def fit(
    source: Annotated[
        str | None,
        typer.Argument(help="A folder written by export or simulate --out, or a database."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="Data to use: live, pilot, preview, trial or simulated (default: live if any)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and figure (default: the subfolder analysis)."),
    ] = None,
    choices: Annotated[
        bool,
        typer.Option(
            "--choices", help="Also write the scores of every arrow, as ital fit takes them."
        ),
    ] = False,
    recovery: Annotated[
        bool,
        typer.Option(
            "--recovery",
            help="Fit simulated people of every kind instead, to see what data can tell.",
        ),
    ] = False,
    participants: Annotated[
        int, typer.Option(help="With --recovery: number of people per kind.", min=1)
    ] = 40,
    steps: Annotated[
        int, typer.Option(help="With --recovery: number of steps with each robot.", min=1)
    ] = 60,
    rationality: Annotated[
        str,
        typer.Option(
            help="With --recovery: ρ of the people, per typical spread of a score; "
            "several by commas."
        ),
    ] = "0.5,1,2",
    lapse: Annotated[
        float, typer.Option(help="With --recovery: ε, the share of choices at random.")
    ] = 0.1,
    config: CONFIG = None,
) -> None:
    """Find out which teacher each person is: fit models of a teacher to the choices, and compare
    them.
    """
    if recovery == (source is not None):
        raise InputError(
            "give either a folder or database, to fit its participants, or --recovery, to "
            "simulate people"
        )
    set_up_jax("cpu")
    if recovery:
        _recover_people(config, participants, steps, rationality, lapse, out or Path("recovery"))
    else:
        _fit_people(str(source), mode, out, choices)


def _fit_people(source: str, mode: str | None, out: Path | None, choices: bool) -> None:
    from rich.console import Console

    from ital.tools.progress import show_progress
    from ital_study.fitting.people import fit
    from ital_study.report import fit_report

    study, folder = read_source(source, mode)
    check_writable(out or folder)
    with show_progress(f"study {study.config.name}: models of a teacher", 100) as show:
        fitted = fit(study, mode, show=show)
    files = fit_report.write(fitted, out or folder)
    if choices:
        files.append(fit_report.write_choices(fitted, out or folder))
    console = Console()
    console.print(fit_report.whose(fitted), highlight=False)
    for table in fit_report.screen_tables(fitted):
        console.print(table)
    for note in fitted.notes:
        console.print(note, soft_wrap=True, highlight=False)
    _print_files(console, files)


def _recover_people(
    config: str | None, participants: int, steps: int, rationality: str, lapse: float, out: Path
) -> None:
    from rich.console import Console

    from ital.tools.progress import show_progress
    from ital_study.config.load import load_config
    from ital_study.fitting.recovery import recover
    from ital_study.report import fit_report

    study = load_config(config)
    try:
        values = [float(value) for value in rationality.split(",")]
    except ValueError:
        raise InputError(
            f"--rationality {rationality}: give numbers separated by commas, such as 0.5,1,2"
        ) from None
    check_writable(out)
    with show_progress(f"study {study.name}: simulated people of every kind", 100) as show:
        recovered = recover(study, participants, steps, values, lapse, show=show)
    files = fit_report.write_recovery(recovered, out)
    console = Console()
    console.print("SIMULATED DATA: no person took part", highlight=False)
    console.print(fit_report.recovery_table(recovered))
    _print_files(console, files)


def _print_files(console: "Console", files: list[Path]) -> None:
    for file in files:
        console.print(str(file), soft_wrap=True, highlight=False)
