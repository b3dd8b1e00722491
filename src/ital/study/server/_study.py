"""The study as it runs: who is where, what comes next, and nothing acknowledged before it is stored."""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from ital._version import __version__
from ital.study._config import Config, parse_config
from ital.study._rules import Arrow, Mind, Picture, Rules
from ital.study.server import _flow, _security
from ital.study.server._flow import Round
from ital.study.server._plain import TRY_AGAIN
from ital.study.server._settings import Settings
from ital.study.store import NotStored, Store
from ital.study.store import _operations as operations
from ital.study.store._operations import Event, Moved, Participant, Step

LOG = logging.getLogger("ital.study")
MOST_SESSIONS = 4096  # participants held in memory
TOLERANCE = 1e-3  # between a replay and a belief that was stored on another machine


class Refused(Exception):
    """A request that is answered with an error; ``state`` helps a page to catch up."""

    def __init__(self, status: int, code: str, error: str, state: dict[str, Any] | None = None) -> None:
        super().__init__(error)
        self.status, self.code, self.error, self.state = status, code, error, state


class Session:
    """A participant in memory: the row, and the robot being taught now."""

    def __init__(self, participant: Participant, rules: Rules) -> None:
        self.participant, self.rules, self.config = participant, rules, rules.config
        self.public = rules.config.public()
        self.lock = asyncio.Lock()
        self.stale = False
        self.mind: Mind | None = None
        self.picture: Picture | None = None
        self.arrows: Sequence[Sequence[Arrow]] = ()
        self.after: dict[str, Any] | None = None  # what the last step did

    @property
    def rounds(self) -> list[Round]:
        """The rounds that are known by now."""
        return _flow.rounds(self.config, self.participant.order)

    @property
    def place(self) -> tuple[Round, int] | None:
        """The round and the step that come next; None outside the teaching."""
        if self.participant.stage not in ("warm_up", "teach"):
            return None
        return _flow.where(self.rounds, self.participant.done)

    def enter(self, mind: Mind | None = None) -> None:
        """Gets ready for the step that comes next, with a robot that goes on or a fresh one."""
        here = self.place
        if here is None:
            self.mind, self.picture, self.arrows = None, None, ()
            return
        number, name = self.participant.number, here[0].map
        if here[1] == 0 or not self.arrows:
            self.arrows = self.rules.candidates(number, name)
        if mind is None or here[1] == 0:
            mind = self.rules.mind(here[0].learner, self.rules.start(number, name))
        self.mind, self.picture = mind, self.rules.picture(mind.belief)

    def look_back(self, one: Round, step: Step, before: np.ndarray | None, picture: Picture | None = None) -> None:
        """Keeps what the last step did, for the page to show."""
        shown = picture or self.rules.picture(operations.as_state(step.state))
        hint = None
        if self.config.hint and before is not None:
            arrows = self.rules.candidates(self.participant.number, one.map)[step.step - 1]
            hint = self.rules.best(one.map, before, arrows)
        self.after = {
            "round": one.id,
            "step": step.step - 1,
            "choice": step.choice,
            "hint": hint,
            "belief": shown.belief,
            "policy": shown.policy,
        }


class Study:
    """All that the interface for participants does."""

    def __init__(self, config: Config, store: Store, settings: Settings) -> None:
        self.config, self.store, self.keys = config, store, _security.Keys(settings.secret)
        self._rules: dict[str, Rules] = {}
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def start(self) -> None:
        """Stores the configuration and compiles the rules."""
        self.store.write(lambda connection: operations.add_configuration(connection, self.config))
        self.rules(self.config.hash).warm_up()

    def rules(self, config: str) -> Rules:
        """The rules of a configuration: that of today, or one that participants began with."""
        if config not in self._rules:
            if config == self.config.hash:
                known = self.config
            else:
                with self.store.reading() as connection:
                    known = parse_config(operations.config_text(connection, config), "the stored configuration")
            self._rules[config] = Rules(known)
        return self._rules[config]

    # Sessions

    async def _session(self, uid: str) -> Session:
        session = self._sessions.get(uid)
        if session is None:
            loaded = await asyncio.to_thread(self._load, uid)
            if loaded is None:
                raise Refused(401, "unknown", "We do not know you yet. Please open the study link again.")
            session = self._sessions.setdefault(uid, loaded)
        self._sessions.move_to_end(uid)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)[1].stale = True
        return session

    def _load(self, uid: str) -> Session | None:
        """Builds a session from the store: the robot is a replay of the choices."""
        with self.store.reading() as connection:
            known = operations.find(connection, uid=uid)
            if known is None:
                return None
            found = operations.steps_of(connection, known.number)
        session = Session(known, self.rules(known.config))
        self._rebuild(session, {(step.map, step.learner, step.step): step for step in found})
        return session

    def _rebuild(self, session: Session, stored: Mapping[tuple[str, str, int], Step]) -> None:
        known = session.participant
        last = _flow.where(session.rounds, known.done - 1) if known.done else None
        mind = None
        if last is not None:
            one, t = last
            taken = [stored[one.map, one.learner, i + 1] for i in range(t + 1)]
            minds = session.rules.replay(known.number, one.map, one.learner, [step.choice for step in taken])
            if not agrees([each.belief for each in minds[1:]], taken):
                LOG.error("participant %d, map %s: the replay differs from what is stored", known.number, one.map)
            # What the participant saw is what was stored; a replay on another machine may round otherwise. What a
            # robot remembers beside its belief is not stored: that is the replay's.
            beliefs = [minds[0].belief, *(operations.as_state(step.state) for step in taken)]
            session.look_back(one, taken[-1], beliefs[-2])
            mind = minds[-1]._replace(belief=beliefs[-1])
        session.enter(mind)

    def drop(self, uid: str) -> None:
        """Forgets a session; the next request builds it from the store."""
        session = self._sessions.pop(uid, None)
        if session is not None:
            session.stale = True

    async def _with(self, uid: str, act: "Callable[[Session], Awaitable[dict[str, Any]]]") -> dict[str, Any]:
        """Does something with a participant, alone; once again if the store knows better where they are."""
        for _ in range(5):
            session = await self._session(uid)
            async with session.lock:
                if session.stale:
                    continue
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

    async def _move(self, session: Session, happened: Sequence[Event] = (), **changes: Any) -> dict[str, Any]:
        """Moves a participant on and answers where they are then."""
        known = session.participant
        session.participant = await self._store(lambda c: operations.move(c, known, happened, **changes))
        session.enter()
        return self.state(session)

    # What participants do

    async def join(
        self, *, mode: str, teacher: str, external: tuple[str, str] | None, resume: str | None, uid: str | None
    ) -> tuple[str, dict[str, Any]]:
        """Takes in a participant, or finds one again; returns the uid and the state. Raises Closed."""
        if resume is not None:
            wanted = {"resume_hash": self.keys.resume_hash(resume)}
            found = await asyncio.to_thread(self._find, wanted)
            if found is None:
                raise Refused(404, "unknown_code", "This code is not known. Please check it, or open the study link.")
            return found.uid, await self.look(found.uid)
        if external is None and uid is not None:
            known = await asyncio.to_thread(self._find, {"uid": uid})
            if known is not None and known.mode == mode and known.stage not in operations.ENDED:
                return uid, await self.look(uid)
        digest = None if external is None else self.keys.external_hash(*external)
        new = _security.new_uid()

        def job(connection: sa.Connection) -> Participant:
            found = None if digest is None else operations.find(connection, mode=mode, external_hash=digest)
            return found or operations.add_participant(
                connection,
                self.config,
                uid=new,
                mode=mode,
                teacher=teacher,
                code_version=__version__,
                resume_hash=self.keys.resume_hash(self.keys.resume_code(new)),
                external_hash=digest,
            )

        try:
            joined = await self._store(job)
        except (NotStored, sa.exc.IntegrityError):  # the same ID in another process, at the same moment
            raise Refused(503, "try_again", TRY_AGAIN) from None
        return joined.uid, await self.look(joined.uid)

    def _find(self, wanted: Mapping[str, Any]) -> Participant | None:
        with self.store.reading() as connection:
            return operations.find(connection, **wanted)

    async def look(self, uid: str) -> dict[str, Any]:
        """Where a participant is."""
        return self.state(await self._session(uid))

    async def consent(self, uid: str, accepted: bool, version: str) -> dict[str, Any]:
        """Agrees to take part, or declines: then nothing but that fact is kept."""

        async def act(session: Session) -> dict[str, Any]:
            known = session.participant
            if known.stage != "consent":
                return self._once_more(session, accepted)
            if version != session.config.consent.version:
                raise self._out_of_order(session)
            if not accepted:
                await self._store(lambda c: operations.decline(c, known))
                self.drop(uid)
                return self._over("declined", session.config, known.mode)
            joined = Event("joined", {"at": known.joined_at})
            return await self._move(session, [joined, Event("consent", {"version": version})], stage="instructions")

        return await self._with(uid, act)

    async def instructions(self, uid: str) -> dict[str, Any]:
        """Has read the instructions."""

        async def act(session: Session) -> dict[str, Any]:
            if session.participant.stage == "instructions":
                return await self._move(session, [Event("instructions")], stage="check")
            return self._once_more(session, session.participant.stage != "consent")

        return await self._with(uid, act)

    async def check(self, uid: str, answers: Sequence[int], tries_left: int | None) -> dict[str, Any]:
        """Answers the comprehension check; whoever passes gets an order."""

        async def act(session: Session) -> dict[str, Any]:
            known, questions = session.participant, session.config.check
            if known.stage != "check":
                return self._once_more(session, known.stage not in ("consent", "instructions"))
            if tries_left is not None and tries_left != _flow.TRIES - known.tries:
                return self.state(session)  # the same answers once more
            if len(answers) != len(questions):
                raise Refused(422, "invalid", f"There are {len(questions)} questions to answer.")
            passed = all(given == one.answer for given, one in zip(answers, questions, strict=True))
            event = Event("check", {"answers": list(answers), "passed": passed})
            tries = known.tries + 1
            if not passed:
                stage = "check" if tries < _flow.TRIES else "failed_check"
                return await self._move(session, [event], stage=stage, tries=tries)

            def job(connection: sa.Connection) -> Participant:
                order = operations.assign_order(connection, known, session.config)
                happened = [event, Event("order", {"order": order})]
                return operations.move(connection, known, happened, stage="warm_up", tries=tries, order=order)

            session.participant = await self._store(job)
            session.enter()
            return self.state(session)

        return await self._with(uid, act)

    async def step(self, uid: str, round_id: str, t: int, choice: int, timing: Mapping[str, Any]) -> dict[str, Any]:
        """Takes one step: stored, then acknowledged. The same step again changes nothing."""

        async def act(session: Session) -> dict[str, Any]:
            here = session.place
            if here is not None and (here[0].id, here[1]) == (round_id, t):
                return await self._take(session, here[0], t, choice, timing)
            if await asyncio.to_thread(self._stored_choice, session, round_id, t) == choice:
                return self.state(session)
            raise self._out_of_order(session)

        return await self._with(uid, act)

    async def _take(
        self, session: Session, one: Round, t: int, choice: int, timing: Mapping[str, Any]
    ) -> dict[str, Any]:
        known, rules, before = session.participant, session.rules, session.mind
        assert before is not None
        if choice >= len(session.arrows[t]):
            raise Refused(422, "invalid", "There is no such arrow.")
        mind = rules.update(one.map, one.learner, before, session.arrows[t], choice)
        step = Step(
            map=one.map,
            learner=one.learner,
            step=t + 1,
            robot=one.robot,
            choice=choice,
            state=operations.as_bytes(mind.belief),
            timing=json.dumps(dict(timing), allow_nan=False, separators=(",", ":")),
            stored_at=operations.now(),
        )
        stage = _flow.stage_after(session.config, known.done + 1)
        changes: dict[str, Any] = {"stage": stage}
        happened = []
        if stage == "comments":
            changes["usable"] = True
            happened = [Event("all_steps_stored")]
        session.participant = await self._store(lambda c: operations.add_step(c, known, step, happened, **changes))
        session.enter(mind)
        session.look_back(one, step, before.belief, session.picture if session.mind is mind else None)
        return self.state(session)

    def _stored_choice(self, session: Session, round_id: str, t: int) -> int | None:
        one = next((one for one in session.rounds if one.id == round_id), None)
        if one is None:
            return None
        with self.store.reading() as connection:
            found = operations.steps_of(
                connection, session.participant.number, map=one.map, learner=one.learner, step=t + 1
            )
        return found[0].choice if found else None

    async def events(self, uid: str, happened: Sequence[Event]) -> dict[str, Any]:
        """Stores what a page noticed; nothing before consent, and no more than a participant can cause."""

        async def act(session: Session) -> dict[str, Any]:
            known = session.participant
            if known.stage in ("consent", "declined") or not happened:
                return {"stored": 0}
            if known.events + len(happened) > operations.MOST_EVENTS:
                raise Refused(429, "too_many", "There are too many events.")
            session.participant = await self._store(lambda c: operations.move(c, known, happened))
            return {"stored": len(happened)}

        return await self._with(uid, act)

    async def comments(self, uid: str, text: str) -> dict[str, Any]:
        """Takes the comments, if any; with that the study is finished."""

        async def act(session: Session) -> dict[str, Any]:
            if session.participant.stage == "comments":
                return await self._move(session, [Event("comments", {"text": text})], stage="finished")
            return self._once_more(session, session.participant.stage == "finished")

        return await self._with(uid, act)

    async def leave(self, uid: str, keep: bool) -> dict[str, Any]:
        """Leaves the study: what is stored stays, or is erased."""

        async def act(session: Session) -> dict[str, Any]:
            known = session.participant
            if not keep:
                await asyncio.to_thread(self.store.erase, known, "participant")
                self.drop(uid)
                return self._over("left", session.config, known.mode) | {"deleted": True}
            if known.stage in operations.ENDED:
                return self.state(session)
            return await self._move(session, [Event("left", {"stage": known.stage})], stage="left")

        return await self._with(uid, act)

    def _once_more(self, session: Session, past: bool) -> dict[str, Any]:
        """Answers a request for a stage that is over: once more the same, or out of order."""
        if past:
            return self.state(session)
        raise self._out_of_order(session)

    def _out_of_order(self, session: Session) -> Refused:
        return Refused(
            409, "out_of_order", "The study has gone on elsewhere; here is where it is.", self.state(session)
        )

    # The state as it is told to pages

    def state(self, session: Session) -> dict[str, Any]:
        """Where a participant is, and all that the page needs; never the kind of a robot."""
        known, config = session.participant, session.config
        state: dict[str, Any] = {
            "stage": known.stage,
            "csrf": self.keys.csrf(known.uid),
            "resume_code": self.keys.resume_code(known.uid),
            "mode": known.mode,
            "study": study_facts(session.public),
            "progress": {"done": known.done, "total": _flow.total_steps(config)},
            "after": session.after if known.stage in ("warm_up", "teach", "comments") else None,
        }
        if known.stage == "consent":
            state["consent"] = session.public["consent"]
        if known.stage in ("instructions", "check"):
            state["instructions"] = session.public["instructions"]
        if known.stage == "check":
            state["check"] = {"questions": session.public["check"], "tries_left": _flow.TRIES - known.tries}
        if known.stage in ("warm_up", "teach"):
            state["scene"] = self._scene(session)
        if known.stage == "finished":
            completion = config.completion
            told = {"code": completion.code, "redirect": completion.redirect, "steps_stored": known.done}
            state |= {"debriefing": config.debriefing, "completion": told}
        return state

    def _scene(self, session: Session) -> dict[str, Any]:
        here, picture, config = session.place, session.picture, session.config
        assert here is not None
        assert picture is not None
        one, t = here
        last = session.after if session.after is not None and session.after["round"] == one.id else None
        return {
            "round": one.id,
            "map": one.map_number,
            "maps": len(config.maps),
            "robot": one.robot,
            "step": t,
            "steps": one.steps,
            "size": config.size,
            "truth": [cell for row in session.rules.map(one.map).rewards for cell in row],
            "belief": picture.belief,
            "policy": picture.policy,
            "arrows": [arrow._asdict() for arrow in session.arrows[t]],
            "first_of_round": t == 0,
            "last": None if last is None else {"choice": last["choice"], "hint": last["hint"]},
        }

    def closed(self, mode: str) -> dict[str, Any]:
        """What somebody sees who comes when no more participants are taken."""
        return self._over("closed", self.config, mode)

    def _over(self, stage: str, config: Config, mode: str) -> dict[str, Any]:
        return {"stage": stage, "csrf": "", "resume_code": None, "mode": mode} | {
            "study": study_facts(config.public()),
            "progress": {"done": 0, "total": _flow.total_steps(config)},
            "after": None,
        }


def study_facts(public: Mapping[str, Any]) -> dict[str, Any]:
    """What every page may know of the study."""
    names = ("title", "palette", "numbers", "hint", "maps", "robots", "steps", "warm_up_steps", "version")
    return {name: public[name] for name in names}


def agrees(replayed: Sequence[np.ndarray], stored: Sequence[Step]) -> bool:
    """Whether a replay gives the beliefs that were stored, up to rounding."""
    return all(
        np.allclose(belief, operations.as_state(step.state), rtol=TOLERANCE, atol=TOLERANCE)
        for belief, step in zip(replayed, stored, strict=True)
    )
