"""The data of the claims and figures: finished experiments, by start, task and teacher."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.figures import in_legend_order, label
from ital.results import computed, mean_and_error, measured, metrics_of, questions_of
from ital.tasks import Task
from ital_paper.experiments.plan import Condition

if TYPE_CHECKING:
    import xarray as xr

METHODS_BY_VIEW = ("ital-2", "ital-5", "ital-10", "ital-15", "ital")


@dataclass(frozen=True, eq=False)
class Evidence:
    """One finished experiment.

    Attributes:
        condition: its start, task and teacher.
        task: the task.
        curves: what was recorded, by learner, seed and step.
    """

    condition: Condition
    task: Task
    curves: "xr.Dataset"
    # Claims, figures and tables read the same curves: each is extracted once.
    _read: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, repr=False
    )

    @property
    def main(self) -> str:
        """The metric that judges convergence: the distance without its constant part, if recorded.

        No example can change that part of the learner's parameters. A task without a target
        records no distance: claims about it name a metric of their own.
        """
        return "distance_centred" if "distance_centred" in metrics_of(self.curves) else "distance"

    @property
    def steps(self) -> int:
        """Teaching steps."""
        return int(self.curves["step"].values[-1])

    @property
    def methods(self) -> list[str]:
        """The methods that were run, in the order of the paper's legends."""
        return in_legend_order([str(name) for name in self.curves["learner"].values])

    def label(self, method: str) -> str:
        """Return a method's name as in legends."""
        return label(self.curves, method)

    def has(self, *methods: str) -> bool:
        """Return whether all of these were run."""
        return set(methods) <= set(self.methods)

    def higher_is_better(self, metric: str) -> bool:
        """Return whether more of a metric is better."""
        described = self.task.metrics.get(metric)
        return bool(described and described.higher_is_better)

    def curve(self, method: str, metric: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return steps (step,) and values (seed, step) where the metric was measured.

        A diverged learner is infinitely far away.
        """
        key = (method, metric or self.main)
        if key not in self._read:
            self._read[key] = self._extract_curve(*key)
        return self._read[key]

    def _extract_curve(self, method: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
        # Slow metrics are measured at some of the recorded steps only.
        columns = measured(self.curves, metric)
        lanes = computed(self.curves, method)
        values = lanes[metric].transpose("seed", "step").values[:, columns].astype(float)
        worst = -np.inf if self.higher_is_better(metric) else np.inf
        return lanes["step"].values[columns], np.where(np.isnan(values), worst, values)

    def final(self, method: str, metric: str | None = None) -> np.ndarray:
        """Return the last value of a metric for each seed; less is always better.

        Values of a metric of which more is better are negated.
        """
        metric = metric or self.main
        _, values = self.curve(method, metric)
        last = values[:, -1]
        return -last if self.higher_is_better(metric) else last

    def until(self, step: int) -> "Evidence":
        """Return the experiment as it was after some steps."""
        recorded = self.curves["step"].values
        return Evidence(self.condition, self.task, self.curves.isel(step=recorded <= step))

    def end(self, method: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard error of a metric at the last step."""
        _, values = self.curve(method, metric)
        return mean_and_error(values[:, -1], questions_of(self.curves, metric))

    def left(self, method: str) -> np.ndarray:
        """Return, for each seed, the share of the initial distance that is left at the end."""
        _, values = self.curve(method)
        return np.asarray(values[:, -1] / values[:, 0])

    def panels(self) -> list[str]:
        """Return the recorded metrics of the task's figure.

        A task of which only the name is known has no figure: then all recorded metrics.
        """
        recorded = metrics_of(self.curves)
        return [name for name in self.task.panels if name in recorded] or recorded


def _by_condition(experiments: Iterable[Evidence]) -> dict[Condition, Evidence]:
    return {evidence.condition: evidence for evidence in experiments}


def by_task(experiments: Iterable[Evidence]) -> dict[str, list[Evidence]]:
    """Group experiments by task; tasks and experiments keep their order."""
    groups: dict[str, list[Evidence]] = {}
    for evidence in experiments:
        groups.setdefault(evidence.condition.task, []).append(evidence)
    return groups


class Data:
    """All experiments of a report, and the other results.

    Attributes:
        experiments: the paper's experiments.
        theory: the theory panels, by start and task.
        study: the simulated study, or None.
        sweeps: the sweeps in which every method is tuned.
        beyond: the experiments beyond the paper.
        zero_loss: those with teachers that assume zero loss for their target.
        others: runs of tasks that are not in the paper: the report shows them. The paper's claims
            ignore them; a claim of another package may read them.
        matrix: every teacher with learners that assume another one.
        evidence: learners that keep a belief, from labels alone and from choices as well.
    """

    def __init__(  # noqa: PLR0913
        self,
        experiments: Iterable[Evidence],
        theory: dict[tuple[str, str], Any] | None = None,
        study: Any = None,
        sweeps: "dict[Condition, xr.Dataset] | None" = None,
        beyond: Iterable[Evidence] = (),
        zero_loss: Iterable[Evidence] = (),
        others: Iterable[Evidence] = (),
        matrix: Iterable[Evidence] = (),
        evidence: Iterable[Evidence] = (),
    ) -> None:
        self.experiments = _by_condition(experiments)
        self.theory = theory or {}
        self.study = study
        self.sweeps = sweeps or {}
        self.beyond = _by_condition(beyond)
        self.zero_loss = _by_condition(zero_loss)
        self.others = list(others)
        self.matrix = _by_condition(matrix)
        self.evidence = _by_condition(evidence)

    def every(
        self, teacher: str, *methods: str, tasks: Iterable[str] | None = None
    ) -> Iterator[Evidence]:
        """Yield the paper's experiments with a teacher that include all these methods.

        Args:
            teacher: the teacher.
            *methods: the methods.
            tasks: names of tasks; None for all.
        """
        wanted = None if tasks is None else set(tasks)
        for condition, evidence in self.experiments.items():
            if condition.teacher != teacher:
                continue
            if wanted is not None and condition.task not in wanted:
                continue
            if evidence.has(*methods):
                yield evidence

    def get(
        self,
        start: str,
        task: str,
        teacher: str,
    ) -> Evidence | None:
        """Return one experiment, or None if there are no results."""
        return self.experiments.get(Condition(start, task, teacher))

    def of_tasks(
        self,
        tasks: Iterable[str],
        start: str,
        teacher: str,
    ) -> list[Evidence]:
        """Return the experiments on these tasks that have results, in the order of the tasks."""
        found = (self.get(start, task, teacher) for task in tasks)
        return [evidence for evidence in found if evidence is not None]
