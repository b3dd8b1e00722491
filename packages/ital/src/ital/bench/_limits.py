"""The limits of a machine, the cost of one teaching step, and the bounds on its speed that follow from them."""

import functools
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.gradients import HIGHEST
from ital.teaching import Drawn, Lane, Moment, Session, draw, key_of, teaching_step

CHAIN = 64  # kernels in a row, to time one


class Limits(NamedTuple):
    """Measured peaks: bytes per second by array size, operations per second, seconds per loop round and per kernel.

    ``loop`` is the time of one round of a loop that contains one kernel. ``kernel`` is the time of one more kernel in
    a long chain: a GPU finishes a short chain while the next round is being launched.
    """

    copy: dict[int, float]
    arithmetic: float
    loop: float
    kernel: float

    def bandwidth(self, size: float) -> float:
        """Bytes per second from an array of ``size`` bytes; a small array stays in a cache."""
        return max(
            rate for bytes_, rate in self.copy.items() if bytes_ >= min(size, max(self.copy))
        )


class Cost(NamedTuple):
    """The least that one step of one lane needs, and the number of kernels in a step of all lanes.

    ``bytes`` must be read and written even if everything else stays in registers: parameters, the rows of the
    mini-batch, a share of the test set. They are spread over ``reach`` bytes, which tells which memory holds them.
    """

    flops: float
    bytes: float
    reach: float
    kernels: int


def measure_limits() -> Limits:
    """Time copies of 64 KiB to 256 MiB, a large matrix product in full precision, and loops of tiny kernels."""
    n = 1024 if jax.default_backend() == "cpu" else 8192
    matrix = jnp.ones((n, n))
    product = _seconds(jax.jit(functools.partial(jnp.matmul, precision=HIGHEST)), matrix, matrix)
    (loop, _), (short, few), (long, many) = (_loop(links) for links in (1, CHAIN, 2 * CHAIN))
    copies = {2**power: _copy(2**power) for power in (16, 19, 22, 25, 28)}
    return Limits(copies, 2 * n**3 / product, loop, (long - short) / (many - few))


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """The shortest of five runs, after compilation."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


def _copy(size: int) -> float:
    """Bytes read and written per second when an array of that size is updated repeatedly."""
    rounds = min(2000, 2**32 // size)
    changed = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda i, x: x + 1.0, x))
    return 2 * size * rounds / _seconds(changed, jnp.zeros(size // 4, jnp.float32))


def _loop(links: int, rounds: int = 2000) -> tuple[float, int]:
    """Seconds per round of a loop of kernels that wait for one another and do almost nothing, and their number.

    Each round subtracts a maximum, which must be known first, so the compiler cannot fuse the kernels into one.
    """

    def body(x: Any) -> Any:
        for _ in range(links):
            x = x - 1e-3 * jnp.max(x)
        return x

    start = jnp.ones(64)
    kernels = _kernels(jax.jit(body).lower(start).compile().as_text() or "")
    many_rounds = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda i, x: body(x), x))
    return _seconds(many_rounds, start) / rounds, kernels


def cost(session: Session, every: int) -> Cost:
    """The cost of one step and its share of a measurement. The compiler counts the operations (one round of a loop)."""
    program, numbers, lanes = session.program, session.numbers, session.carry.lanes
    worlds, axes = numbers.worlds, numbers.world_axes(program)
    drawn = jax.vmap(functools.partial(draw, program), in_axes=(axes, 0))(
        worlds, jax.vmap(key_of)(numbers.seeds)
    )
    moment = Moment(jnp.zeros((), int), numbers.last_step)

    def seed(world: Any, drawn: Drawn, numbers: Any, lanes: Lane) -> Lane:
        step = functools.partial(teaching_step, program, world, drawn)
        return jax.vmap(step, in_axes=(0, None, 0))(numbers, moment, lanes)[0]

    flops, kernels = _analysed(
        jax.vmap(seed, in_axes=(axes, 0, 0, 0)), worlds, drawn, numbers.lanes, lanes
    )
    measure = jax.vmap(jax.vmap(program.rules.measure, in_axes=(0, None)), in_axes=(0, axes.truth))
    measurement, _ = _analysed(measure, lanes.params, worlds.truth)
    shown = jax.eval_shape(
        jax.vmap(program.rules.show, in_axes=(axes.learner, 0)), worlds.learner, drawn.batch
    )
    tested = _bytes(worlds.truth.test) + _bytes(lanes.params)
    return Cost(
        flops=(flops + measurement / every) / numbers.lanes.lr.size,
        bytes=(2 * _bytes(lanes) + _bytes(shown) + tested / every) / numbers.lanes.lr.size,
        reach=(_bytes(lanes) + _bytes(worlds.learner)) / numbers.lanes.lr.size,
        kernels=kernels,
    )


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _analysed(function: Callable[..., Any], *arguments: Any) -> tuple[float, int]:
    """Operations and kernels of a compiled program.

    The compiler does not count operations inside library calls; then the uncompiled program is counted.
    """
    lowered = jax.jit(function).lower(*arguments)
    compiled = lowered.compile()
    text = compiled.as_text() or ""
    analysis: Any = (lowered if "custom-call" in text else compiled).cost_analysis()
    first = analysis[0] if isinstance(analysis, list) else analysis  # in some versions of JAX
    return float((first or {}).get("flops", 0.0)), _kernels(text)


def _kernels(text: str) -> int:
    """Number of operations of a compiled program that do work when it runs; a loop counts as one."""
    idle = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")
    entry = text.partition("\nENTRY ")[2].partition("\n}")[0]
    operations = re.findall(r"^  (?:ROOT )?%?[\w.-]+ = .*? ([a-z][\w-]*)\(", entry, re.MULTILINE)
    return sum(name not in idle for name in operations)


def bounds(limits: Limits, cost: Cost, lanes: int) -> dict[str, float]:
    """The least number of seconds that one step of all lanes takes, by the resource that limits it."""
    return {
        "memory": cost.bytes * lanes / limits.bandwidth(cost.reach * lanes),
        "arithmetic": cost.flops * lanes / limits.arithmetic,
        "launch": max(limits.loop, cost.kernels * limits.kernel),
    }
