import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ital
from ital import learners, losses, rationality, tasks, teachers
from tests.worlds import small_classes


def batches(seed, n=64, size=6, copies=True):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 8 if copies else 10**6, (n, size))
    volumes = np.sin(rows * 1.7) * 1e-3
    return jnp.asarray(volumes), jnp.asarray(rows[:, :, None] == rows[:, None, :])


@given(seed=st.integers(0, 1000), sign=st.sampled_from([1.0, -1.0]))
@pytest.mark.usefixtures("x64")
def test_auto_beta_makes_q_sharp_by_eighty_percent(seed, sign):
    volumes, same = batches(seed)
    beta = rationality.auto_beta(1e-6, sign, volumes, same)
    assert np.sign(beta) == sign
    assert float(rationality.sharpness(beta, volumes, same)) == pytest.approx(0.8, abs=1e-6)


@given(seed=st.integers(0, 1000), beta=st.floats(-5000, 5000))
@pytest.mark.usefixtures("x64")
def test_sharpness_counts_copies_as_one(seed, beta):
    volumes, same = batches(seed)
    expected = []
    for v, copies in zip(np.asarray(volumes), np.asarray(same), strict=True):
        q = np.asarray(jax.nn.softmax(beta * v))
        expected.append(max(q[c].sum() for c in copies))
    assert float(rationality.sharpness(beta, volumes, same)) == pytest.approx(np.mean(expected))


@pytest.mark.usefixtures("x64")
def test_auto_beta_is_capped():
    volumes, same = batches(0)
    assert float(rationality.auto_beta(1.0, -1.0, volumes * 1e-9, same)) == -50.0
    assert float(rationality.auto_beta(1e-12, 1.0, volumes * 0, same)) == pytest.approx(1e8)


def test_auto_beta_is_one_per_seed_and_shared_by_all_views():
    aware = [learners.teacher_aware("auto"), learners.teacher_aware("auto", view=2), learners.imt()]
    for teacher in (teachers.cooperative(), teachers.adversarial(), teachers.omniscient()):
        beta = (
            ital.teach(small_classes(), teacher, aware, seeds=3, steps=5, lr=0.3)
            .curves["beta"]
            .values
        )
        assert (beta[0] == beta[1]).all()
        assert len(set(beta[0])) == 3
        assert (np.sign(beta[0]) == teacher.sign).all()
        assert (beta[2] == 0).all()


def test_auto_beta_for_regression_is_near_the_papers_text():
    curves = ital.teach(
        ital.tasks.regression(), learner=learners.teacher_aware("auto"), seeds=5, steps=1
    ).curves
    # The paper's text says 2000 where q's sharpness is 0.91.
    assert 1100 < curves["beta"].values.mean() < 1700


def test_the_automatic_beta_takes_back_at_most_a_tenth_of_a_networks_step():
    """2βη ≤ 0.1 where the model is not linear, whatever the sharpness asks for.

    Linear models keep their rule.
    """
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(60, 3)), np.arange(60) % 2
    pool = tasks.Pool(x, x, labels, rng.normal(size=(2, 4)), None, x, labels)
    linear, network = (
        tasks.from_pool("own", pool, losses.cross_entropy, model=model, beta=1.0, title="")
        for model in (None, tasks.mlp(losses.cross_entropy, 4))
    )
    assert linear.rules.most_awareness == 100
    curves = ital.teach(network, learner="ital", beta="auto", steps=1, seeds=1, lr=0.05).curves
    np.testing.assert_allclose(curves["beta"].values, 0.1 / (2 * 0.05), rtol=1e-6)
