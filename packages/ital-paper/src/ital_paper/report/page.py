"""The report as data: sections of blocks, stored as JSON and rendered as a page."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ital import __version__
from ital.errors import InputError
from ital.figures import charts, save
from ital.report import Block, figures_in, section
from ital.report import page as as_page
from ital.statistics import number
from ital.tools.files import write
from ital_paper.experiments.plan import STARTS, Scale
from ital_paper.report.sections import Context, all_sections

FORMAT = 1
TITLE = "Iterative Teacher-Aware Learning, reproduced"
LEAD = (
    "Every figure and table of the paper, measured again and compared with the paper's claims. "
    "Each claim is judged by a rule that the data could have failed."
)
# Figures that are also written as files:
FILES = ("main", "controls", "theorem", "sharpness", "random")


def build_report(context: Context) -> dict[str, Any]:
    """Build every section that has something to show."""
    sections = [section(part.title, part.id, part.build(context)) for part in all_sections()]
    banners = [under_way(context.pending), warning(context.scale)]
    return {
        "format": FORMAT,
        "version": __version__,
        "quick": context.scale.quick,
        "scale": scale_in_words(context.scale),
        "warning": " ".join(filter(None, banners)),
        "sections": [part for part in sections if part["blocks"]],
    }


def scale_in_words(scale: Scale) -> str:
    """Say the scale of the run."""
    return f"{scale.seeds} seeds, {scale.steps} steps"


def under_way(tasks: Sequence[str]) -> str:
    """Return the banner of an unfinished report."""
    return f"Still computing: {', '.join(tasks)}. Reload this page to see more." if tasks else ""


def warning(scale: Scale) -> str:
    """Return the banner of a quick report."""
    if not scale.quick:
        return ""
    return (
        f"Quick run: {scale.seeds} seeds and {scale.steps} steps instead of 20 and 2000. "
        "It shows the general picture. "
        "Verdicts may change in the full run: ital reproduce."
    )


def publish(
    report: dict[str, Any],
    out: Path,
    *,
    files: bool = True,
) -> Path:
    """Write OUT/report.json, OUT/index.html and, with ``files``, some figures.

    Returns:
        The page.
    """
    # The data come first: a page can be made from them again.
    write(out / "report.json", dump(report).encode())
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    if files:
        for block in figures_in(_blocks_of(report)):
            if block["name"] in FILES:
                _save_figure(block, folder)
    write(out / "index.html", page(report).encode())
    return out / "index.html"


def _blocks_of(report: dict[str, Any]) -> list[Block]:
    return list(itertools.chain.from_iterable(part["blocks"] for part in report["sections"]))


def _save_figure(block: Block, folder: Path) -> None:
    figure = charts.chart(
        block["panels"], block["title"], columns=block["columns"], note=block["note"]
    )
    save(figure, folder / block["name"])


def page(report: dict[str, Any]) -> str:
    """Return the report as one self-contained page."""
    return as_page(
        TITLE, report["sections"], lead=LEAD, banner=report["warning"], version=report["version"]
    )


def dump(report: dict[str, Any]) -> str:
    """Return a report as JSON text with one line per section, so that reports can be compared."""
    # The sections come last, whatever their position in the report.
    lines = [
        f"{_compact(name)}:{_compact(value)}"
        for name, value in report.items()
        if name != "sections"
    ]
    sections = ",\n".join(map(_compact, report["sections"]))
    lines.append(f'"sections":[\n{sections}\n]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def load_report(file: Path) -> dict[str, Any]:
    """Read a stored report; raise if the file is not one."""
    try:
        report = json.loads(file.read_text("utf-8"))
        written_in = report["format"]
    except OSError:
        raise InputError(f"there is no report {file}: make one with ital reproduce") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{file} is not a report of ital reproduce") from None
    if written_in != FORMAT:
        raise InputError(f"{file} is a report in another format: make it again with ital reproduce")
    return report


def claims(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the claims, as in the report."""
    lists = [block["rows"] for block in _blocks_of(report) if block["kind"] == "claims"]
    return lists[0] if lists else []


def markdown(report: dict[str, Any]) -> str:
    """Return the claims as a short table for a README, with every number as in the report."""
    starts = [f"{start} start" for start in STARTS]
    run = "A quick run" if report["quick"] else "The full run"
    lines = [
        f"{run}: {report['scale']}. In how many places each claim "
        "holds, from each of the two starts; then its number, the median over all places.",
        "",
        f"| | verdict | {' | '.join(starts)} | |",
        "|---|---|---|---|---|",
        *(_markdown_row(row, starts) for row in claims(report)),
    ]
    return "\n".join(lines) + "\n"


def _markdown_row(row: dict[str, Any], starts: list[str]) -> str:
    counts = {
        tally["start"]: f"{tally['held']} of {tally['of']}" if tally["of"] else "not run"
        for tally in row["tallies"]
    }
    from_starts = [counts.pop(start, "") for start in starts]
    # What is left is the study, which has no start and so no column.
    others = [f"{name}: {count}" for name, count in counts.items()]
    if row["range"]:
        _, median, _ = row["range"]
        others.append(f"{row['value']}: {number(median)}")
    return (
        f"| {row['claim']} | {row['verdict']} | {' | '.join(from_starts)} | {'; '.join(others)} |"
    )
