"""Made-up curves and sweeps for figures and notebooks; nothing is taught."""

import json

import numpy as np
import xarray as xr

from ital import tasks


def curves(
    methods=("imt", "ital"),
    *,
    metrics=("distance", "loss"),
    seeds=4,
    steps=2000,
    teacher="cooperative",
):
    """Falling curves, one a little lower than the other."""
    rng = np.random.default_rng(0)
    step = np.arange(0, steps + 1, max(1, steps // 40))
    falling = 8 * np.exp(-3 * step / steps)
    shape = (len(methods), seeds, len(step))
    offsets = np.arange(1, len(methods) + 1)[:, None, None] / len(methods)
    dims, floor = ("learner", "seed", "step"), {"floor": np.full(seeds, 0.5)}
    data = {
        metric: (dims, falling * offsets + 0.1 * rng.random(shape), floor) for metric in metrics
    }
    lanes = {"computed": np.ones(shape[:2], np.int8), "diverged_at": np.full(shape[:2], -1)}
    data |= {name: (("learner", "seed"), values) for name, values in lanes.items()}
    coords = {"learner": list(methods), "label": ("learner", [name.upper() for name in methods])}
    attributes = {"task": "regression", "teacher": teacher, "steps": steps}
    return xr.Dataset(data, {**coords, "seed": np.arange(seeds), "step": step}, attributes)


def grid(methods=("imt", "ital"), *, lrs=3, betas=3, seeds=3):
    """A sweep in which larger steps are better, until they diverge."""
    lr, beta = np.logspace(-3, -1, lrs), np.linspace(0, 5000, betas)
    step = np.arange(0, 2001, 500)
    shape = (len(methods), lrs, betas, seeds, len(step))
    rate = lr[None, :, None, None, None] * (1 + beta[None, None, :, None, None] / 5000)
    distance = np.broadcast_to(8 * np.exp(-rate * step / 50), shape).copy()
    distance[:, -1, -1] = np.nan
    lanes = {"computed": np.ones(shape[:4], np.int8), "diverged_at": np.full(shape[:4], -1)}
    lanes["diverged_at"][:, -1, -1] = 500
    dims = ("learner", "lr", "beta", "seed")
    data = {"distance": ((*dims, "step"), distance)} | {
        name: (dims, values) for name, values in lanes.items()
    }
    coords = {"learner": list(methods), "label": ("learner", [name.upper() for name in methods])}
    coords |= {"lr": lr, "beta": beta, "seed": np.arange(seeds), "step": step}
    naive = [name for name in methods if name in ("imt", "sgd", "batch")]
    attributes = {"task": "regression", "teacher": "cooperative", "without_beta": json.dumps(naive)}
    return xr.Dataset(data, coords, attributes)


TASK = tasks.regression(dim=4, points=20)
