"""Online inverse reinforcement learning: the reward of every cell, from demonstrated actions."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import volume
from ital._types import Array, PRNGKeyArray, Scalar
from ital.errors import InputError
from ital.gradients import HIGHEST, Gradients
from ital.models import Init
from ital.tasks._base import Metric, Rules, Task, TeacherSide, Truth, World

ACTIONS = ("up", "down", "left", "right")
MOST_SWEEPS = 10_000


class Dynamics(NamedTuple):
    """Where actions lead. ``expect(u)`` (A, S) is the mean of u over the next state of each action in each state;
    ``spread(m)`` (S,) is its transpose. ``survival`` is the largest probability of not dying in a step.
    """

    states: int
    expect: Callable[[Array], Array]
    spread: Callable[[Array], Array]
    survival: float


@functools.cache
def grid(size: int, slip: float = 0.06, death: float = 0.02) -> Dynamics:
    """A size × size grid: an action goes its way, or with probability ``slip`` in each other direction, or dies.

    Bumping into the wall stays. Only the four neighbours are ever looked at.
    """
    own_way = 1.0 - death - 3 * slip

    def neighbours(u: Array) -> Array:
        """u one step up, down, left and right of every cell (4, n, n)."""
        up = jnp.concatenate([u[:1], u[:-1]])
        down = jnp.concatenate([u[1:], u[-1:]])
        left = jnp.concatenate([u[:, :1], u[:, :-1]], axis=1)
        right = jnp.concatenate([u[:, 1:], u[:, -1:]], axis=1)
        return jnp.stack([up, down, left, right])

    def expect(u: Array) -> Array:
        near = neighbours(u.reshape(size, size))
        return ((own_way - slip) * near + slip * jnp.sum(near, axis=0)).reshape(4, -1)

    def spread(m: Array) -> Array:
        arriving = ((own_way - slip) * m + slip * jnp.sum(m, axis=0)).reshape(4, size, size)
        up, down, left, right = arriving
        zero_row, zero_column = jnp.zeros((1, size), m.dtype), jnp.zeros((size, 1), m.dtype)
        moved = (
            jnp.concatenate([up[1:], zero_row])
            + jnp.concatenate([zero_row, down[:-1]])
            + jnp.concatenate([left[:, 1:], zero_column], axis=1)
            + jnp.concatenate([zero_column, right[:, :-1]], axis=1)
        )
        stayed = moved.at[0].add(up[0]).at[-1].add(down[-1]).at[:, 0].add(left[:, 0]).at[:, -1].add(right[:, -1])
        return stayed.reshape(-1)

    return Dynamics(size * size, expect, spread, 1.0 - death)


class Planning(NamedTuple):
    """How everybody plans: discount γ, sharpness k of the soft maximum, and when value iteration stops."""

    discount: float = 0.5
    sharpness: float = 220.0
    tolerance: float = 1e-6


class Plan(NamedTuple):
    """What follows from a reward: the values V, and Q (A, S)."""

    reward: Array
    values: Array
    q: Array


def bellman(dynamics: Dynamics, planning: Planning, reward: Array, values: Array) -> tuple[Array, Array]:
    """Soft Bellman backup: Q(s,a) = Σ P(s′|s,a)[r(s′)+γV(s′)], V(s) = (1/k) log Σₐ exp(kQ(s,a)); returns V, Q."""
    q = dynamics.expect(reward + planning.discount * values)
    return jax.nn.logsumexp(planning.sharpness * q, axis=0) / planning.sharpness, q


def plan(dynamics: Dynamics, planning: Planning, reward: Array, values: Array) -> Plan:
    """Value iteration from ``values`` until the largest change is below the tolerance (NaN if it never is)."""

    def go_on(state: tuple[Array, Array, Array]) -> Array:
        sweeps, change, _ = state
        return (change > planning.tolerance) & (sweeps < MOST_SWEEPS)

    def sweep(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        sweeps, _, values = state
        better, _ = bellman(dynamics, planning, reward, values)
        return sweeps + 1, jnp.max(jnp.abs(better - values)), better

    begin = jnp.zeros((), int), jnp.full((), jnp.inf, values.dtype), values
    _, change, values = jax.lax.while_loop(go_on, sweep, begin)
    values = jnp.where(change <= planning.tolerance, values, jnp.nan)
    return Plan(reward, values, bellman(dynamics, planning, reward, values)[1])


def log_policy(q: Array) -> Array:
    """log π(a|s), π ∝ exp Q: the policy of everyone."""
    return jax.nn.log_softmax(q, axis=0)


def geometric_solve(matrix: Array, right: Array, rate: float, tolerance: float) -> Array:
    """(I − A)⁻¹ b for ‖A‖ ≤ rate < 1, as (I+A)(I+A²)(I+A⁴)…b: matrix products only."""
    doublings = max(1, math.ceil(math.log2(math.log(tolerance) / math.log(rate))))
    for last in (*(False,) * (doublings - 1), True):
        right = right + jnp.matmul(matrix, right, precision=HIGHEST)
        matrix = matrix if last else jnp.matmul(matrix, matrix, precision=HIGHEST)
    return right


def following(dynamics: Dynamics, policy: Array) -> Array:
    """P_πᵀ (S, S): column s says where ``policy`` (A, S) leads from state s."""
    one_hot = jnp.eye(dynamics.states, dtype=policy.dtype)
    return jax.vmap(lambda state: dynamics.spread(policy * state), out_axes=1)(one_hot)


class Side(NamedTuple):
    """What a player knows: his encoding of the cells, and log π* (A, S) if he is the teacher."""

    encoding: Any
    log_policy: Any = None


class TrueWorld(NamedTuple):
    """What measurements need: the reward of every cell, log π* (A, S), and the learner's encoding."""

    reward: Any
    log_policy: Any
    encoding: Any


class Demonstrations(NamedTuple):
    """A mini-batch: states, the actions shown there, and what the player knows of the world."""

    states: Array
    actions: Array
    encoding: Array
    log_policy: Any


def reward_of(encoding: Array, params: Array) -> Array:
    """r(s) = features(s)·w with one-hot features: ``encoding[s]`` is the place of cell s in w."""
    return params[encoding]


def in_encoding(encoding: Array, per_cell: Array) -> Array:
    """The transpose of :func:`reward_of`."""
    return jnp.zeros_like(per_cell).at[encoding].set(per_cell)


def _reward_gradients(dynamics: Dynamics, planning: Planning, known: Plan, shown: Demonstrations) -> Gradients:
    """−log π(a|s) of each demonstration and its gradients in the reward of every cell.

    Implicit differentiation of the fixed point: with c = P_a(s,·) − Σ_b π(b|s)P_b(s,·) and P_μ the transitions under
    μ = softmax(kQ), the gradient of −log π(a|s) is −(I − γP_μᵀ)⁻¹c (docs/irl.md derives it).
    """
    log_pi = log_policy(known.q)
    soft_greedy = jax.nn.softmax(planning.sharpness * known.q, axis=0)
    discounted = planning.discount * following(dynamics, soft_greedy)
    solve = functools.partial(
        geometric_solve, discounted, rate=planning.discount * dynamics.survival, tolerance=planning.tolerance
    )

    def surprise(state: Array, action: Array) -> Array:
        """−c as weights (A, S) of state-action pairs."""
        is_action = jnp.arange(known.q.shape[0]) == action
        return (jnp.exp(log_pi[:, state]) - is_action)[:, None] * (jnp.arange(known.q.shape[1]) == state)

    weights = jax.vmap(surprise)(shown.states, shown.actions)  # (B, A, S)
    sources = jax.vmap(dynamics.spread)(weights)  # (B, S)

    return Gradients(
        losses=-log_pi[shown.actions, shown.states],
        squared_norms=jnp.sum(solve(sources.T) ** 2, axis=0),
        inner=lambda v: (
            sources @ geometric_solve(discounted.T, v, planning.discount * dynamics.survival, planning.tolerance)
        ),
        weighted_sum=lambda w: solve((w @ sources)[:, None])[:, 0],
    )


@functools.cache
def _rules(dynamics: Dynamics, planning: Planning) -> Rules:
    planned = functools.partial(plan, dynamics, planning)

    def start(key: PRNGKeyArray, init: Init, world: World) -> Array:
        return init.draw(key, (dynamics.states,))

    def draw(key: PRNGKeyArray, world: World, batch_size: int) -> tuple[Array, Array]:
        """States uniform with replacement, each with an action of the teacher's policy."""
        where, what = jax.random.split(key)
        states = jax.random.randint(where, (batch_size,), 0, dynamics.states)
        actions = jax.random.categorical(what, world.teacher.examples.log_policy[:, states], axis=0)
        return states, actions

    def show(side: "Side", drawn: tuple[Array, Array]) -> Demonstrations:
        return Demonstrations(*drawn, *side)

    def feedback(params: Array, examples: Demonstrations, previous: Plan) -> Plan:
        """The learner's estimate of every cell's reward, and what follows from it: anyone could plan with it."""
        return planned(reward_of(examples.encoding, params), previous.values)

    def volumes(known: Plan, examples: Demonstrations, target: Array, lr: Scalar) -> Array:
        """Eq. (imit-teacher) with the loss of a demonstration; her encoding only reorders the gradient."""
        here = _reward_gradients(dynamics, planning, known, examples)
        target_losses = -examples.log_policy[examples.actions, examples.states]
        return volume.imitated(lr, here.squared_norms, here.losses, target_losses)

    def gradients(params: Array, examples: Demonstrations, known: Plan) -> Gradients:
        per_cell = _reward_gradients(
            dynamics, planning, planned(reward_of(examples.encoding, params), known.values), examples
        )
        return per_cell._replace(
            inner=lambda v: per_cell.inner(reward_of(examples.encoding, v)),
            weighted_sum=lambda w: in_encoding(examples.encoding, per_cell.weighted_sum(w)),
        )

    def measure(params: Array, truth: Truth) -> dict[str, Array]:
        world = truth.test
        own = planned(reward_of(world.encoding, params), jnp.zeros_like(params))
        gap = params - truth.target
        differences = jnp.abs(jnp.exp(log_policy(own.q)) - jnp.exp(world.log_policy))
        return {
            "distance": jnp.linalg.norm(gap),
            "distance_centred": jnp.linalg.norm(gap - jnp.mean(gap)),
            "policy_tv": jnp.mean(0.5 * jnp.sum(differences, axis=0)),
            "policy_gap": jnp.mean(jnp.max(differences, axis=0)),
            "reward": expected_return(dynamics, own.q, world.reward),
        }

    def references(start: Array, truth: Truth) -> dict[str, dict[str, Array]]:
        floor = jnp.sqrt(dynamics.states) * jnp.abs(jnp.mean(start - truth.target))
        own = planned(truth.test.reward, jnp.zeros_like(truth.test.reward))
        return {
            "distance": {"floor": floor},
            "reward": {"reference": expected_return(dynamics, own.q, truth.test.reward)},
        }

    def first_feedback(world: World) -> Plan:
        zeros = jnp.zeros(dynamics.states, world.truth.target.dtype)
        return Plan(zeros, zeros, dynamics.expect(zeros))

    return Rules(start, draw, show, feedback, volumes, gradients, measure, references, first_feedback)


def expected_return(dynamics: Dynamics, q: Array, reward: Array) -> Array:
    """The exact undiscounted return until death of the policy greedy in Q, from a uniform start (a linear solve)."""
    greedy = (jnp.arange(q.shape[0])[:, None] == jnp.argmax(q, axis=0)).astype(reward.dtype)
    transposed = following(dynamics, greedy)
    return jnp.mean(geometric_solve(transposed.T, transposed.T @ reward, dynamics.survival, 1e-6))


def from_rewards(
    name: str,
    reward: Callable[[int], np.ndarray],
    dynamics: Dynamics,
    *,
    beta: float,
    title: str,
    planning: Planning,
    settings: dict[str, Any] | None = None,
) -> Task:
    """A task of online IRL from a function that draws the reward of every cell for a seed.

    The learner encodes the cells in order, the teacher in an order of her own.
    """
    check(name, dynamics, planning)
    rules = _rules(dynamics, planning)

    @jax.jit
    def policy_of(reward: Array) -> Array:
        return log_policy(plan(dynamics, planning, reward, jnp.zeros_like(reward)).q)

    def world(seed: int) -> World:
        cells = np.asarray(reward(seed), jnp.result_type(float))
        log_pi = np.asarray(policy_of(cells))
        if not np.isfinite(log_pi).all():
            raise InputError(f"task {name!r}: value iteration did not converge in {MOST_SWEEPS} sweeps")
        encoding = np.random.default_rng([seed, 0x656E63]).permutation(len(cells)).astype(np.int32)
        target = np.empty_like(cells)
        target[encoding] = cells
        in_order = np.arange(len(cells), dtype=np.int32)
        return World(
            learner=Side(in_order),
            teacher=TeacherSide(Side(encoding, log_pi), target),
            truth=Truth(cells, TrueWorld(cells, log_pi, in_order)),
        )

    return Task(
        name=name,
        title=title,
        world=world,
        rules=rules,
        beta=beta,
        metrics={
            "distance": Metric("Distance to the target"),
            "distance_centred": Metric("Distance to the target, centred"),
            "policy_tv": Metric("Policy total variation"),
            "policy_gap": Metric("Largest difference of policies"),
            "reward": Metric("Expected reward", higher_is_better=True),
        },
        panels=("distance", "policy_tv", "reward"),
        init=Init("uniform", 2.0),
        settings={"states": dynamics.states, **planning._asdict(), **(settings or {})},
    )


def check(name: str, dynamics: Dynamics, planning: Planning) -> None:
    """Refuses worlds in which planning has no end."""
    if not planning.sharpness > 0:
        raise InputError(f"task {name!r}: the sharpness k must be positive, not {planning.sharpness}")
    if not 0 <= planning.discount * dynamics.survival < 1:
        raise InputError(f"task {name!r}: discount {planning.discount} needs a chance to die, or to be below 1")
    if not planning.tolerance > 0:
        raise InputError(f"task {name!r}: the tolerance must be positive, not {planning.tolerance}")


def irl_dense(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, every cell's reward ~ U[−2, 2]; the teacher's encoding is shuffled. β = 25000."""
    return from_rewards(
        "irl-dense",
        lambda seed: np.random.default_rng(seed).uniform(-2, 2, size * size),
        grid(size),
        beta=25000.0,
        title="Online IRL, dense rewards",
        planning=Planning(sharpness=220.0),
    )


def irl_sparse(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, three random cells with reward 1, else 0; encoding shuffled. β = 30000."""

    def reward(seed: int) -> np.ndarray:
        cells = np.zeros(size * size)
        cells[np.random.default_rng(seed).choice(size * size, 3, replace=False)] = 1.0
        return cells

    return from_rewards(
        "irl-sparse",
        reward,
        grid(size),
        beta=30000.0,
        title="Online IRL, sparse rewards",
        planning=Planning(sharpness=200.0),
    )
