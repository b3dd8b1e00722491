"""Online inverse reinforcement learning: the reward of every state, from demonstrated actions."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital import volume
from ital._types import Array, PRNGKeyArray, Scalar
from ital.errors import InputError
from ital.gradients import HIGHEST, Gradients
from ital.models import Init
from ital.tasks import _mdp
from ital.tasks._base import Metric, Picture, Rules, Task, TeacherSide, Truth, World
from ital.tasks._mdp import Dynamics, Planning, Solution


class Side(NamedTuple):
    """What a player knows: his encoding of the states, and log π* (A, S) if he is the teacher.

    An encoding is a matrix of features (S, d); for one-hot features the place of each state in the weights (S,),
    or None if they are in order.
    """

    encoding: Any
    log_policy: Any = None


class TrueWorld(NamedTuple):
    """What measurements need: the reward of every state, log π* (A, S), and the learner's encoding."""

    reward: Any
    log_policy: Any
    encoding: Any


class Demonstrations(NamedTuple):
    """A mini-batch: states, the actions shown there, and what the player knows of the world."""

    states: Array
    actions: Array
    encoding: Any
    log_policy: Any


def one_hot(encoding: Any) -> bool:
    """Whether weights are rewards, in some order."""
    return encoding is None or encoding.ndim == 1


def reward_of(encoding: Any, params: Array) -> Array:
    """r(s) = features(s)·w."""
    if encoding is None:
        return params
    return params[encoding] if encoding.ndim == 1 else jnp.matmul(encoding, params, precision=HIGHEST)


def in_encoding(encoding: Any, per_state: Array) -> Array:
    """The transpose of :func:`reward_of`."""
    if encoding is None:
        return per_state
    if encoding.ndim == 1:
        return jnp.zeros_like(per_state).at[encoding].set(per_state)
    return jnp.matmul(encoding.T, per_state, precision=HIGHEST)


def implicit_gradients(dynamics: Dynamics, planning: Planning, known: Solution, shown: Demonstrations) -> Gradients:
    """−log π(a|s) of each demonstration, and its gradients in the weights of the reward.

    Implicit differentiation of the fixed point: with c = P_a(s,·) − Σ_b π(b|s)P_b(s,·) and P_μ the transitions under
    μ = softmax(kQ), the gradient of −log π(a|s) in the rewards is −(I − γP_μᵀ)⁻¹c (docs/irl.md derives it).
    """
    log_pi = _mdp.log_policy(known.q)
    soft_greedy = jax.nn.softmax(planning.sharpness * known.q, axis=0)
    onward = _mdp.onward(dynamics, planning, soft_greedy)

    def surprise(state: Array, action: Array) -> Array:
        """−c."""
        return dynamics.leave(state, jnp.exp(log_pi[:, state]) - (jnp.arange(dynamics.actions) == action))

    sources = jax.vmap(surprise)(shown.states, shown.actions)  # (B, S)

    def squared_norms() -> Array:
        gradients = onward.back(sources)
        if not one_hot(shown.encoding):
            gradients = jnp.matmul(gradients, shown.encoding, precision=HIGHEST)
        return jnp.sum(gradients**2, axis=1)

    def inner(v: Array) -> Array:
        return jnp.matmul(sources, onward.ahead(reward_of(shown.encoding, v)), precision=HIGHEST)

    def weighted_sum(weights: Array) -> Array:
        return in_encoding(shown.encoding, onward.back(jnp.matmul(weights, sources, precision=HIGHEST)))

    return Gradients(-log_pi[shown.actions, shown.states], squared_norms(), inner, weighted_sum)


@functools.cache
def _rules(dynamics: Dynamics, planning: Planning) -> Rules:
    plan = functools.partial(_mdp.plan, dynamics, planning)

    def start(key: PRNGKeyArray, init: Init, world: World) -> Array:
        return init.draw(key, world.truth.target.shape)

    def draw(key: PRNGKeyArray, world: World, batch_size: int) -> tuple[Array, Array]:
        """States uniform with replacement, each with an action of the teacher's policy."""
        where, what = jax.random.split(key)
        states = jax.random.randint(where, (batch_size,), 0, dynamics.states)
        actions = jax.random.categorical(what, world.teacher.examples.log_policy[:, states], axis=0)
        return states, actions

    def show(side: Side, drawn: tuple[Array, Array]) -> Demonstrations:
        return Demonstrations(*drawn, *side)

    def feedback(params: Array, examples: Demonstrations, previous: Solution) -> Solution:
        """The learner's estimate of every state's reward, and what follows from it: anyone could plan with it."""
        return _mdp.replan(dynamics, planning, reward_of(examples.encoding, params), previous.values)

    def volumes(known: Solution, examples: Demonstrations, target: Array, lr: Scalar) -> Array:
        """Eq. (imit-teacher) with the loss of a demonstration, in her encoding."""
        here = implicit_gradients(dynamics, planning, known, examples)
        target_losses = -examples.log_policy[examples.actions, examples.states]
        return volume.imitated(lr, here.squared_norms, here.losses, target_losses)

    def gradients(params: Array, examples: Demonstrations, known: Solution) -> Gradients:
        return implicit_gradients(dynamics, planning, known, examples)

    def measure(params: Array, truth: Truth) -> dict[str, Array]:
        world = truth.test
        reward = reward_of(world.encoding, params)
        own = plan(reward)
        gap = reward - world.reward
        differences = jnp.abs(jnp.exp(_mdp.log_policy(own.q)) - jnp.exp(world.log_policy))
        return {
            "distance": jnp.linalg.norm(params - truth.target),
            "distance_centred": jnp.linalg.norm(gap - jnp.mean(gap)),
            "policy_tv": jnp.mean(0.5 * jnp.sum(differences, axis=0)),
            "policy_gap": jnp.mean(jnp.max(differences, axis=0)),
            "reward": _mdp.expected_return(dynamics, planning, own.q, world.reward),
        }

    def references(start: Array, truth: Truth) -> dict[str, dict[str, Array]]:
        reward = truth.test.reward
        own = plan(reward)
        best = _mdp.expected_return(dynamics, planning, own.q, reward)
        lines = {"reward": {"reference": best}}
        if dynamics.even and one_hot(truth.test.encoding):  # demonstrations say nothing of the mean reward
            lines["distance"] = {"floor": jnp.sqrt(dynamics.states) * jnp.abs(jnp.mean(start - truth.target))}
        return lines

    def first_feedback(start: Array, world: World) -> Solution:
        return plan(reward_of(world.learner.encoding, start))

    return Rules(start, draw, show, feedback, volumes, gradients, measure, references, first_feedback)


def from_rewards(
    name: str,
    weights: Callable[[np.random.Generator], np.ndarray],
    dynamics: Dynamics,
    *,
    beta: float,
    title: str,
    planning: Planning,
    features: np.ndarray | None = None,
    settings: dict[str, Any] | None = None,
    picture: Picture | None = None,
) -> Task:
    """A task of online IRL from a function that draws the weights of the reward for a seed.

    r = features · weights, without ``features`` one weight per state. The teacher has the same features in an
    order of her own.
    """
    try:
        _mdp.check(dynamics, planning)
    except InputError as error:
        raise InputError(f"task {name!r}: {error}") from None
    rules = _rules(dynamics, planning)

    @jax.jit
    def policy_of(reward: Array) -> Array:
        return _mdp.log_policy(_mdp.plan(dynamics, planning, reward).q)

    def world(seed: int) -> World:
        rng = np.random.default_rng(seed)
        own = None if features is None else _as_float(features)
        order = rng.permutation(dynamics.states if features is None else features.shape[1])
        target = _as_float(weights(rng))
        hers = order.astype(np.int32) if own is None else own[:, np.argsort(order)]
        her_target = np.empty_like(target)
        her_target[order] = target
        reward = np.asarray(reward_of(own, jnp.asarray(target)))
        log_pi = np.asarray(policy_of(reward))
        if not np.isfinite(log_pi).all():
            raise InputError(
                f"task {name!r}: value iteration did not come to tolerance {planning.tolerance:g} in "
                f"{_mdp.MOST_SWEEPS} sweeps; raise the tolerance or lower the discount"
            )
        return World(
            learner=Side(own),
            teacher=TeacherSide(Side(hers, log_pi), her_target),
            truth=Truth(target, TrueWorld(reward, log_pi, own)),
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
        picture=picture,
    )


def _as_float(a: Any) -> np.ndarray:
    return np.asarray(a, jnp.result_type(float))


def on_grid(
    name: str,
    reward: Callable[[np.random.Generator], np.ndarray],
    size: int,
    *,
    slip: float = 0.06,
    death: float = 0.02,
    planning: Planning,
    **options: Any,
) -> Task:
    """A task of online IRL on a grid, which can be drawn as a map of rewards with the policy in arrows."""
    dynamics = _mdp.grid(size, slip, death)

    @jax.jit
    def policy(reward: Array) -> Array:
        return jnp.exp(_mdp.log_policy(_mdp.plan(dynamics, planning, reward).q))

    def cells(params: Any) -> tuple[np.ndarray, np.ndarray]:
        arrows = np.asarray(policy(jnp.asarray(params)))
        return np.reshape(params, (size, size)), arrows.reshape(4, size, size)

    caption = "Reward of entering each cell; arrows: where the policy leads, longer if surer."
    picture = Picture(cells, "reward", caption)
    return from_rewards(name, reward, dynamics, planning=planning, picture=picture, **options)


def irl_dense(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, every cell's reward ~ U[−2, 2]; the teacher's encoding is shuffled. β = 25000."""
    return on_grid(
        "irl-dense",
        lambda rng: rng.uniform(-2, 2, size * size),
        size,
        beta=25000.0,
        title="Online IRL, dense rewards",
        planning=Planning(sharpness=220.0),
    )


def irl_sparse(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, three random cells with reward 1, else 0; encoding shuffled. β = 30000."""
    if size < 2:
        raise InputError(f"three rewarding cells need a grid of size 2 at least, not {size}")

    def reward(rng: np.random.Generator) -> np.ndarray:
        cells = np.zeros(size * size)
        cells[rng.choice(size * size, 3, replace=False)] = 1.0
        return cells

    return on_grid(
        "irl-sparse",
        reward,
        size,
        beta=30000.0,
        title="Online IRL, sparse rewards",
        planning=Planning(sharpness=200.0),
    )


def irl(
    rewards: ArrayLike | Path | str | None = None,
    *,
    slip: float = 0.06,
    death: float = 0.02,
    discount: float = 0.5,
    sharpness: float = 220.0,
    tolerance: float = 1e-6,
    beta: float = 25000.0,
) -> Task:
    """Online IRL on a square map of one's own, a file or an array of rewards (--map FILE). β = 25000."""
    if rewards is None:
        raise InputError("task 'irl' needs a map of rewards: --map FILE, a text or CSV file with a line per row")
    cells = (
        read_map(rewards) if isinstance(rewards, Path | str) else check_map("the map", _mdp.real("the map", rewards))
    )
    size = len(cells)
    return on_grid(
        "irl",
        lambda rng: cells.ravel(),
        size,
        slip=slip,
        death=death,
        beta=beta,
        title=f"Online IRL, {size} × {size} map",
        planning=Planning(discount, sharpness, tolerance),
        settings={"map": hashlib.sha256(cells.tobytes()).hexdigest()[:16], "slip": slip, "death": death},
    )


def irl_tabular(
    transitions: ArrayLike,
    weights: ArrayLike,
    features: ArrayLike | None = None,
    *,
    discount: float = 0.5,
    sharpness: float = 220.0,
    tolerance: float = 1e-6,
    beta: float = 25000.0,
    name: str = "irl-tabular",
) -> Task:
    """Online IRL in any world: ``transitions[a, s, s′]``, reward = ``features`` (S, d) · ``weights`` (d,).

    Without features there is one weight per state. What a row of transitions lacks to 1 is the chance to die.
    """
    dynamics = _mdp.tabular(transitions)
    target = _mdp.real("weights", weights)
    encoded = None if features is None else _mdp.real("features", features)
    expected = (dynamics.states,) if encoded is None else encoded.shape[1:]
    if encoded is not None and (encoded.ndim != 2 or len(encoded) != dynamics.states or encoded.shape[1] == 0):
        raise InputError(f"task {name!r}: features have shape {encoded.shape}, expected ({dynamics.states}, d)")
    if target.shape != expected:
        raise InputError(f"task {name!r}: weights have shape {target.shape}, expected {expected}")
    if not np.isfinite(target).all() or (encoded is not None and not np.isfinite(encoded).all()):
        raise InputError(f"task {name!r}: weights and features must be finite numbers")
    digest = hashlib.sha256()
    for array in (transitions, target, () if encoded is None else encoded):
        digest.update(np.asarray(array, float).tobytes())
    return from_rewards(
        name,
        lambda rng: target,
        dynamics,
        beta=beta,
        title=f"Online IRL, {dynamics.states} states",
        planning=Planning(discount, sharpness, tolerance),
        features=encoded,
        settings={"world": digest.hexdigest()[:16]},
    )


def read_map(file: Path | str) -> np.ndarray:
    """A square of rewards from a text or CSV file: a line per row, numbers apart by commas, semicolons or blanks.

    Lines that are empty or begin with # are left out.
    """
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InputError(f"cannot read the map {file}: {reason}") from None
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        comma = next((mark for mark in ",;" if mark in line), None)
        try:
            rows.append([float(word) for word in line.split(comma)])
        except ValueError:
            wrong = next(word.strip() for word in line.split(comma) if not _is_number(word))
            raise InputError(f"{file}, line {number}: {wrong!r} is not a number") from None
        if len(rows[-1]) != len(rows[0]):
            raise InputError(f"{file}, line {number}: {len(rows[-1])} numbers, but {len(rows[0])} in the rows above")
    return check_map(str(file), np.asarray(rows))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def check_map(name: str, cells: np.ndarray) -> np.ndarray:
    """Refuses what is not a square of finite rewards."""
    if cells.size == 0:
        raise InputError(f"{name} holds no rewards")
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or len(cells) < 2:
        raise InputError(f"{name} must be a square of at least 2 × 2 rewards, not {' × '.join(map(str, cells.shape))}")
    if not np.isfinite(cells).all():
        raise InputError(f"{name} holds rewards that are not finite numbers")
    return cells.astype(float)
