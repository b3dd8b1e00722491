"""What the three packages share: their version, and what they need of others."""

from tools import lowest, release

import ital


def test_the_packages_agree_on_the_version():
    assert {version for said in release.versions().values() for version in said} == {
        ital.__version__
    }


def test_the_packages_agree_on_lowest_versions():
    names = [pin.partition("==")[0] for pin in lowest.lowest(lowest.dependencies())]
    assert len(names) == len(set(names)) > 10
    assert not [name for name in names if name.startswith("ital")]
