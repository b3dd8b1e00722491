"""β and η, versions, and how long everything took."""

import os
import platform
from importlib import metadata

from ital._version import __version__
from ital.reproduce import _blocks
from ital.reproduce._blocks import Block
from ital.reproduce._claims import duration
from ital.reproduce._numbers import number
from ital.reproduce._plan import STAND_INS
from ital.reproduce.sections._context import Context


def build(context: Context) -> list[Block]:
    """A row per task, what to know beside it, and versions."""
    data = context.data
    rows, computing = [], 0.0
    for task in dict.fromkeys(condition.task for condition in data.experiments):
        own = [one for one in data.experiments.values() if one.condition.task == task]
        attrs = own[0].curves.attrs
        decay = float(attrs["beta_decay"])
        beta = f"±{abs(float(attrs['beta'])):g}" + (f"·(1 − {number(decay, 1)})ᵗ" if decay else "")
        seconds = sum(float(one.curves.attrs["seconds"]) for one in own)
        computing += seconds
        starts = ", ".join(dict.fromkeys(str(one.curves.attrs["init"]) for one in own))
        rows.append((
            task, beta, f"{float(attrs['lr']):g}", attrs["batch_size"], attrs["steps"], own[0].curves.sizes["seed"],
            starts, len(own), duration(seconds),
        ))  # fmt: skip
    heads = ("task", "β", "η", "mini-batch", "steps", "seeds", "starts", "experiments", "run time")
    stands = "; ".join(f"{instead} stands for {missing}" for missing, instead in STAND_INS.items())
    said = [
        "β is positive for helpful and negative for adversarial teachers. "
        f"The random teacher, on {', '.join(context.scale.random)}, gets the positive one.",
        f"Tasks that need files the user builds are left out: {stands}.",
        f"Run time of all experiments: {duration(computing)}, over all calls that computed."
        + ("" if context.took is None else f" This call took {duration(context.took)} in all."),
        *context.notes,
    ]
    caption = "Settings and run time of each task, all its experiments together."
    return [
        _blocks.table(heads, rows, caption=caption, numbers_from=1),
        _blocks.bullets(said),
        _blocks.table(("made with", ""), versions(context).items(), caption="Versions and machine."),
    ]


def versions(context: Context) -> dict[str, str]:
    """Of everything that numbers may depend on."""
    one = next(iter(context.data.experiments.values()), None)
    attrs = one.curves.attrs if one is not None else {}
    return {
        "ital": __version__,
        "Python": platform.python_version(),
        "jax": str(attrs.get("jax_version", "")),
        "numpy": str(attrs.get("numpy_version", "")),
        "scipy": metadata.version("scipy"),
        "device": str(attrs.get("device", "")),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
    }
