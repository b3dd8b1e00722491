"""The running study: where participants are, and what comes next.

Nothing is acknowledged before it is stored. The state in memory changes only after the database has
committed the change, so a kill at any moment loses nothing that a participant was told: the next
request rebuilds the state from the database.
"""

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.config.configuration import Config
from ital_study.config.load import parse_config
from ital_study.robots import attention
from ital_study.robots.rules import StudyRules
from ital_study.server import _endings, _flow
from ital_study.server._asking import answers_event
from ital_study.server._errors import TRY_AGAIN, Refused
from ital_study.server._flow import Asked, Round
from ital_study.server._keys import Keys, same_secret
from ital_study.server._session import PageState, ParticipantSession, ending, over_state, page_state
from ital_study.server._settings import ServerSettings
from ital_study.store import NotStored, Store, exclusions, operations
from ital_study.store.operations import Moved
from ital_study.store.records import Event, Participant, StoredStep

MOST_SESSIONS = 4096  # participants held in memory
MOST_ATTEMPTS = 5  # at an action whose participant moved meanwhile
UNKNOWN_PARTICIPANT = "We do not know you yet. Please open the study link again."


Parameters = ParamSpec("Parameters")
Act = Callable[Concatenate["LiveStudy", ParticipantSession, Parameters], Awaitable[PageState]]
Action = Callable[Concatenate["LiveStudy", str, Parameters], Coroutine[Any, Any, PageState]]


def in_turn(*, also_excluded: bool = False) -> Callable[[Act[Parameters]], Action[Parameters]]:
    """Let a method be called with a participant's uid; it gets their session, locked.

    So the actions of one participant happen one after the other, whatever a page sends at once.
    Whoever the researcher excluded learns of it instead, unless ``also_excluded``.
    """

    def wrapped(act: Act[Parameters]) -> Action[Parameters]:
        @functools.wraps(act)
        async def action(
            study: "LiveStudy",
            uid: str,
            /,
            *args: Parameters.args,
            **kwargs: Parameters.kwargs,
        ) -> PageState:
            async def act_now(session: ParticipantSession) -> PageState:
                return await act(study, session, *args, **kwargs)

            return await study.take_turn(uid, act_now, also_excluded=also_excluded)

        return action

    return wrapped


class LiveStudy:
    """All actions of the participants' interface."""

    def __init__(self, config: Config, store: Store, settings: ServerSettings) -> None:
        self.config = config
        self.store = store
        self.keys = Keys(settings.secret)
        self.trial = settings.trial
        self._rules: dict[str, StudyRules] = {}  # by the hash of their configuration
        # By uid, the one that was used longest ago first.
        self._sessions: OrderedDict[str, ParticipantSession] = OrderedDict()

    def start(self) -> None:
        """Check the server's key, store the configuration and compile the rules."""
        self.store.bind_key(self.keys.fingerprint())
        self.store.write(lambda connection: operations.add_configuration(connection, self.config))
        self.rules(self.config.hash).warm_up()

    def rules(self, config_hash: str) -> StudyRules:
        """Return the rules of a configuration: the current one, or one that people began with."""
        if config_hash not in self._rules:
            self._rules[config_hash] = StudyRules(self._config_of(config_hash))
        return self._rules[config_hash]

    def _config_of(self, config_hash: str) -> Config:
        if config_hash == self.config.hash:
            return self.config
        with self.store.reading() as connection:
            text = operations.config_text(connection, config_hash)
        return parse_config(text, "the stored configuration")

    # Sessions

    async def _session(self, uid: str) -> ParticipantSession:
        """Return the session of a participant, rebuilt if a command excluded or deleted them."""
        # Commands such as `ital study exclude` write to the database beside the server.
        stored = await asyncio.to_thread(self.find, uid=uid)
        session = self._sessions.get(uid)
        if session is not None and not _is_up_to_date(session, stored):
            self.drop(uid)
            session = None
        if session is None:
            loaded = await asyncio.to_thread(self._load, uid)
            if loaded is None:
                raise Refused(401, "unknown", UNKNOWN_PARTICIPANT)
            # While this one was loaded, another request may have loaded one too: the first counts,
            # so that all requests of a participant share one lock.
            session = self._sessions.setdefault(uid, loaded)
        self._sessions.move_to_end(uid)
        while len(self._sessions) > MOST_SESSIONS:
            _, oldest = self._sessions.popitem(last=False)
            oldest.stale = True
        return session

    def _load(self, uid: str) -> ParticipantSession | None:
        """Build a session from the store."""
        with self.store.reading() as connection:
            participant = operations.find(connection, uid=uid)
            if participant is None or not self.serves(participant):
                return None
            stored = operations.steps_of(connection, participant.number)
            attended = exclusions.attended(connection, participant.number)
        return ParticipantSession(participant, self.rules(participant.config), stored, attended)

    def serves(self, participant: Participant) -> bool:
        """Return whether a participant may continue here.

        A trial adds nothing to live data, nor the other way round.
        """
        if self.trial:
            return participant.mode != "live"
        return participant.mode != "trial"

    def drop(self, uid: str) -> None:
        """Drop a session; the next request rebuilds it from the store."""
        session = self._sessions.pop(uid, None)
        if session is not None:
            session.stale = True

    async def take_turn(
        self,
        uid: str,
        act: Callable[[ParticipantSession], Awaitable[PageState]],
        *,
        also_excluded: bool = False,
    ) -> PageState:
        """Run an action with the session of a participant, locked; see :func:`in_turn`."""
        for _ in range(MOST_ATTEMPTS):
            session = await self._session(uid)
            async with session.lock:
                if session.stale:  # dropped while this request waited for the lock
                    continue
                if session.participant.excluded is not None and not also_excluded:
                    raise self._excluded(session)
                try:
                    return await act(session)
                except (Moved, sa.exc.IntegrityError):
                    # The store is ahead of the session: load it and try again.
                    self.drop(uid)
                except NotStored:
                    # It may be stored all the same (a lost connection does not tell), so what is in
                    # memory must not be trusted. The page repeats the request.
                    self.drop(uid)
                    break
        raise Refused(503, "try_again", TRY_AGAIN)

    async def _store(self, job: Callable[[sa.Connection], Any]) -> Any:
        """Run a job in the writer; it is committed when this returns."""
        return await asyncio.wrap_future(self.store.submit(job))

    async def _move(
        self, session: ParticipantSession, happened: Sequence[Event] = (), **changes: Any
    ) -> PageState:
        """Move a participant to the next state and return it."""
        participant = session.participant
        return await self._change(
            session, lambda c: operations.move(c, participant, happened, **changes)
        )

    async def _change(
        self, session: ParticipantSession, job: Callable[[sa.Connection], Participant]
    ) -> PageState:
        """Run a job that moves a participant, and return the new state."""
        session.participant = await self._store(job)
        session.enter()
        return page_state(session, self.keys)

    # What participants do

    def find(self, **columns: Any) -> Participant | None:
        """Return the participant whose columns have these values, if there is one."""
        with self.store.reading() as connection:
            return operations.find(connection, **columns)

    async def look(self, uid: str) -> PageState:
        """Return the state of a participant."""
        return page_state(await self._session(uid), self.keys)

    @in_turn()
    async def language(self, session: ParticipantSession, language: str) -> PageState:
        """Change the language, before consent.

        Afterwards it stays that of the text that the person agreed to.
        """
        participant = session.participant
        if participant.stage != "consent" or language not in session.config.languages:
            raise self._out_of_order(session)
        await self._store(lambda c: operations.move(c, participant, language=language))
        self.drop(participant.uid)  # it is rebuilt with the other texts
        return await self.look(participant.uid)

    @in_turn()
    async def consent(
        self,
        session: ParticipantSession,
        accepted: bool,
        version: str,
        browser: str | None = None,
    ) -> PageState:
        """Accept or decline to take part; ``browser`` is its cookie.

        If declined, only that fact is stored. Raises Closed if all places are taken.
        """
        participant = session.participant
        if participant.stage != "consent":
            return self._once_more(session, accepted)
        if version != session.config.consent.version:
            raise self._out_of_order(session)
        if not accepted:
            return await self._decline(session)
        # That somebody joined becomes an event only now: visitors leave no log.
        happened = [
            Event("joined", {"at": participant.joined_at}),
            Event("consent", {"version": version}),
        ]
        state = await self._change(
            session,
            lambda c: operations.admit(c, participant, session.config, happened),
        )
        session.consented_by = browser
        return state

    async def closed(self, uid: str) -> PageState:
        """Return the state of a visitor for whom no place is left."""
        participant = (await self._session(uid)).participant
        config = self.rules(participant.config).config
        return over_state("closed", config, participant.mode, participant.language)

    def gave_consent(self, uid: str, browser: str | None) -> bool:
        """Return whether the consent came from this browser, as far as the server remembers."""
        session = self._sessions.get(uid)
        return session is not None and browser is not None and session.consented_by == browser

    @in_turn()
    async def instructions(self, session: ParticipantSession) -> PageState:
        """Record that the instructions were read."""
        stage = session.participant.stage
        if stage != "instructions":
            return self._once_more(session, stage != "consent")
        return await self._move(session, [Event("instructions")], stage="check")

    @in_turn()
    async def check(
        self,
        session: ParticipantSession,
        answers: Sequence[int],
        tries_left: int | None,
    ) -> PageState:
        """Check the answers; a participant who passes gets an order."""
        participant = session.participant
        if participant.stage != "check":
            is_past = participant.stage not in ("consent", "instructions")
            return self._once_more(session, is_past)
        if tries_left is not None and tries_left != _flow.TRIES - participant.tries:
            return page_state(session, self.keys)  # the same answers were sent twice
        right = [question.answer for question in session.config.check]
        if len(answers) != len(right):
            raise Refused(422, "invalid", f"Please answer all {len(right)} questions.")
        passed = list(answers) == right
        event = Event("check", {"answers": list(answers), "passed": passed})
        if passed:
            return await self._pass_check(session, event)
        tries = participant.tries + 1
        stage = "check"
        if tries >= _flow.TRIES:
            stage = "failed_check"
        return await self._move(session, [event], stage=stage, tries=tries)

    async def _pass_check(self, session: ParticipantSession, event: Event) -> PageState:
        participant = session.participant

        # In one transaction: an order that is drawn is taken, so that the next one balances it.
        def job(connection: sa.Connection) -> Participant:
            order = operations.assign_order(connection, participant, session.config)
            return operations.move(
                connection,
                participant,
                [event, Event("order", {"order": order})],
                stage=_flow.stage_after(session.config, order, 0, 0),
                tries=participant.tries + 1,
                order=order,
            )

        return await self._change(session, job)

    @in_turn()
    async def answers(
        self,
        session: ParticipantSession,
        page: str,
        place: str,
        answers: Mapping[str, Any],
        seconds: float | None,
    ) -> PageState:
        """Store the answers to a page of questions. Repeating them changes nothing."""
        participant = session.participant
        config = session.config
        asked = _find_asked(session, page, place)
        if asked is None:
            raise self._out_of_order(session)
        is_due = asked == session.asked
        try:
            event = answers_event(asked, config, participant.language, answers, seconds)
        except InputError as error:
            if not is_due:
                raise self._out_of_order(session) from None
            raise Refused(422, "invalid", str(error)) from None
        if not is_due:
            number = participant.number
            stored = await asyncio.to_thread(self._stored_answers, number, page, place)
            return self._once_more(session, stored == event.data["answers"])
        answered = participant.answered + 1
        changes, ended = _flow.moved_on(config, participant, participant.done, answered)
        return await self._move(session, [event, *ended], **changes, answered=answered)

    def _stored_answers(self, number: int, page: str, place: str) -> Any:
        with self.store.reading() as connection:
            events = operations.events_of(connection, number, "answers")
        for event in events:
            is_of_page = event.data["page"] == page and event.data["place"] == place
            # Kind and source: a page could report an event of this kind as well.
            if event.source == "server" and is_of_page:
                return event.data["answers"]
        return None

    @in_turn()
    async def step(
        self,
        session: ParticipantSession,
        round_id: str,
        t: int,
        choice: int,
        timing: Mapping[str, Any],
    ) -> PageState:
        """Take one step: store it, then acknowledge it. Repeating the step changes nothing."""
        upcoming = session.next_step
        is_next = session.is_next(round_id, t) and session.attention is None
        if upcoming is None or not is_next:
            # A page whose answer was lost sends its choice again: it is stored already.
            stored = await asyncio.to_thread(self._stored_choice, session, round_id, t)
            return self._once_more(session, stored == choice)
        return await self._take(session, upcoming.round, t, choice, timing)

    async def _take(
        self,
        session: ParticipantSession,
        current: Round,
        t: int,
        choice: int,
        timing: Mapping[str, Any],
    ) -> PageState:
        participant = session.participant
        before = session.mind
        assert before is not None
        if choice >= len(session.arrows[t]):
            raise Refused(422, "invalid", "There is no such arrow.")
        mind = session.rules.update(current.map, current.learner, before, session.arrows[t], choice)
        step = StoredStep(
            map=current.map,
            learner=current.learner,
            step=t + 1,
            robot=current.robot,
            choice=choice,
            state=operations.as_bytes(mind.belief),
            timing=operations.as_json(dict(timing)),
            stored_at=operations.now(),
        )
        done = participant.done + 1
        is_last = done == session.config.total_steps
        happened = [Event("all_steps_stored")] if is_last else []
        changes, ended = _flow.moved_on(session.config, participant, done, participant.answered)
        # The robot in memory moves only after the commit: if this raises, the session is dropped,
        # and the next request continues from what is stored.
        job = functools.partial(
            operations.add_step,
            participant=participant,
            step=step,
            happened=[*happened, *ended],
            usable=is_last,
            **changes,
        )
        session.participant = await self._store(job)
        session.enter(mind)
        # The session has the picture already, unless a new robot came with the new round.
        picture = session.picture if session.mind is mind else None
        session.look_back(current, step, before.belief, picture)
        return page_state(session, self.keys)

    @in_turn()
    async def next_part(self, session: ParticipantSession) -> PageState:
        """Begin the next part, if it is open; else the page says when it is. May be repeated."""
        participant = session.participant
        if participant.stage != operations.WAITING:
            return self._once_more(session, participant.part > 1)
        if _flow.part_state(participant) != _flow.OPEN:
            return page_state(session, self.keys)
        changes, happened = _flow.begin_part(session.config, participant)
        return await self._move(session, happened, **changes)

    def _stored_choice(self, session: ParticipantSession, round_id: str, t: int) -> int | None:
        asked_for = next((each for each in session.rounds if each.id == round_id), None)
        if asked_for is None:
            return None
        with self.store.reading() as connection:
            steps = operations.steps_of(
                connection,
                session.participant.number,
                map=asked_for.map,
                learner=asked_for.learner,
                step=t + 1,
            )
        if not steps:
            return None
        return steps[0].choice

    @in_turn()
    async def attention(
        self,
        session: ParticipantSession,
        round_id: str,
        t: int,
        choice: int,
        timing: Mapping[str, Any],
    ) -> PageState:
        """Store the answer to the attention check before a step; the robot does not see it."""
        participant = session.participant
        config = session.config
        if not session.is_next(round_id, t):
            raise self._out_of_order(session)
        check = session.attention
        if check is None:  # it was answered before
            return page_state(session, self.keys)
        if choice >= config.candidates:
            raise Refused(422, "invalid", "There is no such arrow.")
        answer = attention.answer(config, participant.number, check, choice)
        at_step = {"round": round_id, "step": t, "timing": dict(timing)}
        event = Event("attention", answer | at_step)
        session.participant = await self._store(lambda c: operations.move(c, participant, [event]))
        session.attended |= {check}
        return page_state(session, self.keys)

    @in_turn()
    async def events(self, session: ParticipantSession, happened: Sequence[Event]) -> PageState:
        """Store events of a page; none before consent, and no more than a participant can cause."""
        participant = session.participant
        if participant.stage in ("consent", "declined") or not happened:
            return {"stored": 0}
        _check_room(session, happened)
        session.participant = await self._store(lambda c: operations.move(c, participant, happened))
        return {"stored": len(happened)}

    @in_turn()
    async def comments(self, session: ParticipantSession, text: str) -> PageState:
        """Store the comments, if any, and finish the study."""
        stage = session.participant.stage
        if stage != "comments":
            return self._once_more(session, stage == "finished")
        event = Event("comments", {"text": text})
        return await self._move(session, [event], stage="finished")

    @in_turn(also_excluded=True)  # they may withdraw
    async def leave(
        self,
        session: ParticipantSession,
        keep: bool,
        code: str | None = None,
        proven: bool = True,
    ) -> PageState:
        """Leave the study; the stored data are kept or erased. Whoever has not consented declines.

        A browser that is not ``proven`` to be the participant's needs the resume code to erase
        data.
        """
        participant = session.participant
        if not keep:
            # Before consent only the visit itself is stored: anybody may remove that.
            is_entitled = proven or participant.stage == "consent"
            if not is_entitled and not self._is_code_of(participant, code):
                sentence = "Please type your resume code to delete your data."
                raise Refused(422, "code_needed", sentence)
            return await self._erase(session)
        if participant.excluded is not None or participant.stage in operations.ENDED:
            return page_state(session, self.keys)
        if participant.stage == "consent":
            return await self._decline(session)
        event = Event("left", {"stage": participant.stage})
        return await self._move(session, [event], stage="left")

    async def _erase(self, session: ParticipantSession) -> PageState:
        """Erase a participant; the answer still says what they are entitled to."""
        participant = session.participant
        await asyncio.to_thread(self.store.erase, participant, "participant")
        self.drop(participant.uid)
        outcome = _endings.outcome_of_leaving(participant)
        return self._over("left", session, outcome) | {"deleted": True}

    async def _decline(self, session: ParticipantSession) -> PageState:
        """Store that somebody declined, and only that."""
        participant = session.participant
        await self._store(lambda c: operations.decline(c, participant))
        self.drop(participant.uid)
        return self._over("declined", session, "declined")

    def _once_more(self, session: ParticipantSession, is_past: bool) -> PageState:
        """Answer a request for a stage that is over: it was repeated, or came out of order."""
        if not is_past:
            raise self._out_of_order(session)
        return page_state(session, self.keys)

    def _out_of_order(self, session: ParticipantSession) -> Refused:
        message = "You have continued the study elsewhere. This is where you are now."
        return Refused(409, "out_of_order", message, page_state(session, self.keys))

    def _excluded(self, session: ParticipantSession) -> Refused:
        message = "The researchers have ended your part in this study."
        return Refused(409, "excluded", message, page_state(session, self.keys))

    def _is_code_of(self, participant: Participant, code: str | None) -> bool:
        if code is None:
            return False
        return same_secret(self.keys.resume_hash(code), participant.resume_hash)

    def _over(self, stage: str, session: ParticipantSession, outcome: str | None) -> PageState:
        """Return the state of somebody whose session is over, with what they are entitled to."""
        participant = session.participant
        state = over_state(stage, session.config, participant.mode, participant.language)
        return state | ending(session, self.keys, outcome)


def _is_up_to_date(session: ParticipantSession, stored: Participant | None) -> bool:
    """Return whether nobody changed a participant beside the server, or deleted them.

    Commands exclude and include, and a researcher may give somebody another date.
    """
    if stored is None:
        return False
    known = session.participant
    return (stored.excluded, stored.opens_at, stored.closes_at) == (
        known.excluded,
        known.opens_at,
        known.closes_at,
    )


def _find_asked(session: ParticipantSession, page: str, place: str) -> Asked | None:
    """Return a page of questions at a place of the participant's course."""
    for asked in _flow.asked(session.config, session.participant.order):
        if (asked.page.id, asked.place) == (page, place):
            return asked
    return None


def _check_room(session: ParticipantSession, happened: Sequence[Event]) -> None:
    """Raise if a participant stores more than a page can cause: a script could fill the disk."""
    participant = session.participant
    if participant.events + len(happened) > operations.most_events(session.config):
        sentence = "Too many events were sent. Your choices are still stored."
        raise Refused(429, "too_many", sentence)
    size = sum(len(operations.as_json(dict(event.data))) for event in happened)
    if participant.bytes + size > operations.most_bytes(session.config):
        sentence = "Too much was sent. Your choices are still stored."
        raise Refused(413, "too_large", sentence)
