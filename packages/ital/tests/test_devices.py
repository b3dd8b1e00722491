"""Several devices share the seeds of a run: the curves are the same as on one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from ital import errors, teach
from tests.worlds import small_classes


@pytest.fixture(scope="module")
def on_four_devices():
    """The results of four_devices.py, by check: virtual devices must be set before JAX starts."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4 " + os.environ["XLA_FLAGS"],
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([root, os.path.join(root, "src")]),
    }
    command = [sys.executable, "-m", "tests.four_devices"]
    done = subprocess.run(
        command, env=environment, text=True, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])

    def of(check):
        assert "failed" not in found[check], found[check]["failed"]
        return found[check]

    return of


@pytest.mark.parametrize("world", ["own_worlds", "shared_pool", "iterated"])
def test_curves_do_not_depend_on_the_devices(on_four_devices, world):
    """Five seeds on four devices: three are computed twice, and the repeats are cut off."""
    found = on_four_devices(world)
    assert found["seeds"] == 5
    assert found["parameters"] == [5, 5]
    assert found["apart"] < 1e-4
    assert found["beta apart"] < 1e-3
    assert found["constants"]


def test_each_device_has_its_own_seeds_and_none_talks_to_another(on_four_devices):
    assert on_four_devices("shards") == {"devices": 4, "shard": 2, "rows": [1, 8, 2], "words": []}


def test_a_checkpoint_resumes_with_another_number_of_devices(on_four_devices):
    seeds, *apart = on_four_devices("checkpoints")
    assert seeds == 5
    assert max(apart) < 1e-5


def test_the_command_takes_them_and_says_so(on_four_devices):
    (status, several, stored), (status_alone, alone, _) = on_four_devices("commands")
    assert (status, status_alone) == (0, 0), several + alone
    assert "computing on 4 × cpu" in several
    assert "computing on" not in alone
    assert stored


@pytest.mark.parametrize("devices", [0, -1, "some", True, 1000])
def test_devices_that_are_not_there_are_refused(devices):
    with pytest.raises(errors.InputError, match="devices"):
        teach(small_classes(), steps=10, seeds=2, devices=devices)


def test_more_devices_than_seeds_are_no_use():
    curves = teach(small_classes(), steps=10, seeds=1, devices="all").curves
    assert np.isfinite(curves["distance"]).all()
