"""The checks of test_devices.py, computed in a process with four virtual devices.

python -m tests.four_devices

Prints the result of each check, or its error. Checks teach the same small world where possible,
because compilation
takes most of the time.
"""

import contextlib
import io
import json
import tempfile
import traceback
from pathlib import Path

import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.figure
import numpy as np

import ital
from ital import learners, losses, tasks, teachers, teaching
from ital.cli import main
from ital.experiments import _cells
from ital.teaching import Recording
from tests.worlds import numbers_pool, small_classes

SEEDS = 5  # four devices compute eight: three are repeats, and are cut off
METHODS = ("imt", "ital")
SMALL = small_classes()


def sessions(devices, seeds=SEEDS):
    made = [learners.make(name) for name in METHODS]
    run = ital.Run(seeds=seeds, steps=60, lr=0.01, eval_every=10, devices=devices)
    return teaching.open_sessions(SMALL, teachers.cooperative(), made, run)


def one_and_four(task, steps=40, lr=0.01, **options):
    """The difference between curves on one device and on four, and the shapes on four."""
    curves = [
        ital.teach(
            task, learner=list(METHODS), seeds=SEEDS, steps=steps, lr=lr, devices=devices, **options
        )
        for devices in (1, "all")
    ]
    one, four = (c.curves for c in curves)
    return {
        "seeds": four.sizes["seed"],
        "parameters": [len(p) for p in curves[1].parameters.values()],
        "apart": max(
            float(abs(one[m] - four[m]).max()) for m in one.data_vars if "step" in one[m].dims
        ),
        "beta apart": float(abs(one["beta"] - four["beta"]).max()),
        "constants": all(
            np.shape(v) == (SEEDS,) for m in four.data_vars for v in four[m].attrs.values()
        ),
    }


def own_worlds():
    return one_and_four(SMALL)


def shared_pool():
    return one_and_four(
        tasks.from_pool("shared", numbers_pool(0), losses.squared, beta=100.0), beta="auto"
    )


def iterated():
    # with more steps, rounding would dominate
    return one_and_four(tasks.irl(np.array([[0.0, 1.0], [-1.0, 0.5]])), steps=5, lr=0.001)


def shards():
    (session,) = sessions(4, seeds=8)
    lowered = teaching._session.run_block.lower(
        session.program, session.numbers, session.carry, jnp.asarray(1)
    )
    session.advance(2)
    params = session.carry.lanes.params
    text = lowered.compile().as_text()
    return {
        "devices": len({shard.device for shard in params.addressable_shards}),
        "shard": params.addressable_shards[0].data.shape[0],
        "rows": session.advance(1).rows["distance"].shape,
        "words": [
            word
            for word in ("all-reduce", "all-gather", "collective-permute", "all-to-all")
            if word in text
        ],
    }


def checkpoints():
    """The seeds of a run, and how far runs that were resumed on other devices end from one that was
    not.
    """
    ends = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoint"
        for before, after in ((1, 1), (4, 1), (1, 3)):
            cut = Recording(sessions(before))
            cut.sessions[0].advance(3)
            _cells.save_checkpoint(cut, 1.0, file)
            resumed = Recording(sessions(after))
            assert _cells.load_checkpoint(resumed, file) == 1.0
            (session,) = resumed.sessions
            assert session.step == 30
            session.advance(3)
            ends.append(session.state.lanes.params)
    return [ends[0].shape[0], *(float(abs(end - ends[0]).max()) for end in ends)]


def commands():
    """Status and standard error of a command on four devices and on one, and whether the curves
    were stored.
    """
    tasks.REGISTRY["small"] = lambda: SMALL._replace(name="small")
    mpl.figure.Figure.savefig = lambda figure, file, **options: file.write(b"figure")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for options in ("--devices 4 --out several", "--out alone"):
            said = io.StringIO()
            named = ",".join(METHODS)
            words = f"run small --seeds {SEEDS} --steps 20 --methods {named} {options}".split()
            with contextlib.chdir(folder), contextlib.redirect_stderr(said):
                try:
                    main(words)
                except SystemExit as ended:
                    stored = Path(words[-1], "small/cooperative/curves.nc").exists()
                    found.append([ended.code, said.getvalue(), stored])
    return found


def tried(check):
    try:
        return check()
    except Exception:
        return {"failed": traceback.format_exc()}


CHECKS = (own_worlds, shared_pool, iterated, shards, checkpoints, commands)

if __name__ == "__main__":
    found = {check.__name__: tried(check) for check in CHECKS}
    print(json.dumps(found))
