import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

import ital_study as study
from tests.browser.conftest import (
    Api,
    Person,
    as_researcher,
    log_in,
    overview,
    serving,
    stored_steps,
    study_app,
    study_config,
)
from tests.questions import unasked


def number_of(browser, address):
    """The number of the participant who joined last."""
    return overview(browser, address)["participants"][-1]["number"]


def rows_of(browser, address):
    number = number_of(browser, address)
    return [row for row in stored_steps(browser, address) if int(row["participant"]) == number]


def percent(page):
    """The progress that the page shows."""
    shown = page.locator("#progress-text").inner_text()
    assert page.locator("#progress-bar").get_attribute("aria-valuetext").startswith(shown)
    return int(shown.split()[0])


@pytest.mark.parametrize(
    ("keys", "pace"),
    [
        pytest.param(False, "hurried", id="mouse"),
        pytest.param(True, "hurried", id="keyboard"),
        pytest.param(False, "real", id="mouse, with all pauses", marks=pytest.mark.slow),
    ],
)
def test_whole_study(browser, page, server, config, keys, pace):
    person = Person(page, server, config, keys=keys)
    person.open(f"?PROLIFIC_PID=whole-{keys}-{pace}&STUDY_ID=s&SESSION_ID=t")
    person.consent()
    passed = [percent(page)]
    person.read()
    passed.append(percent(page))
    person.answer(shift=1)
    expect(page.get_by_text("this is the last try")).to_be_visible()
    person.answer()
    headings = [
        "First, a practice round",
        "The practice is over. Map 1 of 2, robot 1",
        "Now robot 2, same map",
        "Map 2 of 2: a new map, a new robot",
        "Now robot 2, same map",
    ]
    for at, heading in enumerate(headings):
        person.heading(heading)
        passed.append(percent(page))
        person.press("Start")
        for step in (1, 2):
            person.at_step(step)
            expect(page.locator(".badge.practice")).to_have_count(1 if at == 0 else 0)
            person.teach(nth=at + step)
    person.heading("Thank you! Anything you want to tell us?")
    passed.append(percent(page))
    # Pages, the check, steps, the end.
    parts = len(config.instructions) + 1 + config.total_steps + 1
    done = [0, *(len(config.instructions) + n for n in (0, 1, 3, 5, 7, 9, 11))]
    assert passed == [100 * n // parts for n in done]
    assert passed[-1] < 100
    page.get_by_label("Comments (optional)").fill("Robot 2 was quicker.")
    person.press("Finish")
    person.heading("You have finished the study")
    expect(page.get_by_text("All 10 steps are safely stored")).to_be_visible()
    expect(page.locator("code.code")).to_have_text(config.completion.code)
    expect(page.locator(".resume-again strong")).to_have_text(re.compile(r"(\w{4}-){2}\w{4}"))
    expect(page.locator(".resume-again")).to_contain_text(
        "if you want your data to be deleted later"
    )
    rows = rows_of(browser, server)
    assert len(rows) == len({(row["map"], row["learner"], row["step"]) for row in rows}) == 8
    assert all(row["shown_at"] <= row["chosen_at"] <= row["confirmed_at"] for row in rows)
    assert all(
        0 < float(row["seconds_to_choice"]) <= float(row["seconds_to_confirm"]) for row in rows
    )
    assert {row["choice_changes"] for row in rows} == {"0"}
    page.reload()
    person.heading("You have finished the study")


def test_three_robots_on_a_map(page, tmp_path):
    config = study_config(adaptive=True)
    with serving(study_app(tmp_path, config)) as address:
        person = Person(page, address, config)
        person.to_teaching("three-robots")
        headings = [
            "The practice is over. Map 1 of 2, robot 1",
            "Now robot 2, same map",
            "Now robot 3, same map",
            "Map 2 of 2: a new map, a new robot",
        ]
        for at, heading in enumerate(headings):
            for step in (1, 2):
                person.at_step(step)
                person.teach(nth=at + step)
            person.heading(heading)
            if at == 0:
                expect(page.get_by_text("you teach 3 robots, 2 arrows each")).to_be_visible()
            if at == 2:
                expect(
                    page.get_by_text("it has seen nothing of what you showed the others")
                ).to_be_visible()
            person.press("Start")
        expect(page.locator("body")).not_to_contain_text("adaptive")


def test_picking_highlights_in_both_maps_and_can_be_changed(browser, person, page):
    person.to_teaching("changes-their-mind")
    options = person.options
    expect(options).to_have_count(10)
    expect(page.get_by_role("button", name="Show this arrow")).to_be_disabled()
    options.nth(2).click()
    options.nth(5).click()
    page.locator(".panel").nth(1).locator(".choice").nth(7).click()  # in the belief map
    expect(options.nth(7)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".choice.chosen")).to_have_count(2)
    chosen = page.locator(".choice.chosen").evaluate_all("all => all.map(one => one.dataset.index)")
    assert chosen[0] == chosen[1]
    label = options.nth(7).get_attribute("aria-label")
    assert re.fullmatch(
        r"row \d, column \d, arrow pointing (up|right|down|left)( into the wall \(stay here\))?; "
        r"true value (−2|0|10); robot believes −?\d+\.\d here",
        label,
    )
    with page.expect_request("**/api/steps") as sent:
        person.confirm()
    body = sent.value.post_data_json
    assert body["timing"]["choice_changes"] == 2
    assert str(body["choice"]) == chosen[0]
    person.at_step(2)


@pytest.mark.parametrize("pace", ["real"])
def test_the_update_is_shown_and_spoken(person, page):
    person.to_teaching("watches")
    before = page.locator(".panel").nth(1).locator("table").inner_text()
    person.pick(3)
    person.confirm()
    expect(page.locator(".panel").nth(1).locator(".map-changed").first).to_be_attached()
    expect(page.locator("#live")).to_contain_text("The robot's belief changed most at row")
    person.at_step(2)
    assert page.locator(".panel").nth(1).locator("table").inner_text() != before
    expect(page.locator(".map-changed")).to_have_count(0)
    # the last arrow of a round has its effect shown before the next robot comes
    person.pick(0)
    person.confirm()
    expect(page.get_by_text("updates what it believes")).to_be_visible()
    person.heading("The practice is over. Map 1 of 2, robot 1")


def test_a_change_too_small_to_see_is_named_and_shown_on_request(browser, page, tmp_path):
    """The naive robot is not broken: the page says so, and shows the largest change with enough
    digits.
    """
    config = study_config(warm_up_learner="naive", steps=1)
    with serving(study_app(tmp_path, config)) as address:
        person = Person(page, address, config)
        person.to_teaching("patient")
        state = page.context.request.get(f"{address}/api/state").json()
        before = np.array(state["scene"]["belief"])
        expect(page.locator(".change")).to_be_hidden()
        person.teach(3)
        person.at_step(2)
        expect(page.locator(".change")).to_contain_text("It changed its mind by too little to see.")
        expect(page.locator(".map-changed")).to_have_count(0)
        person.press("Show the largest change")
        after = np.array(page.context.request.get(f"{address}/api/state").json()["scene"]["belief"])
        most = int(np.abs(after - before).argmax())
        place = f"row {most // 5 + 1}, column {most % 5 + 1}"
        said = re.fullmatch(
            rf".* most at {place}: from (−?[\d.]+) to (−?[\d.]+)\.",
            page.locator(".change").inner_text(),
        )
        told = [float(number.replace("−", "-")) for number in said.groups()]
        assert told[0] != told[1]
        np.testing.assert_allclose(told, [before[most], after[most]], atol=1e-3)
        expect(page.locator(".panel").nth(1).locator(".map-changed")).to_have_count(1)
        person.pick(1)
        person.confirm()
        expect(page.locator(".change")).to_be_hidden()


def test_reload_back_and_double_click_in_the_middle(browser, person, page):
    person.to_teaching("restless")
    person.teach(1)
    posts = []
    page.on(
        "request",
        lambda request: posts.append(request.url) if request.url.endswith("/api/steps") else None,
    )
    page.reload()
    person.at_step(2)
    person.pick(4)
    page.get_by_role("button", name="Show this arrow").dblclick()
    person.heading("The practice is over. Map 1 of 2, robot 1")
    person.press("Start")
    person.at_step(1)
    assert len(posts) == 1
    page.go_back()
    page.go_forward()
    person.press("Start")
    person.at_step(1)
    person.teach(2)
    page.goto("about:blank")
    page.go_back()
    person.at_step(2)
    rows = rows_of(browser, person.address)
    assert [(row["step"], row["choice"]) for row in rows] == [("1", rows[0]["choice"])]


def test_back_and_forward_turn_the_pages_of_the_instructions(person, page):
    person.open("?id=reads-twice")
    person.consent()
    person.press("Next")
    page.get_by_text("page 2 of").wait_for()
    page.go_back()
    page.get_by_text("page 1 of").wait_for()
    page.go_forward()
    page.get_by_text("page 2 of").wait_for()
    page.reload()
    page.get_by_text("page 1 of").wait_for()
    person.read()
    page.go_back()
    expect(page.locator("#notice")).to_contain_text("Everything up to here is stored")
    expect(page.get_by_role("heading", name="A few questions first")).to_be_visible()


def test_second_tab_catches_up(browser, context, person, page):
    person.to_teaching("two-tabs")
    other = Person(context.new_page(), person.address, person.config)
    other.page.goto(person.address + "/?id=two-tabs")
    other.press("Start")
    other.at_step(1)
    other.teach(1)
    other.at_step(2)
    person.page.bring_to_front()
    page.wait_for_function("!document.hidden")
    for event in ("blur", "focus"):  # a browser without a screen may not say them itself
        page.evaluate(f"window.dispatchEvent(new Event('{event}'))")
    person.at_step(2)
    person.teach(0)
    person.heading("The practice is over. Map 1 of 2, robot 1")
    assert overview(browser, person.address)["participants"][-1]["done"] == 2


def test_a_stale_tab_is_told(context, person, page):
    person.to_teaching("stale")
    api = Api(context, person.address, person.config)
    api.join({"id": "stale"})
    arrows = api.state["scene"]["arrows"]
    # The last option of the page.
    api.step(max(range(len(arrows)), key=lambda i: arrows[i]["cell"]))
    person.pick(2)
    person.confirm()
    expect(page.locator("#notice")).to_contain_text("another tab")
    person.at_step(2)
    expect(page.locator(".choice.chosen")).to_have_count(0)


def test_connection_loss_loses_nothing(browser, context, person, page):
    person.to_teaching("on-a-train")
    person.pick(6)
    context.set_offline(True)
    person.confirm()
    expect(page.locator("#trouble")).to_contain_text("nothing is lost")
    expect(page.get_by_role("button", name="Showing …")).to_be_disabled()
    context.set_offline(False)
    person.at_step(2)
    expect(page.locator("#trouble")).to_be_hidden()
    assert overview(browser, person.address)["participants"][-1]["done"] == 1


def test_a_confirmed_step_survives_a_reload_without_connection(browser, context, person, page):
    person.to_teaching("reloads-offline")
    person.pick(6)
    page.route("**/api/steps", lambda route: route.abort())
    person.confirm()
    expect(page.locator("#trouble")).to_be_visible()
    page.unroute("**/api/steps")
    page.reload()
    person.at_step(2)
    assert overview(browser, person.address)["participants"][-1]["done"] == 1


def test_a_kept_step_is_never_sent_for_somebody_else(browser, person, page):
    person.to_teaching("first-at-this-computer")
    person.pick(6)
    page.route("**/api/steps", lambda route: route.abort())
    person.confirm()
    expect(page.locator("#trouble")).to_be_visible()
    page.get_by_role("button", name="Leave the study").click()
    page.get_by_role("button", name="Leave and keep my data").click()
    expect(page.locator("#notice")).to_contain_text("still being sent")
    page.unroute("**/api/steps")
    person.to_teaching("second-at-this-computer")
    assert overview(browser, person.address)["participants"][-1]["done"] == 0


def test_answers_of_a_dead_connection_are_asked_again(browser, person, page):
    """The step was stored but its answer was lost: the repeated request must not count twice."""
    person.to_teaching("lost-answer")
    lost = []

    def lose(route):
        if not lost:
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route("**/api/steps", lose)
    person.teach(3)
    person.at_step(2)
    assert lost == [200]
    assert overview(browser, person.address)["participants"][-1]["done"] == 1


def test_leave_and_delete(browser, person, page):
    person.to_teaching("leaves")
    person.teach(0)
    people = len(overview(browser, person.address)["participants"])
    person.press("Leave the study")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    person.press("Leave the study")
    page.get_by_role("button", name="Leave and delete my data").click()
    person.press("Go back")
    page.get_by_role("button", name="Leave and delete my data").click()
    person.press("Yes, delete my data and leave")
    person.heading("You have left the study")
    expect(page.get_by_text("Your data have been deleted")).to_be_visible()
    assert len(overview(browser, person.address)["participants"]) == people - 1
    page.goto(person.address + "/")
    person.heading("Teach a robot")


def test_leave_and_keep_with_the_keyboard(browser, typist, page):
    typist.open("?id=leaves-keeps")
    typist.consent()
    typist.press("Leave the study")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    typist.heading("You have left the study")
    expect(page.get_by_text("is kept, as you wished")).to_be_visible()
    assert overview(browser, typist.address)["participants"][-1]["stage"] == "left"
    expect(page.get_by_role("heading", name="Two kinds of robot")).to_be_visible()
    withdraw(typist)


def test_leaving_before_consent_is_declining(browser, person, page):
    person.open("?id=leaves-at-once")
    person.press("Leave the study")
    page.get_by_role("button", name="Leave and keep my data").click()
    person.heading("Thank you for your answer")
    expect(page.get_by_role("heading", name="Two kinds of robot")).to_have_count(0)
    assert overview(browser, person.address)["participants"][-1]["stage"] == "declined"


KEYS = """async (arrows) => {
  const { neighbour } = await import("/static/keys.js");
  const keys = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft", "Home", "End", "x"];
  return arrows.map((_, i) => keys.map((key) => neighbour(arrows, 5, i, key)));
}"""


def test_keys_never_leave_the_map_at_one_side_to_return_at_the_other(page, server):
    page.goto(server + "/")
    rng = np.random.default_rng(0)
    for _ in range(20):
        cells = rng.permutation(25)[:10]
        moves = page.evaluate(KEYS, [{"cell": int(cell)} for cell in cells])
        place = [divmod(int(cell), 5) for cell in cells]
        for here, (up, right, down, left, home, end, other) in zip(place, moves, strict=True):
            in_row = [there for there in place if there[0] == here[0]]
            assert place[right] == min((there for there in in_row if there > here), default=here)
            assert place[left] == max((there for there in in_row if there < here), default=here)
            rows = {row for row, _ in place}
            assert place[up][0] == max((row for row in rows if row < here[0]), default=here[0])
            assert place[down][0] == min((row for row in rows if row > here[0]), default=here[0])
            assert (place[home], place[end], other) == (min(place), max(place), None)


def test_failed_check(browser, person, page):
    person.open("?id=does-not-read")
    person.consent()
    person.read()
    # The button and the question are never both in view.
    page.set_viewport_size({"width": 1280, "height": 300})
    page.locator("input[name=question-0]").first.check()
    page.get_by_role("button", name="Send my answers").click()
    problem = page.get_by_text("Please answer question 2.")
    for part in (problem, page.locator("input[name=question-1]").first):
        expect(part).to_be_in_viewport(ratio=1)
    expect(page.locator("input[name=question-1]").first).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 720})
    asked = page.get_by_role("group").nth(1)
    expect(asked).to_have_accessible_description("Please answer question 2.")
    page.get_by_role("button", name="Read the instructions again").click()
    expect(page.get_by_role("dialog")).to_contain_text(person.config.instructions[-1].title)
    person.press("Back to the questions")
    person.answer(shift=1)
    expect(page.get_by_text("this is the last try")).to_be_visible()
    person.answer(shift=1)
    person.heading("The study ends here for you")
    expect(page.get_by_role("button", name="Leave the study")).to_be_hidden()
    page.reload()
    person.heading("The study ends here for you")
    expect(page.get_by_role("heading", name="Two kinds of robot")).to_be_visible()
    withdraw(person)


def withdraw(person):
    """Delete the data at an end."""
    expect(person.page.locator(".resume-again strong")).not_to_be_empty()
    person.press("Delete my data after all")
    person.press("Yes, delete everything I did here")
    person.heading("You have left the study")
    expect(person.page.get_by_text("Your data have been deleted")).to_be_visible()
    expect(person.page.get_by_role("heading", name="Two kinds of robot")).to_be_visible()
    expect(person.page.get_by_role("button", name="Delete my data after all")).to_have_count(0)


def test_whoever_is_excluded_learns_it_at_the_next_step_and_may_withdraw(browser, person, page):
    person.to_teaching("is-excluded")
    person.pick(1)
    excluded = {"number": number_of(browser, person.address), "reason": "test"}
    as_researcher(browser, person.address, "exclude", excluded)
    person.confirm()
    person.heading("Your part in this study is over")
    expect(page.locator("code.code")).to_have_count(0)
    expect(page.get_by_role("heading", name="Two kinds of robot")).to_be_visible()
    assert overview(browser, person.address)["participants"][-1]["done"] == 0
    page.reload()
    person.heading("Your part in this study is over")
    withdraw(person)


def test_every_way_back_in_keeps_what_the_link_says(browser, context, person, page):
    """A browser that the server has forgotten is let in as the person of its link."""
    person.open("?id=keeps-the-page-open")
    number = number_of(browser, person.address)
    gone = {"number": number, "confirm": number}  # as the server itself does after a long time
    as_researcher(browser, person.address, "delete", gone)
    told = page.get_by_text("This page had been open for too long")
    person.press("I agree to take part")
    expect(told).to_be_visible()
    person.heading("Do you want to take part?")
    person.consent()
    for _ in range(len(person.config.instructions) - 1):
        person.press("Next")
    context.clear_cookies()
    person.press("Continue to the questions")
    expect(told).to_be_visible()
    person.press("Continue to the questions")
    person.heading("A few questions first")
    context.clear_cookies()
    person.answer()
    expect(page.locator("input:checked")).to_have_count(0)
    person.answer()
    person.heading("First, a practice round")
    person.press("Start")
    person.at_step(1)
    context.clear_cookies()
    with page.expect_response("**/api/join"):
        for event in ("blur", "focus"):
            page.evaluate(f"window.dispatchEvent(new Event('{event}'))")
    person.pick(1)
    context.clear_cookies()
    with page.expect_response("**/api/join"):
        person.confirm()
    expect(page.locator(".confirm")).to_be_enabled()
    person.confirm()
    person.at_step(2)
    found = as_researcher(browser, person.address, "find", {"who": "keeps-the-page-open"})["found"]
    told = [(one["matched"], one["done"], one["number"]) for one in found]
    assert told == [("identity", 1, number + 1)]
    assert number_of(browser, person.address) == number + 1  # and nobody else has joined


def test_declined(person, page):
    person.open("?id=declines")
    person.press("I do not want to take part")
    person.heading("Thank you for your answer")
    expect(page.locator("#resume")).to_be_hidden()


def test_resume_code_on_another_device(browser, person, page):
    person.to_teaching("moves-house")
    person.teach(1)
    code = page.locator("#resume-code").inner_text()
    assert re.fullmatch(r"(\w{4}-){2}\w{4}", code)
    device = browser.new_context(viewport={"width": 1024, "height": 768})
    other = Person(device.new_page(), person.address, person.config)
    other.page.goto(person.address + "/")
    other.heading("Teach a robot")
    other.page.get_by_text("I have a resume code").click()
    other.page.get_by_label("Resume code").fill("AAAA-AAAA-AAAA")
    other.press("Continue")
    expect(other.page.locator("#code-problem")).not_to_be_empty()
    other.page.get_by_label("Resume code").fill(code.lower())
    other.press("Continue")
    other.at_step(2)
    device.close()


def test_anonymous_visitor_starts_by_a_button(person, page):
    page.goto(person.address + "/")
    person.heading("Teach a robot")
    person.press("Start")
    person.heading("Do you want to take part?")


def test_a_phone_is_asked_for_a_larger_screen_and_fits_all_the_same(browser, server, config):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(server + "/?id=on-the-phone")
    expect(page.get_by_role("heading", name="This screen is a little small")).to_be_visible()
    expect(page.get_by_role("button", name="I agree to take part")).to_be_hidden()
    page.get_by_role("button", name="Continue on this screen").click()
    with page.expect_request("**/api/events") as sent:
        page.get_by_role("button", name="I agree to take part").click()
        page.locator(".kicker").wait_for()
        page.set_viewport_size({"width": 844, "height": 600})  # turned: large now
    screens = [
        event["data"] for event in sent.value.post_data_json["events"] if event["kind"] == "screen"
    ]
    facts = {"height": 844, "ratio": 1, "pointer": "coarse", "small_accepted": True}
    assert screens[0] == {"width": 390, **facts}
    assert [(one["width"], one["small_accepted"]) for one in screens[1:]] == [(844, False)]
    page.set_viewport_size({"width": 390, "height": 844})
    api = Api(context, server, config)
    api.join({"id": "on-the-phone"})
    api.post("/api/instructions", {})
    api.check()
    page.reload()
    page.get_by_role("button", name="Start").tap()
    option = page.get_by_role("option").last
    option.tap()
    for part in (
        option,
        page.locator(".confirm"),
        page.locator(".panel .map").nth(1),
        page.locator(".status"),
    ):
        expect(part).to_be_in_viewport(ratio=1)
    box = option.bounding_box()
    assert min(box["width"], box["height"]) >= 30
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for part in ("#progress-text", "#progress-bar", "#leave", "#title"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    long = "one => (one.textContent = 'Teach the robot: how people choose what to show them')"
    page.locator("#title").evaluate(long)
    assert page.locator("#title").evaluate("one => one.scrollWidth <= one.clientWidth")
    context.close()


def test_a_study_may_take_any_screen(browser, tmp_path):
    with serving(study_app(tmp_path, study_config(smallest_screen=0))) as address:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto(address + "/?id=small")
        expect(page.get_by_role("button", name="I agree to take part")).to_be_visible()
        expect(page.locator("#small")).to_be_hidden()
        page.close()


def test_touch_on_a_tablet(browser, server, config):
    context = browser.new_context(
        viewport={"width": 768, "height": 1024}, has_touch=True, is_mobile=True
    )
    api = Api(context, server, config)
    api.join({"id": "tablet"})
    api.to_check()
    api.check()
    page = context.new_page()
    page.goto(server + "/?id=tablet")
    page.get_by_role("button", name="Start").tap()
    option = page.get_by_role("option").first
    option.wait_for()
    box = option.bounding_box()
    assert min(box["width"], box["height"]) >= 44
    option.tap()
    with page.expect_request("**/api/steps") as sent:
        page.get_by_role("button", name="Show this arrow").tap()
    assert sent.value.post_data_json["timing"]["input"] == "touch"
    expect(page.locator(".counter")).to_contain_text("Step 2 of")
    assert page.evaluate("document.documentElement.scrollWidth") == 768
    context.close()


def test_reduced_motion(browser, server, config):
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    person = Person(context.new_page(), server, config)
    person.to_teaching("sits-still")
    person.page.evaluate(
        """() => {
          const belief = document.querySelectorAll(".panel")[1];
          const cells = [...belief.querySelectorAll("g[clip-path] > rect")];
          const look = () => window.seen.add(cells.map((cell) => cell.getAttribute("fill")).join());
          window.seen = new Set();
          look();
          new MutationObserver(look).observe(belief, { subtree: true, attributes: true });
        }"""
    )
    person.teach(2)
    person.at_step(2)
    assert person.page.evaluate("window.seen.size") == 2  # before and after, nothing between
    context.close()


def test_teaching_fits_the_screen_without_scrolling(person, page):
    person.to_teaching("small-laptop")
    width, height = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert (width, height) == (1280, 720)
    for part in (".legend", ".confirm", ".counter", "#progress-bar", "#leave"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    tops = page.locator(".panel .map").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().top)"
    )
    assert len(set(tops)) == 1  # side by side


def test_hint_only_when_the_study_has_it(page, server, paper_server, config):
    person = Person(page, server, config)
    person.to_teaching("no-hint")
    person.teach(1)
    expect(page.locator(".hint")).to_be_hidden()
    person = Person(page, paper_server, config)
    person.to_teaching("hint")
    expect(page.locator(".hint")).to_be_hidden()
    person.teach(1)
    expect(page.locator(".hint")).to_contain_text("The machine teacher would have picked")
    expect(page.locator(".panel").first.locator(".map-number")).to_have_count(25)


def test_focus_and_choices_are_recorded(person, page):
    events = []
    page.on(
        "request",
        lambda request: (
            events.extend(request.post_data_json["events"])
            if request.url.endswith("/api/events")
            else None
        ),
    )
    person.to_teaching("looks-away")
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    person.pick(1)
    person.pick(2)
    with page.expect_request("**/api/steps") as sent:
        person.confirm()
    assert sent.value.post_data_json["timing"]["focus_losses"] == 1
    person.at_step(2)
    for _ in range(200):  # what was not sent with the step is sent within seconds
        if len(events) >= 6:
            break
        page.wait_for_timeout(100)
    kinds = [event["kind"] for event in events]
    assert kinds[:6] == [
        "screen",
        "shown",
        "focus_lost",
        "focus_regained",
        "chosen",
        "choice_changed",
    ]
    screen = {"width": 1280, "height": 720, "ratio": 1, "pointer": "fine", "small_accepted": False}
    assert events[0]["data"] == screen
    assert json.dumps(events).count('"round"') >= 4


def test_an_event_that_the_server_refuses_takes_no_other_with_it(person, page, context):
    """A page that was loaded before an update may send what the server no longer takes."""
    stored = []

    def take(route):
        sent = route.request.post_data_json["events"]
        if any(event["kind"] == "focus_lost" for event in sent):
            route.fulfill(
                status=422, json={"error": "The request is not valid.", "code": "invalid"}
            )
        else:
            stored.extend(sent)
            route.fulfill(json={"stored": len(sent)})

    page.route("**/api/events", take)
    person.to_teaching("before-the-update")
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    person.pick(1)
    with page.expect_response("**/api/steps"):
        person.confirm()
    person.at_step(1)
    for _ in range(200):
        if "chosen" in {event["kind"] for event in stored}:
            break
        page.wait_for_timeout(100)
    kinds = {event["kind"] for event in stored}
    assert kinds >= {"shown", "focus_regained", "chosen"}
    assert "focus_lost" not in kinds
    assert all("422" in trouble for trouble in context.troubles)
    context.troubles.clear()


def test_no_page_tells_the_kind_of_robot(person, page):
    """Before the debriefing, neither pages nor answers reveal the kind of a robot."""
    answers = []
    page.on(
        "response", lambda response: answers.append(response) if "/api/" in response.url else None
    )
    person.to_teaching("curious")
    person.teach(0)
    person.teach(0)
    person.press("Start")
    person.teach(0)
    said = " ".join(response.text() for response in answers) + page.content()
    assert not re.search(r"naive|aware\b|teacher-aware", said)


def test_closed_study(browser, context, server, config):
    boss = browser.new_context()
    token = log_in(boss, server)
    headers = {"X-CSRF-Token": token}
    boss.request.post(f"{server}/api/admin/pause", data={"paused": True}, headers=headers)
    page = context.new_page()
    page.goto(server + "/?id=too-late")
    expect(page.get_by_role("heading", name="The study is closed at the moment")).to_be_visible()
    boss.request.post(f"{server}/api/admin/pause", data={"paused": False}, headers=headers)
    page.reload()
    expect(page.get_by_role("heading", name="Do you want to take part?")).to_be_visible()
    boss.close()


@pytest.mark.slow
def test_the_papers_study(browser, page, tmp_path):
    """All 310 steps of the shipped study, on the real page; its questions are tested elsewhere."""
    config = unasked(study.load_config())
    with serving(study_app(tmp_path, config)) as address:
        person = Person(page, address, config)
        person.to_teaching("everything")
        for _ in range(310):
            page.locator(".round-head, .interlude").first.wait_for()
            if page.get_by_role("button", name="Start", exact=True).count():
                person.press("Start")
            person.teach(3)
        person.press("Finish")
        person.heading("You have finished the study")
        assert len(rows_of(browser, address)) == 300
