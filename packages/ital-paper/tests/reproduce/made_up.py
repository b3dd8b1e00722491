"""Made-up results, in which a claim holds or fails as a test requires."""

import itertools

from ital_paper.experiments.data import Data, Evidence
from ital_paper.experiments.plan import FULL, STARTS, Condition
from ital_paper.report.sections import Context, all_sections
from tests.experiments import made_up
from tests.experiments.made_up import PAPER, UNEVEN


def experiment(left=None, *, task="regression", teacher="cooperative", start="uniform", **options):
    """Evidence for a condition; the options are those of a made-up run."""
    run = made_up.experiment(left, task=task, teacher=teacher, start=start, **options)
    return Evidence(Condition(start, task, teacher), run.task, run.curves)


def in_context(data, scale=FULL, out=None, took=None):
    """What a section reads, if all there is are these results."""
    return Context(data, [], scale, out, took)


def blocks_of(name, context):
    """The blocks of one section of the report."""
    (section,) = [one for one in all_sections() if one.id == name]
    return section.build(context)


def various(teacher="cooperative", *, rough=1.0, **shares):
    """Experiments that differ in their seeds, steps, starts and values, and in what a claim says
    about them.

    Between the first and the last, the lead of the aware methods and of IMT shrinks to nothing: a
    claim holds on some and fails on others, and so do its parts on the seeds of one. ``shares`` are
    the distances left in the first experiment; ``rough`` scales the noise.
    """
    first = PAPER | shares
    made = []
    names = [
        ("regression", 7),
        ("mnist-20", 9),
        ("mnist-30", 6),
        ("gaussian", 8),
        ("irl-sparse", 5),
    ]
    for i, (start, (task, seeds)) in enumerate(itertools.product(STARTS, names)):
        lead = (len(names) * 2 - 1 - i) / (len(names) * 2 - 1)
        left = {method: 0.75 + lead * (share - 0.75) for method, share in first.items()}
        own = experiment(
            left,
            task=task,
            teacher=teacher,
            start=start,
            steps=UNEVEN[: len(UNEVEN) - i % 3],
            seeds=[3 * seed + seed % 2 + i for seed in range(seeds)],
            spread={"ital": 0.15, "imt": 0.05},
            rough=rough * (0.04 + 0.02 * (i % 4)),
            draw=i,
            centred=i % 2 == 1,
            seconds=70.0 + 1000.0 * i,
            lr=1e-3 * (i + 1),
        )
        made.append(own)
    return made


def both_starts(left=None, other=None, **options):
    """The same from both starts, or with other shares from the second."""
    given = {STARTS[0]: left, STARTS[1]: left if other is None else other}
    return Data([experiment(own, start=start, **options) for start, own in given.items()])


def theory(*, held=1.0, violations=0.0, error=0.01):
    """A theory panel in which the aware step is the better one on a share of the steps at the
    largest β.
    """
    return {
        "guarantee": {
            "beta": [1.0, 1e6, 1e12],
            "steps": 100,
            "held": 90,
            "where_held": [1.0, 0.6, held],
            "elsewhere": [0.5, 0.1, 0.0],
        },
        "taught": {
            "beta": [50.0, 5000.0],
            "task_beta": 5000.0,
            "left": [0.7, 0.1],
            "conditions": [0.9, 0.9],
            "improved": [1, 0.8],
        },
        "sharpness": {
            "beta": [10.0, 1e3, 1e5],
            "sharpness": [0.07, 0.6, 1.0],
            "auto": [1400.0],
            "cap": 5e4,
            "task_beta": 5000.0,
            "at_task_beta": 0.9,
        },
        "monotonicity_violations": violations,
        "teaching_risk": 0.2,
        "premises": {
            "loss_slope": 13.0,
            "norm_slope": 900.0,
            "radius": 8.0,
            "error": error,
            "missed": 0.02,
            "convexity_violations": 0.0,
        },
    }
