"""Pages of questions: mouse, keyboard, narrow screens, errors, reloads and languages."""

import contextlib
import csv
import io
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Api, Person, log_in, serving, study_app
from tests.questions import ANSWERS, asking


@pytest.fixture(scope="session")
def config():
    return asking(steps=2, warm_up_steps=1)


@pytest.fixture(scope="session")
def server(tmp_path_factory, config):
    with serving(study_app(tmp_path_factory.mktemp("asking"), config)) as address:
        yield address


class Asked(Api):
    """Moves a person up to a page of questions without the pages before."""

    def until(self, page, name, language="en"):
        self.post(
            "/api/join", {"ids": {"id": name}, "resume": None, "mode": "live", "language": language}
        )
        self.to_check()
        self.check()
        while self.state.get("questions", {}).get("page") != page:
            if self.state["stage"] == "questions":
                asked = self.state["questions"]
                answers = {"answers": ANSWERS[asked["page"]]}
                self.post(
                    "/api/answers", {"page": asked["page"], "place": asked["place"], **answers}
                )
            else:
                self.step()
        return self


def stored(browser, address):
    with contextlib.closing(browser.new_context()) as context:
        log_in(context, address)
        text = context.request.get(f"{address}/api/admin/export/answers.csv?mode=live").text()
    rows = list(csv.DictReader(io.StringIO(text)))
    last = max(int(row["participant"]) for row in rows)
    return {(row["place"], row["item"]): row for row in rows if int(row["participant"]) == last}


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def test_errors_stand_beside_their_question_and_a_reload_loses_nothing(
    browser, page, server, config
):
    Asked(page.context, server, config).until("you", "reloads")
    page.goto(f"{server}/?id=reloads&lang=en")
    expect(page.get_by_role("heading", level=1, name="About you")).to_be_visible()
    expect(page.get_by_text(f"Ask {config.fields['contact']} about these 2 maps.")).to_be_visible()
    press(page, "Continue")
    age = page.get_by_label("How old are you?")
    expect(age).to_be_focused()
    expect(age).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#problem-age")).to_have_text("Please type a whole number from 18 to 120.")
    expect(age).to_have_accessible_description("Please type a whole number from 18 to 120.")
    expect(page.locator("#problem-gender")).to_be_empty()
    age.fill("17")
    # The button and the question are never both in view.
    page.set_viewport_size({"width": 1280, "height": 260})
    press(page, "Continue")
    expect(page.locator("#problem-age")).not_to_be_empty()
    expect(page.locator("#problem-age")).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 720})
    age.fill("34")
    expect(page.locator("#problem-age")).to_be_empty()
    page.get_by_label("Man", exact=True).check()
    page.reload()
    expect(age).to_have_value("34")
    expect(page.get_by_label("Man", exact=True)).to_be_checked()
    press(page, "Continue")
    expect(page.get_by_role("heading", level=1, name="First, a practice round")).to_be_visible()
    rows = stored(browser, server)
    assert (rows["start", "age"]["value"], rows["start", "gender"]["label"]) == ("34.0", "Man")
    assert 0 < float(rows["start", "age"]["seconds"]) < 60
    assert page.evaluate("sessionStorage.getItem('ital-draft-answers')") is None


def tab_to(page, name):
    for _ in range(30):
        if page.evaluate("document.activeElement.name") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {name!r}")


def test_a_robot_with_the_keyboard_alone(browser, page, server, config):
    Asked(page.context, server, config).until("robot", "keyboard")
    page.goto(f"{server}/?id=keyboard&lang=en")
    expect(page.get_by_role("heading", level=1, name="Robot 1 on map 1")).to_be_visible()
    rows = page.get_by_role("radiogroup")
    expect(rows).to_have_count(2)
    expect(rows.first).to_have_accessible_name("How well did robot 1 understand you?")
    expect(page.get_by_role("radio", name="1 – not at all")).to_have_count(2)
    tab_to(page, "understanding.understood")
    page.keyboard.press("Space")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")  # sends the form, but a row is missing
    expect(page.locator("#problem-understanding")).to_have_text(
        "Please choose one point in every row."
    )
    assert page.evaluate("document.activeElement.name") == "understanding.learned"
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Now robot 2, same map")).to_be_visible()
    told = stored(browser, server)
    assert told["1-1", "understanding.understood"]["value"] == "4.0"
    assert told["1-1", "understanding.learned"]["value"] == "2.0"


def test_a_scale_is_a_table_where_there_is_room_and_stacked_elsewhere(page, server, config):
    Asked(page.context, server, config).until("robot", "narrow")
    page.goto(f"{server}/?id=narrow&lang=en")
    row = page.get_by_role("radiogroup").first
    row.wait_for()
    tops = (
        "row => [...row.querySelectorAll('.point')]"
        ".map((one) => Math.round(one.getBoundingClientRect().top))"
    )
    assert len(set(row.evaluate(tops))) == 1
    boxes = [
        one.bounding_box()
        for one in (*page.get_by_role("radiogroup").all(), page.locator("[type=submit]"))
    ]
    assert boxes[0]["width"] > 600
    for above, below in pairwise(boxes):
        assert above["y"] + above["height"] <= below["y"]
    expect(page.locator(".likert-head")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    press(page, "Continue on this screen")
    assert len(set(row.evaluate(tops))) == 5
    expect(page.locator(".likert-head")).to_be_hidden()
    expect(row.get_by_text("5 – very well")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    row.locator("input").first.check()
    press(page, "Continue")
    missing = page.get_by_role("radiogroup").nth(1)
    problem = page.get_by_text("Please choose one point in every row.")
    for part in (problem, missing.locator("label").first):
        expect(part).to_be_in_viewport(ratio=1)
    # It stands between the answered row and the open one.
    answered = row.bounding_box()
    assert answered["y"] + answered["height"] <= problem.bounding_box()["y"]
    assert problem.bounding_box()["y"] < missing.bounding_box()["y"]
    expect(missing.locator("input").first).to_be_focused()


def test_a_second_tab_catches_up(page, context, server, config):
    Asked(context, server, config).until("you", "two-tabs")
    other = context.new_page()
    for one in (page, other):
        one.goto(f"{server}/?id=two-tabs&lang=en")
        one.get_by_label("How old are you?").fill("34")
    press(page, "Continue")
    expect(page.get_by_role("heading", level=1, name="First, a practice round")).to_be_visible()
    other.get_by_label("How old are you?").fill("35")
    press(other, "Continue")
    expect(other.get_by_text("You have continued in another tab")).to_be_visible()
    expect(other.get_by_role("heading", level=1, name="First, a practice round")).to_be_visible()


def test_the_last_step_is_seen_then_questions_then_comments(page, server, config):
    api = Asked(page.context, server, config).until("robot", "to-the-end")
    while api.state["progress"]["done"] < config.total_steps - 1:
        if api.state["stage"] == "questions":
            asked = api.state["questions"]
            api.post(
                "/api/answers",
                {k: asked[k] for k in ("page", "place")} | {"answers": ANSWERS[asked["page"]]},
            )
        else:
            api.step()
    page.goto(f"{server}/?id=to-the-end&lang=en")
    person = Person(page, server, config)
    person.at_step(2)
    person.pick(0)
    person.confirm()
    person.heading("Robot 2 on map 2")
    for row in page.get_by_role("radiogroup").all():
        row.get_by_role("radio").nth(2).check()
    press(page, "Continue")
    person.heading("Map 2")
    page.get_by_label("The arrows").check()
    press(page, "Continue")
    person.heading("At last")
    page.get_by_label("How did you choose?").fill("By feeling")
    press(page, "Continue")
    person.heading("Thank you! Anything you want to tell us?")


def test_in_german_without_violations(page, server, config, axe):
    titles = {"you": "Über Sie", "robot": "Roboter 1", "map": "Karte 1", "last": "Zuletzt"}
    for name, title in titles.items():
        Asked(page.context, server, config).until(name, f"german-{name}", "de")
        page.goto(f"{server}/?id=german-{name}&lang=de")
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
        if name in ("you", "robot"):  # where something is required, with the errors
            press(page, "Weiter")
            expect(page.locator(".field-problem:not(:empty)")).to_have_count(1)
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert len(found["passes"]) > 5
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == [], name
