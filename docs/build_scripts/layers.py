"""The directive ``layers``: the three packages, their layers and who may use whom, drawn from the
code.

Layers are those that ``lint-imports`` checks (pyproject.toml), and the words for a module are its
first line.
"""

import ast
import tomllib
from html import escape
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = Path(__file__).parents[2]
WIDTH = 760  # of the picture
HEIGHT = 24  # of a row
GAP = 5  # between boxes
TITLE = 26  # the room for a frame's name
MARGIN = 10  # inside a frame
ARROW = 34  # between two frames that stand side by side
LABEL = (
    "Three packages, each with its layers: what is higher may use what is lower; "
    "ital_paper may use ital_study"
)


class Frame(NamedTuple):
    """A package and the names of its layers, from the top down."""

    package: str
    rows: list[list[str]]

    @property
    def height(self) -> int:
        return TITLE + len(self.rows) * (HEIGHT + GAP) - GAP + MARGIN


def frames() -> list[Frame]:
    """One for each contract about layers: the distributions in their order, then packages inside
    them.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    contracts = {one["containers"][0]: one for one in settings["contracts"] if "containers" in one}
    (distributions,) = (one["layers"] for one in settings["contracts"] if "containers" not in one)
    order = [*distributions, *(name for name in contracts if name not in distributions)]
    return [
        Frame(
            name,
            [[part.strip() for part in layer.split("|")] for layer in contracts[name]["layers"]],
        )
        for name in order
    ]


def words(module: str) -> str:
    """The first line of a package's or module's docstring."""
    (source,) = ROOT.glob(f"packages/*/src/{module.partition('.')[0]}")
    place = source.parent.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]


def paragraph(module: str) -> nodes.paragraph:
    """The same as a paragraph, in which code stays code."""
    parts = words(module).split("``")
    return nodes.paragraph(
        "", "", *(nodes.literal(text=p) if i % 2 else nodes.Text(p) for i, p in enumerate(parts))
    )


def box(x: float, y: float, width: float, height: float, opacity: float) -> str:
    """An empty rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        'rx="5" fill="none" '
        f'stroke="currentColor" stroke-opacity="{opacity}"/>'
    )


def drawn(frame: Frame, left: float, top: float, width: float, height: float) -> str:
    """A frame with its rows of boxes: a box may use what is in the rows below it."""
    parts = [
        box(left, top, width, height, 0.9),
        f'<text x="{left + MARGIN}" y="{top + 18}" font-weight="bold" fill="currentColor">'
        f"{frame.package}</text>",
    ]
    inside = width - 2 * MARGIN
    for row, names in enumerate(frame.rows):
        # Rows of many names share the width by the length of the names.
        letters = sum(len(name) + 3 for name in names)
        x = left + MARGIN
        y = top + TITLE + row * (HEIGHT + GAP)
        for name in names:
            each = (inside - GAP * (len(names) - 1)) * (len(name) + 3) / letters
            title = escape(words(f"{frame.package}.{name}").replace("``", ""))
            parts.append(
                f"<g><title>{title}</title>{box(x, y, each, HEIGHT, 0.4)}"
                f'<text x="{x + each / 2:.1f}" y="{y + 16}" text-anchor="middle" '
                'fill="currentColor">'
                f"{escape(name)}</text></g>"
            )
            x += each + GAP
    return "".join(parts)


def picture(every: list[Frame]) -> str:
    """The first two packages side by side, for both are short; below them what both use, as wide as
    the picture.
    """
    half = (WIDTH - ARROW) / 2
    top = max(frame.height for frame in every[:2])
    parts = [drawn(frame, i * (half + ARROW), 0, half, top) for i, frame in enumerate(every[:2])]
    middle = f"M{half + 6} {top / 2}h{ARROW - 14}m-6 -5l6 5l-6 5"
    parts.append(f'<path d="{middle}" fill="none" stroke="currentColor"/>')
    y = top
    for frame in every[2:]:
        parts.append(
            f'<path d="M{WIDTH / 2} {y + 5}v{ARROW - 12}m-5 -6l5 6l5 -6" fill="none" '
            'stroke="currentColor"/>'
        )
        y += ARROW
        parts.append(drawn(frame, 0, y, WIDTH, frame.height))
        y += frame.height
    return (
        f'<svg viewBox="-1 -1 {WIDTH + 2} {y + 2}" role="img" aria-label="{LABEL}" '
        f'style="max-width:100%;font:12.5px monospace">{"".join(parts)}</svg>'
    )


class Layers(Directive):
    """The picture, then every package and every name in it with its words."""

    def run(self) -> list[nodes.Node]:
        """Builds both."""
        every = frames()
        made: list[nodes.Node] = [nodes.raw("", picture(every), format="html")]
        for frame in every:
            first = paragraph(frame.package)
            made.append(
                nodes.paragraph(
                    "", "", nodes.strong(text=frame.package), nodes.Text(": "), *first.children
                )
            )
            listed = nodes.definition_list()
            for name in (name for row in frame.rows for name in row):
                term = nodes.term("", "", nodes.literal(text=name))
                definition = nodes.definition("", paragraph(f"{frame.package}.{name}"))
                listed += nodes.definition_list_item("", term, definition)
            made.append(listed)
        return made


def setup(app):
    """Registers the directive."""
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True}
