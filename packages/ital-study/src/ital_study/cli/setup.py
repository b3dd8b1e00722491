"""``ital study init`` and ``ital study doctor``."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ital_study.cli.serve import DATABASE, FILE, need_extra

if TYPE_CHECKING:
    from ital_study.cli.doctor import Diagnosis

SIGNS = {"good": ("✓", "green"), "doubtful": ("!", "yellow"), "bad": ("✗", "red")}


def register(study: typer.Typer) -> None:
    """Add the commands that prepare a study."""
    study.command(
        epilog="Example: ital study init my-study --origin https://lab.example.org/teach"
    )(init)
    study.command(epilog="Example: ital study doctor my-study")(doctor)


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The study's folder: empty, or not there yet.", metavar="DIR", show_default=False
        ),
    ],
    like: Annotated[str, typer.Option(help="The study to begin with: paper or short.")] = "paper",
    language: Annotated[
        str | None,
        typer.Option(
            help="Languages of the texts, separated by commas: en, de or en,de (default: all)."
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            help="The address that participants will see, such as https://lab.example.org/teach."
        ),
    ] = None,
) -> None:
    """Make the folder of a new study: a configuration with comments, a password, a place for
    backups.
    """
    from ital_study.cli import folder as _folder

    languages = tuple(part.strip() for part in (language or "").split(",") if part.strip())
    if origin is not None:
        need_extra()
        from ital_study.server import origin_of

        origin_of({"ITAL_STUDY_ORIGIN": origin})  # raises if it is no address
    _folder.create(folder, like, languages, origin)
    print(f"{folder} can be tried at once:")
    print(
        f"  ital study serve {folder} --trial      the dashboard's password is in "
        f"{folder / _folder.PASSWORD}"
    )
    print("Before people take part:")
    print(f"  1. replace what is in [square brackets], and CHANGE-ME, in {folder / _folder.CONFIG}")
    if origin is None:
        print(f"  2. write the study's address into {folder / _folder.SETTINGS}")
    print(f"  {2 if origin else 3}. ital study doctor {folder}")
    print(f"  {3 if origin else 4}. ital study serve {folder}")


def doctor(
    folder: Annotated[
        Path,
        typer.Argument(help="A folder made by ital study init.", metavar="DIR", show_default=False),
    ],
    database: DATABASE = FILE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a study before people take part: ✓ is good, ! needs a look, ✗ must be mended (exit
    status 1).
    """
    need_extra()
    from ital_study.cli import doctor as _doctor
    from ital_study.cli import folder as _folder

    config, database = _folder.enter(folder, database)
    findings = _doctor.examine(folder, config, database)
    if as_json:
        print(json.dumps([finding._asdict() for finding in findings], ensure_ascii=False, indent=2))
    else:
        show(findings)
    if any(finding.state == _doctor.BAD for finding in findings):
        raise typer.Exit(1)


def show(findings: "Iterable[Diagnosis]", err: bool = False) -> None:
    """Print one line per finding, in colour on a terminal."""
    for finding in findings:
        sign, colour = SIGNS[finding.state]
        typer.secho(f"{sign} {finding.check:<14} {finding.message}", fg=colour, err=err)
