import contextlib

import pytest
from playwright.sync_api import expect

from ital_study.server import _app
from ital_study.store import open_store, researchers
from tests.browser.conftest import (
    PASSWORD,
    Api,
    Person,
    as_researcher,
    log_in,
    serving,
    study_app,
    study_config,
)
from tests.server.people import cheap_hash


@pytest.fixture(scope="module")
def server(tmp_path_factory, config):
    """A separate study, in which nobody else takes part."""
    with serving(study_app(tmp_path_factory.mktemp("dashboard"), config)) as address:
        yield address


@pytest.fixture(scope="module")
def people(browser, server, config):
    """Two who finished, one in the middle, one who declined; and one preview."""
    for name in ("first", "second", "third", "fourth"):
        with contextlib.closing(browser.new_context()) as context:
            api = Api(context, server, config)
            api.join({"id": name})
            if name == "fourth":
                api.post("/api/consent", {"accepted": False, "version": config.consent.version})
                continue
            api.to_check()
            api.check()
            if name == "third":
                api.step()
                continue
            api.teach_all()
            api.post("/api/comments", {"text": "fine"})
    with contextlib.closing(browser.new_context()) as context:
        log_in(context, server)
        Api(context, server, config).join(mode="preview")
    return server


def tile(page, text):
    return page.locator(".tile", has_text=text).locator(".tile-value")


def enter(page, address):
    page.goto(address + "/dashboard")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.locator(".tiles").wait_for()


def test_log_in_and_out(page, server):
    page.goto(server + "/dashboard")
    page.get_by_label("Password").fill("not the password")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="password")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Participants", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Participants", exact=True)).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Password")).to_be_visible()


def test_overview(page, people, config):
    enter(page, people)
    expect(tile(page, "joined")).to_have_text("3")  # who declined has not joined
    expect(tile(page, "finished")).to_have_text("2")
    expect(tile(page, "usable")).to_have_text("2")
    expect(tile(page, "declined")).to_have_text("1")
    expect(page.locator(".people tbody tr")).to_have_count(4)
    expect(page.get_by_text("Hidden until all places are taken")).to_be_visible()
    expect(page.locator(".curves .line")).to_have_count(0)
    page.get_by_role("button", name="Show them now").click()
    page.get_by_role("button", name="Show the curves").click()
    expect(page.locator(".curves .line.aware")).to_have_count(len(config.maps))
    expect(page.locator(".curves .line.naive")).to_have_count(len(config.maps))
    page.get_by_label("Show").select_option("finished")
    expect(page.locator(".people tbody tr")).to_have_count(2)


def test_a_role_shows_only_what_it_may_do(page, tmp_path, config):
    with serving(study_app(tmp_path, config)) as address:
        with open_store(str(tmp_path / "study.db")) as store:
            hashed = cheap_hash("a password of hers")
            store.write(lambda connection: researchers.add(connection, "sally", "see", hashed))
        Api(page.context, address, config).join({"id": "somebody"})
        page.goto(address + "/dashboard")
        page.get_by_label("Your name").fill("sally")
        page.get_by_label("Password", exact=True).fill("a password of hers")
        page.keyboard.press("Enter")
        expect(page.locator(".people tbody tr")).to_have_count(1)
        expect(page.locator(".dash-tools")).to_contain_text("sally")
        for name in ("Pause intake", "Look up", "Show them now"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        expect(page.locator(".row-tools button:visible")).to_have_count(0)
        expect(page.get_by_role("link", name="Steps (CSV)")).to_be_visible()
        expect(page.get_by_role("link", name="Payments (CSV)")).to_have_count(0)


def test_other_modes_are_labelled(page, people):
    enter(page, people)
    page.get_by_role("button", name="Preview (1)").click()
    expect(page.locator(".mode-note")).to_have_text("Previews by researchers. They never count.")
    expect(page.locator(".people tbody tr")).to_have_count(1)
    expect(page.locator(".people .badge").first).to_have_text("Preview")
    expect(page.get_by_role("link", name="Steps (CSV)")).to_have_attribute(
        "href", "api/admin/export/steps.csv?mode=preview"
    )
    page.get_by_role("button", name="Simulated (0)").click()
    expect(page.locator(".mode-note")).to_contain_text("not people")


def test_overview_is_live(page, browser, people, config):
    enter(page, people)
    row = page.locator(".people tbody tr", has_text="1 / 10")
    expect(row).to_have_count(1)
    with contextlib.closing(browser.new_context()) as context:
        api = Api(context, people, config)
        api.join({"id": "third"})
        api.step()
    expect(page.locator(".people tbody tr", has_text="2 / 10")).to_have_count(1)


def test_pause(page, context, browser, people, config):
    enter(page, people)
    page.get_by_role("button", name="Pause intake").click()
    expect(page.locator(".badge.paused")).to_be_visible()
    with contextlib.closing(browser.new_context()) as other:
        assert Api(other, people, config).join({"id": "late"})["stage"] == "closed"
        assert Api(other, people, config).join({"id": "third"})["stage"] in ("warm_up", "teach")
    page.get_by_role("button", name="Resume intake").click()
    expect(page.locator(".badge.running")).to_be_visible()
    expect(page.locator(".audit tbody tr")).not_to_have_count(0)


def test_release_and_delete_ask_first(page, browser, people, config):
    with contextlib.closing(browser.new_context()) as context:
        api = Api(context, people, config)
        api.join({"id": "to-be-deleted"})
        api.to_check()
        api.check()
    enter(page, people)
    rows = page.locator(".people tbody tr")
    before = rows.count()
    number = rows.first.locator("th").inner_text()
    page.get_by_role("button", name=f"Release participant {number}").click()
    page.get_by_role("button", name="Release the slot").click()
    expect(rows.first).to_contain_text("released")
    page.get_by_role("button", name=f"Delete participant {number}").click()
    go = page.get_by_role("button", name="Delete for good")
    expect(go).to_be_disabled()
    page.get_by_label(f"Type {number} to confirm").fill("999")
    expect(go).to_be_disabled()
    page.get_by_role("button", name="Cancel").click()
    expect(rows).to_have_count(before)
    page.get_by_role("button", name=f"Delete participant {number}").click()
    page.get_by_label(f"Type {number} to confirm").fill(number)
    go.click()
    expect(page.get_by_text(f"Participant {number} has been deleted.")).to_be_visible()
    expect(rows).to_have_count(before - 1)
    expect(page.locator(".audit tbody tr").first).to_contain_text(number)


def test_download(page, people):
    enter(page, people)
    with page.expect_download() as started:
        page.get_by_role("link", name="Steps (CSV)").click()
    lines = started.value.path().read_text().splitlines()
    assert lines[0].startswith("participant,mode,")
    assert len(lines) == 1 + 2 * 8


def test_preview_runs_the_study_with_a_label(page, people, config):
    enter(page, people)
    page.goto(people + "/preview")
    person = Person(page, people, config)
    person.press("Start")
    person.heading("Do you want to take part?")
    expect(page.locator("#mode")).to_have_text("Preview – nothing here counts")


def test_session_over(page, context, people):
    enter(page, people)
    context.clear_cookies()
    page.get_by_role("button", name="Pause intake").click()
    expect(page.get_by_text("Your session has ended")).to_be_visible()


def test_a_full_disk_is_shown_until_a_write_succeeds(page, tmp_path, config, monkeypatch):
    monkeypatch.setattr(_app, "PROBE_EVERY", 1e6)  # the test tries again itself
    app = study_app(tmp_path, config)
    with serving(app) as address:
        enter(page, address)
        expect(page.locator("#storage")).to_be_hidden()
        app.state.ital.store.condition.failed(OSError(28, "No space left on device"))
        expect(page.locator("#storage")).to_contain_text(
            "Nothing can be stored: the disk is full, since "
        )
        app.state.ital.store.probe()
        expect(page.locator("#storage")).to_be_hidden()


def test_three_robots(page, browser, tmp_path):
    """Balance, curves and letters of a study with the third robot."""
    three = study_config(adaptive=True)
    with serving(study_app(tmp_path, three)) as address:
        for name in ("first", "second"):
            with contextlib.closing(browser.new_context()) as context:
                api = Api(context, address, three)
                api.join({"id": name})
                api.to_check()
                api.check()
                api.teach_all()
        as_researcher(browser, address, "unblind", {})
        enter(page, address)
        expect(page.locator(".balance thead th")).to_have_text(
            ["Map", "naive first", "aware first", "adaptive first"]
        )
        expect(page.locator(".balance .share.adaptive")).to_have_count(2)
        expect(page.locator(".line-key li")).to_have_text(["naive", "teacher-aware", "adaptive"])
        for kind in three.learners:
            expect(page.locator(f".curves .line.{kind}")).to_have_count(2)
        expect(
            page.get_by_role("columnheader", name="Robot 1 (N naive, A aware, D adaptive)")
        ).to_be_visible()
        expect(page.locator(".people tbody tr", has_text="14 / 14")).to_have_count(2)
