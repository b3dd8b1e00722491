"""The plugin for jsPsych in a browser, with the real jsPsych from npm and a learner on another
origin.
"""

import re

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

import ital_study as study
from ital_study.server import create_learner_app
from tests.browser.conftest import PACKAGE, ROOT, serving, study_config

MODULES = ROOT / "build" / "node" / "node_modules"
# As in example.html.
OWN = [study.Arrow(2, 1), study.Arrow(12, 0), study.Arrow(12, 3), study.Arrow(20, 0)]


@pytest.fixture(scope="module")
def lab():
    """A laboratory's own site, with the example."""
    if not (MODULES / "jspsych").is_dir():
        pytest.skip(
            "jspsych is not there: make tools, or npm install --prefix build/node jspsych@8"
        )
    pages = StaticFiles(directory=PACKAGE / "frontends" / "jspsych")
    with serving(
        Starlette(
            routes=[Mount("/node_modules", StaticFiles(directory=MODULES)), Mount("/", pages)]
        )
    ) as site:
        yield site


@pytest.fixture(scope="module")
def learner(lab):
    with serving(create_learner_app(study_config(steps=3), [lab])) as address:
        yield address


@pytest.fixture(scope="module")
def rules():
    return study.StudyRules(study_config(steps=3))


@pytest.fixture
def example(page, lab, learner):
    page.goto(f"{lab}/example.html?learner={learner}&number=7")
    expect(page.get_by_role("radio")).to_have_count(10)
    page.evaluate(LISTEN)
    return page


# What the plugin says, however briefly.
LISTEN = """() => {
  window.said = [];
  const hear = () => said.push(document.querySelector(".ital-status")?.textContent);
  new MutationObserver(hear).observe(document.body, { subtree: true, childList: true });
}"""


def taught(page):
    """What jsPsych has stored."""
    return page.evaluate("jsPsych.data.get().values()")


def next_step(page, number):
    page.wait_for_function("number => jsPsych.data.get().count() === number", arg=number)


def test_the_example_teaches_two_robots_by_mouse(example, rules):
    page = example
    expect(page.get_by_text("Teach robot 1")).to_be_visible()
    expect(page.get_by_role("table")).to_have_count(3)
    confirm = page.get_by_role("button", name="Show this arrow")
    for number, choice in enumerate((3, 0, 9)):
        expect(confirm).to_be_disabled()
        page.locator(f".ital-truth label[for=ital-arrow-{choice}]").click()
        expect(page.locator(".ital-chosen")).to_have_count(2)  # in both maps
        confirm.click()
        next_step(page, number + 1)
    expect(page.get_by_text("Teach robot 2")).to_be_visible()
    expect(page.get_by_role("radio")).to_have_count(4)
    page.locator(".ital-belief label[for=ital-arrow-0]").click()
    page.locator(".ital-belief label[for=ital-arrow-2]").click()
    confirm.click()
    next_step(page, 4)
    assert "The robot changed its mind by too little to see." in page.evaluate("said")

    rows, arrows = taught(page), rules.candidates(7, "A")
    mind = rules.mind("aware", rules.start(7, "A"))
    for row, step, choice in zip(rows[:3], arrows, (3, 0, 9), strict=True):
        best = rules.best("A", mind.belief, step)
        mind = rules.update("A", "aware", mind, step, choice)
        assert row["candidates"] == [arrow._asdict() for arrow in step]
        assert row["belief"] == mind.belief.tolist()
        assert row["plan"] == rules.picture(mind.belief).policy
        assert row["signals"]["distance"] == rules.measures("A", mind.belief)["distance"]
        assert row["signals"]["best"] == best
        assert (row["map"], row["robot"], row["number"], row["choice"]) == ("A", "aware", 7, choice)
        assert 0 < row["rt_first"] <= row["rt"]
        assert row["changes"] == 0
    assert [row["step"] for row in rows] == [0, 1, 2, 0]
    naive = rules.update("A", "naive", rules.mind("naive", rules.start(7, "A")), OWN, 2)
    assert (rows[3]["belief"], rows[3]["changes"]) == (naive.belief.tolist(), 1)
    assert {row["trial_type"] for row in rows} == {"ital-teach"}


def test_the_keyboard_is_enough(example):
    page = example
    page.wait_for_function("document.activeElement.type === 'radio'")
    page.keyboard.press("Enter")  # nothing is picked yet
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("status")).to_contain_text("Your pick: row")
    page.keyboard.press("Enter")
    next_step(page, 1)
    assert any(
        (text or "").startswith("The robot’s belief changed most in row")
        for text in page.evaluate("said")
    )
    (row,) = taught(page)
    in_order = sorted(range(10), key=lambda index: row["candidates"][index]["cell"])
    assert (row["choice"], row["changes"]) == (in_order[2], 2)


def test_its_words_are_the_same_in_every_language(example, learner):
    example.evaluate(
        """learner => {
          const german = {
            type: jsPsychItalTeach, server: learner, language: "de", labels: { confirm: "Los" },
          };
          initJsPsych().run([german]);
        }""",
        learner,
    )
    form = example.locator("form[lang=de]")
    expect(form.get_by_role("radio").first).to_have_accessible_name(
        re.compile(r"Zeile \d, Spalte \d: Pfeil nach .*, der Roboter glaubt −?\d,\d$")
    )
    expect(form.locator("caption")).to_have_text(
        ["Wahre Karte", "Was der Roboter glaubt", "Was der Roboter tun würde"]
    )
    expect(form.get_by_role("button")).to_have_text("Los")
    text = (PACKAGE / "frontends" / "jspsych" / "plugin-ital-teach.js").read_text(encoding="utf-8")
    english, german = re.findall(
        r"^    (?:en|de): \{$(.*?)^    \},$", text, re.DOTALL | re.MULTILINE
    )
    words = [re.findall(r"^      (\w+): (.*)$", block, re.MULTILINE) for block in (english, german)]
    assert [(key, set(re.findall(r"\{\w+\}", word))) for key, word in words[0]] == [
        (key, set(re.findall(r"\{\w+\}", word))) for key, word in words[1]
    ]


def test_jspsych_can_simulate_it(page, lab, learner):
    page.goto(f"{lab}/example.html?learner={learner}")
    page.get_by_role("radio").first.wait_for()
    rows = page.evaluate(
        """async (learner) => {
          const other = initJsPsych();
          const trial = {
            type: jsPsychItalTeach, server: learner, map: "A", robot: "adaptive",
          };
          await other.simulate([trial], "data-only");
          return other.data.get().values();
        }""",
        learner,
    )
    assert rows[0]["choice"] in range(10)
    assert len(rows[0]["belief"]) == 25


def test_it_waits_for_a_learner_that_does_not_answer(context, page, lab, learner):
    page.route("**/api/learner/start", lambda route: route.abort(), times=1)
    page.goto(f"{lab}/example.html?learner={learner}&number=7")
    expect(page.get_by_role("radio")).to_have_count(10)
    (told,) = context.troubles  # the plugin tells the programmer what to look at
    assert f"start does not answer. Was it started with --allow-origin {lab}?" in told
    context.troubles.clear()


def test_a_site_that_was_not_named_gets_nothing(context, page, lab):
    with serving(
        create_learner_app(study_config(steps=3), ["https://elsewhere.example.org"])
    ) as closed:
        page.goto(f"{lab}/example.html?learner={closed}")
        expect(page.get_by_role("status")).to_have_text("The robot does not answer. Trying again …")
        page.close()
    assert "blocked by CORS policy" in context.troubles[0]
    context.troubles.clear()


def test_it_is_accessible(example, axe):
    example.evaluate(axe)
    example.get_by_role("radio").first.check(force=True)
    found = example.evaluate("axe.run(document.querySelector('.ital-teach'))")["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
