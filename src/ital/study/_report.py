"""The report of a study: tables, figures and one page in HTML and PDF that says whose data it shows."""

import base64
import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ital import __version__
from ital.rationality import MOST_NAIVE_STEPS
from ital.statistics import p_equals, p_value, stars
from ital.study import _figures
from ital.study._analysis import ALL_MAPS, Analysis, Arm, arm, measures, robots, teachers_in_order
from ital.study._arms import MATCHED
from ital.study._config import ADAPTIVE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MAIN = ("distance_last", "policy_tv_last", "reward")  # outcomes in the report; all of them are in tests.csv


def write(analysis: Analysis, out: Path) -> list[Path]:
    """Writes tables, figures and the report into a folder, each file wholly or not at all; returns them."""
    from ital._files import write as put
    from ital.figures import save

    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in (
        ("outcomes", analysis.outcomes),
        ("summary", analysis.summary),
        ("tests", analysis.tests),
        ("curves", analysis.curves),
    ):
        labelled = table.assign(data=analysis.kind, mode=analysis.mode)
        put(out / f"{name}.csv", labelled.to_csv(index=False, lineterminator="\n").encode())
        files.append(out / f"{name}.csv")
    pictures = {}
    for name in _figures.DRAWINGS:
        figure = _figures.draw(name, analysis)
        files += save(figure, out / name)
        pictures[name] = (out / f"{name}.png").read_bytes()
    put(out / "report.html", html_page(analysis, pictures).encode())
    put(out / "report.pdf", _pdf(pdf_page(analysis)))
    return [*files, out / "report.html", out / "report.pdf"]


def main_teacher(analysis: Analysis) -> str:
    """Whose arms the report is about: people's, or whoever took part."""
    return teachers_in_order(list(analysis.participants))[0]


def number(value: float, digits: int = 2) -> str:
    """A number with a true minus, – where there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def findings(analysis: Analysis) -> list[str]:
    """What the numbers say: the comparison, then what must be read beside it."""
    teacher, config = main_teacher(analysis), analysis.config
    versus = _versus(analysis, teacher, "aware")
    main, control = versus[teacher, "naive"], versus[teacher, MATCHED]
    paths = analysis.paths.groupby(["teacher", "learner"])["path"].mean()
    start = analysis.paths["start"].mean()
    best = _mean(analysis, "machine", "naive")
    comparison = (
        f"After {config.steps} arrows, mean over maps, the distance to the truth had fallen by "
        f"{number(main['mean_first'])} for {arm(teacher, 'aware')} and by {number(main['mean_second'])} for "
        f"{arm(teacher, 'naive')}: {_difference(main)}."
    )
    slowness = (
        f"The naive robot hardly moves, whoever teaches it. At step size η = {config.lr:g} its {config.steps} steps "
        f"add up to a path of {number(paths[teacher, 'naive'])}, and it began {number(start)} away from the truth. "
        f"Even the machine, which always picks the best of the arrows, brings it only {number(best)} nearer. So this "
        "comparison says little about how well the naive robot was taught."
    )
    matched = (
        f"The aware robot's path is {number(paths[teacher, 'aware'], 1)} long. A naive robot whose steps are made as "
        f"long as the aware robot's would be (the matched-step control) comes {number(control['mean_second'])} nearer "
        f"to the truth, the aware robot {number(control['mean_first'])}: {_difference(control)}. {_verdict(control)}"
    )
    third = _of_adaptive(analysis, teacher) if config.adaptive else []
    return [comparison, slowness, matched, *_beside_others(analysis, teacher, versus), *third]


def _versus(analysis: Analysis, teacher: str, first: str) -> dict[Arm, Mapping[Any, Any]]:
    """The tests of an arm on the distance, mean over maps, by what it is compared with."""
    tests = analysis.tests
    own = (tests["teacher"] == teacher) & (tests["first"] == first) & (tests["outcome"] == "distance_last")
    rows = tests[own & (tests["map"] == ALL_MAPS)].to_dict("records")
    return {(row["second_teacher"], row["second"]): row for row in rows}


def _of_adaptive(analysis: Analysis, teacher: str) -> list[str]:
    """What the third robot learned, and what must be read beside it."""
    config, versus = analysis.config, _versus(analysis, teacher, ADAPTIVE)
    naive, aware = versus[teacher, "naive"], versus[teacher, "aware"]
    paths = analysis.paths.groupby(["teacher", "learner"])["path"].mean()
    return [
        "The adaptive robot finds out by itself whether its teacher helps. "
        f"{arm(teacher, ADAPTIVE)} came {number(naive['mean_first'])} nearer to the truth: beside "
        f"{arm(teacher, 'naive')} {_difference(naive)}, beside {arm(teacher, 'aware')} {_difference(aware)}. Its path "
        f"is {number(paths[teacher, ADAPTIVE], 1)} long. It uses a β of {MOST_NAIVE_STEPS / config.lr:.0f} at most, "
        f"the aware robot {config.beta:g}: they differ in how far they go as well as in how they read a choice."
    ]


def _beside_others(analysis: Analysis, teacher: str, versus: Mapping[Any, Any]) -> list[str]:
    """How these teachers compare with the machine and with chance."""
    others = [name for name in ("machine", "random") if (name, "aware") in versus]
    if teacher == "random" or not others:
        return []
    told = []
    if teacher != "machine":
        share = 100 * analysis.agreement[teacher, "aware"]
        told.append(
            f"With the aware robot, the arrow was the machine's own pick in {number(share, 0)} % of steps; one in "
            f"{analysis.config.candidates} would be chance."
        )
    for name in others:
        row = versus[name, "aware"]
        told.append(
            f"{arm(teacher, 'aware')} against {arm(name, 'aware')}: {number(row['mean_first'])} and "
            f"{number(row['mean_second'])}, {_difference(row)}."
        )
    return [" ".join(told)]


def _difference(row: Mapping[Any, Any]) -> str:
    """A difference with everything that belongs to it."""
    return (
        f"a difference of {number(row['difference'])} (95 % interval {number(row['low'])} to {number(row['high'])}, "
        f"n = {row['n']}, t = {number(row['t'])}, p {p_equals(row['p'])}, "
        f"d = {number(row['d'])})"
    )


def _verdict(control: Mapping[Any, Any]) -> str:
    """What the control means for the comparison."""
    if control["p"] < 0.05 and control["difference"] > 0:
        return "Longer steps alone do not do what the aware robot does: how it reads the choice matters as well."
    return (
        "So the gap between ITAL and IMT does not by itself show that reading the teacher's choice helps: steps of the "
        "same length along the naive robot's own gradient do at least as well, as far as these data can tell."
    )


def _mean(analysis: Analysis, teacher: str, learner: str, outcome: str = "distance_last") -> float:
    rows = analysis.summary
    here = (rows["teacher"] == teacher) & (rows["learner"] == learner) & (rows["map"] == ALL_MAPS)
    return float(rows[here & (rows["outcome"] == outcome)]["mean"].iloc[0])


def _digits(outcome: str) -> int:
    return 3 if outcome.startswith("policy") else 1 if outcome.startswith("reward") else 2


def test_rows(analysis: Analysis, outcome: str, first: Arm, second: Arm) -> list[list[str]]:
    """One row per map for a table: means, difference with interval, t, p, Holm's p with stars, d, Wilcoxon's p."""
    tests = analysis.tests
    rows = tests[(tests["teacher"] == first[0]) & (tests["outcome"] == outcome) & (tests["first"] == first[1])]
    rows = rows[(rows["second_teacher"] == second[0]) & (rows["second"] == second[1])]
    digits = _digits(outcome)
    return [
        [
            "mean over maps" if row["map"] == ALL_MAPS else str(row["map"]),
            str(row["n"]),
            number(row["mean_first"], digits),
            number(row["mean_second"], digits),
            number(row["difference"], digits),
            f"{number(row['low'], digits)} … {number(row['high'], digits)}",
            number(row["t"]),
            p_value(row["p"]),
            f"{p_value(row['p_holm'])} {stars(row['p_holm'])}".strip() if row["map"] != ALL_MAPS else "",
            number(row["d"]),
            p_value(row["wilcoxon_p"]),
        ]
        for row in rows.to_dict("records")
    ]


HEADINGS = ["map", "n", "{first}", "{second}", "difference", "95 % interval", "t", "p", "p (Holm)", "d", "p (Wilcoxon)"]

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 72rem; margin: 0 auto;
  padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0.6rem 0 0.2rem; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 0.4rem; }
p { margin: 0.5rem 0; max-width: 62rem; }
figure { margin: 0.5rem 0; }
img { width: 100%; height: auto; }
.whose { padding: 0.7rem 1rem; border-radius: 0.4rem; font-weight: 600; border: 2px solid; }
.simulated { background: #fdeee2; border-color: #a63a00; color: #7a2b00; }
.human { background: #eaf2fb; border-color: #08306b; color: #08306b; }
.small { font-size: 0.85rem; color: #444; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.4rem 0 0.8rem; font-variant-numeric: tabular-nums; font-size: 0.85rem; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { padding: 0.15rem 0.5rem; text-align: right; border-bottom: 1px solid #ddd; }
td { white-space: nowrap; }
th { vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
tr:last-child td { border-bottom: 1.5px solid #888; }
@media print {
  body { font-size: 9.5px; padding: 0; max-width: none; }
  h2 { break-after: avoid; }
  figure, table { break-inside: avoid; }
  @page { size: A4; margin: 12mm; }
}
"""

ALT = {
    "bars": "Bars of every arm on every map: decreases of distance and policy distance, gain in reward, final reward.",
    "curves": "Learning curves of every arm on every map.",
    "control": "Aware and naive robots beside naive robots with matched step lengths, and the lengths of their paths.",
}


def html_page(analysis: Analysis, pictures: Mapping[str, bytes]) -> str:
    """The report as one self-contained page; it opens from disk and prints."""
    config, teacher = analysis.config, main_teacher(analysis)
    aware = (teacher, "aware")
    of_people = (analysis.kind, analysis.mode) == ("human", "live")
    title = f"{config.title}: {'report' if of_people else f'report on {analysis.mode} data'}"
    people = ", ".join(f"{count} {name}" for name, count in analysis.participants.items())

    def picture(name: str) -> str:
        data = base64.b64encode(pictures[name]).decode()
        return f'<figure><img alt="{escape(ALT[name])}" src="data:image/png;base64,{data}"></figure>'

    def paragraph(text: str, kind: str = "") -> str:
        return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"

    parts = [
        paragraph(_figures.whose(analysis) + ".", f"whose {'human' if of_people else 'simulated'}"),
        f"<h1>{escape(title)}</h1>",
        paragraph(
            f"Study {config.name}: {len(config.maps)} maps, {config.steps} steps with each robot, η = {config.lr:g}, "
            f"β = {config.beta:g}, {config.arrows} arrows. Participants: {people} ({analysis.mode}). "
            f"Configuration {config.hash[:12]}…, ital {__version__}.",
            "small",
        ),
        "<h2>What was found</h2>",
        *map(paragraph, findings(analysis)),
        picture("bars"),
        "<h2>Aware against naive robots</h2>",
        *(_test_table(analysis, outcome, aware, (teacher, "naive")) for outcome in MAIN),
        *(_adaptive_section(analysis, teacher) if config.adaptive else []),
        "<h2>Beside the machine and chance</h2>",
        *(_test_table(analysis, "distance_last", aware, (other, "aware")) for other in ("machine", "random")),
        "<h2>All arms</h2>",
        _arms_table(analysis),
        "<h2>Learning curves</h2>",
        picture("curves"),
        "<h2>To be read beside it: step length</h2>",
        paragraph(
            "The control stands at its own belief, sees the same arrows, and moves along the gradient of the chosen "
            "arrow, as the naive robot does, but as far as the aware robot would move from there."
        ),
        picture("control"),
        _test_table(analysis, "distance_last", aware, (teacher, MATCHED)),
        "<h2>Notes</h2>",
        *map(paragraph, notes(analysis)),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n<body>'
        + "\n".join(parts)
        + "</body></html>\n"
    )


ADAPTIVE_NOTE = (
    "On a map the robots come in one of three turns: naive, aware, adaptive, or the same begun at the second or the "
    "third. Each is equally often in each place, but comes after the same other one whenever it is not the first, and "
    "what people learn from that one carries over. Holm’s adjustment is for each comparison by itself: a third robot "
    "makes more comparisons, so say beforehand which one the study is for."
)


def _adaptive_section(analysis: Analysis, teacher: str) -> list[str]:
    """The tests of the third robot."""
    return [
        "<h2>Adaptive against naive and aware robots</h2>",
        *(_test_table(analysis, outcome, (teacher, ADAPTIVE), (teacher, "naive")) for outcome in MAIN),
        _test_table(analysis, "distance_last", (teacher, ADAPTIVE), (teacher, "aware")),
    ]


def notes(analysis: Analysis) -> list[str]:
    """What a reader must know of these data, and how the numbers were made."""
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


def _headings(first: Arm, second: Arm) -> list[str]:
    names = {"first": arm(*first), "second": arm(*second)}
    return [text.format(**names) for text in HEADINGS]


def _caption(analysis: Analysis, outcome: str, first: Arm, second: Arm) -> str:
    title = measures(analysis.config.steps)[outcome].title
    return f"{title}: {arm(*first)} against {arm(*second)}"


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><caption>{escape(caption)}</caption><tr>{top}</tr>{body}</table></div>'


def _test_table(analysis: Analysis, outcome: str, first: Arm, second: Arm) -> str:
    rows = test_rows(analysis, outcome, first, second)
    if not rows:
        return ""
    return _table(_caption(analysis, outcome, first, second), _headings(first, second), rows)


def _arms_table(analysis: Analysis) -> str:
    """Every outcome in every arm, mean over maps, with its standard error over participants."""
    outcomes = measures(analysis.config.steps)
    cells = {
        (row["teacher"], row["learner"], row["outcome"]): f"{number(row['mean'], _digits(row['outcome']))} ± "
        f"{number(row['sem'], _digits(row['outcome']))}"
        for row in analysis.summary[analysis.summary["map"] == ALL_MAPS].to_dict("records")
    }
    rows = [
        [arm(teacher, learner), *(cells[teacher, learner, outcome] for outcome in outcomes)]
        for teacher in teachers_in_order(analysis.summary["teacher"].tolist())
        for learner in (*robots(analysis.config), MATCHED)
    ]
    head = ["arm", *(outcome.short for outcome in outcomes.values())]
    return _table("Mean over maps ± SE over participants; distances as decreases", head, rows)


def pdf_page(analysis: Analysis) -> "Figure":
    """The report as one tall page."""
    from matplotlib.figure import Figure

    teacher = main_teacher(analysis)
    firsts = [(teacher, learner) for learner in robots(analysis.config) if learner != "naive"]
    tables = [(first, outcome) for first in firsts for outcome in ("distance_last", "reward")]
    heights = (4.9 + 0.8 * (len(firsts) - 1), 6.4, *(2.0 for _ in tables), 7.0, 4.2)
    figure = Figure(figsize=(13.0, sum(heights)), layout="constrained")
    parts: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
    top, bars, *places, curves, control = parts
    lines = [line for told in findings(analysis) for line in [*textwrap.wrap(told, 140), ""]]
    lines += [line for note in analysis.notes for line in textwrap.wrap(note, 140)]
    title = f"{analysis.config.title}: study {analysis.config.name}, ital {__version__}"
    top.text(0.02, 0.97, title, fontsize=17, weight="bold", va="top")
    top.text(0.02, 0.86, _figures.whose(analysis), fontsize=13, weight="bold", va="top", color=_figures.shade(analysis))
    top.text(0.02, 0.76, "\n".join(lines), fontsize=10.5, va="top", linespacing=1.35)
    _figures.bars(bars, analysis)
    second = (teacher, "naive")
    for place, (first, outcome) in zip(places, tables, strict=True):
        axis = place.subplots()
        axis.axis("off")
        axis.set_title(_caption(analysis, outcome, first, second), fontsize=10, loc="left")
        table = axis.table(
            test_rows(analysis, outcome, first, second),
            colLabels=[text.replace(" adaptive", "\nadaptive") for text in _headings(first, second)],
            cellLoc="right", edges="horizontal", bbox=(0.02, 0.0, 0.96, 1.0),
        )  # fmt: skip
        table.auto_set_font_size(False)
        table.set_fontsize(9)
    _figures.curves(curves, analysis)
    _figures.control(control, analysis)
    return figure


def _pdf(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="pdf", metadata={"CreationDate": None})
    return buffer.getvalue()


def text_table(analysis: Analysis) -> "pd.DataFrame":
    """The main outcomes of the tests, for the screen."""
    tests = analysis.tests
    kept = tests[tests["outcome"].isin(MAIN) & (tests["second"] == "naive")]
    which = ["first"] if analysis.config.adaptive else []  # otherwise it is always the aware robot
    return kept[["teacher", *which, "outcome", "map", "n", "mean_first", "mean_second", "difference", "p_holm", "d"]]
