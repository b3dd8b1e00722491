"""β and η, versions, and how long everything took."""

import os
import platform
from importlib import metadata

from ital import __version__, report
from ital.statistics import number
from ital_paper.claims.catalogue import duration
from ital_paper.experiments.plan import STAND_INS
from ital_paper.report.sections._context import Context


def build(context: Context) -> list[report.Block]:
    """One row per task, notes, and versions."""
    data = context.data
    rows, computing = [], 0.0
    for task in dict.fromkeys(condition.task for condition in data.experiments):
        own = [
            evidence for evidence in data.experiments.values() if evidence.condition.task == task
        ]
        attrs = own[0].curves.attrs
        decay = float(attrs["beta_decay"])
        beta = f"±{abs(float(attrs['beta'])):g}" + (f"·(1 − {number(decay, 1)})ᵗ" if decay else "")
        seconds = sum(float(evidence.curves.attrs["seconds"]) for evidence in own)
        computing += seconds
        starts = ", ".join(dict.fromkeys(str(evidence.curves.attrs["init"]) for evidence in own))
        rows.append((
            task, beta, f"{float(attrs['lr']):g}", attrs["batch_size"], attrs["steps"], own[0].curves.sizes["seed"],
            starts, len(own), duration(seconds),
        ))  # fmt: skip
    heads = ("task", "β", "η", "mini-batch", "steps", "seeds", "starts", "experiments", "run time")
    with_results = {condition.task for condition in data.experiments}
    stands = [
        f"{instead} replaces {missing}"
        for missing, instead in STAND_INS.items()
        if missing not in with_results
    ]
    remarks = [
        "β is positive for helpful and negative for adversarial teachers. "
        f"With the random teacher, on {', '.join(context.scale.random)}, it is positive.",
        *(
            [f"Tasks whose files the user has to build are left out: {'; '.join(stands)}."]
            if stands
            else []
        ),
        f"Run time of all experiments, over all calls: {duration(computing)}."
        + ("" if context.took is None else f" This call took {duration(context.took)} in all."),
    ]
    caption = "Settings of each task, and the total run time of its experiments."
    return [
        report.table(heads, rows, caption=caption, numbers_from=1),
        report.bullets(remarks),
        report.table(("made with", ""), versions(context).items(), caption="Versions and machine."),
    ]


def versions(context: Context) -> dict[str, str]:
    """Versions of everything that the numbers may depend on."""
    evidence = next(iter(context.data.experiments.values()), None)
    attrs = evidence.curves.attrs if evidence is not None else {}
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
