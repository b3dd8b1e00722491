"""Run a command as a user would type it."""

import pytest

from ital.cli import main


def ital(capsys, *arguments):
    """Status, standard output and standard error of ``ital ARGUMENTS``."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err
