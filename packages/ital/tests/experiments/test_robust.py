"""Kills, full and read-only disks, damaged files: a clear message or the right result, never a
wrong file.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from ital import experiments, tasks
from ital.cli import main
from ital.errors import InputError
from ital.experiments import Settings, _cells
from ital.experiments._experiment import CellSize
from ital.teaching import Session
from ital.tools import files as _files
from tests.typed import ital
from tests.worlds import small_classes

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = {"task": "small", "methods": ("imt", "ital"), "seeds": 4, "steps": 20, "lr": 0.01}
CURVES = "small/cooperative/curves.nc"


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )
    monkeypatch.chdir(tmp_path)


def run(out, **options):
    return experiments.run(Settings(**{**QUICK, **options}), out, seeds_per_cell=1, draw=False)


def same(one, other):
    xr.testing.assert_identical(one.drop_attrs(deep=False), other.drop_attrs(deep=False))


class Disk:
    """Fail the n-th time that a file is renamed into place (and always after that, if
    ``for_good``).
    """

    def __init__(self, monkeypatch, number, error, for_good=True):
        self.count, self.number, self.error, self.for_good = 0, number, error, for_good
        self.fsync = os.fsync
        monkeypatch.setattr(_files.os, "fsync", self)

    def __call__(self, descriptor):
        self.count += 1
        if self.count == self.number or (self.for_good and self.count > self.number):
            raise OSError(self.error, os.strerror(self.error))
        self.fsync(descriptor)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_disk_that_fails_is_named_and_nothing_is_lost(tmp_path, monkeypatch, capsys, error):
    whole = run(tmp_path / "whole").curves
    run(tmp_path / "results", seeds=1)
    before = experiments.load_curves(tmp_path / "results" / CURVES)
    arguments = [
        "run",
        "small",
        "--methods",
        "imt,ital",
        "--seeds",
        "4",
        "--steps",
        "20",
        "--lr",
        "0.01",
    ]
    with monkeypatch.context() as patch:
        disk = Disk(patch, 3, error)  # after two cells, each with its folder: a third cell
        with pytest.raises(SystemExit) as stop:
            main([*arguments, "--seeds-per-cell", "1"])
        assert disk.count > 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert stop.value.code == 1
    assert err == f"ital: results/small/cooperative/cells: cannot write here: {os.strerror(error)}"
    assert not list(tmp_path.rglob("*.part"))
    same(experiments.load_curves(tmp_path / "results" / CURVES), before)
    rest = run(tmp_path / "results")
    assert rest.lanes_computed == 4  # of the three seeds that were missing, one was finished
    same(rest.curves, whole)


@pytest.mark.parametrize("number", range(1, 14, 2))
def test_wherever_the_disk_fails_the_same_command_resumes_to_the_same_arrays(
    tmp_path, monkeypatch, number
):
    monkeypatch.setattr(_cells, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    whole = run(tmp_path / "whole", seeds=2).curves
    with monkeypatch.context() as patch:
        disk = Disk(patch, number, errno.ENOSPC)
        with pytest.raises(_files.Unwritable, match="cannot write here"):
            run(tmp_path / "full", seeds=2)
        assert disk.count >= number
    assert not list(tmp_path.rglob("*.part"))
    if (tmp_path / "full" / CURVES).exists():
        same(experiments.load_curves(tmp_path / "full" / CURVES), whole)
    same(run(tmp_path / "full", seeds=2).curves, whole)


def mounted(options, script):
    """Run a shell script in which ``disk`` is a separate tmpfs; skip if mounting is not allowed."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    mount = f"mkdir -p disk && mount -t tmpfs -o {options} tmpfs disk"
    tried = shutil.which("unshare") and subprocess.run(
        [*unshare, "sh", "-c", mount], capture_output=True, check=False
    )
    if not tried or tried.returncode:
        pytest.skip("mounting a small disk is not allowed here")
    environment = {**os.environ, "PYTHON": sys.executable, "JAX_PLATFORMS": "cpu"}
    whole = [*unshare, "sh", "-c", f"{mount} && {script}"]
    return subprocess.run(
        whole, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


ITAL = (
    '"$PYTHON" -m ital run regression --methods imt --seeds 2 --steps 1000 --eval-every 1 '
    "--out disk/out"
)


@pytest.mark.parametrize(("size", "left"), [("16k", []), ("96k", ["curves.nc", "summary.csv"])])
def test_a_full_disk(tmp_path, size, left):
    """No space for a cell, or no space for a figure."""
    full = mounted(f"size={size}", f"{ITAL}; echo status $?; find disk -type f; cp -r disk kept")
    status, *files = full.stdout.splitlines()
    assert status == "status 1", full.stderr
    names = {Path(file).name for file in files} - {"curves.png"}
    # On a slow machine a run lasts long enough for a checkpoint, which stays: the next call resumes
    # from it.
    assert sorted(name for name in names if not name.startswith(".checkpoint-")) == left
    for file in tmp_path.rglob("kept/**/*.nc"):
        assert (experiments.load_curves(file)["computed"] == 1).all()
    last = full.stderr.splitlines()[-1]
    assert last.startswith("ital: disk/out/regression/cooperative")
    assert last.endswith("cannot write here: No space left on device")
    assert "Traceback" not in full.stderr


def test_a_read_only_disk(tmp_path):
    full = mounted(
        "size=1m", f"mount -o remount,ro disk && {ITAL}; echo status $?; find disk -type f"
    )
    assert full.stdout.split() == ["status", "2"], full.stderr
    (line,) = full.stderr.splitlines()
    assert line.startswith(
        "ital: cannot write to disk/out/regression/cooperative: disk is read-only"
    )


def command(*arguments, cwd):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, "-m", "ital", *arguments], cwd=cwd, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def kill_at_random_moments(tmp_path, kills, *more):
    """Kill a sweep with all its processes a number of times, at random moments; then let it
    finish.
    """
    sweep = [
        "sweep",
        "regression",
        "--lr",
        "0.001,0.01",
        "--beta",
        "0,500",
        "--methods",
        "imt,ital",
        "--seeds",
        "8",
        "--steps",
        "3000",
        "--seeds-per-cell",
        "1",
        "--points-per-cell",
        "3",
    ]
    for out in ("compiles", "whole"):  # the second is timed: its programs lie on disk
        began = time.monotonic()
        whole = command(*sweep, "--out", out, cwd=tmp_path)
        _, err = whole.communicate(timeout=300)
        took = time.monotonic() - began
        assert whole.returncode == 0, err
    expected = xr.load_dataset(tmp_path / "whole/regression/cooperative/sweep.nc")
    rng = np.random.default_rng(0)
    file = tmp_path / "cut/regression/cooperative/sweep.nc"
    killed = 0
    while killed < kills:
        cut = command(*sweep, *more, "--out", "cut", cwd=tmp_path)
        try:
            cut.communicate(timeout=rng.uniform(0.1, 1.1) * took)
            assert cut.returncode == 0
            shutil.rmtree(tmp_path / "cut")  # it finished before the kill: start again
        except subprocess.TimeoutExpired:
            os.killpg(cut.pid, signal.SIGKILL)
            cut.communicate()
            killed += 1
        if file.exists():  # every file is complete, and its content is right
            there = experiments.load_curves(file)
            run = there["computed"] == 1
            part = expected.sel({"learner": there["learner"], "seed": there["seed"]})
            assert (
                (there["distance"].where(run) == part["distance"].where(run)).where(run, True).all()
            )
    last = command(*sweep, *more, "--out", "cut", cwd=tmp_path)
    _, err = last.communicate(timeout=300)
    assert last.returncode == 0, err
    same(xr.load_dataset(file), expected)
    assert sorted(f.name for f in file.parent.iterdir()) == ["sweep.nc", "sweep.pdf", "sweep.png"]


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["here", "workers"])
def test_twenty_kills_at_random_moments(tmp_path, more):
    kill_at_random_moments(tmp_path, 20, *more)


@pytest.fixture
def signals():
    """Their handlers, which the command line replaces."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("number", "status", "line", "words"),
    [
        (signal.SIGINT, 130, "interrupted", ["run", "--methods", "imt,ital"]),
        (signal.SIGTERM, 143, "terminated", ["run", "--methods", "imt,ital"]),
        (
            signal.SIGTERM,
            143,
            "terminated",
            ["sweep", "--methods", "imt,ital", "--lr", "0.01", "--beta", "9"],
        ),
    ],
)
def test_a_signal_ends_a_command_with_a_checkpoint_and_a_line(
    tmp_path, monkeypatch, capsys, number, status, line, words
):
    command = [words[0], "small", *words[1:], "--seeds", "2", "--steps", "40"]
    blocks = Session.blocks

    def first_block(session, show):
        for block in blocks(session, show):
            signal.raise_signal(number)
            yield block

    with monkeypatch.context() as patch:
        patch.setattr(Session, "blocks", first_block)
        stopped, _, said = ital(capsys, *command, "--out", "cut")
    assert stopped == status
    assert (
        said.splitlines()[-1]
        == f"ital: {line}; finished work is kept, and the same command resumes it"
    )
    assert len(list(tmp_path.glob("cut/small/*/.checkpoint-*"))) == 1
    resumed, _, said = ital(capsys, *command, "--out", "cut")
    assert resumed == 0
    assert "resuming an interrupted run" in said
    ital(capsys, *command, "--out", "whole")
    (cut,), (whole,) = (list(tmp_path.glob(f"{out}/small/*/*.nc")) for out in ("cut", "whole"))
    same(experiments.load_curves(cut), experiments.load_curves(whole))


def test_damaged_results_and_cells_are_computed_again(tmp_path):
    whole = run(tmp_path / "whole").curves
    folder = tmp_path / "results" / Path(CURVES).parent
    run(tmp_path / "results", seeds=1)
    (folder / "cells").mkdir()
    cells = {}
    for seed in (1, 2):
        made = tmp_path / f"one-{seed}"
        experiment = experiments._experiment.Experiment(
            Settings(**{**QUICK, "first_seed": seed, "seeds": 1})
        )
        (made / "cells").mkdir(parents=True)
        (cell,) = _cells.missing_cells(experiment, None, CellSize(1, 2))
        experiments._cells.compute_cell(cell, made)
        cells[seed] = shutil.copy(cell.path(made), folder / "cells")
    Path(cells[1]).write_bytes(Path(cells[1]).read_bytes()[:-1])
    content = bytearray(Path(cells[2]).read_bytes())
    for i in range(8):  # more than what fills up a variable in the file, and means nothing
        content[len(content) // 2 + i] ^= 0xFF
    Path(cells[2]).write_bytes(content)
    said = []
    again = experiments.run(
        Settings(**QUICK), tmp_path / "results", seeds_per_cell=1, draw=False, say=said.append
    )
    assert len([line for line in said if "computing it again" in line]) == 2
    same(again.curves, whole)
    assert sorted(f.suffix for f in (folder / "cells").iterdir()) == [".damaged"] * 2


def test_what_lies_among_the_cells_and_is_none_is_left_alone(tmp_path):
    run(tmp_path, seeds=1)
    cells = tmp_path / Path(CURVES).parent / "cells"
    cells.mkdir()
    shutil.copy(tmp_path / CURVES, cells)
    shutil.copy(tmp_path / CURVES, cells / "0123456789abcdef.nc")
    (cells / "notes.nc").write_text("not a NetCDF file")
    (cells / "fedcba9876543210.nc").mkdir()
    said = []
    settings = Settings(**{**QUICK, "seeds": 2})
    assert (
        experiments.run(
            settings, tmp_path, seeds_per_cell=1, draw=False, say=said.append
        ).lanes_computed
        == 2
    )
    assert said == []
    assert sorted(os.listdir(cells)) == [
        "0123456789abcdef.nc",
        "curves.nc",
        "fedcba9876543210.nc",
        "notes.nc",
    ]


@pytest.mark.parametrize("options", [{}, {"overwrite": True}])
@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (Path.touch, "cells", "cells is not a folder"),
        (Path.mkdir, "curves.nc", "curves.nc is a folder, but the result is a file of this name"),
    ],
)
def test_what_is_in_the_way_is_named_before_anything_is_computed(
    tmp_path, make, name, message, options
):
    folder = tmp_path / Path(CURVES).parent
    folder.mkdir(parents=True)
    make(folder / name)
    with pytest.raises(InputError, match=message):
        experiments.run(Settings(**QUICK), tmp_path, draw=False, **options)
    assert os.listdir(folder) == [name]


def test_a_folder_in_the_place_of_a_table_is_named(tmp_path):
    (tmp_path / Path(CURVES).parent / "summary.csv").mkdir(parents=True)
    with pytest.raises(_files.Unwritable) as refused:
        run(tmp_path, seeds=1)
    assert refused.value.filename.endswith("summary.csv")


def test_files_that_vanish_are_not_waited_for(tmp_path, monkeypatch):
    computed = []
    monkeypatch.setattr(
        experiments._cells, "compute_cell", lambda cell, folder, **options: computed.append(cell)
    )
    with pytest.raises(OSError, match="repeatedly missing"):
        run(tmp_path)
    assert not list(tmp_path.rglob("*.nc"))
    assert len(computed) == 4 * len(set(computed))


def test_a_lock_that_its_owner_has_removed_locks_nobody_out(tmp_path, monkeypatch):
    """One run opens the lock of another; before it can lock it, that one ends and a third
    begins.
    """
    flock = fcntl.flock
    with contextlib.ExitStack() as first, contextlib.ExitStack() as third:
        first.enter_context(_files.owned(tmp_path))

        def late(file, how):
            monkeypatch.setattr(fcntl, "flock", flock)
            first.close()
            third.enter_context(_files.owned(tmp_path))
            flock(file, how)

        monkeypatch.setattr(fcntl, "flock", late)
        with pytest.raises(InputError, match="another run is writing"), _files.owned(tmp_path):
            pass
        assert (tmp_path / ".lock").exists()
    assert not (tmp_path / ".lock").exists()
    with _files.owned(tmp_path):
        pass


def test_a_contended_folder_has_one_owner_at_a_time(tmp_path):
    """Threads that open the lock themselves contend as processes do."""
    rounds, inside, most = 40, [], []

    def contend(name):
        owned = 0
        while owned < rounds:
            with contextlib.suppress(InputError), _files.owned(tmp_path):
                inside.append(name)
                most.append(len(inside))
                time.sleep(0)  # others may begin here
                inside.remove(name)
                owned += 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(contend, range(6)))
    assert len(most) == 6 * rounds
    assert max(most) == 1


# Whoever owns the lock makes a file that must not be there yet, and removes it again.
CONTENDERS = """
import os, sys
from pathlib import Path
from ital.errors import InputError
from ital.tools import files

folder, processes, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def contend():
    owned = 0
    while owned < rounds:
        try:
            with files.owned(folder):
                (folder / "holder").touch(exist_ok=False)
                os.sched_yield()
                (folder / "holder").unlink()
                owned += 1
        except InputError:  # another one owns it
            os.sched_yield()

children = []
for _ in range(processes):
    child = os.fork()
    if child == 0:
        contend()
        os._exit(0)
    children.append(child)
print(sum(os.waitpid(child, 0)[1] == 0 for child in children))
"""


@pytest.mark.slow
def test_twenty_processes_own_a_folder_one_at_a_time(tmp_path):
    # They do not compute.
    contenders = [sys.executable, "-W", "ignore", "-c", CONTENDERS, str(tmp_path), "20", "200"]
    done = subprocess.run(contenders, check=False, capture_output=True, text=True, timeout=600)
    assert done.stdout == "20\n", done.stderr  # each owned it 200 times, and met nobody
    assert done.stderr == ""


def test_writers_of_one_file_do_not_meet(tmp_path):
    _files.write(tmp_path / "file", b"one", mark=".a")
    _files.write(tmp_path / "file", b"other", mark=".b")
    assert (tmp_path / "file").read_bytes() == b"other"
    assert os.listdir(tmp_path) == ["file"]
