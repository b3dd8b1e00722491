"""The arithmetic of the benchmark, with clocks and sessions whose speed is known."""

import itertools
from types import SimpleNamespace

import pytest

from ital import bench
from ital.bench import _cases, _limits, scaling


class Clock:
    """Time that passes only where something is done."""

    def __init__(self, now=100.0):
        self.now = now

    def perf_counter(self):
        return self.now


class Session:
    """A session whose blocks take a known time: the first 7 s, later ones ``each`` s per interval
    in turn.
    """

    def __init__(self, clock, steps, each=(1.0,)):
        self.clock = clock
        self.steps = steps
        self.each = itertools.cycle(each)
        self.carry = 0
        self.compiled = False
        self.asked = []

    @property
    def step(self):
        return self.carry

    def advance(self, intervals):
        self.asked.append(intervals)
        self.clock.now += intervals * next(self.each) if self.compiled else 7.0
        self.compiled = True
        self.carry += 20 * intervals


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    for module in (bench, scaling, _limits):
        monkeypatch.setattr(module, "time", made)
    return made


def test_a_run_is_timed_from_its_start_without_compilation(clock, monkeypatch):
    monkeypatch.setattr(bench, "BLOCK", 5)
    runs = (0.2, 0.5, 0.3)  # seconds per interval of each run of two blocks
    session = Session(clock, 200, [each for each in runs for _ in range(2)])
    seconds, compile_seconds = bench._time(session)
    assert seconds == pytest.approx(10 * 0.3)  # the median of three
    assert compile_seconds == 7.0
    assert session.asked == [1] + [5] * 6
    slow = Session(clock, 200, [2.0])
    assert bench._time(slow)[0] == pytest.approx(20.0)
    assert slow.asked == [1, 5, 5]  # one run of 20 s is enough


def test_the_report_divides_speeds(monkeypatch):
    made = {
        "rows": _cases.Case(SimpleNamespace(name="rows"), None),
        "grid": _cases.Case(SimpleNamespace(name="grid"), None, pool=False),
    }
    monkeypatch.setattr(bench._cases, "cases", lambda test_rows: made)
    monkeypatch.setattr(
        bench._cases, "session", lambda task, lanes, steps, *more: (task.name, lanes, steps)
    )
    products = SimpleNamespace(_replace=lambda name: name)
    monkeypatch.setattr(
        bench._cases, "floor", lambda task: (SimpleNamespace(name="floor"), "first", products)
    )
    seconds = {"rows": (4.0, 11.0), "grid": (8.0, 12.0), "floor": (2.5, 13.0)}
    monkeypatch.setattr(bench, "_time", lambda session: seconds[session[0]])
    monkeypatch.setattr(
        bench, "_numpy_speed", lambda case: {"rows": 50.0, "grid": 20.0}[case.task.name]
    )
    report = bench.measure(16, 300, 9)
    assert (report["lanes"], report["steps"]) == (16, 300)
    assert report["cases"]["grid"] == {
        "numpy_steps_per_second": 20.0,
        "ital_steps_per_second": 600.0,
        "ital_over_numpy": 30.0,
        "ital_seconds": 8.0,
        "compile_seconds": 12.0,
    }
    assert report["cases"]["rows"] == {
        "numpy_steps_per_second": 50.0,
        "ital_steps_per_second": 1200.0,
        "ital_over_numpy": 24.0,
        "ital_seconds": 4.0,
        "compile_seconds": 11.0,
        "floor_steps_per_second": 1920.0,
        "ital_over_floor_time": 1.6,
    }


def test_the_estimate_of_the_time_counts_runs_and_compilations():
    # four cases and three floors: NumPy 4 × 3 s, compilation 7 × 5 s, one to three runs of 7
    # programs
    short, long = 8000 / 100_000, 400 * 50_000 / 100_000
    assert bench.expected_minutes(8, 1000) == pytest.approx(1.0)
    assert bench.expected_minutes(400, 50_000) == pytest.approx((12 + 35 + 7 * long) / 60)
    middle = 5.0  # ten seconds are two runs
    assert bench.expected_minutes(100, 5000) == pytest.approx((12 + 35 + 7 * 2 * middle) / 60)
    assert (12 + 35 + 7 * 3 * short) / 60 < 1


@pytest.mark.parametrize(
    ("speed", "words"), [(1234.5, "1.2k"), (9994.0, "10.0k"), (10_000.0, "10k"), (2.5e6, "2,500k")]
)
def test_thousands(speed, words):
    assert bench._thousands(speed) == words


def test_a_step_takes_the_shortest_of_the_blocks(clock, monkeypatch):
    monkeypatch.setattr(scaling, "BLOCK", 8)
    session = Session(clock, 2**30, (0.04, 0.03, 0.05))
    assert scaling._seconds_per_step(session) == pytest.approx(0.03 / 20)
    # after the first, blocks of a third of 0.4 s, at most 8 intervals, until 0.4 s have passed
    assert session.asked == [1, 1, 3, 4, 2]
    quick = Session(clock, 2**30, (0.001,))
    assert scaling._seconds_per_step(quick) == pytest.approx(0.001 / 20)
    assert max(quick.asked) == 8


def test_a_point_names_the_nearest_bound(monkeypatch):
    lanes = SimpleNamespace(lr=SimpleNamespace(size=24))
    session = SimpleNamespace(numbers=SimpleNamespace(lanes=lanes))
    monkeypatch.setattr(scaling, "endless", lambda task, asked: session)
    monkeypatch.setattr(scaling, "_seconds_per_step", lambda session: 0.006)
    cost = _limits.Cost(flops=1e5, bytes=3e3, reach=100.0, kernels=5)
    limits = _limits.Limits({1000: 4e7, 100_000: 2e7}, arithmetic=1e9, loop=1e-3, kernel=1e-4)
    point = scaling._point("task", 20, limits, {"cost": cost._asdict()})
    assert (point["lanes"], point["bound"]) == (
        24,
        "memory" if 24 * 3e3 / 2e7 > 24 * 1e5 / 1e9 else "arithmetic",
    )
    assert point["bounds"] == pytest.approx(
        {"memory": 24 * 3e3 / 2e7, "arithmetic": 24 * 1e5 / 1e9, "launch": 1e-3}
    )
    assert point["steps_per_second"] == pytest.approx(4000.0)
    assert point["distance"] == pytest.approx(0.006 / (24 * 3e3 / 2e7))
    assert point["cost"] == cost._asdict()


def test_memory_is_that_above_an_empty_process():
    empty = {"peak_bytes": 100, "device_peak_bytes": 10}
    above = scaling._above(empty, {"rows": 5, "peak_bytes": 350, "device_peak_bytes": 90})
    assert (above["rows"], above["above_empty_bytes"], above["device_above_empty_bytes"]) == (
        5,
        250,
        80,
    )
    above = scaling._above(
        empty | {"device_peak_bytes": None}, {"peak_bytes": 350, "device_peak_bytes": None}
    )
    assert above["above_empty_bytes"] == 250
    assert "device_above_empty_bytes" not in above


def test_peaks_are_operations_over_the_shortest_time(clock, monkeypatch):
    times = iter([50.0, 3.0, 0.5, 2.0, 0.25, 4.0])  # the first is the compilation

    def run():
        clock.now += next(times)

    assert _limits._seconds(run) == 0.25
    monkeypatch.setattr(_limits, "_seconds", lambda function, *arguments: 0.5)
    size = 2**16
    assert _limits._copy(size) == 2 * size * 2000 / 0.5
    assert _limits._copy(2**28) == 2 * 2**28 * 16 / 0.5
    monkeypatch.setattr(_limits, "_copy", lambda size: 1.0 * size)
    monkeypatch.setattr(_limits, "_loop", lambda links: (1e-6 * links**2, 3 * links))
    monkeypatch.setattr(_limits.jax, "default_backend", lambda: "cpu")
    limits = _limits.measure_limits()
    assert limits.arithmetic == 2 * 1024**3 / 0.5
    assert limits.loop == 1e-6
    assert limits.kernel == pytest.approx(1e-6 * (128**2 - 64**2) / (3 * 64))
    assert list(limits.copy) == [2**16, 2**19, 2**22, 2**25, 2**28]


def test_a_small_array_stays_in_the_fastest_memory_that_holds_it():
    limits = _limits.Limits({10: 5.0, 100: 9.0, 1000: 2.0}, 1.0, 1.0, 1.0)
    assert [limits.bandwidth(size) for size in (5, 10, 11, 100, 101, 5000)] == [
        9.0,
        9.0,
        9.0,
        9.0,
        2.0,
        2.0,
    ]
