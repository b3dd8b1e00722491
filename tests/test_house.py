"""The structure of the package: no imports of private names, unique class names, files of limited length.

``lint-imports`` (pyproject.toml) checks the layers.
"""

import ast
import collections
from pathlib import Path

import pytest

PACKAGES_FOLDER = Path(__file__).parents[1] / "packages"
OURS = ("ital", "ital_study", "ital_paper")
TREES = {
    ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): (
        file,
        ast.parse(file.read_text()),
    )
    for source in sorted(PACKAGES_FOLDER.glob("*/src"))
    for file in sorted(source.rglob("*.py"))
}
PACKAGES = {name for name, (file, _) in TREES.items() if file.name == "__init__.py"}


def package_of(module):
    """The package that a module is in, or is."""
    return module if module in PACKAGES else module.rpartition(".")[0]


def imports(module):
    """Every module or name that a module imports, wherever in it: (the package it is of, its dotted name)."""
    for node in ast.walk(TREES[module][1]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OURS:
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in OURS)


def foreign_and_private(module):
    """Imports of private names of another package. The modules of ``ital`` itself are shared tools."""
    own = package_of(module)
    for name in imports(module):
        parts = name.split(".")
        for i in range(2, len(parts)):
            holder = ".".join(parts[:i])
            inside = own == holder or own.startswith(f"{holder}.")
            if (
                holder in PACKAGES
                and parts[i].startswith("_")
                and not parts[i].startswith("__")
                and not inside
            ):
                yield name
        holder = ".".join(parts[:-1])
        if (
            parts[-1].startswith("_")
            and holder in TREES
            and holder not in PACKAGES
            and parts[-1] != "__version__"
        ):
            yield name


@pytest.mark.parametrize("module", TREES)
def test_nobody_goes_through_the_walls(module):
    assert not list(foreign_and_private(module))


def test_a_hole_would_be_seen():
    TREES["ital.made_up"] = (
        PACKAGES_FOLDER / "made_up.py",
        ast.parse(
            "from ital.tasks._irl import irl\nfrom ital.tasks import _irl, irl\nfrom ital.volume import _a"
        ),
    )
    try:
        assert list(foreign_and_private("ital.made_up")) == [
            "ital.tasks._irl.irl",
            "ital.tasks._irl",
            "ital.volume._a",
        ]
    finally:
        del TREES["ital.made_up"]


def test_imports_are_not_hidden_in_strings():
    private = [
        (module, node.value)
        for module, (_, tree) in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(OURS)
        if "._" in node.value and package_of(module) != package_of(node.value)
    ]
    assert not private


def test_a_class_has_a_name_of_its_own():
    names = [
        node.name
        for _, tree in TREES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name, count in collections.Counter(names).items() if count > 1] == []


def test_a_file_of_tests_has_a_name_of_its_own():
    """The test folders are one namespace: of two files with one name, one would be run twice and the other never."""
    folders = [*PACKAGES_FOLDER.glob("*/tests"), PACKAGES_FOLDER.parent / "tests"]
    names = [file.relative_to(folder) for folder in folders for file in folder.rglob("*.py")]
    assert [name for name, count in collections.Counter(names).items() if count > 1] == []


def imported(file):
    """Every module that a file imports, wherever in it, and the names it takes from them."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_librarys_tests_need_the_library_alone():
    """``make test-alone`` runs them where nothing else is installed; this sees imports inside of tests as well."""
    folder = PACKAGES_FOLDER / "ital" / "tests"
    own = {
        file.relative_to(folder.parent).with_suffix("").as_posix().replace("/", ".")
        for file in folder.rglob("*.py")
    }
    foreign = [
        (file.name, name)
        for file in folder.rglob("*.py")
        for name in imported(file)
        if name.startswith(("ital_", "docs", "tools."))
        or (name.startswith("tests.") and not own & {name, name.rpartition(".")[0]})
    ]
    assert foreign == []
