"""The value function of equations in a feature file: its network, and w*."""

import functools
from pathlib import Path

import numpy as np

from ital.errors import InputError
from ital_paper.equation import Explorer
from ital_paper.features._file import find, load


def equation_file() -> Path:
    """Return the feature file of the equation tasks.

    Returns:
        The file.

    Raises:
        InputError: if there is none.
    """
    file = find("equation")
    if file is None:
        raise InputError(
            "there is no feature file of equations: build it with ital features build equation"
        )
    return file


def learned_value() -> tuple[Explorer, np.ndarray]:
    """Return features of any equation, and w* of the value function, as shipped.

    Returns:
        The features of equations, and w* (d,).
    """
    file = equation_file()
    return explorer(file, load(file).version)


@functools.lru_cache(maxsize=2)
def explorer(file: Path, version: str) -> tuple[Explorer, np.ndarray]:
    """Return successors and features of equations from the learner's network, and its w*.

    They are cached for all tasks of a file.

    Args:
        file: the feature file of the equation tasks.
        version: version of its content.

    Returns:
        The features of equations, and w* (d,).
    """
    from ital_paper.equation.network import features_of, from_weights

    loaded = load(file)
    name = loaded.card["learner"]
    network = from_weights(int(name), loaded.weights, f"{name}/")
    return Explorer(features_of(network)), np.asarray(network.value)
