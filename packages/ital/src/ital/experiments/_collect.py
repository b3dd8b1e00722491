"""The single writer of a result: merges the files of finished cells into it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.experiments import _store
from ital.experiments._cells import finished, forget, lanes_of, versions
from ital.experiments._experiment import GAPS, Chunks, Experiment, Point

if TYPE_CHECKING:
    import xarray as xr


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
            kept = {} if self.result is None else self.result.attrs
            merged = assemble(self.experiment, self.result, cells).assign_attrs(kept)
            attributes = {
                **self.experiment.described,
                **self.experiment.identity,
                **self.experiment.attributes(merged),
                **{name: cells[-1].attrs[name] for name in versions()},
                "seeds_per_cell": self.sizes.seeds,
                "points_per_cell": self.sizes.points,
                "seconds": seconds,
            }
            self.result = merged.assign_attrs(attributes)
            for outdated in (
                self.folder.glob(self.experiment.kind.drawn) if self.experiment.kind.drawn else ()
            ):
                outdated.unlink()
            _store.save_curves(self.result, self.folder / self.experiment.kind.file)
        forget(self.folder, {*names, *(file.stem for file in by_file)})


def assemble(
    experiment: Experiment, old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]"
) -> "xr.Dataset":
    """The result with every lane of the cells in its place, and everything else unchanged."""
    # The order in which cells finished must not show in the result.
    order = {lane: position for position, lane in enumerate(experiment.lanes)}
    cells = sorted(
        cells,
        key=lambda cell: (order.get(lanes_of(cell)[0], len(order)), int(cell["seed"].values[0])),
    )
    old = None if old is None else experiment.grown(old)
    result = _gaps(experiment, old, cells)
    if old is not None:
        _write(old, result, {"learner": old["learner"].values, "seed": old["seed"].values})
    for cell in cells:
        for row, lane in enumerate(lanes_of(cell)):
            labels = {
                "learner": lane.method,
                **experiment.coordinates(lane),
                "seed": cell["seed"].values,
            }
            _write(cell.isel(learner=row), result, labels)
    paths = [part["path"] for part in (old, *cells) if part is not None and "path" in part]
    if paths:
        result["path"] = _latest_path(paths, result["learner"].values.tolist())
    return result


def _gaps(
    experiment: Experiment, old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]"
) -> "xr.Dataset":
    """A result with all labels of ``old`` and the cells, in which nothing is computed yet."""
    import xarray as xr

    parts = [*([] if old is None else [old]), *cells]
    label_of = _labels(old, cells)
    stored = [] if old is None else old["learner"].values.tolist()
    methods = _in_order(stored, label_of, experiment.lanes)
    seeds = sorted({int(seed) for part in parts for seed in part["seed"].values})
    axes = {
        name: list(values) if old is None else old[name].values
        for name, values in experiment.axes.items()
    }
    coords: dict[str, Any] = {
        "learner": methods,
        "label": ("learner", [label_of[name] for name in methods]),
        **axes,
        "seed": seeds,
        "step": cells[0]["step"].values.astype(int),
    }
    data = {}
    apart = {"path", *axes}  # a cell also says which η and β its lanes had
    newest = {name: part[name] for part in parts for name in part.data_vars if name not in apart}
    for name, variable in newest.items():
        dims = ("learner", *axes, "seed", *(["step"] if "step" in variable.dims else []))
        shape = [len(coords[dim]) for dim in dims]
        dtype = object if name == "version" else variable.dtype
        gaps = np.full(shape, GAPS.get(str(name), np.nan), dtype)
        data[name] = (dims, gaps, _by_seed(name, parts, seeds))
    return xr.Dataset(data, coords)


def _write(part: "xr.Dataset", result: "xr.Dataset", labels: Mapping[str, Any]) -> None:
    """Copy the variables of a part to these labels of the result; along an axis without a label they are repeated."""
    for name in result.data_vars:
        if name in part:
            result[name].loc[labels] = part[name]


def _latest_path(paths: "Sequence[xr.DataArray]", methods: list[str]) -> "xr.DataArray":
    """The parameters over time of all methods on the seed of the last path; those of other seeds are dropped."""
    import xarray as xr

    last = paths[-1]
    values = np.full((len(methods), *last.shape[1:]), np.nan, last.dtype)
    for path in paths:
        if path.attrs["seed"] == last.attrs["seed"]:
            values[[methods.index(str(name)) for name in path["learner"].values]] = path.values
    return xr.DataArray(values, {"frame": last["frame"].values}, last.dims, attrs=last.attrs)


def _in_order(stored: list[str], found: Mapping[str, str], lanes: Sequence[Point]) -> list[str]:
    """The methods of a result, in the order of an experiment that has all of them; else in the order they had."""
    named = list(dict.fromkeys(lane.method for lane in lanes))
    if set(found) <= set(named):
        return [name for name in named if name in found]
    new = [name for name in found if name not in stored]
    return (
        stored
        + [name for name in new if name not in named]
        + [name for name in named if name in new]
    )


def _labels(old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]") -> dict[str, str]:
    """Methods and their legend labels."""
    named = [] if old is None else [(old["learner"].values.tolist(), old["label"].values)]
    named += [([lane.method for lane in lanes_of(cell)], cell["label"].values) for cell in cells]
    return {
        str(name): str(label)
        for names, labels in named
        for name, label in zip(names, labels, strict=True)
    }


def _by_seed(
    name: Any, parts: "Sequence[xr.Dataset]", seeds: list[int]
) -> Mapping[str, np.ndarray]:
    """The constants of a metric, one number per seed."""
    constants: dict[str, dict[int, float]] = {}
    for part in parts:
        for kind, values in part[name].attrs.items() if name in part else ():
            by_seed = zip(map(int, part["seed"].values), np.atleast_1d(values), strict=True)
            constants.setdefault(kind, {}).update(by_seed)
    return {
        kind: np.asarray([by_seed[seed] for seed in seeds]) for kind, by_seed in constants.items()
    }
