"""``ital study freeze``: a signed plan, before the data come."""

import time
from pathlib import Path
from typing import Annotated

import typer

from ital.errors import InputError
from ital.tools import files
from ital.tools.platform import set_up_jax
from ital_study.cli import folder as _folder
from ital_study.cli.links import STUDY_FOLDER, bind
from ital_study.cli.serve import DATABASE, FILE, need_extra, storing
from ital_study.config.configuration import Config
from ital_study.config.load import load_config


def register(study: typer.Typer) -> None:
    """Add ``freeze`` to the commands of ``ital study``."""
    study.command(epilog="Example: ital study freeze my-study --participants 60")(freeze)


def freeze(
    folder: STUDY_FOLDER,
    participants: Annotated[
        int,
        typer.Option(help="Planned number of usable participants.", min=1, show_default=False),
    ],
    outcome: Annotated[
        str, typer.Option(help="Outcome of the main test: a column of outcomes.csv.")
    ] = "distance_last",
    robot: Annotated[str, typer.Option(help="Kind of robot of the main test.")] = "aware",
    against: Annotated[
        str, typer.Option(help="What it is compared with: another kind, or imt-matched.")
    ] = "naive",
    alpha: Annotated[float, typer.Option(help="Significance level, two-sided.")] = 0.05,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write (default: freeze-TIME.toml in DIR).", show_default=False),
    ] = None,
    database: DATABASE = FILE,
) -> None:
    """Freeze the plan before people take part, dated and signed: configuration, exclusion rules,
    participants, test. verify checks it, and the report lists every later change.
    """
    need_extra()
    config_file, database = _folder.enter(folder, database)
    config = load_config(config_file)
    test = _test(config, outcome, robot, against, alpha)
    file = out or folder / time.strftime("freeze-%Y%m%d-%H%M%S.toml")
    files.check_writable(file.parent)
    if file.exists():
        raise InputError(f"{file} exists: choose another --out")
    from ital_study.server import StudyPlan, freeze_text, secret_of
    from ital_study.server import freeze as freeze_plan
    from ital_study.store import open_store

    with storing(database), open_store(database, create=True) as store:
        secret = secret_of(store.key_file, draw=store.key_fingerprint() is None)
        bind(store, secret)
        frozen = freeze_plan(store, secret, config, StudyPlan(participants, test))
    files.write(file, freeze_text(frozen).encode())
    print(f"{file}: {participants} participants, configuration {config.hash[:12]}")
    print(f"signature {frozen.signature}")


def _test(
    config: Config, outcome: str, robot: str, against: str, alpha: float
) -> dict[str, str | float | int]:
    """Return the main test; raise if there is no such test."""
    set_up_jax("cpu")
    from ital_study.analysis import power

    power.check_comparison(config, outcome, robot, against)
    power.check(alpha=alpha)
    return {
        "outcome": outcome,
        "robot": robot,
        "against": against,
        "kind": "paired t-test, two-sided, Holm over the maps",
        "maps": len(config.maps),
        "alpha": alpha,
    }
