"""How people arrive: by a link with an identity, by a resume code, by a cookie, or for the first time."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from ital import __version__
from ital_study.config import languages
from ital_study.config.panel import Panel
from ital_study.server import _security
from ital_study.server._page_state import PageState, debriefing, over_state
from ital_study.server._plain import TRY_AGAIN, Refused
from ital_study.server._study import LiveStudy
from ital_study.store import NotStored, admission, operations
from ital_study.store.operations import Closed
from ital_study.store.records import Participant

SIMULATED = "id"  # the name under which simulated participants give their own names
KINDS = {
    "PROLIFIC_PID": "prolific"
}  # what the hash of an identity contains in place of the parameter's name


class Arrival(NamedTuple):
    """The page to show, and the participant; None if nobody takes part. ``proven`` as for the cookie."""

    state: PageState
    uid: str | None = None
    proven: bool = False


class Visit(NamedTuple):
    """What a browser says about itself when it opens the study."""

    mode: str
    teacher: str
    ids: Mapping[str, str]
    resume: str | None
    cookie: str | None
    wishes: str


async def arrive(study: LiveStudy, visit: Visit) -> Arrival:
    """Admit a participant, find one again, or say why neither is possible."""
    try:
        if visit.resume is not None:
            return await _by_code(study, visit, visit.resume)
        identity = _identity(study, visit)
        if (
            identity is not None
            and visit.mode != "simulated"
            and not study.config.panel.accepts(identity[1])
        ):
            return _without_identity(study, visit, "invalid", identity[0])
        return await _by_identity(study, visit, identity)
    except Closed:
        return Arrival(_over(study, visit, "closed"))


def external_hash(keys: _security.Keys, name: str, identity: str) -> str:
    """The keyed hash of an identity that a parameter of a link carried."""
    return keys.external_hash(KINDS.get(name, name), identity)


def _identity(study: LiveStudy, visit: Visit) -> tuple[str, str] | None:
    """Name and value of the identity in the link, if there is one. Simulated participants have names of their own."""
    panel = study.config.panel
    if visit.mode == "simulated":
        panel = Panel(identity=(SIMULATED, *panel.identity))
    unknown = next((name for name in visit.ids if name not in panel.identity), None)
    if unknown is not None:
        raise Refused(422, "invalid", f"The study takes no {unknown!a} from its link.")
    return panel.identity_in(visit.ids)


def _without_identity(study: LiveStudy, visit: Visit, problem: str, parameter: str) -> Arrival:
    return Arrival(_over(study, visit, "identity") | {"problem": problem, "parameter": parameter})


async def _by_code(study: LiveStudy, visit: Visit, code: str) -> Arrival:
    resumed = await asyncio.to_thread(study.find, resume_hash=study.keys.resume_hash(code))
    if resumed is None or not study.serves(resumed):
        raise Refused(
            404, "unknown_code", "This code is not known. Please check it, or open the study link."
        )
    return Arrival(await study.look(resumed.uid), resumed.uid, proven=True)


async def _by_identity(study: LiveStudy, visit: Visit, identity: tuple[str, str] | None) -> Arrival:
    """Find somebody by identity or cookie; admit whoever is new."""
    uid, proven = study.keys.participant_of(visit.cookie), study.keys.is_proven(visit.cookie)
    digest = None if identity is None else external_hash(study.keys, *identity)
    new_uid, people = _security.new_uid(), visit.mode in operations.RECOGNISED

    def job(connection: sa.Connection) -> Participant | str:
        if digest is not None:
            visitor = operations.find(connection, mode=visit.mode, external_hash=digest)
            if visitor is None and people and admission.is_deleted(connection, digest):
                return "deleted"
        else:
            visitor = None if uid is None else operations.find(connection, uid=uid, mode=visit.mode)
            visitor = None if visitor is None or visitor.stage in operations.ENDED else visitor
            if visitor is None and people and study.config.panel.required:
                return "missing"
        if visitor is not None:
            if (
                visitor.stage == "consent" and visitor.config == study.config.hash
            ):  # they have no place yet
                operations.lock(connection)
                operations.check_open(connection, study.config, visit.mode)
            return visitor
        return operations.add_participant(
            connection,
            study.config,
            uid=new_uid,
            mode=visit.mode,
            teacher=visit.teacher,
            code_version=__version__,
            resume_hash=study.keys.resume_hash(study.keys.resume_code(new_uid)),
            external_hash=digest,
            language=languages.best(visit.wishes, study.config.languages),
        )

    try:
        participant = await asyncio.wrap_future(study.store.submit(job))
    except (
        NotStored,
        sa.exc.IntegrityError,
    ):  # the same ID joined in another process at the same moment
        raise Refused(503, "try_again", TRY_AGAIN) from None
    if participant == "missing":
        return _without_identity(study, visit, "missing", study.config.panel.identity[0])
    if participant == "deleted":
        state = _over(study, visit, "deleted")
        return Arrival(state | {"debriefing": debriefing(study.config, state["language"])})
    assert isinstance(participant, Participant)
    # Who knows an identity need not be that person: the browser that gives the consent is (see ``consent``).
    mine = proven if participant.uid == uid else digest is None
    return Arrival(await study.look(participant.uid), participant.uid, mine)


def _over(study: LiveStudy, visit: Visit, stage: str) -> PageState:
    """The state of somebody who does not take part."""
    return over_state(
        stage, study.config, visit.mode, languages.best(visit.wishes, study.config.languages)
    )
