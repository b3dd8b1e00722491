import pkgutil

import pytest

import ital_study as study


def test_every_public_name_is_listed_and_there():
    assert all(getattr(study, name) is not None for name in study.__all__)
    assert dir(study) == sorted(study.__all__)


def test_no_folder_has_a_public_name():
    """Importing from a folder sets the package's attribute of that name."""
    folders = {module.name for module in pkgutil.iter_modules(study.__path__)}
    assert folders.isdisjoint(study.__all__)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'fits'"):
        study.fits  # noqa: B018
