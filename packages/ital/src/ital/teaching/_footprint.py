"""The memory that a run needs, estimated from shapes before anything is computed."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ital.tasks import Task, World, stack_worlds
from ital.teaching._block import CHUNK
from ital.teaching._run import Run
from ital.tools import randomness
from ital.tools.memory import check_memory

COPIES = 4  # copies of the parameters: before and after a step, and gradients
FEW_SEEDS, FEW_EXAMPLES = 100, 2**14  # smaller runs need no estimate


def check_footprint(task: Task, run: Run, learners: int, seeds: Sequence[int]) -> None:
    """Raise InputError if worlds, mini-batches and parameters of a run would not fit into memory.

    Only runs with many seeds or large mini-batches are checked: it takes two worlds and a few milliseconds.

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
    needed = len(seeds) * bytes_per_seed(
        task, run, learners, [task.world(seed) for seed in seeds[:2]]
    )
    what = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''} with mini-batches of {run.batch_size} examples"
    check_memory(what, needed, "take fewer seeds or a smaller batch size")


def bytes_per_seed(task: Task, run: Run, learners: int, worlds: Sequence[World]) -> int:
    """Bytes per seed: its own world, the mini-batches that are drawn at once, and the parameters of its lanes.

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
        shown = rules.show(world.learner, drawn), rules.show(world.teacher.examples, drawn)
        return rules.start(key, run.start_on(task), world), drawn, shown

    params, drawn, shown = jax.eval_shape(shapes, worlds[0])
    stacked, axes = stack_worlds(worlds)
    own = [leaf for leaf, axis in zip(jax.tree.leaves(stacked), axes, strict=True) if axis == 0]
    per_example = (
        run.batch_size * np.dtype(np.int32).itemsize
    )  # a random order, and a loss for each learner
    batches = CHUNK * (_size(drawn) + per_example) + _size(shown) + learners * per_example
    pairs = run.batch_size**2  # which examples of a mini-batch are copies of one another
    return _size(own) // len(worlds) + pairs + batches + COPIES * learners * _size(params)


def _size(tree: Any) -> int:
    """Bytes of all arrays of a pytree, or of arrays with its shapes."""
    return sum(
        int(np.prod(np.shape(leaf))) * np.dtype(leaf.dtype).itemsize
        for leaf in jax.tree.leaves(tree)
    )
