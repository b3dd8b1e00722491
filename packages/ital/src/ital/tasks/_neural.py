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
    """An Equinox MLP of ``depth`` tanh layers and a linear one, with the gradients of all layers in
    closed form.

    In each layer an example's gradient is δ ⊗ ã, as in a linear model. So per-example gradients are
    never created; autodiff would need them for the norms.

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
        network = eqx.nn.MLP(rows.x.shape[1] - 1, outputs, width, depth, jnp.tanh, key=key)
        if init.kind == OWN.kind:
            return tuple(jnp.column_stack(jax.tree.leaves(layer)) for layer in network.layers)
        shapes = [layer.weight.shape for layer in network.layers]
        draws = map(init.draw, jax.random.split(key, len(shapes)), shapes)
        return tuple(jnp.pad(weights, ((0, 0), (0, 1))) for weights in draws)

    def inputs(params: Layers, rows: LinearRows) -> list[Array]:
        """The input of each layer, with the constant 1 last."""
        layer_inputs = [rows.x]
        for layer in params[:-1]:
            hidden = jnp.tanh(_apply(layer, layer_inputs[-1]))
            layer_inputs.append(jnp.pad(hidden, ((0, 0), (0, 1)), constant_values=1))
        return layer_inputs

    def outputs(params: Layers, rows: LinearRows) -> Array:
        return _apply(params[-1], inputs(params, rows)[-1])

    def gradients(params: Layers, rows: LinearRows, y: Array) -> Gradients:
        layer_inputs = inputs(params, rows)
        alpha = _apply(params[-1], layer_inputs[-1])
        deltas = [loss.derivative(alpha, y)]
        for layer, hidden in zip(params[:0:-1], layer_inputs[:0:-1], strict=True):
            back = jnp.matmul(deltas[0], layer[:, :-1], precision=HIGHEST)
            deltas.insert(0, back * (1 - hidden[:, :-1] ** 2))  # tanh′ = 1 − tanh²
        squared_norms = [
            rows.squared_norms,
            *(jnp.sum(hidden**2, axis=-1) for hidden in layer_inputs[1:]),
        ]
        values = loss.value(alpha, y)
        parts = [
            factored(values, *layer)
            for layer in zip(deltas, layer_inputs, squared_norms, strict=True)
        ]
        return Gradients(
            losses=values,
            squared_norms=functools.reduce(jnp.add, [part.squared_norms for part in parts]),
            inner=lambda v: functools.reduce(
                jnp.add, [part.inner(u) for part, u in zip(parts, v, strict=True)]
            ),
            weighted_sum=lambda w: tuple(part.weighted_sum(w) for part in parts),
        )

    return Model("mlp", linear_rows, start, outputs, gradients)


def _apply(layer: Float[Array, "K d"], x: Float[Array, "B d"]) -> Float[Array, "B K"]:
    return jnp.matmul(x, layer.T, precision=HIGHEST)
