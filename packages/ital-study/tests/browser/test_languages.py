"""Every word comes from a language file, in either direction.

No page violates a rule of axe-core.
"""

import contextlib
import dataclasses
import re

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

from ital_study.config.parts import StudyPart
from ital_study.server import signed_links
from ital_study.store import open_store, operations
from ital_study.store.tables import participants
from tests.browser.conftest import Api, Person, log_in, serving, study_app
from tests.browser.test_accessibility import Checker
from tests.browser.tour import everything, pseudo_study, tour
from tests.questions import unasked

SAID = """() => {
  const shown = [...document.querySelectorAll("*")].filter((one) => one.checkVisibility());
  const names = ["aria-label", "aria-valuetext", "aria-description", "title", "placeholder", "alt"];
  const labels = shown.flatMap((one) => names.map((name) => one.getAttribute(name) ?? ""));
  return [document.title, document.body.innerText, ...labels].join("\\n");
}"""
DAY = 24 * 3600 * 1000  # milliseconds
CODE_AT_THE_END = everything().completion.code
CODE = r"\b[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}\b"


def foreign(text, codes):
    """What is left of a page's text without pseudo-words, numbers, symbols and codes."""
    for code in codes:
        text = text.replace(code, "")
    text, before = re.sub(CODE, "", text), None
    while text != before:  # words stand inside others
        text, before = re.sub(r"⟦[^⟦⟧]*⟧", "", text), text
    return re.findall(r"[^\W\d_][^\n]*", text)


class Reader(Checker):
    """Reads pages in the pseudo-language, and checks them."""

    def __init__(self, page, source):
        super().__init__(page, source, but=["html-lang-valid"])  # no language has this tag

    def __call__(self, where):
        self.found += [
            f"{where}: {text}" for text in foreign(self.page.evaluate(SAID), [CODE_AT_THE_END])
        ]
        assert self.page.evaluate(
            "[document.documentElement.lang, document.documentElement.dir]"
        ) == ["qps", "rtl"]
        assert (
            self.page.evaluate("document.documentElement.scrollWidth")
            <= self.page.viewport_size["width"]
        ), where
        super().__call__(where)


@pytest.fixture(scope="module")
def pseudo_server(tmp_path_factory):
    with serving(study_app(tmp_path_factory.mktemp("pseudo"), pseudo_study())) as address:
        yield address


def test_no_text_is_hard_coded_and_every_page_runs_from_right_to_left(page, pseudo_server, axe):
    """The tour of a study in the pseudo-language: forgotten English would stand outside its
    brackets.
    """
    look = Reader(page, axe)
    tour(page, pseudo_server, pseudo_study(), look, "pseudo")
    assert look.found == []
    assert {"too little to see", "questions 0", "leave", "second try", "finished", "left"} <= set(
        look.checked
    )


def test_nor_on_the_pages_that_few_people_see(page, context, pseudo_server, axe):
    config, look = pseudo_study(), Reader(page, axe)
    page.goto(f"{pseudo_server}/?id=declines")
    page.locator(".page .buttons button").nth(1).click()
    page.locator("h1:focus").wait_for()
    look("declined")
    context.clear_cookies()
    api = Api(context, pseudo_server, config)
    api.join({"id": "fails"})
    api.to_check()
    for tries in (2, 1):
        api.post(
            "/api/check",
            {
                "answers": [(question.answer + 1) % 3 for question in config.check],
                "tries_left": tries,
            },
        )
    page.goto(f"{pseudo_server}/?id=fails")
    page.locator(".page p").first.wait_for()
    look("failed check")
    page.goto(f"{pseudo_server}/?id=loses-connection")
    page.locator(".prose").wait_for()
    context.set_offline(True)
    page.locator(".page .primary").click()
    page.locator("#trouble button").wait_for()
    look("no connection")
    page.locator("#leave").click()
    page.locator("dialog .dialog-choices button").nth(1).click()
    page.locator("#notice").wait_for()
    look("still sending")
    context.set_offline(False)
    page.locator("#notice").wait_for()
    page.locator(".kicker").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#small-accept").wait_for()
    look("small screen")
    assert look.found == []


def test_nor_on_the_pages_of_people_who_are_not_admitted(
    browser, context, page, pseudo_server, axe
):
    config, look = pseudo_study(), Reader(page, axe)

    def arrives(ids, stage):
        context.clear_cookies()
        page.goto(f"{pseudo_server}/?{ids}")
        page.locator(f"body[data-stage={stage}] h1").wait_for()
        look(stage)

    page.goto(f"{pseudo_server}/nowhere?id=lost")
    look("no such page")
    assert page.get_by_role("link").get_attribute("href") == "/?id=lost"
    arrives("PROLIFIC_PID={{%25PROLIFIC_PID%25}}", "identity")
    api = Api(context, pseudo_server, config)
    api.join({"id": "deletes"})
    api.to_check()
    api.post("/api/leave", {"keep": False})
    arrives("id=deletes", "deleted")
    with contextlib.closing(browser.new_context()) as office:
        headers = {"X-CSRF-Token": log_in(office, pseudo_server)}
        api = Api(context, pseudo_server, config)
        api.join({"id": "out"})
        api.to_check()
        shown = office.request.get(f"{pseudo_server}/api/admin/overview").json()["participants"]
        excluded = {"number": shown[-1]["number"], "reason": "test"}
        assert office.request.post(
            f"{pseudo_server}/api/admin/exclude", data=excluded, headers=headers
        ).ok
        arrives("id=out", "excluded")
        for paused in (True, False):
            office.request.post(
                f"{pseudo_server}/api/admin/pause", data={"paused": paused}, headers=headers
            )
            if paused:
                arrives("id=late", "closed")
    assert look.found == []
    assert look.checked == ["no such page", "identity", "deleted", "excluded", "closed"]


LINK_PROBLEMS = ("missing", "forged", "expired", "used")


def queries_of_links(context, address, config):
    """What follows the question mark of one link of each kind that lets nobody in."""
    [used] = signed_links(b"s" * 32, config, address, [(1, "")])
    [over] = signed_links(b"s" * 32, config, address, [(2, "")], expires_at=1)
    api = Api(context, address, config)
    api.join({"link": used.link.partition("link=")[2]})
    api.to_check()
    context.clear_cookies()
    return "", "link=3.0.x", over.link.partition("?")[2], used.link.partition("?")[2]


@pytest.fixture(scope="module", params=["en", "de", "qps"])
def signed_study(request, tmp_path_factory):
    """A study with signed links, in one language; its address too."""
    config = pseudo_study() if request.param == "qps" else everything()
    config = dataclasses.replace(config, links="signed")
    with serving(study_app(tmp_path_factory.mktemp("signed"), config)) as address:
        yield request.param, config, address


def test_a_link_that_lets_nobody_in_says_what_to_do(page, context, signed_study, axe):
    language, config, address = signed_study
    look = Reader(page, axe) if language == "qps" else Checker(page, axe)

    said = config.words_in(language)
    queries = queries_of_links(context, address, config)
    for query, problem in zip(queries, LINK_PROBLEMS, strict=True):
        page.goto(f"{address}/?{query}&lang={language}")
        page.locator("body[data-stage=link] h1").wait_for()
        assert page.locator("h1").inner_text() == said[f"link.{problem}_title"]
        is_open = page.locator(".resume-box").get_attribute("open") is not None
        assert is_open == (problem == "used")
        look(problem)
    assert look.found == []
    assert tuple(look.checked) == LINK_PROBLEMS


@pytest.fixture(scope="module", params=["en", "de", "qps"])
def study_in_parts(request, tmp_path_factory):
    """A study in two sessions, in one language; its address and its database too."""
    config = pseudo_study() if request.param == "qps" else everything()
    parts = (StudyPart(("A",)), StudyPart(("E",), after_days=1, within_days=2))
    config = dataclasses.replace(config, parts=parts, questionnaires=(), attention=())
    if request.param != "qps":
        config = unasked(config)
    folder = tmp_path_factory.mktemp("parts")
    with serving(study_app(folder, config)) as address:
        yield request.param, config, address, folder


def test_the_pages_between_two_parts(page, context, study_in_parts, axe):
    language, config, address, folder = study_in_parts
    look = Reader(page, axe) if language == "qps" else Checker(page, axe)
    for state, days in (("early", None), ("open", (-1, 1)), ("late", (-2, -1))):
        context.clear_cookies()
        api = Api(context, address, config)
        api.join({"id": state})
        api.post("/api/language", {"language": language})
        api.to_check()
        api.check()
        api.teach_all()
        if days is not None:
            move_part(folder, *days)
        page.goto(f"{address}/?id={state}&lang={language}")
        page.locator("body[data-stage=waiting] h1").wait_for()
        fields = {"part": "1", "next": "2", "parts": "2"}
        title = config.words_in(language)[f"part.{state}_title"].format(**fields)
        assert page.locator("h1").inner_text() == title
        look(state)
        if state == "open":
            page.locator(".page .primary").click()
            page.locator(".interlude .primary").wait_for()
    assert look.found == []


def move_part(folder, opens, closes):
    """Let the next part of the newest participant be open, or over."""
    now = operations.now()
    p = participants.c
    with open_store(str(folder / "study.db")) as store:
        newest = sa.select(sa.func.max(p.number)).scalar_subquery()
        times = {"opens_at": now + opens * DAY, "closes_at": now + closes * DAY}
        moved = participants.update().where(p.number == newest).values(times)
        store.write(lambda connection: connection.execute(moved))


@pytest.mark.parametrize("wishes", ["?lang=de", "?lang=xx", ""])
def test_the_language_of_link_and_browser(browser, server, config, wishes):
    context = browser.new_context(locale="de-AT" if not wishes else "en-GB")
    page = context.new_page()
    page.goto(server + "/" + wishes)
    title = "Teach a robot" if wishes == "?lang=xx" else "Bringen Sie einem Roboter etwas bei"
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    context.close()


def test_the_language_can_be_changed_until_consent(page, server, config):
    page.goto(server + "/")
    choice = page.get_by_label("Language")
    choice.select_option("Deutsch")
    expect(
        page.get_by_role("heading", level=1, name="Bringen Sie einem Roboter etwas bei")
    ).to_be_visible()
    expect(page.locator("#language")).to_be_focused()
    page.get_by_role("button", name="Los geht’s").click()
    expect(page.get_by_role("heading", level=1, name="Möchten Sie teilnehmen?")).to_be_visible()
    page.get_by_label("Sprache").select_option("en")
    expect(page.get_by_role("heading", level=1, name="Do you want to take part?")).to_be_visible()
    expect(page.get_by_role("heading", level=2, name="What you will do")).to_be_visible()
    assert page.title() == config.texts("en").title
    page.get_by_label("Language").select_option("de")
    page.reload()
    expect(page.get_by_role("heading", level=1, name="Möchten Sie teilnehmen?")).to_be_visible()
    page.get_by_role("button", name="Ja, ich nehme teil").click()
    expect(page.get_by_text("Anleitung, Seite 1 von 7")).to_be_visible()
    expect(page.locator("#language")).to_have_count(0)


def test_maps_are_never_mirrored_and_progress_fills_from_the_right(page, pseudo_server):
    config = pseudo_study()
    api = Api(page.context, pseudo_server, config)
    api.join({"id": "mirror"})
    api.to_check()
    api.check()
    page.goto(f"{pseudo_server}/?id=mirror")
    page.locator(".questions").wait_for()
    for box in page.locator(".question input").all()[:1]:
        box.fill("34")
    page.locator("form .primary").click()
    page.locator(".interlude .primary").click()
    page.locator("[role=option]").first.wait_for()
    places = page.locator("[role=option]").evaluate_all(
        """all => all.map((one) => {
          const map = one.closest(".map").getBoundingClientRect();
          return Math.floor((one.getBoundingClientRect().left - map.left + 1) / (map.width / 5));
        })"""
    )
    scene = page.context.request.get(f"{pseudo_server}/api/state").json()["scene"]
    assert sorted(places) == sorted(arrow["cell"] % 5 for arrow in scene["arrows"])
    lefts = "all => all.map((one) => one.getBoundingClientRect().left)"
    boxes = page.locator(".panel").evaluate_all(lefts)
    assert boxes == sorted(boxes, reverse=True)  # the page itself is mirrored
    scale = page.locator(".legend-scale").evaluate(
        "one => [...one.children].map((c) => c.getBoundingClientRect().left)"
    )
    assert scale == sorted(scale)  # bad, the colours, good
    page.locator("[role=option]").first.click()
    page.locator(".confirm").click()
    page.locator(".interlude").wait_for()
    rights = "all => all.map((one) => one.getBoundingClientRect().right)"
    filled = page.locator("#progress-bar, #progress-fill").evaluate_all(rights)
    assert abs(filled[0] - filled[1]) <= 2


@pytest.mark.slow
def test_nor_with_the_other_palette(page, tmp_path, axe):
    config, look = pseudo_study("paper"), Reader(page, axe)
    with serving(study_app(tmp_path, config)) as address:
        tour(page, address, config, look, "pseudo")
    assert look.found == []


@pytest.mark.slow
@pytest.mark.parametrize("palette", ["safe", "paper"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_no_page_violates_a_rule(browser, axe, tmp_path, palette, language):
    """Every page in every shipped language and palette; the quick tests cover each of them with
    fewer pages.
    """
    config = everything(palette)
    context = browser.new_context(viewport={"width": 1280, "height": 720}, locale=language)
    page = context.new_page()
    check = Checker(page, axe)
    with serving(study_app(tmp_path, config)) as address:
        tour(page, address, config, check, language)
    assert check.found == []
    context.close()


def test_a_german_person_takes_part(page, server, config, axe):
    """The main pages in German, without violations."""
    check = Checker(page, axe)
    person = Person(page, server, config)
    page.goto(f"{server}/?id=german&lang=de")
    person.heading("Möchten Sie teilnehmen?")
    check("consent")
    person.press("Ja, ich nehme teil")
    expect(page.get_by_text("Anleitung, Seite 1 von 7")).to_be_visible()
    check("instructions")
    api = Api(page.context, server, config)
    api.join({"id": "german"})
    api.post("/api/instructions", {})
    api.check()
    page.goto(f"{server}/?id=german")  # the link names no language, but the person has one
    person.heading("Zuerst eine Übungsrunde")
    person.press("Los geht’s")
    page.get_by_role("option").nth(2).click()
    expect(page.locator(".status")).to_contain_text("Ihre Wahl: Zeile")
    check("step")
    size = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert size == [1280, 720]  # longer words fit as well
    with page.expect_request("**/api/steps"):
        person.press("Diesen Pfeil zeigen")
    expect(page.locator(".counter")).to_have_text("Schritt 2 von 2")
    # Decimals as in German.
    expect(page.locator("#live")).to_contain_text(re.compile(r"von −?\d,\d\d"))
    assert check.found == []
