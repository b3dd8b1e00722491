"""The report as data: sections of blocks, stored as JSON and rendered as a page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ital import __version__
from ital.errors import InputError
from ital.figures import charts, save
from ital.report import figures_in, section
from ital.report import page as as_page
from ital.statistics import number
from ital.tools.files import write
from ital_paper.experiments.plan import STARTS, Scale
from ital_paper.report.sections import Context, all_sections

FORMAT = 1
TITLE = "Iterative Teacher-Aware Learning, reproduced"
LEAD = (
    "Every figure and table of the paper, measured again and compared with the paper's claims. Each claim is judged by "
    "a rule that the data could have failed."
)
FILES = (
    "main",
    "controls",
    "theorem",
    "sharpness",
    "random",
)  # figures that are also written as files


def build(context: Context) -> dict[str, Any]:
    """Build every section that has something to show."""
    sections = [section(part.title, part.id, part.build(context)) for part in all_sections()]
    return {
        "format": FORMAT,
        "version": __version__,
        "quick": context.scale.quick,
        "scale": scale_in_words(context.scale),
        "warning": " ".join(filter(None, [under_way(context.pending), warning(context.scale)])),
        "sections": [part for part in sections if part["blocks"]],
    }


def scale_in_words(scale: Scale) -> str:
    """The scale of the run in words."""
    return f"{scale.seeds} seeds, {scale.steps} steps"


def under_way(tasks: Sequence[str]) -> str:
    """The banner of an unfinished report."""
    return f"Still computing: {', '.join(tasks)}. Reload this page to see more." if tasks else ""


def warning(scale: Scale) -> str:
    """The banner of a quick report."""
    if not scale.quick:
        return ""
    return (
        f"Quick run: {scale.seeds} seeds and {scale.steps} steps instead of 20 and 2000. It shows the general picture. "
        "Verdicts may change in the full run: ital reproduce."
    )


def publish(report: dict[str, Any], out: Path, *, files: bool = True) -> Path:
    """Write OUT/report.json, OUT/index.html and, with ``files``, some figures; return the page's path."""
    write(out / "report.json", dump(report).encode())
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for block in figures_in(block for part in report["sections"] for block in part["blocks"]):
        if files and block["name"] in FILES:
            drawn = charts.chart(
                block["panels"], block["title"], columns=block["columns"], note=block["note"]
            )
            save(drawn, folder / block["name"])
    write(out / "index.html", page(report).encode())
    return out / "index.html"


def page(report: dict[str, Any]) -> str:
    """The report as one self-contained page."""
    return as_page(
        TITLE, report["sections"], lead=LEAD, banner=report["warning"], version=report["version"]
    )


def dump(report: dict[str, Any]) -> str:
    """A report as JSON text with one line per section, so that two reports can be compared."""

    def plain(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    parts = {name: plain(value) for name, value in report.items() if name != "sections"}
    parts["sections"] = "[\n" + ",\n".join(plain(part) for part in report["sections"]) + "\n]"
    return "{\n" + ",\n".join(f"{plain(name)}:{part}" for name, part in parts.items()) + "\n}\n"


def load(file: Path) -> dict[str, Any]:
    """Read a stored report; raise if the file is not one."""
    try:
        report = json.loads(file.read_text("utf-8"))
        if report["format"] != FORMAT:
            raise InputError(
                f"{file} is a report in another format: make it again with ital reproduce"
            )
    except OSError:
        raise InputError(f"there is no report {file}: make one with ital reproduce") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{file} is not a report of ital reproduce") from None
    return report


def claims(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the claims, as in the report."""
    blocks = [block for section in report["sections"] for block in section["blocks"]]
    return next((block["rows"] for block in blocks if block["kind"] == "claims"), [])


def markdown(report: dict[str, Any]) -> str:
    """The claims as a short table for a README, with every number as in the report."""
    starts = [f"{start} start" for start in STARTS]
    lines = [
        f"{'A quick run' if report['quick'] else 'The full run'}: {report['scale']}. In how many places each claim "
        "holds, from each of the two starts; then its number, the median over all places.",
        "",
        f"| | verdict | {' | '.join(starts)} | |",
        "|---|---|---|---|---|",
    ]
    for row in claims(report):
        tallies = {
            tally["start"]: f"{tally['held']} of {tally['of']}" if tally["of"] else "not run"
            for tally in row["tallies"]
        }
        counts = [tallies.pop(start, "") for start in starts]
        others = [f"{what}: {count}" for what, count in tallies.items()]
        if row["range"]:
            others.append(f"{row['value']}: {number(row['range'][1])}")
        lines.append(
            f"| {row['claim']} | {row['verdict']} | {' | '.join(counts)} | {'; '.join(others)} |"
        )
    return "\n".join(lines) + "\n"
