import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital_paper import equation as eq
from ital_paper.equation.network import Network, features_of


def counts(codes):
    """Features to follow by hand: lengths, numbers of fractions, and a number that depends on the
    whole text.
    """
    place = np.arange(1, codes.shape[1] + 1)
    columns = [
        (codes > 0).sum(axis=1),
        (codes == 1 + " +-/".index("/")).sum(axis=1),
        (codes * place).sum(axis=1) % 97,
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def brute_force(start, w, features=counts):
    value = lambda one: features(eq.encode([eq.text(one)]))[0] @ w  # noqa: E731
    path = [start]
    while len(path) <= 30:
        best = max(eq.successors(path[-1]), key=lambda step: value(step.equation), default=None)
        if best is None or value(best.equation) <= value(path[-1]):
            break
        path.append(best.equation)
    return path


@pytest.fixture(scope="module")
def equations():
    rng = np.random.default_rng(4)
    return [eq.random_equation(rng) for _ in range(4)]


WEIGHTS = np.array([[-1, 0, 0], [-1, -5, 0.01], [0, 0, 1], [0, 0, 0]], np.float32)


def test_search_goes_to_the_best_successor_until_none_is_better(equations):
    explorer = eq.Explorer(counts)
    for equation in equations:
        for w in WEIGHTS:
            path = [step.equation for step in eq.greedy(explorer, w, equation)]
            assert [equation, *path] == brute_force(equation, w)
    # Equal values: stay.
    assert all(not eq.greedy(explorer, WEIGHTS[3], equation) for equation in equations)


def test_searches_side_by_side_end_where_each_alone_does(equations):
    shown = []
    ends = eq.greedy_ends(eq.Explorer(counts), equations, WEIGHTS, shown.append)
    for equation, row in zip(equations, ends, strict=True):
        assert row == [brute_force(equation, w)[-1] for w in WEIGHTS]
    assert shown == sorted(shown)
    assert shown[-1] <= 1


def test_searches_with_a_network_end_where_each_alone_does(equations):
    network = Network(7, jax.random.key(1))
    look = eqx.filter_jit(network)
    alone = functools.cache(lambda code: np.asarray(look(jnp.frombuffer(code, jnp.uint8)[None])))
    weights = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    (ends,) = eq.greedy_ends(eq.Explorer(features_of(network)), equations[:1], weights)
    assert ends == [
        brute_force(equations[0], w, lambda codes: alone(codes.tobytes()))[-1] for w in weights
    ]
    assert len(set(ends)) > 1


def test_every_text_is_looked_at_once_and_forgetting_changes_nothing(equations, monkeypatch):
    seen = []

    def features(codes):
        seen.extend(map(bytes, codes))
        return counts(codes)

    explorer = eq.Explorer(features)
    ends = eq.greedy_ends(explorer, equations, WEIGHTS)
    assert len(seen) == len(set(seen)) == explorer.texts
    assert eq.greedy_ends(explorer, equations, WEIGHTS) == ends
    assert len(seen) == explorer.texts
    monkeypatch.setattr("ital_paper.equation._search.MOST_TEXTS", 10)
    assert eq.greedy_ends(explorer, equations, WEIGHTS) == ends


def newer_is_better():
    """An explorer to which every new text is better than all before: no search ends by itself."""
    numbers = itertools.count()
    return eq.Explorer(lambda codes: np.array([[next(numbers)] for _ in codes], np.float32))


def test_a_search_ends_after_thirty_steps():
    equation = eq.parse("1/2x + 1/3y + z + 1/5 = x^2 + 1/4")
    w = np.ones(1, np.float32)
    path = eq.greedy(newer_is_better(), w, equation)
    assert len(path) == 30
    assert eq.greedy_ends(newer_is_better(), [equation], w[None]) == [[path[-1].equation]]
