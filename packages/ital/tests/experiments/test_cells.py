import json
import pickle

import jax
import numpy as np
import pytest
import xarray as xr

from ital import experiments, tasks, teaching, tuning
from ital.errors import InputError
from ital.experiments import Settings, _cells, _experiment, _run, load_curves
from ital.experiments._cells import missing_cells
from ital.experiments._experiment import CellSize, Experiment, Point
from ital.teaching import _run as _numbers
from ital.tools import memory
from tests.worlds import small_classes

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = {"task": "small", "methods": ("imt", "ital"), "seeds": 5, "steps": 20, "lr": 0.01}
LRS, BETAS = (0.01, 0.1), (0.0, 300.0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A quick task among the registered ones."""
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )


def curves(**options):
    return Experiment(Settings(**{**QUICK, **options}))


def blocks(cells):
    return [([lane.method for lane in cell.lanes], list(cell.seeds)) for cell in cells]


def same(one, other):
    xr.testing.assert_identical(one.drop_attrs(deep=False), other.drop_attrs(deep=False))


def test_without_sizes_everything_is_one_cell():
    experiment = curves(first_seed=3)
    sizes = experiment.sizes(CellSize())
    assert sizes == CellSize(5, 2)
    assert blocks(missing_cells(experiment, None, sizes)) == [(["imt", "ital"], [3, 4, 5, 6, 7])]


def test_sizes_cut_seeds_and_points_from_the_first_that_was_asked_for():
    experiment = curves(first_seed=3)
    assert blocks(missing_cells(experiment, None, CellSize(2, 2))) == [
        (["imt", "ital"], [3, 4]),
        (["imt", "ital"], [5, 6]),
        (["imt", "ital"], [7]),
    ]
    grid = Experiment(Settings(**QUICK), {"lr": LRS, "beta": BETAS})
    assert len(grid.lanes) == 2 + 4  # imt has no β
    cells = missing_cells(grid, None, CellSize(5, 4))
    assert [cell.lanes for cell in cells] == [tuple(grid.lanes[:4]), tuple(grid.lanes[4:])]
    assert grid.lanes[0] == Point("imt", 0.01, None)


def test_memory_cuts_what_has_no_size_into_few_blocks_of_about_one_size(monkeypatch):
    parameters, experiment = 3 * 5, curves()
    monkeypatch.setattr(
        _experiment, "RUN", _experiment.RUN._replace(numbers_at_once=2 * 2 * parameters)
    )
    assert experiment.sizes(CellSize()) == CellSize(2, 2)
    monkeypatch.setattr(
        _experiment, "RUN", _experiment.RUN._replace(numbers_at_once=4 * 2 * parameters)
    )
    assert experiment.sizes(CellSize()) == CellSize(3, 2)  # 3 and 2, not 4 and 1
    monkeypatch.setattr(_experiment, "RUN", _experiment.RUN._replace(numbers_at_once=parameters))
    assert experiment.sizes(CellSize()) == CellSize(1, 1)
    monkeypatch.setattr(_experiment, "RUN", _experiment.RUN._replace(numbers_at_once=1))
    assert experiment.sizes(CellSize()) == CellSize(1, 1)
    assert experiment.sizes(CellSize(seeds=4)) == CellSize(4, 1)


def test_large_worlds_are_cut_too(monkeypatch):
    world = curves().lane_and_world_size[1]
    assert world >= 40 * (5 + 6)  # the rows of both views
    monkeypatch.setattr(_experiment, "WORLDS_AT_ONCE", 2 * world)
    assert curves().sizes(CellSize()).seeds == 2


def test_sizes_that_hold_nothing_are_refused(tmp_path):
    for bad in ({"seeds_per_cell": 0}, {"seeds_per_cell": -1}):
        with pytest.raises(InputError, match="at least 1"):
            experiments.run(Settings(**QUICK), tmp_path / "out", **bad)
    assert not (tmp_path / "out").exists()


def test_the_name_is_of_the_content():
    cell, again = (missing_cells(curves(), None, CellSize(2, 2))[0] for _ in range(2))
    assert cell.name == again.name
    others = [
        missing_cells(curves(lr=0.02), None, CellSize(2, 2))[0],
        missing_cells(curves(methods=("imt",)), None, CellSize(2, 2))[0],
    ]
    others += [
        missing_cells(curves(), None, CellSize(3, 2))[0],
        missing_cells(curves(), None, CellSize(2, 2))[1],
    ]
    assert len({cell.name, *(other.name for other in others)}) == 5
    # how many seeds were asked for in all is not part of it
    assert missing_cells(curves(seeds=4), None, CellSize(2, 2))[0].name == cell.name


def test_a_cell_travels_as_plain_values(tmp_path):
    cell = missing_cells(
        Experiment(Settings(**QUICK), {"lr": LRS, "beta": BETAS}), None, CellSize(2, 3)
    )[0]
    sent = pickle.loads(pickle.dumps(cell))
    assert sent == cell
    assert sent.name == cell.name
    _cells.compute_cell(sent, tmp_path)
    assert sent.path(tmp_path).exists()


def test_a_machine_with_other_data_is_refused(tmp_path, monkeypatch):
    cell = pickle.dumps(missing_cells(curves(), None, CellSize(2, 2))[0])

    def other(**options):
        return small_classes(**options)._replace(name="small", data_version="2")

    monkeypatch.setitem(tasks.REGISTRY, "small", other)
    with pytest.raises(InputError, match="data_version = 2, not 1"):
        _cells.compute_cell(pickle.loads(cell), tmp_path)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_cell_is_computed_again_and_a_whole_one_is_not(tmp_path, monkeypatch, damage):
    cell = missing_cells(curves(), None, CellSize(2, 2))[0]
    _cells.compute_cell(cell, tmp_path)
    before = load_curves(cell.path(tmp_path))
    calls = []
    original = teaching.Session.advance
    monkeypatch.setattr(
        teaching.Session, "advance", lambda self, n: calls.append(n) or original(self, n)
    )
    _cells.compute_cell(cell, tmp_path)
    assert not calls
    content = bytearray(cell.path(tmp_path).read_bytes())
    if damage == "flip":
        content[
            content.find(np.float32(before["loss"].values[1, 1, 2]).astype(">f4").tobytes()) + 1
        ] ^= 1
    cell.path(tmp_path).write_bytes({"cut": content[:-9], "flip": content, "empty": b""}[damage])
    said = []
    _cells.compute_cell(cell, tmp_path, say=said.append)
    assert calls
    assert "computing it again" in said[0]
    same(load_curves(cell.path(tmp_path)), before)


def collect_often(monkeypatch):
    """Collect every cell as soon as it is finished."""
    monkeypatch.setattr(_run, "SECONDS_BETWEEN_COLLECTIONS", -1e9)
    monkeypatch.setattr(_run, "COLLECTING", 1e9)


def test_the_collected_arrays_do_not_depend_on_when_they_are_collected(tmp_path, monkeypatch):
    options = {"seeds_per_cell": 2}
    whole = experiments.run(Settings(**QUICK), tmp_path / "whole", draw=False, **options).curves
    collect_often(monkeypatch)
    often = experiments.run(Settings(**QUICK), tmp_path / "often", draw=False, **options).curves
    same(often, whole)
    assert whole.attrs["seeds_per_cell"] == 2
    same(load_curves(tmp_path / "often/small/cooperative/curves.nc"), whole)
    assert sorted(file.name for file in (tmp_path / "often/small/cooperative").iterdir()) == [
        "curves.nc",
        "summary.csv",
    ]


def test_cells_of_points_make_the_same_grid(tmp_path):
    settings = Settings(**{**QUICK, "seeds": 2})
    whole = experiments.sweep(settings, LRS, BETAS, tmp_path / "whole")
    cut = experiments.sweep(settings, LRS, BETAS, tmp_path / "cut", points_per_cell=4)
    assert cut.lanes_computed == whole.lanes_computed == 12
    assert (cut.grid["computed"] == 1).all()
    for metric in ("distance", "loss"):
        np.testing.assert_allclose(cut.grid[metric], whole.grid[metric], rtol=2e-4)
    assert cut.grid.attrs["points_per_cell"] == 4


def test_a_sweep_is_collected_while_methods_without_beta_are_missing(tmp_path, monkeypatch):
    settings = Settings(**{**QUICK, "seeds": 2, "methods": ("batch", "imt", "ital")})
    whole = experiments.sweep(settings, LRS, BETAS, tmp_path / "whole", points_per_cell=2).grid
    collect_often(monkeypatch)
    often = experiments.sweep(settings, LRS, BETAS, tmp_path / "often", points_per_cell=2).grid
    same(often, whole)
    assert tuning.without_beta(often) == ["batch", "imt"]
    assert tuning.without_beta(often.sel(learner=["imt", "ital"])) == ["imt"]


def test_cells_left_by_a_kill_are_collected_not_computed(tmp_path):
    experiment = curves()
    folder = tmp_path / experiment.folder
    folder.mkdir(parents=True)
    first, second, _ = missing_cells(experiment, None, CellSize(2, 2))
    _cells.compute_cell(first, folder)
    _cells.compute_cell(second, folder)
    second.path(folder).write_bytes(second.path(folder).read_bytes()[:1000])
    said = []
    outcome = experiments.run(
        Settings(**QUICK), tmp_path, seeds_per_cell=2, draw=False, say=said.append
    )
    assert outcome.lanes_computed == 2 * 2 + 2
    assert [line for line in said if "computing it again" in line]
    whole = experiments.run(Settings(**QUICK), tmp_path / "whole", seeds_per_cell=2, draw=False)
    same(outcome.curves, whole.curves)


def out_of_memory(limit, asked):
    """Sessions that hold a limited number of lanes."""
    original = teaching.Session.advance

    def advance(self, intervals):
        seeds, lanes = self.layout.seeds, len(self.learners)
        asked.append((seeds, lanes))
        if seeds * lanes > limit:
            raise jax.errors.JaxRuntimeError(
                "RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes."
            )
        return original(self, intervals)

    return advance


def test_a_cell_that_does_not_fit_is_halved(tmp_path, monkeypatch):
    whole = experiments.run(Settings(**QUICK), tmp_path / "whole", draw=False).curves
    asked, said = [], []
    monkeypatch.setattr(teaching.Session, "advance", out_of_memory(2, asked))
    halved = experiments.run(Settings(**QUICK), tmp_path / "halved", draw=False, say=said.append)
    assert halved.lanes_computed == 10
    assert {seeds for seeds, _ in asked} == {5, 3, 2, 1}
    # Of 5 seeds: 5, 2, 3 and the 2 in it.
    assert sum("not enough memory" in line for line in said) == 4
    np.testing.assert_allclose(halved.curves["distance"], whole["distance"], rtol=2e-4)
    assert not list((tmp_path / "halved").rglob("cells"))
    asked.clear()
    monkeypatch.setattr(teaching.Session, "advance", out_of_memory(1, asked))
    grid = experiments.sweep(Settings(**{**QUICK, "seeds": 1}), LRS, BETAS, tmp_path)
    assert (grid.grid["computed"] == 1).all()
    assert (1, 1) in asked


def test_a_cell_that_cannot_fit_is_halved_before_it_is_tried(tmp_path, monkeypatch):
    """A container would kill the process instead of raising an error."""
    experiment = curves()
    plan = experiment.plan
    seed = teaching.bytes_per_seed(
        plan.task, plan.run, len(experiment.lanes), [plan.task.world(0), plan.task.world(1)]
    )
    monkeypatch.setattr(_numbers, "FEW_SEEDS", 0)
    monkeypatch.setattr(memory, "free_memory", lambda: 3 * seed)
    asked, said = [], []
    monkeypatch.setattr(teaching.Session, "advance", out_of_memory(10, asked))
    result = experiments.run(Settings(**QUICK), tmp_path, draw=False, say=said.append)
    assert result.lanes_computed == 10
    assert {seeds for seeds, _ in asked} == {2, 3}
    assert ["not enough memory" in line for line in said] == [True]


def test_a_single_lane_that_does_not_fit_fails(tmp_path, monkeypatch):
    def advance(self, intervals):
        raise MemoryError

    monkeypatch.setattr(teaching.Session, "advance", advance)
    with pytest.raises(experiments.Incomplete) as incomplete:
        experiments.run(Settings(**QUICK), tmp_path, draw=False)
    assert "MemoryError" in incomplete.value.failures[0].traceback


def test_cells_of_another_version_are_left_alone(tmp_path, monkeypatch):
    experiment = curves()
    folder = tmp_path / experiment.folder
    folder.mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(_experiment, "__version__", "0.0.1")
        (old,) = missing_cells(curves(), None, CellSize(5, 2))
        _cells.compute_cell(old, folder)
    assert json.loads(old.made_by)["ital_version"] == "0.0.1"
    assert experiments.run(Settings(**QUICK), tmp_path, draw=False).lanes_computed == 10
    assert old.path(folder).exists()
