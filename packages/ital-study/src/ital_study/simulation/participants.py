"""Simulated participants that use the study's web interface as people do.

They know what is on the screen, the configuration that the researcher gives them (so that they pass the check), and
how to plan. Everything they do is marked as simulated.
"""

import asyncio
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

ENDS = ("finished", "declined", "failed_check", "left", "closed", "excluded")


class Acknowledged(NamedTuple):
    """A step that the server acknowledged as stored."""

    participant: str
    round: str
    step: int
    choice: int


@dataclass
class CrowdOutcome:
    """The result of a run of simulated participants."""

    participants: int
    seconds: float = 0.0
    finished: int = 0
    ends: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    retries: int = 0
    catch_ups: int = 0
    acknowledged: list[Acknowledged] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Steps, steps per second and latencies of a step in milliseconds."""
        steps = len(self.latencies)
        summary = {
            "participants": float(self.participants),
            "finished": float(self.finished),
            "seconds": self.seconds,
            "steps": float(steps),
            "steps_per_second": steps / max(self.seconds, 1e-9),
            "retries": float(self.retries),
        }
        for name, share in (("median", 50), ("p95", 95), ("p99", 99), ("slowest", 100)):
            summary[f"{name}_ms"] = (
                1000 * float(np.percentile(self.latencies, share)) if steps else float("nan")
            )
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
        self.rules, self.version = StudyRules(config), config.hash
        self.answers = {
            asked.question: asked.answer
            for name in config.languages
            for asked in config.texts(name).check
        }
        self.pages = {page.id: page for page in config.questionnaires}
        self.teacher, self.client, self.key, self.think, self.patience = (
            teacher,
            client,
            key,
            think,
            patience,
        )

    def choose(self, scene: Mapping[str, Any], rng: np.random.Generator) -> int:
        """The teacher's choice, given what is on the screen."""
        arrows = [Arrow(arrow["cell"], arrow["action"]) for arrow in scene["arrows"]]
        scores = np.zeros(len(arrows))
        if self.teacher.rationality:
            scores = self.rules.volumes_toward(
                np.asarray(scene["truth"]), np.asarray(scene["belief"]), arrows
            )
        noise = self.teacher.noise * rng.gumbel(size=len(arrows))
        return int(np.argmax(self.teacher.rationality * scores + noise))


class _Participant:
    """One participant: a cookie, the state on the screen, and a way to choose."""

    def __init__(
        self, crowd: _Crowd, name: str, rng: np.random.Generator, outcome: CrowdOutcome
    ) -> None:
        self.crowd, self.name, self.rng, self.outcome = crowd, name, rng, outcome
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
        version = self.state.get("study", {}).get("version", self.crowd.version)
        if version != self.crowd.version:
            raise ServerRefused(
                f"the server runs another configuration ({version[:12]}…, not {self.crowd.version[:12]}…): "
                "give the server's configuration with --config"
            )

    async def act(self, show: Callable[[], None]) -> None:
        """Do what the page asks for."""
        state = self.state
        match state["stage"]:
            case "consent":
                await self.send(
                    "/api/consent", {"accepted": True, "version": state["consent"]["version"]}
                )
            case "instructions":
                await self.send("/api/instructions", {})
            case "check":
                questions = [asked["question"] for asked in state["check"]["questions"]]
                await self.send(
                    "/api/check",
                    {"answers": [self.crowd.answers.get(text, 0) for text in questions]},
                )
            case "questions":
                asked = state["questions"]
                answers = draw_answers(self.crowd.pages[asked["page"]], self.rng)
                await self.send(
                    "/api/answers",
                    {"page": asked["page"], "place": asked["place"], "answers": answers},
                )
            case "warm_up" | "teach":
                await self.teach(state["scene"])
                show()
            case "comments":
                await self.send("/api/comments", {"text": ""})
            case stage:
                raise ServerRefused(
                    f"a simulated participant does not know what to do at stage {stage!r}"
                )

    async def teach(self, scene: Json) -> None:
        """One step: think, choose, confirm."""
        shown = time.time()
        if self.crowd.think:
            await asyncio.sleep(self.rng.exponential(self.crowd.think))
        choose = scene.get("attention")
        if choose is None:
            choice = self.crowd.choose(scene, self.rng)
        else:  # simulated participants read what the page asks for
            choice = right_choice(
                choose, [arrow["cell"] for arrow in scene["arrows"]], scene["size"]
            )
        now = time.time()
        timing = {
            "shown_at": round(1000 * shown),
            "chosen_at": round(1000 * now),
            "confirmed_at": round(1000 * now),
            "seconds_to_choice": now - shown,
            "seconds_to_confirm": now - shown,
            "choice_changes": 0,
            "focus_losses": 0,
        }
        body = {"round": scene["round"], "step": scene["step"], "choice": choice, "timing": timing}
        if choose is not None:
            await self.send("/api/attention", body)
        elif await self.send("/api/steps", body, timed=True):
            self.outcome.acknowledged.append(
                Acknowledged(self.name, scene["round"], scene["step"], choice)
            )

    async def send(self, path: str, body: Json, *, timed: bool = False) -> bool:
        """Post until there is an answer, and adopt the state in it. Return whether the request was accepted.

        If the connection is lost or the server is down, wait and repeat the same request: it counts once.
        """
        import httpx

        pause, give_up_at = 0.05, time.monotonic() + self.crowd.patience
        while True:
            began = time.perf_counter()
            try:
                headers = {"X-CSRF-Token": self.state.get("csrf", "")}
                if self.cookies:
                    headers["Cookie"] = "; ".join(
                        f"{name}={value}" for name, value in self.cookies.items()
                    )
                answer = await self.crowd.client.post(path, json=body, headers=headers)
                lost = (
                    f"status {answer.status_code}"
                    if answer.status_code >= 500 or answer.status_code == 429
                    else ""
                )
            except httpx.TransportError as error:
                lost = str(error) or type(error).__name__
            if not lost:
                break
            if time.monotonic() > give_up_at:
                raise ServerRefused(
                    f"no answer from the server for {self.crowd.patience:g} s ({lost})"
                )
            self.outcome.retries += 1
            await asyncio.sleep(pause * (1 + self.rng.random()))
            pause = min(2 * pause, 2.0)
        content = _json(answer)
        if answer.is_success:
            if timed:
                self.outcome.latencies.append(time.perf_counter() - began)
            self.cookies |= dict(answer.cookies)
            self.state = content
            return True
        if (
            answer.status_code == 409 and "state" in content
        ):  # another tab was faster, or an earlier answer was lost
            self.outcome.catch_ups += 1
            self.state = content["state"]
            return False
        if answer.status_code == 401 and path != "/api/join":
            await self.join()
            return False
        reason = content.get("error") or content.get("detail") or answer.reason_phrase
        raise ServerRefused(f"the server refused {path}: {reason} (status {answer.status_code})")


def _json(answer: "httpx.Response") -> Json:
    try:
        content = answer.json()
    except ValueError:
        content = None
    if isinstance(content, dict) and (not answer.is_success or "stage" in content):
        return content
    if answer.is_success:
        raise ServerRefused(f"{answer.request.url} is not a study: its answer has no stage")
    return {}


async def take_part(
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
    rngs = [np.random.default_rng((seed, i)) for i in range(participants)]
    run = secrets.token_hex(8)
    names = names or [f"simulated-{run}-{i}" for i in range(participants)]
    places = asyncio.Semaphore(at_once or participants)

    async with _client(url, at_once or participants, transport) as client:
        crowd = _Crowd(config, teacher, client, key, think, patience)

        async def send_in(i: int) -> None:
            async with places:
                await asyncio.sleep(rngs[i].uniform(0, ramp) if ramp else 0)
                participant = _Participant(crowd, names[i], rngs[i], outcome)
                await participant.take_part(lambda: show(len(outcome.latencies)))

        began = time.perf_counter()
        try:
            async with asyncio.timeout(limit), asyncio.TaskGroup() as group:
                for i in range(participants):
                    group.create_task(send_in(i))
        except TimeoutError:
            pass  # the limit is reached: the load test is over
        except ExceptionGroup as group_of_errors:
            error: Exception = group_of_errors
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            raise error from group_of_errors
        finally:
            outcome.seconds = time.perf_counter() - began
    return outcome


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
        client.cookies.jar.set_policy(
            DefaultCookiePolicy(allowed_domains=[])
        )  # the shared client keeps no cookie
        yield client
