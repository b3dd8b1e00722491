"""The measurements behind docs/paper/beyond.md, stored as text in benchmarks/results/.

They show which methods gain, and where. ``python benchmarks/beyond.py`` and one of

adaptive [TASK …]   one cell per task and teacher: ital-adaptive, naive, best fixed β
full                ital-full and its controls with steps of equal length
table [TASK …]      ital-full on all tasks, each method at its own best η or length
page                tables and figures of docs/paper/beyond.md from stored results
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ital import learners, steps, tasks, teachers
from ital.learners import Learner
from ital.tasks import Task
from ital.teaching import Recording, Run, open_sessions
from ital.tools.files import write

RESULTS = Path(__file__).parent / "results"
TASKS = ("regression", "gaussian", "mnist-20", "irl-dense")
TEACHERS = ("cooperative", "boltzmann", "random", "adversarial", "switching")
MULTIPLES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of the task's β, with both signs
TUNING = range(100, 120)
TEST = range(20)
JUDGED = (100, 250, 500)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FARTHEST = 30.0  # in the figure
LENGTHS = (0.03, 0.1, 0.3, 0.6, 1.0, 3.0, 10.0)
# The label noises of every task; rewards have no labels.
TABLE = {
    "regression": (0.0, 0.3),
    "gaussian": (0.0, 0.3),
    "mnist-20": (0.0, 0.3),
    "mnist-30": (0.0, 0.3),
    "cifar10-6": (0.0, 0.3),
    "cifar10-12": (0.0, 0.3),
    "tiny-imagenet-lite0": (0.0, 0.3),
    "tiny-imagenet-lite2": (0.0, 0.3),
    "equation-40": (0.0, 0.3),
    "equation-50": (0.0, 0.3),
    "irl-dense": (0.0,),
    "irl-sparse": (0.0,),
}


def taught(
    task: Task,
    teacher: str,
    several: Sequence[Learner],
    seeds: Sequence[int],
    length: int,
    **options: Any,
) -> tuple[Any, str]:
    """Learning curves, and the metric that judges them."""
    run = Run(seeds=seeds, **{"eval_every": 50, "steps": length, **options})
    sessions = open_sessions(task, teachers.make(teacher), several, run)
    recording = Recording(sessions)
    for number, session in enumerate(sessions):
        recording.blocks[number] = list(session.blocks())
    curves = recording.curves(list(seeds), [one.name for one in several])
    return curves, "distance_centred" if "distance_centred" in curves else "distance"


def store(name: str, content: dict[str, Any]) -> None:
    """Write the measurements as text, with four digits of each number."""
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
        several += [
            learners.teacher_aware(beta)._replace(name=f"{m:g}") for m, beta in fixed.items()
        ]
        for teacher in TEACHERS:
            curves, metric = taught(task, teacher, several, TEST, 2000)
            last = curves[metric].isel(step=-1).transpose("learner", "seed").values.astype(float)
            ends = {
                str(method): np.where(np.isfinite(row), row, np.inf)
                for method, row in zip(curves["learner"].values, last, strict=True)
            }
            means = {method: float(row.mean()) for method, row in ends.items()}
            best = min(
                (method for method in means if method != "ital-adaptive"), key=means.__getitem__
            )
            mine = means["ital-adaptive"]
            trust = curves["trust"].sel({"learner": "ital-adaptive"}).mean("seed").values
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
            told = (
                f"naive {means['imt']:.4g}, best fixed {means[best]:.4g} ({best}), "
                f"adaptive {mine:.4g}"
            )
            print(f"{name}, {teacher}: {told}", flush=True)
            store("adaptive.json", cells)


def full() -> None:
    """Tunes L and β on seeds 100–119, then judges the frozen settings on seeds 0–19."""
    task = tasks.make("irl-dense")
    lengths = (0.4, 0.5, 0.6, 0.7, 0.8)
    betas = (3000.0, 4000.0, 5000.0)
    wanted: list[tuple[str, float, float]] = [("IMT direction", length, 0.0) for length in lengths]
    wanted += [("mean gradient", length, 0.0) for length in lengths]
    wanted += [("ital-full", length, beta) for length in lengths for beta in betas]
    make: dict[str, Callable[[float], Learner]] = {
        "IMT direction": lambda beta: learners.imt(),
        "mean gradient": lambda beta: learners.batch(),
        "ital-full": learners.full,
    }

    def measure(
        settings: Sequence[tuple[str, float, float]], seeds: Sequence[int]
    ) -> tuple[np.ndarray, list[int]]:
        several = [
            make[kind](beta)._replace(name=str(i)) for i, (kind, _, beta) in enumerate(settings)
        ]
        forms = [steps.length(f"{length}:decay") for _, length, _ in settings]
        curves, metric = taught(task, "cooperative", several, seeds, 1000, form=forms)
        values = curves[metric].transpose("learner", "seed", "step").values
        return values, curves["step"].values.tolist()

    values, measured = measure(wanted, TUNING)
    at = [measured.index(step) for step in JUDGED]
    # One number: the mean log distance at the judged steps.
    score = np.log(values.mean(axis=1)[:, at]).mean(axis=1)
    frozen = [
        min((i for i, w in enumerate(wanted) if w[0] == kind), key=lambda i: score[i])
        for kind in make
    ]
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


class Candidate(NamedTuple):
    """A method with numbers that it may be given: η, and the form of its steps."""

    kind: str
    learner: Learner
    lr: float
    form: steps.Form

    @property
    def told(self) -> dict[str, float | str]:
        """The numbers, as they are kept."""
        beta = getattr(self.learner.settings, "beta", None)
        return {"lr": self.lr, "step": self.form.name, "beta": float(beta or 0)}


def candidates(task: Task, form: str) -> list[Candidate]:
    """All candidates: each method at many η, or at η = 10⁻³ with steps of many lengths; aware
    methods at many β.
    """
    betas = [
        m * task.beta
        for m in ((1e-4, 1e-3, 1e-2, 0.1, 1.0) if form == "rate" else (0.01, 0.1, 0.3, 1.0, 3.0))
    ]
    kinds = {
        "batch": [learners.batch()],
        "imt": [learners.imt()],
        "ital": [learners.teacher_aware(beta) for beta in betas],
        "ital-full": [learners.full(beta) for beta in betas],
    }
    return [
        Candidate(kind, one, RATES[i] / (20 if kind == "ital-full" else 1), steps.rate())
        if form == "rate"
        else Candidate(kind, one, 1e-3, steps.length(f"{LENGTHS[i]}:decay"))
        for kind, several in kinds.items()
        for one in several
        for i in range(len(RATES if form == "rate" else LENGTHS))
    ]


def ends(task: Task, lanes: Sequence[Candidate], seeds: Sequence[int]) -> tuple[np.ndarray, str]:
    """The distance after 500 steps, (candidate, seed), infinite where it diverged; and the metric's
    name.
    """
    several = [lane.learner._replace(name=str(i)) for i, lane in enumerate(lanes)]
    curves, metric = taught(
        task, "cooperative", several, seeds, 500,
        lr=[lane.lr for lane in lanes], form=[lane.form for lane in lanes], eval_every=500,
    )  # fmt: skip
    last = curves[metric].isel(step=-1).transpose("learner", "seed").values.astype(float)
    return np.where(np.isfinite(last), last, np.inf), metric


def table(names: Sequence[str]) -> None:
    """Each method at its own best numbers, chosen on seeds 100–104, judged on seeds 0–9."""
    file = RESULTS / "full-table.json"
    rows = json.loads(file.read_text()) if file.exists() else {}
    for name in names or TABLE:
        for noise in TABLE[name]:
            task = tasks.make(name, **({"label_noise": noise} if noise else {}))
            for form in ("rate", "length"):
                tried = candidates(task, form)
                tuning, metric = ends(task, tried, TUNING[:5])
                best: dict[str, int] = {}
                for i, one in enumerate(tried):
                    if one.kind not in best or tuning[i].mean() < tuning[best[one.kind]].mean():
                        best[one.kind] = i
                frozen = [tried[i] for i in best.values()]
                values, _ = ends(task, frozen, TEST[:10])
                row = {
                    one.kind: {**one.told, "seeds": list(values[i])} for i, one in enumerate(frozen)
                }
                rows[f"{name} {noise:g} {form}"] = {"metric": metric, "methods": row}
                rows = dict(
                    sorted(rows.items(), key=lambda one: list(TABLE).index(one[0].split()[0]))
                )
                print(
                    name,
                    noise,
                    form,
                    {one.kind: f"{values[i].mean():.4g}" for i, one in enumerate(frozen)},
                    flush=True,
                )
                store("full-table.json", rows)


def adaptive_rows(cells: dict[str, Any]) -> list[str]:
    """A Markdown table of all cells: the distance reached, and whether the goal was met."""
    rows = [
        "| task | teacher | naive | best fixed β | at | `ital-adaptive` | of naive | of best | "
        "target |",
        "|" + "---|" * 9,
    ]
    for name, cell in cells.items():
        task, teacher = name.split()
        of_naive = cell["adaptive"] / cell["naive"]
        of_best = cell["adaptive"] / cell["best_fixed"]
        met = of_naive <= 1.02 and (
            teacher not in ("cooperative", "adversarial") or of_best <= 1.15
        )
        at = f"{cell['best_multiple']:g} × task's"
        numbers = f"{cell['naive']:.3g} | {cell['best_fixed']:.3g} | {at} | {cell['adaptive']:.3g}"
        rows.append(
            f"| {task} | {teacher} | {numbers} | {of_naive:.2g} | {of_best:.2g} | "
            f"{'met' if met else '**missed**'} |"
        )
    return rows


def full_rows(content: dict[str, Any]) -> list[str]:
    """A Markdown table of the methods at equal step length, with paired tests."""
    from scipy.stats import ttest_rel

    steps_ = content["steps"]
    rows = content["rows"]
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


def wins(row: dict[str, Any]) -> tuple[str, float]:
    """The better of the two naive methods, and the p of a paired t-test of ital-full against it."""
    from scipy.stats import ttest_rel

    naive = min(("batch", "imt"), key=lambda kind: np.mean(row[kind]["seeds"]))
    own, other = (np.asarray(row[kind]["seeds"]) for kind in ("ital-full", naive))
    return naive, float(ttest_rel(own, other).pvalue) if np.isfinite([own, other]).all() else np.nan


def table_rows(rows: dict[str, Any]) -> list[str]:
    """A Markdown table of every task: mean distances, and whether ital-full beats the better naive
    method.
    """
    told = [
        "| task | label noise | steps | Batch | IMT | ITAL | `ital-full` | against the better "
        "naive |",
        "|" + "---|" * 8,
    ]
    for name, row in rows.items():
        task, noise, form = name.split()
        methods = row["methods"]
        means = {kind: float(np.mean(one["seeds"])) for kind, one in methods.items()}
        naive, p = wins(methods)
        verdict = (
            "no difference"
            if not p < 0.01
            else "**closer**"
            if means["ital-full"] < means[naive]
            else "further"
        )
        numbers = " | ".join(f"{means[kind]:.3g}" for kind in ("batch", "imt", "ital", "ital-full"))
        shown = "own η" if form == "rate" else "one length"
        told.append(
            f"| {task} | {noise} | {shown} | {numbers} | {verdict} "
            f"({means['ital-full'] / means[naive]:.2g}×) |"
        )
    return told


def draw_table(rows: dict[str, Any], file: Path) -> None:
    """Distances as shares of the better naive method's, one panel for each form of step."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 5.4), sharey=True, layout="constrained")
    titles = {"rate": "Each at its own best η", "length": "Steps of one length, its own best L"}
    styles = {
        "batch": ("Batch", "0.6", "s"),
        "imt": ("IMT", "C1", "D"),
        "ital": ("ITAL", "C0", "o"),
    }
    styles["ital-full"] = ("ital-full", "C3", "*")
    for axis, form in zip(axes, titles, strict=True):
        names = [name for name in rows if name.endswith(f" {form}")]
        labels = [
            name.split()[0] + (" + noise" if name.split()[1] != "0" else "") for name in names
        ]
        for kind, (label, colour, marker) in styles.items():
            shares = []
            for name in names:
                row = rows[name]["methods"]
                shares.append(
                    min(FARTHEST, np.mean(row[kind]["seeds"]) / np.mean(row[wins(row)[0]]["seeds"]))
                )
            size = 70 if marker == "*" else 26
            axis.scatter(
                shares,
                range(len(names)),
                s=size,
                color=colour,
                marker=marker,
                label=label,
                zorder=3,
            )
        axis.axvline(1, color="0.7", linewidth=0.8, zorder=0)
        axis.set(
            xscale="log", title=titles[form], xlabel="Distance / that of the better naive method"
        )
        axis.set_yticks(range(len(names)), labels)
        axis.grid(axis="y", color="0.93", zorder=0)
    axes[0].invert_yaxis()
    axes[1].legend(frameon=False, fontsize=8)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def page() -> None:
    """Write the tables into docs/paper/beyond.md, and draw trust over time and the gains."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    docs = Path(__file__).parents[1] / "docs"
    text = (docs / "paper" / "beyond.md").read_text("utf-8")
    for name, make in (
        ("adaptive", adaptive_rows),
        ("full", full_rows),
        ("full-table", table_rows),
    ):
        begin = f"<!-- {name}: begin -->\n"
        end = f"<!-- {name}: end -->"
        before, _, rest = text.partition(begin)
        after = rest.partition(end)[2]
        table_ = "\n".join(make(json.loads((RESULTS / f"{name}.json").read_text())))
        text = f"{before}{begin}\n{table_}\n\n{end}{after}"
    (docs / "paper" / "beyond.md").write_text(text, "utf-8")
    cells = json.loads((RESULTS / "adaptive.json").read_text())
    shown = [task for task in TASKS if f"{task} {TEACHERS[-1]}" in cells]
    figure, axes = plt.subplots(
        1,
        len(shown),
        figsize=(3 * len(shown), 2.6),
        sharey=True,
        layout="constrained",
        squeeze=False,
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
        draw_table(
            json.loads((RESULTS / "full-table.json").read_text()), docs / "images" / "full.svg"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("adaptive", "full", "table", "page"))
    parser.add_argument("tasks", nargs="*")
    chosen = parser.parse_args()
    several = {"adaptive": adaptive, "table": table}
    sys.exit(
        several[chosen.what](chosen.tasks)
        if chosen.what in several
        else {"full": full, "page": page}[chosen.what]()
    )
