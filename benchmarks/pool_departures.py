"""What the open numbers of regression and gaussian change.

Run it with ``python benchmarks/pool_departures.py [SEEDS]``.

Every variant changes one number or rule. The script prints the final distance of the naive and the
teacher-aware learner, as a share of the start; on gaussian the centred distance.
"""

import sys

import jax
import numpy as np

import ital
from ital.tasks import Pool
from ital.tasks._regression import rotated

STEPS = 2000


def without_replacement(task):
    """The task with mini-batches of distinct rows."""

    def draw(key, world, batch_size):
        return jax.random.choice(key, world.learner.labels.shape[0], (batch_size,), replace=False)

    return task._replace(rules=task.rules._replace(draw=draw))


def wide_classes(seed):
    """Gaussian classes as in the package, with variance 0.5 instead of standard deviation 0.5."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, (10, 30))
    labels = np.repeat(np.arange(10), 90)
    x, test_x = (centres[labels] + np.sqrt(0.5) * rng.standard_normal((900, 30)) for _ in range(2))
    fit = LogisticRegression(fit_intercept=False, max_iter=10_000, tol=1e-6).fit(
        np.c_[x, np.ones(900)], labels
    )
    teacher_x, teacher_target = rotated(x, fit.coef_, rng)
    return Pool(x, teacher_x, labels, teacher_target, fit.coef_, test_x, labels)


def main(seeds):
    """Teach every variant."""
    regression = ital.tasks.regression()
    gaussian = ital.tasks.gaussian()
    wide = ital.tasks.from_pool(
        "gaussian-wide", wide_classes, ital.losses.cross_entropy, beta=gaussian.beta
    )
    variants = {
        "regression, as shipped": (regression, {}),
        "regression, β = 2000": (regression, {"beta": 2000.0}),
        "regression, rows without replacement": (without_replacement(regression), {}),
        "gaussian, as shipped": (gaussian, {}),
        "gaussian, variance 0.5": (wide, {}),
        "gaussian, rows without replacement": (without_replacement(gaussian), {}),
    }
    print(
        "| variant | naive | aware | aware closer | accuracy: naive, aware |\n|---|---|---|---|---|"
    )
    for name, (task, options) in variants.items():
        curves = ital.teach(
            task, learner=["imt", "ital"], steps=STEPS, seeds=seeds, eval_every=STEPS, **options
        ).curves
        metric = "distance_centred" if "distance_centred" in curves else "distance"
        values = curves[metric].transpose("step", "learner", "seed").values
        shares = values[-1].mean(axis=1) / values[0].mean(axis=1)
        closer = int(np.sum(values[-1][1] < values[-1][0]))
        right = (
            [""]
            if "accuracy" not in curves
            else curves["accuracy"].isel(step=-1).mean("seed").values.round(3)
        )
        print(
            f"| {name} | {shares[0]:.3g} | {shares[1]:.3g} | {closer} of {seeds} | "
            f"{', '.join(map(str, right))} |"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
