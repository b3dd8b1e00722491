"""The planner: looks several mini-batches ahead and searches for the best sequence of examples."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ital import volume
from ital.errors import InputError
from ital.gradients import add_scaled
from ital.teachers._base import LearnerView, Teacher, TeacherView, first_largest, largest
from ital.teachers.protocols import ChooseFn
from ital.tools.checks import shown
from ital.tools.types import Array, Int, Params, PerExample, Scalar

# Plans kept at each depth.
WIDTH = 16
# The most mini-batches that a planner sees: each is compiled.
MOST = 100


def volumes_at(learner: LearnerView, lr: Scalar, depth: int, params: Params) -> PerExample:
    """Return the exact teaching volumes of the mini-batch that comes ``depth`` steps later (B,)."""
    gradients = learner.gradients(params, depth)
    progress = gradients.inner(add_scaled(params, -1.0, learner.target))
    return volume.exact(lr, gradients.squared_norms, progress)


def stepped(learner: LearnerView, lr: Scalar, depth: int, params: Params, chosen: Array) -> Params:
    """Return the parameters after a naive step on an example of that mini-batch."""
    gradients = learner.gradients(params, depth)
    index = jnp.arange(len(gradients.losses))
    is_chosen = (index == chosen).astype(gradients.losses.dtype)
    return add_scaled(params, -lr, gradients.weighted_sum(is_chosen))


@functools.cache  # one object per horizon: teachers that share it share a program
def planning(horizon: int) -> ChooseFn:
    """Return the first example of the best plan of ``horizon`` naive steps, found by beam search.

    A plan is worth the sum of its exact volumes: ‖ν−ν*‖² before it less ‖ν−ν*‖² after it. The first
    plan of the beam is the greedy one at every depth, so the best plan is never worse than greed on
    the same mini-batches.
    """

    def choose(
        noise: Any, view: TeacherView, learner: LearnerView, settings: Any
    ) -> Int[Array, ""]:
        volumes_of = functools.partial(volumes_at, learner, view.lr)
        step = functools.partial(stepped, learner, view.lr)
        # One entry per plan: its first example, its latest example, its worth, and where it leads.
        firsts = largest(learner.volumes, WIDTH)
        chosen = firsts
        worth = learner.volumes[firsts]
        plans = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(firsts)), learner.params)
        for depth in range(1, horizon):
            plans = jax.vmap(functools.partial(step, depth - 1))(plans, chosen)
            # (plan, B): every plan, continued by every example of the next mini-batch.
            volumes = jax.vmap(functools.partial(volumes_of, depth))(plans)
            totals = (worth[:, None] + volumes).ravel()
            greedy = first_largest(volumes[0])
            kept = jnp.concatenate([greedy[None], largest(totals, WIDTH - 1)])
            parents = kept // volumes.shape[1]
            chosen = kept % volumes.shape[1]
            plans = jax.tree.map(functools.partial(jnp.take, indices=parents, axis=0), plans)
            firsts = firsts[parents]
            worth = totals[kept]
        return firsts[first_largest(worth)]

    return choose


def planner(horizon: int | str = 3) -> Teacher:
    """Sees the next H mini-batches (3) and plans the best H examples, e.g. planner:5.

    It plans for a naive learner.

    Args:
        horizon: H, the number of mini-batches; 1 is the omniscient teacher.

    Returns:
        The teacher.

    Raises:
        InputError: if H is not a whole number from 1 to 100.
    """
    if not str(horizon).isdecimal() or int(horizon) < 1:
        raise InputError(
            "a planner is written planner:H with a whole number H of at least 1, "
            f"not planner:{horizon}"
        )
    number = int(horizon)
    if number > MOST:
        raise InputError(f"a planner sees at most {MOST} mini-batches ahead, not {shown(number)}")
    return Teacher(f"planner:{number}", planning(number), omniscient=True, ahead=number)
