"""How people arrive: by an identity, a signed link, a resume code or a cookie, or as new ones."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from ital import __version__
from ital_study.config import languages
from ital_study.config.panel import LINK, Panel
from ital_study.server import _links
from ital_study.server._errors import TRY_AGAIN, Refused
from ital_study.server._keys import Keys, new_uid
from ital_study.server._links import SignedLink
from ital_study.server._session import PageState, debriefing, over_state
from ital_study.server._study import LiveStudy
from ital_study.store import NotStored, operations
from ital_study.store.operations import Closed
from ital_study.store.records import NewParticipant, Participant

SIMULATED = "id"  # the name under which simulated participants give their own names
# What the hash of an identity contains in place of the parameter's name: databases of older
# versions have such hashes.
KINDS = {"PROLIFIC_PID": "prolific"}


class Arrival(NamedTuple):
    """The page to show, and the participant; None if nobody takes part.

    ``proven`` as for the cookie.
    """

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


class NotAdmitted(NamedTuple):
    """Why somebody may not join: ``deleted``, ``missing``, ``no link`` or ``expired``."""

    reason: str


async def arrive(study: LiveStudy, visit: Visit) -> Arrival:
    """Admit a participant, find one again, or say why neither is possible."""
    try:
        if visit.resume is not None:
            return await _by_code(study, visit.resume)
        identity = _identity(study, visit)
        if _links.are_needed(study.config, visit.mode):
            return await _by_link(study, visit, identity)
        if identity is None or visit.mode == "simulated":
            return await _by_identity(study, visit, identity)
        parameter, value = identity
        # A placeholder that a recruiting service did not fill in would join as one person.
        if not study.config.panel.accepts(value):
            return _without_identity(study, visit, "invalid", parameter)
        return await _by_identity(study, visit, identity)
    except Closed:
        return Arrival(_over(study, visit, "closed"))


def external_hash(keys: Keys, name: str, identity: str) -> str:
    """Return the keyed hash of an identity that a parameter of a link carried."""
    return keys.external_hash(KINDS.get(name, name), identity)


def _identity(study: LiveStudy, visit: Visit) -> tuple[str, str] | None:
    """Return name and value of the identity in the link, if there is one.

    Simulated participants have names of their own.
    """
    panel = study.config.panel
    if visit.mode == "simulated":
        panel = Panel(identity=(SIMULATED, *panel.identity))
    named = _named(study, visit)
    unknown = next((name for name in named if name not in panel.identity), None)
    if unknown is not None:
        raise Refused(422, "invalid", f"The study takes no {unknown!a} from its link.")
    return panel.identity_in(named)


def _named(study: LiveStudy, visit: Visit) -> dict[str, str]:
    """Return what the link says of a person, without the signature of a signed link."""
    if study.config.links != "signed":
        return dict(visit.ids)
    return {name: value for name, value in visit.ids.items() if name != LINK}


def _without_identity(
    study: LiveStudy,
    visit: Visit,
    problem: str,
    parameter: str,
) -> Arrival:
    state = _over(study, visit, "identity")
    return Arrival(state | {"problem": problem, "parameter": parameter})


async def _by_code(study: LiveStudy, code: str) -> Arrival:
    resume_hash = study.keys.resume_hash(code)
    resumed = await asyncio.to_thread(study.find, resume_hash=resume_hash)
    if resumed is None or not study.serves(resumed):
        sentence = "This code is not known. Please check it, or open the study link."
        raise Refused(404, "unknown_code", sentence)
    state = await study.look(resumed.uid)
    return Arrival(state, resumed.uid, proven=True)


async def _by_link(
    study: LiveStudy,
    visit: Visit,
    identity: tuple[str, str] | None,
) -> Arrival:
    """Admit whoever has a link of their own.

    Once somebody has consented by it, the link opens nothing in any other browser.
    """
    token = visit.ids.get(LINK)
    link = None
    if token is not None:
        link = _links.read(study.keys, token, _named(study, visit))
        if link is None:
            return _without_link(study, visit, "forged")
    else:
        # Nothing has signed the identity. A browser in which somebody has begun has its cookie.
        identity = None
    arrival = await _by_identity(study, visit, identity, link)
    if arrival.uid is None or arrival.state["stage"] == "consent":
        return arrival
    is_own = study.keys.participant_of(visit.cookie) == arrival.uid
    if is_own and study.keys.is_proven(visit.cookie):
        return arrival
    return _without_link(study, visit, "used")


def _without_link(study: LiveStudy, visit: Visit, problem: str, last_day: str = "") -> Arrival:
    state = _over(study, visit, "link")
    return Arrival(state | {"problem": problem, "last_day": last_day})


async def _by_identity(
    study: LiveStudy,
    visit: Visit,
    identity: tuple[str, str] | None,
    link: SignedLink | None = None,
) -> Arrival:
    """Find somebody by identity, link or cookie; admit whoever is new."""
    uid = study.keys.participant_of(visit.cookie)
    digest = None
    if identity is not None:
        digest = external_hash(study.keys, *identity)
    elif link is not None:
        digest = _links.external_hash(study.keys, link.number)
    newcomer = _newcomer(study, visit, digest)

    # One transaction, so that somebody who opens the link twice at once joins once.
    def job(connection: sa.Connection) -> Participant | NotAdmitted:
        visitor = _participant_of_visit(connection, visit, uid, digest)
        refusal = _refusal(connection, study, visit, digest, link)
        if visitor is not None:
            _check_still_open(connection, study, visitor)
            if visitor.stage == "consent" and refusal == NotAdmitted("expired"):
                return refusal
            return visitor
        if refusal is not None:
            return refusal
        return operations.add_participant(connection, study.config, newcomer)

    try:
        participant = await asyncio.wrap_future(study.store.submit(job))
    except (NotStored, sa.exc.IntegrityError):
        # With PostgreSQL, the same ID may have joined in another process at the same moment.
        raise Refused(503, "try_again", TRY_AGAIN) from None
    if isinstance(participant, NotAdmitted):
        return _not_admitted(study, visit, participant, link)
    # Who knows an identity need not be that person: the browser that gives the consent is (see
    # ``consent``).
    proven = digest is None
    if participant.uid == uid:
        proven = study.keys.is_proven(visit.cookie)
    state = await study.look(participant.uid)
    return Arrival(state, participant.uid, proven)


def _newcomer(study: LiveStudy, visit: Visit, digest: str | None) -> NewParticipant:
    """Return who a visitor becomes if nobody is found."""
    uid = new_uid()
    return NewParticipant(
        uid=uid,
        mode=visit.mode,
        teacher=visit.teacher,
        code_version=__version__,
        resume_hash=study.keys.resume_hash(study.keys.resume_code(uid)),
        external_hash=digest,
        language=languages.best(visit.wishes, study.config.languages),
    )


def _participant_of_visit(
    connection: sa.Connection,
    visit: Visit,
    uid: str | None,
    digest: str | None,
) -> Participant | None:
    """Return whom the link identifies; without an identity, whom the cookie does.

    A cookie of somebody whose part has ended lets the next person at the browser begin.
    """
    if digest is not None:
        return operations.find(connection, mode=visit.mode, external_hash=digest)
    if uid is None:
        return None
    visitor = operations.find(connection, uid=uid, mode=visit.mode)
    if visitor is None or visitor.stage in operations.ENDED:
        return None
    return visitor


def _check_still_open(
    connection: sa.Connection,
    study: LiveStudy,
    visitor: Participant,
) -> None:
    """Raise Closed if a visitor cannot get a place any more: it is taken at consent."""
    if visitor.stage == "consent" and visitor.config == study.config.hash:
        operations.lock(connection)
        operations.check_open(connection, study.config, visitor.mode)


def _refusal(
    connection: sa.Connection,
    study: LiveStudy,
    visit: Visit,
    digest: str | None,
    link: SignedLink | None,
) -> NotAdmitted | None:
    if visit.mode not in operations.RECOGNISED:
        return None
    if digest is not None and operations.is_deleted(connection, digest):
        return NotAdmitted("deleted")
    if link is not None and link.is_over:
        return NotAdmitted("expired")
    if link is None and study.config.links == "signed":
        return NotAdmitted("no link")
    if digest is None and study.config.panel.required:
        return NotAdmitted("missing")
    return None


def _not_admitted(
    study: LiveStudy, visit: Visit, refusal: NotAdmitted, link: SignedLink | None
) -> Arrival:
    if refusal.reason == "no link":
        return _without_link(study, visit, "missing")
    if refusal.reason == "expired":
        assert link is not None
        return _without_link(study, visit, "expired", link.last_day)
    if refusal.reason == "missing":
        return _without_identity(study, visit, "missing", study.config.panel.identity[0])
    state = _over(study, visit, "deleted")
    return Arrival(state | {"debriefing": debriefing(study.config, state["language"])})


def _over(study: LiveStudy, visit: Visit, stage: str) -> PageState:
    """Return the state of somebody who does not take part."""
    language = languages.best(visit.wishes, study.config.languages)
    return over_state(stage, study.config, visit.mode, language)
