"""The runs that the documentation shows. The README quotes the full run and must agree with it."""

import importlib.util
import json
from pathlib import Path

import pytest

from ital.errors import InputError
from ital.report import figures_in
from ital.reproduce import _report, sections

ROOT = Path(__file__).parents[1]


@pytest.fixture
def store_run():
    spec = importlib.util.spec_from_file_location("store_run", ROOT / "docs" / "store_run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copy(store_run, tmp_path, monkeypatch):
    """The script, writing to a folder of the test."""
    monkeypatch.setattr(store_run, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(store_run, "README", tmp_path / "README.md")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text("utf-8"), "utf-8")
    return store_run


def test_the_readme_has_the_numbers_of_the_full_run(store_run):
    readme = (ROOT / "README.md").read_text("utf-8")
    table = _report.markdown(_report.load(ROOT / "docs" / "runs" / "full.json"))
    assert store_run.in_readme(readme, table) == readme, "run: python docs/store_run.py FOLDER full"


@pytest.mark.parametrize("name", ["quick", "full"])
def test_a_stored_run_is_whole_and_of_modest_size(store_run, name):
    file = ROOT / "docs" / "runs" / f"{name}.json"
    assert file.stat().st_size < store_run.LARGEST
    report = _report.load(file)
    paper = [one.id for one in sections.SECTIONS if one.id != "others"]  # tasks of users are in their own reports
    assert [one["id"] for one in report["sections"]] == paper
    figures = figures_in(block for one in report["sections"] for block in one["blocks"])
    assert {figure["note"] == "" for figure in figures} == {not report["quick"]}


def test_the_gallery_is_of_a_quick_run():
    assert _report.load(ROOT / "docs" / "runs" / "quick.json")["quick"]


def test_a_new_full_run_changes_the_readme(copy, tmp_path):
    report = _report.load(ROOT / "docs" / "runs" / "full.json")
    _report.claims(report)[0]["verdict"] = "does not hold"
    (tmp_path / "report.json").write_text(json.dumps(report), "utf-8")
    copy.main(str(tmp_path), "quick")
    assert copy.README.read_text("utf-8") == (ROOT / "README.md").read_text("utf-8")
    copy.main(str(tmp_path), "full")
    assert f"| {_report.claims(report)[0]['claim']} | does not hold |" in copy.README.read_text("utf-8")
    assert _report.load(tmp_path / "docs" / "runs" / "full.json") == report


def test_nothing_is_stored_where_the_readme_has_no_place_for_it(copy, tmp_path):
    (tmp_path / "report.json").write_text((ROOT / "docs" / "runs" / "full.json").read_text("utf-8"), "utf-8")
    copy.README.write_text("# ital\n", "utf-8")
    with pytest.raises(InputError, match="has lost its lines"):
        copy.main(str(tmp_path), "full")
    assert not (tmp_path / "docs" / "runs").exists()
