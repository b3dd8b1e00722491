"""``ital study`` and ``ital play``: the commands that the study brings along."""

import typer

from ital.study import _cli_analysis, _cli_server


def register(app: typer.Typer) -> None:
    """Adds the commands of the study."""
    study = typer.Typer(help="The human study: people teach robots in the browser.", no_args_is_help=True)
    app.add_typer(study, name="study")
    _cli_server.register(study, app)
    _cli_analysis.register(study)
