"""The interface matches its description: whatever is sent, no answer is a server error."""

import contextlib

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from ital_study.server import create_play_app
from tests.server.conftest import running
from tests.server.people import (
    PARTICIPANT_COOKIE,
    RESEARCHER_COOKIE,
    Person,
    Researcher,
    tiny,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class Visitor:
    """A participant in the middle of the study, and a researcher; both log in again when their
    session ends.
    """

    def __init__(self, client, known):
        self.client, self.known = client, known
        self.participant, self.researcher = Person(client, tiny()), Researcher(client, tiny())

    def headers(self, path):
        """Cookie and token for a request; none for a stranger."""
        if not self.known or path in ("/api/join", "/api/admin/login"):
            return {}
        if path.startswith("/api/admin"):
            if self.researcher.get("overview").status_code == 401:
                self.researcher.log_in()
            return self._signed(self.researcher, RESEARCHER_COOKIE)
        if self.participant.request("GET", "/api/state").status_code == 401:
            self.participant.simulate().begin().teach(3)
        return self._signed(self.participant, PARTICIPANT_COOKIE)

    @staticmethod
    def _signed(somebody, name):
        return {
            "Cookie": f"{name}={somebody.cookies[name]}",
            "X-CSRF-Token": somebody.state["csrf"],
        }


def explore(client, known, examples):
    """Send requests that the description allows, and others; return the answers."""
    schema = schemathesis.openapi.from_dict(client.get("/api/openapi.json").json())
    visitor, base, answers = Visitor(client, known), str(client.base_url), []
    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    def look_at(operation, mode, session):
        @settings
        @hypothesis.given(operation.as_strategy(generation_mode=mode))
        def one(case):
            if known:  # otherwise headers are what the description says, or not
                case.headers, case.cookies = {}, {}
            answer = case.call(
                base_url=base, session=session, headers=visitor.headers(operation.path)
            )
            case.validate_response(answer, checks=CHECKS)
            answers.append((operation.label, answer.status_code))

        with contextlib.suppress(Unsatisfiable):  # nothing that could be sent would be wrong
            one()

    with requests.Session() as session:
        session.cookies.set_policy(_NoCookies())
        for found in schema.get_all_operations():
            for mode in GenerationMode:
                look_at(found.ok(), mode, session)
    return answers


class _NoCookies(requests.cookies.cookielib.DefaultCookiePolicy):
    """The visitor keeps cookies, not the session."""

    def set_ok(self, cookie, request):
        return False


@pytest.mark.parametrize("known", [False, True], ids=["stranger", "known"])
def test_no_answer_is_an_error_of_ours(sqlite_url, served, known):
    with served(sqlite_url, log_ins_per_minute=10**6) as client:
        answers = explore(client, known, examples=5)
        described = client.get("/api/openapi.json").json()["paths"].values()
    assert len({label for label, _ in answers}) == sum(map(len, described))
    assert {status for _, status in answers} >= ({200, 422} if known else {401, 422})


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True], ids=["stranger", "known"])
def test_no_answer_is_an_error_of_ours_however_long_one_tries(url, served, known):
    with served(url, log_ins_per_minute=10**6) as client:
        answers = explore(client, known, examples=100)
    print(f"\n{len(answers)} answers")
    assert len(answers) > 2500


def test_play_is_part_of_the_same_promise():
    with running(create_play_app(tiny())) as client:
        answers = explore(client, known=False, examples=20)
    assert {status for _, status in answers} >= {200, 422}


def test_the_description_names_every_route_and_no_play(sqlite_url, served):
    with served(sqlite_url) as client:
        paths = client.get("/api/openapi.json").json()["paths"]
        assert client.get("/play").status_code == 404
        assert client.post("/api/play/new", json={}).status_code == 404
    participant = {
        "join",
        "state",
        "words",
        "consent",
        "instructions",
        "check",
        "steps",
        "events",
        "comments",
        "leave",
    }
    participant |= {"answers", "attention", "language", "panel", "part"}
    researcher = {
        "login",
        "logout",
        "overview",
        "pause",
        "release",
        "delete",
        "audit",
        "exclude",
        "export/{file}",
    }
    researcher |= {"find", "payments.csv", "unblind"}
    assert set(paths) == {f"/api/{one}" for one in participant} | {
        f"/api/admin/{one}" for one in researcher
    }
