"""The running study: where participants are, and what comes next. Nothing is acknowledged before it is stored."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.config.configuration import Config
from ital_study.config.load import parse_config
from ital_study.robots import attention
from ital_study.robots.rules import StudyRules
from ital_study.server import _endings, _flow, _security
from ital_study.server._asking import answers_event
from ital_study.server._flow import Round
from ital_study.server._page_state import PageState, ending, over_state, page_state
from ital_study.server._plain import TRY_AGAIN, Refused
from ital_study.server._session import ParticipantSession
from ital_study.server._settings import ServerSettings
from ital_study.store import NotStored, Store, admission, exclusions, operations
from ital_study.store.operations import Moved
from ital_study.store.records import Event, Participant, StoredStep

MOST_SESSIONS = 4096  # participants held in memory


class LiveStudy:
    """All actions of the participants' interface."""

    def __init__(self, config: Config, store: Store, settings: ServerSettings) -> None:
        self.config, self.store, self.keys = config, store, _security.Keys(settings.secret)
        self.trial = settings.trial
        self._rules: dict[str, StudyRules] = {}
        self._sessions: OrderedDict[str, ParticipantSession] = OrderedDict()

    def start(self) -> None:
        """Check the server's key, store the configuration and compile the rules."""
        self.store.bind_key(self.keys.fingerprint())
        self.store.write(lambda connection: operations.add_configuration(connection, self.config))
        self.rules(self.config.hash).warm_up()

    def rules(self, config: str) -> StudyRules:
        """The rules of a configuration: the current one, or one that participants began with."""
        if config not in self._rules:
            parsed = self.config
            if config != parsed.hash:
                with self.store.reading() as connection:
                    parsed = parse_config(
                        operations.config_text(connection, config), "the stored configuration"
                    )
            self._rules[config] = StudyRules(parsed)
        return self._rules[config]

    # Sessions

    async def _session(self, uid: str) -> ParticipantSession:
        """The session of a participant, rebuilt if a command has excluded or deleted them."""
        stored = await asyncio.to_thread(self.find, uid=uid)
        excluded = None if stored is None else stored.excluded
        session = self._sessions.get(uid)
        if session is not None and (stored is None or excluded != session.participant.excluded):
            self.drop(uid)
            session = None
        if session is None:
            loaded = await asyncio.to_thread(self._load, uid)
            if loaded is None:
                raise Refused(
                    401, "unknown", "We do not know you yet. Please open the study link again."
                )
            session = self._sessions.setdefault(uid, loaded)
        self._sessions.move_to_end(uid)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)[1].stale = True
        return session

    def _load(self, uid: str) -> ParticipantSession | None:
        """A session built from the store."""
        with self.store.reading() as connection:
            participant = operations.find(connection, uid=uid)
            if participant is None or not self.serves(participant):
                return None
            stored = operations.steps_of(connection, participant.number)
            attended = exclusions.attended(connection, participant.number)
        return ParticipantSession(participant, self.rules(participant.config), stored, attended)

    def serves(self, participant: Participant) -> bool:
        """Whether a participant may continue here: a trial adds nothing to live data, nor the other way round."""
        return participant.mode != ("live" if self.trial else "trial")

    def drop(self, uid: str) -> None:
        """Drop a session; the next request rebuilds it from the store."""
        session = self._sessions.pop(uid, None)
        if session is not None:
            session.stale = True

    async def _with(
        self,
        uid: str,
        act: "Callable[[ParticipantSession], Awaitable[PageState]]",
        *,
        also_excluded: bool = False,
    ) -> PageState:
        """Run a job for one participant at a time; rerun it if the store is ahead of the session.

        Whoever the researcher excluded learns of it here, unless ``also_excluded``: they may withdraw.
        """
        for _ in range(5):
            session = await self._session(uid)
            async with session.lock:
                if session.stale:
                    continue
                if session.participant.excluded is not None and not also_excluded:
                    raise self._excluded(session)
                try:
                    return await act(session)
                except (Moved, sa.exc.IntegrityError):
                    self.drop(uid)
                except NotStored:
                    self.drop(uid)
                    break
        raise Refused(503, "try_again", TRY_AGAIN)

    async def _store(self, job: Callable[[sa.Connection], Any]) -> Any:
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
        """The participant whose columns have these values, if there is one."""
        with self.store.reading() as connection:
            return operations.find(connection, **columns)

    async def look(self, uid: str) -> PageState:
        """The state of a participant."""
        return page_state(await self._session(uid), self.keys)

    async def language(self, uid: str, language: str) -> PageState:
        """Change the language, before consent; afterwards it stays that of the text that the person agreed to."""

        async def act(session: ParticipantSession) -> PageState:
            participant = session.participant
            if participant.stage != "consent" or language not in session.config.languages:
                raise self._out_of_order(session)
            await self._store(lambda c: operations.move(c, participant, language=language))
            self.drop(uid)  # it is rebuilt with the other texts
            return await self.look(uid)

        return await self._with(uid, act)

    async def consent(
        self, uid: str, accepted: bool, version: str, browser: str | None = None
    ) -> PageState:
        """Accept or decline to take part; ``browser`` is its cookie. If declined, only that fact is stored.

        Raises Closed if all places are taken.
        """

        async def act(session: ParticipantSession) -> PageState:
            participant = session.participant
            if participant.stage != "consent":
                return self._once_more(session, accepted)
            if version != session.config.consent.version:
                raise self._out_of_order(session)
            if not accepted:
                return await self._decline(session)
            happened = [
                Event("joined", {"at": participant.joined_at}),
                Event("consent", {"version": version}),
            ]
            state = await self._change(
                session, lambda c: admission.admit(c, participant, session.config, happened)
            )
            session.consented_by = browser
            return state

        return await self._with(uid, act)

    async def closed(self, uid: str) -> PageState:
        """The state of a visitor for whom no place is left."""
        participant = (await self._session(uid)).participant
        return over_state(
            "closed", self.rules(participant.config).config, participant.mode, participant.language
        )

    def gave_consent(self, uid: str, browser: str | None) -> bool:
        """Whether the consent came from this browser, as far as the server remembers."""
        session = self._sessions.get(uid)
        return session is not None and browser is not None and session.consented_by == browser

    async def instructions(self, uid: str) -> PageState:
        """Record that the instructions were read."""

        async def act(session: ParticipantSession) -> PageState:
            if session.participant.stage == "instructions":
                return await self._move(session, [Event("instructions")], stage="check")
            return self._once_more(session, session.participant.stage != "consent")

        return await self._with(uid, act)

    async def check(self, uid: str, answers: Sequence[int], tries_left: int | None) -> PageState:
        """Check the answers; a participant who passes gets an order."""

        async def act(session: ParticipantSession) -> PageState:
            participant, questions = session.participant, session.config.check
            if participant.stage != "check":
                return self._once_more(
                    session, participant.stage not in ("consent", "instructions")
                )
            if tries_left is not None and tries_left != _flow.TRIES - participant.tries:
                return page_state(session, self.keys)  # the same answers were sent twice
            if len(answers) != len(questions):
                raise Refused(422, "invalid", f"Please answer all {len(questions)} questions.")
            passed = all(
                answer == question.answer
                for answer, question in zip(answers, questions, strict=True)
            )
            event = Event("check", {"answers": list(answers), "passed": passed})
            tries = participant.tries + 1
            if not passed:
                stage = "check" if tries < _flow.TRIES else "failed_check"
                return await self._move(session, [event], stage=stage, tries=tries)

            def job(connection: sa.Connection) -> Participant:
                order = operations.assign_order(connection, participant, session.config)
                happened = [event, Event("order", {"order": order})]
                stage = _flow.stage_after(session.config, order, 0, 0)
                return operations.move(
                    connection, participant, happened, stage=stage, tries=tries, order=order
                )

            return await self._change(session, job)

        return await self._with(uid, act)

    async def answers(
        self, uid: str, page: str, place: str, answers: Mapping[str, Any], seconds: float | None
    ) -> PageState:
        """Store the answers to a page of questions. Repeating them changes nothing."""

        async def act(session: ParticipantSession) -> PageState:
            participant, config = session.participant, session.config
            course = {
                (each.page.id, each.place): each for each in _flow.asked(config, participant.order)
            }
            asked = course.get((page, place))
            if asked is None:
                raise self._out_of_order(session)
            try:
                event = answers_event(asked, config, participant.language, answers, seconds)
            except InputError as error:
                if asked != session.asked:
                    raise self._out_of_order(session) from None
                raise Refused(422, "invalid", str(error)) from None
            if asked == session.asked:
                stage = _flow.stage_after(
                    config, participant.order, participant.done, participant.answered + 1
                )
                return await self._move(
                    session, [event], stage=stage, answered=participant.answered + 1
                )
            stored = await asyncio.to_thread(self._stored_answers, participant.number, page, place)
            return self._once_more(session, stored == event.data["answers"])

        return await self._with(uid, act)

    def _stored_answers(self, number: int, page: str, place: str) -> Any:
        with self.store.reading() as connection:
            events = operations.events_of(connection, number, "answers")
        stored = (event.data for event in events if event.source == "server")
        return next(
            (data["answers"] for data in stored if (data["page"], data["place"]) == (page, place)),
            None,
        )

    async def step(
        self, uid: str, round_id: str, t: int, choice: int, timing: Mapping[str, Any]
    ) -> PageState:
        """Take one step: store it, then acknowledge it. Repeating the step changes nothing."""

        async def act(session: ParticipantSession) -> PageState:
            place = session.place
            if (
                place is not None
                and (place[0].id, place[1]) == (round_id, t)
                and session.attention is None
            ):
                return await self._take(session, place[0], t, choice, timing)
            if await asyncio.to_thread(self._stored_choice, session, round_id, t) == choice:
                return page_state(session, self.keys)
            raise self._out_of_order(session)

        return await self._with(uid, act)

    async def _take(
        self,
        session: ParticipantSession,
        current: Round,
        t: int,
        choice: int,
        timing: Mapping[str, Any],
    ) -> PageState:
        participant, rules, before = session.participant, session.rules, session.mind
        assert before is not None
        if choice >= len(session.arrows[t]):
            raise Refused(422, "invalid", "There is no such arrow.")
        mind = rules.update(current.map, current.learner, before, session.arrows[t], choice)
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
        stage = _flow.stage_after(
            session.config, participant.order, participant.done + 1, participant.answered
        )
        complete = participant.done + 1 == session.config.total_steps
        happened = [Event("all_steps_stored")] if complete else []
        session.participant = await self._store(
            lambda c: operations.add_step(
                c, participant, step, happened, stage=stage, usable=complete
            )
        )
        session.enter(mind)
        session.look_back(
            current, step, before.belief, session.picture if session.mind is mind else None
        )
        return page_state(session, self.keys)

    def _stored_choice(self, session: ParticipantSession, round_id: str, t: int) -> int | None:
        rounds = {settled_round.id: settled_round for settled_round in session.rounds}
        if round_id not in rounds:
            return None
        columns = {"map": rounds[round_id].map, "learner": rounds[round_id].learner, "step": t + 1}
        with self.store.reading() as connection:
            steps = operations.steps_of(connection, session.participant.number, **columns)
        return steps[0].choice if steps else None

    async def attention(
        self, uid: str, round_id: str, t: int, choice: int, timing: Mapping[str, Any]
    ) -> PageState:
        """Store the answer to the attention check before a step; the robot does not see it."""

        async def act(session: ParticipantSession) -> PageState:
            place, check = session.place, session.attention
            if place is None or (place[0].id, place[1]) != (round_id, t):
                raise self._out_of_order(session)
            if check is None:  # it was answered before
                return page_state(session, self.keys)
            participant = session.participant
            if choice >= session.config.candidates:
                raise Refused(422, "invalid", "There is no such arrow.")
            answer = attention.answer(session.config, participant.number, check, choice)
            event = Event(
                "attention", answer | {"round": round_id, "step": t, "timing": dict(timing)}
            )
            session.participant = await self._store(
                lambda c: operations.move(c, participant, [event])
            )
            session.attended |= {check}
            return page_state(session, self.keys)

        return await self._with(uid, act)

    async def events(self, uid: str, happened: Sequence[Event]) -> PageState:
        """Store events of a page; none before consent, and no more than a participant can cause."""

        async def act(session: ParticipantSession) -> PageState:
            participant = session.participant
            if participant.stage in ("consent", "declined") or not happened:
                return {"stored": 0}
            size = sum(len(operations.as_json(dict(event.data))) for event in happened)
            if participant.events + len(happened) > admission.most_events(session.config):
                raise Refused(
                    429, "too_many", "Too many events were sent. Your choices are still stored."
                )
            if participant.bytes + size > admission.most_bytes(session.config):
                raise Refused(413, "too_large", "Too much was sent. Your choices are still stored.")
            session.participant = await self._store(
                lambda c: operations.move(c, participant, happened)
            )
            return {"stored": len(happened)}

        return await self._with(uid, act)

    async def comments(self, uid: str, text: str) -> PageState:
        """Store the comments, if any, and finish the study."""

        async def act(session: ParticipantSession) -> PageState:
            if session.participant.stage == "comments":
                return await self._move(
                    session, [Event("comments", {"text": text})], stage="finished"
                )
            return self._once_more(session, session.participant.stage == "finished")

        return await self._with(uid, act)

    async def leave(
        self, uid: str, keep: bool, code: str | None = None, proven: bool = True
    ) -> PageState:
        """Leave the study; the stored data are kept or erased. Whoever has not consented declines.

        A browser that is not ``proven`` to be the participant's needs the resume code to erase data.
        """

        async def act(session: ParticipantSession) -> PageState:
            participant = session.participant
            if not keep:
                if (
                    not proven
                    and participant.stage != "consent"
                    and not self._is_code_of(participant, code)
                ):
                    raise Refused(
                        422, "code_needed", "Please type your resume code to delete your data."
                    )
                await asyncio.to_thread(self.store.erase, participant, "participant")
                self.drop(uid)
                outcome = _endings.outcome_of_leaving(participant)
                return self._over("left", session, outcome) | {"deleted": True}
            if participant.excluded is not None or participant.stage in operations.ENDED:
                return page_state(session, self.keys)
            if participant.stage == "consent":
                return await self._decline(session)
            return await self._move(
                session, [Event("left", {"stage": participant.stage})], stage="left"
            )

        return await self._with(uid, act, also_excluded=True)

    async def _decline(self, session: ParticipantSession) -> PageState:
        """Store that somebody declined, and only that."""
        participant = session.participant
        await self._store(lambda c: operations.decline(c, participant))
        self.drop(participant.uid)
        return self._over("declined", session, "declined")

    def _once_more(self, session: ParticipantSession, past: bool) -> PageState:
        """Answer a request for a stage that is over: it was repeated, or came out of order."""
        if past:
            return page_state(session, self.keys)
        raise self._out_of_order(session)

    def _out_of_order(self, session: ParticipantSession) -> Refused:
        message = "You have continued the study elsewhere. This is where you are now."
        return Refused(409, "out_of_order", message, page_state(session, self.keys))

    def _excluded(self, session: ParticipantSession) -> Refused:
        message = "The researchers have ended your part in this study."
        return Refused(409, "excluded", message, page_state(session, self.keys))

    def _is_code_of(self, participant: Participant, code: str | None) -> bool:
        return code is not None and _security.same(
            self.keys.resume_hash(code), participant.resume_hash
        )

    def _over(self, stage: str, session: ParticipantSession, outcome: str | None) -> PageState:
        """The state of somebody whose session is over, with what they are entitled to."""
        participant, config = session.participant, session.config
        state = over_state(stage, config, participant.mode, participant.language)
        return state | ending(session, self.keys, outcome)
