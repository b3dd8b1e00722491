"""Robots that keep a belief, on the pages: played with, taught to the end, shown to researchers."""

import contextlib
import dataclasses
import re

import pytest
from playwright.sync_api import expect

import ital_study as study
from ital_study.server import create_play_app
from tests.browser.conftest import PASSWORD, Person, serving, study_app
from tests.questions import unasked
from tests.server.people import ready

NAMES = ["Teacher-aware robot", "Belief from arrows", "Belief from choices too"]


@pytest.fixture(scope="module")
def evidence():
    shipped = unasked(ready(study.load_config("evidence")))
    return dataclasses.replace(shipped, maps=shipped.maps[:2], steps=3, warm_up_steps=1)


def test_play_shows_the_robots_that_the_study_names(page, evidence, tmp_path):
    with serving(create_play_app(evidence)) as address:
        page.goto(address)
        expect(page.get_by_role("heading", name="Teach 3 robots")).to_be_visible()
        expect(page.locator(".robot h2")).to_have_text(NAMES)
        page.get_by_role("option").nth(3).click()
        page.get_by_role("button", name="Show this arrow").click()
        expect(page.locator(".counter")).to_have_text("Arrow 2 of 3")
        page.get_by_role("button", name="Play to the end").click()
        expect(page.locator(".counter")).to_have_text("All 3 arrows shown")
        expect(page.locator(".line-key li")).to_have_count(3)
        size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        page.screenshot(path=tmp_path / "play.png")
        assert page.evaluate(size) == [1280, 720]


def test_a_served_study_to_the_end_and_its_dashboard(page, evidence, tmp_path):
    with serving(study_app(tmp_path, evidence)) as address:
        person = Person(page, address, evidence)
        person.to_teaching("evidence")
        person.teach()
        for round_ in range(6):
            person.press("Start")
            for step in range(1, evidence.steps + 1):
                person.at_step(step)
                if round_ == 5 and step == evidence.steps:
                    page.screenshot(path=tmp_path / "step.png")
                    person.pick(1)
                    person.confirm()
                else:
                    person.teach(nth=step)
        expect(page.locator("#comments")).to_be_visible()
        page.locator(".page .primary").click()
        person.heading("You have finished the study")
        expect(page.get_by_role("heading", name="Three kinds of robot")).to_be_visible()
        with contextlib.closing(page.context.browser.new_context()) as context:
            desk = context.new_page()
            desk.goto(f"{address}/dashboard")
            desk.get_by_label("Password").fill(PASSWORD)
            desk.get_by_role("button", name="Log in").click()
            names = ["teacher-aware", "belief from arrows", "belief from choices too"]
            expect(desk.locator(".line-key li")).to_have_text(names)
            letters = desk.locator(".people td code").first
            expect(letters).to_have_text(re.compile("^[API] [API]$"))
            desk.screenshot(path=tmp_path / "dashboard.png", full_page=True)
