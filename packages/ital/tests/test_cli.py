import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest
import xarray as xr

from ital import __version__, tasks
from tests.typed import check_refused, ital
from tests.worlds import small_classes

pytestmark = pytest.mark.usefixtures("undrawn")
ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_version(capsys):
    assert ital(capsys, "--version") == (0, f"ital {__version__}\n", "")


@pytest.mark.alone
def test_list_names_every_part_on_a_line(capsys):
    status, out, _ = ital(capsys, "list")
    assert status == 0
    for name in ("regression", "gaussian", "cooperative", "boltzmann", "batch", "ital-15"):
        assert re.search(rf"^  {name} +\S", out, re.MULTILINE)


@pytest.mark.alone
def test_list_describes_a_task_with_its_teaching_risk(capsys):
    status, out, _ = ital(capsys, "list", "regression")
    assert status == 0
    assert re.search(r"^  β +5000$", out, re.MULTILINE)
    # Rotated views.
    assert float(re.search(r"^  teaching risk +(\S+) ", out, re.MULTILINE)[1]) < 1e-6
    assert ital(capsys, "list", "regresion")[0] == 2


@pytest.mark.parametrize(
    "command",
    [[], ["run"], ["sweep"], ["list"], ["bench"]],
)
def test_help_shows_an_example(capsys, command):
    status, out, _ = ital(capsys, *command, "--help")
    assert status == 0
    assert "Example: ital" in out


@pytest.mark.drawn
def test_run_prints_a_table_and_the_files(capsys, tmp_path):
    status, out, err = ital(
        capsys,
        "run",
        "small",
        "--methods",
        "imt,ital",
        "--seeds",
        "2",
        "--steps",
        "20",
        "--lr",
        "0.01",
    )
    assert status == 0, err
    assert "ITAL" in out
    assert "±" in out
    assert "results/small/cooperative/curves.nc" in out
    assert (tmp_path / "results/small/cooperative/curves.png").exists()
    status, out, _ = ital(
        capsys,
        "run",
        "small",
        "--methods",
        "imt,ital",
        "--seeds",
        "2",
        "--steps",
        "20",
        "--lr",
        "0.01",
    )
    assert "nothing was computed" in out


def test_the_earlier_name_of_form_is_still_read(capsys):
    words = ["run", "small", "--methods", "imt", "--seeds", "1", "--steps", "10"]
    status, _, err = ital(capsys, *words, "--step", "length:0.1")
    assert status == 0, err
    for same in (["--step=length:0.1"], ["--form", "length:0.1"]):
        status, out, err = ital(capsys, *words, *same)
        assert status == 0, err
        assert "nothing was computed" in out
    _, out, _ = ital(capsys, "run", "--help")
    assert "--form" in out
    assert not re.search(r"--step\b(?!-)", out)


@pytest.mark.drawn
def test_a_map_is_taught_drawn_and_animated(capsys, tmp_path):
    (tmp_path / "map.csv").write_text("0,1\n-1,0\n")
    arguments = [
        "run",
        "irl",
        "--map",
        "map.csv",
        "--methods",
        "imt,ital",
        "--seeds",
        "1",
        "--steps",
        "6",
        "--animate",
    ]
    status, out, err = ital(capsys, *arguments)
    assert status == 0, err
    folder = tmp_path / "results/irl/cooperative"
    names = {
        "curves.nc",
        "curves.pdf",
        "curves.png",
        "pictures.gif",
        "pictures.pdf",
        "pictures.png",
        "summary.csv",
    }
    assert set(os.listdir(folder)) == names
    for name in names:
        assert f"results/irl/cooperative/{name}" in out
    drawn = (folder / "pictures.gif").stat().st_mtime_ns
    status, out, _ = ital(capsys, *arguments)
    assert "nothing was computed" in out
    assert (folder / "pictures.gif").stat().st_mtime_ns == drawn
    status, _, _ = ital(capsys, *arguments[:-1], "--overwrite")
    assert not (folder / "pictures.gif").exists()  # of the result before
    status, _, _ = ital(capsys, *arguments)
    assert (folder / "pictures.gif").exists()
    (tmp_path / "map.csv").write_text("0,1\n-1,2\n")
    status, _, err = ital(capsys, *arguments)
    assert status == 2
    assert "was made with map = " in err


@pytest.mark.alone
def test_sweep_prints_the_best_settings_the_winner_and_the_files(capsys, tmp_path):
    arguments = [
        "sweep",
        "small",
        "--lr",
        "0.01,0.1",
        "--beta",
        "0,300",
        "--methods",
        "imt,ital",
        "--seeds",
        "2",
        "--steps",
        "20",
    ]
    status, out, err = ital(capsys, *arguments)
    assert status == 0, err
    assert re.search(r"│ +20 │ (IMT|ITAL) ", out)
    assert "wins, closer than" in out
    assert "Best naive: IMT (η = " in out
    assert "of 4 settings is closer than IMT at the same η" in out
    assert re.search(r"│ η +│$", out, re.MULTILINE)  # two values of η: the better is at an edge
    assert "results/small/cooperative/sweep.nc" in out
    assert (tmp_path / "results/small/cooperative/sweep.png").exists()
    status, out, _ = ital(capsys, *arguments)
    assert "nothing was computed" in out


def test_divergence_is_in_the_table(capsys):
    status, out, _ = ital(
        capsys,
        "run",
        "small",
        "--methods",
        "imt,ital",
        "--seeds",
        "2",
        "--steps",
        "40",
        "--lr",
        "1e30",
    )
    assert status == 0
    assert re.search(
        r"IMT diverged: values are not finite from step 10 on \(2 of 2 seeds\)",
        " ".join(out.split()),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "regresion"], "did you mean 'regression'"),
        (["run", "small", "--teacher", "coop"], "did you mean 'cooperative'"),
        (["run", "small", "--methods", "imt,itall"], "did you mean 'ital'"),
        (["run", "small", "--methods", ","], "has an empty item"),
        (["run", "small", "--methods", "imt,imt"], "given twice"),
        (["run", "small", "--beta", "nan"], "finite number or 'auto'"),
        (["run", "small", "--beta=-inf"], "finite number or 'auto'"),
        (["run", "small", "--beta", "much"], "finite number or 'auto'"),
        (["run", "small", "--lr", "0"], "positive and finite"),
        (["run", "small", "--lr", "nan"], "positive and finite"),
        (["run", "small", "--lr=-1"], "positive and finite"),
        (["run", "small", "--lr", "fast"], "--lr"),
        (["run", "small", "--seeds", "0"], "at least one seed"),
        (["run", "small", "--steps", "0"], "steps must be at least 1"),
        (["run", "small", "--batch-size", "10"], "'ital-15' sees 15 examples"),
        (["run", "small", "--init", "zero"], "uniform"),
        (["run", "small", "--label-noise", "2"], "probability"),
        (["run", "small", "--platform", "tpu"], "cpu or gpu"),
        (["run", "small", "--platform", "gpu"], "finds no GPU"),
        (["run", "small", "--out", "file"], "file"),
        (["run"], "argument"),
        (["sweep", "small", "--lr", "0.1"], "--beta"),
        (
            ["sweep", "small", "--lr", "0.1,fast", "--beta", "0"],
            "finite numbers separated by commas",
        ),
        (["sweep", "small", "--lr", "0.1", "--beta", "auto"], "finite numbers separated by commas"),
        (["sweep", "small", "--lr", "0.1,-1", "--beta", "0"], "positive and finite"),
        (["sweep", "small", "--lr", "0.1,0.1", "--beta", "0"], "given twice"),
        (["sweep", "small", "--lr", "0.1", "--beta", ","], "has an empty item"),
        (
            ["sweep", "small", "--lr", "0.1", "--beta=-5", "--methods", "itall"],
            "did you mean 'ital'",
        ),
        (["run", "small", "--what"], "--what"),
        (["dance"], "dance"),
        (["run", "small", "--devices", "1000"], "devices = 1000, but JAX finds"),
        (
            ["sweep", "small", "--lr", "0.1", "--beta", "1", "--devices", "two"],
            "a whole number of at least 1, or 'all'",
        ),
        (["bench", "--lanes", "7"], "multiple of 8"),
        (["bench", "--test-rows", "-5"], "test row"),
        (["run", "small", "--steps", "99999999999"], "below"),
        (["run", "small", "--eval-every", "99999999999"], "below"),
        (["run", "small", "--methods", "ital:auto"], "takes no argument"),
        (["run", "irl"], "--map FILE"),
        (["run", "irl", "--map", "file"], "holds no rewards"),
        (["run", "irl", "--map", "nowhere"], "cannot read the map nowhere"),
        (["run", "irl-dense", "--map", "file"], "takes no --map"),
        (["run", "irl-dense", "--label-noise", "0.1"], "no labels"),
        (["run", "regression", "--teacher-loss", "zero"], "has no choice of teacher_loss"),
        (["run", "regression", "--equations", "9"], "has no exam in equations"),
        (
            ["run", "--data", "t.csv", "--label", "y", "--equations", "9"],
            "for the equation tasks, not for a table",
        ),
        (["run", "small", "--animate"], "no picture"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(capsys, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    (tmp_path / "cache").mkdir(exist_ok=True)
    check_refused(capsys, tmp_path, arguments, message)


# The command with a small task, a checkpoint after every block, so that a short run has some, and
# without figures.
HASTY = """
import matplotlib.figure
from ital import tasks
from ital.cli import main
from ital.experiments import _cells
from tests.worlds import small_classes

tasks.REGISTRY["small"] = lambda **options: small_classes(**options)._replace(name="small")
_cells.SECONDS_BETWEEN_CHECKPOINTS = 0.0
matplotlib.figure.Figure.savefig = lambda figure, file, **options: file.write(b"figure")
main()
"""


def command(*arguments, cwd):
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
        "PYTHONPATH": path,
    }
    return subprocess.Popen(
        [sys.executable, "-c", HASTY, *arguments], cwd=cwd, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def checkpoints(folder):
    """The checkpoints of a run, and when they were written."""
    return {
        (file, file.stat().st_mtime_ns)
        for file in folder.rglob(".checkpoint-*")
        if file.suffix != ".part"
    }


def test_interrupting_and_killing_lose_nothing(capsys, tmp_path):
    """Ctrl-C and kill −9 while it teaches; the same command then ends with the same arrays."""
    run = [
        "run",
        "small",
        "--methods",
        "imt,ital",
        "--seeds",
        "6",
        "--steps",
        "4000",
        "--eval-every",
        "100",
    ]
    # Here: the commands load the programs that it compiles.
    status, _, err = ital(capsys, *run, "--out", "whole")
    assert status == 0, err
    expected = xr.load_dataset(tmp_path / "whole/small/cooperative/curves.nc")
    for stop in (signal.SIGKILL, signal.SIGINT):
        before = checkpoints(tmp_path / "cut")
        cut = command(*run, "--out", "cut", cwd=tmp_path)
        while not checkpoints(tmp_path / "cut") - before:
            assert cut.poll() is None, "it ended before a checkpoint"
            time.sleep(0.01)
        cut.send_signal(stop)
        _, err = cut.communicate(timeout=60)
        assert cut.returncode == (130 if stop == signal.SIGINT else -signal.SIGKILL), err
        if stop == signal.SIGINT:
            assert "the same command resumes" in err.splitlines()[-1]
    last = command(*run, "--out", "cut", cwd=tmp_path)
    _, err = last.communicate(timeout=300)
    assert last.returncode == 0, err
    assert "resuming an interrupted run" in err
    resumed = xr.load_dataset(tmp_path / "cut/small/cooperative/curves.nc")
    xr.testing.assert_identical(resumed.drop_attrs(deep=False), expected.drop_attrs(deep=False))
    assert not list((tmp_path / "cut/small/cooperative").glob(".*"))


def test_bench_reports_json(capsys, monkeypatch):
    from ital.bench import _cases

    monkeypatch.setattr(
        _cases,
        "cases",
        lambda rows: {
            "small": _cases.Case(
                small_classes(),
                functools.partial(
                    _cases._numpy_loop.steps_per_second, _cases._numpy_loop.cross_entropy
                ),
            )
        },
    )
    status, out, err = ital(capsys, "bench", "--lanes", "16", "--steps", "40", "--json")
    assert status == 0, err
    report = json.loads(out)
    row = report["cases"]["small"]
    assert row["ital_over_numpy"] == pytest.approx(
        row["ital_steps_per_second"] / row["numpy_steps_per_second"]
    )
    floor = row["floor_steps_per_second"]
    assert row["ital_over_floor_time"] == pytest.approx(floor / row["ital_steps_per_second"])
    assert row["ital_steps_per_second"] == pytest.approx(16 * 40 / row["ital_seconds"])
