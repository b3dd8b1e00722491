"""A participant in memory: the row and the current robot, rebuilt from the stored steps."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from ital_study.robots import attention as _attention
from ital_study.robots.rules import Arrow, Mind, RobotPicture, StudyRules
from ital_study.server import _flow
from ital_study.server._flow import Asked, Round
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
        self.participant, self.rules, self.config = participant, rules, rules.config
        self.public = rules.config.public(participant.language)
        self.lock = asyncio.Lock()
        self.stale = False
        self.consented_by: str | None = None  # the cookie of the browser that gave the consent
        self.mind: Mind | None = None
        self.picture: RobotPicture | None = None
        self.arrows: Sequence[Sequence[Arrow]] = ()
        self.after: dict[str, Any] | None = None  # what the last step did
        self.enter(self._replayed(stored))

    @property
    def rounds(self) -> list[Round]:
        """The rounds that are known by now."""
        return _flow.rounds(self.config, self.participant.order)

    @property
    def place(self) -> tuple[Round, int] | None:
        """The next round and step; None outside the teaching."""
        if self.participant.stage not in ("warm_up", "teach"):
            return None
        return _flow.where(self.rounds, self.participant.done)

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
        """The attention check that comes before the next step; None if there is none, or it was answered."""
        if self.place is None or not self.config.attention:
            return None
        current, t = self.place
        check = _attention.check_at(self.config, current.map, current.robot, t + 1)
        return None if check in self.attended else check

    def _replayed(self, stored: Sequence[StoredStep]) -> Mind | None:
        """The robot after the last stored step: a replay of the choices."""
        number, done = self.participant.number, self.participant.done
        last = _flow.where(self.rounds, done - 1) if done else None
        if last is None:
            return None
        current, t = last
        by_step = {(step.map, step.learner, step.step): step for step in stored}
        steps = [by_step[current.map, current.learner, i + 1] for i in range(t + 1)]
        minds = self.rules.replay(
            number, current.map, current.learner, [step.choice for step in steps]
        )
        # The stored belief is what the participant saw; a replay on another machine may round differently. A robot's
        # memory is not stored, so it comes from the replay.
        beliefs = [minds[0].belief, *(as_state(step.state) for step in steps)]
        if not np.allclose(
            [mind.belief for mind in minds], beliefs, rtol=TOLERANCE, atol=TOLERANCE
        ):
            LOG.error(
                "participant %d, map %s: the replay differs from what is stored",
                number,
                current.map,
            )
        self.look_back(current, steps[-1], beliefs[-2])
        return minds[-1]._replace(belief=beliefs[-1])

    def enter(self, mind: Mind | None = None) -> None:
        """Prepare the next step, with the same robot or a new one."""
        place, number = self.place, self.participant.number
        if place is None:
            self.mind, self.picture, self.arrows = None, None, ()
            return
        current, t = place
        if t == 0 or not self.arrows:
            self.arrows = self.rules.candidates(number, current.map)
        if mind is None or t == 0:
            mind = self.rules.mind(current.learner, self.rules.start(number, current.map))
        self.mind, self.picture = mind, self.rules.picture(mind.belief)

    def look_back(
        self,
        current: Round,
        step: StoredStep,
        before: np.ndarray,
        picture: RobotPicture | None = None,
    ) -> None:
        """Keep the effect of the last step, for the page to show."""
        shown = picture or self.rules.picture(as_state(step.state))
        hint = None
        if self.config.hint:
            arrows = self.rules.candidates(self.participant.number, current.map)[step.step - 1]
            hint = self.rules.best(current.map, before, arrows)
        step_facts = {
            "round": current.id,
            "step": step.step - 1,
            "choice": step.choice,
            "hint": hint,
        }
        self.after = step_facts | shown._asdict()
