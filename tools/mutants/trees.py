"""Copies of the working tree, and pytest inside them."""

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# At the top; caches and environments too.
LEFT_OUT = {".git", ".hypothesis", "build", "dist", "results"}


def sources_of(root: Path) -> list[Path]:
    """The ``src`` folder of every package."""
    return sorted(root.glob("packages/*/src"))


def tests_of(root: Path) -> list[Path]:
    """The folders of tests: of every package, and of the whole."""
    return [*sorted(root.glob("packages/*/tests")), *root.glob("tests")]


def package_of(file: str) -> str:
    """The package or module that a source file belongs to, e.g. ``ital/teaching``."""
    return "/".join(file.partition("/src/")[2].split("/")[:2])


def copy_tree(root: Path, tree: Path) -> Path:
    """Copy what the tests need; what was installed for browsers is shared."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        if Path(folder) != root:
            return {"__pycache__", "_build", "node_modules"} & {*names}
        hidden = {name for name in names if name.startswith(".venv") or name.endswith("_cache")}
        return hidden | (LEFT_OUT & {*names})

    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(root, tree, ignore=left_out)
    node = root / "build" / "node"
    if node.exists():
        (tree / "build").mkdir()
        (tree / "build" / "node").symlink_to(node)
    return tree


def environment(root: Path, tree: Path) -> dict[str, str]:
    """The environment in which a tree's own packages are imported; compiled programs are shared by
    all trees.
    """
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, [*sources_of(tree), HERE])),
        "JAX_COMPILATION_CACHE_DIR": str(root / "build" / "xla"),
    }


def pytest_command(*arguments: str) -> list[str]:
    """Pytest without its cache."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
