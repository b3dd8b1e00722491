"""The theory panel: where Theorem 1 applies, its promise for large β, and the sharpness of q at the start."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ital
from ital import learners, rationality, tasks, teachers, theory, volume
from ital.gradients import add_scaled, squared_norm
from ital.learners import imagined_volumes
from ital.models import Init
from ital.tasks import World
from ital.teaching import (
    LaneNumbers,
    Numbers,
    Program,
    Run,
    Session,
    at_start,
    draw,
    first_lesson,
    open_sessions,
)
from ital.tools import randomness
from ital.tools.types import Array, Params, PRNGKeyArray

LR, BATCH = 1e-3, 20
RUN = 2000  # steps of the runs that the corollary is about, whatever the scale
VERSION = 3  # version of a stored panel: raised whenever its content changes
MULTIPLES = (0.01, 0.1, 1.0, 3.0)  # of the task's β, for learners taught with diagnostics
GUARANTEE = tuple(
    float(10**power) for power in np.arange(0, 12.01, 0.5)
)  # β of the numerical illustration
SHARPNESS = tuple(float(10**power) for power in np.arange(1, 8.01, 0.25))


def _session(name: str, start: str | None, seeds: int, *, adversarial: bool = False) -> Session:
    task = tasks.make(name)
    teacher = teachers.make("adversarial" if adversarial else "cooperative")
    run = Run(seeds=seeds, steps=1, lr=LR, batch_size=BATCH, init=start, eval_every=1)
    return open_sessions(task, teacher, [learners.make("ital")], run)[0]


def _only_lane(numbers: Numbers) -> Numbers:
    """The numbers of a session with a single learner, without the axis of lanes."""
    return numbers._replace(lanes=jax.tree.map(lambda leaf: leaf[:, 0], numbers.lanes))


@functools.partial(jax.jit, static_argnums=0)
def _promised(
    program: Program, numbers: Numbers, starts: Params, keys: Array, betas: Array
) -> dict[str, Array]:
    """Theorem 1 at sampled ν between a start and ν*, one seed each: conditions, and improvement at every β.

    ν′ − ν̂ is written as (1−q_c) times a direction whose length does not depend on 1−q_c. So an improvement can be
    recognised even if the step itself is too small for a floating-point number.
    """

    def of_seed(
        world: World, start: Params, key: PRNGKeyArray, lane: LaneNumbers
    ) -> dict[str, Array]:
        between, batch = jax.random.split(key)
        target = world.truth.target
        params = add_scaled(target, jax.random.uniform(between), add_scaled(start, -1.0, target))
        lesson = first_lesson(
            program, world, draw(program, world, batch), numbers.last_step, params, lane
        )
        lr = lane.lr
        is_chosen = jnp.arange(program.batch_size) == lesson.chosen
        naive = add_scaled(params, -lr, lesson.here.weighted_sum(is_chosen.astype(lr.dtype)))
        after = lesson.gradients(naive)
        held = theory.local_improvement(lr, lesson.chosen, lesson.here, after, naive, naive, target)
        volumes = volume.imitated(lr, lesson.here.squared_norms, lesson.here.losses, after.losses)
        progress = after.inner(add_scaled(naive, -1.0, target))

        runner_up = jnp.max(jnp.where(is_chosen, -jnp.inf, volumes))

        def improved(beta: Array) -> Array:
            weights = jnp.exp(beta * (volumes - jnp.max(volumes)))
            rest = jnp.sum(jnp.where(is_chosen, 0.0, weights)) / jnp.sum(
                weights
            )  # 1 − q_c, accurate even if tiny
            others = jax.nn.softmax(jnp.where(is_chosen, -jnp.inf, beta * (volumes - runner_up)))
            direction = is_chosen - others
            length = 2 * beta * lr**2 * rest
            return 2 * jnp.sum(direction * progress) > length * squared_norm(
                after.weighted_sum(direction)
            )

        return {"conditions": held.conditions, "improved": jax.vmap(improved)(betas)}

    seeds = jax.vmap(of_seed, in_axes=(numbers.world_axes(program), 0, 0, 0))
    lanes = _only_lane(numbers).lanes
    return jax.lax.map(lambda key: seeds(numbers.worlds, starts, key, lanes), keys)


def guarantee(name: str, start: str | None, *, seeds: int, batches: int) -> dict[str, Any]:
    """How often the aware step beats the naive one at each β, where the conditions of Theorem 1 hold and where not."""
    session = _session(name, start, seeds)
    keys = jax.random.split(randomness.key(7), (batches, seeds))[
        :, np.arange(len(session.numbers.seeds)) % seeds
    ]
    sampled = _promised(
        session.program, session.numbers, session.starts, keys, jnp.asarray(GUARANTEE)
    )
    held, improved = (np.asarray(sampled[what])[:, :seeds] for what in ("conditions", "improved"))
    return {
        "beta": list(GUARANTEE),
        "steps": int(held.size),
        "held": int(held.sum()),
        "where_held": improved[held].mean(axis=0).tolist() if held.any() else [],
        "elsewhere": improved[~held].mean(axis=0).tolist() if (~held).any() else [],
    }


def taught(name: str, start: str | None, *, seeds: int, steps: int) -> dict[str, Any]:
    """Teach learners of several β with diagnostics: the share of steps on which the conditions held, and the share
    on which their step beat the naive one.
    """
    task = tasks.make(name)._replace(exam=None)
    betas = [multiple * float(task.beta) for multiple in MULTIPLES]
    aware = [learners.teacher_aware(beta)._replace(name=f"beta {beta:g}") for beta in betas]
    result = ital.teach(
        task,
        "cooperative",
        aware,
        seeds=seeds,
        steps=steps,
        init=start,
        eval_every=steps // 4,
        diagnostics=True,
    )
    shares = {
        signal: result.curves[f"theorem_{signal}"]
        .isel(step=slice(1, None))
        .mean(("seed", "step"))
        .values.tolist()
        for signal in ("conditions", "improved")
    }
    distance = result.curves["distance"]
    left = (distance.isel(step=-1) / distance.isel(step=0)).mean("seed").values.tolist()
    return {"beta": betas, "task_beta": task.beta, "left": left, **shares}


@functools.partial(jax.jit, static_argnums=0)
def _imagined(program: Program, numbers: Numbers, starts: Params) -> tuple[Array, Array]:
    """The volumes that aware learners imagine at ν⁰ on the mini-batches of ``beta="auto"``, and which are copies."""
    return at_start(program, imagined_volumes("imitated"), _only_lane(numbers), starts)


def sharpness(name: str, start: str | None, *, seeds: int) -> dict[str, Any]:
    """q's sharpness at the start over β, mean over seeds; the value that ``auto`` takes, and the task's own."""
    session = _session(name, start, seeds)
    volumes, same = (
        some[:seeds] for some in _imagined(session.program, session.numbers, session.starts)
    )
    over_seeds = jax.vmap(rationality.sharpness, in_axes=(None, 0, 0))
    curve = [float(over_seeds(jnp.asarray(beta), volumes, same).mean()) for beta in SHARPNESS]
    lr, sign = jnp.asarray(LR), jnp.asarray(1.0)
    auto = jax.vmap(rationality.auto_beta, in_axes=(None, None, 0, 0))(lr, sign, volumes, same)
    task_beta = tasks.make(name).beta
    return {
        "beta": list(SHARPNESS),
        "sharpness": curve,
        "auto": np.asarray(auto).tolist(),
        "cap": rationality.LINEAR / (2 * LR),
        "task_beta": task_beta,
        "at_task_beta": float(over_seeds(jnp.asarray(task_beta), volumes, same).mean()),
    }


def panel(name: str, start: str | None, *, seeds: int, steps: int) -> dict[str, Any]:
    """The whole panel for one task and one start, with the corollary's assumptions: monotonicity and its premises."""
    task = tasks.make(name)
    if start is not None:
        task = task._replace(init=Init.parse(start))
    return {
        "taught": taught(name, start, seeds=seeds, steps=steps),
        "guarantee": guarantee(name, start, seeds=seeds, batches=200),
        "sharpness": sharpness(name, start, seeds=seeds),
        "monotonicity_violations": theory.teaching_monotonicity(task, samples=100, batches=10),
        "teaching_risk": theory.teaching_risk(task) if task.rules.risk else None,
        "premises": theory.corollary_premises(task, lr=LR, batch_size=BATCH, steps=RUN)._asdict(),
    }
