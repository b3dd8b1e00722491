"""The study under a path such as /teach/ of a host with other pages."""

from pathlib import Path

import pytest

import ital_study
from ital.errors import InputError
from ital_study.server import from_environment
from tests.server.people import Person, Researcher, settings, tiny

PAGES = Path(ital_study.__file__).parent / "pages"
ORIGIN = "https://lab.example.org/teach"


@pytest.fixture
def under_a_path(sqlite_url, served):
    with served(sqlite_url, origin=ORIGIN) as client:
        root = client.base_url
        client.base_url = f"{root}/teach"
        client.root = str(root).rstrip("/")
        yield client


def test_everything_is_under_the_path(under_a_path):
    person = Person(under_a_path, tiny()).join(ids={"id": "one"}).begin().finish()
    assert person.state["stage"] == "finished"
    researcher = Researcher(under_a_path, tiny()).log_in()
    assert researcher.get("export/steps.csv").text.count("\n") == 13
    assert under_a_path.get("/static/base.css").status_code == 200
    assert under_a_path.get("/api/nothing").json()["code"] == "not_found"
    assert under_a_path.get("/nothing").text.startswith("<!doctype html>")


def test_cookies_belong_to_the_path(under_a_path):
    """Other pages of the host are not sent them."""
    joined = Person(under_a_path, tiny()).request(
        "POST", "/api/join", {}, **{"X-Forwarded-Proto": "https"}
    )
    assert {"Path=/teach/", "Secure", "HttpOnly", "SameSite=strict"} <= set(
        joined.headers["set-cookie"].split("; ")
    )
    assert "strict-transport-security" not in joined.headers  # the host decides this


def test_requests_from_other_sites_are_refused(under_a_path):
    statuses = {
        origin: Person(under_a_path, tiny())
        .request("POST", "/api/join", {}, Origin=origin)
        .status_code
        for origin in ("https://lab.example.org", "https://evil.test", ORIGIN)
    }
    assert statuses == {"https://lab.example.org": 200, "https://evil.test": 403, ORIGIN: 403}


def test_redirects_stay_under_the_path(under_a_path):
    moved = under_a_path.get(f"{under_a_path.root}/teach?id=one")
    # For good, and with its method.
    assert (moved.status_code, moved.headers["location"]) == (308, "/teach/?id=one")
    assert under_a_path.get(f"{under_a_path.root}/teach").headers["location"] == "/teach/"
    assert under_a_path.get("/dashboard/").headers["location"].endswith("/teach/dashboard")
    assert under_a_path.get("/preview").headers["location"] == "dashboard"


def test_a_proxy_that_removes_the_path_is_told(under_a_path):
    for path in ("/", "/dashboard", "/teaching/", "/api/state"):
        answer = under_a_path.get(under_a_path.root + path)
        assert answer.status_code == 404
        assert f"The study is at {ORIGIN}/." in answer.text
        assert "it must pass the path unchanged" in answer.text


def test_no_page_and_no_script_has_an_address_from_the_root():
    files = [*PAGES.glob("*.html"), *PAGES.glob("static/*.js"), *PAGES.glob("static/*.css")]
    assert len(files) > 10
    for file in files:
        text = file.read_text(encoding="utf-8")
        for quote in "\"'`(":
            for start in ("/api/", "/static/", "/dashboard", "/preview", "/?"):
                assert f"{quote}{start}" not in text.replace('endsWith("/preview")', ""), (
                    file.name,
                    start,
                )


@pytest.mark.parametrize(
    ("origin", "site", "prefix"),
    [
        (None, None, ""),
        ("https://study.example.org", "https://study.example.org", ""),
        ("https://study.example.org/", "https://study.example.org", ""),
        (ORIGIN, "https://lab.example.org", "/teach"),
        ("http://[::1]:8000/a/b/", "http://[::1]:8000", "/a/b"),
    ],
)
def test_the_origin_has_a_site_and_a_path(origin, site, prefix):
    assert (settings(origin=origin).site, settings(origin=origin).prefix) == (site, prefix)


@pytest.mark.parametrize(
    "origin", ["lab.example.org/teach", "https://a b", "https://x/y?z", "ftp://x", "https://x//y"]
)
def test_an_origin_that_is_no_address_is_refused(tmp_path, origin):
    environment = {"ITAL_STUDY_PASSWORD": "$argon2", "ITAL_STUDY_ORIGIN": origin}
    with pytest.raises(InputError, match="ITAL_STUDY_ORIGIN must be"):
        from_environment(tmp_path / "key", environment)
