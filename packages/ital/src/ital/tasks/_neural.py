"""A learner with a neural network (all layers learn), taught by a teacher with another network."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp

from ital.gradients import HIGHEST, Gradients, factored
from ital.losses import Loss
from ital.models import OWN, Init, LinearRows, Model, linear_rows
from ital.tools.types import Array, Float, PRNGKeyArray

Layers = tuple[Array, ...]  # [W, b] of each layer: outputs × (inputs + 1)


@functools.cache  # one object per setting, so that equal tasks share one compiled program
def mlp(loss: Loss, width: int, depth: int = 1) -> Model:
    """Make an Equinox MLP of ``depth`` tanh layers and a linear one.

    All layers have their gradients in closed form. In each layer an example's gradient is δ ⊗ ã, as
    in a linear model. So per-example gradients are never created; autodiff would need them for the
    norms.

    Args:
        loss: the loss of the outputs.
        width: number of units in a layer.
        depth: number of tanh layers.

    Returns:
        The model; the same object for the same arguments.
    """

    def start(
        key: PRNGKeyArray,
        init: Init,
        rows: LinearRows,
        outputs: int,
    ) -> Layers:
        columns = rows.x.shape[1] - 1
        network = eqx.nn.MLP(columns, outputs, width, depth, jnp.tanh, key=key)
        if init.kind == OWN.kind:
            parts = [jax.tree.leaves(layer) for layer in network.layers]
            return tuple(jnp.column_stack(weights_and_bias) for weights_and_bias in parts)
        shapes = [layer.weight.shape for layer in network.layers]
        keys = jax.random.split(key, len(shapes))
        draws = map(init.draw, keys, shapes)
        return tuple(_with_bias(weights) for weights in draws)

    def layer_inputs(params: Layers, rows: LinearRows) -> list[Array]:
        """Return the input ã of each layer (B, units + 1), with the constant 1 last."""
        inputs = [rows.x]
        for layer in params[:-1]:
            hidden = jnp.tanh(_apply(layer, inputs[-1]))
            inputs.append(jnp.pad(hidden, ((0, 0), (0, 1)), constant_values=1))
        return inputs

    def outputs(params: Layers, rows: LinearRows) -> Array:
        inputs = layer_inputs(params, rows)
        return _apply(params[-1], inputs[-1])

    def gradients(params: Layers, rows: LinearRows, y: Array) -> Gradients:
        inputs = layer_inputs(params, rows)
        alpha = _apply(params[-1], inputs[-1])
        deltas = _backwards(params, inputs, loss.derivative(alpha, y))
        squared_norms = [rows.squared_norms]
        squared_norms += [jnp.sum(hidden**2, axis=-1) for hidden in inputs[1:]]
        losses = loss.value(alpha, y)
        of_layers = [
            factored(losses, delta, layer_input, norms)
            for delta, layer_input, norms in zip(deltas, inputs, squared_norms, strict=True)
        ]
        return _stacked(of_layers, losses)

    return Model("mlp", linear_rows, start, outputs, gradients)


def _backwards(params: Layers, inputs: list[Array], residuals: Array) -> list[Array]:
    """Return δ (B, units) of each layer, from those of the last: the residuals ∂l/∂α."""
    # From the last layer to the second; the first has nothing below it.
    above_first = list(zip(params, inputs, strict=True))[1:]
    deltas = [residuals]
    for layer, layer_input in reversed(above_first):
        weights = layer[:, :-1]
        hidden = layer_input[:, :-1]
        back = jnp.matmul(deltas[-1], weights, precision=HIGHEST)
        deltas.append(back * (1 - hidden**2))  # tanh′ = 1 − tanh²
    deltas.reverse()
    return deltas


def _stacked(of_layers: list[Gradients], losses: Array) -> Gradients:
    """Return the gradients of a network from those of its layers."""

    def inner(v: Layers) -> Array:
        pairs = zip(of_layers, v, strict=True)
        products = [layer.inner(part) for layer, part in pairs]
        return functools.reduce(jnp.add, products)

    def weighted_sum(weights: Array) -> Layers:
        return tuple(layer.weighted_sum(weights) for layer in of_layers)

    by_layer = [layer.squared_norms for layer in of_layers]
    squared_norms = functools.reduce(jnp.add, by_layer)
    return Gradients(losses, squared_norms, inner, weighted_sum)


def _with_bias(weights: Array) -> Array:
    """Add a column of zeros, the bias."""
    return jnp.pad(weights, ((0, 0), (0, 1)))


def _apply(layer: Float[Array, "K d"], x: Float[Array, "B d"]) -> Float[Array, "B K"]:
    """Return the outputs of a linear layer."""
    return jnp.matmul(x, layer.T, precision=HIGHEST)
