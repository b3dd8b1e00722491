"""The measurements behind docs/beyond.md, as text in benchmarks/results/: who gains beyond the paper, and where.

python benchmarks/beyond.py adaptive [TASK …]   one cell per task and teacher: ital-adaptive, naive, best fixed β
python benchmarks/beyond.py full                ital-full and its controls with steps of equal length
python benchmarks/beyond.py table               ital-full on all tasks, each method at its own best η
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ital import learners, steps, tasks, teachers
from ital._files import write
from ital.learners import Learner
from ital.results import Recording
from ital.tasks import Task
from ital.teaching import open_sessions

RESULTS = Path(__file__).parent / "results"
TASKS = ("regression", "gaussian", "mnist-20", "irl-dense")
TEACHERS = ("cooperative", "boltzmann", "random", "adversarial", "switching")
MULTIPLES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of the task's β, with both signs
TUNING, TEST = range(100, 120), range(20)
JUDGED = (100, 250, 500)


def taught(
    task: Task, teacher: str, several: Sequence[Learner], seeds: Sequence[int], length: int, **options: Any
) -> tuple[Any, str]:
    """Learning curves, and the metric that judges them."""
    settings = {"lr": 1e-3, "batch_size": 20, "init": task.init, "eval_every": 50, "steps": length, **options}
    sessions = open_sessions(task, teachers.make(teacher), several, list(seeds), **settings)
    recording = Recording(sessions)
    for number, session in enumerate(sessions):
        recording.blocks[number] = list(session.blocks())
    curves = recording.curves(list(seeds), [one.name for one in several])
    return curves, "distance_centred" if "distance_centred" in curves else "distance"


def store(name: str, content: dict[str, Any]) -> None:
    """Writes what was measured as text, four digits of each number."""
    RESULTS.mkdir(exist_ok=True)
    rounded = json.loads(json.dumps(content), parse_float=lambda text: float(f"{float(text):.4g}"))
    write(RESULTS / name, (json.dumps(rounded, indent=1) + "\n").encode())


def adaptive(names: Sequence[str]) -> None:
    """20 seeds × 2000 steps in every cell: naive, thirteen fixed β, ital-adaptive."""
    file = RESULTS / "adaptive.json"
    cells = json.loads(file.read_text()) if file.exists() else {}
    for name in names or TASKS:
        task = tasks.make(name)
        fixed = {sign * m: sign * m * task.beta for m in MULTIPLES for sign in (1, -1)}
        several = [learners.imt(), learners.make("ital-adaptive")]
        several += [learners.teacher_aware(beta)._replace(name=f"{m:g}") for m, beta in fixed.items()]
        for teacher in TEACHERS:
            curves, metric = taught(task, teacher, several, TEST, 2000)
            last = curves[metric].isel(step=-1).transpose("method", "seed").values.astype(float)
            ends = {
                str(method): np.where(np.isfinite(row), row, np.inf)
                for method, row in zip(curves["method"].values, last, strict=True)
            }
            means = {method: float(row.mean()) for method, row in ends.items()}
            best = min((method for method in means if method != "ital-adaptive"), key=means.__getitem__)
            mine = means["ital-adaptive"]
            trust = curves["trust"].sel({"method": "ital-adaptive"}).mean("seed").values
            cells[f"{name} {teacher}"] = {
                "metric": metric,
                "naive": means["imt"],
                "adaptive": mine,
                "adaptive_se": float(ends["ital-adaptive"].std(ddof=1) / len(last[0]) ** 0.5),
                "best_fixed": means[best],
                "best_multiple": 0.0 if best == "imt" else float(best),
                "step": curves["step"].values.tolist()[1:],
                "trust": np.nan_to_num(trust).tolist()[1:],
            }
            told = f"naive {means['imt']:.4g}, best fixed {means[best]:.4g} ({best}), adaptive {mine:.4g}"
            print(f"{name}, {teacher}: {told}", flush=True)
            store("adaptive.json", cells)


def full() -> None:
    """Tunes L and β on seeds 100–119, then judges the frozen settings on seeds 0–19."""
    task = tasks.make("irl-dense")
    lengths, betas = (0.4, 0.5, 0.6, 0.7, 0.8), (3000.0, 4000.0, 5000.0)
    wanted: list[tuple[str, float, float]] = [("IMT direction", length, 0.0) for length in lengths]
    wanted += [("mean gradient", length, 0.0) for length in lengths]
    wanted += [("ital-full", length, beta) for length in lengths for beta in betas]
    make: dict[str, Callable[[float], Learner]] = {
        "IMT direction": lambda beta: learners.imt(),
        "mean gradient": lambda beta: learners.batch(),
        "ital-full": learners.full,
    }

    def measure(settings: Sequence[tuple[str, float, float]], seeds: Sequence[int]) -> tuple[np.ndarray, list[int]]:
        several = [make[kind](beta)._replace(name=str(i)) for i, (kind, _, beta) in enumerate(settings)]
        forms = [steps.length(f"{length}:decay") for _, length, _ in settings]
        curves, metric = taught(task, "cooperative", several, seeds, 1000, step=forms)
        return curves[metric].transpose("method", "seed", "step").values, curves["step"].values.tolist()

    values, measured = measure(wanted, TUNING)
    at = [measured.index(step) for step in JUDGED]
    score = np.log(values.mean(axis=1)[:, at]).mean(axis=1)  # one number: the mean log distance at the judged steps
    frozen = [min((i for i, w in enumerate(wanted) if w[0] == kind), key=lambda i: score[i]) for kind in make]
    chosen = [wanted[i] for i in frozen]
    values, measured = measure(chosen, TEST)
    at = [measured.index(step) for step in (*JUDGED, 1000)]
    rows = {
        kind: {"length": length, "beta": beta, "seeds": values[i][:, at].tolist()}
        for i, (kind, length, beta) in enumerate(chosen)
    }
    store("full.json", {"steps": [*JUDGED, 1000], "rows": rows})
    for kind, row in rows.items():
        print(kind, row["length"], row["beta"], np.mean(row["seeds"], axis=0).round(3))


def table() -> None:
    """Every task with and without label noise: each method at its own best η (and β), tuned on other seeds."""
    names = ("regression", "gaussian", "mnist-20", "cifar10-6", "irl-dense")
    out: dict[str, Any] = {}
    for name in names:
        for noise in (0.0,) if name.startswith("irl") else (0.0, 0.3):
            task = tasks.make(name, **({"label_noise": noise} if noise else {}))
            rates = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
            kinds: dict[str, list[Learner]] = {
                "batch": [learners.batch()],
                "imt": [learners.imt()],
                "ital": [learners.teacher_aware(m * task.beta) for m in (0.0001, 0.001, 0.01, 0.1, 1.0)],
                "ital-full": [learners.full(m * task.beta) for m in (0.0, 0.0001, 0.001, 0.01, 0.1, 1.0)],
            }
            lanes = [
                (kind, one, rate / (20 if kind == "ital-full" else 1))
                for kind in kinds
                for one in kinds[kind]
                for rate in rates
            ]
            found = {}
            for seeds in (TUNING[:5], TEST[:10]):
                several = [one._replace(name=str(i)) for i, (_, one, _) in enumerate(lanes)]
                curves, metric = taught(task, "cooperative", several, seeds, 500, lr=[rate for _, _, rate in lanes])
                ends = curves[metric].isel(step=-1).transpose("method", "seed").values
                ends = np.where(np.isfinite(ends), ends, np.inf)
                if seeds is not TEST[:10] and not found:
                    best = {
                        kind: min((i for i, lane in enumerate(lanes) if lane[0] == kind), key=lambda i: ends[i].mean())
                        for kind in kinds
                    }
                    found = {
                        kind: {"lr": lanes[i][2], "beta": float(lanes[i][1].settings.beta or 0)}
                        for kind, i in best.items()
                    }
                    lanes = [lanes[i] for i in best.values()]
                else:
                    for i, kind in enumerate(kinds):
                        found[kind] |= {
                            "mean": float(ends[i].mean()),
                            "se": float(ends[i].std(ddof=1) / len(ends[i]) ** 0.5),
                        }
            out[f"{name}, label noise {noise:g}"] = {"metric": metric, **found}
            print(name, noise, {kind: round(row["mean"], 4) for kind, row in found.items()}, flush=True)
            store("full-table.json", out)


def adaptive_rows(cells: dict[str, Any]) -> list[str]:
    """A Markdown table of all cells: what was reached, and whether the target was met."""
    rows = [
        "| task | teacher | naive | best fixed β | at | `ital-adaptive` | of naive | of best | target |",
        "|" + "---|" * 9,
    ]
    for name, cell in cells.items():
        task, teacher = name.split()
        of_naive, of_best = cell["adaptive"] / cell["naive"], cell["adaptive"] / cell["best_fixed"]
        met = of_naive <= 1.02 and (teacher not in ("cooperative", "adversarial") or of_best <= 1.15)
        at = f"{cell['best_multiple']:g} × task's"
        numbers = f"{cell['naive']:.3g} | {cell['best_fixed']:.3g} | {at} | {cell['adaptive']:.3g}"
        rows.append(
            f"| {task} | {teacher} | {numbers} | {of_naive:.2g} | {of_best:.2g} | {'met' if met else '**missed**'} |"
        )
    return rows


def full_rows(content: dict[str, Any]) -> list[str]:
    """A Markdown table of the methods at equal step length, with paired tests."""
    from scipy.stats import ttest_rel

    steps_, rows = content["steps"], content["rows"]
    own = np.asarray(rows["ital-full"]["seeds"])
    tests = {
        (kind, step): ttest_rel(own[:, i], np.asarray(row["seeds"])[:, i]).pvalue
        for kind, row in rows.items()
        for i, step in enumerate(steps_)
        if kind != "ital-full" and step in JUDGED
    }
    order = sorted(tests, key=tests.__getitem__)
    holm: dict[tuple[str, int], float] = {}
    for rank, key in enumerate(order):
        holm[key] = min(1.0, max([tests[key] * (len(order) - rank), *holm.values()]))
    told = [
        "| method | L | β | " + " | ".join(f"step {step}" for step in steps_) + " |",
        "|" + "---|" * (3 + len(steps_)),
    ]
    for kind, row in rows.items():
        means = np.mean(row["seeds"], axis=0)
        shown = [
            f"{mean:.3g}" + (f" (p = {holm[kind, step]:.1g})" if (kind, step) in holm else "")
            for mean, step in zip(means, steps_, strict=True)
        ]
        told.append(f"| {kind} | {row['length']:g} | {row['beta']:g} | " + " | ".join(shown) + " |")
    return told


def page() -> None:
    """Puts the tables into docs/beyond.md and draws trust over time."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    docs = Path(__file__).parents[1] / "docs"
    text = (docs / "beyond.md").read_text("utf-8")
    for name, make in (("adaptive", adaptive_rows), ("full", full_rows)):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, _, rest = text.partition(begin)
        after = rest.partition(end)[2]
        table_ = "\n".join(make(json.loads((RESULTS / f"{name}.json").read_text())))
        text = f"{before}{begin}\n{table_}\n\n{end}{after}"
    (docs / "beyond.md").write_text(text, "utf-8")
    cells = json.loads((RESULTS / "adaptive.json").read_text())
    shown = [task for task in TASKS if f"{task} {TEACHERS[-1]}" in cells]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(3 * len(shown), 2.6), sharey=True, layout="constrained", squeeze=False
    )
    for axis, task in zip(axes[0], shown, strict=True):
        for teacher in TEACHERS:
            cell = cells[f"{task} {teacher}"]
            axis.plot(cell["step"], cell["trust"], label=teacher, linewidth=1.3)
        axis.set(title=task, xlabel="Training iteration", ylim=(-1.05, 1.05))
        axis.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    axes[0][0].set_ylabel("Trust of ital-adaptive")
    axes[0][-1].legend(frameon=False, fontsize=7)
    with matplotlib.rc_context({"svg.hashsalt": "trust"}):
        figure.savefig(docs / "images" / "trust.svg", metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("adaptive", "full", "table", "page"))
    parser.add_argument("tasks", nargs="*")
    chosen = parser.parse_args()
    other = {"full": full, "table": table, "page": page}
    sys.exit(adaptive(chosen.tasks) if chosen.what == "adaptive" else other[chosen.what]())
