"""Choices made in live sessions, with the scores by which the package's teachers choose."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.fit._choices import Choices, from_arrays
from ital.teaching import Live


def replay(sessions: Mapping[Any, Live], *, horizons: Sequence[int] = ()) -> Choices:
    """Replay what people chose in live sessions, and score every candidate of every step.

    Args:
        sessions: The session of each person, from :func:`ital.session` or
            :func:`ital.load_session`, on one task with mini-batches of one size.
        horizons: Numbers of mini-batches that planners see, whose scores are wanted as well.

    Returns:
        The choices, with the column ``step``, the scores of :attr:`ital.Live.scores`, and those of
        planners in columns such as ``planner:3``.

    Raises:
        InputError: There is no session, one has no choice, or a horizon is none.

    Example:
        >>> sessions = {name: ital.load_session(f"{name}.json") for name in ("ann", "bob")}
        >>> choices = ital.fit.replay(sessions)
        >>> models = [ital.fit.TeacherModel(name, name) for name in ("exact", "loss")]
        >>> print(ital.fit.fit(choices, models).table)
    """
    if not sessions:
        raise InputError("there is no session to replay: give at least one")
    people: list[Any] = []
    steps: list[int] = []
    chosen: list[int] = []
    scores: list[dict[str, np.ndarray]] = []
    for person, session in sessions.items():
        if not session.choices:
            raise InputError(f"the session of {person} has no choices: there is nothing to fit")
        again = Live(session.task, session.learner, session.run)
        for step, index in enumerate(session.choices):
            people.append(person)
            steps.append(step)
            chosen.append(index)
            planned = {f"planner:{horizon}": again.plan_worths(horizon) for horizon in horizons}
            scores.append({**again.scores, **planned})
            again.choose(index)
    # One row of candidates per step; float64, because the likelihood needs more digits.
    by_name = pd.DataFrame(scores)
    in_double = {str(name): np.stack(list(rows)).astype(float) for name, rows in by_name.items()}
    return from_arrays(
        pd.DataFrame({"person": people}),
        np.array(chosen),
        {"step": np.array(steps)[:, None], **in_double},
    )
