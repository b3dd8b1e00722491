"""A participant in memory, and the state that their page receives.

A session holds the row and the current robot, rebuilt from the stored steps. The state of a page is
the stage and all that the page needs; it never says of which kind a robot is.
"""

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ital_study.config.configuration import Config
from ital_study.robots import attention as _attention
from ital_study.robots.rules import Arrow, Mind, RobotPicture, StudyRules
from ital_study.server import _endings, _flow
from ital_study.server._asking import page_questions
from ital_study.server._flow import Asked, NextStep, Round
from ital_study.server._keys import Keys
from ital_study.server._markdown import parse_markdown
from ital_study.store import operations
from ital_study.store.operations import as_state
from ital_study.store.records import Participant, StoredStep

LOG = logging.getLogger("ital_study")
PageState = dict[str, Any]
TEACHING = ("warm_up", "teach")
PUBLIC_FACTS = (
    "title",
    "languages",
    "palette",
    "numbers",
    "hint",
    "maps",
    "robots",
    "steps",
    "warm_up_steps",
    "version",
    "panel",
    "size",
    "values",
)
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
        if self.participant.stage not in TEACHING:
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


# What pages receive


def page_state(session: ParticipantSession, keys: Keys) -> PageState:
    """Return the state of a participant, for the page."""
    participant = session.participant
    stage = participant.stage
    if participant.excluded is not None:
        stage = "excluded"
    return {
        "stage": stage,
        "language": participant.language,
        "csrf": keys.csrf(participant.uid),
        "resume_code": None,  # only some browsers may see it: see ``Page.answer``
        "mode": participant.mode,
        "study": study_facts(session.public),
        "progress": _flow.progress(session.config, participant),
        "after": session.after if stage in (*TEACHING, "questions", "comments") else None,
        **_of_stage(session, keys, stage),
    }


def _of_stage(session: ParticipantSession, keys: Keys, stage: str) -> PageState:
    """Return what only the pages of a stage need.

    Later stages are left out: nobody can look up what comes.
    """
    participant = session.participant
    if stage == "consent":
        return {"consent": _with_elements(session.public["consent"])}
    if stage in ("instructions", "check"):
        return _to_read(session, stage)
    asked = session.asked
    if stage == "questions" and asked is not None:
        return {"questions": page_questions(asked, session.config, participant.language)}
    if stage in TEACHING:
        return {"scene": _next_scene(session)}
    if stage == operations.WAITING:
        part = _flow.page_part(session.config, participant)
        if part["state"] != _flow.LATE:
            return {"part": part}
        return {"part": part, **ending(session, keys, None)}
    if stage == "excluded" or stage in _endings.OUTCOMES:
        state = ending(session, keys, _endings.outcome_of(participant))
        if stage == "finished":
            state["completion"]["steps_stored"] = participant.done
        return state
    return {}


def _to_read(session: ParticipantSession, stage: str) -> PageState:
    """Return the instructions; at the check they can be read again, beside the questions."""
    pages = [_with_elements(page) for page in session.public["instructions"]]
    if stage == "instructions":
        return {"instructions": pages}
    check = {
        "questions": session.public["check"],
        "tries_left": _flow.TRIES - session.participant.tries,
    }
    return {"instructions": pages, "check": check}


def ending(session: ParticipantSession, keys: Keys, outcome: str | None) -> PageState:
    """Return what a page gets at the end: what people are entitled to, and the debriefing."""
    participant = session.participant
    state: PageState = {}
    if outcome is not None:
        state["completion"] = _endings.completion(session.config, keys, participant.uid, outcome)
    if _endings.has_consented(participant):
        state["debriefing"] = debriefing(session.config, participant.language)
    return state


def debriefing(config: Config, language: str) -> list[Any]:
    """Return what the study was about, as elements that the page can build."""
    return parse_markdown(config.texts(language).debriefing)


def _with_elements(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of the study with its text as elements that the page can build."""
    return {**part, "text": parse_markdown(part["text"])}


def _next_scene(session: ParticipantSession) -> dict[str, Any]:
    """Return the map, the robot and the arrows of the next step."""
    config = session.config
    assert session.next_step is not None
    assert session.picture is not None
    current, t = session.next_step
    arrows = session.arrows[t]
    check = session.attention
    instruction = None
    if check is not None:
        # The check looks like a step, with arrows of its own.
        arrows = _attention.arrows_of(config, session.participant.number, check)
        instruction = config.attention[check].choose
    return {
        "round": current.id,
        "map": current.map_number,
        "maps": len(config.maps),
        "robot": current.robot,
        "step": t,
        "steps": current.steps,
        "size": config.size,
        "truth": list(itertools.chain.from_iterable(session.rules.map(current.map).rewards)),
        **session.picture._asdict(),
        "arrows": [arrow._asdict() for arrow in arrows],
        "attention": instruction,
        "first_of_round": t == 0,
        "last": _last_choice(session, current.id),
    }


def _last_choice(session: ParticipantSession, round_id: str) -> dict[str, Any] | None:
    """Return the choice of the last step; None if it was in another round."""
    after = session.after
    if after is None or after["round"] != round_id:
        return None
    return {"choice": after["choice"], "hint": after["hint"]}


def over_state(stage: str, config: Config, mode: str, language: str | None = None) -> PageState:
    """Return the state of somebody without a session: declined, deleted, or not admitted."""
    public = config.public(language)
    return {
        "stage": stage,
        "csrf": "",
        "resume_code": None,
        "mode": mode,
        "language": public["language"],
        "study": study_facts(public),
        "progress": _flow.no_progress(config),
        "after": None,
    }


def study_facts(public: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every page may know about the study."""
    return {name: public[name] for name in PUBLIC_FACTS}
