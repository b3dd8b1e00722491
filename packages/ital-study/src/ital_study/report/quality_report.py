"""Data quality in the report.

Flags, who is left out and why, and the comparison with and without them.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ital import report
from ital.report import Block
from ital.statistics import decimals, p_value, stars
from ital.tools.files import write as put
from ital_study.analysis.measures import ALL_MAPS, ARMS, CLAIMED, Analysis, Arm, arm, measures
from ital_study.config.quality import FLAGS
from ital_study.data.left_out import BEFORE

if TYPE_CHECKING:
    import pandas as pd

DECIDED = {BEFORE: "the configuration's rule, stated before the data came"}
LATER = "the researcher, afterwards"


def write(analysis: Analysis, out: Path) -> list[Path]:
    """Write the tests of everybody, and who is left out and why.

    Args:
        analysis: The analysis.
        out: Folder.

    Returns:
        The files.
    """
    tables = {
        "tests_full": analysis.full,
        "left_out": analysis.left_out.reasons,
    }
    files = []
    for name, table in tables.items():
        labelled = table.assign(data=analysis.kind, mode=analysis.mode)
        text = labelled.to_csv(index=False, lineterminator="\n")
        file = out / f"{name}.csv"
        put(file, text.encode())
        files.append(file)
    return files


def summary(analysis: Analysis) -> str:
    """Say how many people are left out, and by which rule."""
    gone = analysis.left_out
    people = len(gone.people)
    if gone.everybody:
        summary_of_people = (
            f"The rule and the researcher leave out everybody who finished ({people}). "
            "Nobody is left to analyse; tests_full.csv still compares everybody."
        )
    elif gone.size:
        summary_of_people = (
            f"{gone.size} of {people} people who finished are left out of everything in this "
            "report except the comparison in the section on data quality, which shows everybody "
            "as well."
        )
    else:
        summary_of_people = (
            f"Nobody of the {people} people who finished is left out: "
            "the full and the filtered analysis agree."
        )
    flags = ", ".join(analysis.config.quality.exclude)
    if not flags:
        return summary_of_people
    rule = f"The configuration leaves out people with a flag among {flags}."
    return f"{summary_of_people} {rule}"


def blocks(analysis: Analysis, first: Arm, second: Arm) -> list[Block]:
    """Return the section of the report.

    The rule, the reasons, both comparisons side by side, and all flags.

    Args:
        analysis: The analysis.
        first: Arm of the comparison.
        second: Arm that it is compared with.

    Returns:
        The blocks.
    """
    section = [report.paragraph(summary(analysis))]
    if analysis.left_out.size:
        section += [reasons_table(analysis), *both(analysis, first, second)]
    return [*section, flags_table(analysis)]


def nobody_blocks(analysis: Analysis) -> list[Block]:
    """Return the same section if everybody is left out: without a comparison.

    Args:
        analysis: The analysis.

    Returns:
        The blocks.
    """
    return [report.paragraph(summary(analysis)), reasons_table(analysis), flags_table(analysis)]


def reasons_table(analysis: Analysis) -> Block:
    """Return why people are left out; somebody with two reasons counts under both."""
    reasons = analysis.left_out.reasons
    counts = Counter(zip(reasons["decided"], reasons["reason"], strict=True))
    rows = []
    for (decided, reason), count in counts.items():
        by_whom = DECIDED.get(decided, LATER)
        rows.append([reason, by_whom, count])
    return report.table(
        ["reason", "decided by", "people"],
        rows,
        caption="Left out, and why",
        numbers_from=2,
    )


def flags_table(analysis: Analysis) -> Block:
    """Return how many people have each flag, and whether it leaves them out."""
    quality = analysis.config.quality
    people = analysis.left_out.people
    texts = quality.texts()
    rows = [
        [
            name,
            texts[name],
            "yes" if name in quality.exclude else "no",
            int(people[f"flag_{name}"].fillna(False).sum()),
        ]
        for name in FLAGS
    ]
    caption = "Flags of the people who finished; thresholds of the configuration"
    return report.table(
        ["flag", "what it says of a person", "leaves out", "people"],
        rows,
        caption=caption,
        numbers_from=3,
    )


def both(analysis: Analysis, first: Arm, second: Arm) -> list[Block]:
    """Return the comparison of two arms on every map, for each main outcome.

    It shows everybody beside those who are not left out.
    """
    titles = measures(analysis.config.steps)
    heads = ["map"]
    for people in ("everybody", "filtered"):
        heads += [f"n, {people}", "difference", "95 % interval", "p (Holm)"]
    tables = []
    for outcome in CLAIMED:
        digits = digits_of(outcome)
        # A row per map: its name, the cells of everybody, the cells of those who are not left out.
        rows: dict[str, list[str]] = {}
        for tests in (analysis.full, analysis.tests):
            selected = tests_of(tests, outcome, first, second)
            for test in selected.to_dict("records"):
                name = str(test["map"])
                if test["map"] == ALL_MAPS:
                    name = "mean over maps"
                row = rows.setdefault(name, [name])
                row += _test_cells(test, digits)
        title = titles[outcome].title
        caption = f"{title}: {arm(*first)} against {arm(*second)}, with and without those left out"
        tables.append(report.table(heads, rows.values(), caption=caption, numbers_from=1))
    return tables


def _test_cells(test: Mapping[Any, Any], digits: int) -> list[str]:
    low = decimals(test["low"], digits)
    high = decimals(test["high"], digits)
    p_holm = test["p_holm"]
    return [
        str(test["n"]),
        decimals(test["difference"], digits),
        f"{low} … {high}",
        f"{p_value(p_holm)} {stars(p_holm)}".strip(),
    ]


def tests_of(
    tests: "pd.DataFrame",
    outcome: str,
    first: Arm,
    second: Arm,
) -> "pd.DataFrame":
    """Select the tests of an outcome between two arms.

    Args:
        tests: The table of tests.
        outcome: The outcome.
        first: The arm of the comparison.
        second: The arm that it is compared with.

    Returns:
        Their rows: one per map, and one over maps.
    """
    arms = dict(zip(ARMS, (*first, *second), strict=True))
    selected = tests["outcome"] == outcome
    for column, name in arms.items():
        selected &= tests[column] == name
    return tests[selected]


def digits_of(outcome: str) -> int:
    """Return the number of digits after the point of an outcome.

    Chances need more, rewards fewer.
    """
    if outcome.startswith("policy"):
        return 3
    if outcome.startswith("reward"):
        return 1
    return 2
