"""Speed of a PyTorch learner compared with the same network in JAX.

Run it with ``python benchmarks/torch_learner.py``.
"""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import torch
from sklearn.datasets import load_digits

import ital
from ital import models
from ital.losses import Loss
from ital.models import Model

STEPS = 400
WIDTHS = (32, 256)
SEEDS = (1, 10)


def in_torch(width: int) -> Callable[[Loss], Model]:
    """The network in PyTorch."""
    network = torch.nn.Sequential(
        torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, 10)
    )
    return lambda loss: ital.torch.model(network, loss)


def in_jax(width: int) -> Callable[[Loss], Model]:
    """The same network in Equinox, with gradients by autodiff."""

    def new(key: jax.Array) -> eqx.nn.MLP:
        return eqx.nn.MLP(64, 10, width, 1, jax.numpy.tanh, key=key)

    _, structure = eqx.partition(new(jax.random.key(0)), eqx.is_array)
    return lambda loss: models.differentiable(
        "mlp",
        lambda key: eqx.filter(new(key), eqx.is_array),
        lambda p, x: eqx.combine(p, structure)(x),
        loss,
    )


def main() -> None:
    """Print the table."""
    x, y = load_digits(return_X_y=True)
    print(
        "| hidden units | seeds | PyTorch, lane steps/s | Equinox, lane steps/s |\n"
        "|---|---|---|---|"
    )
    for width in WIDTHS:
        for seeds in SEEDS:
            speeds = []
            for make in (in_torch, in_jax):
                task = ital.tasks.from_arrays(x, y=y, model=make(width), beta=1.0, quiet=True)
                options = {
                    "learner": ["imt", "ital"],
                    "seeds": seeds,
                    "lr": 0.05,
                    "eval_every": 100,
                }
                ital.teach(task, steps=100, **options)  # compiles
                begun = time.perf_counter()
                ital.teach(task, steps=STEPS, **options)
                speeds.append(2 * seeds * STEPS / (time.perf_counter() - begun))
            print(f"| {width} | {seeds} | {speeds[0]:,.0f} | {speeds[1]:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
