"""Plain second computations of the numbers of an experiment, from tables with labels instead of
axes.
"""

from types import SimpleNamespace

import numpy as np
from scipy import stats


def table(evidence, method, metric=None):
    """The values of a method: a row per seed, a column per step at which the metric was
    measured.
    """
    rows = evidence.curves[metric or main(evidence)].sel(learner=method).to_pandas()
    assert (rows.index.name, rows.columns.name) == ("seed", "step")
    return rows.dropna(axis="columns", how="all")


def main(evidence):
    return "distance_centred" if "distance_centred" in evidence.curves else "distance"


def last(evidence, method, metric=None):
    """The last value of each seed."""
    rows = table(evidence, method, metric)
    return rows[rows.columns.max()]


def kept(evidence, method):
    """The share of the initial distance of each seed that is left at the end."""
    rows = table(evidence, method)
    return rows[rows.columns.max()] / rows[0]


def t_test(differences):
    """Mean, interval and p of a one-sample t-test, from its formula."""
    n, mean = len(differences), np.mean(differences)
    error = np.sqrt(sum((one - mean) ** 2 for one in differences) / (n - 1) / n)
    away = stats.t(n - 1).ppf(0.975) * error
    return SimpleNamespace(
        mean=mean, low=mean - away, high=mean + away, p=2 * stats.t(n - 1).cdf(-abs(mean / error))
    )


def wins(ours, theirs):
    """The share of pairs of seeds in which the first is smaller; ties count half."""
    counts = [1.0 if a < b else 0.5 if a == b else 0.0 for a in ours for b in theirs]
    return sum(counts) / len(counts)


def reached(rows, level):
    """The median of the first steps at or below a share of the start, if most seeds get there."""
    firsts = []
    for _, row in rows.iterrows():
        low = row[row <= level * row[0]]
        if len(low):
            firsts.append(low.index[0])
    return f"{np.median(firsts):.0f}" if len(firsts) > len(rows) / 2 else "–"


def edges(settings, place, beta):
    """Which of η and β lie at the end of what was tried with the other one."""
    method, lr, own = place
    tried = [other for other in settings if other[0] == method]
    lrs = [other[1] for other in tried if other[2] == own]
    betas = [other[2] for other in tried if other[1] == lr]
    ends = ["η"] if lr in (min(lrs), max(lrs)) else []
    return ends + (["β"] if beta and beta in (min(betas), max(betas)) else [])
