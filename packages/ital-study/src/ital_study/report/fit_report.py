"""Tables, figures and words about which teacher each person is, and about what the data can tell."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ital import report
from ital.figures import charts, save
from ital.figures.charts import Panel
from ital.report import Block
from ital.statistics import decimals
from ital.tools.files import write as put
from ital_study.analysis.measures import LABELS, robots, teachers_in_order
from ital_study.fitting.people import ALL_ROBOTS, StudyFit
from ital_study.fitting.recovery import StudyRecovery
from ital_study.fitting.scores import NAMES, RANDOM

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.table import Table

COLOURS = {"human": "#08306b", "machine": "#3c7ebf", "boltzmann": "#7fb2dd", "random": "#c3daee"}
HEADS = ["model", "best for", "median ρ", "median ε", "frequency", "exceedance", "protected"]
CAPTION = (
    "How frequent each model of a teacher is among people: mean of the frequency and its standard deviation. Above "
    "each bar: for how many people the model has the lowest BIC."
)
LIMITS = (
    "A model is fitted to every person by maximum likelihood: p(c) = ε/B + (1−ε)·softmax(ρs)_c, where s is a score of "
    "the arrows that is replayed from the choices. ρ is per typical spread of the score among the arrows of a step. "
    "Frequencies and exceedance probabilities come from random-effects model selection over people, with −BIC/2 as the "
    "evidence. The best of these models need not be a good one: a person may go by something that is not in the list. "
    "ital study fit --recovery shows how often the fit finds the kind of simulated people."
)


def robot_name(learner: str) -> str:
    """A robot as figures call it."""
    return "all robots" if learner == ALL_ROBOTS else LABELS[learner]


def whose(fit: StudyFit) -> str:
    """One line about the source of the data."""
    if fit.kind == "simulated":
        return "SIMULATED DATA: no person took part"
    people = fit.participants["human"]
    text = f"Human data: {people} participant{'s' if people > 1 else ''}"
    return text if fit.mode == "live" else f"{fit.mode.upper()} RUNS, not data of the study. {text}"


def order(fit: StudyFit) -> list[str]:
    """The robots of a fit in the order of tables and figures."""
    there = set(fit.models["learner"])
    return [learner for learner in (*robots(fit.config), ALL_ROBOTS) if learner in there]


def model_rows(fit: StudyFit, teacher: str, learner: str) -> list[list[str]]:
    """One row per model for a table: people, medians of those it is best for, frequency, exceedance probabilities."""
    own = fit.models[(fit.models["teacher"] == teacher) & (fit.models["learner"] == learner)]
    return [
        [
            row["model"],
            f"{row['best']} of {row['people']}",
            decimals(row["rho_median"]),
            decimals(row["epsilon_median"]),
            f"{decimals(row['frequency'])} ± {decimals(row['frequency_sd'])}",
            decimals(row["exceedance"], 3),
            decimals(row["protected"], 3),
        ]
        for row in own.to_dict("records")
    ]


def sentence(fit: StudyFit, teacher: str, learner: str) -> str:
    """The result for one robot in words."""
    own = fit.models[(fit.models["teacher"] == teacher) & (fit.models["learner"] == learner)]
    top = own.sort_values("frequency").iloc[-1]
    return (
        f"{teacher.capitalize()} teachers, {robot_name(learner)}: the model {top['model']} is the most frequent "
        f"({top['best']} of {top['people']} people, frequency {decimals(top['frequency'])}, protected exceedance "
        f"probability {decimals(top['protected'], 3)})."
    )


def panels(fit: StudyFit) -> list[Panel]:
    """A panel per robot: the frequency of every model, a bar for every teacher."""
    shown = []
    for learner in order(fit):
        own = fit.models[fit.models["learner"] == learner]
        teachers = teachers_in_order(own["teacher"].tolist())
        width = 0.84 / len(teachers)
        marks = []
        for i, teacher in enumerate(teachers):
            rows = own[own["teacher"] == teacher]
            places = np.arange(len(NAMES)) + (i - (len(teachers) - 1) / 2) * width
            frequency, error = rows["frequency"].to_numpy(), rows["frequency_sd"].to_numpy()
            counts = [str(best) if best else "" for best in rows["best"]]
            colour = COLOURS.get(teacher.partition(":")[0], charts.SOFT)
            marks.append(
                charts.bars(
                    teacher, colour, places, frequency, error, width=0.92 * width, marks=counts
                )
            )
        shown.append(
            charts.panel(
                robot_name(learner), marks, y="Frequency among people", x_ticks=(range(len(NAMES)), short_names()),
                size=(5.4, 2.9),
            )
        )  # fmt: skip
    return shown


def short_names() -> list[str]:
    """Names of the models that fit below narrow bars."""
    return [name.replace("-", "\n") for name in NAMES]


def draw(fit: StudyFit) -> "Figure":
    """The figure of a fit; it names the source of the data."""
    return charts.chart(panels(fit), "Which teacher is each person?", columns=3, note=whose(fit))


def blocks(fit: StudyFit, teacher: str) -> list[Block]:
    """The section of the report: words, the figure, and a table for every robot."""
    if teacher not in set(fit.models["teacher"]):
        return []
    tables = [
        report.table(HEADS, model_rows(fit, teacher, learner), caption=f"Models of a teacher: {robot_name(learner)}",
                     numbers_from=1)
        for learner in order(fit)
    ]  # fmt: skip
    return [
        *(report.paragraph(sentence(fit, teacher, learner)) for learner in order(fit)),
        *report.figure(
            "fit", "Which teacher is each person?", panels(fit), CAPTION, note=whose(fit)
        ),
        *tables,
        *map(report.paragraph, [LIMITS, *fit.notes]),
    ]


def write(fit: StudyFit, out: Path) -> list[Path]:
    """Write the tables and the figure of a fit; return the files."""
    files = []
    for name, table in (("fit_people", fit.people), ("fit_models", fit.models)):
        labelled = table.assign(data=fit.kind, mode=fit.mode)
        files.append(_put_table(out / f"{name}.csv", labelled))
    return [*files, *save(draw(fit), out / "fit")]


def _put_table(file: Path, table: "pd.DataFrame") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    put(file, table.to_csv(index=False, lineterminator="\n").encode())
    return file


def screen_tables(fit: StudyFit) -> "list[Table]":
    """A table for the screen per teacher: the models that are best for someone."""
    heads = ["robot", "model", "best for", "ρ", "ε", "frequency", "protected exceedance"]
    tables = []
    for teacher in teachers_in_order(fit.models["teacher"].tolist()):
        rows = [
            [robot_name(learner), *row[:4], row[4].partition(" ")[0], row[-1]]
            for learner in order(fit)
            for row in model_rows(fit, teacher, learner)
            if not row[1].startswith("0 ")
        ]
        title = f"Which teacher is each person? {teacher.capitalize()} teachers; models that are best for someone"
        tables.append(_screen_table(title, heads, rows, texts=2))
    return tables


def _screen_table(title: str, heads: list[str], rows: list[list[str]], texts: int) -> "Table":
    from rich.table import Table

    shown = Table(title=title, title_justify="left", pad_edge=False)
    for i, head in enumerate(heads):
        shown.add_column(head, justify="right" if i >= texts else "left", no_wrap=i < texts)
    for row in rows:
        shown.add_row(*row)
    return shown


# ---- recovery ----


def confusion(recovery: StudyRecovery, rho: float, learner: str) -> np.ndarray:
    """How many simulated people of each kind (rows) each model is best for (columns)."""
    models = recovery.models
    own = models[(models["simulated_rho"] == rho) & (models["learner"] == learner)]
    return own["best"].to_numpy().reshape(len(NAMES), len(NAMES))


def recovery_table(recovery: StudyRecovery) -> "Table":
    """For the screen: how many people of each kind were found, and the medians of ρ and ε of the true model."""
    learners = (*recovery.config.learners, ALL_ROBOTS)
    medians = recovery.parameters.set_index(["simulated_rho", "learner", "kind"])[
        ["rho_50", "epsilon_50"]
    ]
    rows = []
    for rho in recovery.models["simulated_rho"].unique():
        found = {learner: confusion(recovery, rho, learner).diagonal() for learner in learners}
        for i, kind in enumerate(NAMES):
            cells = [kind, "–" if kind == RANDOM.name else f"{rho:g}"]
            for learner in learners:
                place = (rho, learner, kind)
                fitted = (
                    medians.loc[[place]].to_numpy()[0]
                    if place in medians.index
                    else (np.nan, np.nan)
                )
                cells += [str(found[learner][i]), *map(decimals, fitted)]
            rows.append(cells)
    heads = [
        "simulated",
        "true ρ",
        *(head for each in learners for head in (LABELS.get(each, each), "ρ", "ε")),
    ]
    title = (
        f"Of {recovery.participants} simulated people of each kind, how many the true model is best for, and medians "
        f"of its ρ and ε; ε = {recovery.lapse:g}, {recovery.steps} steps with each robot"
    )
    return _screen_table(title, heads, rows, texts=1)


def _title(recovery: StudyRecovery, rho: float, learner: str) -> str:
    steps = recovery.steps * (len(recovery.config.learners) if learner == ALL_ROBOTS else 1)
    return f"{robot_name(learner)}, {steps} steps, ρ = {rho:g}, ε = {recovery.lapse:g}"


def draw_recovery(recovery: StudyRecovery) -> "Figure":
    """The confusion of models: a panel per robot and ρ."""
    shown = []
    for rho in recovery.models["simulated_rho"].unique():
        for learner in (*recovery.config.learners, ALL_ROBOTS):
            counts = confusion(recovery, rho, learner)[::-1]  # a map is drawn from the bottom up
            texts = [[str(count) if count else "" for count in row] for row in counts]
            share = np.where(counts > 0, counts / recovery.participants, np.nan)
            framed = [(i, len(NAMES) - 1 - i) for i in range(len(NAMES))]
            shown.append(
                charts.panel(
                    _title(recovery, rho, learner), [charts.cells(share, texts, framed, None, (0.01, 1.0))],
                    x="Model with the lowest BIC", y="Simulated kind", x_ticks=(range(len(NAMES)), short_names()),
                    y_ticks=(range(len(NAMES)), NAMES[::-1]), size=(4.8, 2.9),
                )
            )  # fmt: skip
    title = f"What the data can tell: {recovery.participants} simulated people of each kind"
    columns = len(recovery.config.learners) + 1
    return charts.chart(shown, title, columns=columns, note="SIMULATED DATA: no person took part")


def write_recovery(recovery: StudyRecovery, out: Path) -> list[Path]:
    """Write the tables and the figure of a recovery; return the files."""
    tables = {
        "recovery_people": recovery.people.assign(simulated_epsilon=recovery.lapse),
        "recovery_models": recovery.models.assign(simulated_epsilon=recovery.lapse),
        "recovery_parameters": recovery.parameters.assign(simulated_epsilon=recovery.lapse),
        "recovery_correlations": recovery.correlations,
    }
    files = [
        _put_table(out / f"{name}.csv", table.assign(data="simulated"))
        for name, table in tables.items()
    ]
    return [*files, *save(draw_recovery(recovery), out / "recovery")]
