import importlib
import pkgutil
import subprocess
import sys

import pytest

import ital

pytestmark = pytest.mark.alone
MODULES = [name for name in ital.__all__ if name not in (*ital._FROM, "__version__")]


def test_exported_names_are_there_and_sorted():
    assert list(ital.__all__) == sorted(ital.__all__)
    assert dir(ital) == ital.__all__
    for name in ital.__all__:
        assert getattr(ital, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'teech'"):
        ital.teech  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_every_public_module_says_what_it_exports(name):
    module = importlib.import_module(f"ital.{name}")
    assert module.__doc__
    for exported in module.__all__:
        assert hasattr(module, exported), exported


def test_every_module_has_a_docstring():
    for found in pkgutil.walk_packages(ital.__path__, "ital."):
        if found.name != "ital.__main__":
            assert importlib.import_module(found.name).__doc__, found.name


def test_import_and_help_load_nothing_heavy():
    code = (
        "import sys, ital, ital.cli; "
        "heavy = ('jax', 'xarray', 'matplotlib', 'sklearn'); "
        "print([module for module in heavy if module in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
