"""Tables, figures and words about which teacher each person is, and what data can tell."""

import itertools
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
    "How frequent each model of a teacher is among people: mean of the frequency and its standard "
    "deviation. Above "
    "each bar: for how many people the model has the lowest BIC."
)
LIMITS = (
    "A model is fitted to every person by maximum likelihood: p(c) = ε/B + (1−ε)·softmax(ρs)_c, "
    "where s is a score of "
    "the arrows that is replayed from the choices. ρ is per typical spread of the score among the "
    "arrows of a step. "
    "Frequencies and exceedance probabilities come from random-effects model selection over "
    "people, with −BIC/2 as the "
    "evidence. The best of these models need not be a good one: a person may go by something that "
    "is not in the list. "
    "ital study fit --recovery shows how often the fit finds the kind of simulated people."
)


def robot_name(learner: str) -> str:
    """Return the name of a robot in figures."""
    if learner == ALL_ROBOTS:
        return "all robots"
    return LABELS[learner]


def whose(fit: StudyFit) -> str:
    """Return one line about the source of the data."""
    if fit.kind == "simulated":
        return "SIMULATED DATA: no person took part"
    people = fit.participants["human"]
    text = f"Human data: {people} participants"
    if people == 1:
        text = "Human data: 1 participant"
    if fit.mode == "live":
        return text
    return f"{fit.mode.upper()} RUNS, not data of the study. {text}"


def order(fit: StudyFit) -> list[str]:
    """Return the robots of a fit in the order of tables and figures."""
    fitted = set(fit.models["learner"])
    in_order = (*robots(fit.config), ALL_ROBOTS)
    return [learner for learner in in_order if learner in fitted]


def _models_of(fit: StudyFit, teacher: str, learner: str) -> "pd.DataFrame":
    """Return the rows of the models of one teacher and robot."""
    of_teacher = fit.models[fit.models["teacher"] == teacher]
    return of_teacher[of_teacher["learner"] == learner]


def model_rows(fit: StudyFit, teacher: str, learner: str) -> list[list[str]]:
    """Return one row per model for a table, with the columns of :data:`HEADS`.

    Medians are those of the people for whom the model is best.
    """
    rows = []
    for model in _models_of(fit, teacher, learner).to_dict("records"):
        frequency = decimals(model["frequency"])
        spread = decimals(model["frequency_sd"])
        row = [
            model["model"],
            f"{model['best']} of {model['people']}",
            decimals(model["rho_median"]),
            decimals(model["epsilon_median"]),
            f"{frequency} ± {spread}",
            decimals(model["exceedance"], 3),
            decimals(model["protected"], 3),
        ]
        rows.append(row)
    return rows


def sentence(fit: StudyFit, teacher: str, learner: str) -> str:
    """Return the result for one robot in words."""
    models = _models_of(fit, teacher, learner)
    top = models.sort_values("frequency").iloc[-1]
    frequency = decimals(top["frequency"])
    protected = decimals(top["protected"], 3)
    return (
        f"{teacher.capitalize()} teachers, {robot_name(learner)}: "
        f"the model {top['model']} is the most frequent "
        f"({top['best']} of {top['people']} people, frequency {frequency}, "
        f"protected exceedance probability {protected})."
    )


def panels(fit: StudyFit) -> list[Panel]:
    """Return a panel per robot: the frequency of every model, a bar for every teacher."""
    return [_panel(fit, learner) for learner in order(fit)]


def _panel(fit: StudyFit, learner: str) -> Panel:
    of_learner = fit.models[fit.models["learner"] == learner]
    teachers = teachers_in_order(of_learner["teacher"].tolist())
    # The bars of a model stand side by side, centred on its tick.
    width = 0.84 / len(teachers)
    middle = (len(teachers) - 1) / 2
    ticks = np.arange(len(NAMES))
    marks = []
    for index, teacher in enumerate(teachers):
        models = _models_of(fit, teacher, learner)
        kind = teacher.partition(":")[0]
        bars = charts.bars(
            teacher,
            COLOURS.get(kind, charts.SOFT),
            ticks + (index - middle) * width,
            models["frequency"].to_numpy(),
            models["frequency_sd"].to_numpy(),
            width=0.92 * width,
            marks=[str(count or "") for count in models["best"]],
        )
        marks.append(bars)
    return charts.panel(
        robot_name(learner),
        marks,
        y="Frequency among people",
        x_ticks=(range(len(NAMES)), short_names()),
        size=(5.4, 2.9),
    )


def short_names() -> list[str]:
    """Return names of the models that fit below narrow bars."""
    return [name.replace("-", "\n") for name in NAMES]


def draw(fit: StudyFit) -> "Figure":
    """Draw the figure of a fit; it names the source of the data."""
    return charts.chart(panels(fit), "Which teacher is each person?", columns=3, note=whose(fit))


def blocks(fit: StudyFit, teacher: str) -> list[Block]:
    """Return the section of the report: words, the figure, and a table for every robot."""
    if teacher not in set(fit.models["teacher"]):
        return []
    sentences = []
    tables = []
    for learner in order(fit):
        result = sentence(fit, teacher, learner)
        sentences.append(report.paragraph(result))
        rows = model_rows(fit, teacher, learner)
        caption = f"Models of a teacher: {robot_name(learner)}"
        tables.append(report.table(HEADS, rows, caption=caption, numbers_from=1))
    title = "Which teacher is each person?"
    figure = report.figure("fit", title, panels(fit), CAPTION, note=whose(fit))
    notes = map(report.paragraph, [LIMITS, *fit.notes])
    return [*sentences, *figure, *tables, *notes]


def write(fit: StudyFit, out: Path) -> list[Path]:
    """Write the tables and the figure of a fit; return the files."""
    tables = {
        "fit_people": fit.people,
        "fit_models": fit.models,
    }
    files = []
    for name, table in tables.items():
        labelled = table.assign(data=fit.kind, mode=fit.mode)
        files.append(_put_table(out / f"{name}.csv", labelled))
    figure = draw(fit)
    return [*files, *save(figure, out / "fit")]


def write_choices(fit: StudyFit, out: Path) -> Path:
    """Write the table of choices that ``ital fit`` takes, with the scores in their units."""
    return _put_table(out / "fit_choices.csv", fit.choices)


def _put_table(file: Path, table: "pd.DataFrame") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = table.to_csv(index=False, lineterminator="\n")
    put(file, text.encode())
    return file


def screen_tables(fit: StudyFit) -> "list[Table]":
    """Return a table for the screen per teacher: the models that are best for someone."""
    heads = ["robot", "model", "best for", "ρ", "ε", "frequency", "protected exceedance"]
    tables = []
    for teacher in teachers_in_order(fit.models["teacher"].tolist()):
        rows = []
        for learner in order(fit):
            for row in model_rows(fit, teacher, learner):
                model, best, rho, epsilon, frequency, _, protected = row
                if best.startswith("0 "):
                    continue
                # The screen has no room for the standard deviation.
                mean = frequency.partition(" ")[0]
                rows.append([robot_name(learner), model, best, rho, epsilon, mean, protected])
        title = (
            f"Which teacher is each person? {teacher.capitalize()} teachers; "
            "models that are best for someone"
        )
        tables.append(_screen_table(title, heads, rows, texts=2))
    return tables


def _screen_table(
    title: str,
    heads: list[str],
    rows: list[list[str]],
    texts: int,
) -> "Table":
    from rich.table import Table

    """Return a table whose first columns are texts, the others numbers."""
    table = Table(title=title, title_justify="left", pad_edge=False)
    for head in heads[:texts]:
        table.add_column(head, justify="left", no_wrap=True)
    for head in heads[texts:]:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


# Recovery


def confusion(recovery: StudyRecovery, rho: float, learner: str) -> np.ndarray:
    """Return how many simulated people of each kind (rows) each model is best for (columns)."""
    models = recovery.models
    of_rho = models[models["simulated_rho"] == rho]
    of_learner = of_rho[of_rho["learner"] == learner]
    counts = of_learner["best"].to_numpy()
    return counts.reshape(len(NAMES), len(NAMES))


def recovery_table(recovery: StudyRecovery) -> "Table":
    """Return how many people of each kind were found, and medians of the true model's numbers."""
    learners = (*recovery.config.learners, ALL_ROBOTS)
    heads = ["simulated", "true ρ"]
    for learner in learners:
        heads += [LABELS.get(learner, learner), "ρ", "ε"]
    medians = {}
    for row in recovery.parameters.to_dict("records"):
        key = (row["simulated_rho"], row["learner"], row["kind"])
        medians[key] = (row["rho_50"], row["epsilon_50"])
    rows = []
    for rho in recovery.models["simulated_rho"].unique():
        # The diagonal: people for whom the model of their own kind is best.
        found = {learner: confusion(recovery, rho, learner).diagonal() for learner in learners}
        for index, kind in enumerate(NAMES):
            true_rho = f"{rho:g}"
            if kind == RANDOM.name:
                true_rho = "–"
            cells = [kind, true_rho]
            for learner in learners:
                count = found[learner][index]
                # Random people have no ρ and no ε.
                fitted = medians.get((rho, learner, kind), (np.nan, np.nan))
                cells += [str(count), *map(decimals, fitted)]
            rows.append(cells)
    title = (
        f"Of {recovery.participants} simulated people of each kind, how many the true model is "
        f"best for, and medians of its ρ and ε; ε = {recovery.lapse:g}, "
        f"{recovery.steps} steps with each robot"
    )
    return _screen_table(title, heads, rows, texts=1)


def _title(recovery: StudyRecovery, rho: float, learner: str) -> str:
    robots_taught = 1
    if learner == ALL_ROBOTS:
        robots_taught = len(recovery.config.learners)
    steps = recovery.steps * robots_taught
    return f"{robot_name(learner)}, {steps} steps, ρ = {rho:g}, ε = {recovery.lapse:g}"


def draw_recovery(recovery: StudyRecovery) -> "Figure":
    """Draw the confusion of models: a panel per robot and ρ."""
    learners = (*recovery.config.learners, ALL_ROBOTS)
    rhos = recovery.models["simulated_rho"].unique()
    confusions = []
    for rho, learner in itertools.product(rhos, learners):
        confusions.append(_confusion_panel(recovery, rho, learner))
    return charts.chart(
        confusions,
        f"What the data can tell: {recovery.participants} simulated people of each kind",
        columns=len(learners),
        note="SIMULATED DATA: no person took part",
    )


def _confusion_panel(recovery: StudyRecovery, rho: float, learner: str) -> Panel:
    counts = confusion(recovery, rho, learner)
    title = _title(recovery, rho, learner)
    return charts.confusion(title, counts, short_names(), kinds=NAMES, size=(4.8, 2.9))


def write_recovery(recovery: StudyRecovery, out: Path) -> list[Path]:
    """Write the tables and the figure of a recovery; return the files."""
    tables = {
        "recovery_people": recovery.people.assign(simulated_epsilon=recovery.lapse),
        "recovery_models": recovery.models.assign(simulated_epsilon=recovery.lapse),
        "recovery_parameters": recovery.parameters.assign(simulated_epsilon=recovery.lapse),
        "recovery_correlations": recovery.correlations,
    }
    files = []
    for name, table in tables.items():
        labelled = table.assign(data="simulated")
        files.append(_put_table(out / f"{name}.csv", labelled))
    figure = draw_recovery(recovery)
    return [*files, *save(figure, out / "recovery")]
