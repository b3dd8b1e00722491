"""Log results to MLflow: one MLflow run per lane of an experiment, with the curves of all seeds.

A lane is a method; in a sweep, a method at an η and a β.
"""

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
    """Return a client of an MLflow store; raise InputError if it does not answer."""
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


def track(client: Any, experiment: Experiment, result: "xr.Dataset", files: Sequence[Path]) -> None:
    """Log what is new: settings, the curves of all seeds and their mean, files.

    Args:
        client: the store.
        experiment: the experiment.
        result: its result.
        files: the files to attach to each run.

    Raises:
        OSError: if not everything could be logged.
    """
    try:
        _log_lanes(client, experiment, result, files)
    except Exception as error:
        cause = " ".join(str(error).split())[:200]
        reason = f"could not log everything ({cause}); the results are written"
        raise OSError(errno.EIO, reason, client.tracking_uri) from error


def _log_lanes(
    client: Any,
    experiment: Experiment,
    result: "xr.Dataset",
    files: Sequence[Path],
) -> None:
    store_id = _store_id(client, experiment)
    for lane in experiment.lanes:
        curves = _lane_curves(experiment, result, lane)
        if curves is None:
            continue
        settings = {**experiment.identity, "method": lane.method}
        for axis in experiment.axes:
            settings[axis] = getattr(lane, axis)
        content = _content_hash(settings, curves)
        same_content = f"tags.`{CONTENT}` = '{content}'"
        earlier = client.search_runs([store_id], filter_string=same_content)
        if any(run.info.status == "FINISHED" for run in earlier):
            continue
        # What was interrupted is logged again as a whole.
        for run in earlier:
            client.delete_run(run.info.run_id)
        run = client.create_run(
            store_id,
            run_name=_run_name(experiment, lane),
            tags={CONTENT: content},
        )
        _log_run(client, run.info.run_id, settings, curves, files)


def _store_id(client: Any, experiment: Experiment) -> Any:
    """Return what a store calls an experiment; it is made there if need be."""
    name = f"ital/{experiment.folder.as_posix()}"
    if experiment.axes:
        name += "/sweep"
    stored = client.get_experiment_by_name(name)
    if stored:
        return stored.experiment_id
    return client.create_experiment(name)


def _lane_curves(experiment: Experiment, result: "xr.Dataset", lane: Point) -> "xr.Dataset | None":
    """Return the curves of a lane on the computed seeds, (seed, step); None if there are none."""
    if lane.method not in result["learner"].values:
        return None
    curves = result.sel({"learner": lane.method, **experiment.coordinates(lane)})
    # A lane that an axis does not affect is repeated along it.
    repeated = [axis for axis in experiment.axes if axis in curves.dims]
    curves = curves.isel(dict.fromkeys(repeated, 0))
    computed = np.flatnonzero(curves["computed"].values)
    if not len(computed):
        return None
    return curves.isel(seed=computed)


def _content_hash(settings: dict[str, Any], curves: "xr.Dataset") -> str:
    """Return a hash of settings, seeds and curves: what is logged already has the same."""
    in_order = sorted(settings.items())
    seeds = curves["seed"].values.tolist()
    digest = hashlib.sha256(repr(in_order).encode())
    digest.update(repr(seeds).encode())
    for metric in metrics_of(curves):
        values = np.ascontiguousarray(curves[metric].values)
        digest.update(values.tobytes())
    return digest.hexdigest()[:32]


def _run_name(experiment: Experiment, lane: Point) -> str:
    coordinates = experiment.coordinates(lane)
    numbers = [f"{axis}={value:g}" for axis, value in coordinates.items()]
    return " ".join([lane.method, *numbers])


def _log_run(
    client: Any,
    run: str,
    settings: dict[str, Any],
    curves: "xr.Dataset",
    files: Sequence[Path],
) -> None:
    """Log one run and mark it as finished; until then it counts as interrupted."""
    from mlflow.entities import Metric, Param

    now = int(1000 * time.time())
    params = [Param(name, str(value)[:6000]) for name, value in settings.items()]
    client.log_batch(run, params=params)
    rows = [Metric(key, value, now, step) for key, value, step in _metric_rows(curves)]
    for first in range(0, len(rows), AT_ONCE):
        client.log_batch(run, metrics=rows[first : first + AT_ONCE])
    for file in files:
        client.log_artifact(run, str(file))
    client.set_terminated(run)


def _metric_rows(curves: "xr.Dataset") -> Iterator[tuple[str, float, int]]:
    """Yield (key, value, step) of the mean and of each seed, at the measured steps."""
    steps = curves["step"].values.tolist()
    names = ["mean", *(f"seed-{seed}" for seed in curves["seed"].values)]
    for metric in metrics_of(curves):
        lanes = curves[metric].transpose("seed", "step").values
        mean, _ = mean_and_error(lanes)
        rows = [mean, *lanes]
        for name, row in zip(names, rows, strict=True):
            key = f"{metric}/{name}"
            for step, value in zip(steps, row, strict=True):
                if np.isfinite(value):
                    yield key, float(value), step
