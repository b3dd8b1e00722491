"""Links of panels in the browser: refused identities, codes and the way back."""

import contextlib

import pytest
from playwright.sync_api import expect

from ital_study.config.panel import Panel
from ital_study.config.sections import Completion, EarlyEnd
from tests.browser.conftest import Api, Person, log_in, serving, study_app, study_config
from tests.browser.test_accessibility import Checker

BACK = "https://panel.test/back?cc={code}&who={PROLIFIC_PID}"


@pytest.fixture(scope="module")
def paneled(tmp_path_factory):
    config = study_config(
        panel=Panel(name="Prolific", required=True, pass_through=("SESSION_ID",)),
        completion=Completion(
            "DONE",
            BACK,
            declined=EarlyEnd("NO THANKS", BACK),
            failed_check=EarlyEnd("FAILED"),
            left=EarlyEnd("LEFT", "https://panel.test/left"),
        ),
    )
    with serving(study_app(tmp_path_factory.mktemp("panel"), config)) as address:
        yield Person(None, address, config)


@pytest.fixture
def visitor(paneled, page):
    return Person(page, paneled.address, paneled.config)


def returns_to(page):
    return page.get_by_role("link", name="Return to Prolific")


@pytest.mark.parametrize(
    "query", ["?PROLIFIC_PID={{%PROLIFIC_PID%}}&SESSION_ID=x", "?PROLIFIC_PID=", ""]
)
def test_a_link_without_an_identity_says_what_to_do(visitor, page, query):
    page.goto(visitor.address + "/" + query)
    visitor.heading("This link is not complete")
    expect(
        page.get_by_text("Please go back to Prolific and open the study from there")
    ).to_be_visible()
    expect(page.get_by_text("“PROLIFIC_PID” in the link is not filled in")).to_be_visible()
    expect(page.get_by_text("Nothing about you has been stored")).to_be_visible()
    assert page.context.cookies() == []


def test_the_end_has_a_code_and_a_button_back(browser, visitor, page):
    api = Api(page.context, visitor.address, visitor.config)
    api.join({"PROLIFIC_PID": "a+b/c"})
    api.to_check()
    api.check()
    api.teach_all()
    api.post("/api/comments", {"text": ""})
    page.goto(visitor.address + "/?PROLIFIC_PID=a%2Bb%2Fc&SESSION_ID=s%26t&STUDY_ID=u")
    visitor.heading("You have finished the study")
    expect(page.locator("code.code")).to_have_text("DONE")
    expect(returns_to(page)).to_have_attribute(
        "href", "https://panel.test/back?cc=DONE&who=a%2Bb%2Fc&SESSION_ID=s%26t"
    )
    page.goto(visitor.address + "/")  # without the link nobody knows where they came from
    visitor.heading("You have finished the study")
    expect(returns_to(page)).to_have_count(0)
    expect(
        page.get_by_text("To return to Prolific, please open this study by your link")
    ).to_be_visible()
    with contextlib.closing(browser.new_context()) as context:
        stranger = Person(context.new_page(), visitor.address, visitor.config)
        stranger.page.goto(visitor.address + "/?PROLIFIC_PID=a%2Bb%2Fc")
        stranger.heading("You have finished the study")
        expect(stranger.page.locator(".resume-again")).to_have_count(0)
        stranger.press("Delete my data after all")
        stranger.page.get_by_label("Your resume code").fill("AAAA-AAAA-AAAA")
        stranger.press("Yes, delete everything I did here")
        expect(stranger.page.locator("#notice")).to_contain_text("not the resume code")
    expect(page.locator(".resume-again strong")).not_to_be_empty()
    visitor.press("Delete my data after all")
    visitor.press("Yes, delete everything I did here")
    visitor.heading("You have left the study")
    expect(page.locator("code.code")).to_have_text("DONE")
    page.goto(visitor.address + "/?PROLIFIC_PID=a%2Bb%2Fc")
    visitor.heading("Your data were deleted")


def test_declining_failing_and_leaving_have_their_own_ends(visitor, page):
    page.goto(visitor.address + "/?PROLIFIC_PID=declines")
    visitor.press("I do not want to take part")
    visitor.heading("Thank you for your answer")
    expect(page.locator("code.code")).to_have_text("NO THANKS")
    href = "https://panel.test/back?cc=NO%20THANKS&who=declines"
    expect(returns_to(page)).to_have_attribute("href", href)
    api = Api(page.context, visitor.address, visitor.config)
    api.join({"PROLIFIC_PID": "fails"})
    api.to_check()
    for left in (2, 1):
        api.post("/api/check", {"answers": [0] * len(visitor.config.check), "tries_left": left})
    page.goto(visitor.address + "/?PROLIFIC_PID=fails")
    visitor.heading("The study ends here for you")
    expect(page.locator("code.code")).to_have_text("FAILED")
    expect(returns_to(page)).to_have_count(0)
    api.join({"PROLIFIC_PID": "leaves"})
    page.goto(visitor.address + "/?PROLIFIC_PID=leaves")
    visitor.consent()
    expect(page.locator("#resume-code")).not_to_be_empty()
    visitor.press("Leave the study")
    page.get_by_role("button", name="Leave and keep my data").click()
    visitor.heading("You have left the study")
    expect(page.locator("code.code")).to_have_text("LEFT")
    expect(returns_to(page)).to_have_attribute("href", "https://panel.test/left")


def test_a_stranger_with_the_identity_cannot_delete(browser, visitor, page):
    page.goto(visitor.address + "/?PROLIFIC_PID=victim")
    visitor.consent()
    code = page.locator("#resume-code").inner_text()
    with contextlib.closing(browser.new_context()) as context:
        stranger = Person(context.new_page(), visitor.address, visitor.config)
        other = stranger.page
        other.goto(visitor.address + "/?PROLIFIC_PID=victim")
        other.locator(".kicker").wait_for()
        expect(other.locator("#resume")).to_be_hidden()
        for typed in ("AAAA-AAAA-AAAA", code):
            stranger.press("Leave the study")
            other.get_by_role("button", name="Leave and delete my data").click()
            other.get_by_label("Your resume code").fill(typed)
            stranger.press("Yes, delete my data and leave")
            if typed != code:
                expect(other.locator("#notice")).to_contain_text("not the resume code")
        stranger.heading("You have left the study")


def test_the_dashboard_looks_somebody_up_and_deletes_on_request(visitor, page):
    api = Api(page.context, visitor.address, visitor.config)
    api.join({"PROLIFIC_PID": "asks-to-be-deleted"})
    api.to_check()
    log_in(page.context, visitor.address)
    page.goto(visitor.address + "/dashboard")
    field = page.get_by_label("Identity, resume code, completion code or number")
    field.fill("nobody")
    page.get_by_role("button", name="Look up").click()
    expect(page.get_by_text("Nobody was found")).to_be_visible()
    field.fill("asks-to-be-deleted")
    page.get_by_role("button", name="Look up").click()
    person = page.locator(".found-person")
    expect(person).to_contain_text(": check")
    expect(person).to_contain_text("nothing yet: not finished")
    assert "asks-to-be-deleted" not in page.url
    number = person.locator("h3").inner_text().split()[1].rstrip(":")
    person.get_by_role("button", name="Delete on request").click()
    page.get_by_label(f"Type {number} to confirm").fill(number)
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text(f"Participant {number} has been deleted.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    field.fill("asks-to-be-deleted")
    field.press("Enter")
    expect(page.locator(".found-person")).to_contain_text("by the researcher")


@pytest.mark.parametrize("language", ["en", "de"])
def test_axe_finds_nothing_on_the_pages_of_panels(visitor, page, axe, language):
    check = Checker(page, axe)
    page.goto(f"{visitor.address}/?PROLIFIC_PID=&lang={language}")
    page.locator(".resume-box").wait_for()
    check("identity")
    api = Api(page.context, visitor.address, visitor.config)
    name = f"axe-{language}"
    api.join({"PROLIFIC_PID": name})
    api.to_check()
    api.check()
    api.post("/api/leave", {"keep": False})
    page.goto(f"{visitor.address}/?PROLIFIC_PID={name}&lang={language}")
    page.locator("body[data-stage=deleted] h1").wait_for()
    check("deleted")
    page.goto(f"{visitor.address}/?PROLIFIC_PID={name}-declines&lang={language}")
    page.locator("body[data-stage=consent] .buttons button").nth(1).click()
    page.locator("code.code").wait_for()
    check("declined")
    log_in(page.context, visitor.address)
    page.goto(visitor.address + "/dashboard")
    field = page.get_by_label("Identity, resume code, completion code or number")
    field.fill(name)
    field.press("Enter")
    page.locator(".found-person").wait_for()
    check("look-up")
    assert check.found == []
