"""Array types for annotations. Sizes are checked in the tests, not at run time.

Letters: ``B`` mini-batch, ``K`` outputs, ``d`` input features (the constant 1 counted), ``N`` rows.
"""

from typing import Any

from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

Scalar = Float[Array, ""] | float
PerExample = Float[Array, " B"]
Params = Any  # a pytree of float arrays

__all__ = [
    "Array",
    "Bool",
    "Float",
    "Int",
    "Integer",
    "PRNGKeyArray",
    "Params",
    "PerExample",
    "Scalar",
]
