"""Participants and researchers, as far as a server can tell."""

import contextlib
import dataclasses
import functools
import json
import os
import re

import sqlalchemy as sa
from argon2 import PasswordHasher

import ital_study as study
from ital_study.config import load
from ital_study.config.texts import PLACEHOLDER
from ital_study.server import ServerSettings
from ital_study.store import open_store, operations, tables
from tests.questions import ANSWERS, unasked

PASSWORD = "a password for tests"
SIMULATION_KEY = "a simulation key for tests"
# What the server promises to browsers and proxies; databases and pages of older versions rely on
# it.
PARTICIPANT_COOKIE = "ital_participant"
RESEARCHER_COOKIE = "ital_researcher"
LARGEST_BODY = 64 * 1024
SECRET = b"a secret for tests, 32 characters"


@contextlib.contextmanager
def own_environment(folder, monkeypatch):
    """Work in a folder, without the settings of any study; the environment is restored."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("ITAL_STUDY"):
            del os.environ[name]
    monkeypatch.chdir(folder)
    yield
    os.environ.clear()
    os.environ.update(before)


@functools.cache
def settings(**changes):
    return dataclasses.replace(_settings(), **changes)


def cheap_hash(password):
    """Argon2 with parameters for tests only: a hash says how much work its check takes."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(password)


@functools.cache
def _settings():
    return ServerSettings(
        cheap_hash(PASSWORD),
        SECRET,
        SIMULATION_KEY,
        joins_per_minute=10_000,
        log_ins_per_minute=100,
    )


def ready(config):
    """The study with its placeholders filled in, so that it may be served to live participants."""

    def fill(value):
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        return PLACEHOLDER.sub("FILLED-IN", value) if isinstance(value, str) else value

    return load.config_of(fill(config.as_dict()))


@functools.cache
def tiny(**changes):
    """A study of two maps, three steps each, after a warm-up of two; no questions."""
    base = unasked(ready(study.load_config("short")))
    own = {
        "steps": 3,
        "warm_up_steps": 2,
        "consent": dataclasses.replace(base.consent, version="1"),
    }
    return dataclasses.replace(base, **{**own, **changes})


def words(text):
    """The words of a Markdown text, or of the elements that a page gets of it."""
    if isinstance(text, str):
        return re.findall(r"\w+", text)
    found = []
    for element in text:
        found += words(element if isinstance(element, str) else element["children"])
    return found


def forge(url, *forged):
    """Store events as an older version of the server would have.

    Each is a number, a kind, a source, and any text as the data.
    """
    p, e = tables.participants, tables.events

    def job(connection):
        for number, kind, source, data in forged:
            of = p.c.number == number
            count = connection.execute(sa.select(p.c.events).where(of)).scalar_one()
            row = {
                "participant": number,
                "number": count,
                "kind": kind,
                "source": source,
                "at": operations.now(),
            }
            connection.execute(e.insert().values(row | {"data": data}))
            connection.execute(p.update().where(of).values(events=count + 1))

    with open_store(url) as store:
        store.write(job)


class Refusal(Exception):
    def __init__(self, answer):
        super().__init__(f"{answer.status_code}: {answer.text[:300]}")
        self.status, self.body = answer.status_code, answer.json()
        self.code = self.body["code"]


class Person:
    """A participant at a browser: keeps cookies and the last state."""

    def __init__(self, client, config):
        self.client, self.config, self.state, self.cookies = client, config, {}, {}

    def request(self, method, path, body=None, **headers):
        self.client.cookies.clear()
        own = (
            {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
            if self.cookies
            else {}
        )
        content = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        answer = self.client.request(
            method, path, content=content, headers={**kind, **own, **headers}
        )
        for name, value in answer.cookies.items():
            self.cookies[name] = value
        self.client.cookies.clear()
        return answer

    def post(self, path, body, **headers):
        token = {"X-CSRF-Token": self.state["csrf"]} if self.state.get("csrf") else {}
        return self.request("POST", path, body, **{**token, **headers})

    def do(self, path, body):
        answer = self.post(path, body)
        if answer.status_code != 200:
            raise Refusal(answer)
        self.state = answer.json()
        return self.state

    def look(self):
        answer = self.request("GET", "/api/state")
        if answer.status_code != 200:
            raise Refusal(answer)
        self.state = answer.json()
        return self.state

    def join(self, mode="live", **body):
        answer = self.request("POST", "/api/join", {"mode": mode, **body})
        if answer.status_code != 200:
            raise Refusal(answer)
        self.state = answer.json()
        return self

    def simulate(self, teacher="random"):
        return self.join("simulated", key=SIMULATION_KEY, teacher=teacher)

    def consent(self):
        self.do("/api/consent", {"accepted": True, "version": self.config.consent.version})
        return self

    def read(self):
        self.do("/api/instructions", {})
        return self

    def answer(self, right=True):
        answers = [question.answer for question in self.config.check]
        if not right:
            answers[0] = (answers[0] + 1) % len(self.config.check[0].options)
        self.do("/api/check", {"answers": answers, "tries_left": self.state["check"]["tries_left"]})
        return self

    def begin(self):
        return self.consent().read().answer()

    def step_body(self, choice=None, **timing):
        scene = self.state["scene"]
        choice = (
            (3 * scene["step"] + scene["map"]) % len(scene["arrows"]) if choice is None else choice
        )
        return {"round": scene["round"], "step": scene["step"], "choice": choice, "timing": timing}

    def step(self, choice=None, **timing):
        return self.do("/api/steps", self.step_body(choice, **timing))

    def page_body(self, answers=None, **more):
        asked = self.state["questions"]
        answers = ANSWERS[asked["page"]] if answers is None else answers
        return {"page": asked["page"], "place": asked["place"], "answers": answers, **more}

    def reply(self, answers=None, **more):
        """Answer the page of questions."""
        return self.do("/api/answers", self.page_body(answers, **more))

    def through(self, most=10_000):
        """Take steps and answer questions, up to the comments."""
        for _ in range(most):
            if self.state["stage"] not in ("questions", "warm_up", "teach"):
                break
            self.reply() if self.state["stage"] == "questions" else self.step()
        return self

    def teach(self, most=10_000):
        for _ in range(most):
            if self.state["stage"] not in ("warm_up", "teach"):
                break
            self.step()
        return self

    def finish(self):
        self.teach().do("/api/comments", {"text": "It was fun."})
        return self


class Researcher(Person):
    """Somebody who knows the password."""

    def log_in(self, password=PASSWORD, name=""):
        body = {"password": password, "name": name}
        self.state = {"csrf": self.request("POST", "/api/admin/login", body).json()["csrf"]}
        return self

    def get(self, path):
        return self.request("GET", f"/api/admin/{path}")

    def overview(self, mode="simulated"):
        return self.get(f"overview?mode={mode}").json()
