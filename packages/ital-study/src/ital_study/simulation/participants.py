"""Simulated participants that use the study's web interface as people do.

They know what is on the screen, the configuration that the researcher gives them (so that they pass
the check), and how to plan. Everything they do is marked as simulated.
"""

import asyncio
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.tools.checks import install
from ital_study.config.configuration import Config
from ital_study.data.answers import draw_answers
from ital_study.robots.attention import right_choice
from ital_study.robots.rules import Arrow, StudyRules
from ital_study.simulation.arms import ArmTeacher

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]

# Stages at which a participant has nothing more to do.
ENDS = ("finished", "declined", "failed_check", "left", "closed", "excluded")

# Seconds between two attempts to reach the server: the first pause, and the longest.
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0


class Acknowledged(NamedTuple):
    """A step that the server acknowledged as stored."""

    participant: str
    round: str
    step: int
    choice: int


@dataclass
class CrowdOutcome:
    """The result of a run of simulated participants.

    Attributes:
        participants: Number of participants.
        seconds: Duration of the run.
        finished: Number of participants who finished.
        ends: Last stage of every participant who came to an end.
        latencies: Seconds between request and answer, of every stored step.
        retries: Number of requests that were repeated.
        catch_ups: Number of times that the server was ahead of a participant.
        acknowledged: Steps that the server acknowledged as stored.
    """

    participants: int
    seconds: float = 0.0
    finished: int = 0
    ends: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    retries: int = 0
    catch_ups: int = 0
    acknowledged: list[Acknowledged] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Return steps, steps per second and latencies of a step in milliseconds."""
        steps = len(self.latencies)
        milliseconds = 1000 * np.asarray(self.latencies)
        summary = {
            "participants": float(self.participants),
            "finished": float(self.finished),
            "seconds": self.seconds,
            "steps": float(steps),
            "steps_per_second": steps / max(self.seconds, 1e-9),
            "retries": float(self.retries),
        }
        for name, percent in (("median", 50), ("p95", 95), ("p99", 99), ("slowest", 100)):
            summary[f"{name}_ms"] = math.nan
            if steps:
                summary[f"{name}_ms"] = float(np.percentile(milliseconds, percent))
        return summary


class ServerRefused(InputError):
    """The server refused a request, and repeating it would not help."""


class _Crowd:
    """What the participants of one run share: connection, rules, settings and result."""

    def __init__(
        self,
        config: Config,
        teacher: ArmTeacher,
        client: "httpx.AsyncClient",
        key: str,
        think: float,
        patience: float,
    ) -> None:
        self.rules = StudyRules(config)
        self.version = config.hash
        # By the text of the question: the page shows it in the participant's language.
        self.answers: dict[str, int] = {}
        for language in config.languages:
            for asked in config.texts(language).check:
                self.answers[asked.question] = asked.answer
        self.pages = {page.id: page for page in config.questionnaires}
        self.teacher = teacher
        self.client = client
        self.key = key
        self.think = think
        self.patience = patience

    def choose(self, scene: Mapping[str, Any], rng: np.random.Generator) -> int:
        """Return the teacher's choice, given what is on the screen."""
        arrows = [Arrow(arrow["cell"], arrow["action"]) for arrow in scene["arrows"]]
        rationality = self.teacher.rationality
        scores = np.zeros(len(arrows))
        # Volumes need a plan, which random teachers do without.
        if rationality:
            scores = self.rules.volumes_toward(
                np.asarray(scene["truth"]), np.asarray(scene["belief"]), arrows
            )
        noise = self.teacher.noise * rng.gumbel(size=len(arrows))
        return int(np.argmax(rationality * scores + noise))


class _Participant:
    """One participant: a cookie, the state on the screen, and a way to choose."""

    def __init__(
        self,
        crowd: _Crowd,
        name: str,
        rng: np.random.Generator,
        outcome: CrowdOutcome,
    ) -> None:
        self.crowd = crowd
        self.name = name
        self.rng = rng
        self.outcome = outcome
        self.cookies: dict[str, str] = {}
        self.state: Json = {}

    async def take_part(self, show: Callable[[], None]) -> None:
        """Go through the whole study, from joining to the end."""
        await self.join()
        while self.state["stage"] not in ENDS:
            await self.act(show)
        self.outcome.ends.append(self.state["stage"])
        self.outcome.finished += self.state["stage"] == "finished"

    async def join(self) -> None:
        """Join or resume. The ID identifies the participant, so joining twice counts once."""
        self.cookies = {}
        body = {
            "ids": {"id": self.name},
            "resume": None,
            "mode": "simulated",
            "key": self.crowd.key,
            "teacher": self.crowd.teacher.name,
        }
        await self.send("/api/join", body)
        ours = self.crowd.version
        theirs = self.state.get("study", {}).get("version", ours)
        if theirs != ours:
            raise ServerRefused(
                f"the server runs another configuration ({theirs[:12]}…, not {ours[:12]}…): "
                "give the server's configuration with --config"
            )

    async def act(self, show: Callable[[], None]) -> None:
        """Do what the page asks for."""
        state = self.state
        match state["stage"]:
            case "consent":
                version = state["consent"]["version"]
                await self.send("/api/consent", {"accepted": True, "version": version})
            case "instructions":
                await self.send("/api/instructions", {})
            case "check":
                questions = [asked["question"] for asked in state["check"]["questions"]]
                answers = [self.crowd.answers.get(text, 0) for text in questions]
                await self.send("/api/check", {"answers": answers})
            case "questions":
                await self.answer_questions(state["questions"])
            case "warm_up" | "teach":
                await self.teach(state["scene"])
                show()
            case "waiting":  # programs need not wait
                await self.send("/api/part", {})
            case "comments":
                await self.send("/api/comments", {"text": ""})
            case stage:
                raise ServerRefused(
                    f"a simulated participant does not know what to do at stage {stage!r}"
                )

    async def answer_questions(self, asked: Json) -> None:
        """Answer a page of questions at random."""
        answers = draw_answers(self.crowd.pages[asked["page"]], self.rng)
        body = {"page": asked["page"], "place": asked["place"], "answers": answers}
        await self.send("/api/answers", body)

    async def teach(self, scene: Json) -> None:
        """Take one step: think, choose, confirm."""
        shown_at = time.time()
        if self.crowd.think:
            await asyncio.sleep(self.rng.exponential(self.crowd.think))
        corner = scene.get("attention")
        if corner is None:
            choice = self.crowd.choose(scene, self.rng)
        else:
            # Simulated participants read what the page of an attention check asks for.
            cells = [arrow["cell"] for arrow in scene["arrows"]]
            choice = right_choice(corner, cells, scene["size"])
        body = {
            "round": scene["round"],
            "step": scene["step"],
            "choice": choice,
            "timing": _timing(shown_at, time.time()),
        }
        if corner is not None:
            await self.send("/api/attention", body)
            return
        stored = await self.send("/api/steps", body, timed=True)
        if stored:
            self.outcome.acknowledged.append(
                Acknowledged(self.name, scene["round"], scene["step"], choice)
            )

    async def send(
        self,
        path: str,
        body: Json,
        *,
        timed: bool = False,
    ) -> bool:
        """Post until there is an answer, and adopt the state in it.

        Return whether the request was accepted.

        If the connection is lost or the server is down, wait and repeat the same request: it counts
        once.
        """
        answer, seconds = await self.post_until_answered(path, body)
        content = _json(answer)
        if answer.is_success:
            if timed:
                self.outcome.latencies.append(seconds)
            self.cookies |= dict(answer.cookies)
            self.state = content
            return True
        # Another tab was faster, or an earlier answer was lost: continue from where the server is.
        if answer.status_code == 409 and "state" in content:
            self.outcome.catch_ups += 1
            self.state = content["state"]
            return False
        # The server does not know the cookie any more: join again, with the same ID.
        if answer.status_code == 401 and path != "/api/join":
            await self.join()
            return False
        reason = content.get("error") or content.get("detail") or answer.reason_phrase
        raise ServerRefused(f"the server refused {path}: {reason} (status {answer.status_code})")

    async def post_until_answered(self, path: str, body: Json) -> "tuple[httpx.Response, float]":
        """Post, again and again if need be.

        Return the answer and the seconds that its request took.
        """
        give_up_at = time.monotonic() + self.crowd.patience
        pause = FIRST_PAUSE
        while True:
            began = time.perf_counter()
            try:
                return await self.post(path, body), time.perf_counter() - began
            except _NoAnswer as error:
                lost = str(error)
            if time.monotonic() > give_up_at:
                raise ServerRefused(
                    f"no answer from the server for {self.crowd.patience:g} s ({lost})"
                )
            self.outcome.retries += 1
            # Random pauses, so that participants who lost the server together do not return
            # together.
            await asyncio.sleep(pause * (1 + self.rng.random()))
            pause = min(2 * pause, LONGEST_PAUSE)

    async def post(self, path: str, body: Json) -> "httpx.Response":
        """Post once; raise if the server did not answer or was too busy to."""
        import httpx

        headers = {"X-CSRF-Token": self.state.get("csrf", "")}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            answer = await self.crowd.client.post(path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise _NoAnswer(str(error) or type(error).__name__) from error
        if answer.status_code >= 500 or answer.status_code == 429:
            raise _NoAnswer(f"status {answer.status_code}")
        return answer


class _NoAnswer(Exception):
    """The server did not answer: the same request may succeed later."""


def _timing(shown_at: float, chosen_at: float) -> Json:
    """Return what the page would say about a choice that was confirmed at once."""
    seconds = chosen_at - shown_at
    return {
        "shown_at": round(1000 * shown_at),
        "chosen_at": round(1000 * chosen_at),
        "confirmed_at": round(1000 * chosen_at),
        "seconds_to_choice": seconds,
        "seconds_to_confirm": seconds,
        "choice_changes": 0,
        "focus_losses": 0,
    }


def _json(answer: "httpx.Response") -> Json:
    """Return the content of an answer; an error without readable content has none."""
    try:
        content = answer.json()
    except ValueError:
        content = None
    readable = isinstance(content, dict)
    if answer.is_success:
        # Any web page answers with success: only a study answers with a stage.
        if not readable or "stage" not in content:
            raise ServerRefused(f"{answer.request.url} is not a study: its answer has no stage")
        return content
    return content if readable else {}


async def take_part(  # noqa: PLR0913
    url: str,
    config: Config,
    teacher: ArmTeacher,
    participants: int,
    *,
    key: str,
    think: float = 0.0,
    at_once: int | None = None,
    ramp: float = 0.0,
    limit: float | None = None,
    patience: float = 120.0,
    seed: int = 0,
    names: Sequence[str] | None = None,
    show: Callable[[int], None] = lambda steps: None,
    transport: "httpx.AsyncBaseTransport | None" = None,
) -> CrowdOutcome:
    """Send simulated participants through the study at an address.

    Args:
        url: Address of the study.
        config: Its configuration, so that the participants pass the comprehension check.
        teacher: How they choose.
        participants: Number of participants.
        key: Key that lets simulated participants join.
        think: Mean number of seconds before each choice; times are exponential.
        at_once: Number of participants at a time; None: all.
        ramp: Number of seconds within which participants begin, at random moments.
        limit: Number of seconds after which all participants stop; None: no limit.
        patience: Number of seconds to wait for a server that does not answer.
        seed: Seed of their choices and pauses.
        names: IDs to resume with, one per participant.
        show: Called with the number of stored steps.
        transport: Transport of the HTTP client, for tests.

    Returns:
        Counts, latencies and the steps that the server acknowledged.

    Raises:
        InputError: The address is invalid, httpx is missing, or the server refused a request.
    """
    outcome = CrowdOutcome(participants)
    at_once = at_once or participants
    # A generator each: a participant's choices depend on nobody else.
    rngs = [np.random.default_rng((seed, index)) for index in range(participants)]
    run = secrets.token_hex(8)
    names = names or [f"simulated-{run}-{index}" for index in range(participants)]
    free_slots = asyncio.Semaphore(at_once)

    async with _client(url, at_once, transport) as client:
        crowd = _Crowd(config, teacher, client, key, think, patience)

        async def send_in(index: int) -> None:
            async with free_slots:
                await asyncio.sleep(rngs[index].uniform(0, ramp) if ramp else 0)
                participant = _Participant(crowd, names[index], rngs[index], outcome)
                await participant.take_part(lambda: show(len(outcome.latencies)))

        began = time.perf_counter()
        try:
            async with asyncio.timeout(limit), asyncio.TaskGroup() as group:
                for index in range(participants):
                    group.create_task(send_in(index))
        except TimeoutError:
            pass  # the limit is reached: the load test is over
        except ExceptionGroup as errors:
            raise _first_of(errors) from errors
        finally:
            outcome.seconds = time.perf_counter() - began
    return outcome


def _first_of(errors: ExceptionGroup[Exception]) -> Exception:
    """Return the first error of a group, which may be a group itself."""
    error: Exception = errors
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@asynccontextmanager
async def _client(
    url: str, connections: int, transport: "httpx.AsyncBaseTransport | None"
) -> "AsyncIterator[httpx.AsyncClient]":
    """One pool of connections for all participants; each participant keeps its own cookies."""
    try:
        import httpx
    except ModuleNotFoundError:
        raise InputError(
            f"simulated participants over HTTP need httpx: {install('ital-study[server]')}"
        ) from None
    if not url.startswith(("http://", "https://")):
        raise InputError(f"the address of a study must begin with http:// or https://, not {url!r}")
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(
        base_url=url.rstrip("/"),
        timeout=httpx.Timeout(30.0, pool=None),
        limits=limits,
        transport=transport,
    ) as client:
        # The shared client keeps no cookie: it would give all participants that of the last one.
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        yield client
