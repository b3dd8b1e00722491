"""The walk of one click, for walks.py: a real server, a real browser, a database in a temporary
folder.
"""

import dataclasses
import shutil
import socket
import tempfile
import threading
import time
from typing import Any

PAGE = "ital_study/pages/static/"


def filled(value: Any) -> Any:
    """A configuration without its placeholders, so that it may be served."""
    from ital_study.config.texts import PLACEHOLDER

    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item) for item in value]
    return PLACEHOLDER.sub("filled in", value) if isinstance(value, str) else value


def served(folder: str) -> tuple[Any, Any, str]:
    """A study that is being served: its configuration, its server and its address."""
    import uvicorn
    from argon2 import PasswordHasher

    from ital_study import load_config
    from ital_study.config.load import config_of
    from ital_study.server import ServerSettings, create_app

    whole = config_of(filled(load_config("short").as_dict()))
    config = dataclasses.replace(whole, questionnaires=(), translations={}, attention=())
    app = create_app(
        config, f"{folder}/study.db", ServerSettings(PasswordHasher().hash("nobody's"), b"s" * 32)
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, port=port, ws="none", log_level="error")
    )
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return config, server, f"http://127.0.0.1:{port}"


def read(page: Any, config: Any) -> None:
    """Goes from the consent to the first arrows."""
    page.locator(".page .primary").click()
    for number in range(len(config.instructions)):
        page.locator(f".dot:nth-child({number + 1}).now").wait_for(state="attached")
        page.locator(".spread .primary").click()
    page.locator(".check").wait_for()
    for q, question in enumerate(config.check):
        page.locator(f"input[name=question-{q}]").nth(question.answer).check()
    page.locator(".check .primary").click()
    page.locator(".interlude .primary").click()
    page.locator("[role=option]").first.wait_for()


def scripts(coverage: dict[str, Any]) -> list[tuple[str, str]]:
    """The page's scripts in which a function ran, with one of the functions."""
    ran = []
    for script in coverage["result"]:
        inside = [
            one for one in script["functions"] if one["functionName"] and one["ranges"][0]["count"]
        ]
        if "/static/" in script["url"] and inside:
            ran.append(
                (
                    PAGE + script["url"].rpartition("/")[2].partition("?")[0],
                    inside[0]["functionName"],
                )
            )
    return sorted(set(ran))


def walk(make_trace: Any) -> list[tuple[str, str]]:
    """Picks an arrow, confirms it and waits for the next ones; returns the files in which something
    ran.
    """
    from playwright.sync_api import sync_playwright

    trace = make_trace()  # before the server's threads
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        config, server, address = served(folder)
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(60_000)
        page.goto(f"{address}/?id=walker")
        read(page, config)
        # The second choice is walked: the first one compiles.
        choose(page)
        session = page.context.new_cdp_session(page)
        session.send("Profiler.enable")
        session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})
        session.send("Profiler.takePreciseCoverage")
        trace.on = True
        choose(page)
        trace.on = False
        ran = scripts(session.send("Profiler.takePreciseCoverage"))
        browser.close()
        server.should_exit = True
        time.sleep(1)
    return [*ran, *trace.stop()]


def choose(page: Any) -> None:
    """Picks the first arrow, confirms it, and waits until the answer is shown and the next arrows
    are there.
    """
    with page.expect_response(lambda answer: answer.url.endswith("/api/steps")):
        page.locator("[role=option]").first.click()
        page.locator(".confirm").click()
    page.wait_for_function(
        "document.querySelectorAll('[role=option]:not([aria-disabled=true])').length > 0"
    )
    time.sleep(3)  # what the page still sends
