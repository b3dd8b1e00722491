"""A user's own task, teacher, learner, loss and neural model, through the public interface."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ital
from ital.learners import Learner, Rule, Update
from ital.teachers import Teacher

huber = ital.losses.custom("huber", lambda alpha, y: jnp.sum(jnp.sqrt(1 + (alpha - y) ** 2) - 1))


def sines(seed):
    rng = np.random.default_rng(seed)
    x, target = rng.normal(size=(60, 3)), rng.normal(size=(1, 4))
    y = x @ target[:, :-1].T + target[:, -1]
    return ital.tasks.Pool(x[:40], x[:40], y[:40], target, target, x[40:], y[40:])


hardest = Teacher(
    "hardest", lambda key, view, settings: jnp.argmax(jnp.abs(view.feedback - view.examples.labels))
)


def momentum(rate):
    def update(lesson, settings, params, memory):
        g = lesson.here.weighted_sum((jnp.arange(20) == lesson.chosen).astype(float))
        memory = settings["rate"] * memory + g
        return Update(params - lesson.lr * memory, memory, {"speed": jnp.sqrt(jnp.sum(memory**2))})

    rule = Rule(init=lambda params, settings: jnp.zeros_like(params), update=update)
    return Learner("momentum", "Momentum", rule, {"rate": rate})


def test_own_task_teacher_learner_and_loss():
    task = ital.tasks.from_pool("sines", sines, huber, beta=50.0)
    methods = [momentum(0.9), ital.learners.imt(), ital.learners.teacher_aware()]
    curves = ital.teach(task, hardest, methods, steps=300, seeds=3, lr=0.02).curves
    end = curves["distance"].isel(step=-1).mean("seed")
    assert float(end.sel({"learner": "momentum"})) < 0.5 * float(end.sel({"learner": "imt"}))
    assert np.isnan(curves["speed"].sel({"learner": "imt"})).all()
    assert (curves["speed"].sel({"learner": "momentum"})[:, 1:] > 0).all()


def test_a_neural_network_as_the_learners_model():
    network = eqx.nn.MLP(3, 1, width_size=8, depth=1, key=jax.random.key(0))
    _, static = eqx.partition(network, eqx.is_array)
    model = ital.models.differentiable(
        "mlp",
        start=lambda key: eqx.filter(
            eqx.nn.MLP(3, 1, width_size=8, depth=1, key=key), eqx.is_array
        ),
        apply=lambda params, x: eqx.combine(params, static)(x),
        loss=ital.losses.squared,
    )
    pool = sines(0)._replace(learner_target=None)
    task = ital.tasks.from_pool("neural", pool, ital.losses.squared, beta=100.0, model=model)
    run = ital.teach(
        task,
        learner=[ital.learners.imt(), ital.learners.teacher_aware()],
        steps=300,
        seeds=3,
        lr=0.02,
    )
    loss = run.curves["loss"].mean("seed")
    assert (loss.isel(step=-1) < 0.5 * loss.isel(step=0)).all()
    assert jax.tree.leaves(run.parameters["ital"])[0].shape[0] == 3
