"""Golden curves on the paper's own tasks: python -m tests.golden.tasks compares bit by bit, --write
stores them.

Bits depend on the machine and on XLA's flags, so ``tests/test_golden.py`` compares with a
tolerance. On one machine, before and after a change that should not change the numbers, this
command tells more: whether every bit is the same.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np

import ital

FILE = Path(__file__).with_name("tasks.json")
TASKS = ("regression", "gaussian", "irl-dense")
TEACHERS = ("cooperative", "adversarial", "omniscient")
METHODS = ("batch", "sgd", "imt", "ital", "ital-5", "imt-matched")
METRICS = ("distance", "loss", "policy_tv")


def curves(task, teacher, methods=METHODS):
    """Metrics of two seeds at steps 0, 20, 40: metric → method → (seed, step)."""
    result = ital.teach(task, teacher, methods, steps=40, seeds=2, eval_every=20).curves
    return {
        metric: {name: result[metric].sel({"learner": name}).values.tolist() for name in methods}
        for metric in METRICS
        if metric in result
    }


def main(write):
    found = {task: {teacher: curves(task, teacher) for teacher in TEACHERS} for task in TASKS}
    if write:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    stored = json.loads(FILE.read_text())
    differ = 0
    for task, teacher in itertools.product(TASKS, TEACHERS):
        for metric, by_method in stored[task][teacher].items():
            for method, expected in by_method.items():
                now = found[task][teacher][metric][method]
                if now == expected:
                    continue
                differ += 1
                gaps = np.abs(np.subtract(now, expected))
                relative = np.max(gaps / np.maximum(np.abs(expected), 1e-12), axis=0)
                print(f"{task}, {teacher}, {method}, {metric}:")
                print(f"  relative differences {relative} at steps 0, 20, 40")
    print("bit for bit the same" if not differ else f"{differ} curves differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv))
