"""The interactive figure of the documentation's front page: its steps are those of the library, its
page works.
"""

import contextlib
import functools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import ital
from tests.browsers import chromium
from tests.worlds import numbers_pool

DOCS = Path(__file__).parents[1] / "docs"
STEPS, SIZE, LR, BETA = 10, 6, 0.05, 20.0
RUN = {"steps": STEPS, "lr": LR, "batch_size": SIZE, "beta": BETA}
LEARNERS = {"imt": SIZE, "ital": SIZE, "ital-2": 2}  # name → M

# The figure's own step, from the start through all mini-batches.
WALK = """({ numbers, start, batches }) => {
  const path = [{ naive: start, aware: start }];
  for (const batch of batches) path.push(idea.step(numbers, path.at(-1), batch));
  return path.slice(1);
}"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def front_page(tmp_path_factory):
    """The address of a page that holds the figure alone, as a file."""
    folder = tmp_path_factory.mktemp("front")
    shutil.copytree(DOCS / "_static", folder / "_static")
    fragment = (DOCS / "idea-in-motion.html").read_text(encoding="utf-8")
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>The idea in motion</title>'
    head += '<meta name="viewport" content="width=device-width">'
    (folder / "index.html").write_text(f"{head}<body>{fragment}</body></html>", encoding="utf-8")
    return (folder / "index.html").as_uri()


@pytest.fixture
def opened(browser, front_page):
    """``opened(width)``: the figure in a window of that width; no script may fail and nothing else
    may be fetched.
    """
    troubles = []
    with contextlib.ExitStack() as stack:

        def opened(width=1280, **options):
            size = {"width": width, "height": 800}
            context = stack.enter_context(
                contextlib.closing(browser.new_context(viewport=size, **options))
            )
            page = context.new_page()
            page.set_default_timeout(15_000)
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on(
                "console", lambda line: troubles.append(line.text) if line.type == "error" else None
            )
            page.on(
                "request",
                lambda sent: None if sent.url.startswith("file:") else troubles.append(sent.url),
            )
            page.goto(front_page)
            return page

        yield opened
    assert troubles == []


def plane():
    return ital.tasks.from_pool(
        "plane", functools.partial(numbers_pool, dim=2, outputs=1), ital.losses.squared, beta=BETA
    )


@functools.cache  # one object, so that the learners share one compiled program
def recording(rule):
    """The rule, which also records the random order that decides what the learner sees of a mini-
    batch.
    """

    def update(lesson, *rest):
        places = {f"order_{i}": lesson.order[i].astype(float) for i in range(SIZE)}
        return rule.update(lesson, *rest)._replace(signals=places)

    return rule._replace(update=update)


def with_order(learner):
    def resolve(unresolved, situation):
        resolved = learner.resolve(unresolved, situation)
        return resolved._replace(rule=recording(resolved.rule))

    return learner._replace(resolve=resolve)


def walked(task, name):
    """The start, then mini-batch, volumes, choice and parameters of each step of a session."""
    live = ital.session(task, with_order(ital.learners.make(name)), seed=0, **RUN)
    start, batches, steps = live.params[0].tolist(), [], []
    for _ in range(STEPS):
        examples, volumes = live.candidates, live.volumes
        chosen = int(volumes.argmax())
        metrics = live.choose(chosen)
        order = [int(metrics[f"order_{i}"]) for i in range(SIZE)]
        rows, labels = np.asarray(examples.x.x), np.asarray(examples.labels)[:, 0]
        batches.append({"rows": rows.tolist(), "labels": labels.tolist(), "order": order})
        steps.append({"volumes": volumes, "chosen": chosen, "params": live.params[0]})
    return start, batches, steps


@pytest.mark.usefixtures("x64")
def test_the_figure_takes_the_steps_of_the_library(opened):
    page = opened()
    target = numbers_pool(0, dim=2, outputs=1).learner_target[0]
    task = plane()
    taught = ital.teach(task, learner=list(LEARNERS), seeds=1, eval_every=1, **RUN).curves[
        "distance"
    ]
    lessons = {}
    for name, view in LEARNERS.items():
        start, batches, expected = walked(task, name)
        lessons[name] = json.dumps([start, batches])
        numbers = {"lr": LR, "beta": BETA, "view": view, "target": target.tolist()}
        steps = page.evaluate(WALK, {"numbers": numbers, "start": start, "batches": batches})
        who = "naive" if name == "imt" else "aware"
        for step, wanted in zip(steps, expected, strict=True):
            assert step["chosen"][who] == wanted["chosen"]
            np.testing.assert_allclose(
                step["scores"][who], wanted["volumes"], rtol=1e-6, atol=1e-12
            )
            np.testing.assert_allclose(step[who], wanted["params"], rtol=1e-6)
        distances = [np.linalg.norm(np.subtract(step[who], target)) for step in steps]
        np.testing.assert_allclose(distances, taught.sel(learner=name).values[0, 1:], rtol=1e-6)
    assert len(set(lessons.values())) == 1, (
        "all learners start at one place and get the same mini-batches"
    )
    ends = [taught.sel(learner=name).values[0, -1] for name in LEARNERS]
    assert len(set(np.round(ends, 6))) == len(LEARNERS), "the learners do differ"


def distances(page):
    return [float(page.locator(f"#idea-{who}-distance").inner_text()) for who in ("naive", "aware")]


def tab_to(page, name):
    for _ in range(10):
        if page.evaluate("document.activeElement.id") == f"idea-{name}":
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {name!r}")


def test_the_keyboard_does_everything(opened):
    page = opened()
    status = page.locator("#idea-status")
    assert status.get_attribute("aria-live") == "polite"
    assert re.search(
        r"Both learners are at \(.+\), .+ from the target\. The teacher will show",
        status.inner_text(),
    )
    start = distances(page)
    assert start[0] == start[1]

    tab_to(page, "step")
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    naive, aware = distances(page)
    assert naive < start[0]
    assert aware < start[1]
    assert naive != aware
    said = status.inner_text()
    assert said.startswith("Step 2. The teacher shows ")
    assert "The naive learner is at (" in said
    assert "The aware learner is at (" in said

    tab_to(page, "beta")
    page.keyboard.press("Home")
    assert page.locator("#idea-beta-value").inner_text() == "0"
    assert distances(page) == [naive, naive], "without β the aware learner is naive"
    page.keyboard.press("End")
    assert distances(page)[0] == naive
    assert distances(page)[1] not in (naive, aware)

    tab_to(page, "view")
    whole = distances(page)[1]
    page.keyboard.press("Home")
    assert page.locator("#idea-view").get_attribute("aria-valuetext") == "2 of 6 examples"
    assert page.get_by_role("cell", name="unseen").count() == 4
    assert distances(page)[1] != whole

    page.locator("#idea-step").focus()
    tab_to(page, "restart")
    page.keyboard.press("Enter")
    assert status.inner_text().startswith("Start.")
    assert page.locator("#idea-count").inner_text() == "0 of 40, seed 2"


def test_play_and_pause(opened):
    page = opened(reduced_motion="reduce")
    play = page.locator("#idea-play")
    play.focus()
    page.keyboard.press("Enter")
    assert play.inner_text() == "Pause"
    page.get_by_text("Step 1.").wait_for()
    page.keyboard.press("Enter")
    assert play.inner_text() == "Play"
    assert (
        page.locator(".idea-glide").first.evaluate(
            "mark => getComputedStyle(mark).transitionDuration"
        )
        == "0s"
    )


def test_controls_and_picture_have_names(opened):
    page = opened()
    for role, names in {
        "button": ("Step", "Play", "Restart"),
        "slider": ("β", "M, "),
        "img": ("The plane",),
    }.items():
        for name in names:
            assert page.get_by_role(role, name=name).count() == 1


def test_colours_follow_the_theme(opened):
    """The system's, unless the reader has chosen the other one with furo's button."""
    colour = "getComputedStyle(document.querySelector('.idea-mark.idea-aware')).fill"
    choose = "theme => { document.body.dataset.theme = theme; }"
    light, dark = (opened(color_scheme=scheme) for scheme in ("light", "dark"))
    bright, deep = light.evaluate(colour), dark.evaluate(colour)
    assert bright != deep
    light.evaluate(choose, "dark")
    dark.evaluate(choose, "light")
    assert (light.evaluate(colour), dark.evaluate(colour)) == (deep, bright)


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_scrolls_sideways(opened, width):
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_front_page_shows_the_figure():
    assert "idea-in-motion.html" in (DOCS / "index.md").read_text(encoding="utf-8")
