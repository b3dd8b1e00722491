"""Made-up runs and sweeps: no two values are equal, unless a test wants them to be."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from ital import tasks
from ital.tasks import Metric

STEPS = np.arange(0, 2001, 100)
START = 8.0
# The distance left at the end, as in the paper.
PAPER = {
    "batch": 0.8,
    "sgd": 0.8,
    "imt": 0.7,
    "ital": 0.05,
    "ital-2": 0.3,
    "ital-5": 0.2,
    "ital-10": 0.12,
    "ital-15": 0.08,
    "imt-matched": 0.3,
    "batch-matched": 0.35,
}
UNEVEN = np.array([0, 130, 260, 400, 650, 700, 1200, 1500, 1530, 2000, 2400])
QUESTIONS = 30


class Run(NamedTuple):
    """A task and the curves of all methods on it."""

    task: tasks.Task
    curves: xr.Dataset


def experiment(
    left=None,
    *,
    task="regression",
    teacher="cooperative",
    start="uniform",
    spread=None,
    steps=STEPS,
    seeds=20,
    rough=0.0,
    draw=5,
    centred=False,
    **attributes,
):
    """Curves that fall from 8 to a share of it; the loss is half the distance.

    Their noise is shared by the methods (as mini-batches are), with a little of their own.

    ``rough`` makes every value different from its neighbours along every axis, the starts of seeds
    and methods included, and adds an accuracy, measured at every other step. ``seeds`` are a number
    or labels; ``draw`` is the seed of the noise; ``centred`` adds the distance without the part
    that no example can change.
    """
    left = {**PAPER, **(left or {})}
    spread = spread or {}
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    rng = np.random.default_rng(draw)
    shared = rng.normal(0, 0.02, len(seeds))
    values = np.empty((len(left), len(seeds), len(steps)))
    for i, (method, share) in enumerate(left.items()):
        own = share * (1 + shared + rng.normal(0, spread.get(method, 0.005), len(seeds)))
        fall = (1 - steps / steps[-1]) ** 4
        values[i] = START * (own[:, None] + (1 - own[:, None]) * fall)
    dims = ("learner", "seed", "step")
    metrics = {"distance": values, "loss": 0.5 * values}
    if rough:
        starts = np.exp(rng.normal(0, 0.4, len(seeds)))[:, None]
        metrics = {
            name: own * starts * np.exp(rng.normal(0, rough, values.shape))
            for name, own in metrics.items()
        }
        metrics["accuracy"] = 1 / (
            1 + metrics["distance"] * np.exp(rng.normal(0, rough, values.shape))
        )
        metrics["accuracy"][:, :, 1::2] = np.nan
    if centred:
        metrics["distance_centred"] = metrics["distance"] * np.exp(
            rng.normal(-0.8, rough, values.shape)
        )
    curves = xr.Dataset(
        {
            **{name: (dims, own) for name, own in metrics.items()},
            "computed": (dims[:2], np.ones(values.shape[:2], np.int8)),
            "diverged_at": (dims[:2], np.full(values.shape[:2], -1)),
        },
        {
            "learner": list(left),
            "label": ("learner", [name.upper() for name in left]),
            "seed": list(seeds),
            "step": steps,
        },
        {
            "task": task,
            "teacher": teacher,
            "seconds": 60.0,
            "beta": 5000.0,
            "beta_decay": 0.0,
            "lr": 1e-3,
            "steps": 2000,
            "batch_size": 20,
            "init": start,
            "jax_version": "0",
            "numpy_version": "0",
            "device": "cpu",
        }
        | attributes,
    )
    panels = ("distance", "loss")
    made = tasks.regression()
    if rough:
        panels += ("accuracy",)
        curves["accuracy"].attrs["questions"] = np.full(len(seeds), QUESTIONS)
        curves["distance"].attrs["floor"] = rng.uniform(0.1, 0.5, len(seeds))
        metrics = made.metrics | {"accuracy": Metric("Accuracy", higher_is_better=True)}
        made = made._replace(title=f"The task {task}", metrics=metrics)
    made = made._replace(name=task, panels=panels)
    return Run(made, curves)


SWEPT = {"batch": 0.5, "imt": 0.4, "imt-matched": 0.3, "ital": 0.15, "ital-5": 0.2}
LRS, BETAS = (0.003, 0.01, 0.03, 0.1), (0.0, 50.0, 500.0)


def sweep(*, draw=0, seeds=6, steps=UNEVEN[:7], lead=1.0, metric="distance", whole=False):
    """A sweep in which no two values are equal, with seeds that were not run and others that
    diverged.

    ``lead`` is how far the aware methods are ahead: with 0, the naive ones are. A ``whole`` sweep
    has no gaps. Of an accuracy, more is better.
    """
    rng = np.random.default_rng(draw)
    labels = [2 * seed + draw for seed in range(seeds)]
    shape = (len(SWEPT), len(LRS), len(BETAS), seeds)
    left = np.array([lead * share + (1 - lead) * (0.6 - share) for share in SWEPT.values()])
    # Each method has its own best place in the grid.
    away = rng.uniform(1, 1.6, shape[:3]) * np.exp(0.2 * rng.normal(size=(len(SWEPT), 1, 1)))
    end = left[:, None, None, None] * away[..., None] * np.exp(rng.normal(0, 0.15, shape))
    fall = (1 - steps / steps[-1]) ** 3
    values = (
        START
        * np.exp(rng.normal(0, 0.2, seeds))[:, None]
        * (end[..., None] + (1 - end[..., None]) * fall)
    )
    values *= np.exp(rng.normal(0, 0.03, values.shape))
    values[:2] = values[:2, :, :1]  # without a β
    computed, diverged_at = np.ones(shape, np.int8), np.full(shape, -1)
    if not whole:
        computed[1, ..., 0] = computed[3, 2, 1, 1:3] = computed[4, 0, 0] = 0
        diverged_at[3, 3, 2, 2] = steps[2]
        diverged_at[4, 1, :, 4] = steps[-1]
        diverged_at[1, 3, :, 3] = steps[1]
    gone = (diverged_at[..., None] >= 0) & (steps >= diverged_at[..., None])
    values[gone | (computed == 0)[..., None]] = np.nan
    dims = ("learner", "lr", "beta", "seed")
    judged = {"judged_by": metric, "more_is_better": 1} if metric == "accuracy" else {}
    return xr.Dataset(
        {
            metric: ((*dims, "step"), 1 - values / 40 if judged else values),
            "computed": (dims, computed),
            "diverged_at": (dims, diverged_at),
        },
        {
            "learner": list(SWEPT),
            "label": ("learner", [name.upper() for name in SWEPT]),
            "lr": list(LRS),
            "beta": list(BETAS),
            "seed": labels,
            "step": steps,
        },
        {"without_beta": '["batch", "imt"]', "task": "regression", "teacher": "cooperative"}
        | judged,
    )
