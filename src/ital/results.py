"""The results of a run: learning curves as one xarray Dataset, and summaries of them."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from ital.teaching import Block, Session


RESERVED = ("learner", "seed", "step", "label", "beta", "computed", "diverged_at", "version", "path", "frame")
EXAM = 2000  # the weight of an exam in the progress bar, in teaching steps
FINITE = "_finite"  # a row of every block: whether all parameters of the lane are finite
SIGNAL = "signal/"  # prefix of a learner's signal: the row is a mean over the steps since the last row
PATH = "_path"  # a row of every block, if the task can be drawn: the parameters of the first seed
FRAMES = 41  # frames of a path that are kept


class Recording:
    """Collects what the sessions of a run report, block by block, and makes curves of it.

    Args:
        sessions: the sessions of the run.
    """

    def __init__(self, sessions: "Sequence[Session]") -> None:
        self.sessions = sessions
        self.blocks: list[list[Block]] = [[] for _ in sessions]

    @property
    def total(self) -> int:
        """The total work, for progress: steps of all lanes; an exam counts as EXAM steps."""
        return sum((s.steps + EXAM * len(s.exams)) * s.numbers.lanes.lr.size for s in self.sessions)

    @property
    def done(self) -> int:
        """The work done so far."""
        return sum((s.step + EXAM * self._exams(i)) * s.numbers.lanes.lr.size for i, s in enumerate(self.sessions))

    def done_with(self, share: float) -> int:
        """The work done so far, including a share of the next exam.

        Args:
            share: share of the next exam that is done, from 0 to 1.

        Returns:
            The work in steps.
        """
        return self.done + round(share * EXAM * self.sessions[0].numbers.lanes.lr.size)

    def _exams(self, i: int) -> int:
        blocks = self.blocks[i]
        return sum(step <= int(blocks[-1].steps[-1]) for step in self.sessions[i].exams) if blocks else 0

    def rows(self, i: int) -> dict[str, np.ndarray]:
        """Everything that one session measured; NaN where a block lacks a metric.

        Args:
            i: index of the session.

        Returns:
            Metric → rows (step, seed, lane); "step" → the measured steps.
        """
        blocks = self.blocks[i]
        rows = {"step": np.concatenate([block.steps for block in blocks])}
        for metric, last in {name: row for block in blocks for name, row in block.rows.items()}.items():
            gaps = [np.full((len(block.steps), *last.shape[1:]), np.nan, last.dtype) for block in blocks]
            rows[metric] = np.concatenate([b.rows.get(metric, gap) for b, gap in zip(blocks, gaps, strict=True)])
        return rows

    def curves(self, seeds: Sequence[int], methods: Sequence[str]) -> "xr.Dataset":
        """All curves, dimensions (learner, seed, step); constants of a seed are attributes of their metric.

        Per lane (method, seed): its ``beta``, and ``diverged_at``, the first measured step at which its parameters
        were not finite (−1: never); ``computed`` distinguishes lanes that were run from gaps.

        Args:
            seeds: the seeds of the run.
            methods: names of the methods, in the desired order.

        Returns:
            The curves.
        """
        import xarray as xr

        parts = []
        for i, session in enumerate(self.sessions):
            rows = thinned(self.rows(i), session.eval_every)
            finite = rows.pop(FINITE)
            rows.pop(PATH, None)
            diverged_at = np.where(finite.all(axis=0), -1, rows["step"][np.argmin(finite, axis=0)]).T
            betas = [getattr(learner.settings, "beta", np.nan) for learner in session.learners]
            coords = {
                "learner": [learner.name for learner in session.learners],
                "label": ("learner", [learner.label for learner in session.learners]),
                "seed": list(seeds),
                "step": rows.pop("step"),
            }
            data = {
                name.removeprefix(SIGNAL): (("learner", "seed", "step"), row.transpose(2, 1, 0))
                for name, row in rows.items()
            }
            computed = np.ones(diverged_at.shape, np.int8)
            per_seed = [np.broadcast_to(np.asarray(beta, float), len(seeds)) for beta in betas]
            lanes = {"beta": np.stack(per_seed), "diverged_at": diverged_at, "computed": computed}
            part = xr.Dataset({**data, **{name: (("learner", "seed"), row) for name, row in lanes.items()}}, coords)
            for metric, constants in session.references.items():
                part[metric].attrs |= {kind: np.asarray(value) for kind, value in constants.items()}
            for metric, constants in (session.exam.references() if session.exam else {}).items():
                part[metric].attrs |= {kind: np.full(len(seeds), value) for kind, value in constants.items()}
            parts.append(part)
        curves = xr.concat(parts, "learner", data_vars="all", join="outer", combine_attrs="override")
        return curves.sel({"learner": list(methods)})

    def path(self, seeds: Sequence[int]) -> "xr.DataArray | None":
        """The parameters of the first seed over time, (method, frame, parameter), if the task can be drawn.

        Args:
            seeds: the seeds of the run.

        Returns:
            The parameters, or None if the task cannot be drawn.
        """
        import xarray as xr

        sessions = [self.rows(i) for i in range(len(self.sessions))]
        if not all(PATH in rows and rows[PATH].ndim == 3 for rows in sessions):
            return None
        steps = sessions[0]["step"]
        kept = np.unique(np.linspace(0, len(steps) - 1, FRAMES).round().astype(int))
        path = np.concatenate([rows[PATH][kept] for rows in sessions], axis=1).transpose(1, 0, 2)
        methods = [learner.name for session in self.sessions for learner in session.learners]
        coords = {"learner": methods, "frame": steps[kept]}
        return xr.DataArray(path, coords, ("learner", "frame", "parameter"), attrs={"seed": seeds[0]})


def thinned(rows: dict[str, np.ndarray], eval_every: int) -> dict[str, np.ndarray]:
    """Only rows at multiples of ``eval_every`` and at the last step; signals are averaged over the steps between."""
    steps = rows["step"]
    kept = (steps % eval_every == 0) | (steps == steps[-1])
    if kept.all():
        return rows
    weights = np.diff(steps, prepend=0)
    window = np.cumsum(kept) - kept
    thin = {name: row[kept] for name, row in rows.items()}
    for name in [name for name in rows if name.startswith(SIGNAL)]:
        total = np.zeros_like(thin[name])
        np.add.at(total, window[1:], rows[name][1:] * weights[1:, None, None])  # there is no signal at step 0
        with np.errstate(invalid="ignore"):
            thin[name] = total / np.bincount(window, weights)[:, None, None].astype(total.dtype)
    return thin


def measured(curves: "xr.Dataset", metric: str) -> np.ndarray:
    """The steps at which a metric was measured: any lane has a value, or all lanes have diverged.

    Args:
        curves: curves of a run.
        metric: name of the metric.

    Returns:
        True for each step at which it was measured.
    """
    lanes = curves["computed"].values == 1
    values = curves[metric].transpose(*curves["computed"].dims, "step").values[lanes]
    diverged_at = curves["diverged_at"].values[lanes][:, None]
    alive = (diverged_at < 0) | (curves["step"].values < diverged_at)
    return ~np.isnan(values).all(axis=0) | ~alive.any(axis=0)


def metrics_of(curves: "xr.Dataset") -> list[str]:
    """Names of the metrics in the order of recording.

    Args:
        curves: curves of a run.

    Returns:
        The names.
    """
    return [str(name) for name, variable in curves.data_vars.items() if "step" in variable.dims]


def computed(curves: "xr.Dataset", method: str) -> "xr.Dataset":
    """The curves of one method, only the seeds that were run with it.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        The curves, dimensions (seed, step).
    """
    lanes = curves.sel(learner=method)
    return lanes.isel(seed=np.flatnonzero(lanes["computed"].values))


def mean_and_error(values: np.ndarray, questions: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over the first axis (the seeds); the error of a single seed is NaN.

    All seeds answer the same questions of an exam, so their spread does not reflect the choice of questions. With Q
    questions, of which seed s answers the share a_s correctly,

        SE² = Var_s(a_s) / S + mean_s a_s(1 − a_s) / (Q − 1).

    The second term is the variance of a_s due to the choice of questions, averaged over seeds. It is an upper bound for
    the variance of their mean, reached if all seeds fail on the same questions.

    Args:
        values: values with the seeds along the first axis.
        questions: number of questions, if the values are shares of correct answers in an exam.

    Returns:
        Mean and standard error.
    """
    values = np.asarray(values, float)
    n = len(values)
    with np.errstate(invalid="ignore", over="ignore"):
        error = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)
        if questions is not None:
            error = np.sqrt(error**2 + np.mean(values * (1 - values), axis=0) / max(questions - 1, 1))
        return np.asarray(values.mean(axis=0)), np.asarray(error)


def questions_of(curves: "xr.Dataset", metric: str) -> int | None:
    """The number of questions in the exam that measured a metric.

    Args:
        curves: curves of a run.
        metric: name of the metric.

    Returns:
        The number; None if it is not known, or no exam measured the metric.
    """
    questions = curves[metric].attrs.get("questions")
    return None if questions is None else int(np.ravel(questions)[0])


def summarise(curves: "xr.Dataset") -> "pd.DataFrame":
    """Mean, standard error and number of seeds per method and metric at five steps: the table of ``summary.csv``.

    The steps are 0, T/4, T/2, 3T/4 and T, or the nearest measured ones.

    Args:
        curves: curves of a run.

    Returns:
        One row per method, metric and step.

    Example:
        >>> ital.results.summarise(ital.experiments.load_curves("results/regression/cooperative/curves.nc"))
    """
    import pandas as pd

    steps = curves["step"].values
    last = int(steps[-1])
    records = []
    for method in curves["learner"].values:
        lanes = computed(curves, method)
        for metric in metrics_of(curves):
            curve = lanes[metric].transpose("seed", "step").values
            places = np.flatnonzero(measured(curves, metric))
            quarters = range(5) if len(places) else ()
            nearest = [places[np.abs(steps[places] - quarter * last / 4).argmin()] for quarter in quarters]
            for i in dict.fromkeys(nearest):  # short runs have fewer than five distinct steps
                mean, error = mean_and_error(curve[:, i], questions_of(curves, metric))
                record = (curves.attrs.get("task", ""), curves.attrs.get("teacher", ""), method, metric, int(steps[i]))
                records.append((*record, float(mean), float(error), len(curve)))
    return pd.DataFrame(records, columns=["task", "teacher", "method", "metric", "step", "mean", "sem", "n"])


def long_form(curves: "xr.Dataset") -> "pd.DataFrame":
    """All measured values of a run or a sweep, one per row: the table of ``curves.csv`` and ``sweep.csv``.

    Lanes that were not computed and steps at which a metric was not measured have no rows. In a sweep, methods without
    a β have one row per η, with an empty ``beta``.

    Args:
        curves: curves of a run, or the grid of a sweep.

    Returns:
        Columns task, teacher, method, seed, (in a sweep lr and beta,) step, metric, value.
    """
    import pandas as pd

    dims = ["learner", "seed", *(name for name in ("lr", "beta") if name in curves.dims)]
    lanes = curves["computed"].transpose(*dims).values == 1
    single = np.isin(curves["learner"].values, json.loads(curves.attrs.get("without_beta", "[]")))
    if "beta" in dims:
        lanes[single, ..., 1:] = False  # methods without β are repeated along it
    tables = []
    for metric in metrics_of(curves):
        values = curves[metric].transpose(*dims, "step").values
        places = np.nonzero(lanes[..., None] & measured(curves, metric))
        columns = {name: curves[name].values[at] for name, at in zip([*dims, "step"], places, strict=True)}
        if "beta" in dims:
            columns["beta"] = np.where(single[places[0]], np.nan, columns["beta"])
        tables.append(pd.DataFrame({**columns, "metric": metric, "value": values[places]}))
    table = pd.concat(tables, ignore_index=True).rename(columns={"learner": "method"})
    table.insert(0, "task", curves.attrs.get("task", ""))
    table.insert(1, "teacher", curves.attrs.get("teacher", ""))
    return table


def divergence(curves: "xr.Dataset", method: str) -> tuple[int, int] | None:
    """The first step at which a seed's parameters were not finite, and the number of seeds that diverged.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        (step, number of seeds), or None if no seed diverged.
    """
    diverged_at = computed(curves, method)["diverged_at"].values
    diverged_at = diverged_at[diverged_at >= 0]
    return (int(diverged_at.min()), len(diverged_at)) if len(diverged_at) else None


def divergence_note(curves: "xr.Dataset", method: str, remedy: str = "a smaller lr or beta") -> str | None:
    """One line about the seeds of a method that diverged.

    Args:
        curves: curves of a run.
        method: name of the method.
        remedy: what to try.

    Returns:
        The line, or None if no seed diverged.
    """
    found = divergence(curves, method)
    if found is None:
        return None
    step, seeds = found
    lanes = computed(curves, method)
    of = f"{seeds} of {lanes.sizes['seed']} seeds"
    return f"{lanes['label'].item()} diverged: values are not finite from step {step} on ({of}). Try {remedy}."


__all__ = [
    "Recording",
    "computed",
    "divergence",
    "divergence_note",
    "long_form",
    "mean_and_error",
    "measured",
    "metrics_of",
    "questions_of",
    "summarise",
]
