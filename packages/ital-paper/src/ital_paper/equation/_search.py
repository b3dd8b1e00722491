"""Greedy search: move from an equation to its best successor, until none is better."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ital_paper.equation._equation import Equation, text
from ital_paper.equation._pairs import encode
from ital_paper.equation.operations import Rewrite, successors_by_text

MOST_STEPS = 30
MOST_TEXTS = 4_000_000  # kept in memory between the steps of a search, about 2 GB


class Expanded(NamedTuple):
    """A state's successors, and the feature rows of the state itself (first) and of each successor."""

    steps: list[Rewrite]
    rows: np.ndarray


class Explorer:
    """Successors of equations and their features, each computed once: features depend only on the text.

    Args:
        features: maps encoded texts (N, 173) to φ (N, d); it is called with many texts at once.
    """

    def __init__(self, features: Callable[[np.ndarray], np.ndarray]) -> None:
        self._features = features
        self.forget()

    def forget(self) -> None:
        """Empty the memory."""
        self._rows: dict[str, int] = {}
        self._phi = np.empty((0, 0), np.float32)
        self._expanded: dict[Equation, Expanded] = {}

    @property
    def texts(self) -> int:
        """Number of texts that the network has processed."""
        return len(self._rows)

    def phi(self, rows: np.ndarray) -> np.ndarray:
        """Features (N, d) of rows.

        Args:
            rows: indices of the rows.

        Returns:
            The features.
        """
        return self._phi[rows]

    def expand(self, equations: Iterable[Equation]) -> list[Expanded]:
        """The successors of each equation, with features.

        Args:
            equations: the equations.

        Returns:
            For each equation, its successors and their rows of features, its own row first.
        """
        equations = list(equations)
        new = {
            e: successors_by_text(e) for e in dict.fromkeys(equations) if e not in self._expanded
        }
        texts = {e: [text(e), *steps] for e, steps in new.items()}
        self._remember([written for family in texts.values() for written in family])
        for e, steps in new.items():
            rows = np.array([self._rows[written] for written in texts[e]])
            self._expanded[e] = Expanded(list(steps.values()), rows)
        return [self._expanded[e] for e in equations]

    def _remember(self, texts: Iterable[str]) -> None:
        unknown = [written for written in dict.fromkeys(texts) if written not in self._rows]
        if not unknown:
            return
        phi = self._features(encode(unknown))
        if not np.isfinite(phi).all():
            raise ValueError("the network's features of equations are not finite")
        first = len(self._rows)
        if first + len(phi) > len(self._phi):
            grown = np.empty((max(2 * len(self._phi), first + len(phi)), phi.shape[1]), phi.dtype)
            if first:
                grown[:first] = self._phi[:first]
            self._phi = grown
        self._phi[first : first + len(phi)] = phi
        self._rows.update(zip(unknown, range(first, first + len(unknown)), strict=True))


def greedy(explorer: Explorer, weights: np.ndarray, equation: Equation) -> list[Rewrite]:
    """The steps (at most 30) of one search with one value function w (d,).

    Args:
        explorer: successors and features.
        weights: the value function w (d,).
        equation: where the search starts.

    Returns:
        The steps of the search.
    """
    path: list[Rewrite] = []
    while len(path) < MOST_STEPS:
        ((steps, rows),) = explorer.expand([path[-1].equation if path else equation])
        best = int(
            np.argmax(explorer.phi(rows) @ weights)
        )  # on a tie the first wins: the state itself
        if best == 0:
            break
        path.append(steps[best - 1])
    return path


def greedy_ends(
    explorer: Explorer,
    equations: Sequence[Equation],
    weights: np.ndarray,
    show: Callable[[float], None] = lambda done: None,
) -> list[list[Equation]]:
    """The final state of the search for every equation and every row of ``weights`` (L, d), all searches in parallel.

    Args:
        explorer: successors and features.
        equations: where the searches start.
        weights: value functions, one per row (L, d).
        show: called with the share that is done, from 0 to 1.

    Returns:
        One row per equation, one end per value function.
    """
    ends = [[equation] * len(weights) for equation in equations]
    searching = [(number, lane) for number in range(len(equations)) for lane in range(len(weights))]
    for step in range(MOST_STEPS):
        if not searching:
            break
        if explorer.texts > MOST_TEXTS:
            explorer.forget()
        searches_at: dict[Equation, list[tuple[int, int]]] = {}
        for number, lane in searching:
            searches_at.setdefault(ends[number][lane], []).append((number, lane))
        searching = []
        for searches, (steps, rows) in zip(
            searches_at.values(), explorer.expand(searches_at), strict=True
        ):
            with np.errstate(
                invalid="ignore"
            ):  # BLAS also flags lanes that it discards; the features are finite
                best = np.argmax(
                    explorer.phi(rows) @ weights[[lane for _, lane in searches]].T, axis=0
                )
            for (number, lane), i in zip(searches, best.tolist(), strict=True):
                if i:
                    ends[number][lane] = steps[i - 1].equation
                    searching.append((number, lane))
        show((step + 1) / MOST_STEPS)
    return ends
