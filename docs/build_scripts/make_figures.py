"""Makes the pictures of the documentation.

``python docs/build_scripts/make_figures.py`` writes docs/images/*.svg.

Twenty seeds and the eight methods of the paper in each; about three minutes on two cores. With the
names of quick figures as arguments, only those: ``scaling`` (of what ``ital bench --scaling``
measured, kept in benchmarks/results/), ``control``, ``cover`` and ``kernel``.
"""

import json
import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import ital
from ital import control, figures, learners, mdp, tasks, teachers
from ital.figures import charts
from ital.tasks import Task
from ital.teachers import Teacher
from ital_paper import tasks as paper

CAVE = np.array(
    [[0, 0, 0, 0, 1], [0, -1, -1, 0, 0], [0, -1, 2, -1, 0], [0, 0, -1, -1, 0], [0.5, 0, 0, 0, 0]]
)
IMAGES = Path(__file__).parents[1] / "images"
MEASURED = Path(__file__).parents[2] / "benchmarks" / "results"

FIGURES: dict[str, tuple[Task, Teacher]] = {
    "regression": (tasks.regression(), teachers.cooperative()),
    "gaussian": (tasks.gaussian(), teachers.cooperative()),
    "mnist-20": (paper.mnist(20), teachers.cooperative()),
    "tiny-imagenet-lite0": (paper.tiny_imagenet("lite0"), teachers.cooperative()),
    "equation-40": (paper.simplification(40), teachers.cooperative()),
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
    marks += [
        charts.points(name, "#111111", [x], [y], marker=marker, size=8)
        for name, (x, y), marker in ends
    ]
    plane = charts.panel("", marks, x="w₁", y="w₂", size=(4.6, 3.6))
    save(charts.chart([plane], "Three ways to teach in the plane, η = 0.01"), "control")


def draw_cover() -> None:
    """Draws the demonstrations of a set cover beside random ones, with what each says about the
    reward.
    """
    size = 6
    kinds = 4
    rng = np.random.default_rng(3)
    features = np.eye(kinds)[rng.integers(0, kinds, size * size)]
    weights = rng.normal(size=kinds)
    cover = mdp.set_cover(mdp.grid(size, slip=0.02), weights, features, discount=0.9, length=4)
    at_random = rng.permutation(len(cover.candidates))[: len(cover.demonstrations)]
    shown = {
        "by set cover": cover.demonstrations,
        "at random": [cover.candidates[i] for i in at_random],
    }
    rewards = (features @ weights).reshape(size, size)
    policy = np.eye(4)[:, cover.policy].reshape(4, size, size)
    panels = []
    for name, demonstrations in shown.items():
        consistent = mdp.rewards_within(mdp.revealed(cover.normals, demonstrations), 1000)
        right = np.mean(np.all(consistent @ cover.normals.reshape(-1, kinds).T > -1e-9, axis=1))
        paths = [np.divmod(one[:, 0], size)[::-1] for one in demonstrations]
        marks = [charts.rewards(rewards, policy, float(np.abs(rewards).max()))]
        marks += [charts.line("", "#009e73", *path, width=2.5) for path in paths]
        marks += [
            charts.points("", "#009e73", *(place[:1] for place in path), size=8) for path in paths
        ]
        title = f"{len(demonstrations)} {name}: {100 * right:.0f} % of rewards"
        panels.append(charts.panel(title, marks, size=(4.0, 4.0)))
    foot = (
        "Green: demonstrations, from the dot on. Percentage: rewards that agree with them for "
        "which the arrows are "
        "optimal in every cell."
    )
    save(charts.chart(panels, "Teaching a policy by set cover", foot=foot), "cover")


def draw_kernel(steps: tuple[int, ...] = (200, 500, 1000, 2000)) -> None:
    """Draws what the naive learner has fitted after some steps, with a random and a greedy teacher,
    and the PSNR.
    """
    task = tasks.kernel()
    pair = ("random", "largest-error")
    figure = Figure(figsize=(11.4, 3.9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(2, 1))
    axes = left.subplots(2, len(steps) + 1)
    curves = right.subplots()
    for row, (teacher, colour) in enumerate(zip(pair, ("#d55e00", "#08306b"), strict=True)):
        watched = ital.watch(task, teacher, "imt", lr=0.2, frames=steps[-1] // 100, steps=steps[-1])
        frames = [watched.params["imt"][list(watched.steps).index(step)] for step in steps]
        for axis, params in zip(axes[row], [*frames, watched.target], strict=True):
            axis.imshow(task.picture.grid(params)[0], cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        axes[row, 0].set_ylabel(f"{teacher} teacher")
        psnr = ital.teach(task, teacher, "imt", lr=0.2, seeds=20, steps=steps[-1]).curves["psnr"][0]
        curves.plot(psnr["step"], psnr.mean("seed"), color=colour, label=teacher)
    for axis, title in zip(axes[0], [*(f"step {step}" for step in steps), "target"], strict=True):
        axis.set_title(title, fontsize=10)
    axes[1, -1].set_visible(False)
    curves.set(xlabel="step", ylabel="PSNR (dB), mean over 20 seeds")
    curves.legend(frameon=False)
    save(figure, "kernel")


QUICK = {
    "scaling": draw_scaling,
    "control": draw_control,
    "cover": draw_cover,
    "kernel": draw_kernel,
}


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
