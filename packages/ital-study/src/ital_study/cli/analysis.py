"""``ital study simulate``, ``analyze`` and ``power``."""

import dataclasses
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ital.errors import InputError
from ital.tools.files import check_writable
from ital.tools.platform import set_up_jax
from ital_study.cli.serve import CONFIG, need_extra

if TYPE_CHECKING:
    import pandas as pd

    from ital_study.config.configuration import Config
    from ital_study.data.table import StudyData
    from ital_study.simulation.arms import ArmTeacher

KEY = "ITAL_STUDY_SIMULATION_KEY"


def register(app: typer.Typer) -> None:
    """Add the commands of the rules and the analysis to ``ital study``."""
    app.command(epilog="Example: ital study simulate --participants 20 --out simulated")(simulate)
    app.command(epilog="Example: ital study analyze simulated")(analyze)
    app.command(epilog="Example: ital study power --effect 0.5 --tests 5")(power)


def simulate(
    participants: Annotated[
        int, typer.Option(help="Number of participants.", min=1, show_default=False)
    ],
    teacher: Annotated[
        str, typer.Option(help="How they choose: machine (the best arrow), boltzmann or random.")
    ] = "machine",
    rationality: Annotated[
        float | None,
        typer.Option(
            help="Rationality of boltzmann teachers; large: like the machine (default: β)."
        ),
    ] = None,
    config: CONFIG = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the data. Simulates here, without a server.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="A running study: go through its pages as people do.")
    ] = None,
    think: Annotated[
        float, typer.Option(help="With --url: mean number of seconds before each choice.", min=0)
    ] = 0.0,
    at_once: Annotated[
        int | None,
        typer.Option(help="With --url: number of participants at a time (default: all).", min=1),
    ] = None,
    ramp: Annotated[
        float, typer.Option(help="With --url: seconds within which all begin.", min=0)
    ] = 0.0,
    limit: Annotated[
        float | None, typer.Option(help="With --url: seconds after which all stop.", min=0)
    ] = None,
    seed: Annotated[
        int, typer.Option(help="With --url: seed of the random choices and pauses.", min=0)
    ] = 0,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="With --out: also teach the adaptive robot.")
    ] = False,
) -> None:
    """Let programs take part instead of people. Their data are marked. --out takes several
    teachers: machine,random.
    """
    if (out is None) == (url is None):
        raise InputError(
            "give either --out DIR, to simulate here, or --url URL, to take part in a running study"
        )
    if adaptive and out is None:
        raise InputError(
            "--adaptive needs --out: with --url the server's configuration decides "
            "which robots there are"
        )
    study, teachers = _study_and_teachers(config, teacher, rationality)
    if out is not None:
        if adaptive:
            study = _with_adaptive(study)
        _simulate_here(study, participants, teachers, out)
    elif url is not None:
        if len(teachers) > 1:
            raise InputError("--url takes one teacher only: run the command once per teacher")
        options = {"think": think, "at_once": at_once, "ramp": ramp, "limit": limit, "seed": seed}
        _simulate_there(study, participants, teachers[0], url, options)


def _with_adaptive(config: "Config") -> "Config":
    """Return a study with the adaptive robot among its robots."""
    from ital_study.config.lineup import ADAPTIVE, study_kinds

    if config.robots:
        return dataclasses.replace(config, robots=study_kinds((*config.robots, ADAPTIVE)))
    return dataclasses.replace(config, adaptive=True)


def _study_and_teachers(
    config: str | None, teacher: str, rationality: float | None
) -> tuple["Config", list["ArmTeacher"]]:
    # The steps of a study are far too small for a GPU.
    set_up_jax("cpu")
    from ital_study.config.load import load_config
    from ital_study.simulation import arms

    study = load_config(config)
    names = [name.strip() for name in teacher.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"teacher must be machine, random, boltzmann or several of them, not {teacher!r}"
        )
    if rationality is not None and "boltzmann" not in names:
        raise InputError("--rationality needs --teacher boltzmann")
    # The rationality of boltzmann:RHO is in its name.
    rationalities = {"boltzmann": rationality}
    teachers = [arms.teacher(name, rationalities.get(name), default=study.beta) for name in names]
    return study, teachers


def _simulate_here(
    config: "Config", participants: int, teachers: list["ArmTeacher"], out: Path
) -> None:
    from ital.tools.progress import show_progress
    from ital_study.data import table as _table
    from ital_study.simulation import arms

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an empty folder: choose another --out")
    check_writable(out)
    with show_progress(
        f"study {config.name}: {participants} simulated participants", participants
    ) as show:
        steps = arms.simulate(config, participants, teachers, show=show)
    for file in _table.write_study(out, config, steps):
        print(file)


def _simulate_there(
    config: "Config", count: int, teacher: "ArmTeacher", url: str, options: dict[str, Any]
) -> None:
    import asyncio

    from ital.tools.progress import show_progress
    from ital_study.simulation import participants as _participants

    key = os.environ.get(KEY, "")
    if not key:
        raise InputError(
            f"simulated participants need the server's key: set the environment variable {KEY}"
        )
    total = count * config.total_steps
    with show_progress(f"{count} simulated participants, {teacher.name}", total) as show:
        shown_at = time.monotonic()

        # Thousands of steps a second would be more than a terminal can show.
        def show_at_times(steps: int) -> None:
            nonlocal shown_at
            if time.monotonic() - shown_at > 0.2:
                shown_at = time.monotonic()
                show(steps)

        running = _participants.take_part(
            url, config, teacher, count, key=key, show=show_at_times, **options
        )
        outcome = asyncio.run(running)
        show(len(outcome.latencies))
    summary = outcome.summary()
    print(f"{summary['finished']:.0f} of {count} finished (simulated, {teacher.name} teacher)")
    print(
        f"{summary['steps']:.0f} steps in {summary['seconds']:.1f} s, "
        f"{summary['steps_per_second']:.1f} per second; "
        f"a step took {summary['median_ms']:.1f} ms (median), "
        f"{summary['p95_ms']:.1f} (95th percentile), {summary['p99_ms']:.1f} (99th), "
        f"{summary['slowest_ms']:.1f} (slowest); {summary['retries']:.0f} repeated"
    )


def analyze(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder written by export or simulate --out, or a database.", show_default=False
        ),
    ],
    mode: Annotated[
        str | None,
        typer.Option(
            help="Data to use: live, pilot, preview, trial or simulated (default: live if any)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for tables, figures and report (default: the subfolder analysis)."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Picture of the participants' page, .svg or .png (default: the paper's study)."
        ),
    ] = None,
) -> None:
    """Analyse a study: arms, tests, bars, curves and a one-page report that says whether data are
    simulated.
    """
    set_up_jax("cpu")
    from ital.tools.progress import show_progress
    from ital_study import fit, interface
    from ital_study.analysis import measures
    from ital_study.data import table as _table
    from ital_study.report import figures, page, quality_report

    study, folder = read_source(source, mode)
    interface(study.config, picture)  # raises for an unreadable picture before anything is written
    check_writable(out or folder)
    people = study.steps["participant"].nunique()
    with show_progress(
        f"study {study.config.name}: arms of {people} participants", max(people, 1)
    ) as show:
        analysis = measures.analyze(study, mode, show=show)
    with show_progress(f"study {study.config.name}: models of a teacher", 100) as show:
        try:
            fitted = fit(study, mode, show=show)
        except InputError as error:
            # These data cannot be replayed. The rest of the report stands.
            analysis.notes.append(f"No model of a teacher was fitted: {error}.")
            fitted = None
    files = page.write(analysis, out or folder, picture, fitted)
    print(figures.whose(analysis))
    _print_tables(page.text_tables(analysis))
    print()
    unreadable = _table.unreadable(study.participants, analysis.mode)
    of_plan = _table.freeze_notes(study.freeze)
    summary = quality_report.summary(analysis)
    for sentence in [*page.findings(analysis), summary, *unreadable, *of_plan]:
        print(sentence)
    print()
    print(f"report: {next(file for file in files if file.suffix == '.html')}")


def _print_tables(tables: "dict[str, pd.DataFrame]") -> None:
    if tables:
        print()
        print("Means over participants. Paired t-tests, two-sided;", end=" ")
        print("p (Holm) is adjusted over the maps. More is better.")
    for title, table in tables.items():
        print(f"\n{title}")
        print(table.to_string(index=False))


def read_source(source: str, mode: str | None) -> tuple["StudyData", Path]:
    """Read the study from a folder, a database file or a database URL.

    Also return the default folder for results.
    """
    from ital_study.data import table as _table

    if mode is not None and mode not in _table.MODES:
        raise InputError(f"mode must be one of {', '.join(_table.MODES)}, not {mode!r}")
    path = Path(source)
    if path.is_dir() and not (path / "study.db").is_file():
        return _table.read_study(path), path / "analysis"
    if "://" not in source and not path.exists():
        raise InputError(f"there is no folder or database {source}")
    database = str(path / "study.db") if path.is_dir() else source
    modes = [mode] if mode else ["live", "simulated"]
    return _read_database(database, modes, source), Path("analysis")


def _read_database(database: str, modes: list[str], source: str) -> "StudyData":
    """Read participants of some modes; ``source`` is what the user called the database."""
    need_extra()
    import pandas as pd

    from ital_study.data import table as _table
    from ital_study.store import freezes, open_store
    from ital_study.store.answers_table import answers_table
    from ital_study.store.participants_table import participant_blocks

    with open_store(database) as store:
        config = store.config()
        tables = [store.steps_table(name) for name in modes]
        answers = pd.concat([answers_table(store, name) for name in modes], ignore_index=True)
        blocks: list[pd.DataFrame] = []
        with store.reading() as connection:
            for name in modes:
                blocks += participant_blocks(connection, name)
            frozen = freezes.summary(connection)
        people = pd.concat(blocks)
    # An empty table has no types of columns.
    tables = [table for table in tables if len(table)]
    if not tables:
        raise InputError(f"no participant of {source} has taught yet: there is nothing to analyse")
    steps = _table.frame(pd.concat(tables, ignore_index=True))
    return _table.StudyData(config, steps, answers, people, frozen)


def power(
    effect: Annotated[
        float | None,
        typer.Option(
            help="Cohen's d of the paired difference; prints the number of people it needs."
        ),
    ] = None,
    participants: Annotated[
        int | None,
        typer.Option(help="Number of people; prints the smallest effect they can find.", min=2),
    ] = None,
    chance: Annotated[
        float, typer.Option("--power", help="Probability of finding the effect.")
    ] = 0.8,
    alpha: Annotated[float, typer.Option(help="Significance level, two-sided.")] = 0.05,
    tests: Annotated[
        int, typer.Option(help="Number of tests that share the level, e.g. 5 maps.", min=1)
    ] = 1,
    rationality: Annotated[
        str | None,
        typer.Option(help="Without an effect: rationalities of simulated teachers, e.g. 1,10,100."),
    ] = None,
    pool: Annotated[
        int, typer.Option(help="Number of simulated participants per teacher.", min=10)
    ] = 100,
    outcome: Annotated[
        str, typer.Option(help="Outcome to compare: a column of outcomes.csv.")
    ] = "distance_last",
    robot: Annotated[str, typer.Option(help="Kind of robot to compare.")] = "aware",
    against: Annotated[
        str,
        typer.Option(help="What to compare it with: another kind, or imt-matched (the control)."),
    ] = "naive",
    config: CONFIG = None,
) -> None:
    """Compute how many participants a study needs, for a given effect or for simulated teachers."""
    from ital_study.analysis import power as _power

    _power.check(power=chance, alpha=alpha, tests=tests)
    level = f"α = {alpha:g} two-sided"
    if tests > 1:
        level += f", {tests} tests (Bonferroni)"
    wanted = f"power {chance:g}, {level}"
    if effect is not None and participants is not None:
        _power.check_effect(effect)
        share = _power.power_of(participants, effect, alpha, tests)
        found = f"with probability {share:.3f} ({level})"
        print(f"{participants} participants find d = {effect:g} {found}")
    elif effect is not None:
        needed = _power.participants_needed(effect, chance, alpha, tests)
        print(f"d = {effect:g} needs {needed} participants ({wanted})")
    elif participants is not None:
        smallest = _power.smallest_effect(participants, chance, alpha, tests)
        print(f"{participants} participants find d = {smallest:.3f} or more ({wanted})")
    else:
        _power_of_simulated(config, rationality, pool, outcome, (robot, against), chance, alpha)


def _power_of_simulated(
    config: str | None,
    rationality: str | None,
    pool: int,
    outcome: str,
    robots: tuple[str, str],
    chance: float,
    alpha: float,
) -> None:
    set_up_jax("cpu")
    from ital.tools.progress import show_progress
    from ital_study.analysis import power as _power
    from ital_study.config.load import load_config
    from ital_study.simulation import arms

    study = load_config(config)
    robot, against = robots
    values = [str(rho) for rho in _power.RATIONALITIES]
    if rationality is not None:
        values = rationality.split(",")
    boltzmann = [f"boltzmann:{value.strip()}" for value in values]
    names = ["random", *boltzmann, "machine"]
    teachers = [arms.teacher(name, default=study.beta) for name in names]
    with show_progress(f"{pool} simulated participants, {len(teachers)} teachers", pool) as show:
        table = _power.simulated_effects(
            study,
            teachers,
            pool=pool,
            outcome=outcome,
            robot=robot,
            against=against,
            power=chance,
            alpha=alpha,
            show=show,
        )
    print(
        "SIMULATED teachers. Where people lie between them is unknown until people have taken part."
    )
    print(
        f"{outcome}, {robot} against {against}; "
        f"participants needed for power {chance:g}, α = {alpha:g}:"
    )
    _print_needed(table)


def _print_needed(table: "pd.DataFrame") -> None:
    """Print how many participants are needed, a row per teacher."""
    # A number that is missing lies beyond those that were tried.
    for name in ("needed", "needed_all_maps"):
        numbers = table[name]
        table[name] = numbers.map(str).where(numbers.notna(), "more")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
