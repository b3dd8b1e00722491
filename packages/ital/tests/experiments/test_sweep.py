import io
import json
import os

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import ital
from ital import experiments, learners, tasks, teaching
from ital.errors import InputError
from ital.experiments import Settings, _experiment
from tests.experiments.test_run import Stop, stop_after
from tests.worlds import classes_pool, small_classes

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = {"task": "small", "methods": ("imt", "ital"), "seeds": 2, "steps": 20}
LRS, BETAS = [0.01, 0.1, 1e30], [0.0, 300.0]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A quick task among the registered ones."""
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )


def sweep(out, said=None, lr=LRS, beta=BETAS, overwrite=False, metric=None, **options):
    say = (said if said is not None else []).append
    settings = Settings(**{**QUICK, **options})
    return experiments.sweep(settings, lr, beta, out, say=say, overwrite=overwrite, metric=metric)


@pytest.mark.drawn
def test_files_and_dimensions_are_as_promised(tmp_path):
    found = sweep(tmp_path)
    folder = tmp_path / "small" / "cooperative"
    assert sorted(file.name for file in folder.iterdir()) == ["sweep.nc", "sweep.pdf", "sweep.png"]
    assert sorted(found.files) == sorted(folder.iterdir())
    with xr.open_dataset(folder / "sweep.nc") as grid:
        assert dict(grid.sizes) == {"learner": 2, "lr": 3, "beta": 2, "seed": 2, "step": 3}
        assert grid["distance"].dims == ("learner", "lr", "beta", "seed", "step")
        assert grid["distance"].dtype == np.float32
        assert grid["lr"].values.tolist() == LRS
        assert grid["label"].values.tolist() == ["IMT", "ITAL"]
        assert grid.attrs["lr"] == "[0.01, 0.1, 1e+30]"
        assert json.loads(grid.attrs["without_beta"]) == ["imt"]
        assert {"task", "teacher", "init", "steps", "seconds", "device", "ital_version"} <= set(
            grid.attrs
        )
        assert len(grid["distance"].attrs["floor"]) == 2
    # imt has a lane per η, ital one per η and β
    assert found.lanes_computed == (3 + 6) * 2
    assert [verdict.step for verdict in found.verdicts()] == [20]
    assert found.plot().axes


def test_a_cell_is_what_a_run_with_its_numbers_gives(tmp_path):
    methods = ("batch", "imt", "ital", "imt-matched")
    grid = sweep(tmp_path, methods=methods).grid
    for lr in LRS[:2]:
        for beta in BETAS:
            single = ital.teach(
                small_classes(), learner=list(methods), steps=20, seeds=2, lr=lr, beta=beta
            ).curves
            for metric in ("distance", "loss", "accuracy"):
                np.testing.assert_allclose(
                    grid[metric].sel(lr=lr, beta=beta), single[metric], rtol=2e-4, atol=1e-6
                )
    imt = grid["distance"].sel({"learner": "imt"})
    assert (imt.sel(beta=0.0, lr=LRS[:2]) == imt.sel(beta=300.0, lr=LRS[:2])).all()
    assert (grid["diverged_at"].sel(lr=1e30) == 10).all()
    assert (grid["diverged_at"].sel(lr=LRS[:2]) == -1).all()


def test_the_whole_grid_is_one_compiled_program(tmp_path):
    before = teaching._session.run_block._cache_size()
    sweep(tmp_path / "one", methods=("batch", "sgd", "imt", "ital", "ital-2"), seeds=3)
    assert teaching._session.run_block._cache_size() == before + 1
    sweep(
        tmp_path / "two",
        methods=("batch", "sgd", "imt", "ital", "ital-2"),
        seeds=3,
        lr=[1.0, 2.0, 3.0],
        beta=[5.0, 6.0],
    )
    assert teaching._session.run_block._cache_size() == before + 1


def test_missing_methods_and_seeds_are_added_and_nothing_is_computed_twice(tmp_path):
    whole = sweep(tmp_path / "whole").grid
    out = tmp_path / "grown"
    assert sweep(out, methods=("ital",)).lanes_computed == 12
    grown = sweep(out)
    assert grown.lanes_computed == 6
    assert sweep(out).lanes_computed == 0
    assert sweep(out, first_seed=2).lanes_computed == 18
    assert (grown.grid["computed"] == 1).all()
    assert json.loads(grown.grid.attrs["without_beta"]) == ["imt"]
    assert grown.grid["distance"].dims == whole["distance"].dims
    np.testing.assert_allclose(
        grown.grid["distance"].sel({"learner": ["imt", "ital"]}), whole["distance"], rtol=2e-4
    )


def test_a_grid_grows_along_both_axes_and_only_what_is_new_is_computed(tmp_path):
    whole = sweep(tmp_path / "whole").grid
    out = tmp_path / "grown"
    assert sweep(out, lr=[0.01], beta=[0.0]).lanes_computed == (1 + 1) * 2
    assert sweep(out, lr=[0.01], beta=[0.0, 300.0]).lanes_computed == 1 * 2  # imt has no β
    grown = sweep(out)
    assert grown.lanes_computed == (2 + 4) * 2
    assert json.loads(grown.grid.attrs["lr"]) == LRS
    assert json.loads(grown.grid.attrs["beta"]) == BETAS
    assert (grown.grid["computed"] == 1).all()
    for name in whole.data_vars:
        assert grown.grid[name].dtype == whole[name].dtype
        if whole[name].dtype != object:
            np.testing.assert_allclose(grown.grid[name], whole[name], rtol=2e-4)
    for seed_constant in whole["distance"].attrs:
        np.testing.assert_array_equal(
            grown.grid["distance"].attrs[seed_constant], whole["distance"].attrs[seed_constant]
        )
    assert sweep(out, lr=[0.1], beta=[300.0]).lanes_computed == 0


def test_settings_that_nobody_asked_for_stay_gaps(tmp_path):
    sweep(tmp_path, lr=[0.01], beta=[300.0])
    found = sweep(tmp_path, lr=[0.1], beta=[0.0])
    ital_ran = found.grid["computed"].sel(learner="ital").transpose("lr", "beta", "seed").values
    assert ital_ran.tolist() == [[[0, 0], [1, 1]], [[1, 1], [0, 0]]]
    assert (found.grid["computed"].sel(learner="imt") == 1).all()  # no β: repeated along it
    settings = {setting.method: (setting.lr, setting.beta) for setting in found.verdicts()[0].best}
    assert settings["ital"] in [(0.01, 300.0), (0.1, 0.0)]
    assert found.grid["distance"].sel(learner="ital", lr=0.01, beta=0.0).isnull().all()
    text = printed(found)
    assert "of 2 settings" in text
    assert found.plot().axes


def printed(found, width=80):
    console = Console(file=io.StringIO(), width=width)
    experiments.print_sweep(found, console)
    return console.file.getvalue()


def test_a_sweep_of_networks_is_judged_by_another_metric(tmp_path, monkeypatch):
    def aimless(**options):
        without_target = lambda seed: classes_pool(seed)._replace(learner_target=None)  # noqa: E731
        return tasks.from_pool("aimless", without_target, ital.losses.cross_entropy, beta=300.0)

    monkeypatch.setitem(tasks.REGISTRY, "aimless", aimless)
    with pytest.raises(InputError, match="--metric accuracy or loss"):
        sweep(tmp_path / "out", task="aimless")
    with pytest.raises(InputError, match="did you mean 'accuracy'"):
        sweep(tmp_path / "out", task="aimless", metric="acuracy")
    assert not (tmp_path / "out").exists()
    found = sweep(tmp_path, task="aimless", metric="accuracy")
    (verdict,) = found.verdicts()
    accuracy = found.grid["accuracy"].isel(step=-1).mean("seed")
    finite = accuracy.where(found.grid["diverged_at"].max("seed") < 0)
    for setting in verdict.best:
        assert setting.mean == pytest.approx(float(finite.sel(learner=setting.method).max()))
    assert verdict.best[0].mean == pytest.approx(float(finite.max()))
    for width in (40, 60, 80):
        assert "accuracy ± SE" in printed(found, width)
    by_loss = sweep(tmp_path, task="aimless", metric="loss")
    assert by_loss.lanes_computed == 0
    stored = experiments.load_sweep(tmp_path / "aimless/cooperative")
    assert ital.tuning.metric_of(stored.grid) == "loss"
    assert stored.judged_by("accuracy").verdicts()[0].best[0].mean == verdict.best[0].mean


def test_a_task_of_ones_own_is_swept_without_registering_it(tmp_path):
    task = small_classes()._replace(name="mine")
    found = experiments.sweep(Settings(**{**QUICK, "task": task}), [0.01], [300.0], tmp_path)
    assert found.lanes_computed == 2 * 2
    assert found.task.world is task.world
    assert (
        experiments.sweep(
            Settings(**{**QUICK, "task": task}), [0.01], [300.0], tmp_path
        ).lanes_computed
        == 0
    )
    assert (tmp_path / "mine/cooperative/sweep.nc").is_file()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"steps": 30}, "steps = 20, not 30"),
        ({"init": "normal:0.1"}, "init = uniform, not normal:0.1"),
        ({"label_noise": 0.5}, "label_noise = 0.0, not 0.5"),
    ],
)
def test_a_sweep_of_other_settings_is_refused_or_overwritten(tmp_path, change, named):
    before = sweep(tmp_path).grid
    with pytest.raises(ValueError, match=named) as refusal:
        sweep(tmp_path, **change)
    assert "--out" in str(refusal.value)
    kept = experiments.load_curves(tmp_path / "small/cooperative/sweep.nc")
    xr.testing.assert_identical(kept.drop_attrs(deep=False), before.drop_attrs(deep=False))
    assert sweep(tmp_path, overwrite=True, **change).lanes_computed > 0


def test_the_order_in_which_a_grid_is_typed_does_not_matter(tmp_path):
    sweep(tmp_path)
    assert sweep(tmp_path, lr=LRS[::-1], beta=BETAS[::-1]).lanes_computed == 0


def test_an_interrupted_sweep_resumes_to_the_same_arrays(tmp_path, monkeypatch):
    whole = sweep(tmp_path / "whole").grid
    with monkeypatch.context() as patch:
        patch.setattr("ital.experiments._cells.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
        stop_after(patch, 1, Stop)
        with pytest.raises(Stop):
            sweep(tmp_path / "cut")
    said = []
    resumed = sweep(tmp_path / "cut", said).grid
    assert any("resuming" in line for line in said)
    xr.testing.assert_identical(resumed.drop_attrs(deep=False), whole.drop_attrs(deep=False))
    assert not list((tmp_path / "cut/small/cooperative").glob(".*"))


def test_a_large_sweep_takes_its_seeds_in_blocks_and_keeps_each(tmp_path, monkeypatch):
    whole = sweep(tmp_path / "whole", seeds=4).grid
    parameters = 3 * 5
    monkeypatch.setattr(
        _experiment, "SWEEP", _experiment.SWEEP._replace(numbers_at_once=2 * 9 * parameters)
    )
    asked = []

    def open_sessions(task, teacher, methods, settings):
        asked.append(settings.seeds)
        return teaching.open_sessions(task, teacher, methods, settings)

    monkeypatch.setattr(_experiment, "open_sessions", open_sessions)
    with monkeypatch.context() as patch:
        stop_after(patch, 3, Stop)  # two measurements each: in the second block
        with pytest.raises(Stop):
            sweep(tmp_path / "blocks", seeds=4)
    assert asked == [[0, 1], [2, 3]]
    rest = sweep(tmp_path / "blocks", seeds=4)
    assert asked[2:] == [[2, 3]]
    assert rest.lanes_computed == 2 * 9
    np.testing.assert_allclose(rest.grid["distance"], whole["distance"], rtol=2e-4)


def test_a_damaged_sweep_is_computed_again(tmp_path):
    before = sweep(tmp_path).grid
    file = tmp_path / "small/cooperative/sweep.nc"
    file.write_bytes(file.read_bytes()[:-100])
    said = []
    again = sweep(tmp_path, said)
    assert again.lanes_computed == 18
    assert any("computing it again" in line for line in said)
    xr.testing.assert_identical(again.grid.drop_attrs(deep=False), before.drop_attrs(deep=False))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"lr": []}, "at least one lr"),
        ({"beta": []}, "at least one beta"),
        ({"beta": 500.0}, "beta of a sweep must be a list of numbers, not 500.0"),
        ({"lr": [0.1, 0.0]}, "positive"),
        ({"lr": [0.1, float("inf")]}, "finite"),
        ({"lr": [0.1, 0.1]}, "lr 0.1 is given twice"),
        ({"beta": [1.0, float("nan")]}, "finite"),
        ({"methods": ("imt", "itl")}, "did you mean"),
        ({"methods": ()}, "at least one method"),
        ({"batch_size": 1, "methods": ("ital-2",)}, "sees 2 examples"),
        ({"task": "smal"}, "small"),
        ({"seeds": 0}, "at least one seed"),
    ],
)
def test_bad_settings_write_nothing(tmp_path, bad, message):
    with pytest.raises(ValueError, match=message):
        sweep(tmp_path / "out", **bad)
    assert not (tmp_path / "out").exists()


def test_a_task_without_a_target_is_refused(tmp_path, monkeypatch):
    def aimless(**options):
        pool = ital.tasks.Pool(
            np.eye(3),
            np.eye(3),
            np.eye(3)[:, :1],
            np.ones((1, 4)),
            None,
            np.eye(3),
            np.eye(3)[:, :1],
        )
        return tasks.from_pool("aimless", pool, ital.losses.squared, beta=1.0)

    monkeypatch.setitem(tasks.REGISTRY, "aimless", aimless)
    with pytest.raises(ValueError, match="has no target"):
        sweep(tmp_path / "out", task="aimless")
    assert not os.path.exists(tmp_path / "out")


def test_one_beta_still_tells_who_has_none(tmp_path):
    found = sweep(tmp_path, beta=[300.0], lr=[0.01])
    assert json.loads(found.grid.attrs["without_beta"]) == ["imt"]
    assert found.verdicts()[0].naive.beta is None
    assert found.verdicts()[0].aware.beta == 300.0


def test_methods_of_ones_own_are_swept(tmp_path, monkeypatch):
    monkeypatch.setitem(learners.REGISTRY, "timid", lambda: learners.teacher_aware(3.0))
    found = sweep(tmp_path, methods=("timid", "ital"), lr=[0.01])
    assert found.lanes_computed == (1 + 2) * 2  # it has its own β, so the grid's β does not apply
