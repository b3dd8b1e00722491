"""The attention screen, and exclusions on the dashboard."""

import contextlib
import re

import pytest
from playwright.sync_api import expect

from ital_study.config.quality import AttentionCheck
from ital_study.robots.attention import right_choice
from tests.browser.conftest import Api, Person, overview, serving, study_app, study_config
from tests.browser.test_accessibility import Checker
from tests.browser.test_dashboard import enter, tile


@pytest.fixture(scope="module")
def checked():
    return study_config(attention=(AttentionCheck("A", 1, 2, "bottom-right"),))


@pytest.fixture(scope="module")
def address(tmp_path_factory, checked):
    with serving(study_app(tmp_path_factory.mktemp("quality"), checked)) as address:
        yield address


class Attentive(Api):
    """Answers attention checks as well."""

    def step(self, choice=0):
        scene = self.state["scene"]
        if not scene["attention"]:
            return super().step(choice)
        cells = [arrow["cell"] for arrow in scene["arrows"]]
        right = right_choice(scene["attention"], cells, scene["size"])
        body = {"round": scene["round"], "step": scene["step"], "choice": right, "timing": {}}
        return self.post("/api/attention", body)


@pytest.mark.parametrize("keys", [False, True], ids=["mouse", "keyboard"])
def test_the_attention_screen(page, address, checked, keys, tmp_path):
    name = "typist" if keys else "clicker"
    api = Api(page.context, address, checked)
    api.join({"id": name})
    api.to_check()
    api.check()
    for _ in range(3):  # the practice, and the first step with robot 1
        api.step()
    person = Person(page, address, checked, keys=keys)
    page.goto(f"{address}/?id={name}")
    expect(page.locator(".counter")).to_have_text("Attention check")
    asked = page.get_by_text("please pick the arrow in the bottom right corner of the map").first
    expect(asked).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("heading", name="Attention check")).to_be_visible()
    described = re.compile("bottom right corner")
    expect(page.get_by_role("listbox")).to_have_accessible_description(described)
    assert asked.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") >= 19  # very large
    assert page.evaluate("document.documentElement.scrollHeight") <= 720
    belief = page.locator(".panel").nth(1).locator("table").inner_text()
    page.screenshot(path=tmp_path / f"attention-{name}.png")
    if keys:
        page.wait_for_function("document.activeElement.getAttribute('role') === 'option'")
        page.keyboard.press("End")
        page.keyboard.press("Space")
        expect(asked).to_be_visible()  # it stays while arrows are picked
        page.keyboard.press("Enter")
    else:
        corner = page.get_by_role("option", name="row 5, column 5")
        corner.click()
        expect(asked).to_be_visible()
        page.get_by_role("button", name="Confirm this arrow").click()
    person.at_step(2)
    expect(asked).to_be_hidden()
    expect(page.locator(".status")).to_have_text(
        "Which arrow helps the robot most now? Pick one, in either map."
    )
    assert page.locator(".panel").nth(1).locator("table").inner_text() == belief
    page.reload()  # the answer is stored: it is not asked again
    person.at_step(2)


def test_excluding_and_including(page, browser, address, checked, tmp_path):
    with contextlib.closing(browser.new_context()) as context:
        api = Attentive(context, address, checked)
        api.join({"id": "somebody"})
        api.to_check()
        api.check()
        api.teach_all()
        api.post("/api/comments", {"text": ""})
    number = next(
        row["number"]
        for row in overview(browser, address)["participants"]
        if row["stage"] == "finished"
    )
    enter(page, address)
    row = page.locator(".people tbody tr").filter(
        has=page.get_by_role("rowheader", name=str(number), exact=True)
    )
    before = int(tile(page, "usable").inner_text())
    page.get_by_role("button", name=f"Exclude participant {number}").click()
    go = page.get_by_role("dialog").get_by_role("button", name="Exclude")
    expect(go).to_be_disabled()
    page.get_by_label("Reason").fill("asked a friend")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("Excluded: asked a friend")
    expect(tile(page, "usable")).to_have_text(str(before - 1))
    expect(page.locator(".audit tbody tr").first).to_contain_text("asked a friend")
    page.get_by_label("Show").select_option("excluded")
    expect(page.locator(".people tbody tr")).to_have_count(1)
    page.screenshot(path=tmp_path / "excluded.png", full_page=True)
    page.get_by_role("button", name=f"Include participant {number}").click()
    page.get_by_role("dialog").get_by_role("button", name="Include").click()
    expect(page.get_by_text("Nobody here yet.")).to_be_visible()
    expect(tile(page, "usable")).to_have_text(str(before))


def test_flags_are_badges_that_explain_themselves(page, browser, tmp_path):
    """A whole study without times: no person did that."""
    longer = study_config(steps=8)
    with serving(study_app(tmp_path, longer)) as address:
        with contextlib.closing(browser.new_context()) as context:
            api = Api(context, address, longer)
            api.join({"id": "script"})
            api.to_check()
            api.check()
            api.teach_all()
        enter(page, address)
        badge = page.locator(".people .badge.flag-by_script")
        expect(badge).to_have_text("script")
        assert "looks like a program: 10 % of steps or more" in badge.get_attribute("title")
        page.get_by_label("Show").select_option("flagged")
        expect(page.locator(".people tbody tr")).to_have_count(1)
        page.screenshot(path=tmp_path / "flags.png", full_page=True)


def test_nothing_is_hard_to_reach(page, address, checked, axe, tmp_path):
    check = Checker(page, axe)
    api = Api(page.context, address, checked)
    api.join({"id": "axe"})
    api.to_check()
    api.check()
    for _ in range(3):
        api.step()
    page.goto(f"{address}/?id=axe")
    expect(page.locator(".counter")).to_have_text("Attention check")
    check("attention")
    page.set_viewport_size({"width": 820, "height": 1180})
    page.screenshot(path=tmp_path / "attention-tablet.png")
    check("attention, tablet")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Continue on this screen").click()
    page.mouse.wheel(0, 1000)
    expect(page.locator(".asked")).to_be_in_viewport(ratio=1)  # wherever one has scrolled
    check("attention, phone")
    enter(page, address)
    page.locator(".row-tools button", has_text="Exclude").first.click()
    page.get_by_role("dialog").wait_for()
    check("exclude")
    assert check.found == []
