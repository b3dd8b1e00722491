"""Worker processes: parallel parts, messages, and the forwarding of errors and Ctrl-C."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ital import _memory, _processes
from ital.errors import InputError

ROOT = Path(__file__).parents[1]


def work(part):
    _processes.tell(f"begin {part}")
    if part == "bad":
        raise InputError("no such part")
    return part.upper(), os.getpid()


def test_parts_are_done_in_other_processes_which_tell_of_them():
    heard = list(_processes.run(work, ["a", "b", "c"], workers=2, platform="cpu"))
    results = {part: told for part, told in heard if part is not None}
    assert {part: upper for part, (upper, _) in results.items()} == {"a": "A", "b": "B", "c": "C"}
    assert os.getpid() not in {pid for _, pid in results.values()}
    assert [told for part, told in heard if part is None and told == "begin a"] == ["begin a"]


def test_the_first_error_is_raised_and_ends_the_rest():
    with pytest.raises(InputError, match="no such part"):
        list(_processes.run(work, ["bad", "a"], workers=1, platform="cpu"))


def test_workers_are_bounded_by_parts_cores_and_memory(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(_processes, "free_memory", lambda: 10 * _processes.MEMORY_EACH)
    assert [_processes.number_for(parts) for parts in (1, 2, 5, 20)] == [0, 2, 5, 8]
    monkeypatch.setattr(_processes, "free_memory", lambda: 3 * _processes.MEMORY_EACH + 1)
    assert _processes.number_for(20) == 3


def test_the_file_cache_counts_as_free(monkeypatch):
    lines = "MemTotal: 90 kB\nMemFree: 40 kB\nBuffers: 5 kB\nCached: 30 kB\nSwapCached: 7 kB\n"
    monkeypatch.setattr(_memory, "open", lambda path: io.StringIO(lines), raising=False)
    assert _memory.cached_memory() == 30 * 1024
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}.get)
    assert _memory.free_memory() == 3 * 4096 + 30 * 1024
    monkeypatch.setattr(_memory, "open", lambda path: io.StringIO("nothing here"), raising=False)
    assert _memory.cached_memory() == 0


WAITING = """
import os, signal, sys, time
from ital import _memory, _processes

signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a script it may be ignored

def work(part):
    try:
        _processes.tell(f"{part} {os.getpid()}")
        time.sleep(60)
    except KeyboardInterrupt:
        open(sys.argv[1] + part, "w").close()
        raise

if __name__ == "__main__":
    for part, told in _processes.run(work, ["a", "b", "c", "d", "e", "f"], 2, "cpu"):
        print(told, flush=True)
"""


@pytest.mark.parametrize(
    ("whom", "how", "saved"),
    [
        ("parent", signal.SIGINT, ["kept-a", "kept-b"]),
        ("parent", signal.SIGKILL, []),
        ("worker", signal.SIGTERM, ["kept-a", "kept-b"]),
        ("worker", signal.SIGKILL, ["kept-b"]),
    ],
)
def test_workers_end_with_their_parent_and_with_each_other(tmp_path, whom, how, saved):
    """After Ctrl-C, or when one is killed, workers may save their results; if the parent is killed, they end."""
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    command = [sys.executable, str(script), str(tmp_path / "kept-")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        begun = [run.stdout.readline().split() for _ in range(2)]
        assert sorted(part for part, _ in begun) == ["a", "b"]
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
        workers = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        os.kill(run.pid if whom == "parent" else int(dict(begun)["a"]), how)
        run.wait(30)
        last = run.stderr.read().splitlines()[-1:]
    assert sorted(file.name for file in tmp_path.glob("kept-*")) == saved
    if whom == "worker":
        assert "a worker process ended" in last[0]
        assert "finished work is kept, and the same command resumes it" in last[0]
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until, "a worker is left"
        time.sleep(0.1)
