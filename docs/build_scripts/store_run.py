"""Keeps a finished run for the documentation.

Run it with ``python docs/build_scripts/store_run.py results/quick quick``.

Copies FOLDER/report.json, which ``ital reproduce`` has written, to docs/runs/NAME.json. With the
name ``full`` it also writes the table of all claims into docs/paper/findings.md and a table of six
questions into README.md, so that both show the numbers of the run.

``python docs/build_scripts/store_run.py FOLDER full evidence words again`` replaces only these
sections of the stored run, and the claims that the results in FOLDER can judge: a part that was
added later needs no second full run.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.statistics import number
from ital_paper.report import page as _report
from ital_paper.report.sections import all_sections

DOCS = Path(__file__).parents[1]
README = DOCS.parent / "README.md"
BEGIN = "<!-- from docs/runs/full.json: begin -->\n"
END = "<!-- end -->\n"
LARGEST = 1_500_000  # bytes
# Questions of the README, by the claim that answers each.
QUESTIONS = {
    "ITAL is best on every task and metric": "Does the aware learner end ahead of every baseline?",
    "ITAL beats IMT even if it sees 2 examples": (
        "Does it beat the naive learner when it sees only 2 of 20 examples?"
    ),
    "Adversary: a naive learner barely learns, ITAL does": (
        "Does it learn from a hostile teacher, while the naive learner hardly does?"
    ),
    "ITAL leads by its awareness, not only by its longer step": (
        "Does it beat naive learners whose steps are as long?"
    ),
    "Awareness pays when every method is tuned": (
        "Does it lead when every method has its own best step size?"
    ),
    "Awareness pays as evidence": (
        "Does a learner that reads choices as evidence beat one that reads labels alone?"
    ),
}


def in_place(text: str, table: str, name: str) -> str:
    """Return the text of the file ``name`` with the table between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if END not in rest:
        raise InputError(
            f"{name} has lost its lines {BEGIN.strip()} and {END.strip()}: put them back"
        )
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def short_table(report: dict[str, Any]) -> str:
    """The six questions of the README, with the numbers of the report."""
    claims = {row["claim"]: row for row in _report.claims(report)}
    missing = [claim for claim in QUESTIONS if claim not in claims]
    if missing:
        raise InputError(
            f"the report has no claim {missing[0]!r}: change QUESTIONS in "
            "docs/build_scripts/store_run.py"
        )
    lines = ["| | uniform start | normal:0.1 start | median |", "|---|---|---|---|"]
    for claim, question in QUESTIONS.items():
        row = claims[claim]
        counts = {
            tally["start"]: f"{tally['held']} of {tally['of']}" if tally["of"] else "not run"
            for tally in row["tallies"]
        }
        starts = " | ".join(counts.get(f"{start} start", "") for start in _report.STARTS)
        median = f"{row['value']}: {number(row['range'][1])}" if row["range"] else ""
        lines.append(f"| {question} | {starts} | {median} |")
    return "\n".join(lines) + "\n"


def with_part(stored: dict[str, Any], part: dict[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """Return a stored report with some sections of another one, and the claims that it judges."""
    of_part = {one["id"]: one for one in part["sections"]}
    missing = [name for name in ids if name not in of_part]
    if missing:
        raise InputError(f"the results have no section {', '.join(missing)}: compute them first")
    sections = {one["id"]: one for one in stored["sections"]} | {
        name: of_part[name] for name in ids
    }
    order = [one.id for one in all_sections() if one.id in sections]
    rows = {row["claim"]: row for row in _report.claims(stored)}
    # A claim without data in the part keeps its place and its numbers.
    merged = [row if row["checks"] else rows.get(row["claim"], row) for row in _report.claims(part)]
    for block in sections["claims"]["blocks"]:
        if block["kind"] == "claims":
            block["rows"] = merged
    return stored | {"sections": [sections[name] for name in order]}


def main(folder: str, name: str, *ids: str) -> None:
    """Stores the run, or some sections of it; findings.md and README.md quote the full one."""
    report = _report.load_report(Path(folder) / "report.json")
    if ids:
        report = with_part(_report.load_report(DOCS / "runs" / f"{name}.json"), report, ids)
    content = _report.dump(report)
    if len(content.encode()) > LARGEST:
        raise InputError(
            f"{folder}/report.json is larger than {LARGEST} bytes: too large for the repository"
        )
    pages = {}
    if name == "full":
        findings = DOCS / "paper" / "findings.md"
        pages = {
            README: in_place(README.read_text("utf-8"), short_table(report), "README.md"),
            findings: in_place(
                findings.read_text("utf-8"), _report.markdown(report), "docs/paper/findings.md"
            ),
        }
    (DOCS / "runs").mkdir(exist_ok=True)
    (DOCS / "runs" / f"{name}.json").write_text(content, "utf-8")
    for page, text in pages.items():
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in ("quick", "full"):
        sys.exit("usage: python docs/build_scripts/store_run.py FOLDER quick|full [SECTION …]")
    try:
        main(*sys.argv[1:])
    except InputError as error:
        sys.exit(str(error))
