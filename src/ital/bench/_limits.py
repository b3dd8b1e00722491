"""What a machine can do at best, and what one teaching step asks of it: the bound of a step and how far it is away."""

import functools
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.gradients import HIGHEST
from ital.teaching import Drawn, Lane, Session, draw, teaching_step

CHAIN = 16  # kernels in a row, to time one


class Limits(NamedTuple):
    """Measured peaks: bytes a second by the bytes of an array, operations a second, seconds of a loop and a kernel."""

    copy: dict[int, float]
    arithmetic: float
    loop: float
    kernel: float

    def bandwidth(self, size: float) -> float:
        """Bytes a second where a step moves ``size`` bytes: small arrays stay in a cache."""
        return max(rate for bytes_, rate in self.copy.items() if bytes_ >= min(size, max(self.copy)))


class Cost(NamedTuple):
    """What one step of one lane needs, and how many kernels a step of all lanes is."""

    flops: float
    bytes: float
    kernels: int


def measure_limits() -> Limits:
    """Copies of arrays from 64 KiB to 256 MiB, a large matrix product in full precision, loops of tiny kernels."""
    on_cpu = jax.default_backend() == "cpu"
    sizes = [2**power for power in range(16, 29, 3)] + [2**28]
    n = 1024 if on_cpu else 8192
    matrix = jnp.ones((n, n))
    product = _seconds(jax.jit(functools.partial(jnp.matmul, precision=HIGHEST)), matrix, matrix)
    one, many = (_loop(kernels) for kernels in (1, CHAIN))
    kernel = max(many - one, 0.0) / (CHAIN - 1)
    return Limits({size: _copy(size) for size in sizes}, 2 * n**3 / product, max(one - kernel, 0.0), kernel)


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """The least of five times, after compilation."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


def _copy(size: int) -> float:
    """Bytes read and written a second when an array of that size is changed again and again."""
    rounds = max(2, min(2000, 2**29 // size))
    again = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda i, x: x + 1.0, x))
    return 2 * size * rounds / _seconds(again, jnp.zeros(size // 4, jnp.float32))


def _loop(kernels: int, rounds: int = 2000) -> float:
    """Seconds of a round of a loop with so many kernels that depend on one another and do next to nothing."""

    def body(i: Any, x: Any) -> Any:
        for _ in range(kernels):
            x = jax.lax.optimization_barrier(x + 1.0)
        return x

    return _seconds(jax.jit(lambda x: jax.lax.fori_loop(0, rounds, body, x)), jnp.zeros(8)) / rounds


def cost(session: Session, every: int) -> Cost:
    """One step and its share of a measurement, from the compiler's own analysis (it counts an inner loop once)."""
    program, numbers, lanes = session.program, session.numbers, session.carry.lanes
    axes = numbers.world_axes(program)
    drawn = jax.vmap(functools.partial(draw, program), in_axes=(axes, 0))(numbers.worlds, numbers.keys)
    per_lane = (numbers.lr, numbers.learner, numbers.teacher)

    def seed(world: Any, drawn: Drawn, numbers: Any, lanes: Lane) -> Lane:
        one = functools.partial(teaching_step, program, world, drawn)
        return jax.vmap(one, in_axes=(0, None, 0))(numbers, jnp.zeros((), int), lanes)[0]

    step = _analysed(jax.vmap(seed, in_axes=(axes, 0, 0, 0)), numbers.worlds, drawn, per_lane, lanes)
    measure = jax.vmap(jax.vmap(program.rules.measure, in_axes=(0, None)), in_axes=(0, axes.truth))
    measurement = _analysed(measure, lanes.params, numbers.worlds.truth)
    flops, bytes_ = ((a + b / every) / numbers.lr.size for a, b in zip(step[:2], measurement[:2], strict=True))
    return Cost(flops, bytes_, step.kernels)


def _analysed(function: Callable[..., Any], *arguments: Any) -> Cost:
    """Operations as written, bytes as compiled, and the kernels of the compiled program."""
    lowered = jax.jit(function).lower(*arguments)
    compiled = lowered.compile()
    written, made = (_as_dict(one.cost_analysis()) for one in (lowered, compiled))
    return Cost(
        written.get("flops", 0.0), max(made.get("bytes accessed", 0.0), 0.0), _kernels(compiled.as_text() or "")
    )


def _as_dict(analysis: Any) -> dict[str, float]:
    """The analysis of a program; some versions of JAX give a list of one."""
    return dict((analysis[0] if isinstance(analysis, list) else analysis) or {})


def _kernels(text: str) -> int:
    """Operations of the compiled program that do work when it runs, not counting what is inside a loop twice."""
    idle = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")
    entry = text.partition("\nENTRY ")[2].partition("\n}")[0]
    operations = re.findall(r"^  (?:ROOT )?%?[\w.-]+ = .*? ([a-z][\w-]*)\(", entry, re.MULTILINE)
    return sum(name not in idle for name in operations)


def bounds(limits: Limits, cost: Cost, lanes: int) -> dict[str, float]:
    """Seconds that one step of all lanes takes at least, for each reason."""
    moved = cost.bytes * lanes
    return {
        "memory": moved / limits.bandwidth(moved),
        "arithmetic": cost.flops * lanes / limits.arithmetic,
        "launch": limits.loop + cost.kernels * limits.kernel,
    }
