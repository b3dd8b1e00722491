"""The state that pages receive: the participant's stage and all that the page needs.

It never says of which kind a robot is.
"""

import itertools
from collections.abc import Mapping
from typing import Any

from ital_study.config.configuration import Config
from ital_study.robots import attention
from ital_study.server import _endings, _flow
from ital_study.server._asking import page_questions
from ital_study.server._keys import Keys
from ital_study.server._markdown import parse_markdown
from ital_study.server._session import ParticipantSession

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
        return {"scene": _scene(session)}
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


def _scene(session: ParticipantSession) -> dict[str, Any]:
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
        arrows = attention.arrows_of(config, session.participant.number, check)
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
