"""Teaching by set cover on the worlds of its authors: ``python benchmarks/set_cover.py``.

Brown and Niekum's public code reports 17.25 pairs of state and action on average over 20 worlds:
deterministic grids of 9 × 9 cells, each with one of 8 features, discount 0.95, demonstrations of
one pair. The worlds follow from the C library's ``rand``, so they are drawn here as they are there
(with glibc; another library draws other worlds).

Also counts the worlds in which a half-space of our cover excludes the true reward.
"""

import ctypes
import math

import numpy as np

from ital import mdp

WORLDS = 20
FIRST_SEED = 231234
NEXT_SEED = 13
SIZE = 9
KINDS = 8
DISCOUNT = 0.95
LARGEST = 2147483647  # RAND_MAX
VIOLATED = 1e-9  # how far outside a half-space of unit normal the unit reward must be


def world(number):
    """Weights of length 1 (sum of absolute values), and the features of the cells."""
    library = ctypes.CDLL(None)
    library.srand(FIRST_SEED + NEXT_SEED * number)
    weights = np.array([laplace(library.rand() / LARGEST) for _ in range(KINDS)])
    kinds = [library.rand() % KINDS for _ in range(SIZE * SIZE)]
    return weights / np.abs(weights).sum(), np.eye(KINDS)[kinds]


def laplace(share):
    """The quantile of a Laplace distribution."""
    return math.log(2 * share) if share < 0.5 else -math.log(2 - 2 * share)


def main():
    """Print the pairs of every world, and their mean."""
    transitions = mdp.table(mdp.grid(SIZE, slip=0.0, death=0.0))
    pairs = []
    violated = 0
    for number in range(WORLDS):
        weights, features = world(number)
        cover = mdp.set_cover(transitions, weights, features, discount=DISCOUNT, length=1)
        pairs.append(len(cover.demonstrations))
        unit = weights / np.linalg.norm(weights)
        violated += bool(np.any(cover.constraints @ unit < -VIOLATED))
        print(
            f"world {number}: {pairs[-1]} pairs, {len(cover.constraints)} half-spaces", flush=True
        )
    print(
        f"mean: {np.mean(pairs):.2f} pairs; the true reward is excluded in {violated} of {WORLDS}"
    )


if __name__ == "__main__":
    main()
