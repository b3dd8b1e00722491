"""β and η, versions, and how long everything took."""

import os
import platform
from importlib import metadata

from ital import __version__, report
from ital.statistics import number
from ital_paper.claims.catalogue import duration
from ital_paper.experiments.data import Evidence, by_task
from ital_paper.experiments.plan import STAND_INS
from ital_paper.report.sections._context import Context

HEADS = ("task", "β", "η", "mini-batch", "steps", "seeds", "starts", "experiments", "run time")


def settings_section(context: Context) -> list[report.Block]:
    """Show one row per task, notes, and versions."""
    tasks = by_task(context.data.experiments.values())
    rows = [_task_row(task, experiments) for task, experiments in tasks.items()]
    return [
        report.table(
            HEADS,
            rows,
            caption="Settings of each task, and the total run time of its experiments.",
            numbers_from=1,
        ),
        report.bullets(_remarks(context, tasks)),
        report.table(
            ("made with", ""), _versions(context).items(), caption="Versions and machine."
        ),
    ]


def _task_row(task: str, experiments: list[Evidence]) -> tuple[object, ...]:
    # All experiments on a task have the settings of the first but teacher and start.
    first = experiments[0].curves
    starts = dict.fromkeys(str(evidence.curves.attrs["init"]) for evidence in experiments)
    beta = f"±{abs(float(first.attrs['beta'])):g}"
    decay = float(first.attrs["beta_decay"])
    if decay:
        beta += f"·(1 − {number(decay, 1)})ᵗ"
    return (
        task,
        beta,
        f"{float(first.attrs['lr']):g}",
        first.attrs["batch_size"],
        first.attrs["steps"],
        first.sizes["seed"],
        ", ".join(starts),
        len(experiments),
        duration(_run_time(experiments)),
    )


def _run_time(experiments: list[Evidence]) -> float:
    """Return the seconds that these experiments took, over all calls."""
    return sum(float(evidence.curves.attrs["seconds"]) for evidence in experiments)


def _remarks(context: Context, tasks: dict[str, list[Evidence]]) -> list[str]:
    remarks = [
        "β is positive for helpful and negative for adversarial teachers. "
        f"With the random teacher, on {', '.join(context.scale.random)}, it is positive."
    ]
    replaced = [
        f"{instead} replaces {missing}"
        for missing, instead in STAND_INS.items()
        if missing not in tasks
    ]
    if replaced:
        remarks.append(
            f"Tasks whose files the user has to build are left out: {'; '.join(replaced)}."
        )
    # Sums of floats depend on their order: task by task, as in the rows.
    total = sum(_run_time(experiments) for experiments in tasks.values())
    times = f"Run time of all experiments, over all calls: {duration(total)}."
    if context.took is not None:
        times += f" This call took {duration(context.took)} in all."
    return [*remarks, times]


def _versions(context: Context) -> dict[str, str]:
    """Return the versions of everything that the numbers may depend on."""
    evidence = next(iter(context.data.experiments.values()), None)
    # Those of the results may differ from those installed now.
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
