"""The single writer of a result: it merges the files of finished cells.

A result has one labelled array per variable. Its axes are the learner, the axes of a sweep
(``Experiment.axes``), the seed and, for curves, the step. A cell holds some lanes on some seeds.
:func:`assemble` makes a result that has all labels and only gaps, then writes every part to the
labels that it holds. Nothing here names η or β, so a third axis would pass through unchanged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.experiments import _store
from ital.experiments._cells import finished, forget, stored_lanes, versions
from ital.experiments._experiment import GAPS, Chunks, Experiment, Point

if TYPE_CHECKING:
    import xarray as xr

PATH = "path"  # the variable with the parameters over time, of one seed only


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
        cells = dict(finished(self.experiment, self.folder, self.say))
        if cells:
            self.result = self._merged(list(cells.values()))
            self._save(self.result)
        # Cells are removed only now, when the result that holds them is on the disk. A kill before
        # this line leaves both; the next call merges the cells again, which changes no number.
        forget(self.folder, {*names, *(file.stem for file in cells)})

    def _merged(self, cells: "list[xr.Dataset]") -> "xr.Dataset":
        """Return the result with the cells, and with the attributes that describe both."""
        kept: Mapping[str, Any] = {}
        seconds = 0.0
        if self.result is not None:
            kept = self.result.attrs
            seconds = float(kept["seconds"])
        seconds += sum(float(cell.attrs["seconds"]) for cell in cells)
        merged = assemble(self.experiment, self.result, cells).assign_attrs(kept)
        return merged.assign_attrs(
            {
                **self.experiment.described,
                **self.experiment.identity,
                **self.experiment.attributes(merged),
                **{name: cells[-1].attrs[name] for name in versions()},
                "seeds_per_cell": self.sizes.seeds,
                "points_per_cell": self.sizes.points,
                "seconds": seconds,
            }
        )

    def _save(self, result: "xr.Dataset") -> None:
        # Pictures of the old result go first: a kill in between must not leave them beside a new
        # one.
        kind = self.experiment.kind
        if kind.drawn:
            for outdated in self.folder.glob(kind.drawn):
                outdated.unlink()
        _store.save_curves(result, self.folder / kind.file)


def assemble(
    experiment: Experiment, old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]"
) -> "xr.Dataset":
    """Merge a stored result and cells.

    Args:
        experiment: the experiment that the cells belong to.
        old: the stored result; None if there is none.
        cells: the contents of finished cells, in any order.

    Returns:
        A result with all lanes. Where several parts have a lane, the last cell counts.
    """
    cells = _in_lane_order(experiment, cells)
    if old is not None:
        old = experiment.grown(old)
    result = _empty_result(experiment, old, cells)

    if old is not None:
        _write_part(old, result, {"learner": old["learner"].values, "seed": old["seed"].values})
    for cell in cells:
        for row, lane in enumerate(stored_lanes(cell)):
            labels = {
                "learner": lane.method,
                **experiment.coordinates(lane),
                "seed": cell["seed"].values,
            }
            _write_part(cell.isel(learner=row), result, labels)

    paths = [part[PATH] for part in _oldest_first(old, cells) if PATH in part]
    if paths:
        result[PATH] = _latest_path(paths, result["learner"].values.tolist())
    return result


def _oldest_first(old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]") -> "list[xr.Dataset]":
    """List the stored result, if there is one, and the cells: from the oldest to the newest."""
    if old is None:
        return list(cells)
    return [old, *cells]


def _in_lane_order(experiment: Experiment, cells: "Iterable[xr.Dataset]") -> "list[xr.Dataset]":
    """Sort cells by their first lane and seed: a result must not show which finished first."""
    positions = {lane: position for position, lane in enumerate(experiment.lanes)}

    def position(cell: "xr.Dataset") -> tuple[int, int]:
        # Lanes that this experiment does not name come last.
        return positions.get(stored_lanes(cell)[0], len(positions)), int(cell["seed"].values[0])

    return sorted(cells, key=position)


def _empty_result(
    experiment: Experiment, old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]"
) -> "xr.Dataset":
    """Make a result with all labels of the stored result and the cells, and with gaps only."""
    import xarray as xr

    parts = _oldest_first(old, cells)
    coords = _result_labels(experiment, old, cells)
    axes = list(experiment.axes)
    # In a sweep, cells also hold the η and β of their lanes; in the result these are axes.
    apart = {PATH, *axes}
    newest = {name: part[name] for part in parts for name in part.data_vars if name not in apart}
    variables = {}
    for name, variable in newest.items():
        dims = ["learner", *axes, "seed"]
        if "step" in variable.dims:
            dims.append("step")
        shape = [len(coords[dim]) for dim in dims]
        # Text of a fixed length would cut longer versions off.
        dtype = object if name == "version" else variable.dtype
        gaps = np.full(shape, GAPS.get(str(name), np.nan), dtype)
        variables[name] = (dims, gaps, _seed_constants(name, parts, coords["seed"]))
    return xr.Dataset(variables, coords)


def _result_labels(
    experiment: Experiment, old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]"
) -> dict[str, Any]:
    """Return the labels of a result along every axis, and the labels of its legend."""
    legend = _legend_labels(old, cells)
    stored_methods = [] if old is None else old["learner"].values.tolist()
    methods = _method_order(stored_methods, list(legend), experiment.lanes)
    seeds = np.unique(np.concatenate([part["seed"].values for part in _oldest_first(old, cells)]))
    # A stored sweep is on the wider axes already, see Experiment.grown.
    axes: dict[str, Any] = {name: list(values) for name, values in experiment.axes.items()}
    if old is not None:
        axes = {name: old[name].values for name in axes}
    return {
        "learner": methods,
        "label": ("learner", [legend[name] for name in methods]),
        **axes,
        "seed": seeds.astype(int).tolist(),
        "step": cells[0]["step"].values.astype(int),
    }


def _write_part(part: "xr.Dataset", result: "xr.Dataset", labels: Mapping[str, Any]) -> None:
    """Copy the variables of a part to these labels of a result.

    Along an axis without a label, the part is repeated: a learner without a β has one lane for all
    β.
    """
    for name in result.data_vars:
        if name in part:
            # Not combine_first: it would keep an old number where the new one is NaN, which is what
            # a lane that diverged holds.
            result[name].loc[labels] = part[name]


def _latest_path(paths: "Sequence[xr.DataArray]", methods: list[str]) -> "xr.DataArray":
    """Return the parameters over time of all methods, on the seed of the last path.

    Paths of other seeds are dropped: a picture compares methods on one seed.
    """
    last = paths[-1]
    # Methods without a path on this seed stay NaN. The labels of legends belong to the result.
    latest = last.reset_coords(drop=True).reindex(learner=methods)
    for path in paths:
        if path.attrs["seed"] == last.attrs["seed"]:
            latest.loc[{"learner": path["learner"].values}] = path.values
    return latest


def _method_order(stored: list[str], found: Sequence[str], lanes: Sequence[Point]) -> list[str]:
    """Order the methods of a result.

    They have the order of the experiment if it names all of them. Otherwise stored methods keep
    their order, and new ones follow.

    Args:
        stored: methods of the stored result.
        found: methods of the stored result and the cells.
        lanes: lanes of the experiment.
    """
    named = list(dict.fromkeys(lane.method for lane in lanes))
    if set(found) <= set(named):
        return [name for name in named if name in found]
    new = [name for name in found if name not in stored]
    unnamed = [name for name in new if name not in named]
    return [*stored, *unnamed, *(name for name in named if name in new)]


def _legend_labels(old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]") -> dict[str, str]:
    """Return methods → their labels in legends; the newest part counts."""
    labels: dict[str, str] = {}
    if old is not None:
        methods = old["learner"].values.tolist()
        labels |= dict(zip(methods, map(str, old["label"].values), strict=True))
    for cell in cells:
        # The lanes of a sweep's cell are numbered, so their methods stand in an attribute.
        methods = [lane.method for lane in stored_lanes(cell)]
        labels |= dict(zip(methods, map(str, cell["label"].values), strict=True))
    return labels


def _seed_constants(
    name: Any, parts: "Sequence[xr.Dataset]", seeds: list[int]
) -> Mapping[str, np.ndarray]:
    """Return the constants of a metric as arrays with one number per seed, e.g. its ``floor``."""
    constants: dict[str, dict[int, float]] = {}
    for part in parts:
        attributes = part[name].attrs if name in part else {}
        for constant, values in attributes.items():
            # A file holds one number instead of an array of length 1.
            by_seed = zip(map(int, part["seed"].values), np.atleast_1d(values), strict=True)
            constants.setdefault(constant, {}).update(by_seed)
    return {
        constant: np.asarray([by_seed[seed] for seed in seeds])
        for constant, by_seed in constants.items()
    }
