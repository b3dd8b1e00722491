"""The network that turns an equation's text into features: convolutions over its characters."""

import functools
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ital.tools.types import Array, PRNGKeyArray
from ital_paper.equation._equation import LONGEST
from ital_paper.equation._pairs import SYMBOLS

EMBEDDING = 30
LAYERS = (
    (5, 64),
    (5, 64),
    (3, 32),
    (3, 32),
    (3, 32),
    (3, 32),
)  # width and channels; a pool after every second
SLOPE = 0.2
MOST_WINDOWS = 2**20  # kept in memory per kind, at most about 1 GB in total


class Convolution(eqx.Module):
    """A convolution over characters with leaky ReLU; keeps the number of characters, (B, characters, channels)."""

    weight: Array
    bias: Array

    def __init__(self, width: int, inputs: int, outputs: int, key: PRNGKeyArray) -> None:
        scale = (2 / ((1 + SLOPE**2) * width * inputs)) ** 0.5
        self.weight = scale * jax.random.normal(key, (width, inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array, padding: str = "SAME") -> Array:
        """The output of this layer."""
        y = jax.lax.conv_general_dilated(
            x, self.weight, (1,), padding, dimension_numbers=("NWC", "WIO", "NWC")
        )
        return jax.nn.leaky_relu(y + self.bias, SLOPE)


def halve(x: Array) -> Array:
    """The larger of each pair of neighbours; with an odd number, the last has no partner."""
    batch, length, channels = x.shape
    padded = jnp.pad(x, ((0, 0), (0, length % 2), (0, 0)), constant_values=-jnp.inf)
    return padded.reshape(batch, -1, 2, channels).max(axis=2)


class Network(eqx.Module):
    """Computes φ of a batch of encoded texts: embedding, six convolutions with three pools, a dense layer, tanh.

    Also holds w of the value v = w·φ that it is trained for. The bias is 0, since it cancels in every pair.
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
def _two_layers(first: Convolution, second: Convolution, x: Array, inside: Array) -> Array:
    """Two convolutions and a pool on windows (U, window, channels) that are just wide enough for one output.

    Positions beyond the ends of a text (not ``inside``) count as 0 in a convolution, and are ignored by a pool.
    """
    with jax.default_matmul_precision("highest"):
        x = first(jnp.where(inside[:, :, None], x, 0), "VALID")
        beside = (inside.shape[1] - x.shape[1]) // 2
        x = second(jnp.where(inside[:, beside:-beside, None], x, 0), "VALID")
        middle = inside.shape[1] // 2
        return jnp.where(inside[:, middle, None], jnp.maximum(x[:, 0], x[:, 1]), x[:, 0])


@eqx.filter_jit
def _last_layer(dense: eqx.nn.Linear, x: Array) -> Array:
    """φ from the input of the last pool: XLA fuses pool and tanh, so that it rounds as in the whole network."""
    with jax.default_matmul_precision("highest"):
        return jnp.tanh(jax.vmap(dense)(halve(x).reshape(len(x), -1)))


def _in_parts(
    function: Callable[..., Array], table: np.ndarray, places: np.ndarray, *others: np.ndarray
) -> np.ndarray:
    """Apply ``function`` to rows of the table, a fixed number at a time: one program, and little memory."""
    at_once = 1024 if jax.default_backend() == "cpu" else 4096
    parts = []
    for begin in range(0, len(places), at_once):
        part = slice(begin, begin + at_once)
        missing = at_once - len(places[part])
        inputs = [np.pad(a[part], ((0, missing), (0, 0))) for a in (places, *others)]
        parts.append(np.asarray(function(table[inputs[0]], *inputs[1:]))[: at_once - missing])
    return np.concatenate(parts)


class Seen:
    """A cache: windows by key, and the output of two convolutions and a pool for each."""

    def __init__(self, channels: int) -> None:
        self.keys = np.array([np.iinfo(np.int64).max])  # sorted; the last key matches no window
        self.numbers = np.array([-1])  # the row of the table for each key
        self.table = np.empty((0, channels), np.float32)
        self.inside = np.empty(0, bool)

    def numbers_of(
        self, keys: np.ndarray, look: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """Rows of the table for distinct keys; ``look`` computes the rows of new keys, given their positions."""
        slots = np.searchsorted(self.keys, keys)
        numbers = self.numbers[slots]
        is_new = self.keys[slots] != keys
        new = np.flatnonzero(is_new)[np.argsort(keys[is_new])]
        if len(new):
            first, last = len(self.inside), len(self.inside) + len(new)
            numbers[new] = np.arange(first, last)
            self.keys = np.insert(self.keys, slots[new], keys[new])
            self.numbers = np.insert(self.numbers, slots[new], numbers[new])
            if last > len(self.table):
                self.table = np.concatenate(
                    [self.table, np.empty((last, self.table.shape[1]), np.float32)]
                )
            self.table[first:last], inside = look(new)
            self.inside = np.concatenate([self.inside, inside])
        return numbers


def features_of(network: Network) -> Callable[[np.ndarray], np.ndarray]:
    """A function that computes the network's φ (N, d) of encoded texts (N, 173), each repeated stretch of text once.

    The output of two convolutions and a pool depends, at each position, on 10 characters, then on 20, then on 40.
    Successors of an equation share most of these windows: only distinct windows are computed, and cached.
    """
    pairs = list(zip(network.convolutions[::2], network.convolutions[1::2], strict=True))
    symbols = np.concatenate(
        [np.zeros((1, EMBEDDING)), network.embedding, np.zeros((1, EMBEDDING))], dtype=np.float32
    )
    beyond = len(symbols) - 1  # the code of positions before and after a text
    memory: list[Seen] = []

    def features(codes: np.ndarray) -> np.ndarray:
        if not len(codes):
            return np.empty((0, len(network.value)), np.float32)
        if not memory or any(len(seen.keys) > MOST_WINDOWS for seen in memory):
            memory[:] = [Seen(len(second.bias)) for _, second in pairs]
        places = np.pad(codes.astype(np.int64), ((0, 0), (16, 19)), constant_values=beyond)
        table, inside = symbols, np.arange(beyond + 1) < beyond
        for seen, (first, second) in zip(memory, pairs, strict=True):
            window = len(first.weight) + len(second.weight)
            windows = np.lib.stride_tricks.sliding_window_view(places, window, axis=1)[:, ::2]
            # All 10 characters, or the first and the last of six windows, which hold all characters of all six.
            parts, bits = (range(window), 5) if table is symbols else ((0, window - 1), 31)
            key = sum(windows[:, :, part] << bits * i for i, part in enumerate(parts))
            number, distinct = pd.factorize(np.ravel(key))
            somewhere = np.empty(len(distinct), np.int64)
            somewhere[number] = np.arange(len(number))

            def look(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                chosen = windows[np.unravel_index(somewhere[new], windows.shape[:2])]  # noqa: B023
                in_text = inside[chosen]  # noqa: B023
                two_layers = functools.partial(_two_layers, first, second)  # noqa: B023
                rows = _in_parts(two_layers, table, chosen, in_text)  # noqa: B023
                return rows, in_text[:, window // 2 - 1]  # noqa: B023

            places = seen.numbers_of(distinct, look)[number].reshape(windows.shape[:2])
            table, inside = seen.table, seen.inside
        return _in_parts(
            functools.partial(_last_layer, network.dense), table, places.repeat(2, axis=1)
        )

    return features


def to_weights(network: Network) -> dict[str, np.ndarray]:
    """The arrays of a network, keyed by number."""
    return {f"{i:02}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(network))}


def from_weights(features: int, weights: Mapping[str, np.ndarray], prefix: str = "") -> Network:
    """The network rebuilt from the arrays of :func:`to_weights`."""
    shapes, tree = jax.tree.flatten(eqx.filter_eval_shape(Network, features, jax.random.key(0)))
    leaves = [jnp.asarray(weights[f"{prefix}{i:02}"]) for i in range(len(shapes))]
    return jax.tree.unflatten(tree, leaves)
