import itertools

import numpy as np
import pytest

from ital_paper import equation as eq

SYMBOLS = " +-/0123456789=^xyz"  # their order is that of the embedding in shipped networks


def test_encoding_is_read_back():
    texts = ["+1/4x^1y^1z^1 -3/2x^1y^1z^1 = -14y^3 +1/5", "0 = 0", "+20z^4 = +6789"]
    codes = eq.encode(texts)
    assert codes.shape == (3, 173)
    for row, written in zip(codes, texts, strict=True):
        assert "".join(SYMBOLS[code - 1] for code in row if code) == written
    assert len(SYMBOLS) == 19


def test_trajectories_do_not_depend_on_workers():
    alone = list(eq.generate_trajectories(2300, seed=5))
    shared = list(eq.generate_trajectories(2300, seed=5, workers=2))
    assert [len(some.starts) for some in alone] == [1000, 1000, 300]
    assert alone == shared
    assert alone[0].texts != alone[1].texts
    other = next(eq.generate_trajectories(1000, seed=6))
    assert other.texts != alone[0].texts


def test_chunks_that_are_not_computed_ahead_are_those_of_the_seed():
    """Four chunks per worker are begun at once; the others follow one by one."""
    assert list(eq.in_parallel(pow, 3, range(2, 15), workers=2)) == [
        3**chunk for chunk in range(2, 15)
    ]


def test_pairs_are_what_was_decided():
    pairs = eq.some_pairs(0, 0, count=40)
    rng = np.random.default_rng([0, 0])
    equations = {written: eq.parse(written) for written in pairs.texts}
    assert len(set(pairs.texts)) == len(pairs.texts)
    assert len(pairs.high) == len(pairs.low) == len(pairs.kinds) == len(pairs.operations)
    first = eq.trajectory(eq.random_equation(rng))
    expected = [(eq.text(b.equation), eq.text(a.equation)) for a, b in itertools.pairwise(first)]
    of_kind = {
        kind: [
            (pairs.texts[h], pairs.texts[low])
            for h, low, k in zip(*pairs[1:4], strict=True)
            if k == kind
        ]
        for kind in ("next", "later", "other")
    }
    positives = of_kind["next"]
    assert positives[: len(expected)] == expected
    following = {}
    for high, low in positives:
        following.setdefault(low, set()).add(high)
    for above, below in of_kind["other"]:  # a successor of the state, and not the next one
        assert equations[below] in {step.equation for step in eq.successors(equations[above])}
        assert below not in following.get(above, set())
    states = len(positives) + 40
    assert 1.3 * states < len(of_kind["other"]) < 1.8 * states  # one or two for each


def test_a_later_state_is_any_that_follows_in_the_trajectory():
    written = {}
    for chunk in range(30):  # one trajectory each: the first that a chunk draws
        states = [
            eq.text(s.equation)
            for s in eq.trajectory(eq.random_equation(np.random.default_rng([0, chunk])))
        ]
        pairs = eq.some_pairs(0, chunk, count=1)
        later = pairs.kinds == "later"
        low = [pairs.texts[i] for i in pairs.low[later]]
        assert low == states[:-1]
        for below, above in zip(low, pairs.high[later], strict=True):
            ahead = states.index(pairs.texts[above]) - states.index(below)
            written.setdefault(len(states) - 1 - states.index(below), []).append(ahead)
    for longest, steps in written.items():
        assert min(steps) >= 1
        assert max(steps) <= longest
    assert set(written[3]) == {1, 2, 3}
    assert np.mean(written[3]) == pytest.approx(2, abs=0.6)
