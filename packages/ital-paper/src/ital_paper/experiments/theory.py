"""The theory panel.

Where Theorem 1 applies, its promise for large β, and the sharpness of q at the start.
"""

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

LR = 1e-3
BATCH = 20
RUN = 2000  # steps of the runs that the corollary is about, whatever the scale
VERSION = 3  # version of a stored panel: raised whenever its content changes
MULTIPLES = (0.01, 0.1, 1.0, 3.0)  # of the task's β, for learners taught with diagnostics
GUARANTEE = tuple(float(10**power) for power in np.arange(0, 12.01, 0.5))  # β of the illustration
SHARPNESS = tuple(float(10**power) for power in np.arange(1, 8.01, 0.25))  # β of the sharpness


def _session(
    name: str,
    start: str | None,
    seeds: int,
    *,
    adversarial: bool = False,
) -> Session:
    task = tasks.make(name)
    teacher = teachers.make("adversarial" if adversarial else "cooperative")
    run = Run(seeds=seeds, steps=1, lr=LR, batch_size=BATCH, init=start, eval_every=1)
    return open_sessions(task, teacher, [learners.make("ital")], run)[0]


def _only_lane(numbers: Numbers) -> Numbers:
    """Return the numbers of a session with a single learner, without the axis of lanes."""
    return numbers._replace(lanes=jax.tree.map(lambda leaf: leaf[:, 0], numbers.lanes))


@functools.partial(jax.jit, static_argnums=0)
def _promised(
    program: Program, numbers: Numbers, starts: Params, keys: Array, betas: Array
) -> dict[str, Array]:
    """Evaluate Theorem 1 at sampled ν between a start and ν*, one seed each.

    ν′ − ν̂ is written as (1−q_c) times a direction whose length does not depend on 1−q_c. So an
    improvement can be recognised even if the step itself is too small for a floating-point number.

    Args:
        program: the program of a session with a single learner.
        numbers: its numbers.
        starts: the starts of its seeds.
        keys: random keys (batch, seed).
        betas: the β to try (K,).

    Returns:
        Whether the conditions of the theorem hold (batch, seed), and whether the aware step is the
        better one at each β (batch, seed, K).
    """

    def of_seed(
        world: World, start: Params, key: PRNGKeyArray, lane: LaneNumbers
    ) -> dict[str, Array]:
        between, batch = jax.random.split(key)
        target = world.truth.target
        to_start = add_scaled(start, -1.0, target)
        params = add_scaled(target, jax.random.uniform(between), to_start)
        drawn = draw(program, world, batch)
        lesson = first_lesson(program, world, drawn, numbers.last_step, params, lane)

        # The naive step ν̂ follows the gradient of the chosen example alone.
        lr = lane.lr
        is_chosen = jnp.arange(program.batch_size) == lesson.chosen
        naive = add_scaled(params, -lr, lesson.here.weighted_sum(is_chosen.astype(lr.dtype)))
        there = lesson.gradients(naive)
        # Only the conditions are read, and they do not depend on ν′: ν̂ stands in for it.
        held = theory.local_improvement(lr, lesson.chosen, lesson.here, there, naive, naive, target)
        volumes = volume.imitated(lr, lesson.here.squared_norms, lesson.here.losses, there.losses)
        progress = there.inner(add_scaled(naive, -1.0, target))

        runner_up = jnp.max(jnp.where(is_chosen, -jnp.inf, volumes))

        def improved(beta: Array) -> Array:
            weights = jnp.exp(beta * (volumes - jnp.max(volumes)))
            # 1 − q_c as a sum over the others is accurate even if it is tiny.
            of_others = jnp.sum(jnp.where(is_chosen, 0.0, weights))
            rest = of_others / jnp.sum(weights)
            # The others' shares of 1 − q_c; relative to the runner-up, none of them underflows.
            others = jax.nn.softmax(jnp.where(is_chosen, -jnp.inf, beta * (volumes - runner_up)))
            direction = is_chosen - others
            length = 2 * beta * lr**2 * rest
            overshoot = squared_norm(there.weighted_sum(direction))
            return 2 * jnp.sum(direction * progress) > length * overshoot

        return {"conditions": held.conditions, "improved": jax.vmap(improved)(betas)}

    seeds = jax.vmap(of_seed, in_axes=(numbers.world_axes(program), 0, 0, 0))
    lanes = _only_lane(numbers).lanes
    return jax.lax.map(lambda key: seeds(numbers.worlds, starts, key, lanes), keys)


def guarantee(
    name: str,
    start: str | None,
    *,
    seeds: int,
    batches: int,
) -> dict[str, Any]:
    """Count how often the aware step beats the naive one at each β.

    Steps where the conditions of Theorem 1 hold and steps where they do not are counted apart.
    """
    session = _session(name, start, seeds)
    keys = jax.random.split(randomness.key(7), (batches, seeds))
    # A session may be padded with more seeds than asked for: they repeat the keys of the others,
    # and their results are cut off.
    repeated = np.arange(len(session.numbers.seeds)) % seeds
    sampled = _promised(
        session.program, session.numbers, session.starts, keys[:, repeated], jnp.asarray(GUARANTEE)
    )
    held = np.asarray(sampled["conditions"])[:, :seeds]  # (batch, seed)
    improved = np.asarray(sampled["improved"])[:, :seeds]  # (batch, seed, β)
    return {
        "beta": list(GUARANTEE),
        "steps": int(held.size),
        "held": int(held.sum()),
        "where_held": _mean_if_any(improved[held]),
        "elsewhere": _mean_if_any(improved[~held]),
    }


def _mean_if_any(improved: np.ndarray) -> list[float]:
    """Return the share of steps (N, β) that improved; empty without steps."""
    return improved.mean(axis=0).tolist() if len(improved) else []


def taught(
    name: str,
    start: str | None,
    *,
    seeds: int,
    steps: int,
) -> dict[str, Any]:
    """Teach learners of several β with diagnostics.

    Returns:
        The share of steps on which the conditions held, the share on which the aware step beat the
        naive one, and the distance left.
    """
    task = tasks.make(name)._replace(exam=None)
    betas = [multiple * float(task.beta) for multiple in MULTIPLES]
    result = ital.teach(
        task,
        "cooperative",
        [learners.teacher_aware(beta)._replace(name=f"beta {beta:g}") for beta in betas],
        seeds=seeds,
        steps=steps,
        init=start,
        eval_every=steps // 4,
        diagnostics=True,
    )
    shares = {}
    for signal in ("conditions", "improved"):
        # Each measurement is the share since the one before; the start has none.
        measured = result.curves[f"theorem_{signal}"].isel(step=slice(1, None))
        shares[signal] = measured.mean(("seed", "step")).values.tolist()
    distance = result.curves["distance"]
    left = distance.isel(step=-1) / distance.isel(step=0)
    return {
        "beta": betas,
        "task_beta": task.beta,
        "left": left.mean("seed").values.tolist(),
        **shares,
    }


@functools.partial(jax.jit, static_argnums=0)
def _imagined(
    program: Program,
    numbers: Numbers,
    starts: Params,
) -> tuple[Array, Array]:
    """Return what aware learners imagine at ν⁰ on the mini-batches of ``beta="auto"``.

    Returns:
        The volumes of the examples, and which of the examples are copies.
    """
    return at_start(program, imagined_volumes("imitated"), _only_lane(numbers), starts)


def sharpness(
    name: str,
    start: str | None,
    *,
    seeds: int,
) -> dict[str, Any]:
    """Return q's sharpness at the start over β, mean over seeds.

    Also return the value that ``auto`` takes, and the sharpness at the task's own β.
    """
    session = _session(name, start, seeds)
    imagined = _imagined(session.program, session.numbers, session.starts)
    volumes, same = (array[:seeds] for array in imagined)
    over_seeds = jax.vmap(rationality.sharpness, in_axes=(None, 0, 0))
    curve = [float(over_seeds(jnp.asarray(beta), volumes, same).mean()) for beta in SHARPNESS]
    auto_of_seeds = jax.vmap(rationality.auto_beta, in_axes=(None, None, 0, 0))
    auto = auto_of_seeds(jnp.asarray(LR), jnp.asarray(1.0), volumes, same)
    task_beta = tasks.make(name).beta
    return {
        "beta": list(SHARPNESS),
        "sharpness": curve,
        "auto": np.asarray(auto).tolist(),
        "cap": rationality.LINEAR / (2 * LR),
        "task_beta": task_beta,
        "at_task_beta": float(over_seeds(jnp.asarray(task_beta), volumes, same).mean()),
    }


def panel(
    name: str,
    start: str | None,
    *,
    seeds: int,
    steps: int,
) -> dict[str, Any]:
    """Return the whole panel for one task and one start.

    It includes the assumptions of the corollary: monotonicity and its premises.
    """
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
