"""A participant in memory: the row and the current robot, rebuilt from the stored steps."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from ital_study.robots import attention as _attention
from ital_study.robots.rules import Arrow, Mind, RobotPicture, StudyRules
from ital_study.server import _flow
from ital_study.server._flow import Asked, NextStep, Round
from ital_study.store.operations import as_state
from ital_study.store.records import Participant, StoredStep

LOG = logging.getLogger("ital_study")
TOLERANCE = 1e-3  # largest difference between a replay and a belief stored on another machine


class ParticipantSession:
    """A participant, the next step, and the effect of the last one.

    ``stored`` are the steps so far, ``attended`` the attention checks that were answered.
    """

    def __init__(
        self,
        participant: Participant,
        rules: StudyRules,
        stored: Sequence[StoredStep],
        attended: frozenset[int] = frozenset(),
    ) -> None:
        self.attended = attended
        self.participant = participant
        self.rules = rules
        self.config = rules.config
        self.public = rules.config.public(participant.language)
        self.lock = asyncio.Lock()
        # Set when the session is dropped: whoever waits for the lock must load a new one.
        self.stale = False
        self.consented_by: str | None = None  # the cookie of the browser that gave the consent
        self.mind: Mind | None = None
        self.picture: RobotPicture | None = None
        self.arrows: Sequence[Sequence[Arrow]] = ()  # by step of the round
        self.after: dict[str, Any] | None = None  # what the last step did
        self.enter(self._replayed(stored))

    @property
    def rounds(self) -> list[Round]:
        """The rounds that are known by now."""
        return _flow.rounds(self.config, self.participant.order)

    @property
    def next_step(self) -> NextStep | None:
        """The step that comes next; None outside the teaching."""
        if self.participant.stage not in ("warm_up", "teach"):
            return None
        return _flow.next_step(self.rounds, self.participant.done)

    def is_next(self, round_id: str, step: int) -> bool:
        """Return whether a step (from 0) of a round comes next."""
        upcoming = self.next_step
        if upcoming is None:
            return False
        return upcoming.round.id == round_id and upcoming.step == step

    @property
    def asked(self) -> Asked | None:
        """The page of questions that comes next; None at other stages."""
        participant = self.participant
        if participant.stage != "questions":
            return None
        return _flow.asked_next(
            self.config, participant.order, participant.done, participant.answered
        )

    @property
    def attention(self) -> int | None:
        """The attention check before the next step; None if there is none, or it was answered."""
        if not self.config.attention:
            return None
        upcoming = self.next_step
        if upcoming is None:
            return None
        current, t = upcoming
        check = _attention.check_at(self.config, current.map, current.robot, t + 1)
        if check in self.attended:
            return None
        return check

    def _replayed(self, stored: Sequence[StoredStep]) -> Mind | None:
        """Return the robot after the last stored step: a replay of the choices."""
        done = self.participant.done
        if not done:
            return None
        last = _flow.next_step(self.rounds, done - 1)
        if last is None:
            return None
        current, t = last
        by_number = {step.step: step for step in stored if _is_of_round(step, current)}
        # A step that is missing raises: the replay would be that of another robot.
        steps = [by_number[number] for number in range(1, t + 2)]
        choices = [step.choice for step in steps]
        # One more mind than steps: the first is the robot at its start.
        minds = self.rules.replay(self.participant.number, current.map, current.learner, choices)
        # The stored belief is what the participant saw; a replay on another machine may round
        # differently. A robot's memory is not stored, so it comes from the replay.
        beliefs = [minds[0].belief, *(as_state(step.state) for step in steps)]
        self._check_replay(current, [mind.belief for mind in minds], beliefs)
        self.look_back(current, steps[-1], beliefs[-2])
        return minds[-1]._replace(belief=beliefs[-1])

    def _check_replay(
        self, current: Round, replayed: Sequence[np.ndarray], stored: Sequence[np.ndarray]
    ) -> None:
        """Log a difference that rounding cannot explain; the participant continues all the same."""
        if not np.allclose(replayed, stored, rtol=TOLERANCE, atol=TOLERANCE):
            LOG.error(
                "participant %d, map %s: the replay differs from what is stored",
                self.participant.number,
                current.map,
            )

    def enter(self, mind: Mind | None = None) -> None:
        """Prepare the next step, with the same robot or a new one."""
        number = self.participant.number
        upcoming = self.next_step
        if upcoming is None:
            self.mind = None
            self.picture = None
            self.arrows = ()
            return
        current, t = upcoming
        # Arrows are drawn for a whole round at once.
        if t == 0 or not self.arrows:
            self.arrows = self.rules.candidates(number, current.map)
        if mind is None or t == 0:
            mind = self.rules.mind(current.learner, self.rules.start(number, current.map))
        self.mind = mind
        self.picture = self.rules.picture(mind.belief)

    def look_back(
        self,
        current: Round,
        step: StoredStep,
        before: np.ndarray,
        picture: RobotPicture | None = None,
    ) -> None:
        """Keep the effect of the last step, for the page to show.

        ``before`` is the belief before it; ``picture`` saves drawing the robot after it again.
        """
        hint = None
        if self.config.hint:
            arrows = self.rules.candidates(self.participant.number, current.map)[step.step - 1]
            hint = self.rules.best(current.map, before, arrows)
        if picture is None:
            picture = self.rules.picture(as_state(step.state))
        step_facts = {
            "round": current.id,
            "step": step.step - 1,
            "choice": step.choice,
            "hint": hint,
        }
        self.after = step_facts | picture._asdict()


def _is_of_round(step: StoredStep, current: Round) -> bool:
    return step.map == current.map and step.learner == current.learner
