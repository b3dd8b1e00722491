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
    """One finished experiment."""

    condition: Condition
    task: Task
    curves: "xr.Dataset"
    _read: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, repr=False
    )

    @property
    def main(self) -> str:
        """The metric that judges convergence: the distance without the part that no example can change."""
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
        """A method's name as in legends."""
        return label(self.curves, method)

    def has(self, *methods: str) -> bool:
        """Whether all of these were run."""
        return set(methods) <= set(self.methods)

    def higher_is_better(self, metric: str) -> bool:
        """The sign of a metric: whether less or more is better."""
        described = self.task.metrics.get(metric)
        return bool(described and described.higher_is_better)

    def curve(self, method: str, metric: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values (seed, step) where the metric was measured; a diverged learner is infinitely far away."""
        metric = metric or self.main
        if (method, metric) not in self._read:  # claims, figures and tables read the same values
            self._read[method, metric] = self._curve(method, metric)
        return self._read[method, metric]

    def _curve(self, method: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
        at = measured(self.curves, metric)
        lanes = computed(self.curves, method)
        values = lanes[metric].transpose("seed", "step").values[:, at].astype(float)
        worst = -np.inf if self.higher_is_better(metric) else np.inf
        return lanes["step"].values[at], np.where(np.isnan(values), worst, values)

    def final(self, method: str, metric: str | None = None) -> np.ndarray:
        """The last value of a metric for each seed, negated where more is better, so that less is always better."""
        metric = metric or self.main
        values = self.curve(method, metric)[1][:, -1]
        return -values if self.higher_is_better(metric) else values

    def end(self, method: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error of a metric at the last step."""
        return mean_and_error(
            self.curve(method, metric)[1][:, -1], questions_of(self.curves, metric)
        )

    def left(self, method: str) -> np.ndarray:
        """For each seed, the share of the initial distance that is left at the end."""
        values = self.curve(method)[1]
        return np.asarray(values[:, -1] / values[:, 0])

    def panels(self) -> list[str]:
        """The recorded metrics of the task's figure; all metrics if only the task's name is known."""
        recorded = metrics_of(self.curves)
        return [name for name in self.task.panels if name in recorded] or recorded


class Data:
    """All experiments of a report, and the other results.

    The other results are the theory panel, the study, the sweeps, the experiments beyond the paper, teachers that
    assume zero loss for their target, and every teacher with learners that assume another one (``matrix``). ``others``
    are runs of tasks that are not in the paper: the report shows them, but its claims ignore them.
    """

    def __init__(
        self,
        experiments: Iterable[Evidence],
        theory: dict[tuple[str, str], Any] | None = None,
        study: Any = None,
        sweeps: "dict[Condition, xr.Dataset] | None" = None,
        beyond: Iterable[Evidence] = (),
        zero_loss: Iterable[Evidence] = (),
        others: Iterable[Evidence] = (),
        matrix: Iterable[Evidence] = (),
    ) -> None:
        self.experiments = {evidence.condition: evidence for evidence in experiments}
        self.theory = theory or {}
        self.study = study
        self.sweeps = sweeps or {}
        self.beyond = {evidence.condition: evidence for evidence in beyond}
        self.zero_loss = {evidence.condition: evidence for evidence in zero_loss}
        self.others = list(others)
        self.matrix = {evidence.condition: evidence for evidence in matrix}

    def every(
        self, teacher: str, *methods: str, tasks: Iterable[str] | None = None
    ) -> Iterator[Evidence]:
        """Experiments with a teacher, on some tasks, that include all these methods."""
        wanted = None if tasks is None else set(tasks)
        for condition, evidence in self.experiments.items():
            if (
                condition.teacher == teacher
                and (wanted is None or condition.task in wanted)
                and evidence.has(*methods)
            ):
                yield evidence

    def get(self, start: str, task: str, teacher: str) -> Evidence | None:
        """One experiment, or None if there are no results."""
        return self.experiments.get(Condition(start, task, teacher))
