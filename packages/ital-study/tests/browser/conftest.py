import contextlib
import csv
import dataclasses
import io
import os
import socket
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip(
    "fastapi", reason="the study's server is not installed: pip install 'ital[study]'"
)
pytest.importorskip(
    "uvicorn", reason="the study's server is not installed: pip install 'ital[study]'"
)
playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright for Python is not installed"
)

import uvicorn

import ital_study as study
from ital_study.server import ServerSettings, create_app, create_play_app
from tests.browsers import chromium
from tests.questions import unasked
from tests.server.people import cheap_hash, ready

playwright_api.expect.set_options(timeout=20_000)  # the machine may be busy

PASSWORD = "a-password-for-tests"
SHORT = {"steps": 2, "warm_up_steps": 2}
ROOT = Path(__file__).parents[4]
PACKAGE = Path(__file__).parents[2]


@contextlib.contextmanager
def serving(app):
    """The address of a real server with this application."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            port=port,
            ws="none",
            log_level="error",
            timeout_graceful_shutdown=2,
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not server.started:
        if time.monotonic() > deadline or not thread.is_alive():
            raise RuntimeError("the server did not start")
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


def study_config(**changes):
    return dataclasses.replace(unasked(ready(study.load_config("short"))), **(SHORT | changes))


def study_app(folder, config):
    settings = ServerSettings(
        cheap_hash(PASSWORD), b"s" * 32, joins_per_minute=600, log_ins_per_minute=100
    )
    return create_app(config, str(folder / "study.db"), settings)


@pytest.fixture(scope="session")
def config():
    return study_config()


@pytest.fixture(scope="session")
def server(tmp_path_factory, config):
    """A short study: two maps, two robots, two steps each; the default palette."""
    with serving(study_app(tmp_path_factory.mktemp("safe"), config)) as address:
        yield address


@pytest.fixture(scope="session")
def paper_server(tmp_path_factory):
    """The same with the paper's palette, numbers in the cells and hints."""
    config = study_config(palette="paper", numbers=True, hint=True)
    with serving(study_app(tmp_path_factory.mktemp("paper"), config)) as address:
        yield address


@pytest.fixture(scope="session")
def play_server():
    with serving(create_play_app(study_config(steps=4))) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


# Pauses for the reader are cut to a tenth to keep the tests quick; what is sent and shown stays the
# same.
HURRY = """{
  const wait = window.setTimeout;
  window.setTimeout = (work, pause, ...rest) =>
    wait(work, pause <= 1500 ? pause / 10 : pause, ...rest);
}"""


@pytest.fixture
def pace():
    """Overridden with "real" in tests where timing matters."""
    return "hurried"


@pytest.fixture
def context(browser, pace):
    """The browser of a new person, at the size that the study is designed for."""
    with contextlib.closing(browser.new_context(viewport={"width": 1280, "height": 720})) as one:
        one.set_default_timeout(15_000)
        if pace == "hurried":
            one.add_init_script(HURRY)
        one.troubles = []
        one.on("page", lambda page: watch(page, one.troubles))
        yield one
        assert one.troubles == []


@pytest.fixture
def page(context):
    return context.new_page()


EXPECTED = (
    "status of 401",
    "status of 503",
    "status of 404",
    "status of 409",
    "ERR_INTERNET_DISCONNECTED",
    "ERR_FAILED",
)


def watch(page, troubles):
    """Record what no page may do: fail in a script, violate the content policy, or contact another
    host.
    """
    page.on("pageerror", lambda error: troubles.append(f"script: {error}"))
    page.on(
        "console",
        lambda line: (
            troubles.append(f"console: {line.text}")
            if line.type in ("error", "warning") and not any(part in line.text for part in EXPECTED)
            else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("http://127.0.0.1:", "data:"))
            else troubles.append(f"foreign: {request.url}")
        ),
    )


class Person:
    """A person at the study's page. With ``keys`` they use only the keyboard."""

    def __init__(self, page, address, config, *, keys=False):
        self.page, self.address, self.config, self.keys = page, address, config, keys
        self.seen = []

    def press(self, name):
        """Press the button of that name."""
        button = self.page.get_by_role("button", name=name, exact=True)
        if not self.keys:
            button.click()
            return
        for _ in range(40):
            if button.evaluate("button => button === document.activeElement"):
                break
            self.page.keyboard.press("Tab")
        else:
            raise AssertionError(f"the keyboard does not reach {name!r}")
        self.page.keyboard.press("Enter")

    def open(self, query="?id=somebody"):
        self.page.goto(self.address + "/" + query)
        self.heading("Do you want to take part?")

    def heading(self, text):
        playwright_api.expect(self.page.get_by_role("heading", level=1, name=text)).to_be_visible()
        self.seen.append(text)

    def consent(self):
        self.press("I agree to take part")
        self.page.locator(".kicker").wait_for()

    def read(self):
        for number in range(2, len(self.config.instructions) + 1):
            self.press("Next")
            self.page.get_by_text(f"Instructions, page {number} of").wait_for()
        self.press("Continue to the questions")
        self.heading("A few questions first")

    def answer(self, shift=0):
        """Answer all questions; ``shift`` makes the answers wrong."""
        for q, question in enumerate(self.config.check):
            wanted = (question.answer + shift) % len(question.options)
            radio = self.page.locator(f"input[name=question-{q}]")
            if self.keys:
                for _ in range(40):
                    if self.page.evaluate("document.activeElement.name") == f"question-{q}":
                        break
                    self.page.keyboard.press("Tab")
                self.page.keyboard.press("Space")
                while not radio.nth(wanted).is_checked():
                    self.page.keyboard.press("ArrowDown")
            else:
                radio.nth(wanted).check()
        self.press("Send my answers")

    def to_teaching(self, name):
        """Go to the first step of the practice; everything before is done without the page."""
        api = Api(self.page.context, self.address, self.config)
        api.join({"id": name})
        api.to_check()
        api.check()
        self.page.goto(f"{self.address}/?id={name}")
        self.heading("First, a practice round")
        self.press("Start")
        self.at_step(1)

    def at_step(self, number):
        self.page.locator(".counter", has_text=f"Step {number} of").wait_for()
        self.page.locator(".confirm", has_text="Show this arrow").wait_for()

    @property
    def options(self):
        return self.page.get_by_role("option")

    def pick(self, nth=0):
        if not self.keys:
            self.options.nth(nth).click()
            return
        self.page.wait_for_function("document.activeElement.getAttribute('role') === 'option'")
        self.page.keyboard.press("Home")
        for _ in range(nth):
            self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("Space")

    def confirm(self):
        if self.keys:
            self.page.keyboard.press("Enter")
        else:
            self.page.get_by_role("button", name="Show this arrow").click()

    def teach(self, nth=0):
        """One whole step; returns when the next thing is there."""
        before = self.page.locator(".round-head").inner_text()
        self.pick(nth)
        self.confirm()
        self.page.wait_for_function(
            "before => document.querySelector('.round-head')?.innerText !== before", arg=before
        )


@pytest.fixture
def person(page, server, config):
    return Person(page, server, config)


@pytest.fixture
def typist(page, server, config):
    return Person(page, server, config, keys=True)


def log_in(context, address):
    """The researcher's session in this browser, by the interface; returns the CSRF token."""
    answer = context.request.post(f"{address}/api/admin/login", data={"password": PASSWORD})
    assert answer.ok
    return answer.json()["csrf"]


def as_researcher(browser, address, path, body):
    """Post to the researcher's interface; returns the answer."""
    with contextlib.closing(browser.new_context()) as context:
        headers = {"X-CSRF-Token": log_in(context, address)}
        answer = context.request.post(f"{address}/api/admin/{path}", data=body, headers=headers)
        assert answer.ok, answer.text()
        return answer.json()


def stored_steps(browser, address, mode="live"):
    """The rows of the step table, as the researcher downloads them."""
    with contextlib.closing(browser.new_context()) as context:
        log_in(context, address)
        answer = context.request.get(f"{address}/api/admin/export/steps.csv?mode={mode}")
        assert answer.ok
        return list(csv.DictReader(io.StringIO(answer.text())))


def overview(browser, address, mode="live"):
    with contextlib.closing(browser.new_context()) as context:
        log_in(context, address)
        return context.request.get(f"{address}/api/admin/overview?mode={mode}").json()


class Api:
    """Moves the person of a browser forward without the page."""

    def __init__(self, context, address, config):
        self.context, self.address, self.config = context, address, config
        self.state = None

    def post(self, path, body):
        headers = {"X-CSRF-Token": self.state["csrf"]} if self.state else {}
        answer = self.context.request.post(self.address + path, data=body, headers=headers)
        assert answer.ok, answer.text()
        self.state = answer.json()
        return self.state

    def join(self, ids=None, mode="live"):
        return self.post("/api/join", {"ids": ids or {}, "resume": None, "mode": mode})

    def to_check(self):
        self.post("/api/consent", {"accepted": True, "version": self.config.consent.version})
        return self.post("/api/instructions", {})

    def check(self):
        answers = [question.answer for question in self.config.check]
        return self.post(
            "/api/check", {"answers": answers, "tries_left": self.state["check"]["tries_left"]}
        )

    def step(self, choice=0):
        scene = self.state["scene"]
        body = {"round": scene["round"], "step": scene["step"], "choice": choice, "timing": {}}
        return self.post("/api/steps", body)

    def teach_all(self):
        while self.state["stage"] in ("warm_up", "teach"):
            self.step()
        return self.state


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core: from ITAL_AXE, or where npm put it."""
    named = os.environ.get("ITAL_AXE")
    path = (
        Path(named)
        if named
        else ROOT / "build" / "node" / "node_modules" / "axe-core" / "axe.min.js"
    )
    if not path.is_file():
        pytest.skip(
            "axe-core is not there: npm install --prefix build/node axe-core, "
            "or set ITAL_AXE to axe.min.js"
        )
    return path.read_text(encoding="utf-8")
