"""Files: what a user names is checked before it is read."""

import os

import pytest

from ital.errors import InputError
from ital.tools import files, memory


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("missing", "No such file or directory"),
        (".", "Is a directory"),
        ("pipe", "it is not a regular file"),
        ("nul\0", "null"),
        ("large", r"it holds 1,024.0 GiB, but .* of memory are free"),
        ("bytes", "not a text file"),
    ],
)
def test_what_cannot_be_read_to_its_end_is_refused(name, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with open("large", "wb") as file:
        file.truncate(2**40)  # takes no space on disk
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match=f"^cannot read the notes: .*{fault}"):
        files.read_text(name, "the notes")


def test_text_is_read_with_or_without_a_byte_order_mark(tmp_path):
    (tmp_path / "plain").write_text("η", encoding="utf-8")
    (tmp_path / "marked").write_text("η", encoding="utf-8-sig")
    assert [files.read_text(tmp_path / name, "it") for name in ("plain", "marked")] == ["η", "η"]


def test_what_is_read_in_parts_may_be_larger_than_the_memory(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(bytes(100))
    monkeypatch.setattr(files, "free_memory", lambda: 99)
    with pytest.raises(InputError, match="it holds 0 MiB"):
        files.check_readable(tmp_path / "file", "the file")
    assert files.check_readable(tmp_path / "file", "the file", at_once=False) == tmp_path / "file"
    monkeypatch.setattr(files, "free_memory", memory.free_memory)
    assert files.check_readable(tmp_path / "file", "the file") == tmp_path / "file"


@pytest.mark.skipif(
    not os.path.isdir("/proc/self"), reason="needs the system's folder of processes"
)
def test_a_folder_that_takes_no_files_is_refused_before_work_begins(tmp_path):
    with pytest.raises(
        InputError, match=r"^cannot write to /proc/x: /proc .*; choose another folder$"
    ):
        files.check_writable("/proc/x")
    with pytest.raises(InputError, match="the name of the folder is empty"):
        files.check_writable("")
    files.check_writable(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
