"""What the sessions of a run report, and the curves it makes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.results import EXAM, FINITE, FRAMES, PATH, SIGNAL, thinned
from ital.teaching._session import Block, Session

if TYPE_CHECKING:
    import xarray as xr


class Recording:
    """What the sessions of a run report, block by block, and the curves it makes.

    Args:
        sessions: the sessions of the run.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = sessions
        self.blocks: list[list[Block]] = [[] for _ in sessions]

    @property
    def total(self) -> int:
        """The total work, for progress: steps of all lanes; an exam counts as EXAM steps."""
        return sum(
            (session.steps + EXAM * len(session.exams)) * _lanes_of(session)
            for session in self.sessions
        )

    @property
    def done(self) -> int:
        """The work done so far."""
        return sum(
            (session.step + EXAM * self._exams_taken(i)) * _lanes_of(session)
            for i, session in enumerate(self.sessions)
        )

    def done_with(self, share: float) -> int:
        """Return the work done so far, including a share of the next exam.

        Args:
            share: share of the next exam that is done, from 0 to 1.

        Returns:
            The work in steps.
        """
        return self.done + round(share * EXAM * _lanes_of(self.sessions[0]))

    def _exams_taken(self, i: int) -> int:
        """Return how many exams one session has taken."""
        if not self.blocks[i]:
            return 0
        last_step = int(self.blocks[i][-1].steps[-1])
        return sum(step <= last_step for step in self.sessions[i].exams)

    def rows(self, i: int) -> dict[str, np.ndarray]:
        """Return everything that one session measured; NaN where a block lacks a metric.

        Args:
            i: index of the session.

        Returns:
            Metric → rows (step, seed, lane); "step" → the measured steps.
        """
        blocks = self.blocks[i]
        # Signals are not measured at the start, and exams not in every block: the last block with a
        # metric tells its shape.
        latest = {name: rows for block in blocks for name, rows in block.rows.items()}
        collected = {"step": np.concatenate([block.steps for block in blocks])}
        for metric, like in latest.items():
            parts = []
            for block in blocks:
                gap_shape = (len(block.steps), *like.shape[1:])
                gap = np.full(gap_shape, np.nan, like.dtype)
                parts.append(block.rows.get(metric, gap))
            collected[metric] = np.concatenate(parts)
        return collected

    def curves(self, seeds: Sequence[int], methods: Sequence[str]) -> "xr.Dataset":
        """Return all curves, dimensions (learner, seed, step).

        Per lane (method, seed): its ``beta``, and ``diverged_at``, the first measured step at which
        its parameters were not finite (−1: never); ``computed`` distinguishes lanes that were run
        from gaps. Constants of a seed are attributes of their metric.

        Args:
            seeds: the seeds of the run.
            methods: names of the methods, in the desired order.

        Returns:
            The curves.
        """
        import xarray as xr

        parts = [self._curves_of(i, seeds) for i in range(len(self.sessions))]
        # Sessions may record different signals: the gaps become NaN.
        curves = xr.concat(
            parts, "learner", data_vars="all", join="outer", combine_attrs="override"
        )
        return curves.sel({"learner": list(methods)})

    def _curves_of(self, i: int, seeds: Sequence[int]) -> "xr.Dataset":
        """Return the curves of one session."""
        import xarray as xr

        session = self.sessions[i]
        rows = thinned(self.rows(i), session.eval_every)
        rows.pop(PATH, None)
        steps = rows.pop("step")
        diverged_at = _diverged_at(rows.pop(FINITE), steps)
        betas = [
            np.broadcast_to(
                np.asarray(getattr(learner.settings, "beta", np.nan), float), len(seeds)
            )
            for learner in session.learners
        ]
        data: dict[str, Any] = {
            name.removeprefix(SIGNAL): (("learner", "seed", "step"), row.transpose(2, 1, 0))
            for name, row in rows.items()
        }
        per_lane = {
            "beta": np.stack(betas),
            "diverged_at": diverged_at,
            "computed": np.ones(diverged_at.shape, np.int8),
        }
        data |= {name: (("learner", "seed"), row) for name, row in per_lane.items()}
        coords = {
            "learner": [learner.name for learner in session.learners],
            "label": ("learner", [learner.label for learner in session.learners]),
            "seed": list(seeds),
            "step": steps,
        }
        curves = xr.Dataset(data, coords)
        for metric, constants in session.references.items():
            per_seed = {kind: np.asarray(value) for kind, value in constants.items()}
            curves[metric].attrs |= per_seed
        if session.exam:
            for metric, constants in session.exam.references().items():
                # An exam has one constant for all seeds.
                same = {kind: np.full(len(seeds), value) for kind, value in constants.items()}
                curves[metric].attrs |= same
        return curves

    def path(self, seeds: Sequence[int]) -> "xr.DataArray | None":
        """Return the parameters of the first seed over time, if the task can be drawn.

        Args:
            seeds: the seeds of the run.

        Returns:
            The parameters (method, frame, parameter), or None if the task cannot be drawn.
        """
        import xarray as xr

        sessions = [self.rows(i) for i in range(len(self.sessions))]
        if not all(PATH in rows and rows[PATH].ndim == 3 for rows in sessions):
            return None
        steps = sessions[0]["step"]
        frames = np.unique(np.linspace(0, len(steps) - 1, FRAMES).round().astype(int))
        # (frame, method, parameter), the methods of all sessions side by side.
        path = np.concatenate([rows[PATH][frames] for rows in sessions], axis=1)
        methods = [learner.name for session in self.sessions for learner in session.learners]
        return xr.DataArray(
            path.transpose(1, 0, 2),
            {"learner": methods, "frame": steps[frames]},
            ("learner", "frame", "parameter"),
            attrs={"seed": seeds[0]},
        )


def _lanes_of(session: Session) -> int:
    """Return the number of lanes, all seeds counted."""
    return session.numbers.lanes.lr.size


def _diverged_at(finite: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the first measured step at which parameters were not finite; −1 for never.

    Args:
        finite: whether they were finite (step, seed, lane).
        steps: the measured steps.

    Returns:
        The steps (lane, seed).
    """
    first = steps[np.argmin(finite, axis=0)]
    return np.where(finite.all(axis=0), -1, first).T
