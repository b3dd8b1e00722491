"""Makes the pictures of the documentation: ``python docs/make_figures.py`` writes docs/images/*.svg.

Twenty seeds and the eight methods of the paper in each; about three minutes on two cores. With the argument
``scaling``, only those of what ``ital bench --scaling`` measured, kept in benchmarks/results/.
"""

import json
import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import ital
from ital import figures, learners, tasks, teachers
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


def main() -> None:
    """Runs each experiment and saves its figure."""
    IMAGES.mkdir(exist_ok=True)
    draw_scaling()
    if sys.argv[1:] == ["scaling"]:
        return
    methods = [learners.make(name) for name in learners.PAPER]
    for name, (task, teacher) in FIGURES.items():
        result = ital.teach(task, teacher, methods, seeds=20, eval_every=10 if task.exam else 40)
        save(result.plot(), name)
    save(ital.watch(tasks.irl(CAVE), seed=0).plot(), "irl-map")


if __name__ == "__main__":
    main()
