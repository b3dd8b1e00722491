import functools
import io
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital import figures
from ital.bench import _limits, scaling
from ital.cli import main
from tests.worlds import small_classes, small_numbers

MANY = 300_000  # rows: enough that variations of tens of MB between runs do not matter
memory = functools.cache(scaling.memory)  # each is a process with its own compilation
LIMITS = _limits.Limits(
    {1000: 4e9, 100_000: 2e9, 10_000_000: 1e9}, arithmetic=1e10, loop=1e-6, kernel=1e-7
)


@pytest.fixture
def small(monkeypatch):
    """A complete but small ``ital bench --scaling``."""
    monkeypatch.setattr(scaling, "TASKS", {"gaussian": small_classes})
    monkeypatch.setattr(scaling, "LANES", (8, 16))
    monkeypatch.setattr(scaling, "ROWS", (1000,))
    monkeypatch.setattr(scaling, "MEMORY_ROWS", (MANY,))
    monkeypatch.setattr(scaling, "memory", memory)
    monkeypatch.setattr(scaling, "_together", functools.partial(scaling._together, seconds=0.1))
    monkeypatch.setattr(scaling, "WORKERS", (1,))
    monkeypatch.setattr(scaling, "ENOUGH", 0.01)
    monkeypatch.setattr(_limits, "measure_limits", lambda: LIMITS)


def test_the_command_measures_writes_and_draws(small, capsys, tmp_path):
    began = time.perf_counter()
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--scaling", "--json", "--out", str(tmp_path / "new" / "folder")])
    took = time.perf_counter() - began
    assert stop.value.code == 0
    report = json.loads(capsys.readouterr().out)
    folder = tmp_path / "new" / "folder"
    assert {file.name for file in folder.iterdir()} == {
        "scaling.json",
        "scaling.png",
        "scaling.pdf",
    }
    assert json.loads((folder / "scaling.json").read_text()) == report
    assert [point["lanes"] for point in report["lanes"]["gaussian"]] == [8, 16]
    assert [point["rows"] for point in report["rows"]] == [1000]
    assert len(report["load"]) == 2
    (above,) = report["memory"]
    assert above["pool_bytes"] == 2 * MANY * 101 * 4
    assert above["above_empty_bytes"] == memory(MANY)["peak_bytes"] - memory(100)["peak_bytes"]
    (together,) = report["workers"]
    assert together["workers"] == 1
    assert together["steps_per_second"] > 160 * 8 * 20 / took  # at least one block of its 160 lanes
    for point in (*report["lanes"]["gaussian"], *report["rows"]):
        assert point["steps_per_second"] == pytest.approx(
            point["lanes"] / point["seconds_per_step"]
        )
        assert point["bounds"][point["bound"]] == max(point["bounds"].values())
        assert point["distance"] == pytest.approx(
            point["seconds_per_step"] / point["bounds"][point["bound"]]
        )
    scaling._print(report)
    out = capsys.readouterr().out
    assert "gaussian, 16 lanes" in out
    assert f"{MANY:,} rows" in out
    assert len(figures.plot_scaling(report).axes) == 4


def test_a_series_ends_before_a_point_that_takes_too_long(monkeypatch):
    monkeypatch.setattr(scaling, "LANES", (8, 80, 800))
    monkeypatch.setattr(scaling, "LONGEST", 20 * 0.15)
    monkeypatch.setattr(
        scaling,
        "_point",
        lambda task, lanes, *_: {"lanes": lanes, "seconds_per_step": lanes * 1e-3},
    )
    points = scaling._against_lanes("small", small_numbers(), LIMITS, lambda line: None)
    assert [point["lanes"] for point in points] == [8, 80]


def test_the_bounds_of_a_step():
    cost = _limits.Cost(flops=1e3, bytes=100.0, reach=200.0, kernels=5)
    few, many = _limits.bounds(LIMITS, cost, 10), _limits.bounds(LIMITS, cost, 10_000)
    assert few == pytest.approx({"memory": 1000 / 2e9, "arithmetic": 1e4 / 1e10, "launch": 1e-6})
    assert many == pytest.approx({"memory": 1e6 / 1e9, "arithmetic": 1e7 / 1e10, "launch": 1e-6})
    assert _limits.bounds(LIMITS, cost._replace(kernels=50), 10)["launch"] == pytest.approx(5e-6)
    assert LIMITS.bandwidth(1e12) == 1e9  # beyond the largest array that was tried


def test_the_cost_of_a_step_counts_its_products():
    """Two looks at the mini-batch and two weighted sums, each B × K × (d+1) multiplications and
    additions.
    """
    session = scaling.endless(small_numbers(), 8)
    one, two = (_limits.cost(session, every=every) for every in (10**9, 1))
    products = 4 * 2 * 20 * 2 * 5
    assert products <= one.flops <= 3 * products
    assert two.flops - one.flops >= 2 * 10 * 2 * 5  # a measurement on ten test rows
    # x with its one, its squared norm, two labels; eight lanes share a mini-batch.
    row = 4 * (5 + 1 + 2)
    assert one.bytes == pytest.approx(2 * 4 * 10 + 20 * row / 8)
    assert two.bytes == pytest.approx(one.bytes + 4 * 10 + 10 * row / 8)
    assert one.reach == pytest.approx(4 * 10 + 40 * row / 8)
    assert 1 <= one.kernels < 200


def test_the_size_of_the_pool_adds_nothing_to_what_a_step_moves():
    small, large = (
        _limits.cost(scaling.endless(scaling.pool(rows), 8), every=10**9) for rows in (200, 2000)
    )
    assert small.bytes == pytest.approx(large.bytes)
    assert small.flops == pytest.approx(large.flops, rel=0.01)
    assert large.reach > 5 * small.reach


def test_kernels_are_counted_once_and_idle_operations_not():
    few, many = (_limits._loop(links, rounds=50)[1] for links in (1, 4))
    assert many == 4 * few > 0
    idle = jax.jit(lambda x: (x.reshape(2, 4), x)).lower(jnp.zeros(8)).compile()
    assert _limits._kernels(idle.as_text()) <= 2  # copies, no work


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only where a test says so."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_the_fastest_of_five_runs_after_compilation_counts(clock):
    took = iter([9.0, 0.5, 0.3, 0.2, 0.6, 0.4, 7.0])

    def slow():
        clock[0] += next(took)

    assert _limits._seconds(slow) == pytest.approx(0.2)
    assert next(took) == 7.0  # one run to compile, and five


def test_the_fastest_block_counts_after_compilation(clock, monkeypatch):
    monkeypatch.setattr(scaling, "ENOUGH", 0.9)

    class Timed:
        """Each interval takes 0.03 s, but the first block also 5 s to compile, and the second is
        disturbed.
        """

        extra = iter([5.0, 0.1, 0.0, 0.0, 0.0, 0.0])

        def advance(self, intervals):
            clock[0] += 0.03 * intervals + next(self.extra)

    assert scaling._seconds_per_step(Timed()) == pytest.approx(0.03 / scaling.EVERY)


def test_limits_follow_from_what_was_timed(monkeypatch):
    """Half a second for anything; a round of a loop takes 2 ms, and 0.1 ms more for each of three
    kernels a link.
    """
    monkeypatch.setattr(_limits, "_seconds", lambda function, *arguments: 0.5)
    monkeypatch.setattr(_limits, "_loop", lambda links: (2e-3 + 3e-4 * (links - 1), 3 * links))
    limits = _limits.measure_limits()
    assert limits.arithmetic == 2 * 1024**3 / 0.5
    assert limits.loop == 2e-3
    assert limits.kernel == pytest.approx(1e-4)
    assert limits.copy[2**16] == 2 * 2**16 * 2000 / 0.5  # bytes read and written, in 2000 rounds
    assert limits.copy[2**28] == 2 * 2**28 * 16 / 0.5


def test_speeds_of_parallel_processes_are_added(monkeypatch):
    class Child:
        def __init__(self, speed):
            self.speed, self.stdin, self.stdout = speed, io.StringIO(), io.StringIO("ready\n")

        def communicate(self):
            assert self.stdin.getvalue() == "0.5\n"
            return json.dumps({"steps_per_second": self.speed}), None

        def kill(self):
            self.speed = None

        wait = kill

    children = [Child(100.0), Child(250.0)]
    started = iter(children)
    monkeypatch.setattr(scaling, "_start_child", lambda *arguments: next(started))
    assert scaling._together(2, seconds=0.5) == 350.0
    assert [child.speed for child in children] == [None, None], "both have been ended"


def share_of_pool(rows):
    """Peak memory above that of an almost empty run, in units of the pool (both views)."""
    empty, full = memory(100), memory(rows)
    assert full["pool_bytes"] == 2 * rows * 101 * 4
    return (full["peak_bytes"] - empty["peak_bytes"]) / full["pool_bytes"]


def test_a_pool_stays_below_twice_its_bytes():
    assert 0.9 < share_of_pool(MANY) < 2


@pytest.mark.slow
def test_a_large_pool_stays_below_twice_its_bytes():
    assert 0.9 < share_of_pool(1_000_000) < 2


def test_one_array_for_both_views_has_its_rows_once():
    from ital import losses, tasks

    x = np.random.default_rng(0).normal(size=(30, 4))
    target = np.ones((1, 5))
    y = x @ target[0, :-1] + 1
    one = tasks.from_pool(
        "one", tasks.Pool(x, x, y, target, target, x, y), losses.squared, beta=1.0
    ).world(0)
    two = tasks.from_pool(
        "two", tasks.Pool(x, x.copy(), y, target, target, x, y), losses.squared, beta=1.0
    ).world(0)
    assert one.learner.x.x is one.teacher.examples.x.x
    assert two.learner.x.x is not two.teacher.examples.x.x
    np.testing.assert_array_equal(one.teacher.examples.x.x, two.teacher.examples.x.x)


def test_a_folder_is_for_scaling_alone(capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    assert "--out needs --scaling" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
