"""The networks of the image tasks. The view is the input of the last layer."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ital.tools.types import Array, PRNGKeyArray

BATCH = "batch"  # the axis over which batch norm takes its means


class Classifier(eqx.Module):
    """A body that computes the view of one input, and a linear last layer on top."""

    body: eqx.nn.Sequential
    last: eqx.nn.Linear

    def views(
        self,
        x: Array,
        state: eqx.nn.State,
        key: PRNGKeyArray,
    ) -> tuple[Array, eqx.nn.State]:
        """Return the views of a batch (B, d), and the new state of the layers."""
        keys = jax.random.split(key, len(x))

        def view(
            x: Array,
            state: eqx.nn.State,
            key: PRNGKeyArray,
        ) -> Any:
            return self.body(x, state, key=key)

        # All examples share one state: batch norm takes its means over the named axis.
        of_batch = jax.vmap(view, axis_name=BATCH, in_axes=(0, None, 0), out_axes=(0, None))
        return of_batch(x, state, keys)

    def __call__(
        self, x: Array, state: eqx.nn.State, key: PRNGKeyArray
    ) -> tuple[Array, eqx.nn.State]:
        """Return the outputs of a batch (B, K), and the new state of the layers."""
        views, state = self.views(x, state, key)
        return jax.vmap(self.last)(views), state


def _conv(
    inputs: int,
    outputs: int,
    key: PRNGKeyArray,
    *,
    bias: bool = True,
) -> eqx.nn.Conv2d:
    return eqx.nn.Conv2d(inputs, outputs, 3, padding=1, use_bias=bias, key=key)


def max_pool(x: Array) -> Array:
    """Take the largest of each square of four: (channels, h, w) to (channels, h/2, w/2).

    On a CPU, its gradient is several times faster than that of a sliding window.
    """
    channels, height, width = x.shape
    return x.reshape(channels, height // 2, 2, width // 2, 2).max(axis=(2, 4))


def _network(
    layers: Sequence[Any],
    width: int,
    classes: int,
    key: PRNGKeyArray,
) -> Classifier:
    return Classifier(eqx.nn.Sequential(layers), eqx.nn.Linear(width, classes, key=key))


def mnist_cnn(
    width: int,
    key: PRNGKeyArray,
    side: int = 28,
) -> Classifier:
    """Make the network of MNIST.

    Conv 64, pool, conv 32, pool, conv 32 (3 × 3, leaky ReLU), dense ``width`` (tanh), dense 10.
    """
    keys = jax.random.split(key, 5)
    leaky = eqx.nn.Lambda(jax.nn.leaky_relu)
    layers = [
        _conv(1, 64, keys[0]),
        leaky,
        eqx.nn.Lambda(max_pool),
        _conv(64, 32, keys[1]),
        leaky,
        eqx.nn.Lambda(max_pool),
        _conv(32, 32, keys[2]),
        leaky,
        eqx.nn.Lambda(jnp.ravel),
        # Two pools have halved each side twice.
        eqx.nn.Linear(32 * (side // 4) ** 2, width, key=keys[3]),
        eqx.nn.Lambda(jnp.tanh),
    ]
    return _network(layers, width, 10, keys[4])


def cifar_cnn(
    depth: int,
    key: PRNGKeyArray,
    side: int = 32,
) -> Classifier:
    """Make a network of CIFAR-10.

    Three blocks of ``depth``/3 conv layers with 16, 32, 64 filters, batch norm, ReLU, a pool after
    each block; dense 32 (tanh), dense 10.
    """
    keys = iter(jax.random.split(key, depth + 2))
    layers: list[Any] = []
    inputs = 3
    for filters in (16, 32, 64):
        for _ in range(depth // 3):
            # Batch norm adds a bias of its own.
            layers += [
                _conv(inputs, filters, next(keys), bias=False),
                eqx.nn.BatchNorm(filters, axis_name=BATCH, mode="batch"),
                eqx.nn.Lambda(jax.nn.relu),
            ]
            inputs = filters
        layers.append(eqx.nn.Lambda(max_pool))
    layers += [
        eqx.nn.Lambda(jnp.ravel),
        eqx.nn.Linear(64 * (side // 8) ** 2, 32, key=next(keys)),
        eqx.nn.Lambda(jnp.tanh),
    ]
    return _network(layers, 32, 10, next(keys))


def bottleneck_mlp(
    inputs: int, classes: int, key: PRNGKeyArray, dropout: float = 0.5
) -> Classifier:
    """Make a network on extracted features.

    Dense 500, 250 and 10, ReLU after each and dropout between, then a linear layer to the classes.
    """
    keys = jax.random.split(key, 4)
    relu = eqx.nn.Lambda(jax.nn.relu)
    drop = eqx.nn.Dropout(dropout)
    layers = [
        eqx.nn.Linear(inputs, 500, key=keys[0]),
        relu,
        drop,
        eqx.nn.Linear(500, 250, key=keys[1]),
        relu,
        drop,
        eqx.nn.Linear(250, 10, key=keys[2]),
        relu,
    ]
    return _network(layers, 10, classes, keys[3])
