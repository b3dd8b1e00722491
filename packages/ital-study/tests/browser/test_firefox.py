"""The participant's path in a second browser.

It is Firefox, driven over WebDriver BiDi by puppeteer-core.
"""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ital_study.store import open_store
from ital_study.store.export import export_study
from tests.browser.conftest import ROOT, serving, study_app, study_config

MODULES = ROOT / "build" / "node" / "node_modules"


@pytest.fixture(scope="module")
def firefox():
    """The programs of this test, which is skipped where one is missing; ``make tools`` helps."""
    browser, node = shutil.which("firefox-esr") or shutil.which("firefox"), shutil.which("node")
    if browser is None or node is None:
        pytest.skip(
            "there is no firefox or no node on this machine "
            "(Debian: apt install firefox-esr nodejs)"
        )
    if not (MODULES / "puppeteer-core").is_dir():
        pytest.skip(
            "puppeteer-core is not there: make tools, "
            "or npm install --prefix build/node puppeteer-core@24"
        )
    return browser, node


def take_part(firefox, address, config):
    """What a participant in Firefox saw."""
    browser, node = firefox
    answers = [question.answer for question in config.check]
    told = {"modules": str(MODULES), "browser": browser, "address": address, "answers": answers}
    script = Path(__file__).with_name("firefox.mjs")
    ran = subprocess.run(
        [node, script, json.dumps(told)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


def test_the_main_path_in_firefox(firefox, tmp_path):
    config = study_config()
    with serving(study_app(tmp_path, config)) as address:
        seen = take_part(firefox, address, config)
    assert seen["browser"].lower().startswith("firefox")
    assert seen["troubles"] == []
    assert seen["stages"] == ["page", "check", *["interlude", "teach"] * 5, "comments", "done"]
    assert seen["inputs"] == ["mouse", "keyboard"] * 5
    # The step before the reload is stored, and none is taken twice.
    assert seen["done_after_reload"] == [1, 1]
    assert seen["code"] == config.completion.code
    with open_store(str(tmp_path / "study.db")) as store:
        export_study(store, tmp_path / "export", "live")
    with (tmp_path / "export" / "steps.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len({(row["map"], row["learner"], row["step"]) for row in rows}) == 8
    assert all(
        0 < float(row["seconds_to_choice"]) <= float(row["seconds_to_confirm"]) for row in rows
    )
