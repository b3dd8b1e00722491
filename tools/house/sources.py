"""The sources of the three packages and of their tests, parsed once."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("ital", "ital_study", "ital_paper")


class Source(NamedTuple):
    """A Python file.

    Attributes:
        module: its dotted name.
        file: where it is.
        text: what it says.
        tree: its syntax tree.
    """

    module: str
    file: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Whether it is the ``__init__.py`` of a package."""
        return self.file.name == "__init__.py"


def read_source(file: Path, root: Path) -> Source:
    """Parse a file whose module name begins below ``root``."""
    text = file.read_text("utf-8")
    dotted = ".".join(file.relative_to(root).with_suffix("").parts)
    return Source(dotted.removesuffix(".__init__"), file, text, ast.parse(text))


def package_sources(root: Path = ROOT) -> dict[str, Source]:
    """Read the modules of all packages, by dotted name."""
    found = {}
    for folder in sorted(root.glob("packages/*/src")):
        for file in sorted(folder.rglob("*.py")):
            source = read_source(file, folder)
            found[source.module] = source
    return found


def files_of_tests(root: Path = ROOT) -> Iterator[tuple[Path, Path]]:
    """Yield every file of tests, with the folder that it belongs to."""
    for folder in [*sorted(root.glob("packages/*/tests")), root / "tests"]:
        for file in sorted(folder.rglob("*.py")):
            yield folder, file
