"""Run a command as a user would type it."""

import os

import pytest

from ital.cli import main


def ital(capsys, *arguments):
    """Status, standard output and standard error of ``ital ARGUMENTS``."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def check_refused(capsys, folder, words, message):
    """A command whose working folder is ``folder`` ends with status 2 and one line, and writes
    nothing.
    """
    before = sorted(os.listdir(folder))
    status, out, err = ital(capsys, *words)
    assert status == 2
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert "Traceback" not in err
    assert sorted(os.listdir(folder)) == before


def check_endless(capsys, folder, words, kind):
    """A command that should read FILE (.csv, .parquet, .png) in ``folder`` refuses a folder, or a
    device.

    ``/dev/zero`` would fill the memory; ``/dev/null``, which is empty, is refused for the same
    reason.
    """
    for ending in ("", ".csv", ".parquet", ".png"):
        place = folder / f"FILE{ending}"
        if kind == "folder":
            place.mkdir()
        else:
            place.symlink_to(os.devnull)
    check_refused(
        capsys, folder, words, "Is a directory" if kind == "folder" else "it is not a regular file"
    )


def check_unwritable(capsys, folder, words, place):
    """A command cannot write to ``place`` in ``folder``, which is a file or below one, and notices
    at once.
    """
    (folder / "file").touch()
    status, _, err = ital(capsys, *words, "--out", folder / place)
    assert (status, err.count("\n")) == (2, 1)
    assert "not a folder" in err or "not an empty folder" in err
