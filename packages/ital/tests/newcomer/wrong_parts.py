"""Parts and numbers of the wrong kind: python -m tests.newcomer.wrong_parts prints each error
message, as JSON.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np

import ital

SMALL = {"steps": 10, "seeds": 2, "batch_size": 4}


def task():
    return ital.tasks.regression(dim=3, points=20)


def network(outputs=1, inputs=3):
    """A user's network, which draws its own start."""
    return ital.models.differentiable(
        "own",
        start=lambda key: jax.random.normal(key, (outputs, inputs)),
        apply=lambda params, x: params @ x,
        loss=ital.losses.squared,
    )


def pool(seed=0, rows=10, **changes):
    rng = np.random.default_rng(seed)
    x, target = rng.normal(size=(2 * rows, 3)), rng.normal(size=(1, 4))
    y = x @ target[:, :-1].T + target[:, -1]
    whole = ital.tasks.Pool(x[:rows], x[:rows], y[:rows], target, target, x[rows:], y[rows:])
    return whole._replace(**changes)


def of_pool(data, **options):
    return ital.tasks.from_pool(
        "mine", data, options.pop("loss", ital.losses.squared), beta=1.0, **options
    )


def taught(make):
    return lambda: ital.teach(make(), learner="imt", **SMALL)


def teach(**options):
    return lambda: ital.teach(task(), **{"learner": "imt", **SMALL, **options})


unknown = pool(learner_target=None)  # the optimum of a network
vector = ital.losses.custom("vector", lambda alpha, y: jnp.abs(alpha - y))

CASES = {
    "pool function returns None": (
        taught(lambda: of_pool(lambda seed: None)),
        "'mine': a pool must be .*, not None",
    ),
    "pool is None": (
        taught(lambda: of_pool(None)),
        "'mine': a pool must be an ital.tasks.Pool.*, not None",
    ),
    "pools of different sizes": (
        taught(lambda: of_pool(lambda seed: pool(rows=10 + seed))),
        r"seed numbers 0 and 1 hold arrays of shapes \(10, 4\) and \(11, 4\)",
    ),
    "test_x": (
        taught(lambda: of_pool(pool(test_x=None))),
        "'mine': test_x must be an array .*, not None",
    ),
    "labels": (taught(lambda: of_pool(pool(labels=None))), "'mine': labels must be an array"),
    "ragged": (
        taught(lambda: of_pool(pool(labels=[[1], [1, 2]]))),
        "'mine': labels must be an array",
    ),
    "vector loss": (
        taught(lambda: of_pool(pool(), loss=vector)),
        r"loss 'vector' must be one number .*\(1,\)",
    ),
    "no loss": (taught(lambda: of_pool(pool(), loss=None)), "'mine': loss must be .*, not None"),
    "model by name": (
        taught(lambda: of_pool(pool(), model="mlp")),
        "'mine': model must be .*, not 'mlp'",
    ),
    "too many outputs": (
        taught(lambda: of_pool(unknown, model=network(outputs=2))),
        r"model 'own' gives outputs of shape \(2,\) for an example, expected \(1,\)",
    ),
    "too many inputs": (
        taught(lambda: of_pool(unknown, model=network(inputs=5))),
        "model 'own' cannot be applied",
    ),
    "target of another model": (
        taught(lambda: of_pool(pool(), model=network())),
        r"learner_target has shape \(1, 4\), but .* model 'own' have \(1, 3\)",
    ),
    "seeds=2.0": (teach(seeds=2.0), "seeds must be a whole number or a list of them, not 2.0"),
    "seeds='2'": (teach(seeds="2"), "seeds must be a whole number or a list of them, not '2'"),
    "seeds=[0, 1.5]": (
        teach(seeds=[0, 1.5]),
        r"seeds must be a whole number or a list of them, not \[0, 1.5\]",
    ),
    "learner=None": (teach(learner=None), r"expected a learner such as .*, or its name, not None"),
    "beta=nan": (teach(beta=float("nan")), "beta must be a finite number or 'auto', not nan"),
    "beta=[1.0]": (teach(beta=[1.0]), r"beta must be a finite number or 'auto', not \[1.0\]"),
    "init=3": (teach(init=3), "start 3 must be uniform"),
    "dim=2.5": (lambda: ital.tasks.regression(dim=2.5), "dim must be a whole number, not 2.5"),
    "learner's beta": (
        lambda: ital.learners.teacher_aware(beta=np.float32("nan")),
        "beta must be a finite number",
    ),
    "learner's view": (
        lambda: ital.learners.teacher_aware(view=2.5),
        "view must be a whole number, not 2.5",
    ),
    "task's beta": (
        lambda: ital.tasks.from_pool("mine", pool(), ital.losses.squared, beta=float("nan")),
        "beta must be a finite number or 'auto', not nan",
    ),
}


def told(call):
    """The message of a call's error, with its type."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


if __name__ == "__main__":
    print(json.dumps({name: told(call) for name, (call, _) in CASES.items()}))
