"""Takes the report's picture of the study's page.

Run it with ``python tools/interface.py [--config FILE] [--out FILE]``.

The tool serves a study from an empty database and opens it in Chromium, at the first step of the
first map, with an arrow picked. OUT.svg (default: the picture that comes with ital-study) is the
page itself, its elements and styles as text, so that the repository holds no binary file. OUT.png
is a screenshot. The tool needs the extra ``dev`` of ital-study, and Chromium.
"""

import argparse
import contextlib
import dataclasses
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ital_study as study
from ital.errors import InputError
from ital_study import Config

SHIPPED = Path(__file__).parents[1] / "packages/ital-study/src/ital_study/pages/interface.svg"
# The size that the page is designed for:
WIDE = 1280
HIGH = 720
PICKED = 4  # the arrow, in reading order
SNAPSHOT = (Path(__file__).parent / "snapshot.js").read_text("utf-8")


@contextlib.contextmanager
def serving(config: Config, folder: Path) -> Iterator[str]:
    """Serve a study with its data in a folder; yield its address."""
    import uvicorn
    from argon2 import PasswordHasher

    from ital_study.server import ServerSettings, create_app

    app = create_app(
        config,
        str(folder / "study.db"),
        ServerSettings(PasswordHasher().hash("nobody's"), b"s" * 32),
    )
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, ws="none", log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            if not thread.is_alive():
                raise InputError("the study's server did not start")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(30)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise InputError("there is no chromium on this machine (Debian: apt install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def go_to_first_step(page: Any, address: str, config: Config) -> None:
    """Take part up to the first step that counts, without the pages, and open that step."""
    state: dict[str, Any] = {}

    def send(path: str, body: dict[str, Any]) -> None:
        headers = {"X-CSRF-Token": state["csrf"]} if state else {}
        answer = page.context.request.post(f"{address}/api/{path}", data=body, headers=headers)
        if not answer.ok:
            raise InputError(f"the study's server refused {path}: {answer.text()}")
        state.update(answer.json())

    send("join", {"ids": {"id": "picture"}, "resume": None, "mode": "live"})
    send("consent", {"accepted": True, "version": config.consent.version})
    send("instructions", {})
    answers = [question.answer for question in config.check]
    send("check", {"answers": answers, "tries_left": state["check"]["tries_left"]})
    while state["stage"] == "warm_up":
        scene = state["scene"]
        send("steps", {"round": scene["round"], "step": scene["step"], "choice": 0, "timing": {}})
    page.goto(f"{address}/?id=picture")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("option").nth(PICKED).click()
    page.mouse.move(0, 0)


def as_svg(page: Any) -> str:
    """The current page as a self-contained SVG picture."""
    taken = page.evaluate(SNAPSHOT)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" '
        f'viewBox="0 0 {WIDE} {HIGH}">\n'
        f"<style>{taken['css']}</style>\n"
        f'<foreignObject width="{WIDE}" height="{HIGH}">{taken["body"]}</foreignObject>\n</svg>\n'
    )


def take(config: Config, out: Path) -> None:
    """Take the picture of a study."""
    # One practice step is enough; the picture shows neither the practice nor questions.
    config = dataclasses.replace(config, warm_up_steps=1, questionnaires=())
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(config, Path(folder)) as address,
        browser() as chromium,
    ):
        page = chromium.new_page(viewport={"width": WIDE, "height": HIGH})
        page.emulate_media(reduced_motion="reduce")
        go_to_first_step(page, address, config)
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix == ".png":
            page.screenshot(path=out)
        else:
            out.write_text(as_svg(page), "utf-8")
    print(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--config", help="the study: a TOML file, or short (default: the paper's study)"
    )
    parser.add_argument("--out", type=Path, default=SHIPPED, help="an .svg or a .png file")
    options = parser.parse_args()
    try:
        take(study.load_config(options.config), options.out)
    except InputError as error:
        sys.exit(str(error))
