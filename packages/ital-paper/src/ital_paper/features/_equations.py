"""``ital features build equation``: train networks on pairs of states, and evaluate them on held-out equations."""

import functools
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
from ital_paper.features._training import keep, resume

NETWORKS = ("45", "40", "50")  # the learner's first
TRAIN, HELD_OUT, FRESH = 1, 2, 3
POSITIVES = ("consecutive", "any")


def stream(seed: int, kind: int) -> int:
    """The seed of the random equations of one kind; different kinds never share a seed."""
    return 4 * seed + kind


class EquationRecipe(NamedTuple):
    """How much data there is, and how the networks are trained. The defaults are the paper's, with a faster schedule:
    Adam with a short warm-up to ``rate`` and a cosine decay to 0, in batches of ``batch`` pairs.

    ``positives`` pairs "consecutive" states, or each state with "any" later one of its trajectory: equally many pairs.
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


class EncodedPairs(NamedTuple):
    """Encoded texts (N, 173), and pairs of their indices, the state of higher value first.

    ``consecutive`` pairs a state with the next one, ``later`` with any later one, both (P, 2). ``negatives`` is (M, 2).

    The operations lead from one state of a pair to the other.
    """

    codes: np.ndarray
    consecutive: np.ndarray
    later: np.ndarray
    negatives: np.ndarray
    positive_operations: np.ndarray
    negative_operations: np.ndarray

    def positives(self, which: str) -> np.ndarray:
        """The pairs that a recipe's ``positives`` selects."""
        return self.consecutive if which == POSITIVES[0] else self.later


def encoded_pairs(
    seed: int, chunk: int, *, count: int = equation.CHUNK, negatives: int = 1
) -> EncodedPairs:
    """The pairs of a chunk of trajectories, encoded."""
    pairs = equation.some_pairs(seed, chunk, count, times=negatives)
    places = np.stack([pairs.high, pairs.low], axis=1).astype(np.int32)
    operations = np.array(pairs.operations)
    following, later, other = (pairs.kinds == kind for kind in ("next", "later", "other"))
    return EncodedPairs(
        equation.encode(pairs.texts), places[following], places[later], places[other],
        operations[following], operations[other],
    )  # fmt: skip


def joined(parts: list[EncodedPairs]) -> EncodedPairs:
    """The pairs of several chunks in one."""
    firsts = np.cumsum([0, *(len(part.codes) for part in parts[:-1])]).astype(np.int32)
    placed = [
        part._replace(
            **{name: getattr(part, name) + first for name in ("consecutive", "later", "negatives")}
        )
        for part, first in zip(parts, firsts, strict=True)
    ]
    return EncodedPairs(*(np.concatenate(column) for column in zip(*placed, strict=True)))


def gather_pairs(
    seed: int,
    trajectories: int,
    folder: Path,
    *,
    negatives: int,
    workers: int,
    show: Callable[[float], None],
) -> EncodedPairs:
    """The pairs of trajectories (a multiple of 1000); every ten thousand trajectories are saved to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    chunks = -(-trajectories // equation.CHUNK)
    tens = [range(first, min(first + 10, chunks)) for first in range(0, chunks, 10)]
    files = [folder / f"pairs-{seed}-{negatives}-{ten.start}-{ten.stop}.npz" for ten in tens]
    missing = [
        chunk for ten, file in zip(tens, files, strict=True) if not file.is_file() for chunk in ten
    ]
    count = min(equation.CHUNK, trajectories)
    new_chunks = equation.in_parallel(
        encoded_pairs, seed, missing, workers, count=count, negatives=negatives
    )
    parts = []
    for ten, file in zip(tens, files, strict=True):
        if not file.is_file():
            part = joined([next(new_chunks) for _ in ten])
            temporary = file.with_name(f".{file.stem}.part.npz")
            np.savez(temporary, **part._asdict())
            os.replace(temporary, file)
        with np.load(file) as arrays:
            parts.append(EncodedPairs(*(arrays[name] for name in EncodedPairs._fields)))
        show(ten.stop / chunks)
    return joined(parts)


def loss_of(
    network: Network, codes: Array, positives: Array, negatives: Array, decay: float
) -> Array:
    """Mean hinge over positives + mean hinge over negatives + (λ/2)‖w‖²; hinge = max(0, 1 − (v_high − v_low))."""
    pairs = jnp.concatenate([positives, negatives])
    values = network.values(codes[pairs.reshape(-1)]).reshape(-1, 2)
    hinge = jax.nn.relu(1 - (values[:, 0] - values[:, 1]))
    first = len(positives)
    return jnp.mean(hinge[:first]) + jnp.mean(hinge[first:]) + decay / 2 * jnp.sum(network.value**2)


def _optimiser(rate: float, steps: int) -> optax.GradientTransformation:
    return optax.adam(
        optax.warmup_cosine_decay_schedule(0.0, rate, max(1, steps // 20), max(2, steps))
    )


@eqx.filter_jit(donate="all-except-first")
def _steps_of(
    data: tuple[Any, ...], network: Network, state: Any, positives: Array, negatives: Array
) -> Any:
    """Take training steps on batches of pairs (steps, batch, 2); also return the mean loss."""
    codes, recipe, total = data
    optimiser = _optimiser(recipe.rate, total)
    arrays, static = eqx.partition(network, eqx.is_inexact_array)

    def loss(arrays: Any, positives: Array, negatives: Array) -> Array:
        return loss_of(eqx.combine(arrays, static), codes, positives, negatives, recipe.decay)

    def step(carry: tuple[Any, Any], batch: tuple[Array, Array]) -> tuple[tuple[Any, Any], Array]:
        arrays, state = carry
        value, gradient = jax.value_and_grad(loss)(arrays, *batch)
        update, state = optimiser.update(gradient, state, arrays)
        return (eqx.apply_updates(arrays, update), state), value

    if len(positives) == 1:
        (arrays, state), losses = step((arrays, state), (positives[0], negatives[0]))
    else:
        (arrays, state), losses = jax.lax.scan(step, (arrays, state), (positives, negatives))
    return eqx.combine(arrays, static), state, jnp.mean(losses)


def train(
    features: int,
    pairs: EncodedPairs,
    recipe: EquationRecipe,
    *,
    seed: int,
    checkpoint: Path,
    show: Show,
) -> Network:
    """Train one network, from its ``checkpoint`` if there is one. A pass uses every positive pair once."""
    network = Network(features, jax.random.key(seed))
    positives = pairs.positives(recipe.positives)
    share = len(positives) / (len(positives) + len(pairs.negatives))
    up = max(1, min(round(recipe.batch * share), len(positives)))
    per_epoch = len(positives) // up
    down = max(1, min(recipe.batch - up, len(pairs.negatives) // per_epoch))
    total = recipe.epochs * per_epoch
    state = _optimiser(recipe.rate, total).init(eqx.filter(network, eqx.is_inexact_array))
    identity = json.dumps(
        [features, recipe, seed, len(pairs.codes), jax.__version__, eqx.__version__]
    )
    done, (network, state) = resume(checkpoint, identity, (network, state))
    at_once = (
        1 if jax.default_backend() == "cpu" else 500
    )  # XLA convolves several times slower in loops on a CPU
    codes = jnp.asarray(pairs.codes)
    for epoch in range(done // per_epoch, recipe.epochs):
        rng = np.random.default_rng([seed, epoch])
        orders = [
            rows[rng.permutation(len(rows))[: per_epoch * size]].reshape(per_epoch, size, 2)
            for rows, size in ((positives, up), (pairs.negatives, down))
        ]
        first = done - epoch * per_epoch
        for a in range(first, per_epoch, at_once):
            b = min(a + at_once, per_epoch)
            batches = (jnp.asarray(order[a:b]) for order in orders)
            network, state, value = _steps_of((codes, recipe, total), network, state, *batches)
            done += b - a
            if done % 500 == 0 or b == per_epoch:
                keep(checkpoint, identity, done, (network, state))
                show(done / total, f"step {done} of {total}, loss {float(value):.3f}")
    return network


def pair_accuracy(network: Network, pairs: EncodedPairs) -> dict[str, Any]:
    """The share of pairs whose higher state has the higher value: over all pairs, by kind, and by operation.

    Positives are consecutive states, whatever the network was trained on; pairs with any later state are reported
    separately.
    """
    values = features_of(network)(pairs.codes) @ np.asarray(network.value)

    def ordered(places: np.ndarray) -> np.ndarray:
        return np.asarray(values[places[:, 0]] > values[places[:, 1]])

    right = {"positives": ordered(pairs.consecutive), "negatives": ordered(pairs.negatives)}
    report: dict[str, Any] = {
        "all": float(np.concatenate(list(right.values())).mean()),
        "any later": float(ordered(pairs.later).mean()),
    }
    for kind, names in (
        ("positives", pairs.positive_operations),
        ("negatives", pairs.negative_operations),
    ):
        report[kind] = float(right[kind].mean())
        report[f"{kind} by operation"] = {
            operation: {"accuracy": float(right[kind][names == operation].mean()), "pairs": count}
            for operation, count in sorted(Counter(names.tolist()).items())
        }
    return report


def search_accuracy(network: Network, seed: int, fresh: int, random: int = 5) -> dict[str, float]:
    """The share of fresh equations that greedy search simplifies exactly, with w* and with random w.

    Random w are drawn from U(−1, 1) and tried on the first tenth only: their searches are long and seldom succeed.
    """
    rng = np.random.default_rng(stream(seed, FRESH))
    equations = [equation.random_equation(rng) for _ in range(fresh)]
    random_weights = rng.uniform(-1, 1, (random, len(network.value))).astype(np.float32)
    explorer = equation.Explorer(features_of(network))

    def share(equations: list[equation.Equation], weights: np.ndarray) -> float:
        ends = equation.greedy_ends(explorer, equations, weights)
        goals = map(equation.simplified, equations)
        return float(
            np.mean([[end == goal for end in row] for row, goal in zip(ends, goals, strict=True)])
        )

    return {
        "w*": share(equations, np.asarray(network.value)[None]),
        "random w": share(equations[: -(-fresh // 10)], random_weights),
        "equations": fresh,
    }


def row_texts(seed: int, recipe: EquationRecipe) -> list[str]:
    """The distinct states of held-out trajectories, in random order: those of the rows, then of the test rows."""
    states = dict.fromkeys(
        written
        for chunk in equation.generate_trajectories(recipe.held_out, seed=stream(seed, HELD_OUT))
        for written in chunk.texts
    )
    texts = list(states)
    order = np.random.default_rng(stream(seed, HELD_OUT)).permutation(len(texts))
    return [texts[i] for i in order[: recipe.rows + recipe.test_rows].tolist()]


def build(
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
    tell = lambda done: show(0.3 * done, "equation: trajectories and pairs")  # noqa: E731
    pairs = gather(stream(seed, TRAIN), recipe.trajectories, negatives=recipe.negatives, show=tell)
    held_out = gather(stream(seed, HELD_OUT), recipe.held_out, negatives=1, show=lambda done: None)
    texts = row_texts(seed, recipe)
    codes = equation.encode(texts)
    rows = min(recipe.rows, len(texts) * recipe.rows // (recipe.rows + recipe.test_rows))
    views, layers, reached = {}, {}, {}
    weights: dict[str, np.ndarray] = {}
    for number, name in enumerate(NETWORKS):

        def part(done: float, text: str, number: int = number, name: str = name) -> None:
            show(0.3 + 0.7 * (number + done) / len(NETWORKS), f"equation {name}: {text}")

        network = train(
            int(name),
            pairs,
            recipe,
            seed=seed + number,
            checkpoint=working / f"{name}.eqx",
            show=part,
        )
        views[name] = features_of(network)(codes).astype(np.float16)
        layers[name] = np.append(np.asarray(network.value), np.float32(0))[None]
        weights |= {f"{name}/{leaf}": array for leaf, array in to_weights(network).items()}
        reached[name] = {"pairs": pair_accuracy(network, held_out)}
        if not all(np.isfinite(array).all() for array in (views[name], layers[name])):
            raise InputError(
                f"training of equation {name} diverged; its checkpoints are in {working}"
            )
        reached[name]["simplification"] = search_accuracy(network, seed, recipe.fresh)
        part(1.0, f"pairs {reached[name]['pairs']['all']:.1%}")
    learner = NETWORKS[0]
    labels = (views[learner].astype(np.float32) @ layers[learner][0, :-1]).astype(np.float32)
    card = {
        "name": "equation",
        "data": f"States of simplification trajectories of random equations: networks trained on the pairs of "
        f"{recipe.trajectories:,} trajectories, rows and accuracies from {recipe.held_out:,} held-out ones.",
        "learner": learner, "teachers": list(NETWORKS[1:]), "reached": reached,
        "rows": rows, "test_rows": len(texts) - rows, "training_pairs": len(pairs.consecutive) + len(pairs.negatives),
        "seed": seed, "recipe": recipe._asdict(), "versions": versions(),
    }  # fmt: skip
    features = Features(
        card, labels[:rows], {name: view[:rows] for name, view in views.items()}, layers,
        labels[rows:], {learner: views[learner][rows:]}, weights,
    )  # fmt: skip
    save(features, out)
    shutil.rmtree(working, ignore_errors=True)
    return out


def check(file: Path, rows: int = 500) -> list[str]:
    """Lines of the data card, with accuracies recomputed on the first thousand held-out trajectories.

    Raises InputError if the rows are not the outputs of the networks, or the accuracies differ from the card.
    """
    loaded = load(file)
    card = loaded.card
    recipe = EquationRecipe(**card["recipe"])
    lines = [
        f"{len(loaded.labels)} training rows, {len(loaded.test_labels)} test rows; positives: {recipe.positives}"
    ]
    count = min(equation.CHUNK, recipe.held_out)
    pairs = encoded_pairs(stream(card["seed"], HELD_OUT), 0, count=count)
    codes = equation.encode(row_texts(card["seed"], recipe)[: min(rows, len(loaded.labels))])
    for view in (card["learner"], *card["teachers"]):
        network = from_weights(int(view), loaded.weights, f"{view}/")
        gap = np.abs(features_of(network)(codes) - loaded.views[view][: len(codes)]).max()
        if not gap < 0.01:
            raise InputError(
                f"{file}: the rows of {view} are not the outputs of its network; build it again"
            )
        ordered, searches = card["reached"][view]["pairs"], card["reached"][view]["simplification"]
        now = pair_accuracy(network, pairs)["all"]
        role = "learner" if view == card["learner"] else "teacher"
        lines.append(
            f"{role} {view}: {ordered['all']:.2%} of pairs in the right order; now, on a sample: {now:.2%}"
        )
        if abs(now - ordered["all"]) > 0.02:
            raise InputError(
                f"{file}: {view} orders {now:.2%} of pairs, which differs from its card; build it again"
            )
        for kind in ("positives", "negatives"):
            counts = ordered[f"{kind} by operation"].items()
            by_operation = ", ".join(
                f"{name} {of['accuracy']:.1%} of {of['pairs']:,}" for name, of in counts
            )
            lines.append(f"  {kind} {ordered[kind]:.2%}: {by_operation}")
        lines.append(f"  any later state above an earlier one: {ordered['any later']:.2%}")
        lines.append(
            f"  greedy search simplifies {searches['w*']:.1%} of {searches['equations']} fresh equations with w*, "
            f"{searches['random w']:.1%} of a tenth of them with random w"
        )
    return lines
