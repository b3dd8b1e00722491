"""The distributions from which teachers of hypotheses draw, against plain NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from ital import beliefs

pytestmark = pytest.mark.usefixtures("x64")

RNG = np.random.default_rng(0)
M = RNG.dirichlet(np.ones(5), size=4).T  # 5 data, 4 hypotheses
THETA = np.array([0.6, 0.3, 0.1 - 1e-9, 1e-9])


def in_logs(function, *numbers):
    return np.exp(function(jnp.log(M), jnp.log(THETA), *numbers))


def test_scbi_is_the_matrix_scaled_by_brute_force():
    scaled = M * THETA
    for _ in range(5000):
        scaled = scaled / scaled.sum(axis=1, keepdims=True) / len(M)
        scaled = scaled / scaled.sum(axis=0) * THETA
    np.testing.assert_allclose(scaled.sum(axis=1), 1 / len(M), rtol=1e-12)
    np.testing.assert_allclose(in_logs(beliefs.scbi), scaled / THETA, rtol=1e-10)


def test_scbi_keeps_the_odds_of_hypotheses_that_no_float_can_hold():
    """As θ(h*) → 1, P_T(·|h*) becomes uniform, and P_T(d|h) ∝ M(d,h)/M(d,h*) for all others."""
    scaled = np.exp(beliefs.scbi(jnp.log(M), jnp.array([0.0, -900.0, -2000.0, -5000.0])))
    ratios = M / M[:, :1]
    np.testing.assert_allclose(scaled, ratios / ratios.sum(axis=0), rtol=1e-12)


def reasoned(alpha, rounds):
    """Shafto's equations, one number at a time."""
    teacher = M.copy()
    for _ in range(rounds):
        learner = np.array(
            [[p * prior for p, prior in zip(row, THETA, strict=True)] for row in teacher]
        )
        learner = np.array([row / sum(row) for row in learner])
        teacher = np.array([column**alpha / sum(column**alpha) for column in learner.T]).T
    return teacher


@pytest.mark.parametrize(("alpha", "rounds"), [(1.0, 1), (1.7, 3), (-1.0, 1)])
def test_pedagogical_is_shaftos_recursion(alpha, rounds):
    np.testing.assert_allclose(
        in_logs(beliefs.pedagogical, alpha, rounds), reasoned(alpha, rounds), rtol=1e-10
    )


def test_many_rounds_with_alpha_1_are_scbi():
    np.testing.assert_allclose(
        in_logs(beliefs.pedagogical, 1.0, 2000), in_logs(beliefs.scbi), rtol=1e-10
    )


def test_other_alphas_forget_the_matrix_or_end_in_a_code():
    np.testing.assert_allclose(in_logs(beliefs.pedagogical, 0.5, 200), 1 / len(M), rtol=1e-10)
    code = in_logs(beliefs.pedagogical, 2.0, 200)
    assert (np.isclose(code, 0) | np.isclose(code, code.max(axis=0))).all()
    assert len(np.unique(code.argmax(axis=0))) > 1


def test_literal_and_posterior_are_bayes_rule():
    np.testing.assert_array_equal(in_logs(beliefs.literal), np.exp(np.log(M)))
    by_hand = THETA * M[2] / (THETA * M[2]).sum()
    np.testing.assert_allclose(
        np.exp(beliefs.posterior(jnp.log(THETA), jnp.log(M[2]))), by_hand, rtol=1e-12
    )
