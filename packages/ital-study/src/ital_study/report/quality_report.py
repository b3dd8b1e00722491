"""Data quality in the report: flags, who is left out and why, and the comparison with and without them."""

from collections import Counter
from pathlib import Path

from ital import report
from ital.report import Block
from ital.statistics import decimals, p_value, stars
from ital.tools.files import write as put
from ital_study.analysis.measures import ALL_MAPS, CLAIMED, Analysis, Arm, arm, measures
from ital_study.config.quality import FLAGS
from ital_study.data.left_out import BEFORE

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
    tables = {"tests_full": analysis.full, "left_out": analysis.left_out.reasons}
    for name, table in tables.items():
        labelled = table.assign(data=analysis.kind, mode=analysis.mode)
        put(out / f"{name}.csv", labelled.to_csv(index=False, lineterminator="\n").encode())
    return [out / f"{name}.csv" for name in tables]


def summary(analysis: Analysis) -> str:
    """How many people are left out, and by which rule."""
    gone, people = analysis.left_out, len(analysis.left_out.people)
    flags = analysis.config.quality.exclude
    rule = (
        f"The configuration leaves out people with a flag among {', '.join(flags)}."
        if flags
        else ""
    )
    if gone.everybody:
        words = (
            f"The rule and the researcher leave out everybody who finished ({people}). Nobody is left "
            "to analyse; tests_full.csv still compares everybody."
        )
    elif gone.size:
        words = (
            f"{gone.size} of {people} people who finished are left out of everything in this report except the "
            "comparison in the section on data quality, which shows everybody as well."
        )
    else:
        words = f"Nobody of the {people} people who finished is left out: the full and the filtered analysis agree."
    return " ".join(filter(None, (words, rule)))


def blocks(analysis: Analysis, first: Arm, second: Arm) -> list[Block]:
    """The section of the report: the rule, the reasons, both comparisons side by side, and all flags.

    Args:
        analysis: The analysis.
        first: Arm of the comparison.
        second: Arm that it is compared with.

    Returns:
        The blocks.
    """
    tables = (
        [reasons_table(analysis), *both(analysis, first, second)] if analysis.left_out.size else []
    )
    return [report.paragraph(summary(analysis)), *tables, flags_table(analysis)]


def nobody_blocks(analysis: Analysis) -> list[Block]:
    """The same section if everybody is left out: without a comparison.

    Args:
        analysis: The analysis.

    Returns:
        The blocks.
    """
    return [report.paragraph(summary(analysis)), reasons_table(analysis), flags_table(analysis)]


def reasons_table(analysis: Analysis) -> Block:
    """Why people are left out; somebody with two reasons counts under both."""
    reasons = analysis.left_out.reasons
    counts = Counter(zip(reasons["decided"], reasons["reason"], strict=True))
    rows = [
        [reason, DECIDED.get(decided, LATER), count] for (decided, reason), count in counts.items()
    ]
    return report.table(
        ["reason", "decided by", "people"], rows, caption="Left out, and why", numbers_from=2
    )


def flags_table(analysis: Analysis) -> Block:
    """How many people have each flag, and whether it leaves them out."""
    quality, people = analysis.config.quality, analysis.left_out.people
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
    """The comparison of two arms on every map, with everybody and without those left out, for each main outcome."""
    titles, heads = measures(analysis.config.steps), ["map"]
    for whose in ("everybody", "filtered"):
        heads += [f"n, {whose}", "difference", "95 % interval", "p (Holm)"]
    found = []
    for outcome in CLAIMED:
        digits = 3 if outcome.startswith("policy") else 1 if outcome.startswith("reward") else 2
        cells: dict[str, list[str]] = {}
        for tests in (analysis.full, analysis.tests):
            own = (
                (tests["teacher"] == first[0])
                & (tests["first"] == first[1])
                & (tests["outcome"] == outcome)
            )
            own &= (tests["second_teacher"] == second[0]) & (tests["second"] == second[1])
            for row in tests[own].to_dict("records"):
                where = "mean over maps" if row["map"] == ALL_MAPS else str(row["map"])
                cells.setdefault(where, [where]).extend(
                    [
                        str(row["n"]),
                        decimals(row["difference"], digits),
                        f"{decimals(row['low'], digits)} … {decimals(row['high'], digits)}",
                        f"{p_value(row['p_holm'])} {stars(row['p_holm'])}".strip(),
                    ]
                )
        caption = f"{titles[outcome].title}: {arm(*first)} against {arm(*second)}, with and without those left out"
        found.append(report.table(heads, cells.values(), caption=caption, numbers_from=1))
    return found
