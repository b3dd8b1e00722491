"""The report as data: sections of blocks, from which the page is made and which is stored as text beside it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ital._files import write
from ital._version import __version__
from ital.errors import InputError
from ital.figures import charts, save
from ital.report import figures_in, section
from ital.report import page as as_page
from ital.reproduce._plan import STARTS, Scale
from ital.reproduce.sections import Context, all_sections
from ital.statistics import number

FORMAT = 1
TITLE = "Iterative Teacher-Aware Learning, reproduced"
LEAD = (
    "Every figure and table of the paper, measured again, beside what the paper says of them. Each claim is judged by "
    "a rule that the data could have failed."
)
FILES = ("main", "controls", "theorem", "sharpness", "random")  # figures that are written as files, too


def build(context: Context) -> dict[str, Any]:
    """Every section that has something to show."""
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
    """How much was computed."""
    return f"{scale.seeds} seeds, {scale.steps} steps"


def under_way(tasks: Sequence[str]) -> str:
    """What a reader of an unfinished report must know."""
    return f"Still computing: {', '.join(tasks)}. Reload this page to see more." if tasks else ""


def warning(scale: Scale) -> str:
    """What a reader of a quick report must know."""
    if not scale.quick:
        return ""
    return (
        f"Quick run: {scale.seeds} seeds and {scale.steps} steps instead of 20 and 2000. It shows the shape of things. "
        "Verdicts may change in the full run, which is: ital reproduce."
    )


def publish(report: dict[str, Any], out: Path, *, files: bool = True) -> Path:
    """Writes OUT/report.json, OUT/index.html and, with ``files``, some figures; returns the page's path."""
    write(out / "report.json", dump(report).encode())
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for block in figures_in(block for part in report["sections"] for block in part["blocks"]):
        if files and block["name"] in FILES:
            drawn = charts.chart(block["panels"], block["title"], columns=block["columns"], note=block["note"])
            save(drawn, folder / block["name"])
    write(out / "index.html", page(report).encode())
    return out / "index.html"


def page(report: dict[str, Any]) -> str:
    """The report as one page that needs no other file."""
    return as_page(TITLE, report["sections"], lead=LEAD, banner=report["warning"], version=report["version"])


def dump(report: dict[str, Any]) -> str:
    """A report as text, a line per section, so that two of them can be compared."""

    def plain(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    parts = {name: plain(value) for name, value in report.items() if name != "sections"}
    parts["sections"] = "[\n" + ",\n".join(plain(part) for part in report["sections"]) + "\n]"
    return "{\n" + ",\n".join(f"{plain(name)}:{part}" for name, part in parts.items()) + "\n}\n"


def load(file: Path) -> dict[str, Any]:
    """A stored report; refuses what is none."""
    try:
        report = json.loads(file.read_text("utf-8"))
        if report["format"] != FORMAT:
            raise InputError(f"{file} is a report of another format: make it again with ital reproduce")
    except OSError:
        raise InputError(f"there is no report {file}: ital reproduce makes one") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{file} is not a report of ital reproduce") from None
    return report


def claims(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the claims, as they are in the report."""
    blocks = [block for section in report["sections"] for block in section["blocks"]]
    return next((block["rows"] for block in blocks if block["kind"] == "claims"), [])


def markdown(report: dict[str, Any]) -> str:
    """The claims as a short table for a README, every number as it is in the report."""
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
        lines.append(f"| {row['claim']} | {row['verdict']} | {' | '.join(counts)} | {'; '.join(others)} |")
    return "\n".join(lines) + "\n"
