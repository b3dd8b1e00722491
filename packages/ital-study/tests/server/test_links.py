"""Signed links: one person each; others get a page that says what to do."""

import csv
import io
import time
from urllib.parse import parse_qsl, urlsplit

import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.config.panel import Panel
from ital_study.server import signed_links
from tests.server.people import (
    SECRET,
    SIMULATION_KEY,
    Person,
    Refusal,
    Researcher,
    own_environment,
    ready,
    tiny,
)
from tests.server.test_access import POSTS, everything
from tests.typed import check_refused, ital

SIGNED = tiny(links="signed")
PANELED = tiny(links="signed", panel=Panel(identity=("who", "id"), required=True))
ADDRESS = "https://study.test"
SHORT = study.load_config("short").to_toml()


def ids(*numbers, config=SIGNED, names=None, expires_at=0):
    """What the page sends of links: their parameters."""
    people = [(number, names or "") for number in numbers]
    rows = signed_links(SECRET, config, ADDRESS, people, expires_at)
    return [dict(parse_qsl(urlsplit(row.link).query)) for row in rows]


def arrive(client, link, config=SIGNED, **more):
    return Person(client, config).join(ids=link, **more)


def told(person):
    return {name: person.state.get(name) for name in ("stage", "problem", "csrf")}


def refused(problem):
    return {"stage": "link", "problem": problem, "csrf": ""}


def test_a_link_is_for_one_person_and_brings_them_back(url, served):
    [first], [second] = ids(1), ids(2)
    with served(url, SIGNED) as client:
        one = arrive(client, first).begin().teach(1)
        other = arrive(client, second).begin()
        assert one.join(ids=first).state["progress"]["done"] == 1  # the same browser
        assert one.join().state["progress"]["done"] == 1  # without its link
        assert other.look()["progress"]["done"] == 0
        assert told(arrive(client, first)) == refused("used")
        elsewhere = Person(client, SIGNED).join(resume=one.state["resume_code"])
        assert elsewhere.step()["progress"]["done"] == 2
        assert elsewhere.join(ids=first).state["progress"]["done"] == 2
        one.finish()
        assert one.join(ids=first).state["stage"] == "finished"
        assert told(arrive(client, first)) == refused("used")
    assert len(everything(url)["participants"]) == 2


def test_who_only_opened_the_link_cannot_take_part_for_whoever_consented(url, served):
    [link] = ids(7)
    with served(url, SIGNED) as client:
        early = arrive(client, link)
        one = arrive(client, link)
        assert early.state["stage"] == one.state["stage"] == "consent"
        one.consent()
        body = {"accepted": True, "version": "1"}
        assert one.post("/api/consent", body).status_code == 200
        before = everything(url)
        answers = [early.request("GET", "/api/state")]
        answers += [early.post(f"/api/{path}", each) for path, each in POSTS.items()]
        assert {answer.status_code for answer in answers} == {401}
        assert everything(url) == before
        assert told(early.join(ids=link)) == refused("used")
        assert told(early.join()) == refused("used")
        assert one.read().answer().state["stage"] == "warm_up"


def test_without_a_valid_link_nobody_takes_part_and_nothing_is_stored(url, served):
    [link] = ids(3)
    [over] = ids(3, expires_at=int(time.time()) - 5)
    number, expires, signature = link["link"].split(".")
    bad = {
        "another number": f"4.{expires}.{signature}",
        "a longer life": f"{number}.{int(time.time()) + 10**6}.{signature}",
        "cut": link["link"][:-1],
        "another signature": f"{number}.{expires}.{'a' * 24}",
        "rubbish": "x",
        "empty": "",
        "many digits": f"{'9' * 99}.0.{signature}",
    }
    with served(url, SIGNED) as client:
        for what, token in bad.items():
            assert told(arrive(client, {"link": token})) == refused("forged"), what
        assert told(arrive(client, {})) == refused("missing")
        assert told(arrive(client, {"id": "anna"})) == refused("missing")
        assert told(arrive(client, link | {"id": "anna"})) == refused("forged")
        expired = arrive(client, over)
        assert told(expired) == refused("expired")
        assert expired.state["last_day"] == time.strftime("%Y-%m-%d", time.gmtime(time.time() - 5))
        with pytest.raises(Refusal) as unknown:
            arrive(client, link | {"other": "anna"})
        assert (unknown.value.status, unknown.value.code) == (422, "invalid")
        assert client.get("/api/panel").json() == {
            "identity": ["link", "PROLIFIC_PID", "id"],
            "required": True,
        }
    assert everything(url)["participants"] == []


def test_a_link_that_expires_lets_those_continue_who_have_begun(url, served, monkeypatch):
    now = time.time()
    [link] = ids(5, expires_at=int(now) + 60)
    with served(url, SIGNED) as client:
        begun = arrive(client, link).consent()
        visitor = arrive(client, ids(6, expires_at=int(now) + 60)[0])
        monkeypatch.setattr(time, "time", lambda: now + 120)
        assert begun.join(ids=link).state["stage"] == "instructions"
        assert told(visitor.join(ids=ids(6, expires_at=int(now) + 60)[0])) == refused("expired")
        assert told(arrive(client, link)) == refused("used")


def test_links_with_a_panel_are_signed_for_the_identity(url, served):
    [link] = ids(1, config=PANELED, names="anna")
    assert set(link) == {"who", "link"}
    with served(url, PANELED) as client:
        assert told(arrive(client, link | {"who": "bert"}, PANELED)) == refused("forged")
        assert told(arrive(client, {"link": link["link"]}, PANELED)) == refused("forged")
        assert told(arrive(client, {"who": "anna"}, PANELED)) == refused("missing")
        anna = arrive(client, link, PANELED).begin()
        assert anna.state["stage"] == "warm_up"
        [other] = ids(2, config=PANELED, names="anna")  # a second link for the same person
        assert told(arrive(client, other, PANELED)) == refused("used")
        researcher = Researcher(client, PANELED).log_in()
        pasted = f"{ADDRESS}/?who=anna&link={link['link']}"
        for who in ("anna", pasted):
            [found] = researcher.post("/api/admin/find", {"who": who}).json()["found"]
            assert (found["number"], found["matched"]) == (1, "identity")


def test_the_researcher_finds_people_by_their_link(url, served):
    [link] = ids(9)
    with served(url, SIGNED) as client:
        arrive(client, link).begin()
        researcher = Researcher(client, SIGNED).log_in()
        for who in (link["link"], f"{ADDRESS}/?link={link['link']}"):
            [found] = researcher.post("/api/admin/find", {"who": who}).json()["found"]
            assert found["matched"] == "identity"


def test_who_was_deleted_declined_or_locked_out(url, served):
    links = ids(1, 2)
    with served(url, SIGNED) as client:
        arrive(client, links[0]).consent().do("/api/leave", {"keep": False})
        assert arrive(client, links[0]).state["stage"] == "deleted"
        arrive(client, links[1]).do("/api/consent", {"accepted": False, "version": "1"})
        assert arrive(client, links[1]).state["stage"] == "consent"  # nothing is stored of a no


def test_researchers_and_programs_need_no_link(url, served):
    with served(url, SIGNED) as client:
        researcher = Researcher(client, SIGNED).log_in()
        assert researcher.join("pilot", ids={"link": "x"}).state["stage"] == "consent"
        assert researcher.join("preview").state["stage"] == "consent"
        robot = Person(client, SIGNED).join("simulated", key=SIMULATION_KEY)
        assert robot.begin().finish().state["stage"] == "finished"


def test_a_trial_needs_links_as_well(url, served):
    with served(url, SIGNED, trial=True) as client:
        assert told(arrive(client, {})) == refused("missing")
        assert arrive(client, ids(1)[0]).begin().state["mode"] == "trial"


def test_the_key_of_the_configuration():
    plain = study.parse_config(SHORT)
    assert study.parse_config(f'links = "open"\n{SHORT}').hash == plain.hash
    signed = study.parse_config(f'links = "signed"\n{SHORT}')
    assert signed.hash != plain.hash
    assert study.parse_config(signed.to_toml()) == signed
    for text, said in (
        (f'links = "some"\n{SHORT}', "links must be one of open, signed, not 'some'"),
        (f'links = "signed"\n{SHORT}\n[panel]\nidentity = ["link"]', "panel must not name link"),
    ):
        with pytest.raises(InputError) as refused_key:
            study.parse_config(text)
        assert said in str(refused_key.value)


# On the command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study with signed links, in the current folder."""
    with own_environment(tmp_path, monkeypatch):
        made = tmp_path / "lab"
        made.mkdir()
        config = ready(study.parse_config(f'links = "signed"\n{SHORT}'))
        (made / "study.toml").write_text(config.to_toml(), encoding="utf-8")
        (made / "server.env").write_text("ITAL_STUDY_ORIGIN=https://lab.test/teach\n")
        yield made


def test_links_on_the_command_line(folder, capsys, served):
    status, out, err = ital(capsys, "study", "links", "lab", "--count", 3, "--out", "links.csv")
    assert (status, out) == (0, "")
    assert err.startswith("links.csv: 3 links; ")
    file = folder.parent / "links.csv"
    assert file.stat().st_mode & 0o777 == 0o600
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    assert all(row["link"].startswith("https://lab.test/teach/?link=") for row in rows)
    again = ital(capsys, "study", "links", "lab", "--count", 3)
    assert again[1] == file.read_text()
    more = ital(
        capsys, "study", "links", "lab", "--count", 1, "--first", 3, "--until", "2999-12-31"
    )
    [row] = csv.DictReader(io.StringIO(more[1]))
    assert (row["number"], row["last_day"]) == ("3", "2999-12-31")
    (folder / "ids.txt").write_text("anna\n\nbert\n")
    named = ital(capsys, "study", "links", "lab", "--ids", folder / "ids.txt")
    assert [row["id"] for row in csv.DictReader(io.StringIO(named[1]))] == ["anna", "bert"]
    secret = (folder / "study.db.key").read_text().strip().encode()
    config = study.load_config(folder / "study.toml")
    with served(f"sqlite:///{folder / 'study.db'}", config, secret=secret) as client:
        link = dict(parse_qsl(urlsplit(rows[2]["link"]).query))
        assert arrive(client, link).state["stage"] == "consent"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give either --count N"),
        (["--count", 1, "--ids", "ids.txt"], "give either --count N"),
        (["--ids", "nowhere.txt"], "cannot read the IDs in nowhere.txt"),
        (["--ids", "twice.txt"], "'anna' occurs twice"),
        (["--ids", "empty.txt"], "it must name 1 to 100000 people, not 0"),
        (["--ids", "template.txt"], "does not match panel.pattern"),
        (["--count", 1, "--until", "soon"], "give a day such as 2030-12-31"),
        (["--count", 1, "--until", "2020-01-01"], "this day is over"),
        (["--count", 1, "--origin", "lab"], "must be an address"),
        (["--count", 1, "--out", "twice.txt"], "twice.txt exists"),
    ],
)
def test_links_that_cannot_be_made(folder, capsys, words, said):
    there = {"twice.txt": "anna\nanna\n", "empty.txt": "\n", "template.txt": "{{ID}}\n"}
    for name, text in there.items():
        (folder.parent / name).write_text(text)
    check_refused(capsys, folder.parent, ["study", "links", "lab", *words], said)
    assert not (folder / "study.db").exists()


def test_links_need_a_study_that_takes_them_and_its_address(folder, capsys):
    (folder / "server.env").unlink()
    command = ["study", "links", "lab", "--count", 1]
    check_refused(capsys, folder.parent, command, "set ITAL_STUDY_ORIGIN in lab/server.env")
    (folder / "study.toml").write_text(SHORT)
    check_refused(capsys, folder.parent, command, 'set links = "signed" there')
    (folder / "study.toml").unlink()
    check_refused(capsys, folder.parent, command, "holds no study")


def test_another_key_makes_no_links(folder, capsys):
    assert ital(capsys, "study", "links", "lab", "--count", 1)[0] == 0
    (folder / "study.db.key").write_text("x" * 40)
    command = ["study", "links", "lab", "--count", 1]
    check_refused(capsys, folder.parent, command, "was first served with another key")
