import asyncio
import collections
import concurrent.futures
import contextlib
import functools
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import xarray as xr

from ital import experiments, tasks
from ital.errors import InputError
from ital.experiments import Incomplete, Settings, _cells, _engines, _experiment
from tests.experiments import parts
from tests.typed import ital

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = {"methods": ("imt", "ital"), "steps": 20, "lr": 0.01}


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """The workers' tasks under the same names, but harmless and uncounted."""
    for name in ("small", "slow", "faulty"):
        made = functools.partial(parts.task, name, lambda seed: None)
        monkeypatch.setitem(tasks.REGISTRY, name, made)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def workers(monkeypatch, tmp_path):
    """Dask, whose workers know the tests' tasks and log the worlds that they make."""
    # Brings its own settings to Dask's.
    pytest.importorskip("distributed", reason="needs the extra cluster")
    import dask

    monkeypatch.setenv(parts.LOG, str(tmp_path / "worlds.log"))
    with dask.config.set({"distributed.worker.preload": ["tests.experiments.parts"]}):
        yield


def same(one, other):
    xr.testing.assert_identical(one.drop_attrs(deep=False), other.drop_attrs(deep=False))


def made(tmp_path):
    """How often workers made the world of each seed."""
    lines = (tmp_path / "worlds.log").read_text().splitlines()
    return collections.Counter(int(line.split()[0]) for line in lines)


def is_worker(command):
    """Whether a child is one of Dask's workers, which rename themselves where setproctitle is
    installed.
    """
    return any(name in " ".join(command) for name in ("spawn_main", "dask worker"))


class Killer(threading.Thread):
    """Kill a worker of this process every few cells; by time, a busy machine would never finish."""

    def __init__(self, kills, pause, cells):
        super().__init__(daemon=True)
        self.kills, self.pause, self.cells = kills, pause, cells
        self.stop, self.killed = threading.Event(), []

    def run(self):
        import psutil

        rng = np.random.default_rng(0)
        next_at = 1
        while len(self.killed) < self.kills and not self.stop.wait(self.pause):
            children = []
            with contextlib.suppress(psutil.Error):  # one has just ended
                children = [p for p in psutil.Process().children() if is_worker(p.cmdline())]
            begun = sum(made(Path(os.environ[parts.LOG]).parent).values())
            if children and begun >= next_at:
                victim = children[rng.integers(len(children))]
                victim.kill()
                self.killed.append(victim.pid)
                next_at = begun + self.cells


def swept(out, seeds, lrs, engine=None, task="slow"):
    settings = Settings(task, seeds=seeds, **{**QUICK, "methods": ("imt",)})
    return experiments.sweep(
        settings, lrs, [0.0], out, engine=engine, seeds_per_cell=1, points_per_cell=1
    )


def kill_while_sweeping(tmp_path, seeds, lrs, **kills):
    """A sweep of seeds × lrs cells on two workers that are killed, compared with an undisturbed
    sweep.
    """
    (tmp_path / "worlds.log").write_text("")
    killer = Killer(**kills)
    killer.start()
    try:
        found = swept(tmp_path / "killed", seeds, lrs, experiments.cluster(workers=2))
    finally:
        killer.stop.set()
        killer.join()
    assert len(killer.killed) >= 2
    same(found.grid, swept(tmp_path / "alone", seeds, lrs).grid)
    assert (found.grid["computed"] == 1).all()
    cells = seeds * len(lrs)
    computed = sum(made(tmp_path).values())
    assert cells <= computed <= cells + len(killer.killed)
    assert not list((tmp_path / "killed").rglob("cells"))
    return cells, len(killer.killed), computed


def test_killed_workers_cost_no_cell_and_no_digit(tmp_path, workers):
    kill_while_sweeping(
        tmp_path, seeds=6, lrs=[0.01, 0.02, 0.03, 0.04, 0.05], kills=2, pause=0.05, cells=5
    )


@pytest.mark.slow
def test_many_cells_and_many_kills(tmp_path, workers, capsys):
    counts = kill_while_sweeping(
        tmp_path, seeds=21, lrs=list(np.geomspace(0.001, 0.1, 10)), kills=1000, pause=2.0, cells=4
    )
    with capsys.disabled():
        print("cells, kills, computed:", counts)


@contextlib.contextmanager
def scheduler(tmp_path, port):
    """A scheduler and two workers, each a separate process as on a real cluster; yields the
    scheduler's.
    """
    at = f"tcp://127.0.0.1:{port}"
    environment = {**os.environ, "PYTHONPATH": str(Path(parts.__file__).parents[2])}
    start = functools.partial(
        subprocess.Popen,
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    dask = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        at,
        "--nthreads",
        "1",
        "--no-dashboard",
        "--resources",
        "GPU=1",
        "--preload",
        "tests.experiments.parts",
    ]
    processes = [start([*dask, "--no-dashboard"]), start(worker), start(worker)]
    try:
        yield processes[0]
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


@pytest.mark.slow
def test_a_lost_scheduler_ends_in_a_line_and_the_same_command_resumes(
    tmp_path, workers, capsys, monkeypatch
):
    command = [
        "sweep",
        "slow",
        "--lr",
        "0.01,0.02,0.03",
        "--beta",
        "0",
        "--methods",
        "imt",
        "--seeds",
        "20",
        "--steps",
        "20",
        "--points-per-cell",
        "1",
        "--seeds-per-cell",
        "1",
        "--resource",
        "GPU",
    ]
    (tmp_path / "worlds.log").write_text("")
    with scheduler(tmp_path, 18786) as process:

        def kill():
            while sum(made(tmp_path).values()) < 15:
                time.sleep(0.1)
            process.kill()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        status, _, err = patient(capsys, *command, "--scheduler", "tcp://127.0.0.1:18786")
        killer.join()
    assert status == 1
    assert (
        "the scheduler is gone; finished work is kept, and the same command resumes it"
        in err.splitlines()[-1]
    )
    with scheduler(tmp_path, 18787):
        status, _, err = patient(capsys, *command, "--scheduler", "tcp://127.0.0.1:18787")
    assert status == 0, err
    assert 60 <= sum(made(tmp_path).values()) <= 60 + 2  # at most two cells were running
    status, _, _ = ital(capsys, *command[:-2], "--out", "alone")
    same(*(xr.load_dataset(f"{out}/slow/cooperative/sweep.nc") for out in ("results", "alone")))


@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError(), concurrent.futures.CancelledError("gone"), OSError("timed out")],
)
def test_a_scheduler_that_ends_while_it_passes_on_a_result_is_lost_too(error):
    distributed, send = (
        mock.MagicMock(),
        mock.MagicMock(spec=_engines._Sender, client=mock.MagicMock()),
    )
    send.client.scheduler.address = "tcp://there"
    send.return_value.configure_mock(status="finished", **{"result.side_effect": error})
    distributed.as_completed.side_effect = lambda futures, **_: iter(futures)
    with pytest.raises(ConnectionError, match="the scheduler is gone") as lost:
        list(
            _engines._as_they_finish(distributed, send, [mock.Mock(spec=_cells.Cell)], print, print)
        )
    assert lost.value.filename == "tcp://there"


def patient(capsys, *arguments):
    """The command, once the scheduler answers."""
    for _ in range(6):  # ten seconds each
        status, out, err = ital(capsys, *arguments)
        if "no Dask scheduler answers" not in err:
            break
        time.sleep(1)
    return status, out, err


FAULTY = ["run", "faulty", "--methods", "imt", "--seeds", "6", "--steps", "20"]


def test_cells_that_fail_are_left_out_and_shown_and_the_rest_is_there(tmp_path, workers, capsys):
    status, out, err = ital(capsys, *FAULTY, "--workers", "2")
    assert status == 1
    assert re.fullmatch(
        r"ital: 2 of 6 cells failed \(.+\); all others are computed and stored",
        err.splitlines()[-1],
    )
    assert "RuntimeError: no world of this number" in err
    assert "in faulty" in err  # the traceback of the worker
    assert "3 workers died while computing this cell" in err
    again = "ital run faulty --steps=20 --seeds=1 --methods=imt --first-seed=3 --out=results"
    assert f"try it again with: {again}" in err
    assert "curves.png" in out
    folder = tmp_path / "results/faulty/cooperative"
    assert (folder / "curves.png").exists()
    assert xr.load_dataset(folder / "curves.nc")["seed"].values.tolist() == [0, 1, 2, 5]
    assert made(tmp_path) == {0: 1, 1: 1, 2: 1, 3: 3, 4: 3, 5: 1}
    status, _, err = ital(capsys, *again.split()[1:])  # here nothing is faulty
    assert status == 0, err
    status, _, err = ital(capsys, *FAULTY)
    assert status == 0, err
    whole = experiments.run(
        Settings("faulty", methods=("imt",), seeds=6, steps=20), "whole", seeds_per_cell=1
    )
    same(xr.load_dataset(folder / "curves.nc"), xr.load_dataset(whole.files[0]))
    assert not list(folder.glob("cells"))


def test_a_cell_that_fails_here_is_left_out_too(tmp_path, monkeypatch, capsys):
    calls = []

    def faulty(seed):
        calls.append(seed)
        if seed == 3:
            raise RuntimeError("no world of this number")

    monkeypatch.setitem(tasks.REGISTRY, "faulty", functools.partial(parts.task, "faulty", faulty))
    status, _, err = ital(capsys, *FAULTY, "--seeds-per-cell", "1")
    assert status == 1
    assert calls.count(3) == 3
    assert err.count("Traceback") == 1
    assert "attempt 3 of 3" in err
    assert xr.load_dataset("results/faulty/cooperative/curves.nc")["seed"].values.tolist() == [
        0,
        1,
        2,
        4,
        5,
    ]


def test_when_all_fails_there_is_nothing_to_show(tmp_path, monkeypatch, capsys):
    def broken(seed):
        if calls.append(seed) or len(calls) > 2:
            raise RuntimeError("no world at all")

    calls = []
    monkeypatch.setitem(tasks.REGISTRY, "faulty", functools.partial(parts.task, "faulty", broken))
    status, out, err = ital(capsys, *FAULTY)
    assert (status, out) == (1, "")
    assert "no world at all" in err
    assert not Path("results/faulty/cooperative/curves.nc").exists()


def test_a_sweep_shows_what_is_left_of_it(tmp_path, monkeypatch):
    original = _cells.compute_cell

    def compute_cell(cell, folder, **options):
        if any(lane.lr == 0.1 and lane.method == "ital" for lane in cell.lanes):
            raise RuntimeError("not this one")
        original(cell, folder, **options)

    monkeypatch.setattr(_cells, "compute_cell", compute_cell)
    with pytest.raises(Incomplete) as incomplete:
        experiments.sweep(
            Settings("small", seeds=2, **QUICK),
            [0.01, 0.1],
            [0.0, 300.0],
            tmp_path,
            points_per_cell=1,
        )
    assert len(incomplete.value.failures) == 2
    cell = incomplete.value.failures[0].cell
    assert {lane.method for lane in cell.lanes} == {"ital"}
    # The order of the result.
    assert "--methods=imt,ital " in cell.experiment.command(cell.seeds, tmp_path)
    rest = incomplete.value.result
    assert rest.grid["computed"].sel({"learner": "ital", "lr": 0.1}).values.tolist() == [
        [0, 0],
        [0, 0],
    ]
    assert [setting.lr for setting in rest.verdicts()[0].best if setting.method == "ital"] == [0.01]
    assert all(file.exists() for file in rest.files)


def test_a_large_sweep_is_shared_by_processes_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr(
        _engines, "processes", lambda number, platform: ("processes", number, platform)
    )
    monkeypatch.setattr(
        _engines, "cluster", lambda **options: ("cluster", options["workers"], options["scheduler"])
    )
    monkeypatch.setattr(_engines._processes, "number_for", lambda seeds: min(seeds, 4))
    large = {"seeds": 20, "lane_steps": experiments.LARGE_SWEEP}
    assert experiments.engine_for(**large, platform="cpu") == ("processes", 4, "cpu")
    assert experiments.engine_for(**large, workers=0) is None
    assert experiments.engine_for(seeds=20, lane_steps=experiments.LARGE_SWEEP - 1) is None
    assert experiments.engine_for(**large, workers=2) == ("cluster", 2, None)
    assert experiments.engine_for(**large, scheduler="tcp://host:8786") == (
        "cluster",
        None,
        "tcp://host:8786",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "-1"], "at least 1"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "choose one"),
        (["--scheduler", "nowhere"], "no Dask scheduler answers at nowhere"),
        (["--resource", "GPU"], "add --workers or --scheduler"),
        (["--seeds-per-cell", "0"], "at least 1"),
        (["--workers", "2", "--platform", "tpu"], "cpu or gpu"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(tmp_path, capsys, arguments, message):
    pytest.importorskip("distributed", reason="needs the extra cluster")
    status, out, err = ital(capsys, "run", "small", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert message in err
    assert not Path("results").exists()


def test_without_dask_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, err = ital(capsys, "run", "small", "--workers", "2")
    assert status == 2
    assert "[cluster]'" in err
    assert not Path("results").exists()


def test_a_worker_must_see_the_folder(tmp_path):
    settings = Settings("small", seeds=1, **QUICK)
    (cell,) = _cells.missing_cells(
        _experiment.Experiment(settings), None, _experiment.CellSize(1, 2)
    )
    with pytest.raises(InputError, match="file system that all workers share"):
        _engines.attempt(cell, str(tmp_path), "token", None)
