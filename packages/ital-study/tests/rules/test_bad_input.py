"""Bad input for the commands of the study that need no server.

One line, status 2, and nothing written.
"""

import pytest

from tests.typed import check_endless, check_refused, check_unwritable, ital

SIMULATE = ["study", "simulate", "--participants", "1"]
COMMANDS = [
    ([*SIMULATE, "--out", ""], "--out has no value"),
    ([*SIMULATE, "--teacher", "machine,,random", "--out", "x"], "machine,,random"),
    (["study", "simulate", "--participants", "0", "--out", "x"], "--participants"),
]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=lambda value: " ".join(value)[-40:])
def test_bad_commands_are_refused_in_one_line(words, message, capsys, tmp_path):
    check_refused(capsys, tmp_path, words, message)


@pytest.mark.parametrize("kind", ["device", "folder"])
def test_a_configuration_without_an_end_is_not_read(kind, tmp_path, capsys):
    check_endless(capsys, tmp_path, [*SIMULATE, "--out", "x", "--config", "FILE"], kind)


@pytest.mark.parametrize("kind", ["device", "folder"])
def test_a_picture_without_an_end_is_not_read(kind, tmp_path, capsys):
    ital(capsys, *SIMULATE, "--config", "short", "--out", "study")
    check_endless(capsys, tmp_path, ["study", "analyze", "study", "--picture", "FILE.png"], kind)


@pytest.mark.parametrize("place", ["file", "file/folder"])
def test_a_place_that_cannot_be_written_to_is_noticed_at_once(place, tmp_path, capsys):
    check_unwritable(capsys, tmp_path, SIMULATE, place)
