"""The memory that a run needs, estimated from shapes before anything is computed."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ital.tasks import Task, World, stack_worlds
from ital.teaching._block import CHUNK
from ital.teaching._run import Run
from ital.tools import randomness
from ital.tools.memory import check_memory

# Copies of the parameters: before and after a step, and gradients.
COPIES = 4
# Smaller runs need no estimate.
FEW_SEEDS = 100
FEW_EXAMPLES = 2**14


def check_footprint(task: Task, run: Run, learners: int, seeds: Sequence[int]) -> None:
    """Raise InputError if worlds, mini-batches and parameters of a run would not fit into memory.

    Only runs with many seeds or large mini-batches are checked: it takes two worlds and a few
    milliseconds.

    Args:
        task: the task.
        run: the numbers of the run.
        learners: number of learners.
        seeds: the seeds that are computed at once.

    Raises:
        InputError: if the estimate is larger than the free memory.
    """
    if len(seeds) <= FEW_SEEDS and len(seeds) * run.batch_size <= FEW_EXAMPLES:
        return
    # Two worlds tell which arrays seeds share and which each has for itself.
    worlds = [task.world(seed) for seed in seeds[:2]]
    needed = len(seeds) * bytes_per_seed(task, run, learners, worlds)
    plural = "s" if len(seeds) > 1 else ""
    check_memory(
        f"{len(seeds)} seed{plural} with mini-batches of {run.batch_size} examples",
        needed,
        "take fewer seeds or a smaller batch size",
    )


def bytes_per_seed(task: Task, run: Run, learners: int, worlds: Sequence[World]) -> int:
    """Return the bytes per seed: its world, what is drawn at once, the parameters of its lanes.

    Args:
        task: the task.
        run: the numbers of the run.
        learners: number of learners.
        worlds: the worlds of one seed or two.

    Returns:
        The estimate.
    """
    rules = task.rules

    def shapes(world: World) -> tuple[Any, Any, Any]:
        key = randomness.key(0)
        drawn = rules.draw(key, world, run.batch_size)
        views = (rules.show(world.learner, drawn), rules.show(world.teacher.examples, drawn))
        return rules.start(key, run.start_on(task), world), drawn, views

    params, drawn, views = jax.eval_shape(shapes, worlds[0])
    stacked, axes = stack_worlds(worlds)
    own = [leaf for leaf, axis in zip(jax.tree.leaves(stacked), axes, strict=True) if axis == 0]
    # One number per example: its rank in the random order, or its loss.
    per_example = run.batch_size * np.dtype(np.int32).itemsize
    drawn_at_once = CHUNK * (_size(drawn) + per_example)
    batches = drawn_at_once + _size(views) + learners * per_example
    # Which examples of a mini-batch are copies of one another.
    pairs = run.batch_size**2
    world = _size(own) // len(worlds)
    return world + pairs + batches + COPIES * learners * _size(params)


def _size(tree: Any) -> int:
    """Return the bytes of all arrays of a pytree, or of arrays with its shapes."""
    return sum(
        math.prod(np.shape(leaf)) * np.dtype(leaf.dtype).itemsize for leaf in jax.tree.leaves(tree)
    )
