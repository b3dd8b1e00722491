"""The network that turns an equation's text into features: convolutions over its characters."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ital.tools.types import Array, PRNGKeyArray
from ital_paper.equation._equation import LONGEST
from ital_paper.equation._pairs import SYMBOLS

EMBEDDING = 30
# Width and channels of each convolution; a pool after every second:
LAYERS = ((5, 64), (5, 64), (3, 32), (3, 32), (3, 32), (3, 32))
SLOPE = 0.2
MOST_WINDOWS = 2**20  # kept in memory per kind, at most about 1 GB in total


class Convolution(eqx.Module):
    """A convolution over characters with leaky ReLU.

    It keeps the number of characters: (B, characters, inputs) to (B, characters, outputs).
    """

    weight: Array
    bias: Array

    def __init__(
        self,
        width: int,
        inputs: int,
        outputs: int,
        key: PRNGKeyArray,
    ) -> None:
        # Kaiming initialisation: outputs have about the variance of inputs.
        scale = (2 / ((1 + SLOPE**2) * width * inputs)) ** 0.5
        self.weight = scale * jax.random.normal(key, (width, inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array, padding: str = "SAME") -> Array:
        """Return the output of this layer."""
        y = jax.lax.conv_general_dilated(
            x, self.weight, (1,), padding, dimension_numbers=("NWC", "WIO", "NWC")
        )
        return jax.nn.leaky_relu(y + self.bias, SLOPE)


def halve(x: Array) -> Array:
    """Take the larger of each pair of neighbours: (B, characters, channels) to half of them.

    With an odd number, the last has no partner.
    """
    batch, length, channels = x.shape
    padded = jnp.pad(x, ((0, 0), (0, length % 2), (0, 0)), constant_values=-jnp.inf)
    return padded.reshape(batch, -1, 2, channels).max(axis=2)


class Network(eqx.Module):
    """The network that computes φ of a batch of encoded texts.

    An embedding, six convolutions with three pools, a dense layer, tanh. It also holds w of the
    value v = w·φ that it is trained for. The bias is 0, since it cancels in every pair.
    """

    # The order of the fields is that of the weights in feature files.
    embedding: Array
    convolutions: list[Convolution]
    dense: eqx.nn.Linear
    value: Array

    def __init__(self, features: int, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, len(LAYERS) + 3)
        self.embedding = jax.random.normal(keys[0], (len(SYMBOLS), EMBEDDING)) / EMBEDDING**0.5
        self.convolutions = []
        length = LONGEST
        channels = EMBEDDING
        for layer, (width, outputs) in enumerate(LAYERS):
            self.convolutions.append(Convolution(width, channels, outputs, keys[layer + 1]))
            channels = outputs
            if _is_pooled(layer):
                length = -(-length // 2)
        self.dense = eqx.nn.Linear(length * channels, features, key=keys[-2])
        self.value = jax.random.normal(keys[-1], (features,)) / features**0.5

    def __call__(self, codes: Array) -> Array:
        """Return φ (B, d) of encoded texts (B, 173); padding is a row of zeros."""
        padding = jnp.zeros_like(self.embedding[:1])
        x = jnp.concatenate([padding, self.embedding])[codes]
        for layer, convolution in enumerate(self.convolutions):
            x = convolution(x)
            if _is_pooled(layer):
                x = halve(x)
        return jnp.tanh(jax.vmap(self.dense)(x.reshape(len(x), -1)))

    def values(self, codes: Array) -> Array:
        """Return v (B,) of encoded texts."""
        return self(codes) @ self.value


def _is_pooled(layer: int) -> bool:
    """Return whether a pool follows a convolution."""
    return layer % 2 == 1


# ---- the same features from windows of the text ----


@eqx.filter_jit
def _two_layers(
    first: Convolution,
    second: Convolution,
    x: Array,
    inside: Array,
) -> Array:
    """Apply two convolutions and a pool to windows that are just wide enough for one output.

    Positions beyond the ends of a text count as 0 in a convolution, and are ignored by a pool.

    Args:
        first: the first convolution.
        second: the second one.
        x: the windows (U, window, channels).
        inside: which positions are in the text (U, window).

    Returns:
        The outputs (U, channels).
    """
    with jax.default_matmul_precision("highest"):
        x = first(jnp.where(inside[:, :, None], x, 0), "VALID")
        beside = (inside.shape[1] - x.shape[1]) // 2
        x = second(jnp.where(inside[:, beside:-beside, None], x, 0), "VALID")
        # Two positions are left, and the pool takes the larger one.
        middle = inside.shape[1] // 2
        larger = jnp.maximum(x[:, 0], x[:, 1])
        return jnp.where(inside[:, middle, None], larger, x[:, 0])


@eqx.filter_jit
def _dense_layer(dense: eqx.nn.Linear, x: Array) -> Array:
    """Return φ from the input of the last pool.

    XLA fuses pool and tanh, so that it rounds as in the whole network.
    """
    with jax.default_matmul_precision("highest"):
        return jnp.tanh(jax.vmap(dense)(halve(x).reshape(len(x), -1)))


def _in_parts(
    function: Callable[..., Array], table: np.ndarray, rows: np.ndarray, *others: np.ndarray
) -> np.ndarray:
    """Apply ``function`` to ``table[rows]``, a fixed number at a time.

    A fixed number means a single program, and little memory.
    """
    at_once = 1024 if jax.default_backend() == "cpu" else 4096
    outputs = []
    for begin in range(0, len(rows), at_once):
        part = slice(begin, begin + at_once)
        used = len(rows[part])
        # The last part is filled up with row 0, whose outputs are cut off again.
        missing = ((0, at_once - used), (0, 0))
        filled, *more = (np.pad(array[part], missing) for array in (rows, *others))
        outputs.append(np.asarray(function(table[filled], *more))[:used])
    return np.concatenate(outputs)


class _Table(NamedTuple):
    """What the positions of a text may refer to.

    Attributes:
        rows: the rows (R, channels): symbols, or outputs of two convolutions and a pool.
        inside: whether a row is about a position in a text, not before or after one (R,).
    """

    rows: np.ndarray
    inside: np.ndarray


class _Cache:
    """Windows by key, and the output of two convolutions and a pool for each."""

    def __init__(self, channels: int) -> None:
        self.keys = np.array([np.iinfo(np.int64).max])  # sorted; the last key matches no window
        self.row_of_key = np.array([-1])
        # The first ``len(inside)`` rows are in use; the others are room for more.
        self.rows = np.empty((0, channels), np.float32)
        self.inside = np.empty(0, bool)

    @property
    def table(self) -> _Table:
        """The outputs so far."""
        return _Table(self.rows, self.inside)

    def rows_of(
        self, keys: np.ndarray, compute: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """Return the rows of the table for distinct keys.

        Args:
            keys: the keys.
            compute: returns the outputs for new keys, given their indices in ``keys``, and whether
                each of them is inside a text.
        """
        slots = np.searchsorted(self.keys, keys)
        rows = self.row_of_key[slots]
        is_new = self.keys[slots] != keys
        # In the order of their keys, so that an insertion keeps the keys sorted.
        new = np.flatnonzero(is_new)[np.argsort(keys[is_new])]
        if len(new):
            first = len(self.inside)
            last = first + len(new)
            rows[new] = np.arange(first, last)
            self.keys = np.insert(self.keys, slots[new], keys[new])
            self.row_of_key = np.insert(self.row_of_key, slots[new], rows[new])
            self._make_room(last)
            self.rows[first:last], inside = compute(new)
            self.inside = np.concatenate([self.inside, inside])
        return rows

    def _make_room(self, count: int) -> None:
        if count > len(self.rows):
            more = np.empty((count, self.rows.shape[1]), np.float32)
            self.rows = np.concatenate([self.rows, more])


def features_of(network: Network) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes the network's φ (N, d) of encoded texts (N, 173).

    The output of two convolutions and a pool depends, at each position, on 10 characters, then on
    20, then on 40. Successors of an equation share most of these windows: only distinct windows
    are computed, and cached.
    """
    pairs = list(zip(network.convolutions[::2], network.convolutions[1::2], strict=True))
    padding = np.zeros((1, EMBEDDING))
    # Padding within a text and positions beyond its ends are zeros, but only the latter are
    # ignored by a pool.
    symbols = np.concatenate([padding, network.embedding, padding], dtype=np.float32)
    beyond = len(symbols) - 1
    characters = _Table(symbols, np.arange(beyond + 1) < beyond)
    caches: list[_Cache] = []

    def features(codes: np.ndarray) -> np.ndarray:
        if not len(codes):
            return np.empty((0, len(network.value)), np.float32)
        if not caches or any(len(cache.keys) > MOST_WINDOWS for cache in caches):
            caches[:] = [_Cache(len(second.bias)) for _, second in pairs]
        # Row of the table at each position of each text; windows reach beyond its ends.
        rows = np.pad(codes.astype(np.int64), ((0, 0), (16, 19)), constant_values=beyond)
        table = characters
        for cache, (first, second) in zip(caches, pairs, strict=True):
            width = len(first.weight) + len(second.weight)
            # All 10 characters, or the first and the last of six windows, which hold all
            # characters of all six.
            if table is characters:
                keys_of = functools.partial(_keys, positions=range(width), bits=5)
            else:
                keys_of = functools.partial(_keys, positions=(0, width - 1), bits=31)
            rows = _outputs_at_windows(cache, table, rows, first, second, keys_of)
            table = cache.table
        # The last pool follows here: each output is paired with itself.
        dense = functools.partial(_dense_layer, network.dense)
        return _in_parts(dense, table.rows, rows.repeat(2, axis=1))

    return features


def _keys(
    windows: np.ndarray,
    positions: Sequence[int],
    bits: int,
) -> np.ndarray:
    """Return a number for each window (N, W, width) that no other window has."""
    parts = [windows[:, :, position] << bits * i for i, position in enumerate(positions)]
    return np.ravel(sum(parts))


def _outputs_at_windows(
    cache: _Cache,
    table: _Table,
    rows: np.ndarray,
    first: Convolution,
    second: Convolution,
    keys_of: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return the cache's rows for two convolutions and a pool at every second position.

    Args:
        cache: the outputs so far; those of new windows are added.
        table: what ``rows`` refers to.
        rows: the row of the table at each position of each text (N, positions).
        first: the first convolution.
        second: the second one.
        keys_of: the keys of windows (N, W, width).
    """
    width = len(first.weight) + len(second.weight)
    windows = np.lib.stride_tricks.sliding_window_view(rows, width, axis=1)[:, ::2]
    number, distinct = pd.factorize(keys_of(windows))
    # For each distinct window, some position where it occurs.
    somewhere = np.empty(len(distinct), np.int64)
    somewhere[number] = np.arange(len(number))

    def compute(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen = windows[np.unravel_index(somewhere[new], windows.shape[:2])]  # (U, width)
        in_text = table.inside[chosen]
        two_layers = functools.partial(_two_layers, first, second)
        outputs = _in_parts(two_layers, table.rows, chosen, in_text)
        return outputs, in_text[:, width // 2 - 1]

    return cache.rows_of(distinct, compute)[number].reshape(windows.shape[:2])


def to_weights(network: Network) -> dict[str, np.ndarray]:
    """Return the arrays of a network, keyed by number."""
    return {f"{i:02}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(network))}


def from_weights(
    features: int,
    weights: Mapping[str, np.ndarray],
    prefix: str = "",
) -> Network:
    """Return the network rebuilt from the arrays of :func:`to_weights`."""
    # Only the shapes are needed, not random weights.
    empty = eqx.filter_eval_shape(Network, features, jax.random.key(0))
    shapes, tree = jax.tree.flatten(empty)
    leaves = [jnp.asarray(weights[f"{prefix}{i:02}"]) for i in range(len(shapes))]
    return jax.tree.unflatten(tree, leaves)
