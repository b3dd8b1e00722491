"""``ital fit``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ital.cli.options import split
from ital.errors import InputError
from ital.tools import plugins
from ital.tools.files import check_writable
from ital.tools.files import write as write_file
from ital.tools.platform import set_up_jax

if TYPE_CHECKING:
    import pandas as pd

    from ital.fit import TeacherModel

UNIFORM = "uniform"
# Entry points of functions that read choices from a folder: ``read(folder)`` returns a long table,
# or None for a folder of another kind.
READERS = "ital.choices"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "fit",
        epilog=(
            "Example: ital fit choices.csv --models volume,loss,uniform --by condition --out fits"
        ),
    )(fit_table)


def fit_table(
    table: Annotated[
        Path,
        typer.Argument(
            help="A CSV or Parquet file with a row per person, trial and candidate, or a study's "
            "export."
        ),
    ],
    models: Annotated[
        str, typer.Option(help="Columns with scores, comma-separated; uniform for no score.")
    ],
    person: Annotated[str, typer.Option(help="The column that says who chose.")] = "person",
    trial: Annotated[
        str, typer.Option(help="The column that tells a person's trials apart.")
    ] = "trial",
    chosen: Annotated[
        str, typer.Option(help="The column with 1 for the chosen candidate, else 0.")
    ] = "chosen",
    by: Annotated[
        str | None,
        typer.Option(help="A column that is constant for a person: select models in each group."),
    ] = None,
    unit: Annotated[
        float | None,
        typer.Option(help="Difference of scores that counts as 1 for ρ (default: typical spread)."),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            help="Parts of each person's choices, each predicted from the others; 0 for none.",
            min=0,
        ),
    ] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("fit"),
) -> None:
    """Fit models of a teacher to choices: by which score do people choose?"""
    if unit is not None and not unit > 0:
        raise InputError(f"--unit {unit:g}: give a number above 0")
    check_writable(out)
    from ital import fit

    named = split("models", models)
    scored = [name for name in named if name != UNIFORM]
    choices = fit.read(_rows_of(table), person=person, trial=trial, chosen=chosen, numbers=scored)
    fitted_models = [_model(name, unit) for name in named]
    found = fit.fit(choices, fitted_models, by=by)
    tables = {
        "fit_people": found.people,
        "fit_groups": found.groups,
        "fit_together": found.together,
    }
    if folds:
        tables["fit_predicted"] = fit.cross_validate(choices, fitted_models, folds=folds)
    print(found.table.to_string(index=False, float_format="{:.4g}".format))
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        _write_table(out / f"{name}.csv", rows)


def _rows_of(table: Path) -> "Path | pd.DataFrame":
    """Return a table's file; a folder is read by the packages that know such folders."""
    if not table.is_dir():
        return table
    set_up_jax("cpu")
    readers = plugins.parts(READERS, ())
    for read in readers.values():
        rows: pd.DataFrame | None = read(table)
        if rows is not None:
            return rows
    advice = "give a table"
    if "study" not in readers:
        advice = f"{advice}; for a study's export: {plugins.missing(READERS, 'study')}"
    raise InputError(f"{table} is a folder, but not the export of a study: {advice}")


def _model(name: str, unit: float | None) -> "TeacherModel":
    from ital.fit import TeacherModel, uniform

    return uniform() if name == UNIFORM else TeacherModel(name, name, unit=unit)


def _write_table(file: Path, rows: "pd.DataFrame") -> None:
    write_file(file, rows.to_csv(index=False, lineterminator="\n").encode())
    print(file)
