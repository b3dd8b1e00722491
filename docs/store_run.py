"""Keeps a finished run for the documentation: ``python docs/store_run.py results/quick quick``.

Takes FOLDER/report.json, which ``ital reproduce`` has written, to docs/runs/NAME.json. With the name ``full`` the table
of README.md is made again from it, so that its numbers are those of the run.
"""

import sys
from pathlib import Path

from ital.errors import InputError
from ital.reproduce import _report

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
BEGIN, END = "<!-- from docs/runs/full.json: begin -->\n", "<!-- end -->\n"
LARGEST = 1_500_000  # bytes


def in_readme(readme: str, table: str) -> str:
    """The README with the table in its place."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise InputError(f"README.md has lost its lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main(folder: str, name: str) -> None:
    """Stores the run, and quotes it in the README if it is the full one."""
    report = _report.load(Path(folder) / "report.json")
    content = _report.dump(report)
    if len(content.encode()) > LARGEST:
        raise InputError(f"{folder}/report.json is larger than {LARGEST} bytes: too large for the repository")
    readme = in_readme(README.read_text("utf-8"), _report.markdown(report))
    (DOCS / "runs").mkdir(exist_ok=True)
    (DOCS / "runs" / f"{name}.json").write_text(content, "utf-8")
    if name == "full":
        README.write_text(readme, "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("quick", "full"):
        sys.exit("usage: python docs/store_run.py FOLDER quick|full")
    try:
        main(*sys.argv[1:])
    except InputError as error:
        sys.exit(str(error))
