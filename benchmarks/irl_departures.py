"""What the open numbers of online IRL change: ``python benchmarks/irl_departures.py [SEEDS]``.

Every variant changes one number of irl-dense. The script prints the final centred distance over
that at the start, and the final policy total variation, of the naive and the teacher-aware learner.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import ital
from ital.models import Init

TASK = ital.tasks.irl_dense()
SIZE = 8
RANGE = 2.0
SHARPNESS = 220.0
STEPS = 2000


def varied(temperature=1.0, sharpness=SHARPNESS, start=RANGE):
    """irl-dense with another temperature τ of the policy, sharpness k, or range of the start.

    A world with temperature τ is the one with temperature 1 whose rewards are divided by τ, planned
    with sharpness kτ. Distances there are smaller by the factor τ, losses equal, and the step size
    and β that match are η/τ² and βτ².
    """
    from ital.tasks._irl import on_grid

    task = on_grid(
        "irl-dense",
        lambda rng: rng.uniform(-RANGE, RANGE, SIZE * SIZE) / temperature,
        SIZE,
        beta=TASK.beta * temperature**2,
        title=TASK.title,
        planning=ital.mdp.Planning(sharpness=sharpness * temperature),
    )
    return task._replace(init=Init("uniform", start / temperature)), {"lr": 1e-3 / temperature**2}


def any_action():
    """irl-dense with actions drawn uniformly instead of from the teacher's policy."""

    def draw(key, world, batch_size):
        states, actions = jax.random.split(key)
        choices = jnp.shape(world.teacher.examples.log_policy)
        return (
            jax.random.randint(states, (batch_size,), 0, choices[1]),
            jax.random.randint(actions, (batch_size,), 0, choices[0]),
        )

    return TASK._replace(rules=TASK.rules._replace(draw=draw)), {}


VARIANTS = {
    "as shipped": lambda: (TASK, {}),
    "sharpness 20": lambda: varied(sharpness=20.0),
    "sharpness 50": lambda: varied(sharpness=50.0),
    "sharpness 1000": lambda: varied(sharpness=1000.0),
    "temperature 0.5": lambda: varied(temperature=0.5),
    "temperature 2": lambda: varied(temperature=2.0),
    "start from U[−1, 1]": lambda: varied(start=1.0),
    "start from U[−4, 4]": lambda: varied(start=4.0),
    "actions drawn uniformly": any_action,
}


def main(seeds):
    """Teach every variant."""
    print(
        "| variant | naive: distance | aware: distance | naive: policy | aware: policy | aware "
        "closer |"
    )
    print("|---|---|---|---|---|---|")
    for name, make in VARIANTS.items():
        task, options = make()
        curves = ital.teach(
            task, learner=["imt", "ital"], steps=STEPS, seeds=seeds, eval_every=STEPS, **options
        ).curves
        distance = curves["distance_centred"]
        ratio = (distance.isel(step=-1) / distance.isel(step=0)).transpose("learner", "seed").values
        policy = curves["policy_tv"].isel(step=-1).transpose("learner", "seed").values.mean(axis=1)
        closer = int(np.sum(ratio[1] < ratio[0]))
        print(
            f"| {name} | {ratio[0].mean():.3f} | {ratio[1].mean():.3f} "
            f"| {policy[0]:.3f} | {policy[1]:.3f} | {closer} of {seeds} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
