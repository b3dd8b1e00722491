"""Several devices share the seeds of a run: the curves stay what they are on one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from ital import errors, teach
from tests.worlds import small_classes

# Virtual devices exist only if JAX is told before it starts, so each test has a process of its own.
PRELUDE = """
import json, sys
import numpy as np
import ital
from ital import learners, tasks, teachers, teaching
from tests.worlds import numbers_pool, small_classes, small_numbers

def sessions(task, devices, seeds=6, methods=("imt", "ital"), **options):
    made = [learners.make(name) for name in methods]
    run = ital.Run(seeds=seeds, steps=60, lr=0.01, batch_size=8, eval_every=10, devices=devices, **options)
    return teaching.open_sessions(task, teachers.cooperative(), made, run)
"""


def on_four_devices(code, cwd=None):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4 " + os.environ["XLA_FLAGS"],
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([root, os.path.join(root, "src")]),
    }
    command = [sys.executable, "-c", PRELUDE + code]
    done = subprocess.run(command, env=environment, cwd=cwd, text=True, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_curves_do_not_depend_on_the_devices():
    """Six seeds on four devices: two of them are repeated, and cut off."""
    out = on_four_devices("""
irl = tasks.irl(np.array([[0.0, 1.0], [-1.0, 0.5]]))
shared = tasks.from_pool("shared", numbers_pool(0), ital.losses.squared, beta=100.0)
found = {}
for name, task, options in (("own worlds", small_classes(), {}), ("shared pool", shared, {"beta": "auto"}),
                            ("iterated", irl, {"steps": 5, "lr": 0.001})):  # longer, and rounding takes over
    options = {"steps": 40, "lr": 0.01, **options}
    curves = [ital.teach(task, learner=["ital", "ital-2"], seeds=6, batch_size=8, devices=devices, **options)
              for devices in (1, "all")]
    one, four = (c.curves for c in curves)
    found[name] = {
        "seeds": four.sizes["seed"],
        "parameters": [len(p) for p in curves[1].parameters.values()],
        "apart": max(float(abs(one[m] - four[m]).max()) for m in one.data_vars if "step" in one[m].dims),
        "beta apart": float(abs(one["beta"] - four["beta"]).max()),
        "constants": all(np.shape(v) == (6,) for m in four.data_vars for v in four[m].attrs.values()),
    }
print(json.dumps(found))
""")
    for name, found in json.loads(out.stdout).items():
        assert found["seeds"] == 6, name
        assert found["parameters"] == [6, 6], name
        assert found["apart"] < 1e-4, name
        assert found["beta apart"] < 1e-3, name
        assert found["constants"], name


def test_each_device_has_its_own_seeds_and_none_talks_to_another():
    out = on_four_devices("""
import jax, jax.numpy as jnp
(session,) = sessions(small_classes(), 4, seeds=8)
lowered = teaching._block.run_block.lower(session.program, session.numbers, session.carry, jnp.asarray(1))
session.advance(2)
params = session.carry.lanes.params
print(json.dumps({
    "devices": len({shard.device for shard in params.addressable_shards}),
    "shard": params.addressable_shards[0].data.shape[0],
    "rows": session.advance(1).rows["distance"].shape,
    "words": [word for word in ("all-reduce", "all-gather", "collective-permute", "all-to-all")
              if word in lowered.compile().as_text()],
}))
""")
    assert json.loads(out.stdout) == {"devices": 4, "shard": 2, "rows": [1, 8, 2], "words": []}


def test_a_checkpoint_goes_on_with_another_number_of_devices():
    out = on_four_devices("""
from pathlib import Path
import tempfile
from ital.experiments import _store
from ital.results import Recording
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "checkpoint"
    ends = []
    for before, after in ((1, 1), (4, 1), (1, 3)):
        cut = Recording(sessions(small_numbers(), before, seeds=5))
        cut.sessions[0].advance(3)
        _store.save_checkpoint(cut, 1.0, file)
        resumed = Recording(sessions(small_numbers(), after, seeds=5))
        assert _store.load_checkpoint(resumed, file) == 1.0
        (session,) = resumed.sessions
        assert session.step == 30
        session.advance(3)
        ends.append(session.state.lanes.params)
print(json.dumps([ends[0].shape[0], *(float(abs(end - ends[0]).max()) for end in ends)]))
""")
    seeds, *apart = json.loads(out.stdout)
    assert seeds == 5
    assert max(apart) < 1e-5


def test_the_command_takes_them_and_says_so(tmp_path):
    said = on_four_devices(
        """
from ital.cli import main
for options in ("--devices 2 --out two", "--out one"):
    try:
        main(f"run regression --seeds 3 --steps 20 --methods imt {options}".split())
    except SystemExit as ended:
        print(options, ended.code, file=sys.stderr)
""",
        tmp_path,
    ).stderr
    several, _, alone = said.partition("--devices 2 --out two 0")
    assert "computing on 2 × cpu" in several
    assert "computing on" not in alone
    assert alone.endswith("--out one 0\n")
    assert (tmp_path / "two/regression/cooperative/curves.nc").exists()


@pytest.mark.parametrize("devices", [0, -1, "some", True, 1000])
def test_devices_that_are_not_there_are_refused(devices):
    with pytest.raises(errors.InputError, match="devices"):
        teach(small_classes(), steps=10, seeds=2, devices=devices)


def test_more_devices_than_seeds_are_no_use():
    curves = teach(small_classes(), steps=10, seeds=1, devices="all").curves
    assert np.isfinite(curves["distance"]).all()
