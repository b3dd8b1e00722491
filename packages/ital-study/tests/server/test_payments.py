"""The payment list: identity, ending, code, times and amount of everybody whose part has ended."""

import csv
import dataclasses
import io

import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.config.payment import ENDINGS, Payment
from ital_study.server import payment_list
from ital_study.store import exclusions, open_store
from tests.server.people import SECRET, Person, Researcher, tiny
from tests.server.test_links import ids
from tests.server.test_panel import ENDS, SHORT
from tests.typed import ital

PAID = Payment("EUR", finished=12.0, failed_check=1.5, left=3.0, excluded=2.0)
CONFIG = tiny(completion=dataclasses.replace(ENDS, per_person=True), payment=PAID)


def everybody(url, served):
    """Somebody for every ending, one who has not ended and one who was not paid for finishing."""
    with served(url, CONFIG) as client:
        people = {
            name: Person(client, CONFIG).join(ids={"id": name})
            for name in ("finished", "declined", "failed_check", "left", "excluded", "deleted")
        }
        people["finished"].begin().finish()
        people["declined"].do("/api/consent", {"accepted": False, "version": "1"})
        people["failed_check"].consent().read().answer(right=False).answer(right=False)
        people["left"].begin().teach(1).do("/api/leave", {"keep": True})
        people["excluded"].begin().teach(1)
        people["deleted"].begin().do("/api/leave", {"keep": False})
        Person(client, CONFIG).join(ids={"id": "=open"}).begin()
        Person(client, CONFIG).simulate().begin().finish()
    with open_store(url) as store:
        store.write(lambda connection: exclusions.exclude(connection, 5, "=too fast"))
    return people


def test_everybody_whose_part_has_ended_is_listed(url, served):
    people = everybody(url, served)
    with open_store(url) as store:
        listed = payment_list(store, SECRET, identities=list(people))
        nameless = payment_list(store, SECRET)
        robots = payment_list(store, SECRET, "simulated")
    assert [row.ending for row in listed.rows] == list(people)
    assert [row.amount for row in listed.rows] == ["12.00", "", "1.50", "3.00", "2.00", ""]
    assert {row.currency for row in listed.rows if row.amount} == {"EUR"}
    by_ending = {row.ending: row for row in listed.rows}
    assert {end: row.identity for end, row in by_ending.items()} == {
        end: "" if end == "declined" else end for end in people
    }
    for end in ("finished", "failed_check"):
        assert by_ending[end].code == people[end].state["completion"]["code"]
    assert by_ending["declined"].code == "NO"
    assert by_ending["left"].code == by_ending["deleted"].code == ""
    assert float(by_ending["finished"].minutes) >= 0
    assert by_ending["finished"].began_at < by_ending["finished"].ended_at
    assert by_ending["excluded"].excluded == "=too fast"
    assert (listed.unfinished, listed.unknown, nameless.unknown) == (1, 0, 4)
    assert [row._replace(identity="") for row in listed.rows] == nameless.rows
    assert ([row.participant for row in robots.rows], robots.unfinished) == ([8], 0)
    assert "'=too fast" in listed.csv()
    assert ",=too fast" in listed.csv(raw=True)
    rows = list(csv.DictReader(io.StringIO(listed.csv())))
    assert [row["participant"] for row in rows] == ["1", "2", "3", "4", "5", "6"]


def test_signed_links_name_people_by_their_number(url, served):
    config = tiny(links="signed", payment=PAID)
    links = ids(4, 40)
    with served(url, config) as client:
        for link in links:
            Person(client, config).join(ids=link).begin().finish()
        listed = Researcher(client, config).log_in().get("payments.csv")
    assert listed.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(listed.text)))
    assert [(row["link"], row["amount"]) for row in rows] == [("4", "12.00"), ("40", "12.00")]


def test_amounts_may_be_added_later(sqlite_url, served):
    with served(sqlite_url) as client:
        Person(client, tiny()).join(ids={"id": "me"}).begin().finish()
    with open_store(sqlite_url) as store:
        assert payment_list(store, SECRET).rows[0].amount == ""
    with served(sqlite_url, CONFIG), open_store(sqlite_url) as store:
        assert payment_list(store, SECRET).rows[0].amount == "12.00"


def test_another_key_lists_nobody(sqlite_url, served):
    with served(sqlite_url, CONFIG):
        pass
    with open_store(sqlite_url) as store:
        with pytest.raises(InputError, match="was served with another key"):
            payment_list(store, b"another secret of 32 characters!")
        with pytest.raises(InputError, match="the mode must be one of"):
            payment_list(store, SECRET, "alive")


def test_the_section_of_the_configuration():
    plain = study.parse_config(SHORT)
    text = "".join(f"{ending} = {number}\n" for number, ending in enumerate(ENDINGS))
    paid = study.parse_config(f'{SHORT}\n[payment]\ncurrency = "EUR"\n{text}')
    assert study.parse_config(paid.to_toml()) == paid
    assert [paid.payment.amount(ending) for ending in ENDINGS] == list(range(7))
    assert study.parse_config(f"{SHORT}\n[payment]\n").hash == plain.hash
    for line, said in (
        ("finished = -1", "payment.finished must be a number at least 0"),
        ('finished = "12 EUR"', "payment.finished must be a number"),
        ("all = 1", "unknown key payment.all"),
        ('currency = ""', "payment.currency must be a text"),
    ):
        with pytest.raises(InputError) as refused:
            study.parse_config(f"{SHORT}\n[payment]\n{line}\n")
        assert said in str(refused.value)


@pytest.fixture
def typed(capsys, monkeypatch, tmp_path, sqlite_url, served):
    """``ital study payments``, typed beside a database of everybody."""
    everybody(sqlite_url, served)
    monkeypatch.setenv("ITAL_STUDY_SECRET", SECRET.decode())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.txt").write_text("finished\nleft\nnobody\n")
    return lambda *words: ital(capsys, "study", "payments", *words)


def test_payments_on_the_command_line(typed, tmp_path):
    status, out, err = typed(tmp_path, "--ids", "ids.txt")
    assert status == 0
    assert err.splitlines() == [
        "1 more have not ended their part",
        "of 2 only a hash of the ID is stored: name the IDs with --ids",
    ]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["identity"]: row["amount"] for row in rows if row["identity"]} == {
        "finished": "12.00",
        "left": "3.00",
    }
    status, out, err = typed(tmp_path, "--out", "list.csv")
    assert (status, out, err.splitlines()[0]) == (0, "", "list.csv: 6 people")
    assert (tmp_path / "list.csv").stat().st_mode & 0o777 == 0o600
    for words, said in (
        (["--out", "list.csv"], "list.csv exists"),
        (["--mode", "alive"], "the mode must be one of"),
        (["--ids", "nowhere"], "cannot read the IDs"),
    ):
        status, out, err = typed(tmp_path, *words)
        assert (status, out, said in err, err.count("\n")) == (2, "", True, 1), err
