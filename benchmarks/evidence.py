"""The measurements behind docs/explanation/evidence.md, stored as text in benchmarks/results/.

python benchmarks/evidence.py curves [WORLD …]    distance over steps: beliefs, tuned ITAL and IMT
python benchmarks/evidence.py teachers [WORLD …]  every kind of teacher; what the learner infers
python benchmarks/evidence.py time [WORLD …]      milliseconds of a step
python benchmarks/evidence.py page                tables and figure of the page, from stored results
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

import ital
from ital import experiments, tasks, tuning
from ital.figures import charts
from ital.results import mean_and_error
from ital.statistics import number
from ital.tools.files import write

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "evidence.json"
PAGE = ROOT / "docs" / "explanation" / "evidence.md"
FIGURE = ROOT / "docs" / "images" / "evidence.svg"
RUNS = ROOT / "results" / "evidence"
SEEDS = 5
STEPS = 200
BATCH_SIZE = 20
JUDGED = (100, 200)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
MULTIPLES = (0.01, 0.1, 1.0, 10.0)  # of the task's |β|: for tuned ITAL and Boltzmann teachers
LABELS = {
    "posterior": "posterior",
    "ital-posterior": "ital-posterior",
    "ital": "ITAL, tuned",
    "imt": "IMT, tuned",
}
COLOURS = {
    "posterior": "#8c8c8c",
    "ital-posterior": "#d55e00",
    "ital": "#08306b",
    "imt": "#56b4e9",
}


class BeliefWorld(NamedTuple):
    """A world of the page.

    Attributes:
        title: its name in figures.
        make: makes the task.
        numbers: how many numbers d the learner has.
        options: settings of both beliefs, as typed after their names.
        seeds: seeds of the beliefs' curves.
    """

    title: str
    make: Callable[[], tasks.Task]
    numbers: int
    options: str = ""
    seeds: int = 5


WORLDS = {
    "irl-dense": BeliefWorld(
        "Online IRL, 64 rewards", lambda: tasks.make("irl-dense"), 64, seeds=20
    ),
    "regression-noisy": BeliefWorld(
        "Regression, label noise sd 1",
        lambda: tasks.regression(dim=50, label_noise="sd:1"),
        51,
    ),
    "gaussian-noisy": BeliefWorld(
        "5 classes, 30 % wrong labels",
        lambda: tasks.gaussian(classes=5, dim=10, label_noise=0.3),
        55,
        ":wrong=0.3",
    ),
    "regression-exact": BeliefWorld(
        "Regression, exact labels", lambda: tasks.regression(dim=50), 51
    ),
}


def beliefs(world: BeliefWorld) -> list[str]:
    """Return the names of both beliefs on this world."""
    return [f"posterior{world.options}", f"ital-posterior{world.options}"]


def metric_of(curves: Any) -> str:
    """Return the metric that judges: the distance without its constant part, if recorded."""
    return "distance_centred" if "distance_centred" in curves else "distance"


def load() -> dict[str, Any]:
    """Return the stored measurements."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def store(part: str, name: str, content: Any) -> None:
    """Add measurements to the stored ones, with four digits of each number."""
    stored = load()
    stored.setdefault(part, {})[name] = content
    rounded = json.loads(json.dumps(stored), parse_float=lambda text: float(f"{float(text):.4g}"))
    RESULTS.parent.mkdir(exist_ok=True)
    write(RESULTS, (json.dumps(rounded, indent=1) + "\n").encode())


# ---- measuring ----


def measure_curves(name: str) -> None:
    """Teach both beliefs, and ITAL and IMT at their own best settings, chosen on the same seeds.

    The beliefs are kept in results/evidence/WORLD: what is there is not computed again.
    """
    world = WORLDS[name]
    task = world.make()
    wanted = experiments.Settings(
        task=task, methods=tuple(beliefs(world)), seeds=world.seeds, steps=STEPS
    )
    found = experiments.run(wanted, RUNS / name, draw=False).curves
    metric = metric_of(found)
    curves = dict(zip(("posterior", "ital-posterior"), _lines(found, metric), strict=True))
    settings = experiments.Settings(task=task, methods=("imt", "ital"), seeds=SEEDS, steps=STEPS)
    betas = [multiple * abs(float(task.beta)) for multiple in MULTIPLES]
    with tempfile.TemporaryDirectory() as folder:
        grid = experiments.sweep(settings, RATES, betas, folder).grid
        verdict = tuning.judge(grid, STEPS)
    tuned = {}
    for best in verdict.best:
        lr = float(best.lr)
        beta = best.beta
        method = str(best.method)
        again = ital.teach(task, learner=method, steps=STEPS, seeds=SEEDS, lr=lr, beta=beta)
        (curves[method],) = _lines(again.curves, metric)
        tuned[method] = {"lr": lr, "beta": beta}
    store(
        "curves", name, {"metric": metric, "seeds": world.seeds, "tuned": tuned, "curves": curves}
    )


def _lines(curves: Any, metric: str) -> list[dict[str, list[float]]]:
    """Return steps, mean and standard error of each learner."""
    lines = []
    for method in curves["learner"].values:
        values = curves[metric].sel(learner=method).transpose("seed", "step")
        values = values.dropna("step", how="all")
        mean, error = mean_and_error(values.values.astype(float))
        lines.append(
            {
                "step": values["step"].values.tolist(),
                "mean": np.asarray(mean).tolist(),
                "error": np.asarray(error).tolist(),
            }
        )
    return lines


def measure_teachers(name: str) -> None:
    """Teach both beliefs with every kind of teacher."""
    world = WORLDS[name]
    task = world.make()
    rationality = abs(float(task.beta))
    kinds = {
        "cooperative": "cooperative",
        **{f"Boltzmann, ρ = {m:g}·β": f"boltzmann:{m * rationality:g}" for m in MULTIPLES[::-1]},
        "random": "random",
        "adversarial": "adversarial",
        "switching": "switching",
    }
    for title, teacher in kinds.items():
        result = ital.teach(task, teacher=teacher, learner=beliefs(world), steps=STEPS, seeds=SEEDS)
        metric = metric_of(result.curves)
        ends = result.curves[metric].sel(step=list(JUDGED)).mean("seed").values.tolist()
        aware = result.curves.isel(learner=1)
        row = {
            "teacher": teacher,
            "posterior": ends[0],
            "ital-posterior": ends[1],
            "trust": float(aware["trust"].isel(step=-1).mean()),
            "bits": float(aware["bits"].isel(step=slice(1, None)).mean()),
        }
        rows = load().get("teachers", {}).get(name, {})
        store("teachers", name, rows | {title: row})


def measure_time(name: str) -> None:
    """Time a step of each learner on one seed, after compiling."""
    world = WORLDS[name]
    task = world.make()
    took = {}
    for method in (*beliefs(world), "ital"):
        best = math.inf
        for _ in range(3):
            began = time.perf_counter()
            ital.teach(task, learner=method, steps=STEPS, seeds=1, eval_every=STEPS)
            best = min(best, time.perf_counter() - began)
        took[method.partition(":")[0]] = 1000 * best / STEPS
    store("time", name, took)


# ---- the page ----


def limit(world: BeliefWorld, first: float, steps: np.ndarray) -> np.ndarray:
    """Return the distance if every choice told log2 B bits: log2(B)/d halvings a step."""
    return first * 2.0 ** (-steps * math.log2(BATCH_SIZE) / world.numbers)


def write_page() -> None:
    """Draw the figure and fill the tables of the page."""
    stored = load()
    panels = []
    for name, world in WORLDS.items():
        if name in stored["curves"]:
            panels.append(_panel(world, stored["curves"][name]["curves"]))
    figure = charts.chart(panels, "Distance to the target", columns=2)
    with matplotlib.rc_context({"svg.hashsalt": "evidence"}):
        figure.savefig(FIGURE, metadata={"Date": None})
    text = PAGE.read_text("utf-8")
    text = _between(text, "curves", _curves_table(stored["curves"]))
    for name, rows in stored.get("teachers", {}).items():
        text = _between(text, f"teachers {name}", _teachers_table(rows))
    if "time" in stored:
        text = _between(text, "time", _time_table(stored["time"]))
    PAGE.write_text(text, "utf-8")


def _panel(world: BeliefWorld, curves: dict[str, Any]) -> charts.Panel:
    """Draw one world on a logarithmic axis, with the information limit."""
    marks = [
        charts.line(LABELS[method], COLOURS[method], curve["step"], curve["mean"], curve["error"])
        for method, curve in curves.items()
    ]
    steps = np.array(curves["posterior"]["step"], float)
    ends = [min(curve["mean"]) for curve in curves.values()]
    # The line may leave the panel: a limit far below all curves would flatten them.
    bound = limit(world, curves["posterior"]["mean"][0], steps)
    shown = bound > 0.3 * min(ends)
    marks.append(
        charts.line(
            "limit, log₂ B bits a choice", "#000000", steps[shown], bound[shown], dash=(3, 2)
        )
    )
    return charts.panel(world.title, marks, x="Step", y="Distance", log="y", size=(3.9, 2.8))


def _between(text: str, name: str, table: str) -> str:
    """Return the text with a table between its markers."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{PAGE.name} has lost its lines {begin.strip()} and {end}: put them back")
    return f"{before}{begin}\n{table}\n{end}{after}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _curves_table(curves: dict[str, Any]) -> str:
    rows = []
    for name, stored in curves.items():
        for step in JUDGED:
            ends = []
            for method in LABELS:
                curve = stored["curves"][method]
                ends.append(number(curve["mean"][curve["step"].index(step)], 3))
            rows.append((WORLDS[name].title, str(step), *ends))
    return _table(("world", "step", *LABELS.values()), rows)


def _teachers_table(rows: dict[str, Any]) -> str:
    heads = ["teacher"]
    for step in JUDGED:
        heads += [f"`posterior`, {step}", f"`ital-posterior`, {step}"]
    lines = []
    for title, row in rows.items():
        pairs = zip(row["posterior"], row["ital-posterior"], strict=True)
        ends = [number(value, 3) for pair in pairs for value in pair]
        lines.append((title, *ends, f"{row['trust']:+.2f}", f"{row['bits']:.2f}"))
    return _table((*heads, "trust at the end", "bits a choice"), lines)


def _time_table(times: dict[str, Any]) -> str:
    rows = [
        (WORLDS[name].title, *(f"{took[method]:.2g}" for method in ("ital", *list(LABELS)[:2])))
        for name, took in times.items()
    ]
    return _table(("world", "ITAL", "`posterior`", "`ital-posterior`"), rows)


MEASURES = {"curves": measure_curves, "teachers": measure_teachers, "time": measure_time}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=(*MEASURES, "page"))
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=", ".join(WORLDS))
    given = parser.parse_args()
    if given.what == "page":
        write_page()
        return
    for name in given.worlds or WORLDS:
        began = time.perf_counter()
        MEASURES[given.what](name)
        print(f"{given.what} {name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
