"""The single writer of a result: merges the files of finished cells into it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.experiments import _store
from ital.experiments._cells import Chunks, Experiment, finished, forget, lanes_of
from ital.experiments._resume import versions

if TYPE_CHECKING:
    import xarray as xr

GAPS = {"computed": 0, "diverged_at": -1, "version": ""}  # where nothing was computed; other variables: NaN


@dataclass
class Collector:
    """Holds a result (None: nothing yet) and extends it, in memory and on disk."""

    experiment: Experiment
    folder: Path
    result: "xr.Dataset | None"
    sizes: Chunks
    say: Callable[[str], None]

    def collect(self, names: Sequence[str] = ()) -> None:
        """Merge all finished cells, then remove their files and those of the named cells."""
        by_file = dict(finished(self.experiment, self.folder, self.say))
        if by_file:
            cells = list(by_file.values())
            seconds = 0.0 if self.result is None else float(self.result.attrs["seconds"])
            seconds += sum(float(cell.attrs["seconds"]) for cell in cells)
            attributes = {
                **self.experiment.identity,
                **self.experiment.attributes(self.result),
                **{name: cells[-1].attrs[name] for name in versions()},
                "seeds_per_cell": self.sizes.seeds,
                "points_per_cell": self.sizes.points,
                "seconds": seconds,
            }
            self.result = assemble(self.experiment, self.result, cells).assign_attrs(attributes)
            for outdated in self.folder.glob(self.experiment.drawn) if self.experiment.drawn else ():
                outdated.unlink()
            _store.save_curves(self.result, self.folder / self.experiment.file)
        forget(self.folder, {*names, *(file.stem for file in by_file)})


def assemble(experiment: Experiment, old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]") -> "xr.Dataset":
    """The result with every lane of the cells in its place, and everything else unchanged."""
    import xarray as xr

    lanes = experiment.lanes
    order = {lane: i for i, lane in enumerate(lanes)}  # so that the order of the cells does not matter
    cells = sorted(cells, key=lambda cell: (order.get(lanes_of(cell)[0], len(lanes)), int(cell["seed"].values[0])))
    parts = [*([] if old is None else [old]), *cells]
    labels = _labels(old, cells)
    current = dict.fromkeys(lane.method for lane in lanes)
    methods = [*(name for name in labels if name not in current), *(name for name in current if name in labels)]
    seeds = sorted({int(seed) for part in parts for seed in part["seed"].values})
    axes = experiment.axes
    sizes = (len(methods), *map(len, axes.values()), len(seeds))
    dims = ("learner", *axes, "seed")
    newest = {name: part[name] for part in parts for name in part.data_vars if name not in (*axes, "path")}
    data = {}
    for name, variable in newest.items():
        steps = [part.sizes["step"] for part in cells[:1] if "step" in variable.dims]
        values = np.full((*sizes, *steps), GAPS.get(str(name), np.nan), object if name == "version" else variable.dtype)
        if old is not None and name in old:
            rows = [methods.index(str(method)) for method in old["learner"].values]
            index = np.ix_(rows, *map(range, map(len, axes.values())), _positions(old, seeds))
            values[index] = old[name].transpose(*dims, ...).values
        for cell in cells:
            if name not in cell:
                continue
            for lane, row in zip(lanes_of(cell), cell[name].values, strict=True):
                place = values[(methods.index(lane.method), *experiment.place(lane))]
                (place.swapaxes(-1, -2) if steps else place)[..., _positions(cell, seeds)] = row.T
        data[name] = (dims + ("step",) * len(steps), values, _by_seed(name, parts, seeds))
    coords = {
        "learner": methods,
        "label": ("learner", [labels[name] for name in methods]),
        **axes,
        "seed": seeds,
        "step": cells[0]["step"].values.astype(int),
    }
    result = xr.Dataset(data, coords)
    paths = [part["path"] for part in parts if "path" in part]
    if paths:
        last = paths[-1]
        values = np.full((len(methods), *last.shape[1:]), np.nan, last.dtype)
        for path in paths:
            if path.attrs["seed"] == last.attrs["seed"]:
                values[[methods.index(str(name)) for name in path["learner"].values]] = path.values
        result["path"] = xr.DataArray(values, {"frame": last["frame"].values}, last.dims, attrs=last.attrs)
    return result


def _labels(old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]") -> dict[str, str]:
    """Methods and their legend labels."""
    named = [] if old is None else [(old["learner"].values.tolist(), old["label"].values)]
    named += [([lane.method for lane in lanes_of(cell)], cell["label"].values) for cell in cells]
    return {str(name): str(label) for names, labels in named for name, label in zip(names, labels, strict=True)}


def _positions(part: "xr.Dataset", seeds: list[int]) -> list[int]:
    return [seeds.index(int(seed)) for seed in part["seed"].values]


def _by_seed(name: Any, parts: "Sequence[xr.Dataset]", seeds: list[int]) -> Mapping[str, np.ndarray]:
    """The constants of a metric, one number per seed."""
    constants: dict[str, dict[int, float]] = {}
    for part in parts:
        for kind, values in part[name].attrs.items() if name in part else ():
            by_seed = zip(map(int, part["seed"].values), np.atleast_1d(values), strict=True)
            constants.setdefault(kind, {}).update(by_seed)
    return {kind: np.asarray([by_seed[seed] for seed in seeds]) for kind, by_seed in constants.items()}
