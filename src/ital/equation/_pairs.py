"""Trajectories in bulk, and the pairs of states that features are learned from."""

import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ital.equation._equation import LONGEST, text
from ital.equation._random import random_equation, trajectory
from ital.equation.operations import successors

CHUNK = 1000
SYMBOLS = " +-/0123456789=^xyz"  # 19; 0 is padding, symbol i has the code i + 1
T = TypeVar("T")

_CODES = np.zeros(128, np.uint8)
_CODES[[ord(symbol) for symbol in SYMBOLS]] = np.arange(1, len(SYMBOLS) + 1)


def encode(texts: list[str]) -> np.ndarray:
    """Texts as codes of their symbols (N, 173), padded with 0.

    Args:
        texts: internal texts of equations.

    Returns:
        The codes, one row per text.
    """
    padded = "".join(written.ljust(LONGEST, "\0") for written in texts)
    return _CODES[np.frombuffer(padded.encode(), np.uint8)].reshape(-1, LONGEST)


class Trajectories(NamedTuple):
    """Some trajectories: the texts of all states, where each begins, and the operation that led to each state.

    Attributes:
        texts: texts of all states, one trajectory after the other.
        starts: where each trajectory begins in ``texts``.
        operations: the operation that led to each state; "start" for the first of a trajectory.
    """

    texts: list[str]
    starts: list[int]
    operations: list[str]


def some_trajectories(seed: int, chunk: int, count: int = CHUNK) -> Trajectories:
    """A chunk of trajectories. The same seed and chunk are the same trajectories, whoever makes them."""
    rng = np.random.default_rng([seed, chunk])
    texts: list[str] = []
    starts, operations = [], []
    for _ in range(count):
        states = trajectory(random_equation(rng))
        starts.append(len(texts))
        texts += [text(state.equation) for state in states]
        operations += [state.operation for state in states]
    return Trajectories(texts, starts, operations)


def generate_trajectories(count: int, *, seed: int = 0, workers: int = 1) -> Iterator[Trajectories]:
    """Generate trajectories in chunks of 1000; the numbers do not depend on the workers.

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
    """Pairs of states: ``high`` is to be valued above ``low``.

    Attributes:
        texts: texts of the states, each once.
        high: places in ``texts`` of the higher states.
        low: places in ``texts`` of the lower states.
        positive: whether the two are consecutive; else ``low`` is a random successor of ``high``.
        operations: what led from one to the other.
    """

    texts: list[str]
    high: np.ndarray
    low: np.ndarray
    positive: np.ndarray
    operations: list[str]


def some_pairs(seed: int, chunk: int, count: int = CHUNK, *, times: int = 1) -> Pairs:
    """The pairs of a chunk of trajectories.

    Positives: each state below the next. Negatives: below each state one random successor other than the next (two in
    the second half of the trajectory), below the last state two.

    Args:
        seed: seed of the random equations.
        chunk: number of the chunk.
        count: number of trajectories.
        times: factor by which there are more negatives.

    Returns:
        The pairs; the same for the same arguments.
    """
    rng = np.random.default_rng([seed, chunk])
    places: dict[str, int] = {}
    pairs: list[tuple[int, int, bool]] = []
    operations: list[str] = []

    def place(written: str) -> int:
        return places.setdefault(written, len(places))

    for _ in range(count):
        states = trajectory(random_equation(rng))
        for i, state in enumerate(states):
            here = place(text(state.equation))
            following = states[i + 1] if i + 1 < len(states) else None
            if following is not None:
                pairs.append((place(text(following.equation)), here, True))
                operations.append(following.operation)
            others = [s for s in successors(state.equation) if following is None or s.equation != following.equation]
            number = min(len(others), times * (2 if following is None or 2 * i >= len(states) else 1))
            for pick in rng.choice(len(others), number, replace=False).tolist() if others else ():
                pairs.append((here, place(text(others[pick].equation)), False))
                operations.append(others[pick].operation)
    high, low, positive = zip(*pairs, strict=True)
    return Pairs(list(places), np.asarray(high), np.asarray(low), np.asarray(positive), operations)


def in_parallel(make: Callable[..., T], seed: int, chunks: Sequence[int], workers: int, **options: Any) -> Iterator[T]:
    """Compute ``make(seed, chunk)`` for all chunks, in their order.

    Some chunks are computed ahead of what is taken, but never all of them.

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
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        todo = iter(chunks)
        coming: dict[int, Future[T]] = {
            chunk: pool.submit(make, seed, chunk, **options) for chunk in itertools.islice(todo, 4 * workers)
        }
        for chunk in chunks:
            result = coming.pop(chunk).result()
            for ahead in itertools.islice(todo, 1):
                coming[ahead] = pool.submit(make, seed, ahead, **options)
            yield result
