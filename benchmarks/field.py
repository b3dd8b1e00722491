"""The measurements behind the pages on the field: every teacher on the same seeds.

``python benchmarks/field.py`` and one of

run [OUT]       teach with every teacher on three tasks (resumes), and print the tables
learners [OUT]  learners that forget, and learners with Adam, on three tasks
answers [OUT]   exams of several lengths: distance by the number of answers
greed [OUT]     the planner against greed, on every pool task
matrix [OUT]    real teachers against assumed ones, on four tasks
draw [OUT]      the figures of docs/images
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

from ital import experiments, figures, learners, tasks, teachers
from ital.experiments import Settings
from ital.figures import charts
from ital.results import computed, mean_and_error, metrics_of
from ital.statistics import number

IMAGES = Path(__file__).parents[1] / "docs" / "images"
TASKS = ("regression", "gaussian", "irl-dense")
TEACHERS = (
    "random",
    "cooperative",
    "omniscient",
    "imitation",
    "exam:20:120",
    "synthesis",
    "planner:3",
    "largest-error",
)
LEARNERS = ("imt", "ital", "forgetful:0.001", "ital-forgetful:0.001")
OPTIMIZED = ("batch", "sgd", "imt", "ital")
METHODS = ("imt", "ital")
EXAMS = ("exam:20:10", "exam:20:40", "exam:20:120")
MATRIX = ("regression", "gaussian", "mnist-20", "irl-dense")
POOLS = ("regression", "gaussian", "mnist-20", "cifar10-6", "tiny-imagenet-lite0")


def curves(task: str, teacher: str, out: Path, methods: tuple[str, ...] = METHODS):
    """The curves of a run of 20 seeds and 2000 steps; None if the teacher makes no sense on the
    task.
    """
    settings = Settings(task=task, teacher=teacher, methods=methods)
    if not set(teachers.make(teacher).needs) <= set(settings.make_task().offers):
        return None
    return experiments.run(settings, out, draw=False, progress=True).curves


def end(run, method: str) -> str:
    """Mean ± standard error of the distance at the last step."""
    metric = "distance_centred" if "distance_centred" in metrics_of(run) else "distance"
    mean, error = mean_and_error(
        computed(run, method)[metric].transpose("seed", "step").values[:, -1]
    )
    return f"{number(float(mean))} ± {number(float(error), 2)}"


def run_all(out: Path) -> None:
    """One table per method: a row per teacher, a column per task."""
    runs = {(task, teacher): curves(task, teacher, out) for task in TASKS for teacher in TEACHERS}
    for method in METHODS:
        print(
            f"\n| {learners.make(method).label} with | {' | '.join(TASKS)} |\n"
            f"|---|{'---|' * len(TASKS)}"
        )
        for teacher in TEACHERS:
            ends = [
                end(run, method) if (run := runs[task, teacher]) is not None else "–"
                for task in TASKS
            ]
            print(f"| {teacher} | {' | '.join(ends)} |")


def learners_too(out: Path) -> None:
    """A column per task: learners that forget, then learners whose steps Adam takes."""
    adam = {"optimizer": "adam:0.01"}
    for methods, options, folder in (
        (LEARNERS, {}, out / "forgetful"),
        (OPTIMIZED, adam, out / "adam"),
    ):
        runs = {
            task: experiments.run(
                Settings(task=task, methods=methods, **options), folder, draw=False
            ).curves
            for task in TASKS
        }
        print(
            f"\n| {options.get('optimizer', 'plain steps')} | {' | '.join(TASKS)} |\n"
            f"|---|{'---|' * len(TASKS)}"
        )
        for method in methods:
            print(f"| `{method}` | {' | '.join(end(run, method) for run in runs.values())} |")


def answers(out: Path) -> None:
    """The distance of the naive learner by the number of answers asked for."""
    print("\n| exam | answers | distance |\n|---|---|---|")
    for teacher in EXAMS:
        run = curves("regression", teacher, out)
        print(f"| {teacher} | {int(run['answers'].values[0, 0, -1])} | {end(run, 'imt')} |")


def greed(out: Path) -> None:
    """The omniscient teacher and the planner, on every pool task."""
    print("\n| task | omniscient | planner:3 | planner closer on |\n|---|---|---|---|")
    for task in POOLS:
        greedy, planned = (
            curves(task, teacher, out, ("imt",)) for teacher in ("omniscient", "planner:3")
        )
        metric = "distance_centred" if "distance_centred" in metrics_of(greedy) else "distance"
        closer = planned[metric].values[0, :, -1] < greedy[metric].values[0, :, -1]
        print(
            f"| {task} | {end(greedy, 'imt')} | {end(planned, 'imt')} | {closer.sum()} of "
            f"{len(closer)} |"
        )


def matrix(out: Path) -> None:
    """What the report's section on beliefs shows: a table and a map per task."""
    panels = []
    for task in MATRIX:
        result = experiments.matrix(Settings(task=task), out, draw=False, progress=True, say=print)
        experiments.print_matrix(result)
        panels.append(figures.matrix_panel(result.runs, result.task, result.task.title))
    save(
        charts.chart(panels, "Who believes what", columns=2, foot=figures.MATRIX_NOTE),
        "field-matrix",
    )


def draw(out: Path) -> None:
    """The figures of the page on teachers."""
    runs = {teacher: curves("regression", teacher, out) for teacher in TEACHERS}
    save(figures.plot_teachers(runs, tasks.regression(), ["distance"]), "field-teachers")
    marks = []
    for teacher, colour in zip(EXAMS, ("#0072b2", "#e69f00", "#009e73"), strict=True):
        run = curves("regression", teacher, out)
        lanes = computed(run, "imt")
        mean, error = mean_and_error(lanes["distance"].transpose("seed", "step").values)
        marks.append(
            charts.line(teacher, colour, np.asarray(lanes["answers"].values[0]), mean, error)
        )
    panel = charts.panel(
        "IMT", marks, x="Answers asked for", y="Distance to the target", zero=True, size=(4.2, 2.8)
    )
    save(
        charts.chart([panel], "What an answer is worth: linear regression", columns=1),
        "field-exams",
    )


def save(figure, name: str) -> None:
    """Writes a picture as text; the same picture is the same file."""
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    commands = {
        "run": run_all,
        "learners": learners_too,
        "answers": answers,
        "greed": greed,
        "matrix": matrix,
        "draw": draw,
    }
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](Path(sys.argv[2] if len(sys.argv) > 2 else "results/field"))
