"""Made-up results, in which a claim holds or fails as a test requires."""

import numpy as np
import xarray as xr

from ital import tasks
from ital.reproduce._data import Data, Evidence
from ital.reproduce._plan import STARTS, Condition

STEPS = np.arange(0, 2001, 100)
START = 8.0
# The distance left at the end, as in the paper.
PAPER = {
    "batch": 0.8, "sgd": 0.8, "imt": 0.7, "ital": 0.05, "ital-2": 0.3, "ital-5": 0.2, "ital-10": 0.12, "ital-15": 0.08,
    "imt-matched": 0.3, "batch-matched": 0.35,
}  # fmt: skip


def experiment(
    left=None, *, task="regression", teacher="cooperative", start="uniform", spread=None, steps=STEPS, seeds=20
):
    """Curves that fall from 8 to a share of it, with noise that methods share (as mini-batches do) and a little of
    their own; the loss is half the distance.
    """
    left = {**PAPER, **(left or {})}
    spread = spread or {}
    rng = np.random.default_rng(5)
    shared = rng.normal(0, 0.02, seeds)
    values = np.empty((len(left), seeds, len(steps)))
    for i, (method, share) in enumerate(left.items()):
        own = share * (1 + shared + rng.normal(0, spread.get(method, 0.005), seeds))
        fall = (1 - steps / steps[-1]) ** 4
        values[i] = START * (own[:, None] + (1 - own[:, None]) * fall)
    dims = ("learner", "seed", "step")
    curves = xr.Dataset(
        {
            "distance": (dims, values),
            "loss": (dims, 0.5 * values),
            "computed": (dims[:2], np.ones(values.shape[:2], np.int8)),
            "diverged_at": (dims[:2], np.full(values.shape[:2], -1)),
        },
        {
            "learner": list(left),
            "label": ("learner", [name.upper() for name in left]),
            "seed": range(seeds),
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
        },
    )
    made = tasks.regression()._replace(name=task, panels=("distance", "loss"))
    return Evidence(Condition(start, task, teacher), made, curves)


def both_starts(left=None, other=None, **options):
    """The same from both starts, or with other shares from the second."""
    given = {STARTS[0]: left, STARTS[1]: left if other is None else other}
    return Data([experiment(own, start=start, **options) for start, own in given.items()])


def theory(*, held=1.0, violations=0.0, error=0.01):
    """A theory panel in which the aware step is the better one on a share of the steps at the largest β."""
    return {
        "guarantee": {
            "beta": [1.0, 1e6, 1e12],
            "steps": 100,
            "held": 90,
            "where_held": [1.0, 0.6, held],
            "elsewhere": [0.5, 0.1, 0.0],
        },
        "taught": {
            "beta": [50.0, 5000.0],
            "task_beta": 5000.0,
            "left": [0.7, 0.1],
            "conditions": [0.9, 0.9],
            "improved": [1, 0.8],
        },
        "sharpness": {
            "beta": [10.0, 1e3, 1e5],
            "sharpness": [0.07, 0.6, 1.0],
            "auto": [1400.0],
            "cap": 5e4,
            "task_beta": 5000.0,
            "at_task_beta": 0.9,
        },
        "monotonicity_violations": violations,
        "teaching_risk": 0.2,
        "premises": {
            "loss_slope": 13.0,
            "norm_slope": 900.0,
            "radius": 8.0,
            "error": error,
            "missed": 0.02,
            "convexity_violations": 0.0,
        },
    }
