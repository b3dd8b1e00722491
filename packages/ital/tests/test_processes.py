"""Worker processes: parallel parts, messages, and the forwarding of errors and Ctrl-C."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ital.cli import main
from ital.errors import InputError
from ital.tools import memory, processes

ROOT = Path(__file__).parents[1]


def work(part):
    processes.tell(f"begin {part}")
    if part == "bad":
        raise InputError("no such part")
    return part.upper(), os.getpid()


def test_parts_are_done_in_other_processes_which_tell_of_them():
    heard = list(processes.run(work, ["a", "b", "c"], workers=2, platform="cpu"))
    results = {part: told for part, told in heard if part is not None}
    assert {part: upper for part, (upper, _) in results.items()} == {"a": "A", "b": "B", "c": "C"}
    assert os.getpid() not in {pid for _, pid in results.values()}
    assert [told for part, told in heard if part is None and told == "begin a"] == ["begin a"]


def test_the_first_error_is_raised_and_ends_the_rest():
    with pytest.raises(InputError, match="no such part"):
        list(processes.run(work, ["bad", "a"], workers=1, platform="cpu"))


def test_workers_are_bounded_by_parts_cores_and_memory(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(processes, "shared_memory", lambda: 10 * processes.MEMORY_EACH)
    assert [processes.number_for(parts) for parts in (1, 2, 5, 20)] == [0, 2, 5, 8]
    monkeypatch.setattr(processes, "shared_memory", lambda: 3 * processes.MEMORY_EACH + 1)
    assert processes.number_for(20) == 3


@pytest.fixture
def no_limits(monkeypatch, tmp_path):
    """A process without limits, in no control group."""
    monkeypatch.setattr(
        resource, "getrlimit", lambda limit: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    monkeypatch.setattr(memory, "PROCESS", tmp_path / "proc")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "cgroup")


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("limit", "left"), [("RLIMIT_AS", 2**30 - 300 * 1024), ("RLIMIT_DATA", 2**30 - 20 * 1024)]
)
def test_limits_of_the_process_count(monkeypatch, no_limits, limit, left):
    write(memory.PROCESS / "status", "Name:\tpython\nVmSize:\t 300 kB\nVmData:\t 20 kB\n")
    bounds = {getattr(resource, limit): (2**30, 2**31)}
    monkeypatch.setattr(
        resource, "getrlimit", lambda limit: bounds.get(limit, (resource.RLIM_INFINITY,) * 2)
    )
    monkeypatch.setattr(memory, "shared_memory", lambda: 2**40)
    assert memory.free_memory() == left
    write(memory.PROCESS / "status", f"VmSize: {2**21} kB\nVmData: {2**21} kB\n")
    assert memory.free_memory() == 0
    with pytest.raises(
        InputError, match="100 seeds need at least 1 MiB of memory, but 0 MiB are free: take fewer"
    ):
        memory.check_memory("100 seeds", 2**20, "take fewer")


VERSIONS = {
    1: (
        "9:name=systemd:/\n4:cpu,memory:/job/step\n0::/\n",
        "memory",
        "limit_in_bytes",
        "usage_in_bytes",
    ),
    2: ("0::/job/step\n", ".", "max", "current"),
}


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_a_container_count_with_those_around_it(monkeypatch, no_limits, version):
    lines, folder, limit, used = VERSIONS[version]
    total = "total_" if version == 1 else ""
    write(memory.PROCESS / "cgroup", lines)
    monkeypatch.setattr(memory, "_free_on_the_machine", lambda: 10_000)
    assert memory.free_memory() == 10_000

    def group(place, bound, taken, cached):
        write(place / f"memory.{limit}", f"{bound}\n")
        write(place / f"memory.{used}", f"{taken}\n")
        files = f"{total}inactive_file {cached}\n{total}active_file 7\n"
        write(place / "memory.stat", f"anon 5\ninactive_file 1\nactive_file 2\n{files}")

    top = memory.GROUPS / folder
    group(top, 6000, 1000, 300)  # as a container sees its own group
    assert memory.free_memory() == 6000 - (1000 - 307)
    group(top / "job", 3000, 900, 0)
    assert memory.free_memory() == 3000 - (900 - 7)
    group(top / "job" / "step", "max" if version == 2 else 2**63 - 4096, 200, 0)
    assert memory.free_memory() == 3000 - (900 - 7)
    group(top / "job" / "step", 2000, 2500, 100)
    assert memory.free_memory() == memory.shared_memory() == 0


def test_too_few_addresses_for_jax_are_refused_in_a_line(monkeypatch, capsys, tmp_path):
    bound = memory.LEAST_ADDRESSES - 1
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (bound, resource.RLIM_INFINITY))
    with pytest.raises(SystemExit, match="2"):
        main(["run", "regression", "--out", str(tmp_path / "out")])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "ital: this process may reserve 4.0 GiB of memory (ulimit -v), but JAX and its compiler"
    )
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (bound + 1, resource.RLIM_INFINITY))
    memory.check_addresses()


def test_the_file_cache_counts_as_free(monkeypatch, no_limits, tmp_path):
    file = tmp_path / "meminfo"
    monkeypatch.setattr(memory, "MEMINFO", file)
    file.write_text(
        "MemTotal: 90 kB\nMemFree: 40 kB\nBuffers: 5 kB\nCached: 30 kB\nSwapCached: 7 kB\n"
    )
    assert memory.cached_memory() == 30 * 1024
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}.get)
    assert memory.free_memory() == 3 * 4096 + 30 * 1024
    file.write_text("nothing here")
    assert memory.cached_memory() == 0


WAITING = """
import os, signal, sys, time
from ital.tools import processes

# In the background of a script it may be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def work(part):
    try:
        processes.tell(f"{part} {os.getpid()}")
        time.sleep(60)
    except KeyboardInterrupt:
        open(sys.argv[1] + part, "w").close()
        raise

if __name__ == "__main__":
    for part, told in processes.run(work, ["a", "b", "c", "d", "e", "f"], 2, "cpu"):
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
    """After Ctrl-C, or when one is killed, workers may save their results; if the parent is
    killed, they end.
    """
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    command = [sys.executable, str(script), str(tmp_path / "kept-")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
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
