"""``ital simplify``."""

import sys
from typing import Annotated

import typer

from ital.errors import InputError
from ital.tools.platform import set_up_jax

HOW = typer.Option(
    "--with",
    help="rules: a fixed order of operations; learned: greedy search with the learned value.",
)


EXAMPLE = 'Example: ital simplify "-1/2x^2y + 1/3xy = -1/5y^3 + 1/3x^2y" --steps'
NEGATIVE_FIRST = {"ignore_unknown_options": True}  # an equation may begin with a minus
app = typer.Typer()


@app.command(epilog=EXAMPLE, context_settings=NEGATIVE_FIRST)
def simplify(
    equation: Annotated[
        str,
        typer.Argument(
            help="A polynomial equation in x, y and z, of degree at most 4.", show_default=False
        ),
    ],
    how: Annotated[str, HOW] = "rules",
    steps: Annotated[
        bool, typer.Option("--steps", help="Show every step with its operation.")
    ] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
) -> None:
    """Simplify an equation exactly, one operation at a time, to a form that ends in = 0."""
    if how not in ("rules", "learned"):
        raise InputError(f"--with must be rules or learned, not {how!r}")
    from ital_paper import equation as equations

    start = equations.parse(equation)
    write = equations.latex if latex else equations.as_typed
    if how == "learned":
        # Only the learned value needs JAX, which takes a second to load.
        set_up_jax(None)
        from ital_paper import features

        rewrites = equations.greedy(*features.learned_value(), start)
    else:
        rewrites = equations.simplify(start)
    path = [equations.Rewrite("", start), *rewrites]
    end = path[-1].equation
    if steps:
        for step in path:
            print(f"{step.operation:<22} {write(step.equation)}")
    else:
        print(write(end))
    goal = equations.simplified(start)
    if end != goal:
        print(f"the search stops here; the rules reach: {write(goal)}", file=sys.stderr)
