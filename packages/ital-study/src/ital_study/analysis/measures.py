"""The analysis of a study: arms, outcomes of each arm, tests between robots, learning curves."""

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital import statistics
from ital.errors import InputError
from ital_study.analysis.answers_report import answers_of
from ital_study.config.configuration import Config
from ital_study.config.lineup import (
    ADAPTIVE,
    AWARE,
    AWARE_POSTERIOR,
    KINDS,
    NAIVE,
    POSTERIOR,
)
from ital_study.data.left_out import LeftOut, left_out
from ital_study.data.table import MEASURES, StudyData, check_unique, freeze_notes, unreadable
from ital_study.robots.rules import StudyRules
from ital_study.simulation import arms as _arms
from ital_study.simulation.arms import MATCHED

if TYPE_CHECKING:
    import pandas as pd

ALL_MAPS = "all"  # a participant's mean over maps
CURVES = ("distance", "policy_tv", "reward")
CLAIMED = {"distance_last": "distance", "policy_tv_last": "policy", "reward": "reward"}
"""Outcomes of the paper's claim (ITAL over IMT on every map) with the names of the measures."""

# What learners are called, in the order of tables and figures.
LABELS = {name: KINDS[name].label for name in (AWARE_POSTERIOR, POSTERIOR, AWARE, ADAPTIVE, NAIVE)}
LABELS[MATCHED] = "IMT, matched steps"

Arm = tuple[str, str]  # teacher and learner

# Columns of the table of tests: the arms, and what is tested.
ARMS = ("teacher", "first", "second_teacher", "second")
TESTED = (
    "mean_first",
    "mean_second",
    "n",
    "difference",
    "sd",
    "low",
    "high",
    "t",
    "p",
    "d",
    "wilcoxon_p",
)

# Learners that are compared with each other, if a study has both.
CONTRASTS = (
    (AWARE, NAIVE),
    (AWARE, MATCHED),
    (ADAPTIVE, NAIVE),
    (ADAPTIVE, AWARE),
    (AWARE_POSTERIOR, AWARE),
    (AWARE_POSTERIOR, POSTERIOR),
    (POSTERIOR, AWARE),
    (AWARE_POSTERIOR, NAIVE),
    (POSTERIOR, NAIVE),
    (AWARE_POSTERIOR, ADAPTIVE),
    (POSTERIOR, ADAPTIVE),
)

# A replay may differ from the stored distances by this much: machines round differently.
REPLAY_TOLERANCE = 0.01

PERSON = ["participant", "teacher"]
ARM_AND_MAP = ["teacher", "learner", "map"]


class Measure(NamedTuple):
    """How an outcome is shown. For all outcomes, more is better.

    Attributes:
        title: Title of a figure.
        short: Heading of a column.
    """

    title: str
    short: str


def measures(steps: int) -> dict[str, Measure]:
    """List the outcomes of a robot.

    They are how far its distances fell after the first and last steps, its reward and the gain in
    reward.

    Args:
        steps: Number of steps of a robot on a map.

    Returns:
        How each outcome is shown, by its name.
    """
    names = {
        "distance": "distance",
        "policy_tv": "policy total variation",
        "policy_gap": "policy gap",
    }
    many = f"{steps} steps"
    outcomes = {}
    for name, text in names.items():
        outcomes[f"{name}_first"] = _decrease(text, "1 step")
        outcomes[f"{name}_last"] = _decrease(text, many)
    outcomes["reward"] = Measure(
        title=f"Expected reward after {many}",
        short="final reward",
    )
    outcomes["reward_gain"] = Measure(
        title=f"Gain in expected reward after {many}",
        short="gain in reward",
    )
    return outcomes


def _decrease(text: str, after: str) -> Measure:
    """Return how the decrease of a distance is shown."""
    return Measure(
        title=f"Decrease of the {text} after {after}",
        short=f"{text}, {after}",
    )


class Analysis(NamedTuple):
    """All numbers of a report.

    Attributes:
        config: The study.
        kind: ``human`` or ``simulated``.
        mode: Mode of the participants.
        participants: Number of participants by teacher.
        agreement: Share of steps on which participants chose the machine's pick, by teacher and
            learner.
        outcomes: A row per participant, map and arm.
        summary: Means of the outcomes.
        tests: Paired tests.
        curves: Means and standard errors per step.
        references: Reward of the true policy by map.
        paths: Length of all steps of a robot together.
        replay_error: Largest difference between stored distances and those of a replay.
        notes: What a reader must know.
        left_out: Who is left out of all of this, and why.
        full: Paired tests of everybody who finished.
        answers: Answers to questions, of the participants who count; None without any.
    """

    config: Config
    kind: str
    mode: str
    participants: dict[str, int]
    agreement: dict[Arm, float]
    outcomes: "pd.DataFrame"
    summary: "pd.DataFrame"
    tests: "pd.DataFrame"
    curves: "pd.DataFrame"
    references: dict[str, float]
    paths: "pd.DataFrame"
    replay_error: float
    notes: list[str]
    left_out: LeftOut
    full: "pd.DataFrame"
    answers: "pd.DataFrame | None" = None


def analyze(
    study: StudyData, mode: str | None = None, show: Callable[[int], None] = lambda done: None
) -> Analysis:
    """Analyse a study, without the people whom its rule or the researcher leaves out.

    Tests are also of everybody, so that a reader sees what leaving people out changed.

    If the table lacks the machine and random arms, they are simulated with the same maps, starts
    and arrows as the participants' arms. So is the matched-step control.

    Args:
        study: Configuration and step table.
        mode: Mode of the participants; None: ``live`` if there are any, else ``simulated``.
        show: Called with the number of simulated participants that are done.

    Returns:
        Arms, outcomes, tests and curves.

    Raises:
        InputError: There are no steps of that mode, a step is in the table twice, or nobody has
            finished.
    """
    config = study.config
    check_unique(study.steps)
    mode, steps, notes = rows_of_mode(study.steps, mode)
    notes += unreadable(study.participants, mode)
    notes += freeze_notes(study.freeze)
    steps, notes_on_incomplete = complete(config, steps)
    notes += notes_on_incomplete
    rules = StudyRules(config)
    teachers = list(dict.fromkeys(steps["teacher"]))
    table, paths, replay_error = _all_arms(rules, steps, show)
    full_outcomes = outcomes_of(config, table)
    gone = left_out(config, steps, study.participants)
    outcomes = gone.without(full_outcomes)
    remaining = gone.without(steps)
    kind = "simulated"
    if "human" in teachers:
        kind = "human"
    names = list(measures(config.steps))
    return Analysis(
        config=config,
        kind=kind,
        mode=mode,
        participants=_count_participants(remaining, teachers),
        agreement=agreement_of(remaining),
        outcomes=outcomes,
        summary=summarise(outcomes, names),
        tests=compare(outcomes, names),
        curves=curves_of(gone.without(table)),
        references=_best_rewards(rules),
        paths=gone.without(paths),
        replay_error=replay_error,
        notes=_with_notes_on_arms(notes, kind, replay_error),
        left_out=gone,
        full=compare(full_outcomes, names),
        answers=answers_of(study.answers, remaining),
    )


def _all_arms(
    rules: StudyRules, steps: "pd.DataFrame", show: Callable[[int], None]
) -> tuple["pd.DataFrame", "pd.DataFrame", float]:
    """Return the steps and the path lengths of all arms, and the largest error of a replay.

    The machine and random arms, and the control, are simulated where the table lacks them.
    """
    import pandas as pd

    config = rules.config
    of_control, paths, replay_error = _replays(config, rules, steps)
    numbers = sorted(map(int, steps["participant"].unique()))
    names = dict.fromkeys(["machine", "random", *steps["teacher"]])
    names.pop("human", None)
    teachers = [_arms.teacher(name, default=config.beta) for name in names]
    arms_run = _arms.run(
        config,
        numbers,
        teachers,
        with_control(config),
        rules=rules,
        show=show,
    )
    simulated = _arms.table(config, arms_run)
    simulated_paths = _paths_of(arms_run)
    # The table's own rows come first, then what it lacks.
    lacking = simulated[_lacking(simulated, steps)]
    lacking_paths = simulated_paths[_lacking(simulated_paths, steps)]
    all_steps = pd.concat([steps, of_control, lacking], ignore_index=True)
    all_paths = pd.concat([paths, lacking_paths], ignore_index=True)
    return all_steps, all_paths, replay_error


def _count_participants(steps: "pd.DataFrame", teachers: Sequence[str]) -> dict[str, int]:
    """Count the participants of every teacher."""
    counts = {}
    for teacher in teachers:
        of_teacher = steps[steps["teacher"] == teacher]
        counts[teacher] = int(of_teacher["participant"].nunique())
    return counts


def _best_rewards(rules: StudyRules) -> dict[str, float]:
    """Return the reward of the true policy by map."""
    rewards = {}
    for map_ in rules.config.maps:
        truth = rules.truth(map_.name)
        measured = rules.measures(map_.name, truth.target)
        rewards[map_.name] = measured["reward"]
    return rewards


def _with_notes_on_arms(notes: list[str], kind: str, replay_error: float) -> list[str]:
    """Add what a reader must know about the arms; the most important note comes first."""
    before = []
    after = []
    # Written this way, an error that is NaN is noted too.
    if not replay_error < REPLAY_TOLERANCE:
        after.append(
            "Stored beliefs differ from a replay of the choices, "
            f"by up to {replay_error:.2g} in distance: these data were not all made under "
            "the configuration in study.toml, or not by this version of ital."
        )
    if kind == "simulated":
        before.append("No person took part: programs chose every arrow. The human arms are empty.")
    else:
        after.append(
            "The machine and random arms are simulated with the participants' maps, starts and "
            "arrows. The control of the human arm sees the arrows that people chose for the aware "
            "robot."
        )
    return [*before, *notes, *after]


def rows_of_mode(steps: "pd.DataFrame", mode: str | None) -> tuple[str, "pd.DataFrame", list[str]]:
    """Return the mode that is meant, its rows, and notes about rows of other modes."""
    modes = list(dict.fromkeys(steps["mode"]))
    if mode is None:
        candidates = [name for name in ("live", "simulated") if name in modes]
        mode = next(iter(candidates), None)
    if mode is None or mode not in modes:
        wanted = mode or "live or simulated"
        present = "the table is empty"
        if modes:
            present = f"there are {', '.join(modes)}"
        raise InputError(f"no steps of mode {wanted} in this study: {present}")
    notes = []
    others = [name for name in modes if name != mode]
    if others:
        notes.append(f"Rows of other modes ({', '.join(others)}) are left out.")
    if mode in ("pilot", "preview"):
        notes.append(f"These are {mode} runs. They do not count as data of the study.")
    return mode, steps[steps["mode"] == mode], notes


def complete(config: Config, steps: "pd.DataFrame") -> tuple["pd.DataFrame", list[str]]:
    """Select the rows of usable participants who taught every robot all steps of every map.

    Args:
        config: The study.
        steps: The step table.

    Returns:
        The rows, and notes on those that are left out.

    Raises:
        InputError: Nobody has finished.
    """
    everyone = steps.groupby(PERSON).ngroups
    maps = [map_.name for map_ in config.maps]
    is_of_study = steps["learner"].isin(config.learners) & steps["map"].isin(maps)
    is_counted = steps["step"] <= config.steps
    usable = steps[steps["usable"] & is_of_study & is_counted]
    rows_of_person = usable.groupby(PERSON)["step"].transform("size")
    rows_of_study = len(maps) * len(config.learners) * config.steps
    rows = usable[rows_of_person == rows_of_study]
    finished = rows.groupby(PERSON).ngroups
    if not finished:
        raise InputError(
            "no participant of this study has finished all steps: there is nothing to analyse yet"
        )
    notes = []
    if finished < everyone:
        notes.append(
            f"{everyone - finished} of {everyone} participants did not finish or are not usable, "
            "and are left out."
        )
    hashes = rows["config"]
    versions = hashes.nunique()
    if versions > 1 or hashes.iloc[0] != config.hash:
        notes.append(
            f"The data come from {versions} version(s) of the configuration, "
            "not only from the one in study.toml."
        )
    return rows, notes


def _replays(
    config: Config, rules: StudyRules, steps: "pd.DataFrame"
) -> tuple["pd.DataFrame", "pd.DataFrame", float]:
    """Replay every choice to its robot, as a check, and people's choices to the control.

    The control sees what people chose for the aware robot, because nobody taught the control
    itself.

    Returns:
        The steps of people's control, the path lengths of all robots, and the largest error of a
        distance.
    """
    import pandas as pd

    of_control = steps.head(0)
    paths = []
    errors = [0.0]
    for learner in config.learners:
        rows = steps[steps["learner"] == learner]
        replayed, lengths = _replay(rules, rows, learner)
        paths.append(lengths)
        stored_distance = _in_order_of_replay(rows)["distance"].to_numpy()
        replayed_distance = replayed["distance"].to_numpy()
        error = np.abs(replayed_distance - stored_distance)
        errors.append(float(error.max()))
        by_people = rows[rows["teacher"] == "human"]
        if learner == AWARE and len(by_people):
            of_control, lengths_of_control = _replay(rules, by_people, MATCHED)
            paths.append(lengths_of_control)
    return of_control, pd.concat(paths, ignore_index=True), max(errors)


def _in_order_of_replay(rows: "pd.DataFrame") -> "pd.DataFrame":
    return rows.sort_values(["teacher", "participant", "map", "step"], kind="stable")


def _replay(
    rules: StudyRules, rows: "pd.DataFrame", learner: str
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Show the choices of some rows to a learner.

    Args:
        rules: The rules of the study.
        rows: All steps of some robots.
        learner: The learner that sees the choices.

    Returns:
        The rows in order, with the learner and its measures, and the path length of each robot.
    """
    rows = _in_order_of_replay(rows)
    robots_taught = rows.groupby(["teacher", "participant", "map"], sort=False)
    taught = []
    for _, own in robots_taught:
        first = own.iloc[0]
        of_robot = _arms.Taught(
            number=int(first["participant"]),
            map=first["map"],
            choices=own["choice"].tolist(),
        )
        taught.append(of_robot)
    replayed = _arms.replay(rules, taught, learner)
    columns: dict[str, Any] = {"learner": learner}
    # Measures have axes robot and step, and begin before the first step.
    for name, values in replayed.measures.items():
        columns[name] = values[:, 1:].ravel()
        columns[f"{name}_before"] = values[:, :-1].ravel()
    heads = rows[rows["step"] == 1]
    paths = _paths(heads, learner, replayed.length)
    return rows.assign(**columns), paths


def _paths(heads: "pd.DataFrame", learner: str, length: np.ndarray) -> "pd.DataFrame":
    """Return the path length of each robot: the sum of its step lengths."""
    robots_taught = heads[["teacher", "map", "participant"]].reset_index(drop=True)
    return robots_taught.assign(
        learner=learner,
        path=length.sum(axis=-1, dtype=float),
        start=heads["distance_before"].to_numpy(),
    )


def _lacking(simulated: "pd.DataFrame", steps: "pd.DataFrame") -> "pd.Series":
    """Say of every simulated row whether a table lacks it.

    It lacks teachers that are not in it, and the control of those that are.
    """
    import pandas as pd

    is_new_teacher = ~simulated["teacher"].isin(steps["teacher"])
    is_control = simulated["learner"] == MATCHED
    people = pd.MultiIndex.from_frame(steps[PERSON])
    simulated_people = pd.MultiIndex.from_frame(simulated[PERSON])
    took_part = simulated_people.isin(people)
    return is_new_teacher | (is_control & took_part)


def _paths_of(run: _arms.ArmsRun) -> "pd.DataFrame":
    """Return the path length of every robot of a run."""
    import pandas as pd

    rows = []
    for (teacher, learner), number, map_name in itertools.product(run.arms, run.numbers, run.maps):
        rows.append((teacher, map_name, number, learner))
    table = pd.DataFrame(rows, columns=["teacher", "map", "participant", "learner"])
    # Axes participant, map, arm; rows of the table begin with the arm.
    path = run.trace.length.sum(axis=-1, dtype=float)
    start = run.measures["distance"][..., 0]
    return table.assign(
        path=np.moveaxis(path, -1, 0).ravel(),
        start=np.moveaxis(start, -1, 0).ravel(),
    )


def agreement_of(steps: "pd.DataFrame") -> dict[Arm, float]:
    """Return how often participants chose the machine's pick, by teacher and learner."""
    is_same = steps["choice"] == steps["machine_choice"]
    by_arm = steps.assign(same=is_same).groupby(["teacher", "learner"])
    shares = by_arm["same"].mean().reset_index()
    agreement = {}
    for row in shares.to_dict("records"):
        teacher = row["teacher"]
        learner = row["learner"]
        agreement[teacher, learner] = float(row["same"])
    return agreement


def outcomes_of(config: Config, steps: "pd.DataFrame") -> "pd.DataFrame":
    """Return the outcomes of every robot taught, and their mean over maps as map "all".

    Decreases and gains are those from the participant's first belief w⁰ on the map, for all robots.
    """
    import pandas as pd

    key = [*ARM_AND_MAP, "participant"]
    is_first = steps["step"] == 1
    is_last = steps["step"] == config.steps
    # A row per robot taught; both tables have the same order.
    first = steps[is_first].set_index(key)
    last = steps[is_last].set_index(key).loc[first.index]
    start = first.assign(**_from_one_start(first))
    learned = {}
    for name in ("distance", "policy_tv", "policy_gap"):
        before = start[f"{name}_before"]
        learned[f"{name}_first"] = before - first[name]
        learned[f"{name}_last"] = before - last[name]
    reward = last["reward"]
    learned["reward"] = reward
    learned["reward_gain"] = reward - start["reward_before"]
    per_map = pd.DataFrame(learned).reset_index()
    by_robot = per_map.groupby(["teacher", "learner", "participant"], sort=False)
    over_maps = by_robot.mean(numeric_only=True).reset_index()
    over_maps = over_maps.assign(map=ALL_MAPS)
    table = pd.concat([per_map, over_maps], ignore_index=True)
    return table[[*key, *learned]]


def _from_one_start(first: "pd.DataFrame") -> "dict[str, pd.Series]":
    """Return the measures of every robot before its first step, as if all had begun at w⁰.

    Robots that keep a belief begin with the mean of their prior, which is nearer to the truth than
    w⁰. Differences between robots are to say how near they came, not where they began.
    """
    kinds_that_believe = [name for name, kind in KINDS.items() if kind.believes]
    believes = first.index.get_level_values("learner").isin(kinds_that_believe)
    if believes.all() or not believes.any():
        return {}
    columns = [f"{name}_before" for name in MEASURES]
    # w⁰ follows from participant and map, whoever teaches.
    at_start = first[~believes].groupby(["map", "participant"])[columns].first()
    own_start = first[believes].reset_index()[["map", "participant"]]
    maps_and_people = own_start.apply(tuple, axis=1)
    found = at_start.reindex(maps_and_people).to_numpy()
    replaced = first[columns].copy()
    own = replaced.loc[believes]
    # Where nobody taught a robot that began at w⁰, the own start stays.
    replaced.loc[believes] = np.where(np.isnan(found), own, found)
    return {name: replaced[name] for name in columns}


def summarise(outcomes: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Return mean, deviation, standard error and n of every outcome, per map and over maps."""
    long = outcomes.melt(
        id_vars=[*ARM_AND_MAP, "participant"],
        value_vars=list(names),
        var_name="outcome",
        value_name="value",
    )
    values = long.groupby([*ARM_AND_MAP, "outcome"], sort=False)["value"]
    table = values.agg(["mean", "std", "sem", "count"]).reset_index()
    return table.rename(columns={"std": "sd", "count": "n"})


def contrasts(teachers: Sequence[str]) -> list[tuple[Arm, Arm]]:
    """Return the arms to compare, if a study has them.

    First, for every teacher, its robots with each other and with the control. Then the robots that
    read the choice, of every teacher, with those of the machine and the random teacher.
    """
    pairs: list[tuple[Arm, Arm]] = []
    for teacher, (first, second) in itertools.product(teachers, CONTRASTS):
        one = (teacher, first)
        other = (teacher, second)
        pairs.append((one, other))
    order = teachers_in_order(teachers)
    for learner, teacher in itertools.product((AWARE, ADAPTIVE, AWARE_POSTERIOR), order):
        place = order.index(teacher)
        later_teachers = order[place + 1 :]
        for reference in ("machine", "random"):
            if reference not in later_teachers:
                continue
            one = (teacher, learner)
            other = (reference, learner)
            pairs.append((one, other))
    return pairs


def compare(outcomes: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Test all contrasts by paired tests, for every outcome and map.

    Teachers are paired where participants had both.

    Holm's adjustment is over the maps, separately for each contrast and outcome, so another arm
    changes no family of tests. The mean over maps is a single test and needs no adjustment.
    """
    import pandas as pd

    of_arm = {}
    for key, own in outcomes.groupby(["teacher", "learner"]):
        of_arm[key] = own.set_index(["map", "participant"])[list(names)]
    teachers = list(dict.fromkeys(outcomes["teacher"]))
    maps = list(dict.fromkeys(outcomes["map"]))
    rows = []
    for first, second in contrasts(teachers):
        if first not in of_arm or second not in of_arm:
            continue
        # A row per map and participant of both arms; the second arm's columns end in "|".
        pairs = of_arm[first].join(of_arm[second].add_suffix("|"), how="inner")
        maps_of_both = pairs.index.unique(level="map")
        arms = dict(zip(ARMS, (*first, *second), strict=True))
        for name in names:
            family = []
            for map_name in maps:
                if map_name not in maps_of_both:
                    continue
                of_map = pairs.xs(map_name, level="map")
                of_first = of_map[name].to_numpy()
                of_second = of_map[f"{name}|"].to_numpy()
                test = {
                    **arms,
                    "outcome": name,
                    "map": map_name,
                    **_tested(of_first, of_second),
                }
                family.append(test)
            rows += _adjusted(family)
    columns = [*ARMS, "outcome", "map", *TESTED, "p_holm", "stars"]
    return pd.DataFrame(rows, columns=columns)


def _tested(first: np.ndarray, second: np.ndarray) -> dict[str, float | int]:
    """Return the columns of a paired test, and Wilcoxon's p beside it."""
    columns = statistics.paired(first, second)._asdict()
    columns["mean_first"] = float(first.mean())
    columns["mean_second"] = float(second.mean())
    columns["wilcoxon_p"] = statistics.wilcoxon(first, second)
    return {name: columns[name] for name in TESTED}


def _adjusted(family: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add Holm's p and stars to the tests of a contrast, one per map and one over maps."""
    p_of_maps = [row["p"] for row in family if row["map"] != ALL_MAPS]
    adjusted = iter(statistics.holm(np.array(p_of_maps)))
    rows = []
    for row in family:
        p_holm = row["p"]
        if row["map"] != ALL_MAPS:
            p_holm = float(next(adjusted))
        of_family = {
            "p_holm": p_holm,
            "stars": statistics.stars(p_holm),
        }
        rows.append(row | of_family)
    return rows


def curves_of(steps: "pd.DataFrame") -> "pd.DataFrame":
    """Return mean and standard error of every measure at every step, per arm and map.

    Step 0 is before the first.
    """
    import pandas as pd

    first = steps[steps["step"] == 1]
    before = {name: first[f"{name}_before"] for name in MEASURES}
    start = first.assign(step=0, **before)
    long = pd.concat([start, steps], ignore_index=True)
    key = [*ARM_AND_MAP, "step"]
    grouped = long.groupby(key, sort=False)[list(MEASURES)]
    means = grouped.mean()
    errors = grouped.sem().add_suffix("_sem")
    table = pd.concat([means, errors], axis=1)
    table = table.assign(n=grouped.size()).reset_index()
    return table.sort_values(key, kind="stable", ignore_index=True)


def robots(config: Config) -> tuple[str, ...]:
    """Return the kinds of robot in the order of tables and figures."""
    return tuple(learner for learner in LABELS if learner in config.learners)


def arm(teacher: str, learner: str) -> str:
    """Return the name of an arm in the paper, such as Human ITAL or Machine IMT."""
    name, _, rationality = teacher.partition(":")
    label = LABELS.get(learner, learner)
    if rationality:
        return f"{name.capitalize()} {rationality} {label}"
    return f"{name.capitalize()} {label}"


def teachers_in_order(names: Sequence[str]) -> list[str]:
    """Sort teachers.

    People first, then the machine, then Boltzmann teachers, then the random one.
    """
    kinds = ["human", "machine", "boltzmann", "random"]

    def rank(name: str) -> tuple[int, str]:
        kind = name.partition(":")[0]
        if kind not in kinds:
            return len(kinds), name
        return kinds.index(kind), name

    return sorted(dict.fromkeys(names), key=rank)


def with_control(config: Config) -> tuple[str, ...]:
    """Return the kinds of robot of a study, and the control if there is an aware robot to match."""
    if AWARE in config.learners:
        return (*config.learners, MATCHED)
    return config.learners


def compared_robots(config: Config) -> list[tuple[str, str]]:
    """Return the pairs of a study's robots that its report compares, the main one first."""
    robots_of_study = set(config.learners)
    return [pair for pair in CONTRASTS if robots_of_study.issuperset(pair)]
