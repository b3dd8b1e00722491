"""The runs that the documentation shows. README and findings quote the full run and must agree with
it.
"""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from ital.errors import InputError
from ital.report import figures_in
from ital_paper.report import page as _report
from ital_paper.report import sections

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/paper/findings.md")


@pytest.fixture
def store_run():
    spec = importlib.util.spec_from_file_location(
        "store_run", ROOT / "docs" / "build_scripts" / "store_run.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copy(store_run, tmp_path, monkeypatch):
    """The script, which writes to a folder of the test."""
    monkeypatch.setattr(store_run, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(store_run, "README", tmp_path / "README.md")
    (tmp_path / "docs" / "paper").mkdir(parents=True)
    for page in PAGES:
        (tmp_path / page).write_text((ROOT / page).read_text("utf-8"), "utf-8")
    return store_run


def test_the_pages_have_the_numbers_of_the_full_run(store_run):
    report = _report.load_report(ROOT / "docs" / "runs" / "full.json")
    for page, table in zip(
        PAGES, (store_run.short_table(report), _report.markdown(report)), strict=True
    ):
        text = (ROOT / page).read_text("utf-8")
        assert store_run.in_place(text, table, page) == text, (
            "run: python docs/build_scripts/store_run.py FOLDER full"
        )


def test_the_readme_counts_the_adaptive_learners_table_rightly():
    page = (ROOT / "docs" / "paper" / "beyond.md").read_text("utf-8")
    table = page.partition("<!-- adaptive: begin -->")[2].partition("<!-- adaptive: end -->")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.strip().splitlines()[2:]
    ]
    within = [
        float(row[3]) * 1.15 >= float(row[5])
        for row in rows
        if row[1] in ("cooperative", "adversarial")
    ]
    assert all(float(row[5]) <= float(row[2]) for row in rows)
    readme = re.sub(r"\s+", " ", (ROOT / "README.md").read_text("utf-8"))
    assert (
        f"never worse than the naive learner in the {len(rows)} pairs of task and teacher" in readme
    )
    assert (
        "15 % further from the target than the best fixed β in "
        f"{sum(within)} of {len(within)} pairs" in readme
    )


def test_the_readme_fits_two_screens():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 90


@pytest.mark.parametrize("name", ["quick", "full"])
def test_a_stored_run_is_whole_and_of_modest_size(store_run, name):
    file = ROOT / "docs" / "runs" / f"{name}.json"
    assert file.stat().st_size < store_run.LARGEST
    report = _report.load_report(file)
    # Tasks of users are in their own reports; a quick run has no matrix of real and assumed
    # teachers.
    left_out = ("others", "matrix") if report["quick"] else ("others",)
    assert [one["id"] for one in report["sections"]] == [
        one.id for one in sections.SECTIONS if one.id not in left_out
    ]
    figures = figures_in(block for one in report["sections"] for block in one["blocks"])
    assert {figure["note"] == "" for figure in figures} == {not report["quick"]}


def test_the_gallery_is_of_a_quick_run():
    assert _report.load_report(ROOT / "docs" / "runs" / "quick.json")["quick"]


def test_a_new_full_run_changes_the_pages(copy, tmp_path):
    report = _report.load_report(ROOT / "docs" / "runs" / "full.json")
    claims = {row["claim"]: row for row in _report.claims(report)}
    first = next(iter(claims.values()))
    first["verdict"] = "does not hold"
    claims[next(iter(copy.QUESTIONS))]["tallies"][0].update(held=1, of=99)
    (tmp_path / "report.json").write_text(json.dumps(report), "utf-8")
    copy.main(str(tmp_path), "quick")
    for page in PAGES:
        assert (tmp_path / page).read_text("utf-8") == (ROOT / page).read_text("utf-8")
    copy.main(str(tmp_path), "full")
    assert "| 1 of 99 |" in (tmp_path / "README.md").read_text("utf-8")
    assert f"| {first['claim']} | does not hold |" in (
        tmp_path / "docs" / "paper" / "findings.md"
    ).read_text("utf-8")
    assert _report.load_report(tmp_path / "docs" / "runs" / "full.json") == report


def test_a_part_is_added_to_a_stored_run(copy, tmp_path):
    """Its sections and the claims that it judges are new; all others stay."""
    (tmp_path / "docs" / "runs").mkdir()
    full = (ROOT / "docs" / "runs" / "full.json").read_text("utf-8")
    (tmp_path / "docs" / "runs" / "full.json").write_text(full, "utf-8")
    stored, part = json.loads(full), json.loads(full)
    for row in _report.claims(part):
        if row["claim"] == "Awareness pays as evidence":
            row["verdict"] = "does not hold"
        else:
            row |= {"verdict": "not judged", "checks": []}
    for section in part["sections"]:
        section["blocks"] = [
            block if section["id"] == "claims" else {"kind": "paragraph", "words": "new"}
            for block in section["blocks"][:2]
        ]
    (tmp_path / "report.json").write_text(json.dumps(part), "utf-8")
    copy.main(str(tmp_path), "full", "evidence")
    made = _report.load_report(tmp_path / "docs" / "runs" / "full.json")
    for before, after in zip(stored["sections"], made["sections"], strict=True):
        if before["id"] == "evidence":
            assert after["blocks"] == [{"kind": "paragraph", "words": "new"}] * 2
        elif before["id"] != "claims":
            assert after == before
    verdicts = {row["claim"]: row["verdict"] for row in _report.claims(stored)}
    verdicts["Awareness pays as evidence"] = "does not hold"
    assert {row["claim"]: row["verdict"] for row in _report.claims(made)} == verdicts
    with pytest.raises(InputError, match="no section nothing"):
        copy.main(str(tmp_path), "full", "nothing")


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_stored_where_a_page_has_no_place_for_it(copy, tmp_path, page):
    (tmp_path / "report.json").write_text(
        (ROOT / "docs" / "runs" / "full.json").read_text("utf-8"), "utf-8"
    )
    (tmp_path / page).write_text("# ital\n", "utf-8")
    with pytest.raises(InputError, match=f"{page} has lost its lines"):
        copy.main(str(tmp_path), "full")
    assert not (tmp_path / "docs" / "runs").exists()
