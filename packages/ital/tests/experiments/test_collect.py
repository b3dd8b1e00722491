"""The numbers of a result that grows: every lane in its place, the time of all calls, pictures of
one seed.
"""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from ital import experiments, learners, tasks, teachers, teaching
from ital.experiments import Settings, _cells, _run
from ital.experiments._experiment import Experiment
from ital.teaching import Recording, seen
from tests.experiments.made_up import UNEVEN, experiment, sweep
from tests.worlds import small_classes

RUN = teaching.Run(seeds=[0], steps=20, lr=0.01)
QUICK = {"task": "small", "methods": ("imt", "ital"), "seeds": 1, "steps": 20, "lr": 0.01}
LABELS = [4, 6, 7, 11, 13]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A quick task among the registered ones."""
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )


# ---- every lane in its place ----


def cell(curves, lanes, seeds, rows):
    """A cell's file: the rows of some lanes, with the constants of its seeds."""
    labels = [str(curves["label"].sel(learner=lane[0]).values) for lane in lanes]
    own = xr.Dataset(
        {
            name: (("learner", "seed", *rest), np.stack(values))
            for name, (rest, values) in rows.items()
        }
    )
    own = own.assign_coords(
        learner=[str(i) for i in range(len(lanes))],
        label=("learner", labels),
        seed=seeds,
        step=curves["step"],
    )
    own["distance"].attrs["floor"] = np.array([0.1 * seed for seed in seeds])
    return own.assign_attrs(lanes=json.dumps(lanes), seconds=1.0)


def cells_of_run(curves, places):
    """A run cut into cells: which methods, which seeds."""
    made = []
    for methods, seeds in places:
        part = curves.sel(learner=methods, seed=seeds)
        rows = {name: (own.dims[2:], list(own.values)) for name, own in part.data_vars.items()}
        made.append(cell(curves, [(method, None, None) for method in methods], seeds, rows))
    return made


def test_a_run_is_put_together_from_cells_of_any_shape():
    whole = experiment(seeds=LABELS, steps=UNEVEN, rough=0.1).curves
    whole = whole.sel(learner=["imt", "ital", "ital-2"]).drop_vars("accuracy")
    plan = Experiment(
        Settings("regression", methods=("ital-2", "imt", "ital"), seeds=9, first_seed=3)
    )
    places = [
        (["imt"], [11, 4]),
        (["ital"], [4]),
        (["ital", "ital-2"], [7, 13]),
        (["ital-2"], [4, 11]),
    ]
    now, later = cells_of_run(whole, places[:2]), cells_of_run(whole, places[2:])
    old = _run.assemble(plan, None, now)
    for order in itertools.permutations(later):
        found = _run.assemble(plan, old, list(order))
        assert found["learner"].values.tolist() == ["ital-2", "imt", "ital"]
        assert found["label"].values.tolist() == ["ITAL-2", "IMT", "ITAL"]
        assert found["seed"].values.tolist() == [4, 7, 11, 13]
        np.testing.assert_allclose(found["distance"].attrs["floor"], [0.4, 0.7, 1.1, 1.3])
        there = {
            (method, seed) for methods, seeds in places for method in methods for seed in seeds
        }
        for method, seed in itertools.product(found["learner"].values, found["seed"].values):
            lane, expected = (each.sel(learner=method, seed=seed) for each in (found, whole))
            if (method, seed) in there:
                for name in ("distance", "loss", "computed", "diverged_at"):
                    np.testing.assert_array_equal(lane[name], expected[name])
            else:
                assert np.isnan(lane["distance"]).all()
                assert (int(lane["computed"]), int(lane["diverged_at"])) == (0, -1)
    # The last cell that has a lane counts, and the methods of an old result keep their order.
    plan = Experiment(Settings("regression", methods=("imt",), seeds=9, first_seed=3))
    (again,) = cells_of_run(2 * whole, [(["imt"], [4])])
    newer = _run.assemble(plan, old, [again])
    assert newer["learner"].values.tolist() == ["imt", "ital"]
    twice = newer["distance"].sel(learner="imt").values
    np.testing.assert_array_equal(
        twice, np.array([[2.0], [1.0]]) * whole["distance"].sel(learner="imt", seed=[4, 11])
    )


@pytest.mark.parametrize(
    ("stored", "named", "expected"),
    [
        ([], ["ital", "imt"], ["ital", "imt"]),
        (["ital"], ["imt", "ital"], ["imt", "ital"]),  # imt had failed
        (["imt", "ital"], ["ital", "imt"], ["ital", "imt"]),
        (["imt", "ital"], ["imt"], ["imt", "ital"]),  # more seeds of imt
        (["imt", "ital"], ["sgd", "ital", "batch"], ["imt", "ital", "sgd", "batch"]),
    ],
)
def test_methods_keep_their_order_unless_all_are_named(stored, named, expected):
    whole = experiment(seeds=LABELS, steps=UNEVEN).curves
    plan = Experiment(Settings("regression", methods=tuple(named), seeds=9, first_seed=3))
    old = None
    for name in stored:  # one after the other, as they were typed
        at_first = Experiment(Settings("regression", methods=(name,), seeds=9, first_seed=3))
        old = _run.assemble(at_first, old, cells_of_run(whole, [([name], [4])]))
    found = _run.assemble(
        plan, old, cells_of_run(whole, [([name], [11]) for name in reversed(named)])
    )
    assert found["learner"].values.tolist() == expected


def test_a_sweep_is_put_together_from_its_points():
    whole = sweep(seeds=5, whole=True).sel(learner=["batch", "ital", "ital-5"])
    lrs, betas = (tuple(whole[name].values.tolist()) for name in ("lr", "beta"))
    plan = Experiment(
        Settings("regression", methods=("batch", "ital", "ital-5"), seeds=9),
        {"lr": lrs, "beta": betas},
    )
    points = [("batch", lr, None) for lr in lrs]
    points += [(name, lr, beta) for name in ("ital", "ital-5") for lr in lrs for beta in betas]
    points = [points[i] for i in np.random.default_rng(1).permutation(len(points))]
    labels = whole["seed"].values.tolist()
    made = []
    for lanes, seeds in itertools.product((points[:9], points[9:]), (labels[3:], labels[:3])):
        at = [
            {"learner": name, "lr": lr, "beta": beta or 0.0, "seed": seeds}
            for name, lr, beta in lanes
        ]
        rows = {
            name: (
                ("step",) if name == "distance" else (),
                [whole[name].sel(place).values for place in at],
            )
            for name in ("distance", "computed", "diverged_at")
        }
        made.append(cell(whole, lanes, seeds, rows))
    old = _run.assemble(plan, None, made[1:2])
    there = old["computed"].to_series()
    for name, lr, beta, seed in itertools.product(
        *(there.index.unique(axis) for axis in there.index.names)
    ):
        first = (name, lr, None if name == "batch" else beta) in points[:9]
        assert there[name, lr, beta, seed] == first
    assert set(there) == {0, 1}
    found = _run.assemble(plan, old, [made[2], made[3], made[0]])
    for name in ("distance", "computed", "diverged_at"):
        np.testing.assert_array_equal(found[name].transpose(*whole[name].dims), whole[name])


# ---- the time of all calls ----


def test_the_time_of_a_result_is_that_of_all_calls(tmp_path):
    """The claim on twelve hours reads it."""
    first = experiments.run(Settings(**QUICK), tmp_path, draw=False, seeds_per_cell=1)
    file = first.files[0]
    assert 0 < first.curves.attrs["seconds"] < 600
    experiments.save_curves(experiments.load_curves(file).assign_attrs(seconds=5000.0), file)
    grown = experiments.run(
        Settings(**QUICK | {"seeds": 3}), tmp_path, draw=False, seeds_per_cell=1
    )
    assert 5000 < grown.curves.attrs["seconds"] < 5600
    same = experiments.run(Settings(**QUICK | {"seeds": 3}), tmp_path, draw=False)
    assert same.curves.attrs["seconds"] == grown.curves.attrs["seconds"]


def test_the_time_of_an_interrupted_run_is_that_of_both_parts(tmp_path, monkeypatch):
    """The clock ticks once a reading: 7 seconds in the first part, 5 in the second, thousands
    between them.
    """

    def clock(begin, tick):
        times = itertools.count(begin, tick)
        monkeypatch.setattr(_cells, "time", SimpleNamespace(monotonic=lambda: next(times)))

    def opened():
        return Recording(
            teaching.open_sessions(
                small_classes(),
                teachers.cooperative(),
                [learners.imt(), learners.make("ital")],
                RUN,
            )
        )

    checkpoint, saved = tmp_path / "checkpoint", []
    monkeypatch.setattr(_cells, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    save = _cells.save_checkpoint
    monkeypatch.setattr(
        _cells,
        "save_checkpoint",
        lambda recording, took, path: (saved.append(took), save(recording, took, path)),
    )
    clock(100.0, 7.0)
    whole = _cells.run_to_the_end(opened(), checkpoint, lambda share: None, print)
    assert saved
    assert whole == saved[-1] + 7.0
    assert saved[0] == 14.0  # at the beginning, before the first block, after it
    clock(90000.0, 5.0)
    said = []
    again = _cells.run_to_the_end(opened(), checkpoint, lambda share: None, said.append)
    assert said == ["resuming an interrupted run (100% done)"]
    assert again == saved[-1] + 10.0


# ---- pictures ----


def test_a_picture_shows_methods_on_one_seed():
    """What IMT learned on seed 11 is not shown beside what ITAL learned on seed 4."""
    whole = (
        experiment(seeds=LABELS, rough=0.1)
        .curves.sel(learner=["imt", "ital", "ital-2"])
        .drop_vars("accuracy")
    )
    plan = Experiment(Settings("regression", methods=("imt", "ital", "ital-2"), seeds=9))
    paths = np.random.default_rng(2).normal(size=(4, 3, 2))  # of a part: frame, parameter

    def grown(old, methods, seed, number):
        (own,) = cells_of_run(whole, [(methods, [seed])])
        path = np.stack([(i + 1) * paths[number] for i in range(len(methods))])
        own["path"] = ("learner", "frame", "parameter"), path, {"seed": seed}
        return _run.assemble(plan, old, [own.assign_coords(learner=methods, frame=[0, 900, 2000])])

    first = grown(None, ["imt"], 11, 0)
    assert first["path"].attrs["seed"] == 11
    second = grown(first, ["ital"], 4, 1)
    path = second["path"]
    assert (path.attrs["seed"], path["frame"].values.tolist()) == (4, [0, 900, 2000])
    np.testing.assert_array_equal(path.sel(learner="ital"), paths[1])
    assert np.isnan(path.sel(learner="imt")).all()
    assert seen(second, tasks.regression(), ("imt", "ital")) is None
    third = grown(second, ["ital-2", "imt"], 4, 2)["path"]
    for method, expected in (("imt", 2 * paths[2]), ("ital", paths[1]), ("ital-2", paths[2])):
        np.testing.assert_array_equal(third.sel(learner=method), expected)
