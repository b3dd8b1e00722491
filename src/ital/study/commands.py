"""The commands of the study: ``ital study …`` and ``ital play``."""

import typer

from ital.study import _cli_analysis, _cli_exclude, _cli_find, _cli_fit, _cli_learner, _cli_server, _cli_setup


def register(top: typer.Typer) -> None:
    """Add ``study`` and its commands, and ``play``, to the commands of ital.

    Args:
        top: The app of ital.
    """
    study = typer.Typer(help="The human study: people teach robots in the browser.", no_args_is_help=True)
    top.add_typer(study, name="study")
    _cli_setup.register(study)
    _cli_server.register(study, top)
    _cli_analysis.register(study)
    _cli_learner.register(study)
    _cli_fit.register(study)
    _cli_exclude.register(study)
    _cli_find.register(study)


__all__ = ["register"]
