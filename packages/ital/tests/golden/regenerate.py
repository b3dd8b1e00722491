"""Rewrites curves.json.

Run it only if the numbers are meant to change: python -m tests.golden.regenerate.
"""

import json

import jax

from tests.test_teaching import GOLDEN, golden_curves

CASES = (
    "small-classes/cooperative",
    "small-classes/boltzmann:50",
    "small-numbers/adversarial",
    "small-numbers/omniscient",
)

if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    curves = {case: golden_curves(case) for case in CASES}
    GOLDEN.write_text(json.dumps(curves, indent=1) + "\n")
