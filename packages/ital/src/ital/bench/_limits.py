"""The limits of a machine, the cost of one teaching step, and the bounds that follow from them."""

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
    """Measured peaks of a machine.

    Attributes:
        copy: size of an array in bytes → bytes read and written per second.
        arithmetic: operations per second.
        loop: seconds of one round of a loop that contains one kernel.
        kernel: seconds of one more kernel in a long chain. It is not ``loop``, because a GPU
            finishes a short chain while the next round is being launched.
    """

    copy: dict[int, float]
    arithmetic: float
    loop: float
    kernel: float

    def bandwidth(self, size: float) -> float:
        """Return bytes per second from an array of ``size`` bytes."""
        # A small array stays in a cache, but a larger one cannot be faster than it.
        measured = min(size, max(self.copy))
        return max(rate for copied, rate in self.copy.items() if copied >= measured)


class Cost(NamedTuple):
    """The least that one step of one lane needs.

    Attributes:
        flops: operations.
        bytes: what must be read and written even if everything else stays in registers: parameters,
            the rows of the mini-batch, a share of the test set.
        reach: the bytes over which these are spread, which tells which memory holds them.
        kernels: number of kernels in a step of all lanes.
    """

    flops: float
    bytes: float
    reach: float
    kernels: int


def measure_limits() -> Limits:
    """Time copies of 64 KiB to 256 MiB, a large matrix product, and loops of tiny kernels."""
    n = 1024 if jax.default_backend() == "cpu" else 8192
    matrix = jnp.ones((n, n))
    product = _seconds(jax.jit(functools.partial(jnp.matmul, precision=HIGHEST)), matrix, matrix)
    loop, _ = _loop(1)
    # Two long chains: what their rounds have in common cancels.
    short, few = _loop(CHAIN)
    long, many = _loop(2 * CHAIN)
    copies = {size: _copy(size) for size in (2**16, 2**19, 2**22, 2**25, 2**28)}
    return Limits(copies, 2 * n**3 / product, loop, (long - short) / (many - few))


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the shortest of five runs, after compilation."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


def _copy(size: int) -> float:
    """Return bytes read and written per second when an array of that size is updated."""
    rounds = min(2000, 2**32 // size)
    changed = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda i, x: x + 1.0, x))
    return 2 * size * rounds / _seconds(changed, jnp.zeros(size // 4, jnp.float32))


def _loop(links: int, rounds: int = 2000) -> tuple[float, int]:
    """Return seconds per round of a loop of kernels that do almost nothing, and their number."""

    def body(x: Any) -> Any:
        for _ in range(links):
            # The maximum must be known first, so the compiler cannot fuse the kernels into one.
            x = x - 1e-3 * jnp.max(x)
        return x

    start = jnp.ones(64)
    kernels = _kernels(jax.jit(body).lower(start).compile().as_text() or "")
    many_rounds = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda i, x: body(x), x))
    return _seconds(many_rounds, start) / rounds, kernels


def cost(session: Session, every: int) -> Cost:
    """Return the cost of one step of one lane, with its share of a measurement.

    The compiler counts the operations, of one round where there is a loop.
    """
    program = session.program
    numbers = session.numbers
    lanes = session.carry.lanes
    worlds = numbers.worlds
    axes = numbers.world_axes(program)
    draw_seeds = jax.vmap(functools.partial(draw, program), in_axes=(axes, 0))
    drawn = draw_seeds(worlds, jax.vmap(key_of)(numbers.seeds))
    moment = Moment(jnp.zeros((), int), numbers.last_step)

    def step_of_seed(world: Any, drawn: Drawn, numbers: Any, lanes: Lane) -> Lane:
        step = functools.partial(teaching_step, program, world, drawn)
        return jax.vmap(step, in_axes=(0, None, 0))(numbers, moment, lanes)[0]

    step = jax.vmap(step_of_seed, in_axes=(axes, 0, 0, 0))
    measure = jax.vmap(jax.vmap(program.rules.measure, in_axes=(0, None)), in_axes=(0, axes.truth))
    show = jax.vmap(program.rules.show, in_axes=(axes.learner, 0))
    flops, kernels = _analysed(step, worlds, drawn, numbers.lanes, lanes)
    measurement, _ = _analysed(measure, lanes.params, worlds.truth)
    batch = jax.eval_shape(show, worlds.learner, drawn.batch)
    tested = _bytes(worlds.truth.test) + _bytes(lanes.params)
    number = numbers.lanes.lr.size
    return Cost(
        flops=(flops + measurement / every) / number,
        # Lanes are read and written, the rest is only read.
        bytes=(2 * _bytes(lanes) + _bytes(batch) + tested / every) / number,
        reach=(_bytes(lanes) + _bytes(worlds.learner)) / number,
        kernels=kernels,
    )


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _analysed(function: Callable[..., Any], *arguments: Any) -> tuple[float, int]:
    """Return the numbers of operations and of kernels of a compiled program."""
    lowered = jax.jit(function).lower(*arguments)
    compiled = lowered.compile()
    text = compiled.as_text() or ""
    # The compiler does not count operations inside library calls; then the uncompiled program is
    # counted.
    analysis: Any = (lowered if "custom-call" in text else compiled).cost_analysis()
    # Some versions of JAX return a list.
    first = analysis[0] if isinstance(analysis, list) else analysis
    return float((first or {}).get("flops", 0.0)), _kernels(text)


def _kernels(text: str) -> int:
    """Count the operations of a compiled program that do work when it runs; a loop is one."""
    idle = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")
    entry = text.partition("\nENTRY ")[2].partition("\n}")[0]
    operations = re.findall(r"^  (?:ROOT )?%?[\w.-]+ = .*? ([a-z][\w-]*)\(", entry, re.MULTILINE)
    return sum(name not in idle for name in operations)


def bounds(limits: Limits, cost: Cost, lanes: int) -> dict[str, float]:
    """Return the least seconds that one step of all lanes takes: resource → seconds."""
    return {
        "memory": cost.bytes * lanes / limits.bandwidth(cost.reach * lanes),
        "arithmetic": cost.flops * lanes / limits.arithmetic,
        "launch": max(limits.loop, cost.kernels * limits.kernel),
    }
