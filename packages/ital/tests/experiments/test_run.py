import csv
import dataclasses
import io
import os
import signal

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from ital import experiments, learners, tasks, teachers, teaching
from ital.experiments import Settings
from ital.statistics import number
from tests.worlds import small_classes

LOOP = teaching._program.VERSION

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = {"task": "small", "methods": ("imt", "ital", "ital-2"), "seeds": 3, "steps": 40, "lr": 0.01}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A quick task among the registered ones."""
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )


def run(out, said=None, overwrite=False, **options):
    say = (said if said is not None else []).append
    return experiments.run(Settings(**{**QUICK, **options}), out, say=say, overwrite=overwrite)


def same(one, other):
    xr.testing.assert_identical(one.drop_attrs(deep=False), other.drop_attrs(deep=False))


@pytest.mark.drawn
def test_files_are_as_promised(tmp_path):
    outcome = run(tmp_path)
    folder = tmp_path / "small" / "cooperative"
    assert sorted(file.name for file in folder.iterdir()) == [
        "curves.nc",
        "curves.pdf",
        "curves.png",
        "summary.csv",
    ]
    assert sorted(outcome.files) == sorted(folder.iterdir())
    curves = xr.open_dataset(folder / "curves.nc")
    assert dict(curves.sizes) == {"learner": 3, "seed": 3, "step": 5}
    assert curves["distance"].dims == ("learner", "seed", "step")
    assert curves["distance"].dtype == np.float32
    assert curves["learner"].values.tolist() == ["imt", "ital", "ital-2"]
    assert curves["step"].values.tolist() == [0, 10, 20, 30, 40]
    assert len(curves["distance"].attrs["floor"]) == 3
    expected = {
        "task": "small",
        "teacher": "cooperative",
        "beta": 300.0,
        "lr": 0.01,
        "init": "uniform",
        "steps": 40,
        "batch_size": 20,
        "label_noise": 0.0,
        "data_version": "1",
    }
    assert {name: curves.attrs[name] for name in expected} == expected
    assert {"ital_version", "jax_version", "python_version", "seconds", "device"} <= set(
        curves.attrs
    )
    curves.close()


def test_summary_holds_five_steps_per_method_and_metric(tmp_path):
    outcome = run(tmp_path)
    with (tmp_path / "small/cooperative/summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["task", "teacher", "method", "metric", "step", "mean", "sem", "n"]
    assert len(rows) == 3 * 4 * 5
    row = next(
        r for r in rows if (r["method"], r["metric"], r["step"]) == ("ital", "distance", "20")
    )
    lanes = outcome.curves["distance"].sel({"learner": "ital", "step": 20}).values
    assert float(row["mean"]) == pytest.approx(lanes.mean())
    assert float(row["sem"]) == pytest.approx(lanes.std(ddof=1) / np.sqrt(3))
    assert row["n"] == "3"


def test_missing_lanes_are_added_and_nothing_is_computed_twice(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole", methods=("imt", "ital"), seeds=4).curves
    asked = []

    def open_sessions(task, teacher, methods, settings):
        asked.append(([learner.name for learner in methods], settings.seeds))
        return teaching.open_sessions(task, teacher, methods, settings)

    monkeypatch.setattr("ital.experiments._experiment.open_sessions", open_sessions)
    out = tmp_path / "grown"
    assert run(out, methods=("imt",), seeds=2).lanes_computed == 2
    assert run(out, methods=("ital",), seeds=2, first_seed=1).lanes_computed == 2
    grown = run(out, methods=("imt", "ital"), seeds=4)
    assert grown.lanes_computed == 4
    assert run(out, methods=("imt", "ital"), seeds=4).lanes_computed == 0
    lanes = [(method, seed) for methods, seeds in asked for method in methods for seed in seeds]
    assert len(lanes) == len(set(lanes)) == 8
    assert (grown.curves["computed"] == 1).all()
    for metric in ("distance", "loss", "accuracy", "distance_centred"):
        np.testing.assert_allclose(grown.curves[metric], whole[metric], rtol=2e-4)
    np.testing.assert_allclose(
        grown.curves["distance"].attrs["floor"], whole["distance"].attrs["floor"], rtol=1e-6
    )


def test_gaps_stay_gaps(tmp_path):
    run(tmp_path, methods=("imt",), seeds=2)
    curves = run(tmp_path, methods=("ital",), seeds=1, first_seed=5).curves
    assert curves["computed"].sel({"learner": "imt"}).values.tolist() == [1, 1, 0]
    assert curves["computed"].sel({"learner": "ital"}).values.tolist() == [0, 0, 1]
    assert (curves["diverged_at"] == -1).all()
    summary = (tmp_path / "small/cooperative/summary.csv").read_text().splitlines()
    assert all(line.endswith(",2") for line in summary if ",imt," in line)
    assert all(line.endswith(",,1") for line in summary if ",ital," in line)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"lr": 0.02}, "lr = 0.01, not 0.02"),
        ({"steps": 50}, "steps = 40, not 50"),
        ({"beta": 7.0}, "beta = 300.0, not 7.0"),
        ({"beta": "auto"}, "beta = 300.0, not auto"),
        ({"init": "normal:0.1"}, "init = uniform, not normal:0.1"),
        ({"batch_size": 21}, "batch_size = 20, not 21"),
        ({"label_noise": 0.5}, "label_noise = 0.0, not 0.5"),
        ({"eval_every": 5}, "eval_every = 10, not 5"),
        ({"form": "length:0.1"}, "step_form = rate, not length:0.1"),
    ],
)
def test_a_result_of_other_settings_is_refused_or_overwritten(tmp_path, change, named):
    before = run(tmp_path).curves
    with pytest.raises(ValueError, match=named) as refusal:
        run(tmp_path, **change)
    assert "--out" in str(refusal.value)
    assert "--overwrite" in str(refusal.value)
    same(experiments.load_curves(tmp_path / "small/cooperative/curves.nc"), before)
    assert run(tmp_path, overwrite=True, **change).lanes_computed == 9


def test_a_result_of_another_form_of_step_is_refused_by_the_default(tmp_path):
    run(tmp_path, form="length:0.1")
    with pytest.raises(ValueError, match=r"step_form = length:0\.1, not rate"):
        run(tmp_path)


@pytest.mark.parametrize("field", dataclasses.fields(teaching.Run), ids=lambda field: field.name)
def test_every_setting_of_a_run_tells_results_apart_unless_lanes_may_differ_in_it(field):
    other = {
        "beta": 7.0,
        "beta_decay": 0.1,
        "init": "normal:0.1",
        "eval_every": 5,
        "form": "safe",
        "devices": "all",
    }
    other |= {"diagnostics": True, "optimizer": "adam", "choices": 2, "labels": "chosen"}
    default = Settings("regression")
    if field.name == "labels":  # other methods cannot leave labels out
        default = Settings("regression", methods=("posterior",))
    changed = dataclasses.replace(
        default, **{field.name: other.get(field.name) or 2 * field.default + 1}
    )
    same_result = changed.plan().identity == default.plan().identity
    assert same_result == (field.name in ("seeds", "diagnostics", "devices"))


def test_teachers_have_folders_of_their_own(tmp_path):
    for teacher in ("cooperative", "boltzmann:50"):
        run(tmp_path, teacher=teacher)
    assert sorted(p.name for p in (tmp_path / "small").iterdir()) == ["boltzmann-50", "cooperative"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_file_is_noticed_and_computed_again(tmp_path, damage):
    before = run(tmp_path).curves
    file = tmp_path / "small/cooperative/curves.nc"
    content = bytearray(file.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flip":
        at = content.find(np.float32(before["loss"].values[1, 2, 3]).astype(">f4").tobytes())
        content[at + 1] ^= 1
    elif damage == "empty":
        content = b""
    else:
        content = b"not a NetCDF file"
    file.write_bytes(content)
    said = []
    outcome = run(tmp_path, said)
    assert outcome.lanes_computed == 9
    assert any("curves.nc" in line and "again" in line for line in said)
    same(outcome.curves, before)


class Stop(BaseException):
    """Simulates a kill in the middle of a run."""


def stop_after(monkeypatch, blocks, error):
    """Allow ``blocks`` blocks, then raise."""
    left = [blocks]
    original = teaching.Session.advance

    def advance(self, intervals):
        left[0] -= 1
        if left[0] < 0 and error is Stop:
            raise error
        if left[0] == 0 and error is KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, 1)

    monkeypatch.setattr(teaching.Session, "advance", advance)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop])
def test_an_interrupted_run_resumes_to_the_same_arrays(tmp_path, monkeypatch, blocks, error):
    whole = run(tmp_path / "whole").curves
    with monkeypatch.context() as patch:
        patch.setattr("ital.experiments._cells.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
        stop_after(patch, blocks, error)
        with pytest.raises(error):
            run(tmp_path / "cut")
    folder = tmp_path / "cut/small/cooperative"
    assert [file.name[:11] for file in folder.iterdir()] == [".checkpoint"]
    said = []
    steps = []
    original = teaching.Session.advance
    monkeypatch.setattr(
        teaching.Session, "advance", lambda self, n: steps.append(self.step) or original(self, n)
    )
    resumed = run(tmp_path / "cut", said)
    assert steps[0] == 10 * blocks
    assert any("resuming" in line for line in said)
    same(resumed.curves, whole)
    assert not list(folder.glob(".*"))


def test_a_damaged_checkpoint_is_left_aside(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole").curves
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "cut")
    (file,) = (tmp_path / "cut/small/cooperative").glob(".checkpoint*")
    file.write_bytes(file.read_bytes()[:-7])
    said = []
    same(run(tmp_path / "cut", said).curves, whole)
    assert any("checksum" in line for line in said)


def test_a_checkpoint_of_another_run_is_not_used(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    said = []
    outcome = run(tmp_path, said, methods=("imt",))
    assert outcome.lanes_computed == 3
    assert not any("resuming" in line for line in said)
    assert list((tmp_path / "small/cooperative").glob(".checkpoint-*")), (
        "the other run's checkpoint is left alone"
    )


def test_an_overwriting_run_resumes_too_and_keeps_the_old_result_until_then(tmp_path, monkeypatch):
    before = run(tmp_path, lr=0.02).curves
    whole = run(tmp_path / "whole").curves
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, overwrite=True)
    same(experiments.load_curves(tmp_path / "small/cooperative/curves.nc"), before)
    said = []
    same(run(tmp_path, said, overwrite=True).curves, whole)
    assert any("resuming" in line for line in said)


def test_parts_under_other_names_keep_apart(tmp_path, monkeypatch):
    from ital import learners

    monkeypatch.setitem(learners.REGISTRY, "timid", lambda: learners.teacher_aware(3.0))
    assert run(tmp_path, methods=("ital",)).lanes_computed == 3
    curves = run(tmp_path, methods=("timid",)).curves
    assert curves["beta"].sel({"learner": "timid"}).values.tolist() == [3.0] * 3
    with pytest.raises(ValueError, match="takes no argument"):
        run(tmp_path, methods=("ital:auto",))


def test_odd_settings_of_a_task_survive_the_file(tmp_path, monkeypatch):
    odd = {"flag": True, "nothing": None, "sizes": (1, 2), "big": 2**40, "np": np.int64(3)}
    monkeypatch.setitem(
        tasks.REGISTRY, "odd", lambda: small_classes(settings=odd)._replace(name="odd")
    )
    assert run(tmp_path, task="odd").lanes_computed == 9
    assert run(tmp_path, task="odd").lanes_computed == 0


def test_a_run_that_cannot_write_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot"):
        run(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]


def test_two_runs_do_not_share_a_folder(tmp_path):
    refused = []

    def run_again(line):
        """Called while the first run writes to the folder."""
        with pytest.raises(ValueError, match="another run"):
            run(tmp_path, overwrite=True)
        refused.append(line)

    folder = tmp_path / "small/cooperative"
    run(tmp_path)
    (folder / "curves.nc").write_bytes(b"damaged")
    experiments.run(Settings(**QUICK), tmp_path, say=run_again)
    assert refused


@pytest.mark.parametrize(
    "bad",
    [
        {"task": "smal"},
        {"teacher": "x"},
        {"methods": ("x",)},
        {"seeds": 0},
        {"batch_size": 1},
        {"beta": float("inf")},
    ],
)
def test_bad_settings_write_nothing(tmp_path, bad):
    with pytest.raises(ValueError, match=r".+"):
        run(tmp_path / "out", **bad)
    assert not (tmp_path / "out").exists()


def test_auto_beta_is_stored_per_seed(tmp_path):
    curves = run(tmp_path, beta="auto", lr=0.3).curves
    assert curves.attrs["beta"] == "auto"
    assert len(set(curves["beta"].sel({"learner": "ital"}).values)) == 3


def test_lanes_of_another_version_are_computed_again(tmp_path, monkeypatch):
    first = run(tmp_path)
    assert set(first.curves["version"].values.ravel()) == {f"{LOOP}.1.1"}
    monkeypatch.setitem(learners.REGISTRY, "imt", lambda: learners.imt()._replace(version=2))
    again = run(tmp_path, seeds=4)
    assert again.lanes_computed == 4 + 2  # all of IMT, and the new seed of the others
    versions = {
        str(name): set(again.curves["version"].sel({"learner": name}).values)
        for name in QUICK["methods"]
    }
    assert versions == {"imt": {f"{LOOP}.1.2"}, "ital": {f"{LOOP}.1.1"}, "ital-2": {f"{LOOP}.1.1"}}
    assert run(tmp_path, seeds=4).lanes_computed == 0


def test_methods_that_an_older_version_of_the_teacher_taught_are_named(tmp_path, monkeypatch):
    run(tmp_path)
    monkeypatch.setitem(
        teachers.REGISTRY, "cooperative", lambda: teachers.cooperative()._replace(version=7)
    )
    said = []
    again = experiments.run(
        Settings(**{**QUICK, "methods": ("imt",)}), tmp_path, draw=False, say=said.append
    )
    assert again.lanes_computed == 3
    (line,) = said
    assert line.startswith("ital, ital-2: computed by an earlier version of the teacher")
    said.clear()
    again = experiments.run(Settings(**QUICK), tmp_path, draw=False, say=said.append)
    assert (again.lanes_computed, said) == (6, [])


def test_a_file_without_versions_is_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(teaching._program, "VERSION", 1)
    run(tmp_path, methods=("imt",))
    file = tmp_path / "small/cooperative/curves.nc"
    experiments.save_curves(experiments.load_curves(file).drop_vars("version"), file)
    added = run(tmp_path)
    assert added.lanes_computed == 6
    assert added.curves["version"].sel({"learner": "imt"}).values.tolist() == [""] * 3
    assert run(tmp_path).lanes_computed == 0
    monkeypatch.setattr(teaching._program, "VERSION", 2)
    assert run(tmp_path).lanes_computed == 9


def test_pictures_are_of_the_run_itself(tmp_path, monkeypatch):
    """Drawing the first seed does not teach it a second time."""
    (tmp_path / "map.csv").write_text("1,0\n-1,0.5\n")
    settings = {
        "task": "irl",
        "map": str(tmp_path / "map.csv"),
        "methods": ("imt", "ital"),
        "seeds": 1,
    }
    monkeypatch.setattr("ital.experiments._pictures.watch", None)
    made = run(tmp_path, **settings)
    assert (tmp_path / "irl/cooperative/pictures.png").exists()
    path = made.curves["path"]
    assert path.dims == ("learner", "frame", "parameter")
    assert path.shape == (2, 5, 4)
    target = made.task.world(0).truth.target
    distances = np.linalg.norm(path.values - target, axis=-1)
    np.testing.assert_allclose(distances, made.curves["distance"].isel(seed=0), rtol=1e-5)
    for more in ({"seeds": 2}, {"methods": ("imt", "ital-2")}):
        grown = run(tmp_path, **{**settings, **more}).curves["path"]
        np.testing.assert_array_equal(grown.sel({"learner": path["learner"].values}), path)
    assert np.isfinite(grown.sel({"learner": "ital-2"}).values).all()


def test_files_of_earlier_versions_are_read_and_continued(tmp_path):
    """Their dimension of methods was called ``method``, which xarray takes for an argument of its
    own.
    """
    settings = Settings("regression", methods=("imt",), seeds=2, steps=10)
    file = experiments.run(settings, tmp_path).files[0].with_name("curves.nc")
    before = experiments.load_curves(file)
    experiments.save_curves(before.rename(learner="method"), file)
    outcome = experiments.run(dataclasses.replace(settings, methods=("imt", "ital")), tmp_path)
    assert outcome.lanes_computed == 2  # ital's; imt was there
    np.testing.assert_array_equal(
        outcome.curves["distance"].sel(learner="imt"), before["distance"].sel(learner="imt")
    )


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_console_gets_more_tables_but_whole_words(tmp_path, width):
    outcome = run(tmp_path)
    console = Console(file=io.StringIO(), width=width)
    experiments.print_outcome(outcome, console)
    text = console.file.getvalue()
    heads = [
        cell.strip() for line in text.splitlines() if "method" in line for cell in line.split("┃")
    ]
    for metric in ("distance", "loss", "accuracy"):
        assert heads.count(metric) == 1
        mean, error = (
            float(f(outcome.curves[metric].sel(learner="imt", step=40)))
            for f in (np.mean, standard_error)
        )
        assert f"{number(mean)} ± {number(error)}" in text
    assert "…" not in text
    assert max(map(len, text.partition(str(tmp_path))[0].splitlines())) <= width


def standard_error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values))
