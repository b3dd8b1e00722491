"""The contract of every task (tests/contract.py), kept by those of the paper, with small feature
files.
"""

import functools

import numpy as np
import pytest

from ital import learners, tasks, teachers
from ital.cli import describe
from ital.tools import plugins
from tests import plugged, registered
from tests.contract import check_float64, check_keys, check_together, kinds_of_world
from tests.features import data

NAMES = plugins.SIBLINGS["ital-paper"]["ital.tasks"]
SMALL = {
    name: functools.partial(
        tasks.make, name, **({"equations": 1} if name.startswith("equation-") else {})
    )
    for name in NAMES
}


@pytest.fixture(autouse=True, scope="module")
def small_features(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ITAL_FEATURES", str(data.write_features(tmp_path_factory.mktemp("features"))))
        yield


def test_these_are_all():
    assert set(NAMES) == {
        name for name, task in tasks.REGISTRY.items() if registered.is_the_papers(task)
    }
    assert all(describe(tasks.REGISTRY[name]).endswith(".") for name in NAMES)


@pytest.mark.parametrize(
    ("task", "teacher", "method"),
    registered.in_parallel(
        NAMES, [*teachers.REGISTRY][: len(NAMES)], [*learners.REGISTRY][: len(NAMES)]
    ),
)
def test_it_works_with_other_parts(task, teacher, method):
    """With the first teachers and learners; the tests of ital cover all of them."""
    check_together(SMALL[task], teacher, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", learners.REGISTRY)
@pytest.mark.parametrize("teacher", teachers.REGISTRY)
@pytest.mark.parametrize("task", NAMES)
def test_it_works_with_all_other_parts(task, teacher, method):
    check_together(SMALL[task], teacher, method)


@pytest.mark.parametrize("task", ["mnist-20", "mnist-mlp", "equation-40"])
@pytest.mark.usefixtures("x64")
def test_float64_is_kept_while_it_is_taught(task):
    check_float64(SMALL[task])


@pytest.mark.parametrize("task", NAMES)
@pytest.mark.usefixtures("x64")
def test_its_world_is_of_float64(task):
    assert kinds_of_world(SMALL[task]) == {np.dtype(np.float64)}


@pytest.mark.parametrize("task", NAMES)
def test_no_two_draws_of_it_share_a_random_key(task):
    check_keys(SMALL[task](), teachers.make("mixture"), learners.make("imt"))


def test_it_survives_pickling(tmp_path):
    """In a process of its own: what the tests' checks of types wrap cannot be pickled."""
    code = (
        "from tests import pickled; print(pickled.tasks_are_restored(('equation-40', 'mnist-20')))"
    )
    done = plugged.python(tmp_path, "-c", code)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
