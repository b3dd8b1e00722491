import sys
from pathlib import Path

import numpy as np
import pytest

from ital import experiments, tasks
from ital.cli import main
from ital.experiments import Settings
from tests.worlds import small_classes

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = {"task": "small", "methods": ("imt", "ital"), "seeds": 2, "steps": 20, "lr": 0.01}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def runs(tmp_path):
    """All runs of a store of plain files."""
    tracking = pytest.importorskip("mlflow.tracking", reason="needs the extra mlflow")

    def of(name):
        client = tracking.MlflowClient(tracking_uri=str(tmp_path / "mlruns"))
        place = client.get_experiment_by_name(name)
        return client, {run.info.run_name: run for run in client.search_runs([place.experiment_id])}

    return of


def test_every_method_is_a_run_with_the_curve_of_every_seed(tmp_path, runs):
    outcome = experiments.run(Settings(**QUICK), tmp_path, mlflow=str(tmp_path / "mlruns"))
    client, found = runs("ital/small/cooperative")
    assert set(found) == {"imt", "ital"}
    run = found["ital"]
    assert run.info.status == "FINISHED"
    assert run.data.params["lr"] == "0.01"
    assert run.data.params["method"] == "ital"
    assert run.data.params["task"] == "small"
    for seed in (0, 1):
        logged = client.get_metric_history(run.info.run_id, f"distance/seed-{seed}")
        curve = outcome.curves["distance"].sel({"learner": "ital", "seed": seed})
        assert [point.step for point in logged] == curve["step"].values.tolist()
        np.testing.assert_allclose([point.value for point in logged], curve, rtol=1e-6)
    mean = client.get_metric_history(run.info.run_id, "distance/mean")
    np.testing.assert_allclose(
        [point.value for point in mean],
        outcome.curves["distance"].sel({"learner": "ital"}).mean("seed"),
        rtol=1e-5,
    )
    artifacts = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert artifacts == {"curves.nc", "curves.pdf", "curves.png", "summary.csv"}


def test_what_is_there_is_not_logged_again_and_what_was_cut_short_is(tmp_path, runs):
    store = str(tmp_path / "mlruns")
    experiments.run(Settings(**QUICK), tmp_path, mlflow=store, draw=False)
    client, first = runs("ital/small/cooperative")
    client.set_terminated(first["imt"].info.run_id, status="FAILED")
    experiments.run(Settings(**QUICK), tmp_path, mlflow=store, draw=False)
    _, second = runs("ital/small/cooperative")
    assert len(second) == 2
    assert second["ital"].info.run_id == first["ital"].info.run_id
    assert second["imt"].info.run_id != first["imt"].info.run_id
    assert second["imt"].info.status == "FINISHED"


def test_a_sweep_has_a_run_for_each_setting(tmp_path, runs):
    experiments.sweep(
        Settings(**QUICK), [0.01, 1e30], [0.0, 300.0], tmp_path, mlflow=str(tmp_path / "mlruns")
    )
    client, found = runs("ital/small/cooperative/sweep")
    assert set(found) == {"imt lr=0.01", "imt lr=1e+30"} | {
        f"ital lr={lr} beta={beta}" for lr in ("0.01", "1e+30") for beta in ("0", "300")
    }
    assert found["ital lr=0.01 beta=300"].data.params["beta"] == "300.0"
    # it diverged: there is a start, and nothing after it
    history = client.get_metric_history(found["imt lr=1e+30"].info.run_id, "distance/seed-0")
    assert [point.step for point in history] == [0]


def test_without_mlflow_the_extra_is_named_before_anything_is_computed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    with pytest.raises(SystemExit) as stop:
        main(["run", "small", "--mlflow", "mlruns"])
    assert stop.value.code == 2
    assert "[mlflow]'" in capsys.readouterr().err
    assert not Path("results").exists()


def test_a_store_that_is_none_is_refused(tmp_path):
    pytest.importorskip("mlflow.tracking", reason="needs the extra mlflow")
    with pytest.raises(ValueError, match="no MLflow store at"):
        experiments.run(Settings(**QUICK), tmp_path / "out", mlflow="teapot://here")
    assert not (tmp_path / "out").exists()


def test_a_store_that_fails_later_does_not_cost_the_result(tmp_path, monkeypatch):
    pytest.importorskip("mlflow.tracking", reason="needs the extra mlflow")

    def broken(*arguments):
        raise RuntimeError("no more")

    monkeypatch.setattr("mlflow.tracking.MlflowClient.create_run", broken)
    with pytest.raises(OSError, match="the results are written"):
        experiments.run(Settings(**QUICK), tmp_path, mlflow=str(tmp_path / "mlruns"), draw=False)
    assert experiments.run(Settings(**QUICK), tmp_path, draw=False).lanes_computed == 0
