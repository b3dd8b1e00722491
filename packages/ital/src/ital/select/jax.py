"""Selection inside a train step in JAX."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import select

Losses = Callable[[Any, Any], jax.Array]  # (params, batch) → one loss per example


class Picked(NamedTuple):
    """Chosen examples.

    Attributes:
        batch: the examples, with the structure of the large batch.
        indices: their places in the large batch, the first choice first (k,).
        scores: scores of the whole large batch (N,).
        losses: losses of the whole large batch, before the step (N,).
    """

    batch: Any
    indices: jax.Array
    scores: jax.Array
    losses: jax.Array


def pick(  # noqa: PLR0913
    losses: Losses,
    params: Any,
    batch: Any,
    reference_losses: jax.Array,
    k: int,
    *,
    squared_norms: Callable[[Any, Any], jax.Array] | None = None,
    lr: float | None = None,
    temperature: float = 0.0,
    key: jax.Array | None = None,
) -> Picked:
    """Choose the k examples of a large batch to train on. Pure: call it inside your jitted train
    step.

    Args:
        losses: function of parameters and a batch that returns one loss per example.
        params: the learner's parameters.
        batch: the large batch, a tree of arrays with N rows each.
        reference_losses: losses of the model that already knows (N,).
        k: how many to choose.
        squared_norms: function of parameters and a batch that returns ‖gᵢ‖²; None leaves the term
            out.
        lr: the step size η; needed with the norms.
        temperature: 0 takes the k best; more makes the choice more random.
        key: random key, needed with a temperature.

    Returns:
        The chosen examples. Those whose score is not finite come last.
    """
    # Scores are numbers for the train step: no gradient goes through them.
    fixed = jax.lax.stop_gradient(params)
    now = losses(fixed, batch)
    norms = None
    if squared_norms is not None:
        norms = squared_norms(fixed, batch)
    scores = select.volumes(now, reference_losses, norms, lr)
    indices = select.choose(scores, k, temperature, key, on_nan="last")
    chosen = jax.tree.map(lambda rows: jnp.take(rows, indices, axis=0), batch)
    return Picked(chosen, indices, scores, losses=now)


__all__ = ["Picked", "pick"]
