"""The network that turns an equation's text into features: convolutions over its characters."""

from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ital._types import Array, PRNGKeyArray
from ital.tasks.equation._equation import LONGEST
from ital.tasks.equation._pairs import SYMBOLS

EMBEDDING = 30
LAYERS = ((5, 64), (5, 64), (3, 32), (3, 32), (3, 32), (3, 32))  # width and channels; a pool after every second
SLOPE = 0.2


class Convolution(eqx.Module):
    """A convolution over characters that keeps their number, (B, characters, channels) → the same, leaky ReLU."""

    weight: Array
    bias: Array

    def __init__(self, width: int, inputs: int, outputs: int, key: PRNGKeyArray) -> None:
        scale = (2 / ((1 + SLOPE**2) * width * inputs)) ** 0.5
        self.weight = scale * jax.random.normal(key, (width, inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        """The next layer."""
        y = jax.lax.conv_general_dilated(x, self.weight, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        return jax.nn.leaky_relu(y + self.bias, SLOPE)


def halve(x: Array) -> Array:
    """The larger of each two neighbours; the last of an odd number stands alone."""
    batch, length, channels = x.shape
    padded = jnp.pad(x, ((0, 0), (0, length % 2), (0, 0)), constant_values=-jnp.inf)
    return padded.reshape(batch, -1, 2, channels).max(axis=2)


class Network(eqx.Module):
    """φ of a batch of encoded texts: embedding, six convolutions with three pools, a dense layer, tanh; and w of the
    value v = w·φ that it is trained for (the bias cancels in every pair: it is 0).
    """

    embedding: Array
    convolutions: list[Convolution]
    dense: eqx.nn.Linear
    value: Array

    def __init__(self, features: int, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, len(LAYERS) + 3)
        self.embedding = jax.random.normal(keys[0], (len(SYMBOLS), EMBEDDING)) / EMBEDDING**0.5
        channels = [EMBEDDING, *(outputs for _, outputs in LAYERS)]
        self.convolutions = [
            Convolution(width, inputs, outputs, k)
            for (width, outputs), inputs, k in zip(LAYERS, channels[:-1], keys[1:], strict=False)
        ]
        length = LONGEST
        for _ in range(len(LAYERS) // 2):
            length = -(-length // 2)
        self.dense = eqx.nn.Linear(length * channels[-1], features, key=keys[-2])
        self.value = jax.random.normal(keys[-1], (features,)) / features**0.5

    def __call__(self, codes: Array) -> Array:
        """φ (B, d) of encoded texts (B, 173); padding is a row of zeros."""
        x = jnp.concatenate([jnp.zeros_like(self.embedding[:1]), self.embedding])[codes]
        for layer, convolution in enumerate(self.convolutions):
            x = convolution(x)
            if layer % 2 == 1:
                x = halve(x)
        return jnp.tanh(jax.vmap(self.dense)(x.reshape(len(x), -1)))

    def values(self, codes: Array) -> Array:
        """v (B,)."""
        return self(codes) @ self.value


@eqx.filter_jit
def _look(network: Network, codes: Array) -> Array:
    with jax.default_matmul_precision("highest"):
        return network(codes)


def features_of(network: Network) -> Callable[[np.ndarray], np.ndarray]:
    """φ (N, d) of any number of encoded texts (N, 173), a fixed number at a time so that one program does all."""
    at_once = 256 if jax.default_backend() == "cpu" else 8192

    def features(codes: np.ndarray) -> np.ndarray:
        phi = np.empty((len(codes), len(network.value)), np.float32)
        for first in range(0, len(codes), at_once):
            part = codes[first : first + at_once]
            padded = np.pad(part, ((0, at_once - len(part)), (0, 0)))
            phi[first : first + at_once] = np.asarray(_look(network, jnp.asarray(padded)))[: len(part)]
        return phi

    return features


def to_weights(network: Network) -> dict[str, np.ndarray]:
    """The arrays of a network, by number."""
    return {f"{i:02}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(network))}


def from_weights(features: int, weights: Mapping[str, np.ndarray], prefix: str = "") -> Network:
    """The network that :func:`to_weights` took apart."""
    shapes, tree = jax.tree.flatten(eqx.filter_eval_shape(Network, features, jax.random.key(0)))
    leaves = [jnp.asarray(weights[f"{prefix}{i:02}"]) for i in range(len(shapes))]
    return jax.tree.unflatten(tree, leaves)
