"""Greedy search: move from an equation to its best successor, until none is better."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ital_paper.equation._equation import Equation, text
from ital_paper.equation._pairs import encode
from ital_paper.equation.operations import Rewrite, successors_by_text

MOST_STEPS = 30
MOST_TEXTS = 4_000_000  # kept in memory between the steps of a search, about 2 GB


class Expanded(NamedTuple):
    """A state's successors, and where their features are.

    Attributes:
        steps: the steps to its successors.
        rows: indices of the feature rows of the state itself (first) and of each successor.
    """

    steps: list[Rewrite]
    rows: np.ndarray


class Explorer:
    """Successors of equations and their features, each computed once.

    Features depend only on the text, so states that several searches reach share them.

    Args:
        features: maps encoded texts (N, 173) to φ (N, d); it is called with many texts at once.
    """

    def __init__(self, features: Callable[[np.ndarray], np.ndarray]) -> None:
        self._features = features
        self.forget()

    def forget(self) -> None:
        """Empty the memory."""
        self._row_of: dict[str, int] = {}
        # The first rows are those of the texts; the others are room for more.
        self._phi = np.empty((0, 0), np.float32)
        self._expanded: dict[Equation, Expanded] = {}

    @property
    def texts(self) -> int:
        """Number of texts that the network has processed."""
        return len(self._row_of)

    def phi(self, rows: np.ndarray) -> np.ndarray:
        """Return the features (N, d) of rows.

        Args:
            rows: indices of the rows.

        Returns:
            The features.
        """
        return self._phi[rows]

    def expand(self, equations: Iterable[Equation]) -> list[Expanded]:
        """Return the successors of each equation, with features.

        Args:
            equations: the equations.

        Returns:
            For each equation, its successors and their rows of features, its own row first.
        """
        equations = list(equations)
        new = [one for one in dict.fromkeys(equations) if one not in self._expanded]
        successors = {one: successors_by_text(one) for one in new}
        texts = {one: [text(one), *steps] for one, steps in successors.items()}
        # All new texts at once: the network is quick only with many.
        self._remember(itertools.chain.from_iterable(texts.values()))
        for one, steps in successors.items():
            rows = np.array([self._row_of[written] for written in texts[one]])
            self._expanded[one] = Expanded(list(steps.values()), rows)
        return [self._expanded[one] for one in equations]

    def _remember(self, texts: Iterable[str]) -> None:
        unknown = [written for written in dict.fromkeys(texts) if written not in self._row_of]
        if not unknown:
            return
        phi = self._features(encode(unknown))
        if not np.isfinite(phi).all():
            raise ValueError("the network's features of equations are not finite")
        first = len(self._row_of)
        last = first + len(phi)
        self._make_room(last, phi)
        self._phi[first:last] = phi
        self._row_of.update(zip(unknown, range(first, last), strict=True))

    def _make_room(self, rows: int, phi: np.ndarray) -> None:
        """Let the memory hold a number of rows of features like ``phi``."""
        if rows <= len(self._phi):
            return
        # Twice as many as now, so that rows are seldom copied.
        size = max(2 * len(self._phi), rows)
        grown = np.empty((size, phi.shape[1]), phi.dtype)
        used = len(self._row_of)
        if used:
            grown[:used] = self._phi[:used]
        self._phi = grown


def greedy(
    explorer: Explorer,
    weights: np.ndarray,
    equation: Equation,
) -> list[Rewrite]:
    """Return the steps (at most 30) of one search with one value function w (d,).

    Args:
        explorer: successors and features.
        weights: the value function w (d,).
        equation: where the search starts.

    Returns:
        The steps of the search.
    """
    path: list[Rewrite] = []
    while len(path) < MOST_STEPS:
        ((steps, rows),) = explorer.expand([equation])
        # On a tie the first wins, and the first row is the state itself: the search ends.
        best = int(np.argmax(explorer.phi(rows) @ weights))
        if best == 0:
            break
        path.append(steps[best - 1])
        equation = path[-1].equation
    return path


def greedy_ends(
    explorer: Explorer,
    equations: Sequence[Equation],
    weights: np.ndarray,
    show: Callable[[float], None] = lambda done: None,
) -> list[list[Equation]]:
    """Return the final state of the search for every equation and every row of ``weights``.

    All searches take their steps together, and those at one state share its successors.

    Args:
        explorer: successors and features.
        equations: where the searches start.
        weights: value functions, one per row (L, d).
        show: called with the share that is done, from 0 to 1.

    Returns:
        One row per equation, one end per value function.
    """
    ends = [[equation] * len(weights) for equation in equations]
    # A search is an equation's number and a row of the weights.
    searching = list(itertools.product(range(len(equations)), range(len(weights))))
    for step in range(MOST_STEPS):
        if not searching:
            break
        if explorer.texts > MOST_TEXTS:
            explorer.forget()
        searches_at: dict[Equation, list[tuple[int, int]]] = {}
        for number, lane in searching:
            searches_at.setdefault(ends[number][lane], []).append((number, lane))
        searching = []
        expanded = explorer.expand(searches_at)
        for searches, (steps, rows) in zip(searches_at.values(), expanded, strict=True):
            lanes = [lane for _, lane in searches]
            best = _best_rows(explorer.phi(rows), weights[lanes])
            for (number, lane), row in zip(searches, best, strict=True):
                # Row 0 is the state itself: its search has ended.
                if row:
                    ends[number][lane] = steps[row - 1].equation
                    searching.append((number, lane))
        show((step + 1) / MOST_STEPS)
    return ends


def _best_rows(phi: np.ndarray, weights: np.ndarray) -> list[int]:
    """Return the row of φ (N, d) that each value function (L, d) finds best."""
    # BLAS also flags lanes that it discards; the features are finite.
    with np.errstate(invalid="ignore"):
        return np.argmax(phi @ weights.T, axis=0).tolist()
