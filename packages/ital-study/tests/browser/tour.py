"""A person who sees every page of a study, in any language: finds things by their place, not by
their words.
"""

import dataclasses
import re

import ital_study as study
from ital_study.config.languages import PSEUDO, pseudo_text
from ital_study.config.quality import AttentionCheck
from ital_study.config.toml import toml_text
from tests.questions import asking

# Keys whose values people read.
TEXTS = ("title", "text", "question", "options", "debriefing", "scale")


def pseudo(value):
    """Texts in the pseudo-language, line by line: marks of Markdown stay where they are."""
    if isinstance(value, list):
        return [pseudo(item) if item else item for item in value]
    lines = re.findall(r"^(\s*(?:#+ |- |\d+\. )?)(.*)$", value, re.MULTILINE)
    return "\n".join(mark + (pseudo_text(text) if text else "") for mark, text in lines)


def _pseudo_texts(content):
    if isinstance(content, list):
        return [_pseudo_texts(item) for item in content]
    if not isinstance(content, dict):
        return content
    return {
        key: pseudo(value) if key in TEXTS else _pseudo_texts(value)
        for key, value in content.items()
    }


def everything(palette="safe"):
    """A study that has every kind of page."""
    checks = (AttentionCheck("A", 1, 2, "bottom-right"),)
    return dataclasses.replace(asking(steps=2, warm_up_steps=1), attention=checks, palette=palette)


def pseudo_study(palette="safe"):
    """The same, with every text in the pseudo-language, which runs from right to left."""
    content = _pseudo_texts(everything(palette).as_dict())
    content["fields"] = {key: pseudo(value) for key, value in content["fields"].items()}
    del content["translations"]
    return study.parse_config(toml_text(content | {"language": PSEUDO}))


def answer(page):
    """Fill in a page of questions and send it."""
    for box in page.locator(".question").all():
        kind = box.get_attribute("data-kind")
        if kind in ("number", "text"):
            box.locator("input, textarea").fill(
                box.locator("input, textarea").get_attribute("max") or "34"
            )
        else:
            for row in box.locator("[role=radiogroup]").all() or [box]:
                row.locator("input").nth(1).check()
    page.locator("form .primary").click()


def tour(page, address, config, look, name):
    """Go through every page; ``look(where)`` looks at each."""
    _read(page, address, config, look, name)
    _teach(page, look)
    look("comments")
    page.locator(".page .primary").click()
    page.locator(".code-row").wait_for()
    page.locator(".code-row button").click()
    page.locator(".withdrawal button").click()
    look("finished")
    page.locator(".withdrawal .danger").click()
    page.locator("h1:focus").wait_for()
    look("left")


def _read(page, address, config, look, name):
    """The pages before the teaching."""
    page.goto(f"{address}/")
    page.locator(".large").wait_for()
    page.locator(".resume-box summary").click()
    page.locator(".resume-form button").click()
    look("welcome")
    page.goto(f"{address}/?id={name}")
    page.locator(".prose").wait_for()
    look("consent")
    page.locator(".page .primary").click()
    for number in range(len(config.instructions)):
        page.locator(f".dot:nth-child({number + 1}).now").wait_for(state="attached")
        look(f"instructions {number + 1}")
        page.locator(".spread .primary").click()
    page.locator(".check").wait_for()
    page.locator(".check .primary").click()
    look("questions of the check")
    page.locator(".check .buttons button").nth(1).click()
    look("instructions again")
    page.locator("dialog button.primary").click()
    for shift in (1, 0):
        for q, question in enumerate(config.check):
            page.locator(f"input[name=question-{q}]").nth(
                (question.answer + shift) % len(question.options)
            ).check()
        page.locator(".check .primary").click()
        if shift:
            page.locator(".warning").wait_for()
            look("second try")


def _teach(page, look):
    """Rounds and questionnaires, to the comments."""
    seen = set()
    while True:
        page.locator(".questions, .interlude, [role=option], #comments").first.wait_for()
        if page.locator("#comments").count():
            break
        if page.locator(".questions").count():
            title = page.locator("h1").inner_text()
            if title not in seen:
                if page.locator(".question:not(:has(.fine))").count():
                    page.locator("form .primary").click()  # something is required: with the errors
                look(f"questions {len(seen)}")
            seen.add(title)
            answer(page)
            page.wait_for_function(
                "title => document.querySelector('h1')?.innerText !== title", arg=title
            )
        elif page.locator(".interlude").count():
            look("note before a round")
            page.locator(".interlude .primary").click()
        else:
            _step(page, look, seen)


def _step(page, look, seen):
    """One step, or an attention check; the first few are looked at more closely."""
    head = page.locator(".round-head").inner_text() + page.locator(".hint").inner_text()
    page.locator("[role=option]").nth(3).click()
    page.locator(".confirm:enabled").wait_for()
    look("step")
    if "left" not in seen:
        seen.add("left")
        page.locator("#leave").click()
        look("leave")
        page.locator("dialog .danger").click()
        look("delete")
        page.keyboard.press("Escape")
    page.locator(".confirm").click()
    page.wait_for_function(
        """head => {
          const [round, hint] = [".round-head", ".hint"].map((one) => document.querySelector(one));
          const confirm = document.querySelector(".confirm");
          return !round || (confirm.textContent && round.innerText + hint.innerText !== head
            && !document.querySelector(".locked"));
        }""",
        arg=head,
    )
    largest = page.locator(".change button")
    if largest.is_visible():
        look("too little to see")
        largest.click()
        look("largest change")
