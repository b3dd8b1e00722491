"""Log results to MLflow: one MLflow run per method (in a sweep: per method, η and β), with the curves of all seeds."""

import errno
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.errors import InputError
from ital.experiments._experiment import Experiment, Point
from ital.results import mean_and_error, metrics_of
from ital.tools.checks import install

if TYPE_CHECKING:
    import xarray as xr

CONTENT = "ital.content"  # a tag that identifies what was logged, so that it is not logged twice
AT_ONCE = 1000  # metrics that MLflow accepts per call


def open_store(uri: str) -> Any:
    """A client of an MLflow store; raises InputError if it does not answer, before anything is computed."""
    # MLflow uses plain files only if asked explicitly; passing a path does that.
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise InputError(f"tracking needs MLflow: {install('ital[mlflow]')}") from None
    try:
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    except Exception as error:  # a store may raise many kinds of errors
        raise InputError(
            f"no MLflow store at {uri} ({' '.join(str(error).split())[:200]})"
        ) from None
    return client


def track(client: Any, experiment: Experiment, result: "xr.Dataset", files: Sequence[Path]) -> int:
    """Log what is new: settings, the curves of all seeds and their mean, files; return the number of runs logged."""
    try:
        return _track(client, experiment, result, files)
    except Exception as error:
        reason = f"could not log everything ({' '.join(str(error).split())[:200]}); the results are written"
        raise OSError(errno.EIO, reason, client.tracking_uri) from error


def _track(client: Any, experiment: Experiment, result: "xr.Dataset", files: Sequence[Path]) -> int:
    name = f"ital/{experiment.folder.as_posix()}" + ("/sweep" if experiment.axes else "")
    stored = client.get_experiment_by_name(name)
    place = stored.experiment_id if stored else client.create_experiment(name)
    logged = 0
    for lane in experiment.lanes:
        curves = _of_lane(experiment, result, lane)
        if curves is None:
            continue
        settings = {**experiment.identity, "method": lane.method}
        settings |= {
            axis: value for axis, value in lane._asdict().items() if axis in experiment.axes
        }
        content = _content(settings, curves)
        earlier = client.search_runs([place], filter_string=f"tags.`{CONTENT}` = '{content}'")
        if any(run.info.status == "FINISHED" for run in earlier):
            continue
        for run in earlier:  # interrupted
            client.delete_run(run.info.run_id)
        run = client.create_run(
            place, run_name=_run_name(experiment, lane), tags={CONTENT: content}
        )
        _log(client, run.info.run_id, settings, curves, files)
        logged += 1
    return logged


def _of_lane(experiment: Experiment, result: "xr.Dataset", lane: Point) -> "xr.Dataset | None":
    """The curves of a lane, dimensions (seed, step): only the seeds that were computed; None if there are none."""
    if lane.method not in result["learner"].values:
        return None
    curves = result.sel({"learner": lane.method, **experiment.coordinates(lane)})
    repeated = [axis for axis in experiment.axes if axis in curves.dims]
    curves = curves.isel(dict.fromkeys(repeated, 0))
    curves = curves.isel(seed=np.flatnonzero(curves["computed"].values))
    return curves if curves.sizes["seed"] else None


def _content(settings: dict[str, Any], curves: "xr.Dataset") -> str:
    digest = hashlib.sha256(repr(sorted(settings.items())).encode())
    digest.update(repr(curves["seed"].values.tolist()).encode())
    for metric in metrics_of(curves):
        digest.update(np.ascontiguousarray(curves[metric].values).tobytes())
    return digest.hexdigest()[:32]


def _run_name(experiment: Experiment, lane: Point) -> str:
    numbers = [
        f"{axis}={value:g}"
        for axis in experiment.axes
        if (value := getattr(lane, axis)) is not None
    ]
    return " ".join([lane.method, *numbers])


def _log(
    client: Any, run: str, settings: dict[str, Any], curves: "xr.Dataset", files: Sequence[Path]
) -> None:
    from mlflow.entities import Metric, Param

    now = int(1000 * time.time())
    client.log_batch(
        run, params=[Param(name, str(value)[:6000]) for name, value in settings.items()]
    )
    rows = [Metric(key, value, now, step) for key, value, step in _rows(curves)]
    for first in range(0, len(rows), AT_ONCE):
        client.log_batch(run, metrics=rows[first : first + AT_ONCE])
    for file in files:
        client.log_artifact(run, str(file))
    client.set_terminated(run)


def _rows(curves: "xr.Dataset") -> Iterator[tuple[str, float, int]]:
    """(key, value, step) of every metric at its measured steps, for the mean and for each seed."""
    steps = curves["step"].values.tolist()
    for metric in metrics_of(curves):
        lanes = curves[metric].transpose("seed", "step").values
        names = ["mean", *(f"seed-{seed}" for seed in curves["seed"].values)]
        for name, row in zip(names, [mean_and_error(lanes)[0], *lanes], strict=True):
            finite = [
                (step, float(value))
                for step, value in zip(steps, row, strict=True)
                if np.isfinite(value)
            ]
            yield from ((f"{metric}/{name}", value, step) for step, value in finite)
