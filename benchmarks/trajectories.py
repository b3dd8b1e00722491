"""Speed of making trajectories of equations.

Run it with ``python benchmarks/trajectories.py [COUNT] [WORKERS]``.
"""

import sys
import time

from ital_paper.equation import generate_trajectories


def main() -> None:
    """Make trajectories and print the rate."""
    count, workers = (int(value) for value in (sys.argv[1:] + ["500000", "2"][len(sys.argv) - 1 :]))
    began = time.perf_counter()
    made = states = 0
    for some in generate_trajectories(count, workers=workers):
        made += len(some.starts)
        states += len(some.texts)
    seconds = time.perf_counter() - began
    print(
        f"{made} trajectories, {states / made:.2f} states each, in {seconds:.1f} s with {workers} "
        "workers:",
        end=" ",
    )
    print(f"{made / seconds:.0f} a second")


if __name__ == "__main__":
    main()
