"""The report of a study.

Tables, figures and one page in HTML and PDF that names the source of its data.
"""

import itertools
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
    compared_robots,
    measures,
    robots,
    teachers_in_order,
    with_control,
)
from ital_study.config.lineup import ADAPTIVE, AWARE, KINDS, LEARNERS, NAIVE
from ital_study.fitting.people import StudyFit
from ital_study.report import figures as _figures
from ital_study.report import fit_report, quality_report
from ital_study.report.interface import interface
from ital_study.report.quality_report import digits_of, tests_of
from ital_study.simulation.arms import MATCHED

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05


def write(
    analysis: Analysis,
    out: Path,
    picture: Path | None = None,
    fit: StudyFit | None = None,
) -> list[Path]:
    """Write tables, figures and the report into a folder, each file completely or not at all.

    Args:
        analysis: The analysis.
        out: Folder; created if it does not exist.
        picture: A file that shows the participants' page, instead of the picture that comes with
            ital.
        fit: Which teacher each person is; without it the report has no such section.

    Returns:
        The files.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name in ("outcomes", "summary", "tests", "curves"):
        table = getattr(analysis, name)
        labelled = table.assign(data=analysis.kind, mode=analysis.mode)
        text = labelled.to_csv(index=False, lineterminator="\n")
        file = out / f"{name}.csv"
        put(file, text.encode())
        files.append(file)
    for name in _figures.drawings(analysis):
        figure = _figures.draw(name, analysis)
        files += save(figure, out / name)
    files += quality_report.write(analysis, out)
    if fit:
        files += fit_report.write(fit, out)
    html_file = out / "report.html"
    pdf_file = out / "report.pdf"
    put(html_file, html_page(analysis, picture, fit).encode())
    put(pdf_file, pdf_page(analysis, fit))
    return [*files, html_file, pdf_file]


def main_teacher(analysis: Analysis) -> str:
    """Return the teacher whose arms the report is about.

    People if any are left, else whoever took part.
    """
    present = [name for name, count in analysis.participants.items() if count]
    return teachers_in_order(present)[0]


def findings(analysis: Analysis) -> list[str]:
    """Return the findings in words: the comparison, then its limits.

    Without people, only the headline.
    """
    if analysis.left_out.everybody:
        return [_figures.nobody(analysis)]
    teacher = main_teacher(analysis)
    learners = analysis.config.learners
    versus = _versus(analysis, teacher, AWARE)
    # Mean length of the paths, by teacher and learner.
    paths = analysis.paths.groupby(["teacher", "learner"])["path"].mean()
    sentences = []
    if _is_papers(analysis):
        naive_path = paths[teacher, NAIVE]
        sentences += [
            _comparison(analysis, teacher, (AWARE, NAIVE)),
            claim(analysis, teacher),
            _slowness(analysis, teacher, naive_path),
        ]
    for pair in _pairs_beside(analysis):
        sentences.append(_comparison(analysis, teacher, pair))
    if AWARE in learners:
        aware_path = paths[teacher, AWARE]
        control = versus[teacher, MATCHED]
        sentences.append(_matched_steps(analysis, teacher, aware_path, control))
    main, _ = compared_robots(analysis.config)[0]
    sentences += _beside_others(analysis, teacher, main)
    if _is_papers(analysis) and ADAPTIVE in learners:
        adaptive_path = paths[teacher, ADAPTIVE]
        sentences.append(_of_adaptive(analysis, teacher, adaptive_path))
    if _believing(analysis):
        sentences.append(BELIEF_NOTE)
    return sentences


def _is_papers(analysis: Analysis) -> bool:
    """Say whether a study has the two robots that the paper compares."""
    return set(LEARNERS) <= set(analysis.config.learners)


def _believing(analysis: Analysis) -> list[str]:
    """Return the kinds of robot of a study that keep a belief over their target."""
    return [name for name in analysis.config.learners if KINDS[name].believes]


def _pairs_beside(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the pairs of robots to compare that have no sentences of their own."""
    pairs = compared_robots(analysis.config)
    if not _is_papers(analysis):
        return pairs
    believing = _believing(analysis)
    return [pair for pair in pairs if pair[0] in believing]


def _comparison(analysis: Analysis, teacher: str, pair: tuple[str, str]) -> str:
    """Return the comparison of two robots on the distance, mean over maps."""
    first, second = pair
    tests_of_first = _versus(analysis, teacher, first)
    test = tests_of_first[teacher, second]
    mean_first = decimals(test["mean_first"])
    mean_second = decimals(test["mean_second"])
    return (
        f"After {analysis.config.steps} arrows, mean over maps, the distance to the truth had "
        f"fallen by {mean_first} for {arm(teacher, first)} "
        f"and by {mean_second} for {arm(teacher, second)}: {_difference(test)}."
    )


def _slowness(analysis: Analysis, teacher: str, path: float) -> str:
    """Return why that comparison says little: the naive robot hardly moves."""
    config = analysis.config
    start = analysis.paths["start"].mean()
    summary = analysis.summary.set_index(["teacher", "learner", "map", "outcome"])
    means = summary["mean"]
    of_machine = ("machine", NAIVE, ALL_MAPS, "distance_last")
    even_machine = ""
    if of_machine in means.index:
        nearer = decimals(means[of_machine])
        even_machine = (
            "Even the machine, which always picks the best of the arrows, brings it only "
            f"{nearer} nearer. "
        )
    return (
        f"The naive robot hardly moves, whoever teaches it. At step size η = {config.lr:g} "
        f"its {config.steps} steps add up to a path of {decimals(path)}, "
        f"and it began {decimals(start)} away from the truth. {even_machine}"
        "So this comparison says little about how well the naive robot was taught."
    )


def _matched_steps(
    analysis: Analysis,
    teacher: str,
    path: float,
    test: Mapping[Any, Any],
) -> str:
    """Return the comparison with the control of matched steps."""
    result = "how near ITAL came"
    if _is_papers(analysis):
        result = "the gap between ITAL and IMT"
    of_aware = decimals(test["mean_first"])
    of_control = decimals(test["mean_second"])
    return (
        f"The aware robot's path is {decimals(path, 1)} long. A naive robot whose steps are made "
        "as long as the aware robot's would be (the matched-step control) comes "
        f"{of_control} nearer to the truth, the aware robot "
        f"{of_aware}: {_difference(test)}. {_verdict(test, result)}"
    )


def claim(analysis: Analysis, teacher: str) -> str:
    """Say whether the paper's claim holds.

    Aware robots lead naive ones on every map, by every measure.

    Without p-values (a single participant, say) it cannot be judged.
    """
    maps = len(analysis.config.maps)
    aware = (teacher, AWARE)
    naive = (teacher, NAIVE)
    per_map = analysis.tests[analysis.tests["map"] != ALL_MAPS]
    all_tests = []
    # Number of maps on which the claim holds, by outcome.
    held = {}
    for outcome in CLAIMED:
        tests_of_outcome = tests_of(per_map, outcome, aware, naive)
        all_tests += tests_of_outcome.to_dict("records")
        is_ahead = tests_of_outcome["difference"] > 0
        is_significant = tests_of_outcome["p_holm"] < LEVEL
        held[outcome] = int((is_ahead & is_significant).sum())
    claimed = (
        "The paper claims that ITAL is significantly ahead of IMT on every map and by every "
        f"measure. For {arm(*aware)} this"
    )
    if not all(map(judged, all_tests)):
        fewest = min(test["n"] for test in all_tests)
        return f"{claimed} cannot be judged: {_too_few(fewest)}."
    counts = ", ".join(f"{CLAIMED[outcome]} on {count}" for outcome, count in held.items())
    if all(count == maps for count in held.values()):
        verdict = "holds"
    elif any(held.values()):
        verdict = "holds in part"
    else:
        verdict = "does not hold"
    rule = f"paired t-test, p < {LEVEL} after Holm’s adjustment over maps"
    return f"{claimed} {verdict}: of {maps} maps, {counts} ({rule})."


def _versus(analysis: Analysis, teacher: str, first: str) -> dict[Arm, Mapping[Any, Any]]:
    """Return the tests of an arm on the distance, mean over maps, by what it is compared with."""
    tests = analysis.tests
    of_distance = tests[tests["outcome"] == "distance_last"]
    over_maps = of_distance[of_distance["map"] == ALL_MAPS]
    of_teacher = over_maps[over_maps["teacher"] == teacher]
    of_arm = of_teacher[of_teacher["first"] == first]
    versus: dict[Arm, Mapping[Any, Any]] = {}
    for row in of_arm.to_dict("records"):
        second = (row["second_teacher"], row["second"])
        versus[second] = row
    return versus


def _of_adaptive(analysis: Analysis, teacher: str, path: float) -> str:
    """Return what the third robot learned, and the limits of that result."""
    config = analysis.config
    versus = _versus(analysis, teacher, ADAPTIVE)
    against_naive = versus[teacher, NAIVE]
    against_aware = versus[teacher, AWARE]
    closer = decimals(against_naive["mean_first"])
    largest_beta = LINEAR / (2 * config.lr)
    return (
        "The adaptive robot finds out by itself whether its teacher helps. "
        f"{arm(teacher, ADAPTIVE)} came {closer} closer to the truth: "
        f"against {arm(teacher, NAIVE)} {_difference(against_naive)}, "
        f"against {arm(teacher, AWARE)} {_difference(against_aware)}. "
        f"Its path is {decimals(path, 1)} long. "
        f"It uses a β of {largest_beta:.0f} at most, the aware robot {config.beta:g}: "
        "they differ in how far they go as well as in how they read a choice."
    )


def _beside_others(analysis: Analysis, teacher: str, robot: str) -> list[str]:
    """Return how these teachers compare with the machine and with chance, by one kind of robot."""
    versus = _versus(analysis, teacher, robot)
    others = [name for name in ("machine", "random") if (name, robot) in versus]
    if teacher == "random" or not others:
        return []
    sentences = []
    if teacher != "machine":
        percent = 100 * analysis.agreement[teacher, robot]
        called = f"robot {LABELS[robot]}"
        if robot == AWARE:
            called = "aware robot"
        sentences.append(
            f"With the {called}, the arrow was the machine's own pick in "
            f"{decimals(percent, 0)} % of steps; "
            f"one in {analysis.config.candidates} would be chance."
        )
    for name in others:
        test = versus[name, robot]
        mean_first = decimals(test["mean_first"])
        mean_second = decimals(test["mean_second"])
        sentences.append(
            f"{arm(teacher, robot)} against {arm(name, robot)}: {mean_first} "
            f"and {mean_second}, {_difference(test)}."
        )
    return [" ".join(sentences)]


def _difference(row: Mapping[Any, Any]) -> str:
    """Return a difference with its interval, n, t, p and d; without a test, why there is none."""
    difference = decimals(row["difference"])
    n = row["n"]
    if not judged(row):
        return f"a difference of {difference}, which cannot be judged: {_too_few(n)}"
    low = decimals(row["low"])
    high = decimals(row["high"])
    t = decimals(row["t"])
    p = p_equals(row["p"])
    d = decimals(row["d"])
    return (
        f"a difference of {difference} (95 % interval {low} to {high}, "
        f"n = {n}, t = {t}, p {p}, d = {d})"
    )


def _verdict(control: Mapping[Any, Any], result: str = "the gap between ITAL and IMT") -> str:
    """Return the meaning of the control for the comparison."""
    if not judged(control):
        return "Whether longer steps alone explain the aware robot's result cannot be judged."
    if control["p"] < LEVEL and control["difference"] > 0:
        return (
            "Longer steps alone do not explain the aware robot's result: "
            "how it reads the choice matters as well."
        )
    return (
        f"So {result} does not by itself show that reading the teacher's choice "
        "helps: steps of the same length along the naive robot's own gradient do at least as well, "
        "as far as these data can tell."
    )


def judged(row: Mapping[Any, Any]) -> bool:
    """Say whether there is a test: a p-value and an interval."""
    return not np.isnan([row["p"], row["low"], row["high"]]).any()


def _too_few(n: int) -> str:
    """Return why there is no test."""
    if n == 1:
        return "a paired test needs at least two participants, and there is 1"
    return f"these {n} participants give no test"


def test_rows(
    analysis: Analysis,
    outcome: str,
    first: Arm,
    second: Arm,
) -> list[list[str]]:
    """Return one row per map for a table: n, means, then the columns of :data:`HEADINGS`."""
    rows = []
    digits = digits_of(outcome)
    selected = tests_of(analysis.tests, outcome, first, second)
    for test in selected.to_dict("records"):
        name = str(test["map"])
        adjusted = test["p_holm"]
        p_holm = f"{p_value(adjusted)} {stars(adjusted)}".strip()
        if test["map"] == ALL_MAPS:
            # The mean over maps is a single test: there is nothing to adjust.
            name = "mean over maps"
            p_holm = ""
        low = decimals(test["low"], digits)
        high = decimals(test["high"], digits)
        row = [
            name,
            str(test["n"]),
            decimals(test["mean_first"], digits),
            decimals(test["mean_second"], digits),
            decimals(test["difference"], digits),
            f"{low} … {high}",
            decimals(test["t"]),
            p_value(test["p"]),
            p_holm,
            decimals(test["d"]),
            p_value(test["wilcoxon_p"]),
        ]
        rows.append(row)
    return rows


HEADINGS = ["difference", "95 % interval", "t", "p", "p (Holm)", "d", "p (Wilcoxon)"]


def html_page(analysis: Analysis, picture: Path | None = None, fit: StudyFit | None = None) -> str:
    """Return the report as one self-contained page that can be opened from disk and printed."""
    config = analysis.config
    maps = len(config.maps)
    people = ", ".join(f"{count} {name}" for name, count in analysis.participants.items())
    lead = (
        f"Study {config.name}: {maps} maps, {config.steps} steps with each robot, "
        f"η = {config.lr:g}, β = {config.beta:g}, {config.volume} volume, {config.arrows} arrows. "
        f"Participants: {people} ({analysis.mode}). "
        f"Configuration {config.hash[:12]}…, ital {__version__}."
    )
    of_people = _figures.of_people(analysis)
    kind = "report"
    if not of_people:
        kind = f"report on {analysis.mode} data"
    whose = _figures.whose(analysis).removesuffix(".")
    return report.page(
        f"{config.title}: {kind}",
        sections(analysis, picture, fit),
        lead=lead,
        banner=f"{whose}.",
        alert=not of_people or analysis.left_out.everybody,
    )


def sections(
    analysis: Analysis, picture: Path | None = None, fit: StudyFit | None = None
) -> list[PageSection]:
    """Return all parts of the page; if everybody is left out, only those without a comparison.

    Sections without blocks do not appear on the page.
    """
    if analysis.left_out.everybody:
        return _sections_without_people(analysis, picture)
    teacher = main_teacher(analysis)
    figures = _figure_blocks(analysis)
    found = [*_paragraphs(findings(analysis)), *figures["bars"]]
    taught = [*figures["maps"], interface(analysis.config, picture)]
    aware = tests(analysis, CLAIMED, (teacher, AWARE), (teacher, NAIVE))
    adaptive = _adaptive_tests(analysis, teacher)
    belief = _belief_tests(analysis, teacher)
    others = _tests_of_teachers(analysis, teacher)
    models = []
    if fit:
        models = fit_report.blocks(fit, teacher)
    control = []
    if AWARE in analysis.config.learners:
        control = [report.paragraph(CONTROL), *figures["control"]]
        control += _control_tests(analysis, teacher)
    return [
        report.section("What was found", "findings", found),
        report.section("What was taught, and how", "shown", taught),
        report.section("Aware against naive robots", "aware", aware),
        report.section("Adaptive against naive and aware robots", "adaptive", adaptive),
        report.section("Robots that keep a belief", "belief", belief),
        report.section("Compared with the machine and with chance", "others", others),
        report.section("All arms", "arms", [_arms_table(analysis)]),
        report.section("Learning curves", "curves", figures["curves"]),
        report.section("Which teacher is each person?", "fit", models),
        report.section("Answers to the questions", "answers", _answers_blocks(analysis)),
        report.section("A limit of this comparison: step length", "steps", control),
        report.section(QUALITY, "quality", _quality(analysis, teacher)),
        report.section("Notes", "notes", _paragraphs(notes(analysis))),
    ]


def _figure_blocks(analysis: Analysis) -> dict[str, list[Block]]:
    """Return the figures by name; a study without a figure has no blocks for it."""
    figures: dict[str, list[Block]] = {name: [] for name in _figures.DRAWINGS}
    for name in _figures.drawings(analysis):
        figures[name] = _figures.block(name, analysis)
    return figures


def _paragraphs(sentences: Iterable[str]) -> list[Block]:
    return [report.paragraph(sentence) for sentence in sentences]


def _quality(analysis: Analysis, teacher: str) -> list[Block]:
    """Return the blocks on data quality; their tests are of the two robots that matter most."""
    first, second = compared_robots(analysis.config)[0]
    return quality_report.blocks(analysis, (teacher, first), (teacher, second))


def _adaptive_tests(analysis: Analysis, teacher: str) -> list[Block]:
    """Return the tests of the third robot; none in a study without it."""
    adaptive = (teacher, ADAPTIVE)
    return [
        *tests(analysis, CLAIMED, adaptive, (teacher, NAIVE)),
        *tests(analysis, ("distance_last",), adaptive, (teacher, AWARE)),
    ]


def _belief_tests(analysis: Analysis, teacher: str) -> list[Block]:
    """Return the tests of robots that keep a belief; none in a study without them."""
    believing = _believing(analysis)
    blocks = []
    for first, second in compared_robots(analysis.config):
        if first not in believing:
            continue
        blocks += tests(analysis, CLAIMED, (teacher, first), (teacher, second))
    return blocks


def _tests_of_teachers(analysis: Analysis, teacher: str) -> list[Block]:
    """Return the tests of a robot against those of the machine and of the random teacher."""
    robot, _ = compared_robots(analysis.config)[0]
    blocks = []
    for other in ("machine", "random"):
        blocks += tests(analysis, ("distance_last",), (teacher, robot), (other, robot))
    return blocks


def _control_tests(analysis: Analysis, teacher: str) -> list[Block]:
    """Return the tests of aware robots against the control of matched steps."""
    return tests(analysis, ("distance_last",), (teacher, AWARE), (teacher, MATCHED))


def _sections_without_people(analysis: Analysis, picture: Path | None) -> list[PageSection]:
    """Return the headline, what was taught, who is left out and why, and the notes."""
    taught = [*_figures.block("maps", analysis), interface(analysis.config, picture)]
    quality = quality_report.nobody_blocks(analysis)
    return [
        report.section("What was found", "findings", _paragraphs(findings(analysis))),
        report.section("What was taught, and how", "shown", taught),
        report.section(QUALITY, "quality", quality),
        report.section("Notes", "notes", _paragraphs(analysis.notes)),
    ]


QUALITY = "Data quality, and who is left out"
CONTROL = (
    "The control has its own belief and sees the same arrows. It moves along the gradient of the "
    "chosen arrow, like "
    "the naive robot, but as far as the aware robot would move from there."
)
BELIEF_NOTE = (
    "A robot that keeps a belief begins with the mean of its prior, not with the participant's "
    "first belief; all decreases are from that first belief. What the robot Posterior learns does "
    "not depend on the teacher, since it learns from all arrows of a step, chosen or not."
)
ADAPTIVE_NOTE = (
    "On each map the robots come in one of three orders: naive, aware, adaptive, or the same "
    "cycle begun at the second "
    "or the third. Each robot is equally often in each place. But unless it is first, it always "
    "follows the same "
    "robot, and what people learn from that one carries over. Holm’s adjustment is separate for "
    "each comparison. A "
    "third robot makes more comparisons, so decide beforehand which one the study is for."
)


def notes(analysis: Analysis) -> list[str]:
    """Return notes on these data, and how the numbers were computed."""
    sentences = [
        *analysis.notes,
        "Stored beliefs were replayed from the choices; the largest difference of a distance is "
        f"{analysis.replay_error:.2g}.",
        "Tests are paired and two-sided, over participants. d is the mean difference over its "
        "standard deviation. Holm’s adjustment is over the maps; the mean over maps is one test "
        "per "
        "outcome. Bars and bands show ±1 standard error. The expected reward is that of the "
        "robot’s "
        "greedy policy in the true world until death, from a random cell, computed exactly. "
        "All outcomes on all maps are in summary.csv, tests.csv and outcomes.csv.",
    ]
    if analysis.config.learners == (*LEARNERS, ADAPTIVE):
        sentences.append(ADAPTIVE_NOTE)
    return sentences


def tests(
    analysis: Analysis,
    outcomes: Iterable[str],
    first: Arm,
    second: Arm,
) -> list[Block]:
    """Return a table for each outcome that was tested: one arm against another on every map."""
    titles = measures(analysis.config.steps)
    name_first = arm(*first)
    name_second = arm(*second)
    heads = ["map", "n", name_first, name_second, *HEADINGS]
    tables = []
    for outcome in outcomes:
        rows = test_rows(analysis, outcome, first, second)
        if not rows:
            continue
        title = titles[outcome].title
        caption = f"{title}: {name_first} against {name_second}"
        tables.append(report.table(heads, rows, caption=caption, numbers_from=1))
    return tables


def _answers_blocks(analysis: Analysis) -> list[Block]:
    names = [(learner, LABELS[learner]) for learner in robots(analysis.config)]
    return answers_report.blocks(analysis.config, analysis.answers, names)


def _arms_table(analysis: Analysis) -> Block:
    """Return every outcome in every arm, mean over maps, with its error over participants."""
    outcomes = measures(analysis.config.steps)
    summary = analysis.summary
    over_maps = summary[summary["map"] == ALL_MAPS]
    cells = {}
    for row in over_maps.to_dict("records"):
        outcome = row["outcome"]
        digits = digits_of(outcome)
        mean = decimals(row["mean"], digits)
        error = decimals(row["sem"], digits)
        cells[row["teacher"], row["learner"], outcome] = f"{mean} ± {error}"
    teachers = teachers_in_order(summary["teacher"].tolist())
    learners = robots(analysis.config)
    if MATCHED in with_control(analysis.config):
        learners = (*learners, MATCHED)
    rows = []
    for teacher, learner in itertools.product(teachers, learners):
        cells_of_arm = [cells[teacher, learner, outcome] for outcome in outcomes]
        rows.append([arm(teacher, learner), *cells_of_arm])
    headings = [measure.short for measure in outcomes.values()]
    heads = ["arm", *headings]
    caption = "Mean over maps ± SE over participants; distances as decreases"
    return report.table(heads, rows, caption=caption, numbers_from=1)


def pdf_page(analysis: Analysis, fit: StudyFit | None = None) -> bytes:
    """Return the findings, the main tests and all figures on one tall page."""
    config = analysis.config
    title = f"{config.title}: study {config.name}, ital {__version__}"
    sentences = [*findings(analysis), *analysis.notes]
    sentences.append(quality_report.summary(analysis))
    blocks = _paragraphs(sentences)
    blocks += _figures.block("maps", analysis)
    colour = _figures.WARNING
    if not analysis.left_out.everybody:
        blocks += _pdf_comparisons(analysis, fit)
        colour = _figures.shade(analysis)
    return report.pdf(title, blocks, banner=_figures.whose(analysis), colour=colour)


def _pdf_comparisons(analysis: Analysis, fit: StudyFit | None) -> list[Block]:
    """Return the blocks that need people who are not left out."""
    teacher = main_teacher(analysis)
    blocks = [*_figures.block("bars", analysis)]
    for first, second in _tabled_pairs(analysis):
        blocks += tests(analysis, CLAIMED, (teacher, first), (teacher, second))
    blocks += _figures.block("curves", analysis)
    if "control" in _figures.drawings(analysis):
        blocks += _figures.block("control", analysis)
    if fit:
        blocks += fit_report.blocks(fit, teacher)
    # The summary, which comes first, is among the sentences at the top of the page.
    _, *quality = _quality(analysis, teacher)
    return [*blocks, *quality]


def _tabled_pairs(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the pairs of robots whose tests the screen and the PDF show."""
    pairs = compared_robots(analysis.config)
    if NAIVE in analysis.config.learners:
        # There adaptive robots are compared with naive ones.
        return [pair for pair in pairs if pair != (ADAPTIVE, AWARE)]
    return pairs


def text_tables(analysis: Analysis) -> "dict[str, pd.DataFrame]":
    """Return the tests of the main outcomes for the screen.

    A table under each title.
    """
    import pandas as pd

    if analysis.left_out.everybody:
        return {}
    titles = measures(analysis.config.steps)
    teachers = teachers_in_order(analysis.tests["teacher"].tolist())
    # The screen is narrower than the page.
    too_wide = ["95 % interval", "t", "p (Wilcoxon)"]
    tables = {}
    for (first, second), outcome in itertools.product(_tabled_pairs(analysis), CLAIMED):
        rows = []
        for teacher in teachers:
            tests_of_teacher = test_rows(analysis, outcome, (teacher, first), (teacher, second))
            rows += [[teacher, *row] for row in tests_of_teacher]
        name_first = LABELS[first]
        name_second = LABELS[second]
        heads = ["teacher", "map", "n", name_first, name_second, *HEADINGS]
        table = pd.DataFrame(rows, columns=heads)
        title = f"{titles[outcome].title}: {name_first} against {name_second}"
        tables[title] = table.drop(columns=too_wide)
    return tables
