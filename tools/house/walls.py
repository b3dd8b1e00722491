"""Who may import what: no private names of others, one name for one class or file of tests."""

import ast
import collections
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.house.sources import PACKAGES, ROOT, Source, files_of_tests


def package_of(module: str, sources: Mapping[str, Source]) -> str:
    """Return the package that a module is in, or is."""
    is_package = module in sources and sources[module].is_package
    return module if is_package else module.rpartition(".")[0]


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Yield every module that a file imports, wherever in it, and every name that it takes from
    one.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def is_private(part: str) -> bool:
    """Return whether a name is meant for its own package only."""
    return part.startswith("_") and not part.startswith("__")


def private_owner(dotted: str, sources: Mapping[str, Source]) -> str | None:
    """Return the package or module that a private part of a dotted name belongs to; None if all is
    public.
    """
    parts = dotted.split(".")
    for i, part in enumerate(parts):
        if not is_private(part):
            continue
        holder = ".".join(parts[:i])
        if holder in sources:
            return holder
    return None


def crossed_walls(sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield imports of private names from outside their package.

    What is private in a package may be used in it and below it; what is private in a module,
    nowhere else.
    """
    for source in sources.values():
        own = package_of(source.module, sources)
        for name in imported_names(source.tree):
            owner = private_owner(name, sources)
            if owner is None:
                continue
            inside = own == owner or own.startswith(f"{owner}.")
            if not (sources[owner].is_package and inside):
                yield f"{source.module}: {name} is private to {owner}"


def hidden_imports(sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield dotted names of private modules of other packages that stand in strings."""
    for source in sources.values():
        for node in ast.walk(source.tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if not is_text or not node.value.startswith(PACKAGES) or "._" not in node.value:
                continue
            if package_of(source.module, sources) != package_of(node.value, sources):
                yield f"{source.module}: the string {node.value!r} names a private module"


def repeated_classes(sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield names that more than one class has."""
    modules = collections.defaultdict(list)
    for source in sources.values():
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(source.module)
    for name, owners in modules.items():
        if len(owners) > 1:
            yield f"class {name} is defined in {' and '.join(owners)}"


def repeated_tests(root: Path = ROOT) -> Iterator[str]:
    """Yield names that more than one file of tests has.

    The test folders are one namespace: of two files with one name, one would be run twice and
        the other never.
    """
    folders = collections.defaultdict(list)
    for folder, file in files_of_tests(root):
        folders[file.relative_to(folder)].append(str(folder.relative_to(root)))
    for name, owners in folders.items():
        if len(owners) > 1:
            yield f"{name} is a file of tests in {' and in '.join(owners)}"


def foreign_tests(root: Path = ROOT) -> Iterator[str]:
    """Yield what the library's tests import of other packages: they run where only ``ital`` is
    installed.
    """
    folder = root / "packages" / "ital" / "tests"
    modules = {
        ".".join(file.relative_to(folder.parent).with_suffix("").parts)
        for file in folder.rglob("*.py")
    }
    for file in sorted(folder.rglob("*.py")):
        for name in imported_names(ast.parse(file.read_text("utf-8"))):
            is_helper = name in modules or name.rpartition(".")[0] in modules
            if name.startswith(("ital_", "docs", "tools.")) or (
                name.startswith("tests.") and not is_helper
            ):
                yield f"{file.relative_to(root)}: {name} is of another package"


def private_in_tests(root: Path = ROOT) -> list[Path]:
    """Return the files of tests that import private modules of ours."""
    found = []
    for _, file in files_of_tests(root):
        names = imported_names(ast.parse(file.read_text("utf-8")))
        ours = (name for name in names if name.partition(".")[0] in PACKAGES)
        if any(is_private(part) for name in ours for part in name.split(".")):
            found.append(file)
    return found
