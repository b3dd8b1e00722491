"""The report of a study: tables, figures and one page in HTML and PDF that names the source of its data."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital import __version__, report
from ital.figures import save
from ital.rationality import LINEAR
from ital.report import Block, PageSection
from ital.statistics import decimals, p_equals, p_value, stars
from ital.tools.files import write as put
from ital_study.analysis import answers_report
from ital_study.analysis.measures import (
    ALL_MAPS,
    CLAIMED,
    LABELS,
    Analysis,
    Arm,
    arm,
    measures,
    robots,
    teachers_in_order,
)
from ital_study.config.kinds import ADAPTIVE
from ital_study.fitting.people import Fit
from ital_study.report import figures as _figures
from ital_study.report import fit_report, quality_report
from ital_study.report.interface import interface
from ital_study.simulation.arms import MATCHED

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05


def write(
    analysis: Analysis, out: Path, picture: Path | None = None, fit: Fit | None = None
) -> list[Path]:
    """Write tables, figures and the report into a folder, each file completely or not at all; return the files.

    ``picture`` is a file that shows the participants' page, instead of the picture that comes with ital. ``fit`` says
    which teacher each person is; without it the report has no such section.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name in ("outcomes", "summary", "tests", "curves"):
        labelled = getattr(analysis, name).assign(data=analysis.kind, mode=analysis.mode)
        put(out / f"{name}.csv", labelled.to_csv(index=False, lineterminator="\n").encode())
        files.append(out / f"{name}.csv")
    for name in _figures.drawings(analysis):
        files += save(_figures.draw(name, analysis), out / name)
    files += quality_report.write(analysis, out)
    files += fit_report.write(fit, out) if fit else []
    put(out / "report.html", html_page(analysis, picture, fit).encode())
    put(out / "report.pdf", pdf_page(analysis, fit))
    return [*files, out / "report.html", out / "report.pdf"]


def main_teacher(analysis: Analysis) -> str:
    """The teacher whose arms the report is about: people if any are left, else whoever took part."""
    return teachers_in_order([name for name, count in analysis.participants.items() if count])[0]


def findings(analysis: Analysis) -> list[str]:
    """The findings in words: the comparison, then its limits. Without people, only the headline."""
    if analysis.left_out.everybody:
        return [_figures.nobody(analysis)]
    teacher, config = main_teacher(analysis), analysis.config
    versus = _versus(analysis, teacher, "aware")
    main, control = versus[teacher, "naive"], versus[teacher, MATCHED]
    paths = analysis.paths.groupby(["teacher", "learner"])["path"].mean()
    start = analysis.paths["start"].mean()
    means = analysis.summary.set_index(["teacher", "learner", "map", "outcome"])["mean"]
    of_machine = ("machine", "naive", ALL_MAPS, "distance_last")
    even_machine = ""
    if of_machine in means.index:
        even_machine = (
            "Even the machine, which always picks the best of the arrows, brings it only "
            f"{decimals(means[of_machine])} nearer. "
        )
    comparison = (
        f"After {config.steps} arrows, mean over maps, the distance to the truth had fallen by "
        f"{decimals(main['mean_first'])} for {arm(teacher, 'aware')} and by {decimals(main['mean_second'])} for "
        f"{arm(teacher, 'naive')}: {_difference(main)}."
    )
    slowness = (
        f"The naive robot hardly moves, whoever teaches it. At step size η = {config.lr:g} its {config.steps} steps "
        f"add up to a path of {decimals(paths[teacher, 'naive'])}, and it began {decimals(start)} away from the truth. "
        f"{even_machine}So this comparison says little about how well the naive robot was taught."
    )
    matched = (
        f"The aware robot's path is {decimals(paths[teacher, 'aware'], 1)} long. A naive robot whose steps are made as "
        f"long as the aware robot's would be (the matched-step control) comes {decimals(control['mean_second'])} "
        f"nearer to the truth, the aware robot {decimals(control['mean_first'])}: {_difference(control)}. "
        f"{_verdict(control)}"
    )
    third = _of_adaptive(analysis, teacher) if config.adaptive else []
    return [
        comparison,
        claim(analysis, teacher),
        slowness,
        matched,
        *_beside_others(analysis, teacher, versus),
        *third,
    ]


def claim(analysis: Analysis, teacher: str) -> str:
    """Whether the paper's claim holds: aware robots lead naive ones on every map, by every measure.

    Without p-values (a single participant, say) it cannot be judged.
    """
    tests, maps = analysis.tests, len(analysis.config.maps)
    own = (tests["teacher"] == teacher) & (tests["first"] == "aware") & (tests["second"] == "naive")
    own &= (tests["map"] != ALL_MAPS) & tests["outcome"].isin(CLAIMED)
    claimed = (
        "The paper claims that ITAL is significantly ahead of IMT on every map and by every measure. "
        f"For {arm(teacher, 'aware')} this"
    )
    if not all(map(judged, tests[own].to_dict("records"))):
        return f"{claimed} cannot be judged: {_too_few(tests[own]['n'].min())}."
    own &= (tests["difference"] > 0) & (tests["p_holm"] < LEVEL)
    held = [int((tests[own]["outcome"] == outcome).sum()) for outcome in CLAIMED]
    counts = ", ".join(
        f"{name} on {count}" for name, count in zip(CLAIMED.values(), held, strict=True)
    )
    verdict = (
        "holds"
        if sum(held) == maps * len(CLAIMED)
        else "holds in part"
        if sum(held)
        else "does not hold"
    )
    rule = f"paired t-test, p < {LEVEL} after Holm’s adjustment over maps"
    return f"{claimed} {verdict}: of {maps} maps, {counts} ({rule})."


def _versus(analysis: Analysis, teacher: str, first: str) -> dict[Arm, Mapping[Any, Any]]:
    """The tests of an arm on the distance, mean over maps, by what it is compared with."""
    tests = analysis.tests
    own = (
        (tests["teacher"] == teacher)
        & (tests["first"] == first)
        & (tests["outcome"] == "distance_last")
    )
    rows = tests[own & (tests["map"] == ALL_MAPS)].to_dict("records")
    return {(row["second_teacher"], row["second"]): row for row in rows}


def _of_adaptive(analysis: Analysis, teacher: str) -> list[str]:
    """What the third robot learned, and the limits of that result."""
    config, versus = analysis.config, _versus(analysis, teacher, ADAPTIVE)
    naive, aware = versus[teacher, "naive"], versus[teacher, "aware"]
    paths = analysis.paths.groupby(["teacher", "learner"])["path"].mean()
    return [
        "The adaptive robot finds out by itself whether its teacher helps. "
        f"{arm(teacher, ADAPTIVE)} came {decimals(naive['mean_first'])} closer to the truth: against "
        f"{arm(teacher, 'naive')} {_difference(naive)}, against {arm(teacher, 'aware')} {_difference(aware)}. Its path "
        f"is {decimals(paths[teacher, ADAPTIVE], 1)} long. It uses a β of {LINEAR / (2 * config.lr):.0f} at most, "
        f"the aware robot {config.beta:g}: they differ in how far they go as well as in how they read a choice."
    ]


def _beside_others(analysis: Analysis, teacher: str, versus: Mapping[Any, Any]) -> list[str]:
    """How these teachers compare with the machine and with chance."""
    others = [name for name in ("machine", "random") if (name, "aware") in versus]
    if teacher == "random" or not others:
        return []
    sentences = []
    if teacher != "machine":
        share = 100 * analysis.agreement[teacher, "aware"]
        sentences.append(
            f"With the aware robot, the arrow was the machine's own pick in {decimals(share, 0)} % of steps; one in "
            f"{analysis.config.candidates} would be chance."
        )
    for name in others:
        row = versus[name, "aware"]
        sentences.append(
            f"{arm(teacher, 'aware')} against {arm(name, 'aware')}: {decimals(row['mean_first'])} and "
            f"{decimals(row['mean_second'])}, {_difference(row)}."
        )
    return [" ".join(sentences)]


def _difference(row: Mapping[Any, Any]) -> str:
    """A difference with its interval, n, t, p and d; without a test, why there is none."""
    if not judged(row):
        difference = decimals(row["difference"])
        return f"a difference of {difference}, which cannot be judged: {_too_few(row['n'])}"
    return (
        f"a difference of {decimals(row['difference'])} (95 % interval {decimals(row['low'])} to "
        f"{decimals(row['high'])}, n = {row['n']}, t = {decimals(row['t'])}, p {p_equals(row['p'])}, "
        f"d = {decimals(row['d'])})"
    )


def _verdict(control: Mapping[Any, Any]) -> str:
    """The meaning of the control for the comparison."""
    if not judged(control):
        return "Whether longer steps alone explain the aware robot's result cannot be judged."
    if control["p"] < 0.05 and control["difference"] > 0:
        return "Longer steps alone do not explain the aware robot's result: how it reads the choice matters as well."
    return (
        "So the gap between ITAL and IMT does not by itself show that reading the teacher's choice helps: steps of the "
        "same length along the naive robot's own gradient do at least as well, as far as these data can tell."
    )


def judged(row: Mapping[Any, Any]) -> bool:
    """Whether there is a test: a p-value and an interval."""
    return not np.isnan([row["p"], row["low"], row["high"]]).any()


def _too_few(n: int) -> str:
    """Why there is no test."""
    if n == 1:
        return "a paired test needs at least two participants, and there is 1"
    return f"these {n} participants give no test"


def _digits(outcome: str) -> int:
    return 3 if outcome.startswith("policy") else 1 if outcome.startswith("reward") else 2


def test_rows(analysis: Analysis, outcome: str, first: Arm, second: Arm) -> list[list[str]]:
    """One row per map for a table: means, difference with interval, t, p, Holm's p with stars, d, Wilcoxon's p."""
    tests = analysis.tests
    rows = tests[
        (tests["teacher"] == first[0])
        & (tests["outcome"] == outcome)
        & (tests["first"] == first[1])
    ]
    rows = rows[(rows["second_teacher"] == second[0]) & (rows["second"] == second[1])]
    digits = _digits(outcome)
    return [
        [
            "mean over maps" if row["map"] == ALL_MAPS else str(row["map"]),
            str(row["n"]),
            decimals(row["mean_first"], digits),
            decimals(row["mean_second"], digits),
            decimals(row["difference"], digits),
            f"{decimals(row['low'], digits)} … {decimals(row['high'], digits)}",
            decimals(row["t"]),
            p_value(row["p"]),
            f"{p_value(row['p_holm'])} {stars(row['p_holm'])}".strip()
            if row["map"] != ALL_MAPS
            else "",
            decimals(row["d"]),
            p_value(row["wilcoxon_p"]),
        ]
        for row in rows.to_dict("records")
    ]


HEADINGS = ["difference", "95 % interval", "t", "p", "p (Holm)", "d", "p (Wilcoxon)"]


def html_page(analysis: Analysis, picture: Path | None = None, fit: Fit | None = None) -> str:
    """The report as one self-contained page that can be opened from disk and printed."""
    config, of_people = analysis.config, _figures.of_people(analysis)
    people = ", ".join(f"{count} {name}" for name, count in analysis.participants.items())
    lead = (
        f"Study {config.name}: {len(config.maps)} maps, {config.steps} steps with each robot, η = {config.lr:g}, "
        f"β = {config.beta:g}, {config.volume} volume, {config.arrows} arrows. Participants: {people} "
        f"({analysis.mode}). Configuration {config.hash[:12]}…, ital {__version__}."
    )
    title = f"{config.title}: {'report' if of_people else f'report on {analysis.mode} data'}"
    banner = f"{_figures.whose(analysis).removesuffix('.')}."
    alert = not of_people or analysis.left_out.everybody
    return report.page(
        title, sections(analysis, picture, fit), lead=lead, banner=banner, alert=alert
    )


def sections(
    analysis: Analysis, picture: Path | None = None, fit: Fit | None = None
) -> list[PageSection]:
    """All parts of the page; if everybody is left out, only those without a comparison."""
    if analysis.left_out.everybody:
        return _sections_without_people(analysis, picture)
    teacher, distance = main_teacher(analysis), ("distance_last",)
    aware, naive, adaptive, matched = (
        (teacher, learner) for learner in ("aware", "naive", ADAPTIVE, MATCHED)
    )
    third = [
        *tests(analysis, CLAIMED, adaptive, naive),
        *tests(analysis, distance, adaptive, aware),
    ]
    others = [
        table
        for name in ("machine", "random")
        for table in tests(analysis, distance, aware, (name, "aware"))
    ]
    figures = {name: _figures.block(name, analysis) for name in _figures.DRAWINGS}
    control = [
        report.paragraph(CONTROL),
        *figures["control"],
        *tests(analysis, distance, aware, matched),
    ]
    return [
        report.section(
            "What was found",
            "findings",
            [*map(report.paragraph, findings(analysis)), *figures["bars"]],
        ),
        report.section(
            "What was taught, and how",
            "shown",
            [*figures["maps"], interface(analysis.config, picture)],
        ),
        report.section(
            "Aware against naive robots", "aware", tests(analysis, CLAIMED, aware, naive)
        ),
        report.section("Adaptive against naive and aware robots", "adaptive", third),
        report.section("Compared with the machine and with chance", "others", others),
        report.section("All arms", "arms", [_arms_table(analysis)]),
        report.section("Learning curves", "curves", figures["curves"]),
        report.section(
            "Which teacher is each person?", "fit", fit_report.blocks(fit, teacher) if fit else []
        ),
        report.section("Answers to the questions", "answers", _answers(analysis)),
        report.section("A limit of this comparison: step length", "steps", control),
        report.section(
            "Data quality, and who is left out",
            "quality",
            quality_report.blocks(analysis, aware, naive),
        ),
        report.section("Notes", "notes", map(report.paragraph, notes(analysis))),
    ]


def _sections_without_people(analysis: Analysis, picture: Path | None) -> list[PageSection]:
    """The headline, what was taught, who is left out and why, and the notes."""
    shown = [*_figures.block("maps", analysis), interface(analysis.config, picture)]
    quality = quality_report.nobody_blocks(analysis)
    return [
        report.section("What was found", "findings", map(report.paragraph, findings(analysis))),
        report.section("What was taught, and how", "shown", shown),
        report.section("Data quality, and who is left out", "quality", quality),
        report.section("Notes", "notes", map(report.paragraph, analysis.notes)),
    ]


CONTROL = (
    "The control has its own belief and sees the same arrows. It moves along the gradient of the chosen arrow, like "
    "the naive robot, but as far as the aware robot would move from there."
)
ADAPTIVE_NOTE = (
    "On each map the robots come in one of three orders: naive, aware, adaptive, or the same cycle begun at the second "
    "or the third. Each robot is equally often in each place. But unless it is first, it always follows the same "
    "robot, and what people learn from that one carries over. Holm’s adjustment is separate for each comparison. A "
    "third robot makes more comparisons, so decide beforehand which one the study is for."
)


def notes(analysis: Analysis) -> list[str]:
    """Notes on these data, and how the numbers were computed."""
    return [
        *analysis.notes,
        "Stored beliefs were replayed from the choices; the largest difference of a distance is "
        f"{analysis.replay_error:.2g}.",
        "Tests are paired and two-sided, over participants. d is the mean difference over its standard deviation. "
        "Holm’s adjustment is over the maps; the mean over maps is one test per outcome. Bars and bands show ±1 "
        "standard error. The expected reward is that of the robot’s greedy policy in the true world until death, from "
        "a random cell, computed exactly. All outcomes on all maps are in summary.csv, tests.csv and outcomes.csv.",
        *([ADAPTIVE_NOTE] if analysis.config.adaptive else []),
    ]


def tests(analysis: Analysis, outcomes: Iterable[str], first: Arm, second: Arm) -> list[Block]:
    """A table for each outcome that was tested: one arm against another on every map."""
    heads, titles = (
        ["map", "n", arm(*first), arm(*second), *HEADINGS],
        measures(analysis.config.steps),
    )
    return [
        report.table(
            heads,
            rows,
            caption=f"{titles[outcome].title}: {arm(*first)} against {arm(*second)}",
            numbers_from=1,
        )
        for outcome in outcomes
        if (rows := test_rows(analysis, outcome, first, second))
    ]


def _answers(analysis: Analysis) -> list[Block]:
    names = [(learner, LABELS[learner]) for learner in robots(analysis.config)]
    return answers_report.blocks(analysis.config, analysis.answers, names)


def _arms_table(analysis: Analysis) -> Block:
    """Every outcome in every arm, mean over maps, with its standard error over participants."""
    outcomes = measures(analysis.config.steps)
    cells = {
        (
            row["teacher"],
            row["learner"],
            row["outcome"],
        ): f"{decimals(row['mean'], _digits(row['outcome']))} ± "
        f"{decimals(row['sem'], _digits(row['outcome']))}"
        for row in analysis.summary[analysis.summary["map"] == ALL_MAPS].to_dict("records")
    }
    rows = [
        [arm(teacher, learner), *(cells[teacher, learner, outcome] for outcome in outcomes)]
        for teacher in teachers_in_order(analysis.summary["teacher"].tolist())
        for learner in (*robots(analysis.config), MATCHED)
    ]
    head = ["arm", *(outcome.short for outcome in outcomes.values())]
    caption = "Mean over maps ± SE over participants; distances as decreases"
    return report.table(head, rows, caption=caption, numbers_from=1)


def pdf_page(analysis: Analysis, fit: Fit | None = None) -> bytes:
    """The findings, the main tests and all figures on one tall page."""
    title = f"{analysis.config.title}: study {analysis.config.name}, ital {__version__}"
    words = [*findings(analysis), *analysis.notes, quality_report.summary(analysis)]
    if analysis.left_out.everybody:
        blocks = [*map(report.paragraph, words), *_figures.block("maps", analysis)]
        return report.pdf(title, blocks, banner=_figures.whose(analysis), colour=_figures.WARNING)
    teacher = main_teacher(analysis)
    naive = teacher, "naive"
    tested = [(teacher, learner) for learner in robots(analysis.config) if learner != "naive"]
    blocks = [
        *map(report.paragraph, words),
        *_figures.block("maps", analysis),
        *_figures.block("bars", analysis),
        *(table for first in tested for table in tests(analysis, CLAIMED, first, naive)),
        *_figures.block("curves", analysis),
        *_figures.block("control", analysis),
        *(fit_report.blocks(fit, teacher) if fit else []),
        *quality_report.blocks(analysis, tested[0], naive)[1:],
    ]
    return report.pdf(
        title, blocks, banner=_figures.whose(analysis), colour=_figures.shade(analysis)
    )


def text_tables(analysis: Analysis) -> "dict[str, pd.DataFrame]":
    """The tests of the main outcomes against naive robots, for the screen: a table of texts under each title."""
    import pandas as pd

    if analysis.left_out.everybody:
        return {}
    titles, naive = measures(analysis.config.steps), LABELS["naive"]
    teachers = teachers_in_order(analysis.tests["teacher"].tolist())
    tables = {}
    for learner in robots(analysis.config):
        if learner == "naive":
            continue
        heads = ["teacher", "map", "n", LABELS[learner], naive, *HEADINGS]
        for outcome in CLAIMED:
            rows = [
                [teacher, *row]
                for teacher in teachers
                for row in test_rows(analysis, outcome, (teacher, learner), (teacher, "naive"))
            ]
            table = pd.DataFrame(rows, columns=heads).drop(
                columns=["95 % interval", "t", "p (Wilcoxon)"]
            )
            tables[f"{titles[outcome].title}: {LABELS[learner]} against {naive}"] = table
    return tables
