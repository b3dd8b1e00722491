"""The directive ``layers``: the packages of ital and who may use whom, drawn from the code.

Layers are those that ``lint-imports`` checks (pyproject.toml), and a package's words are the first line of its own.
"""

import ast
import tomllib
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT, GAP = 760, 34, 8


def layers() -> list[list[str]]:
    """The names of each layer, from the top down; the underscored tools are one layer at the bottom."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (one for one in settings["contracts"] if one["name"] == "Layers")
    named = [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
    return [layer for layer in named if not layer[0].startswith("_")]


def words(name: str) -> str:
    """The first line of a package's or module's docstring."""
    place = ROOT / "src" / "ital" / name
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]


def paragraph(name: str) -> nodes.paragraph:
    """The same as a paragraph, in which code stays code."""
    parts = words(name).split("``")
    return nodes.paragraph("", "", *(nodes.literal(text=p) if i % 2 else nodes.Text(p) for i, p in enumerate(parts)))


def picture(rows: list[list[str]]) -> str:
    """Boxes in rows: a box may use what is in the rows below it."""
    boxes = []
    for row, names in enumerate(rows):
        each = (WIDTH - GAP * (len(names) - 1)) / len(names)
        for column, name in enumerate(names):
            x, y = column * (each + GAP), row * (HEIGHT + GAP)
            title = escape(words(name).replace("``", ""))
            place = f'x="{x:.1f}" y="{y}" width="{each:.1f}" height="{HEIGHT}" rx="5"'
            boxes.append(
                f'<g><title>{title}</title><rect {place} fill="none" stroke="currentColor" '
                f'stroke-opacity="0.45"/><text x="{x + each / 2:.1f}" y="{y + 22}" text-anchor="middle" '
                f'fill="currentColor">{escape(name)}</text></g>'
            )
    height = len(rows) * (HEIGHT + GAP)
    label = "Packages of ital in layers, from the command line at the top to the mathematics at the bottom"
    return (
        f'<svg viewBox="-1 -1 {WIDTH + 2} {height}" role="img" aria-label="{label}" '
        f'style="max-width:100%;font:14px monospace">{"".join(boxes)}</svg>'
    )


class Layers(Directive):
    """The picture, then every name with its words."""

    def run(self) -> list[nodes.Node]:
        """Builds both."""
        rows = layers()
        listed = nodes.definition_list()
        for name in (name for row in rows for name in row):
            term = nodes.term("", "", nodes.literal(text=name))
            listed += nodes.definition_list_item("", term, nodes.definition("", paragraph(name)))
        return [nodes.raw("", picture(rows), format="html"), listed]


def setup(app):
    """Registers the directive."""
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True}
