"""The planner: looks several mini-batches ahead and searches for the best sequence of examples."""

import functools
from typing import Any, NamedTuple

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


def stepped(
    learner: LearnerView,
    lr: Scalar,
    depth: int,
    params: Params,
    chosen: Array,
) -> Params:
    """Return the parameters after a naive step on an example of that mini-batch."""
    gradients = learner.gradients(params, depth)
    losses = gradients.losses
    is_chosen = jnp.arange(len(losses)) == chosen
    gradient = gradients.weighted_sum(is_chosen.astype(losses.dtype))
    return add_scaled(params, -lr, gradient)


class Beam(NamedTuple):
    """Plans, one per row.

    Attributes:
        first: the first example of each plan.
        worth: the sum of its exact volumes.
    """

    first: Array
    worth: Array


def search(learner: LearnerView, lr: Scalar, horizon: int, firsts: Array) -> Beam:
    """Continue plans by beam search: ``horizon`` naive steps, of which the first are given.

    Args:
        learner: the learner.
        lr: the step size.
        horizon: number of steps of a plan.
        firsts: the first examples of the plans.

    Returns:
        The plans that are kept; the greedy one is among them at every depth.
    """
    # One entry per plan: its first example, its latest example, its worth, and where it leads.
    chosen = firsts
    worth = learner.volumes[firsts]
    plans = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(firsts)), learner.params)
    for depth in range(1, horizon):
        step = functools.partial(stepped, learner, lr, depth - 1)
        plans = jax.vmap(step)(plans, chosen)
        # (plan, B): every plan, continued by every example of the next mini-batch.
        volumes_of = functools.partial(volumes_at, learner, lr, depth)
        volumes = jax.vmap(volumes_of)(plans)
        totals = (worth[:, None] + volumes).ravel()
        # The first plan stays greedy; the best of all others follow.
        greedy = first_largest(volumes[0])
        kept = jnp.concatenate([greedy[None], largest(totals, WIDTH - 1)])
        batch_size = volumes.shape[1]
        parents = kept // batch_size
        chosen = kept % batch_size
        of_parents = functools.partial(jnp.take, indices=parents, axis=0)
        plans = jax.tree.map(of_parents, plans)
        firsts = firsts[parents]
        worth = totals[kept]
    return Beam(firsts, worth)


def plan_worths(learner: LearnerView, lr: Scalar, horizon: int) -> PerExample:
    """Return the worth of the best plan that begins with each example (B,).

    It is by these scores that a planner chooses, with a beam for every first example.

    Args:
        learner: the learner.
        lr: the step size.
        horizon: number of naive steps of a plan.

    Returns:
        The sum of the exact volumes of the plan; the volumes themselves for one step.
    """
    firsts = jnp.arange(len(learner.volumes))[:, None]
    return jax.vmap(lambda first: jnp.max(search(learner, lr, horizon, first).worth))(firsts)


@functools.cache  # one object per horizon: teachers that share it share a program
def planning(horizon: int) -> ChooseFn:
    """Return the first example of the best plan of ``horizon`` naive steps, found by beam search.

    A plan is worth the sum of its exact volumes: ‖ν−ν*‖² before it less ‖ν−ν*‖² after it. The first
    plan of the beam is the greedy one at every depth, so the best plan is never worse than greed on
    the same mini-batches.
    """

    def choose(
        noise: Any,
        view: TeacherView,
        learner: LearnerView,
        settings: Any,
    ) -> Int[Array, ""]:
        found = search(learner, view.lr, horizon, largest(learner.volumes, WIDTH))
        best = first_largest(found.worth)
        return found.first[best]

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
