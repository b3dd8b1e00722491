"""Choose training batches in JAX: the digits of scikit-learn with 40 % wrong labels, with and
without a choice.

Run: python examples/select_jax.py
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

from ital.select.jax import pick

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300, help="training steps of each learner")
STEPS = parser.parse_args().steps

rng = np.random.default_rng(0)
x, y = load_digits(return_X_y=True)
x = jnp.asarray(x / 16, jnp.float32)
order = rng.permutation(len(x))
test = order[:400]
trusted = order[400:600]
rest = order[600:]
wrong = rng.random(len(x)) < 0.4
noisy = jnp.asarray(np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y))
y = jnp.asarray(y)
optimizer = optax.adam(0.003)


def start(seed):
    """Parameters of a small network."""
    first, second = jax.random.split(jax.random.key(seed))
    return jax.random.normal(first, (64, 64)) / 8, jax.random.normal(second, (64, 10)) / 8


def outputs(params, x):
    """The network."""
    return jax.nn.relu(x @ params[0]) @ params[1]


def losses(params, batch):
    """One loss per example."""
    return optax.losses.softmax_cross_entropy_with_integer_labels(
        outputs(params, batch[0]), batch[1]
    )


@jax.jit
def step(params, state, batch):
    """Train on a batch."""
    gradient = jax.grad(lambda params: jnp.mean(losses(params, batch)))(params)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(params, updates), state


@jax.jit
def chosen_step(params, state, batch, reference_losses):
    """Train on 32 examples of a large batch."""
    return step(params, state, pick(losses, params, batch, reference_losses, 32).batch)


def train(params, rows, labels, size, steps=STEPS, reference=None):
    """Train on random batches of a size; with the losses of a reference, on 32 of each."""
    state = optimizer.init(params)
    for _ in range(steps):
        drawn = rng.choice(rows, size, replace=False)
        batch = x[drawn], labels[drawn]
        if reference is None:
            params, state = step(params, state, batch)
        else:
            params, state = chosen_step(params, state, batch, reference[drawn])
    return params


def accuracy(params):
    """The share of test digits that the network knows."""
    return float(jnp.mean(outputs(params, x[test]).argmax(1) == y[test]))


knows = train(start(0), trusted, y, 32, 200)
print(f"reference, trained on {len(trusted)} trusted rows: {accuracy(knows):.3f}")
print(f"uniform batches of 32: {accuracy(train(start(1), rest, noisy, 32)):.3f}")
by_volume = train(start(1), rest, noisy, 320, reference=losses(knows, (x, noisy)))
print(f"32 of 320 by teaching volume: {accuracy(by_volume):.3f}")
