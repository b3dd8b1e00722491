"""``ital features build equation``: train networks on pairs of states.

They are evaluated on held-out equations.
"""

import functools
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ital.errors import InputError
from ital.tools.types import Array
from ital_paper import equation
from ital_paper.equation.network import Network, features_of, from_weights, to_weights
from ital_paper.features._build import Show, versions
from ital_paper.features._file import Features, load, save
from ital_paper.features._formats import in_batches
from ital_paper.features._training import keep, resume

NETWORKS = ("45", "40", "50")  # the learner's first
# Kinds of random equations:
TRAIN = 1
HELD_OUT = 2
FRESH = 3
POSITIVES = ("consecutive", "any")
CHUNKS_PER_FILE = 10
STEPS_PER_CHECKPOINT = 500
SHARE_FOR_PAIRS = 0.3  # of the progress display; the rest is for training


def stream(seed: int, kind: int) -> int:
    """Return the seed of the random equations of one kind; different kinds never share a seed."""
    return 4 * seed + kind


class EquationRecipe(NamedTuple):
    """How much data there is, and how the networks are trained.

    The defaults are the paper's, with a faster schedule: Adam with a short warm-up and a cosine
    decay to 0.

    Attributes:
        trajectories: trajectories to train on.
        held_out: trajectories for rows and accuracies.
        rows: training rows of the file.
        test_rows: test rows of the file.
        fresh: equations on which the search is tried.
        epochs: number of passes through the positive pairs.
        batch: number of pairs in a step.
        rate: the learning rate after the warm-up.
        decay: λ of the loss.
        negatives: factor by which to multiply the number of negative pairs.
        positives: pairs of "consecutive" states, or of each state with "any" later one of its
            trajectory: equally many pairs.
    """

    trajectories: int = 490_000
    held_out: int = 10_000
    rows: int = 20_000
    test_rows: int = 5_000
    fresh: int = 1_000
    epochs: int = 1
    batch: int = 1024
    rate: float = 1e-3
    decay: float = 1 / 128
    negatives: int = 1
    positives: str = POSITIVES[0]


# ---- pairs ----


class EncodedPairs(NamedTuple):
    """Encoded texts, and pairs of their indices, the state of higher value first.

    Attributes:
        codes: the encoded texts (N, 173).
        consecutive: pairs of a state with the one before it (P, 2).
        later: pairs of any later state with a state (P, 2).
        negatives: pairs of a state with a random successor (M, 2).
        positive_operations: the operations that lead from one state of a consecutive pair to the
            other (P,).
        negative_operations: those of negative pairs (M,).
    """

    codes: np.ndarray
    consecutive: np.ndarray
    later: np.ndarray
    negatives: np.ndarray
    positive_operations: np.ndarray
    negative_operations: np.ndarray

    def positives(self, which: str) -> np.ndarray:
        """Return the pairs that a recipe's ``positives`` selects."""
        return self.consecutive if which == POSITIVES[0] else self.later


def encoded_pairs(
    seed: int, chunk: int, *, count: int = equation.CHUNK, negatives: int = 1
) -> EncodedPairs:
    """Return the pairs of a chunk of trajectories, encoded."""
    pairs = equation.some_pairs(seed, chunk, count, times=negatives)
    indices = np.stack([pairs.high, pairs.low], axis=1).astype(np.int32)
    operations = np.array(pairs.operations)
    is_next = pairs.kinds == "next"
    is_other = pairs.kinds == "other"
    return EncodedPairs(
        equation.encode(pairs.texts),
        consecutive=indices[is_next],
        later=indices[pairs.kinds == "later"],
        negatives=indices[is_other],
        positive_operations=operations[is_next],
        negative_operations=operations[is_other],
    )


def joined_pairs(parts: list[EncodedPairs]) -> EncodedPairs:
    """Join the pairs of several chunks."""
    # The texts of a part follow those of the parts before it, and so do the indices of its pairs.
    lengths = [len(part.codes) for part in parts]
    firsts = np.cumsum([0, *lengths[:-1]]).astype(np.int32)
    shifted = [
        part._replace(
            consecutive=part.consecutive + first,
            later=part.later + first,
            negatives=part.negatives + first,
        )
        for part, first in zip(parts, firsts, strict=True)
    ]
    return EncodedPairs(*map(np.concatenate, zip(*shifted, strict=True)))


def gather_pairs(
    seed: int,
    trajectories: int,
    folder: Path,
    *,
    negatives: int,
    workers: int,
    show: Callable[[float], None],
) -> EncodedPairs:
    """Return the pairs of trajectories (a multiple of 1000).

    Args:
        seed: seed of the random equations.
        trajectories: their number.
        folder: every ten thousand trajectories are saved to a file here, and read again.
        negatives: factor by which to multiply the number of negative pairs.
        workers: number of worker processes.
        show: called with the share that is done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chunks = list(range(-(-trajectories // equation.CHUNK)))
    files = {
        folder / f"pairs-{seed}-{negatives}-{part.start}-{part.stop}.npz": chunks[part]
        for part in in_batches(len(chunks), CHUNKS_PER_FILE)
    }
    missing = [of_file for file, of_file in files.items() if not file.is_file()]
    # All missing chunks in one stream, so that workers are never idle between two files.
    new_chunks = equation.in_parallel(
        encoded_pairs,
        seed,
        list(itertools.chain.from_iterable(missing)),
        workers,
        count=min(equation.CHUNK, trajectories),
        negatives=negatives,
    )
    parts = []
    for file, of_file in files.items():
        if not file.is_file():
            _save_pairs(joined_pairs(list(itertools.islice(new_chunks, len(of_file)))), file)
        with np.load(file) as arrays:
            parts.append(EncodedPairs(*(arrays[name] for name in EncodedPairs._fields)))
        show((of_file[-1] + 1) / len(chunks))
    return joined_pairs(parts)


def _save_pairs(pairs: EncodedPairs, file: Path) -> None:
    """Write pairs to a file, completely or not at all."""
    temporary = file.with_name(f".{file.stem}.part.npz")
    np.savez(temporary, **pairs._asdict())
    os.replace(temporary, file)


# ---- training ----


def loss_of(
    network: Network, codes: Array, positives: Array, negatives: Array, decay: float
) -> Array:
    """Return the mean hinge over positives + that over negatives + (λ/2)‖w‖².

    The hinge of a pair is max(0, 1 − (v_high − v_low)).
    """
    pairs = jnp.concatenate([positives, negatives])
    values = network.values(codes[pairs.reshape(-1)]).reshape(-1, 2)  # (pair, high and low)
    hinges = jax.nn.relu(1 - (values[:, 0] - values[:, 1]))
    of_positives = jnp.mean(hinges[: len(positives)])
    of_negatives = jnp.mean(hinges[len(positives) :])
    penalty = decay / 2 * jnp.sum(network.value**2)
    return of_positives + of_negatives + penalty


def _pair_optimiser(rate: float, steps: int) -> optax.GradientTransformation:
    warm_up = max(1, steps // 20)
    return optax.adam(optax.warmup_cosine_decay_schedule(0.0, rate, warm_up, max(2, steps)))


@eqx.filter_jit(donate="all-except-first")
def _pair_steps(
    data: tuple[Any, ...], network: Network, state: Any, positives: Array, negatives: Array
) -> Any:
    """Take training steps on batches of pairs (steps, batch, 2); also return the mean loss."""
    codes, recipe, total = data
    optimiser = _pair_optimiser(recipe.rate, total)
    arrays, static = eqx.partition(network, eqx.is_inexact_array)

    def loss(
        arrays: Any,
        positives: Array,
        negatives: Array,
    ) -> Array:
        return loss_of(eqx.combine(arrays, static), codes, positives, negatives, recipe.decay)

    def step(carry: tuple[Any, Any], batch: tuple[Array, Array]) -> tuple[tuple[Any, Any], Array]:
        arrays, state = carry
        value, gradient = jax.value_and_grad(loss)(arrays, *batch)
        update, state = optimiser.update(gradient, state, arrays)
        return (eqx.apply_updates(arrays, update), state), value

    if len(positives) == 1:
        # Without a loop, whose convolutions are slow on a CPU.
        (arrays, state), losses = step((arrays, state), (positives[0], negatives[0]))
    else:
        (arrays, state), losses = jax.lax.scan(step, (arrays, state), (positives, negatives))
    return eqx.combine(arrays, static), state, jnp.mean(losses)


class _Sizes(NamedTuple):
    """How many pairs a step takes, and how many steps there are."""

    positives: int
    negatives: int
    steps: int  # of an epoch

    @classmethod
    def of(
        cls,
        recipe: EquationRecipe,
        positives: int,
        negatives: int,
    ) -> "_Sizes":
        """Share a batch between positives and negatives, in the proportion of the pairs."""
        share = positives / (positives + negatives)
        up = max(1, min(round(recipe.batch * share), positives))
        steps = positives // up
        down = max(1, min(recipe.batch - up, negatives // steps))
        return cls(up, down, steps)


def train_on_pairs(
    features: int,
    pairs: EncodedPairs,
    recipe: EquationRecipe,
    *,
    seed: int,
    checkpoint: Path,
    show: Show,
) -> Network:
    """Train one network, from its ``checkpoint`` if there is one.

    A pass uses every positive pair once.
    """
    network = Network(features, jax.random.key(seed))
    positives = pairs.positives(recipe.positives)
    sizes = _Sizes.of(recipe, len(positives), len(pairs.negatives))
    total = recipe.epochs * sizes.steps
    optimiser = _pair_optimiser(recipe.rate, total)
    state = optimiser.init(eqx.filter(network, eqx.is_inexact_array))
    identity = json.dumps(
        [features, recipe, seed, len(pairs.codes), jax.__version__, eqx.__version__]
    )
    done, (network, state) = resume(checkpoint, identity, (network, state))
    # XLA convolves several times slower in loops on a CPU.
    at_once = 1 if jax.default_backend() == "cpu" else STEPS_PER_CHECKPOINT
    data = (jnp.asarray(pairs.codes), recipe, total)
    for epoch in range(done // sizes.steps, recipe.epochs):
        # The order depends on seed and epoch alone: a resumed epoch continues in the same one.
        rng = np.random.default_rng([seed, epoch])
        up = _shuffled(positives, sizes.positives, sizes.steps, rng)
        down = _shuffled(pairs.negatives, sizes.negatives, sizes.steps, rng)
        before = epoch * sizes.steps
        for first in range(done - before, sizes.steps, at_once):
            last = min(first + at_once, sizes.steps)
            up_now = jnp.asarray(up[first:last])
            down_now = jnp.asarray(down[first:last])
            network, state, value = _pair_steps(data, network, state, up_now, down_now)
            done = before + last
            if done % STEPS_PER_CHECKPOINT == 0 or last == sizes.steps:
                keep(checkpoint, identity, done, (network, state))
                show(done / total, f"step {done} of {total}, loss {float(value):.3f}")
    return network


def _shuffled(
    pairs: np.ndarray,
    size: int,
    steps: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return pairs in random order, as batches (steps, size, 2)."""
    order = rng.permutation(len(pairs))[: steps * size]
    return pairs[order].reshape(steps, size, 2)


# ---- accuracies ----


def pair_accuracy(network: Network, pairs: EncodedPairs) -> dict[str, Any]:
    """Return the share of pairs whose higher state has the higher value.

    Positives are consecutive states, whatever the network was trained on; pairs with any later
    state are reported separately.

    Returns:
        The share over all pairs, by kind, and by operation.
    """
    values = features_of(network)(pairs.codes) @ np.asarray(network.value)

    def ordered(indices: np.ndarray) -> np.ndarray:
        return np.asarray(values[indices[:, 0]] > values[indices[:, 1]])

    positives = ordered(pairs.consecutive)
    negatives = ordered(pairs.negatives)
    return {
        "all": float(np.concatenate([positives, negatives]).mean()),
        "any later": float(ordered(pairs.later).mean()),
        "positives": float(positives.mean()),
        "positives by operation": _by_operation(positives, pairs.positive_operations),
        "negatives": float(negatives.mean()),
        "negatives by operation": _by_operation(negatives, pairs.negative_operations),
    }


def _by_operation(right: np.ndarray, operations: np.ndarray) -> dict[str, dict[str, Any]]:
    """Return the share of pairs in the right order, and their number, by operation."""
    return {
        operation: {"accuracy": float(right[operations == operation].mean()), "pairs": count}
        for operation, count in sorted(Counter(operations.tolist()).items())
    }


def search_accuracy(
    network: Network,
    seed: int,
    fresh: int,
    random: int = 5,
) -> dict[str, float]:
    """Return the share of fresh equations that greedy search simplifies exactly.

    It is tried with w*, and with random w from U(−1, 1); the latter on the first tenth only: their
    searches are long and seldom succeed.
    """
    rng = np.random.default_rng(stream(seed, FRESH))
    equations = [equation.random_equation(rng) for _ in range(fresh)]
    random_weights = rng.uniform(-1, 1, (random, len(network.value))).astype(np.float32)
    explorer = equation.Explorer(features_of(network))

    def share(equations: list[equation.Equation], weights: np.ndarray) -> float:
        ends = equation.greedy_ends(explorer, equations, weights)
        simplified = 0
        for start, of_weights in zip(equations, ends, strict=True):
            simplified += of_weights.count(equation.simplified(start))
        return simplified / (len(equations) * len(weights))

    return {
        "w*": share(equations, np.asarray(network.value)[None]),
        "random w": share(equations[: -(-fresh // 10)], random_weights),
        "equations": fresh,
    }


# ---- the file ----


def row_texts(seed: int, recipe: EquationRecipe) -> list[str]:
    """Return the distinct states of held-out trajectories, in random order.

    Those of the rows come first, then those of the test rows.
    """
    held_out = stream(seed, HELD_OUT)
    chunks = equation.generate_trajectories(recipe.held_out, seed=held_out)
    states = itertools.chain.from_iterable(chunk.texts for chunk in chunks)
    texts = list(dict.fromkeys(states))
    order = np.random.default_rng(held_out).permutation(len(texts))
    return [texts[i] for i in order[: recipe.rows + recipe.test_rows].tolist()]


class _BuiltNetwork(NamedTuple):
    """What a trained network gives to the file."""

    view: np.ndarray  # of all rows
    last_layer: np.ndarray
    weights: dict[str, np.ndarray]
    reached: dict[str, Any]


def build_equations(
    out: Path,
    *,
    seed: int = 0,
    recipe: EquationRecipe | None = None,
    show: Show = lambda done, text: None,
) -> Path:
    """Train the three networks and write the feature file; an interrupted build resumes."""
    recipe = recipe or EquationRecipe()
    if recipe.positives not in POSITIVES:
        raise InputError(f"positives must be {' or '.join(POSITIVES)}, not {recipe.positives!r}")
    working = out.with_name(f"{out.name}.building")
    gather = functools.partial(gather_pairs, folder=working, workers=os.cpu_count() or 1)
    pairs = gather(
        stream(seed, TRAIN),
        recipe.trajectories,
        negatives=recipe.negatives,
        show=lambda done: show(SHARE_FOR_PAIRS * done, "equation: trajectories and pairs"),
    )
    held_out = gather(stream(seed, HELD_OUT), recipe.held_out, negatives=1, show=lambda done: None)
    texts = row_texts(seed, recipe)
    codes = equation.encode(texts)
    built: dict[str, _BuiltNetwork] = {}
    for number, name in enumerate(NETWORKS):
        show_part = _show_training(show, number, name)
        network = train_on_pairs(
            int(name),
            pairs,
            recipe,
            seed=seed + number,
            checkpoint=working / f"{name}.eqx",
            show=show_part,
        )
        parts = _network_parts(network, codes, held_out)
        if not (np.isfinite(parts.view).all() and np.isfinite(parts.last_layer).all()):
            raise InputError(
                f"training of equation {name} diverged; its checkpoints are in {working}"
            )
        # Only now: the search refuses features that are not finite.
        parts.reached["simplification"] = search_accuracy(network, seed, recipe.fresh)
        built[name] = parts
        show_part(1.0, f"pairs {parts.reached['pairs']['all']:.1%}")
    # With few states, rows and test rows share them in the proportion of the recipe.
    rows = min(recipe.rows, len(texts) * recipe.rows // (recipe.rows + recipe.test_rows))
    card = {
        "name": "equation",
        "data": (
            "States of simplification trajectories of random equations: networks trained on the "
            f"pairs of {recipe.trajectories:,} trajectories, rows and accuracies from "
            f"{recipe.held_out:,} held-out ones."
        ),
        "learner": NETWORKS[0],
        "teachers": list(NETWORKS[1:]),
        "reached": {name: parts.reached for name, parts in built.items()},
        "rows": rows,
        "test_rows": len(texts) - rows,
        "training_pairs": len(pairs.consecutive) + len(pairs.negatives),
        "seed": seed,
        "recipe": recipe._asdict(),
        "versions": versions(),
    }
    save(_features_of(built, card, rows), out)
    shutil.rmtree(working, ignore_errors=True)
    return out


def _show_training(
    show: Show,
    number: int,
    name: str,
) -> Show:
    """Return a function that shows the progress of one of the networks."""

    def show_part(done: float, text: str) -> None:
        trained = (number + done) / len(NETWORKS)
        show(SHARE_FOR_PAIRS + (1 - SHARE_FOR_PAIRS) * trained, f"equation {name}: {text}")

    return show_part


def _network_parts(
    network: Network,
    codes: np.ndarray,
    held_out: EncodedPairs,
) -> _BuiltNetwork:
    return _BuiltNetwork(
        view=features_of(network)(codes).astype(np.float16),
        # The bias is 0, since it cancels in every pair.
        last_layer=np.append(np.asarray(network.value), np.float32(0))[None],
        weights=to_weights(network),
        reached={"pairs": pair_accuracy(network, held_out)},
    )


def _features_of(
    built: dict[str, _BuiltNetwork],
    card: dict[str, Any],
    rows: int,
) -> Features:
    """Put the parts of all networks together; labels are the values of the learner's network."""
    learner = built[NETWORKS[0]]
    w = learner.last_layer[0, :-1]
    labels = (learner.view.astype(np.float32) @ w).astype(np.float32)
    weights: dict[str, np.ndarray] = {}
    for name, parts in built.items():
        weights |= {f"{name}/{leaf}": array for leaf, array in parts.weights.items()}
    return Features(
        card,
        labels[:rows],
        {name: parts.view[:rows] for name, parts in built.items()},
        {name: parts.last_layer for name, parts in built.items()},
        labels[rows:],
        {NETWORKS[0]: learner.view[rows:]},
        weights,
    )


def check_equations(file: Path, rows: int = 500) -> list[str]:
    """Return lines of the data card, with accuracies recomputed on held-out trajectories.

    The first thousand of them are enough for a check.

    Raises:
        InputError: if the rows are not the outputs of the networks, or the accuracies differ from
            the card.
    """
    loaded = load(file)
    card = loaded.card
    recipe = EquationRecipe(**card["recipe"])
    lines = [
        f"{len(loaded.labels)} training rows, {len(loaded.test_labels)} test rows; "
        f"positives: {recipe.positives}"
    ]
    count = min(equation.CHUNK, recipe.held_out)
    pairs = encoded_pairs(stream(card["seed"], HELD_OUT), 0, count=count)
    texts = row_texts(card["seed"], recipe)
    codes = equation.encode(texts[: min(rows, len(loaded.labels))])
    for view in (card["learner"], *card["teachers"]):
        network = from_weights(int(view), loaded.weights, f"{view}/")
        # Views are stored in half precision. A gap that is not a number is no small one either.
        phi = features_of(network)(codes)
        gap = np.abs(phi - loaded.views[view][: len(codes)]).max()
        if not gap < 0.01:
            raise InputError(
                f"{file}: the rows of {view} are not the outputs of its network; build it again"
            )
        now = pair_accuracy(network, pairs)["all"]
        if abs(now - card["reached"][view]["pairs"]["all"]) > 0.02:
            raise InputError(
                f"{file}: {view} orders {now:.2%} of pairs, which differs from its card; "
                "build it again"
            )
        lines += _network_lines(card, view, now)
    return lines


def _network_lines(
    card: dict[str, Any],
    view: str,
    now: float,
) -> list[str]:
    """Say what a network reached, by its card, and now."""
    ordered = card["reached"][view]["pairs"]
    searches = card["reached"][view]["simplification"]
    role = "learner" if view == card["learner"] else "teacher"
    lines = [
        f"{role} {view}: {ordered['all']:.2%} of pairs in the right order; "
        f"now, on a sample: {now:.2%}"
    ]
    for kind in ("positives", "negatives"):
        by_operation = ", ".join(
            f"{name} {reached['accuracy']:.1%} of {reached['pairs']:,}"
            for name, reached in ordered[f"{kind} by operation"].items()
        )
        lines.append(f"  {kind} {ordered[kind]:.2%}: {by_operation}")
    return [
        *lines,
        f"  any later state above an earlier one: {ordered['any later']:.2%}",
        f"  greedy search simplifies {searches['w*']:.1%} of {searches['equations']} "
        f"fresh equations with w*, {searches['random w']:.1%} of a tenth of them with random w",
    ]
