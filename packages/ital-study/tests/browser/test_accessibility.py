"""axe-core finds no violation on any page in both palettes.

Further tests cover the colours of the maps.
"""

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PASSWORD, Api, Person

PALETTES = ("safe", "paper")


class Checker:
    """Collects violations of any severity, ``but`` those of some rules."""

    def __init__(self, page, source, but=()):
        self.page, self.source, self.but, self.found, self.checked = page, source, but, [], []

    def __call__(self, where):
        self.page.evaluate(self.source)
        result = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert len(result["passes"]) > 5  # it has really looked
        self.checked.append(where)
        for one in result["violations"]:
            if one["id"] not in self.but:
                nodes = "; ".join(node["html"][:120] for node in one["nodes"][:3])
                self.found.append(f"{where}: {one['id']} ({one['impact']}): {nodes}")


@pytest.fixture
def check(page, axe):
    checker = Checker(page, axe)
    yield checker
    assert checker.checked
    assert checker.found == []


@pytest.fixture(params=PALETTES)
def address(request):
    return request.getfixturevalue("server" if request.param == "safe" else "paper_server")


def test_pages_before_teaching(page, address, check, config):
    person = Person(page, address, config)
    page.goto(address + "/")
    person.heading("Teach a robot")
    page.get_by_text("I have a resume code").click()
    check("welcome")
    person.open("?id=axe-reads")
    check("consent")
    person.consent()
    for number in range(2, len(config.instructions) + 1):
        check(f"instructions {number - 1}")
        person.press("Next")
    check("instructions, last")
    person.press("Continue to the questions")
    person.heading("A few questions first")
    check("questions")
    person.press("Read the instructions again")
    check("instructions again")
    person.press("Back to the questions")
    person.answer(shift=1)
    expect(page.get_by_text("this is the last try")).to_be_visible()
    check("second try")


def test_teaching_pages(page, context, address, check, config):
    api = Api(context, address, config)
    api.join({"id": "axe-teaches"})
    api.to_check()
    api.check()
    person = Person(page, address, config)
    page.goto(address + "/?id=axe-teaches")
    person.heading("First, a practice round")
    check("note before a round")
    person.press("Start")
    person.at_step(1)
    check("step")
    person.pick(2)
    check("arrow picked")
    page.get_by_role("button", name="Leave the study").click()
    check("leave")
    page.get_by_role("button", name="Leave and delete my data").click()
    check("delete")
    person.press("Go back")
    person.press("Stay in the study")
    person.confirm()
    check("update")
    api.join({"id": "axe-teaches"})
    api.teach_all()
    page.reload()
    person.heading("Thank you! Anything you want to tell us?")
    check("comments")
    person.press("Finish")
    person.heading("You have finished the study")
    check("finished")
    person.press("Delete my data after all")
    person.press("Yes, delete everything I did here")
    person.heading("You have left the study")
    check("left")


def test_other_endings_and_notes(page, context, server, config, check):
    person = Person(page, server, config)
    person.open("?id=axe-declines")
    person.press("I do not want to take part")
    person.heading("Thank you for your answer")
    check("declined")
    context.clear_cookies()
    api = Api(context, server, config)
    api.join({"id": "axe-fails"})
    api.to_check()
    for tries in (2, 1):
        wrong = [(question.answer + 1) % len(question.options) for question in config.check]
        api.post("/api/check", {"answers": wrong, "tries_left": tries})
    page.goto(server + "/?id=axe-fails")
    person.heading("The study ends here for you")
    check("failed check")
    page.goto(server + "/nowhere?id=axe-fails")
    person.heading("There is no such page. Please open the study link again.")
    check("no such page")
    page.get_by_role("link", name="Go to the study").click()
    person.heading("The study ends here for you")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("heading", name="This screen is a little small")).to_be_visible()
    check("small screen")


def test_dashboard(page, context, server, config, check):
    Api(context, server, config).join({"id": "axe-is-listed"})
    page.goto(server + "/dashboard")
    page.get_by_label("Password").wait_for()
    check("log-in")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.locator(".people, .table-scroll").first.wait_for()
    check("overview")
    page.get_by_role("button", name="Show them now").click()
    page.get_by_role("dialog").wait_for()
    check("unblind")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Pause intake").click()
    expect(page.locator(".badge.paused")).to_be_visible()
    check("paused")
    page.get_by_role("button", name="Resume intake").click()
    expect(page.locator(".badge.running")).to_be_visible()
    for width in (820, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        fits = "one => one.scrollWidth <= one.clientWidth"
        assert page.locator(".table-scroll").first.evaluate(fits)
    check("overview, phone")
    page.locator(".row-tools .danger").first.click()
    page.get_by_role("dialog").wait_for()
    check("delete")


def test_play(page, play_server, check):
    page.goto(play_server)
    page.locator(".choice[role=option]").first.click()
    check("play")


COLOURS = """async (name) => {
  const { Palette, contrast, inkOn, luminance } = await import("/static/maps.js");
  const palette = new Palette(name, 10);
  const strengths = Array.from({ length: 81 }, (_, i) => (i - 40) / 40);
  return strengths.map((strength) => {
    const colour = palette.colourOfStrength(strength);
    return { strength, colour, mark: contrast(colour, inkOn(colour)), light: luminance(colour),
             outline: contrast(colour, "#26324a"), ring: contrast(colour, "#101722") };
  });
}"""


def rgb(colour):
    """Linear light of "#rrggbb"."""
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


@pytest.fixture
def colours(page, server):
    page.goto(server + "/dashboard")
    return {name: page.evaluate(COLOURS, name) for name in PALETTES}


@pytest.mark.parametrize("name", PALETTES)
def test_marks_and_arrows_stand_out_from_every_cell(colours, name):
    for one in colours[name]:
        assert one["mark"] >= 4.5, one  # signs and numbers
        assert one["outline"] >= 3, one  # edge of an arrow's disc
        assert one["ring"] >= 3, one  # ring around the picked one


@pytest.mark.parametrize("name", PALETTES)
def test_palettes_are_symmetric_in_lightness(colours, name):
    light = np.array([one["light"] for one in colours[name]])
    np.testing.assert_allclose(light, light[::-1], atol=0.03)
    assert (np.diff(light[:41]) > 0).all()  # lighter and lighter towards zero


# What people without red (protanopia) or green (deuteranopia) cones see of linear red, green, blue
# (the projections of Viénot, Brettel and Mollon, 1999).
BLINDNESS = {
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_the_default_palette_is_safe_for_the_colour_blind(colours, blindness):
    matrix = np.array(BLINDNESS[blindness])
    seen = {one["strength"]: matrix @ rgb(one["colour"]) for one in colours["safe"]}
    for strength in (0.3, 0.45, 0.7, 1.0):
        gap = np.abs(
            np.cbrt(np.clip(seen[strength], 0, 1)) - np.cbrt(np.clip(seen[-strength], 0, 1))
        ).max()
        assert gap > 0.1, (strength, gap)
