"""The random keys that a program uses, read off its jaxpr: only what leads to a key is computed."""

import functools

import jax
import numpy as np
from jax.extend import core

DRAW = "random_bits"
USES = (DRAW, "random_split", "random_fold_in")


def keys_of(function, *arguments):
    """What a function does with random keys: a list of (primitive, the keys that it was given, two
    words each).
    """
    uses = []
    inputs = [functools.partial(np.asarray, leaf) for leaf in jax.tree.leaves(arguments)]
    _walk(jax.make_jaxpr(function)(*arguments), inputs, uses)
    return [
        (primitive, [tuple(words) for words in jax.random.key_data(keys()).reshape(-1, 2).tolist()])
        for primitive, keys in uses
    ]


def _walk(closed, inputs, uses):
    """Add the uses of keys to ``uses``; return the outputs.

    Each value is a function that computes it.
    """
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.invars, inputs, strict=True))
    values |= {
        variable: functools.partial(np.asarray, const) for variable, const in _constants(closed)
    }

    def value(variable):
        return (lambda: variable.val) if isinstance(variable, core.Literal) else values[variable]

    for equation in jaxpr.eqns:
        given = [value(variable) for variable in equation.invars]
        name = equation.primitive.name
        if name in USES:
            uses.append((name, given[0]))
        if name == "jit":
            results = _walk(equation.params["jaxpr"], given, uses)
        else:
            assert not any(one.primitive.name in USES for one in _inside(equation)), (
                f"{name} hides uses of keys"
            )
            results = _results(equation, given)
        values |= dict(zip(equation.outvars, results, strict=True))
    return [value(variable) for variable in jaxpr.outvars]


def _constants(closed):
    return zip(closed.jaxpr.constvars, closed.consts, strict=True)


def _results(equation, given):
    """The outputs of an equation, which is computed once, and only if one of them is asked for."""

    @functools.cache
    def computed():
        outputs = equation.primitive.bind(*[one() for one in given], **equation.params)
        return outputs if equation.primitive.multiple_results else [outputs]

    return [lambda place=place: computed()[place] for place in range(len(equation.outvars))]


def _inside(equation):
    """All equations of the programs inside an equation, such as the body of a loop."""
    for parameter in jax.tree.leaves(list(equation.params.values())):
        for one in getattr(getattr(parameter, "jaxpr", parameter), "eqns", ()):
            yield one
            yield from _inside(one)
