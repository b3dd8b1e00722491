"""Measure naive and aware pairs in worlds of finitely many hypotheses.

The numbers are those of docs/explanation/field-hypotheses.md.

python benchmarks/hypotheses.py rates    growth of the log-odds, measured and predicted
python benchmarks/hypotheses.py draw     the figure of docs/images
"""

import functools
import sys
from pathlib import Path

import jax.numpy as jnp
import matplotlib
import numpy as np

import ital
from ital import beliefs, figures, learners, tasks

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WORLDS = {
    "Rectangles": tasks.hypotheses(),
    "Random 20 × 100": tasks.from_likelihoods(
        np.random.default_rng(0).dirichlet(np.ones(20), size=100).T
    ),
}
PAIRS = {
    "sampling": (learners.bayes(), beliefs.literal),
    "scbi": (learners.scbi(), beliefs.scbi),
    "pedagogical:2": (
        learners.pedagogical(2.0),
        functools.partial(beliefs.pedagogical, alpha=2.0, rounds=1),
    ),
}
TEACHERS = ("sampling", "scbi", "adversarial", "random")


def rates(seeds: int = 20) -> None:
    """A table: the predicted slope of the log-odds, and the slope over the second half of a run, as
    means over seeds.

    The standard error is that of measured − predicted: each seed has another target, hence another
    rate.
    """
    print(
        "| world | teacher, learner | predicted | 2000 steps | 20,000 steps |\n"
        "|---|---|---|---|---|"
    )
    for world, task in WORLDS.items():
        log_m = jnp.asarray(task.world(0).learner.log_m)
        targets = [int(task.world(seed).truth.test) for seed in range(seeds)]
        for teacher, (learner, drawn_from) in PAIRS.items():
            predicted = np.array(
                [beliefs.limiting_rate(drawn_from, log_m, target) for target in targets]
            )
            measured = []
            for steps in (2000, 20_000):
                run = ital.teach(
                    task, teacher, learner, steps=steps, seeds=seeds, eval_every=steps // 10
                ).curves
                late = run["log_odds"].squeeze("learner").transpose("step", "seed")[5:]
                slopes = np.polyfit(late["step"], late, 1)[0]
                measured.append(
                    f"{slopes.mean():.3f} ± {(slopes - predicted).std(ddof=1) / seeds**0.5:.3f}"
                )
            print(
                f"| {world} | {teacher}, {learner.name} | {predicted.mean():.3f} | "
                f"{' | '.join(measured)} |"
            )


def draw() -> None:
    """The belief in the target over time: a row per world, a column per teacher."""
    panels = []
    for world, task in WORLDS.items():
        for teacher in TEACHERS:
            curves = ital.teach(task, teacher, ["bayes", "scbi"], steps=60, seeds=100).curves
            panel = figures.curve_panel(
                curves, task, "belief", f"{world}, {teacher}", size=(3.2, 2.3)
            )
            panels.append(panel | {"y_range": [0, 1]})
            ends = curves["belief"].isel(step=-1).mean("seed").to_series().round(3).to_dict()
            print(f"{world}, {teacher} teacher, step 60: {ends}")
    figure = figures.charts.chart(
        panels, "A naive and an aware learner, by teacher: 100 seeds", columns=len(TEACHERS)
    )
    with matplotlib.rc_context({"svg.hashsalt": "field-hypotheses"}):
        figure.savefig(IMAGES / "field-hypotheses.svg", metadata={"Date": None})


if __name__ == "__main__":
    commands = {"rates": rates, "draw": draw}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]]()
