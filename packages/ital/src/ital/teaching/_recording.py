"""Collects what the sessions of a run report, and makes curves of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ital.results import EXAM, FINITE, FRAMES, PATH, SIGNAL, thinned
from ital.teaching._session import Block, Session

if TYPE_CHECKING:
    import xarray as xr


class Recording:
    """Collects what the sessions of a run report, block by block, and makes curves of it.

    Args:
        sessions: the sessions of the run.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = sessions
        self.blocks: list[list[Block]] = [[] for _ in sessions]

    @property
    def total(self) -> int:
        """The total work, for progress: steps of all lanes; an exam counts as EXAM steps."""
        return sum((s.steps + EXAM * len(s.exams)) * s.numbers.lanes.lr.size for s in self.sessions)

    @property
    def done(self) -> int:
        """The work done so far."""
        return sum(
            (s.step + EXAM * self._exams(i)) * s.numbers.lanes.lr.size
            for i, s in enumerate(self.sessions)
        )

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
        return (
            sum(step <= int(blocks[-1].steps[-1]) for step in self.sessions[i].exams)
            if blocks
            else 0
        )

    def rows(self, i: int) -> dict[str, np.ndarray]:
        """Everything that one session measured; NaN where a block lacks a metric.

        Args:
            i: index of the session.

        Returns:
            Metric → rows (step, seed, lane); "step" → the measured steps.
        """
        blocks = self.blocks[i]
        rows = {"step": np.concatenate([block.steps for block in blocks])}
        for metric, last in {
            name: row for block in blocks for name, row in block.rows.items()
        }.items():
            gaps = [
                np.full((len(block.steps), *last.shape[1:]), np.nan, last.dtype) for block in blocks
            ]
            rows[metric] = np.concatenate(
                [b.rows.get(metric, gap) for b, gap in zip(blocks, gaps, strict=True)]
            )
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
            diverged_at = np.where(
                finite.all(axis=0), -1, rows["step"][np.argmin(finite, axis=0)]
            ).T
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
            part = xr.Dataset(
                {**data, **{name: (("learner", "seed"), row) for name, row in lanes.items()}},
                coords,
            )
            for metric, constants in session.references.items():
                part[metric].attrs |= {kind: np.asarray(value) for kind, value in constants.items()}
            for metric, constants in (session.exam.references() if session.exam else {}).items():
                part[metric].attrs |= {
                    kind: np.full(len(seeds), value) for kind, value in constants.items()
                }
            parts.append(part)
        curves = xr.concat(
            parts, "learner", data_vars="all", join="outer", combine_attrs="override"
        )
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
        return xr.DataArray(
            path, coords, ("learner", "frame", "parameter"), attrs={"seed": seeds[0]}
        )
