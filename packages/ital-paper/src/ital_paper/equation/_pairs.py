"""Trajectories in bulk, and the pairs of states that features are learned from."""

import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ital_paper.equation._equation import LONGEST, Equation, text
from ital_paper.equation._random import random_equation, trajectory
from ital_paper.equation.operations import Rewrite, distinct_steps

CHUNK = 1000
# Kinds of pairs:
NEXT = "next"
LATER = "later"
OTHER = "other"
# The 19 symbols of a text. Symbol i has the code i + 1, because the code 0 is padding.
SYMBOLS = " +-/0123456789=^xyz"
T = TypeVar("T")

_CODES = np.zeros(128, np.uint8)
_CODES[[ord(symbol) for symbol in SYMBOLS]] = np.arange(1, len(SYMBOLS) + 1)


def encode(texts: list[str]) -> np.ndarray:
    """Encode texts as the codes of their symbols, padded with 0.

    Args:
        texts: internal texts of equations.

    Returns:
        The codes (N, 173), one row per text.
    """
    # One lookup for the symbols of all texts.
    padded = "".join(written.ljust(LONGEST, "\0") for written in texts)
    return _CODES[np.frombuffer(padded.encode(), np.uint8)].reshape(-1, LONGEST)


class Trajectories(NamedTuple):
    """Trajectories, one after the other.

    Attributes:
        texts: texts of all states.
        starts: where each trajectory begins in ``texts``.
        operations: the operation that led to each state; "start" for the first of a trajectory.
    """

    texts: list[str]
    starts: list[int]
    operations: list[str]


def some_trajectories(
    seed: int,
    chunk: int,
    count: int = CHUNK,
) -> Trajectories:
    """Return a chunk of trajectories; the same seed and chunk always give the same ones."""
    rng = np.random.default_rng([seed, chunk])
    texts: list[str] = []
    starts: list[int] = []
    operations: list[str] = []
    for _ in range(count):
        states = trajectory(random_equation(rng))
        starts.append(len(texts))
        texts += [text(state.equation) for state in states]
        operations += [state.operation for state in states]
    return Trajectories(texts, starts, operations)


def generate_trajectories(
    count: int,
    *,
    seed: int = 0,
    workers: int = 1,
) -> Iterator[Trajectories]:
    """Generate trajectories in chunks of 1000; the result does not depend on the number of workers.

    Args:
        count: number of trajectories.
        seed: seed of the random equations.
        workers: number of worker processes.

    Yields:
        The trajectories, chunk by chunk.
    """
    chunks, rest = divmod(count, CHUNK)
    yield from in_parallel(some_trajectories, seed, range(chunks), workers)
    if rest:
        yield some_trajectories(seed, chunks, rest)


class Pairs(NamedTuple):
    """Pairs of states: the value of ``high`` should be above that of ``low``.

    Attributes:
        texts: texts of the states, each once.
        high: indices in ``texts`` of the higher states.
        low: indices in ``texts`` of the lower states.
        kinds: "next": ``high`` directly follows ``low`` in a trajectory; "later": it follows after
            any number of steps; "other": ``low`` is a random successor of ``high`` outside the
            trajectory.
        operations: the operation from one to the other; for a "later" pair, the operation that led
            to ``high``.
    """

    texts: list[str]
    high: np.ndarray
    low: np.ndarray
    kinds: np.ndarray
    operations: list[str]


def some_pairs(
    seed: int,
    chunk: int,
    count: int = CHUNK,
    *,
    times: int = 1,
) -> Pairs:
    """Return the pairs of a chunk of trajectories.

    There are two kinds of positives: each state below the next, and each state below one drawn
    from all later states of its trajectory. Negatives: below each state, one random successor
    other than the next state (two in the second half of the trajectory, and two below the last
    state).

    Args:
        seed: seed of the random equations.
        chunk: number of the chunk.
        count: number of trajectories.
        times: factor by which to multiply the number of negatives.

    Returns:
        The pairs; the same for the same arguments.
    """
    # The order of the random numbers decides which pairs a seed gives; feature files depend on it.
    rng = np.random.default_rng([seed, chunk])
    index_of: dict[str, int] = {}  # texts in the order in which they first occur
    pairs: list[tuple[int, int, str, str]] = []

    def index(written: str) -> int:
        return index_of.setdefault(written, len(index_of))

    for _ in range(count):
        states = trajectory(random_equation(rng))
        along = [index(text(state.equation)) for state in states]
        for i, state in enumerate(states):
            following = None
            if i + 1 < len(states):
                following = states[i + 1].equation
                later = int(rng.integers(i + 1, len(states)))
                pairs.append((along[i + 1], along[i], NEXT, states[i + 1].operation))
                pairs.append((along[later], along[i], LATER, states[later].operation))
            is_late = following is None or 2 * i >= len(states)
            number = times * (2 if is_late else 1)
            for written, operation in _others(state.equation, following, number, rng):
                pairs.append((along[i], index(written), OTHER, operation))
    high, low, kinds, operations = zip(*pairs, strict=True)
    return Pairs(
        texts=list(index_of),
        high=np.asarray(high),
        low=np.asarray(low),
        kinds=np.asarray(kinds),
        operations=list(operations),
    )


def _others(
    equation: Equation, following: Equation | None, number: int, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """Return texts and operations of random successors other than ``following``.

    There are at most as many as asked for.
    """
    steps = [step for step in distinct_steps(equation) if step.equation != following]
    order = rng.permutation(len(steps)).tolist()
    shuffled: Iterator[Rewrite] = (steps[i] for i in order)
    # Texts are written only until there are enough: most successors never need one.
    written = ((text(step.equation), step.operation) for step in shuffled)
    short = (other for other in written if len(other[0]) <= LONGEST)
    return list(itertools.islice(short, number))


def in_parallel(
    make: Callable[..., T], seed: int, chunks: Sequence[int], workers: int, **options: Any
) -> Iterator[T]:
    """Compute ``make(seed, chunk)`` for all chunks, in their order.

    Some chunks are computed ahead of time, but never all of them.

    Args:
        make: ``make(seed, chunk, **options)``, which must be picklable.
        seed: passed on.
        chunks: numbers of the chunks.
        workers: number of worker processes; 1 or less works in this process.
        **options: passed on.

    Yields:
        The results.
    """
    if workers <= 1 or len(chunks) <= 1:
        yield from (make(seed, chunk, **options) for chunk in chunks)
        return
    # Spawned, because a process that has loaded JAX must not be forked.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        todo = iter(chunks)
        coming: dict[int, Future[T]] = {}

        def submit(count: int) -> None:
            for chunk in itertools.islice(todo, count):
                coming[chunk] = pool.submit(make, seed, chunk, **options)

        submit(4 * workers)
        for chunk in chunks:
            result = coming.pop(chunk).result()
            # One more for each that is done, so that results never fill the memory.
            submit(1)
            yield result
