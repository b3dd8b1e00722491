"""Train a network on arrays that fit into memory, with a checkpoint after each epoch."""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ital.tools.files import write
from ital.tools.types import Array, PRNGKeyArray
from ital_paper.features._formats import in_batches
from ital_paper.features._networks import Classifier


class Recipe(NamedTuple):
    """How a network is trained: a cosine schedule with a short warm-up.

    Attributes:
        epochs: number of passes through the data.
        batch: number of rows in a step.
        rate: the learning rate after the warm-up.
        optimiser: adam or sgd.
        weight_decay: how much of the weights is subtracted, times the learning rate.
        augment: whether images are flipped and shifted at random.
    """

    epochs: int
    batch: int
    rate: float
    optimiser: str
    weight_decay: float
    augment: bool = False


class Trained(NamedTuple):
    """A network with the state of its layers (running means of batch norm)."""

    network: Classifier
    state: eqx.nn.State


def prepare(images: Array) -> Array:
    """Return bytes (B, height, width, channels) as numbers in [−1, 1], channels first.

    Anything else, such as extracted features, is returned unchanged.
    """
    if images.dtype != jnp.uint8:
        return images
    return jnp.moveaxis(images.astype(jnp.float32) / 127.5 - 1, -1, 1)


def augmented(
    x: Array,
    key: PRNGKeyArray,
    margin: int = 4,
) -> Array:
    """Flip images (B, channels, height, width) at random and shift them by up to ``margin``."""
    flip, move = jax.random.split(key)
    is_flipped = jax.random.bernoulli(flip, 0.5, (len(x), 1, 1, 1))
    x = jnp.where(is_flipped, x[..., ::-1], x)
    # A shifted image is a window of the padded one.
    padded = jnp.pad(x, ((0, 0), (0, 0), (margin, margin), (margin, margin)))
    corners = jax.random.randint(move, (len(x), 2), 0, 2 * margin + 1)

    def window(image: Array, corner: Array) -> Array:
        return jax.lax.dynamic_slice(image, (0, *corner), x.shape[1:])

    return jax.vmap(window)(padded, corners)


def _optimiser(recipe: Recipe, steps: int) -> optax.GradientTransformation:
    """Make the optimiser of a recipe, for a number of steps per epoch."""
    total = max(2, recipe.epochs * steps)
    schedule = optax.warmup_cosine_decay_schedule(0.0, recipe.rate, max(1, total // 20), total)
    if recipe.optimiser == "adam":
        return optax.adamw(schedule, weight_decay=recipe.weight_decay)
    return optax.chain(
        optax.add_decayed_weights(recipe.weight_decay), optax.sgd(schedule, 0.9, nesterov=True)
    )


def _epoch(
    trained: Trained,
    optimiser_state: Any,
    x: Array,
    y: Array,
    key: PRNGKeyArray,
    recipe: Recipe,
    show: Callable[[float], None],
) -> tuple[Trained, Any, float]:
    """Train for one pass through the data in random order; also return the mean loss.

    A GPU takes all steps in one call. A CPU takes them one by one: there, XLA's convolutions are
    several times slower inside a loop.
    """
    steps = len(x) // recipe.batch
    data = (x, y, recipe, steps)
    # The rows of each step (steps, batch); rows that fill no batch are left out of this epoch.
    rows = jax.random.permutation(key, len(x))[: steps * recipe.batch]
    order = rows.reshape(steps, recipe.batch)
    keys = jax.random.split(jax.random.fold_in(key, 1), steps)
    at_once = 1 if jax.default_backend() == "cpu" else steps
    losses = []
    for part in in_batches(steps, at_once):
        trained, optimiser_state, loss = _steps_of(
            data, trained, optimiser_state, order[part], keys[part]
        )
        losses.append(loss)
        if part.stop % 16 == 0:
            # Calls return before they are computed: stay a few steps ahead of what is shown.
            jax.block_until_ready(loss)
            show(part.stop / steps)
    return trained, optimiser_state, float(np.mean(jax.device_get(losses)))


@eqx.filter_jit(donate="all-except-first")
def _steps_of(
    data: tuple[Array, Array, Recipe, int],
    trained: Trained,
    optimiser_state: Any,
    order: Array,
    keys: Array,
) -> Any:
    """Take training steps on the rows of ``order`` (steps, batch)."""
    x, y, recipe, steps = data
    optimiser = _optimiser(recipe, steps)
    arrays, static = eqx.partition(trained.network, eqx.is_inexact_array)

    def loss(
        arrays: Any, state: eqx.nn.State, rows: Array, key: PRNGKeyArray
    ) -> tuple[Array, eqx.nn.State]:
        batch = prepare(x[rows])
        moved, key = jax.random.split(key)
        if recipe.augment:
            batch = augmented(batch, moved)
        network = eqx.combine(arrays, static)
        outputs, state = network(batch, state, key)
        losses = optax.softmax_cross_entropy_with_integer_labels(outputs, y[rows])
        return jnp.mean(losses), state

    def step(
        carry: tuple[Any, ...], batch: tuple[Array, PRNGKeyArray]
    ) -> tuple[tuple[Any, ...], Array]:
        arrays, state, optimiser_state = carry
        (value, state), gradient = jax.value_and_grad(loss, has_aux=True)(arrays, state, *batch)
        update, optimiser_state = optimiser.update(gradient, optimiser_state, arrays)
        return (eqx.apply_updates(arrays, update), state, optimiser_state), value

    carry = (arrays, trained.state, optimiser_state)
    if len(order) == 1:
        # Without a loop, whose convolutions are slow on a CPU.
        (arrays, state, optimiser_state), losses = step(carry, (order[0], keys[0]))
    else:
        (arrays, state, optimiser_state), losses = jax.lax.scan(step, carry, (order, keys))
    return Trained(eqx.combine(arrays, static), state), optimiser_state, jnp.mean(losses)


def train(
    make: Callable[[PRNGKeyArray], Classifier],
    x: np.ndarray,
    y: np.ndarray,
    recipe: Recipe,
    *,
    seed: int,
    checkpoint: Path,
    show: Callable[[float, str], None] = lambda done, text: None,
) -> Trained:
    """Train a network, from the last epoch in its checkpoint if there is one.

    Args:
        make: makes the network from a random key.
        x: the rows (N, …).
        y: their labels (N,).
        recipe: how it is trained.
        seed: seed of the training.
        checkpoint: file that holds the last epoch; it is used if it has the same recipe, seed and
            data.
        show: called with the share of epochs done and a text with the last loss.
    """
    key = jax.random.key(seed)
    trained = Trained(*eqx.nn.make_with_state(make)(jax.random.fold_in(key, 0)))
    recipe = recipe._replace(batch=min(recipe.batch, len(x)))
    optimiser = _optimiser(recipe, len(x) // recipe.batch)
    optimiser_state = optimiser.init(eqx.filter(trained.network, eqx.is_inexact_array))
    identity = json.dumps(
        [recipe, seed, _digest(x, y), jax.__version__, eqx.__version__, optax.__version__]
    )
    done, (trained, optimiser_state) = resume(checkpoint, identity, (trained, optimiser_state))
    data = (jnp.asarray(x), jnp.asarray(y))
    for epoch in range(done, recipe.epochs):
        # A key for each epoch, so that a resumed training ends as an uninterrupted one.
        trained, optimiser_state, value = _epoch(
            trained,
            optimiser_state,
            *data,
            jax.random.fold_in(key, epoch + 1),
            recipe,
            _show_epoch(show, epoch, recipe.epochs),
        )
        keep(checkpoint, identity, epoch + 1, (trained, optimiser_state))
        show((epoch + 1) / recipe.epochs, f"loss {value:.3f}")
    return trained


def _show_epoch(
    show: Callable[[float, str], None], epoch: int, epochs: int
) -> Callable[[float], None]:
    """Return a function that shows the progress of one epoch."""
    return lambda share: show((epoch + share) / epochs, f"epoch {epoch + 1} of {epochs}")


def _digest(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def keep(
    checkpoint: Path,
    identity: str,
    done: int,
    tree: Any,
) -> None:
    """Write a checkpoint after ``done`` epochs or steps, completely or not at all."""
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    buffer.write(json.dumps({"identity": identity, "done": done}).encode() + b"\n")
    eqx.tree_serialise_leaves(buffer, tree)
    write(checkpoint, buffer.getvalue())


def resume(
    checkpoint: Path,
    identity: str,
    tree: Any,
) -> tuple[int, Any]:
    """Return the number of epochs or steps done, and their result.

    If the checkpoint is missing, broken or has another identity, nothing is done: 0 and ``tree``.
    """
    try:
        with checkpoint.open("rb") as stream:
            header = json.loads(stream.readline())
            if header["identity"] != identity:
                return 0, tree
            return int(header["done"]), eqx.tree_deserialise_leaves(stream, tree)
    except (OSError, ValueError, KeyError, EOFError, RuntimeError):
        return 0, tree


def views(
    trained: Trained,
    x: np.ndarray,
    batch: int = 1000,
) -> np.ndarray:
    """Return the view of every row (N, d): the input of the trained network's last layer."""
    network = eqx.nn.inference_mode(trained.network)
    parts = []
    for rows in in_batches(len(x), batch):
        view = _views_of_batch(network, trained.state, jnp.asarray(x[rows]))
        parts.append(np.asarray(view))
    return np.concatenate(parts)


@eqx.filter_jit
def _views_of_batch(
    network: Classifier,
    state: eqx.nn.State,
    x: Array,
) -> Array:
    # The key is not used: dropout does nothing in inference.
    view, _ = network.views(prepare(x), state, jax.random.key(0))
    return view


def last_layer(trained: Trained) -> np.ndarray:
    """Return [W, b] of the last layer (K, d + 1)."""
    last = trained.network.last
    columns = [np.asarray(last.weight), np.asarray(last.bias)[:, None]]
    return np.concatenate(columns, axis=1).astype(np.float32)
