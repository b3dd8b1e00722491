"""ital-full: the gradient of the likelihood of everything the learner saw, examples and choice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import learners, models, tasks
from ital.losses import cross_entropy, squared

BETA, LR = 40.0, 0.05


@pytest.mark.parametrize("loss", [squared, cross_entropy])
def test_the_step_is_the_gradient_of_the_whole_likelihood(loss):
    """ν′ = ν + η ∇ ( Σᵢ log p(xᵢ,yᵢ|ν) + log q(c|ν̂) ) by autodiff, the second part at ν̂."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x = jax.tree.map(jnp.asarray, models.linear_rows(rng.normal(size=(6, 3))))
        y = jnp.asarray(rng.integers(0, 4, 6) if loss is cross_entropy else rng.normal(size=(6, 4)))
        nu, chosen = jnp.asarray(rng.normal(size=(4, 4))), jnp.asarray(2)
        model = models.linear(loss)
        gradients = lambda params: model.gradients(params, x, y)  # noqa: E731
        lesson = learners.Lesson(
            jnp.asarray(0),
            jnp.asarray(LR),
            None,
            gradients(nu),
            gradients,
            chosen,
            jnp.arange(6),
            jnp.asarray(0),
        )
        situation = learners.Situation(BETA, 0.0, 6, "imitated", auto_beta=lambda *asked: None)
        learner = learners.full().resolve(learners.full(), situation)
        stepped = learner.rule.update(lesson, learner.settings, nu, ()).params

        def losses(params):
            return loss.value(model.outputs(params, x), y)

        norms = jnp.stack(
            [jnp.sum(jax.grad(lambda p, i=i: losses(p)[i])(nu) ** 2) for i in range(6)]
        )
        guess = nu - LR * jax.grad(lambda p: jnp.sum(losses(p)))(nu)

        def log_q(params):
            volumes = -(LR**2) * norms + 2 * LR * (losses(nu) - losses(params))
            return jax.nn.log_softmax(BETA * volumes)[chosen]

        expected = guess + LR * jax.grad(log_q)(guess)
        np.testing.assert_allclose(stepped, expected, rtol=1e-10)


def test_without_beta_it_sums_the_gradients_of_the_mini_batch():
    """β = 0: a Batch step twenty times as long."""
    task = tasks.regression(dim=5, points=60)
    both = ital.teach(task, "cooperative", [learners.full(0.0)], steps=30, seeds=2, lr=1e-3)
    batch = ital.teach(task, "cooperative", [learners.batch()], steps=30, seeds=2, lr=20e-3)
    np.testing.assert_allclose(
        both.curves["distance"].values, batch.curves["distance"].values, rtol=1e-4
    )


def test_the_choice_tells_what_labels_do_not_in_irl():
    """At equal step length, learning from the choice as well beats the mean gradient."""
    both = [learners.batch(), learners.full(4000.0)]
    result = ital.teach(
        "irl-dense", "cooperative", both, steps=250, seeds=3, form="length:0.6", eval_every=250
    )
    batch, full = result.curves["distance_centred"].isel(step=-1).mean("seed").values
    assert full < batch
