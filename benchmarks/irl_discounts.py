"""Is anything wrong at any discount?

Run it with ``python benchmarks/irl_discounts.py [OUT.csv] [SEEDS] [STEPS]``.

Teaches five maps at five discounts with IMT, ITAL and ITAL 2, and writes a line for each map and
discount to OUT.csv; finished lines are skipped. Then it compares gradients with central differences
in float64.

A value is wrong if it is not finite although the parameters are: their distance to the target is
finite if and only if they are.
"""

import csv
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import ital
from ital.mdp import Planning
from ital.tasks import Demonstrations, implicit_gradients

DISCOUNTS = (0.5, 0.8, 0.9, 0.95, 0.99)
METHODS = ("imt", "ital", "ital-2")
STEP = 1e-6  # of central differences


def eight():
    """The map on which a newcomer first saw NaN."""
    return np.random.default_rng(0).uniform(-2, 2, (8, 8))


def sparse():
    """Three rewarding cells of 64."""
    cells = np.zeros(64)
    cells[np.random.default_rng(0).choice(64, 3, replace=False)] = 1.0
    return cells.reshape(8, 8)


def walls():
    """A 9 × 12 map; a fifth of its cells are walls."""
    rng = np.random.default_rng(0)
    cells = rng.uniform(-2, 2, (9, 12))
    cells[rng.random((9, 12)) < 0.2] = np.nan
    return cells


CAVE = [
    [0.0, 0, 0, 0, 1],
    [0, -1, -1, 0, 0],
    [0, -1, 2, -1, 0],
    [0, 0, -1, -1, 0],
    [0.5, 0, 0, 0, 0],
]
MAPS = {
    "8 × 8": eight(),
    "dense": np.random.default_rng(1).uniform(-2, 2, (8, 8)),
    "sparse": sparse(),
    "cave": np.array(CAVE),
    "9 × 12, walls": walls(),
}


def taught(cells, discount, seeds, steps):
    """How many values are wrong, how many lanes diverged, and of how many values."""
    task = ital.tasks.irl(cells, discount=discount)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lanes that diverge
        curves = ital.teach(task, learner=METHODS, seeds=seeds, steps=steps).curves
    order = ("learner", "seed", "step")
    sound = np.isfinite(curves["distance"].transpose(*order).values)
    wrong = 0
    for metric in task.metrics:
        finite = np.isfinite(curves[metric].transpose(*order).values)
        wrong += int(np.sum(sound & ~finite))
    diverged = int(np.sum(~sound[..., -1]))
    return wrong, diverged, sound.size * len(task.metrics)


def gradient_error(cells, discount, directions=3):
    """The largest difference of gradients to central differences, in float64."""
    dynamics = dynamics_of(cells)
    planning = Planning(discount, tolerance=1e-12)
    rng = np.random.default_rng(0)
    target = cells[~np.isnan(cells)]
    params = jnp.asarray(target + rng.uniform(-0.5, 0.5, target.shape))
    states = jnp.arange(dynamics.states)
    shown = Demonstrations(states, states % 4, None, None)
    planned = jax.jit(lambda reward: ital.mdp.plan(dynamics, planning, reward))

    def losses(reward):
        log_policy = ital.mdp.log_policy(planned(reward).q)
        return np.asarray(-log_policy[shown.actions, shown.states])

    ours = implicit_gradients(dynamics, planning, planned(params), shown)
    worst = 0.0
    for _ in range(directions):
        direction = jnp.asarray(rng.normal(size=params.shape))
        direction = direction / jnp.linalg.norm(direction)
        ahead = losses(params + STEP * direction)
        behind = losses(params - STEP * direction)
        central = (ahead - behind) / (2 * STEP)
        worst = max(worst, float(np.abs(np.asarray(ours.inner(direction)) - central).max()))
    return worst


def dynamics_of(cells):
    """The dynamics of a map of the task ``irl``."""
    missing = np.argwhere(np.isnan(cells))
    is_wall = tuple((int(row), int(column)) for row, column in missing)
    return ital.mdp.grid(cells.shape, walls=is_wall)


def main(out, seeds, steps):
    """Teach what is missing, then check gradients; exit with 1 if anything is wrong."""
    if not out.exists():
        out.write_text("map,discount,wrong,diverged,values\n", encoding="utf-8")
    with out.open(encoding="utf-8") as file:
        done = {(row["map"], float(row["discount"])): row for row in csv.DictReader(file)}
    for name, cells in MAPS.items():
        for discount in DISCOUNTS:
            if (name, discount) in done:
                continue
            numbers = taught(cells, discount, seeds, steps)
            with out.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow([name, discount, *numbers])
            print(
                f"{name}, discount {discount}: {numbers[0]} of {numbers[2]} values wrong,", end=" "
            )
            print(f"{numbers[1]} of {len(METHODS) * seeds} lanes diverged", flush=True)
    with out.open(encoding="utf-8") as file:
        wrong = sum(int(row["wrong"]) for row in csv.DictReader(file))
    print(f"wrong values: {wrong}")
    jax.config.update("jax_enable_x64", True)
    errors = [gradient_error(cells, discount) for cells in MAPS.values() for discount in DISCOUNTS]
    print(f"largest error of a gradient in float64: {max(errors):.1e}")
    return int(wrong > 0 or max(errors) > 1e-5)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(
        main(
            Path(given[0] if given else "irl-discounts.csv"),
            int(given[1]) if len(given) > 1 else 10,
            int(given[2]) if len(given) > 2 else 500,
        )
    )
