"""Seconds per step of online IRL by map size: one seed, one method, after compilation."""

import argparse
import time

import numpy as np

import ital


def seconds_per_step(size: int, steps: int, repeats: int) -> float:
    """The best of several runs, measurements included."""
    task = ital.tasks.irl(np.random.default_rng(0).uniform(-2, 2, (size, size)))
    times = []
    for _ in range(repeats + 1):  # the first compiles
        start = time.perf_counter()
        ital.teach(task, learner="ital", seeds=1, steps=steps)
        times.append(time.perf_counter() - start)
    return min(times[1:]) / steps


def main() -> None:
    """Print one row of a table per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 16, 32, 60])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| n | ms per step |\n|---|---|")
    for size in options.sizes:
        print(
            f"| {size} | {1e3 * seconds_per_step(size, options.steps, options.repeats):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
