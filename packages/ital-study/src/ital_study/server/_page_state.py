"""The state that pages receive: the participant's stage and all that the page needs, never the kind of a robot."""

from collections.abc import Mapping
from typing import Any

from ital_study.config.configuration import Config
from ital_study.robots import attention
from ital_study.server import _endings, _flow
from ital_study.server._asking import page_questions
from ital_study.server._markdown import blocks
from ital_study.server._security import Keys
from ital_study.server._session import ParticipantSession

PageState = dict[str, Any]


def page_state(session: ParticipantSession, keys: Keys) -> PageState:
    """The state of a participant, for the page."""
    participant, config = session.participant, session.config
    stage = participant.stage if participant.excluded is None else "excluded"
    teaching = stage in ("warm_up", "teach")
    state: PageState = {
        "stage": stage,
        "language": participant.language,
        "csrf": keys.csrf(participant.uid),
        "resume_code": None,  # only some browsers may see it: see ``Page.answer``
        "mode": participant.mode,
        "study": study_facts(session.public),
        "progress": _flow.progress(config, participant),
        "after": session.after if teaching or stage in ("questions", "comments") else None,
    }
    if stage == "consent":
        state["consent"] = _read(session.public["consent"])
    if stage in ("instructions", "check"):
        state["instructions"] = [_read(page) for page in session.public["instructions"]]
    if stage == "check":
        state["check"] = {
            "questions": session.public["check"],
            "tries_left": _flow.TRIES - participant.tries,
        }
    if session.asked is not None and stage == "questions":
        state["questions"] = page_questions(session.asked, config, participant.language)
    if teaching:
        state["scene"] = _scene(session)
    if stage == "excluded" or stage in _endings.OUTCOMES:
        state |= ending(session, keys, _endings.outcome_of(participant))
    if stage == "finished":
        state["completion"]["steps_stored"] = participant.done
    return state


def ending(session: ParticipantSession, keys: Keys, outcome: str | None) -> PageState:
    """What a page gets at the end: what people are entitled to, and what the study was about."""
    participant, config = session.participant, session.config
    state: PageState = {}
    if outcome is not None:
        state["completion"] = _endings.completion(config, keys, participant.uid, outcome)
    if _endings.has_consented(participant):
        state["debriefing"] = debriefing(config, participant.language)
    return state


def debriefing(config: Config, language: str) -> list[Any]:
    """What the study was about, as elements that the page can build."""
    return blocks(config.texts(language).debriefing)


def _read(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part with its text as elements that the page can build."""
    return {**part, "text": blocks(part["text"])}


def _scene(session: ParticipantSession) -> dict[str, Any]:
    place, picture, config = session.place, session.picture, session.config
    assert place is not None
    assert picture is not None
    current, t = place
    last = (
        session.after
        if session.after is not None and session.after["round"] == current.id
        else None
    )
    check, arrows = session.attention, session.arrows[t]
    if check is not None:
        arrows = attention.arrows_of(config, session.participant.number, check)
    return {
        "round": current.id,
        "map": current.map_number,
        "maps": len(config.maps),
        "robot": current.robot,
        "step": t,
        "steps": current.steps,
        "size": config.size,
        "truth": [cell for row in session.rules.map(current.map).rewards for cell in row],
        **picture._asdict(),
        "arrows": [arrow._asdict() for arrow in arrows],
        "attention": None if check is None else config.attention[check].choose,
        "first_of_round": t == 0,
        "last": None if last is None else {"choice": last["choice"], "hint": last["hint"]},
    }


def over_state(stage: str, config: Config, mode: str, language: str | None = None) -> PageState:
    """The state of somebody without a session: declined, deleted, or not admitted."""
    public = config.public(language)
    return {
        "stage": stage,
        "csrf": "",
        "resume_code": None,
        "mode": mode,
        "language": public["language"],
    } | {
        "study": study_facts(public),
        "progress": _flow.no_progress(config),
        "after": None,
    }


def study_facts(public: Mapping[str, Any]) -> dict[str, Any]:
    """What every page may know about the study."""
    names = (
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
    )
    return {name: public[name] for name in (*names, "panel", "size", "values")}
