"""A study as a lab runs it, typed as in the documentation: frozen, with links, in two sessions."""

import contextlib
import csv
import io

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

import ital_study as study
from ital_study.cli import folder as _folder
from ital_study.config import load
from ital_study.server import ServerSettings, create_app, secret_of
from ital_study.store import open_store, operations
from ital_study.store.tables import participants
from tests.browser.conftest import HURRY, PASSWORD, Person, serving, watch
from tests.questions import unasked
from tests.server.people import cheap_hash, own_environment, ready
from tests.typed import ital

CHANGES = """
links = "signed"
map_order = "balanced"
intake = 3
"""
SECTIONS = """
[payment]
currency = "EUR"
finished = 12.0

[[parts]]
maps = ["A", "B"]

[[parts]]
maps = ["C", "D"]
after_days = 7
within_days = 2
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """The folder of a study of four maps, with short rounds."""
    with own_environment(tmp_path, monkeypatch):
        monkeypatch.setattr("ital_study.cli.serve._set_up_jax", lambda: None)
        _folder.create(tmp_path / "lab", "paper", origin="https://lab.example.org/teach")
        config = unasked(ready(study.load_config("paper")))
        short = {"steps": 2, "warm_up_steps": 1, "maps": list(config.as_dict()["maps"][:4])}
        text = load.config_of(config.as_dict() | short).to_toml()
        (tmp_path / "lab" / "study.toml").write_text(CHANGES + text + SECTIONS, encoding="utf-8")
        yield tmp_path / "lab"


def typed(capsys, *words):
    status, out, err = ital(capsys, "study", *words)
    assert status == 0, err
    return out


def teach(person):
    """Teach until the pause or the comments."""
    page = person.page
    while True:
        page.locator(
            ".interlude, [role=option], body[data-stage=waiting] h1, #comments"
        ).first.wait_for()
        if page.locator("body[data-stage=waiting], #comments").count():
            return
        if page.locator(".interlude").count():
            page.locator(".interlude .primary").click()
            continue
        before = page.locator(".round-head").inner_text()
        page.get_by_role("option").nth(1).click()
        page.locator(".confirm:enabled").click()
        page.wait_for_function(
            "before => document.querySelector('.round-head')?.innerText !== before", arg=before
        )


def wait_a_week(database):
    """Let the next part be open for everybody."""
    with open_store(database) as store:
        opened = participants.update().values(opens_at=operations.now() - 1000)
        store.write(lambda connection: connection.execute(opened))


# Labels of two steps need more room than the figure has.
@pytest.mark.filterwarnings("ignore:constrained_layout not applied")
def test_three_people_take_part_twice_and_are_paid(browser, lab, capsys):
    frozen = typed(capsys, "freeze", "lab", "--participants", 3)
    assert "3 participants" in frozen
    table = typed(capsys, "links", "lab", "--count", 3)
    links = [row["link"] for row in csv.DictReader(io.StringIO(table))]
    database = str(lab / "study.db")
    config = study.load_config(lab / "study.toml")
    settings = ServerSettings(
        cheap_hash(PASSWORD), secret_of(lab / "study.db.key"), joins_per_minute=600
    )
    with (
        serving(create_app(config, database, settings)) as address,
        contextlib.ExitStack() as windows,
    ):
        people = []
        for link in links:
            context = windows.enter_context(contextlib.closing(browser.new_context()))
            context.add_init_script(HURRY)
            troubles = []
            page = context.new_page()
            watch(page, troubles)
            person = Person(page, address, config)
            person.open(f"?{link.partition('?')[2]}")
            person.consent()
            person.read()
            person.answer()
            teach(person)
            person.heading("Part 1 of 2 is done")
            expect(page.locator("#resume-code")).not_to_be_empty()
            people.append((person, link, troubles))
        wait_a_week(database)
        for person, link, troubles in people:
            person.page.goto(f"{address}/?{link.partition('?')[2]}")
            person.heading("Part 2 of 2")
            person.press("Begin part 2")
            person.page.locator("body[data-stage=teach]").wait_for()
            teach(person)
            person.press("Finish")
            person.heading("You have finished the study")
            assert troubles == []
        stranger = Person(browser.new_page(), address, config)
        stranger.page.goto(f"{address}/?{links[0].partition('?')[2]}")
        stranger.heading("This link has been used already")
        stranger.page.close()
    rows = list(csv.DictReader(io.StringIO(typed(capsys, "payments", "lab"))))
    assert [(row["link"], row["ending"], row["amount"]) for row in rows] == [
        (str(number), "finished", "12.00") for number in (1, 2, 3)
    ]
    verified = typed(capsys, "verify", "lab")
    assert "51 steps replayed, 0 problems" in verified
    assert "signature good" in verified
    typed(capsys, "export", "lab", "--out", "data")
    with open_store(database) as store, store.reading() as connection:
        orders = connection.execute(sa.select(participants.c.order)).scalars().all()
    assert {order.partition("@")[2] for order in orders} == {"0", "1"}
    assert "Nothing was changed after that." in typed(capsys, "analyze", "data")
