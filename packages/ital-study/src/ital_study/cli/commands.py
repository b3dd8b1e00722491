"""The commands of the study: ``ital study …`` and ``ital play``."""

import typer

from ital_study.cli import (
    analysis,
    exclude,
    find,
    fit,
    freeze,
    learner,
    links,
    payments,
    researchers,
    serve,
    setup,
)

study = typer.Typer(
    help="The human study: people teach robots in the browser.", no_args_is_help=True
)
play = typer.Typer()

setup.register(study)
serve.register(study, play)
analysis.register(study)
learner.register(study)
fit.register(study)
exclude.register(study)
find.register(study)
links.register(study)
payments.register(study)
freeze.register(study)
researchers.register(study)

__all__ = ["play", "study"]
