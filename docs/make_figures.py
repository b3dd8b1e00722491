"""Makes the pictures of the documentation: ``python docs/make_figures.py`` writes docs/images/*.svg.

Twenty seeds and the eight methods of the paper in each; about three minutes on two cores. With the names of quick
figures as arguments, only those: ``scaling`` (of what ``ital bench --scaling`` measured, kept in benchmarks/results/)
and ``control``.
"""

import json
import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import ital
from ital import control, figures, learners, tasks, teachers
from ital.figures import charts
from ital.tasks import Task
from ital.teachers import Teacher

CAVE = np.array([[0, 0, 0, 0, 1], [0, -1, -1, 0, 0], [0, -1, 2, -1, 0], [0, 0, -1, -1, 0], [0.5, 0, 0, 0, 0]])
IMAGES = Path(__file__).parent / "images"
MEASURED = Path(__file__).parents[1] / "benchmarks" / "results"

FIGURES: dict[str, tuple[Task, Teacher]] = {
    "regression": (tasks.regression(), teachers.cooperative()),
    "gaussian": (tasks.gaussian(), teachers.cooperative()),
    "mnist-20": (tasks.mnist(20), teachers.cooperative()),
    "tiny-imagenet-lite0": (tasks.tiny_imagenet("lite0"), teachers.cooperative()),
    "equation-40": (tasks.simplification(40), teachers.cooperative()),
    "regression-adversarial": (tasks.regression(), teachers.adversarial()),
}


def save(figure: Figure, name: str) -> None:
    """Writes a picture as text; the same picture is the same file."""
    file = IMAGES / f"{name}.svg"
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, metadata={"Date": None})
    print(file)


def draw_scaling() -> None:
    """Draws each machine that was measured."""
    for file in sorted(MEASURED.glob("scaling-*.json")):
        save(figures.plot_scaling(json.loads(file.read_text())), file.stem)


def draw_control() -> None:
    """Draws the three courses of optimal control in the plane."""
    courses = {
        "greedy": (control.greedy(), "#d55e00"),
        "straight line": (control.straight(), "#8c8c8c"),
        "optimal": (control.optimal(), "#08306b"),
    }
    marks = [
        charts.line(f"{name}, {course.steps} steps", colour, *course.path.T, width=2.0)
        for name, (course, colour) in courses.items()
    ]
    ends = (("start", control.START, "s"), ("target", control.TARGET, "*"))
    marks += [charts.points(name, "#111111", [x], [y], marker=marker, size=8) for name, (x, y), marker in ends]
    plane = charts.panel("", marks, x="w₁", y="w₂", size=(4.6, 3.6))
    save(charts.chart([plane], "Three ways to teach in the plane, η = 0.01"), "control")


QUICK = {"scaling": draw_scaling, "control": draw_control}


def main() -> None:
    """Runs each experiment and saves its figure."""
    IMAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or QUICK:
        QUICK[name]()
    if sys.argv[1:]:
        return
    methods = [learners.make(name) for name in learners.PAPER]
    for name, (task, teacher) in FIGURES.items():
        result = ital.teach(task, teacher, methods, seeds=20, eval_every=10 if task.exam else 40)
        save(result.plot(), name)
    save(ital.watch(tasks.irl(CAVE), seed=0).plot(), "irl-map")


if __name__ == "__main__":
    main()
