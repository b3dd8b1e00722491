"""The analysis of a study: arms, outcomes of each arm, tests between robots, learning curves."""

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital import statistics
from ital.errors import InputError
from ital_study.analysis.answers_report import answers_of
from ital_study.config.configuration import Config
from ital_study.config.kinds import ADAPTIVE
from ital_study.data.left_out import LeftOut, left_out
from ital_study.data.table import MEASURES, StudyData, check_unique, unreadable
from ital_study.robots.rules import StudyRules
from ital_study.simulation import arms as _arms
from ital_study.simulation.arms import MATCHED

if TYPE_CHECKING:
    import pandas as pd

ALL_MAPS = "all"  # a participant's mean over maps
CURVES = ("distance", "policy_tv", "reward")
CLAIMED = {"distance_last": "distance", "policy_tv_last": "policy", "reward": "reward"}
"""Outcomes of the paper's claim (ITAL over IMT on every map) with the names of the measures."""
LABELS = {"aware": "ITAL", ADAPTIVE: "ITAL adaptive", "naive": "IMT", MATCHED: "IMT, matched steps"}
Arm = tuple[str, str]  # teacher and learner
ARMS = ("teacher", "first", "second_teacher", "second")  # columns of the table of tests
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
CONTRASTS = (("aware", "naive"), ("aware", MATCHED), (ADAPTIVE, "naive"), (ADAPTIVE, "aware"))


class Measure(NamedTuple):
    """How an outcome is shown. For all outcomes, more is better.

    Attributes:
        title: Title of a figure.
        short: Heading of a column.
    """

    title: str
    short: str


def measures(steps: int) -> dict[str, Measure]:
    """List the outcomes of a robot: how far its distances fell after the first and last steps, its reward and the gain.

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
    outcomes = {
        f"{name}_{when}": Measure(f"Decrease of the {text} after {after}", f"{text}, {after}")
        for name, text in names.items()
        for when, after in (("first", "1 step"), ("last", f"{steps} steps"))
    }
    outcomes["reward"] = Measure(f"Expected reward after {steps} steps", "final reward")
    outcomes["reward_gain"] = Measure(
        f"Gain in expected reward after {steps} steps", "gain in reward"
    )
    return outcomes


class Analysis(NamedTuple):
    """All numbers of a report.

    Attributes:
        config: The study.
        kind: ``human`` or ``simulated``.
        mode: Mode of the participants.
        participants: Number of participants by teacher.
        agreement: Share of steps on which participants chose the machine's pick, by teacher and learner.
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
    """Analyse a study, without the people whom its rule or the researcher leaves out; tests are also of everybody.

    If the table lacks the machine and random arms, they are simulated with the same maps, starts and arrows as the
    participants' arms. So is the matched-step control.

    Args:
        study: Configuration and step table.
        mode: Mode of the participants; None: ``live`` if there are any, else ``simulated``.
        show: Called with the number of simulated participants that are done.

    Returns:
        Arms, outcomes, tests and curves.

    Raises:
        InputError: There are no steps of that mode, a step is in the table twice, or nobody has finished.
    """
    import pandas as pd

    config, steps = study.config, study.steps
    check_unique(steps)
    mode, steps, notes = rows_of_mode(steps, mode)
    notes += unreadable(study.participants, mode)
    steps, incomplete = complete(config, steps)
    notes += incomplete
    rules = StudyRules(config)
    numbers = sorted(int(number) for number in steps["participant"].unique())
    taught_by = list(dict.fromkeys(steps["teacher"]))
    replayed, paths, replay_error = _replays(config, rules, steps)
    machines = [
        name for name in dict.fromkeys(["machine", "random", *taught_by]) if name != "human"
    ]
    teachers = [_arms.teacher(name, default=config.beta) for name in machines]
    arms_run = _arms.run(
        config, numbers, teachers, (*config.learners, MATCHED), rules=rules, show=show
    )
    simulated = _arms.table(config, arms_run)
    table = pd.concat([steps, replayed, simulated[_lacking(simulated, steps)]], ignore_index=True)
    simulated_paths = _paths_of(arms_run)
    paths = pd.concat([paths, simulated_paths[_lacking(simulated_paths, steps)]], ignore_index=True)
    gone, full = left_out(config, steps, study.participants), outcomes_of(config, table)
    steps, table, paths, outcomes = map(gone.without, (steps, table, paths, full))
    kind = "human" if "human" in taught_by else "simulated"
    if not replay_error < 0.01:
        notes.append(
            f"Stored beliefs differ from a replay of the choices, by up to {replay_error:.2g} in distance: these data "
            "were not all made under the configuration in study.toml, or not by this version of ital."
        )
    if kind == "simulated":
        notes.insert(
            0, "No person took part: programs chose every arrow. The human arms are empty."
        )
    if "human" in taught_by:
        notes.append(
            "The machine and random arms are simulated with the participants' maps, starts and arrows. "
            "The control of the human arm sees the arrows that people chose for the aware robot."
        )
    return Analysis(
        config=config,
        kind=kind,
        mode=mode,
        participants={
            name: int(steps[steps["teacher"] == name]["participant"].nunique())
            for name in taught_by
        },
        agreement=agreement_of(steps),
        outcomes=outcomes,
        summary=summarise(outcomes, list(measures(config.steps))),
        tests=compare(outcomes, list(measures(config.steps))),
        curves=curves_of(table),
        references={
            on.name: rules.measures(on.name, rules.truth(on.name).target)["reward"]
            for on in config.maps
        },
        paths=paths,
        replay_error=replay_error,
        notes=notes,
        left_out=gone,
        full=compare(full, list(measures(config.steps))),
        answers=answers_of(study.answers, steps),
    )


def rows_of_mode(steps: "pd.DataFrame", mode: str | None) -> tuple[str, "pd.DataFrame", list[str]]:
    """The mode that is meant, its rows, and a note about rows of other modes."""
    modes = list(dict.fromkeys(steps["mode"]))
    if mode is None:
        mode = next((name for name in ("live", "simulated") if name in modes), None)
    if mode not in modes or mode is None:
        present = f"there are {', '.join(modes)}" if modes else "the table is empty"
        raise InputError(f"no steps of mode {mode or 'live or simulated'} in this study: {present}")
    others = [name for name in modes if name != mode]
    notes = [f"Rows of other modes ({', '.join(others)}) are left out."] if others else []
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
    notes = []
    everyone = steps.groupby(["participant", "teacher"]).ngroups
    usable = steps[steps["usable"] & steps["learner"].isin(config.learners)]
    names = [on.name for on in config.maps]
    usable = usable[usable["map"].isin(names) & (usable["step"] <= config.steps)]
    rows_each = len(names) * len(config.learners) * config.steps
    rows = usable[usable.groupby(["participant", "teacher"])["step"].transform("size") == rows_each]
    count = rows.groupby(["participant", "teacher"]).ngroups
    if count < everyone:
        notes.append(
            f"{everyone - count} of {everyone} participants did not finish or are not usable, and are left out."
        )
    if not count:
        raise InputError(
            "no participant of this study has finished all steps: there is nothing to analyse yet"
        )
    versions = rows["config"].nunique()
    if versions > 1 or rows["config"].iloc[0] != config.hash:
        notes.append(
            f"The data come from {versions} version(s) of the configuration, not only from the one in study.toml."
        )
    return rows, notes


def _replays(
    config: Config, rules: StudyRules, steps: "pd.DataFrame"
) -> tuple["pd.DataFrame", "pd.DataFrame", float]:
    """Replay every choice to the robot it was made for, as a check, and people's choices to the control.

    The control sees what people chose for the aware robot, because nobody taught the control itself.
    """
    import pandas as pd

    of_control: list[pd.DataFrame] = []
    paths, worst = [], 0.0
    for learner in config.learners:
        rows = steps[steps["learner"] == learner].sort_values(
            ["teacher", "participant", "map", "step"], kind="stable"
        )
        each = rows.groupby(["teacher", "participant", "map"], sort=False)
        taught = [
            _arms.Taught(
                int(group["participant"].iloc[0]), group["map"].iloc[0], group["choice"].tolist()
            )
            for _, group in each
        ]
        heads = rows[rows["step"] == 1]
        replayed = _arms.replay(rules, taught, learner)
        stored = rows["distance"].to_numpy().reshape(-1, config.steps)
        worst = max(worst, float(np.abs(replayed.measures["distance"][:, 1:] - stored).max()))
        paths.append(_paths(heads, learner, replayed.length))
        by_people = (heads["teacher"] == "human").to_numpy()
        if learner == "aware" and by_people.any():
            by_hand = [each for each, human in zip(taught, by_people, strict=True) if human]
            control_run = _arms.replay(rules, by_hand, MATCHED)
            paths.append(_paths(heads[by_people], MATCHED, control_run.length))
            after = {name: values[:, 1:].ravel() for name, values in control_run.measures.items()}
            before = {
                f"{name}_before": values[:, :-1].ravel()
                for name, values in control_run.measures.items()
            }
            of_control = [
                rows[rows["teacher"] == "human"].assign(learner=MATCHED, **after, **before)
            ]
    return (
        pd.concat([steps.head(0), *of_control], ignore_index=True),
        pd.concat(paths, ignore_index=True),
        worst,
    )


def _paths(heads: "pd.DataFrame", learner: str, length: np.ndarray) -> "pd.DataFrame":
    """The path length of each robot: the sum of its step lengths."""
    start = heads["distance_before"].to_numpy()
    robots = heads[["teacher", "map", "participant"]].reset_index(drop=True)
    return robots.assign(learner=learner, path=length.sum(axis=-1, dtype=float), start=start)


def _lacking(simulated: "pd.DataFrame", steps: "pd.DataFrame") -> "pd.Series":
    """The simulated rows that a table lacks: those of missing teachers, and the control of each teacher in it."""
    import pandas as pd

    key = ["teacher", "participant"]
    took_part = pd.MultiIndex.from_frame(simulated[key]).isin(pd.MultiIndex.from_frame(steps[key]))
    return ~simulated["teacher"].isin(steps["teacher"]) | (
        (simulated["learner"] == MATCHED) & took_part
    )


def _paths_of(ran: _arms.ArmsRun) -> "pd.DataFrame":
    import pandas as pd

    rows = itertools.product(ran.arms, ran.numbers, ran.maps)
    columns = ["teacher", "map", "participant", "learner"]
    table = pd.DataFrame(
        [(who, where, number, robot) for (who, robot), number, where in rows], columns=columns
    )
    path, start = ran.trace.length.sum(axis=-1, dtype=float), ran.measures["distance"][..., 0]
    return table.assign(
        path=np.moveaxis(path, -1, 0).ravel(), start=np.moveaxis(start, -1, 0).ravel()
    )


def agreement_of(steps: "pd.DataFrame") -> dict[Arm, float]:
    """How often participants chose what the machine would have chosen, by teacher and learner."""
    same = steps.assign(same=steps["choice"] == steps["machine_choice"])
    shares = same.groupby(["teacher", "learner"])["same"].mean().reset_index()
    return {
        (row["teacher"], row["learner"]): float(row["same"]) for row in shares.to_dict("records")
    }


def outcomes_of(config: Config, steps: "pd.DataFrame") -> "pd.DataFrame":
    """One row per teacher, learner, map and participant, and the mean over maps as map "all"."""
    import pandas as pd

    key = ["teacher", "learner", "map", "participant"]
    first = steps[steps["step"] == 1].set_index(key)
    last = steps[steps["step"] == config.steps].set_index(key).loc[first.index]
    learned = {}
    for name in ("distance", "policy_tv", "policy_gap"):
        learned[f"{name}_first"] = first[f"{name}_before"] - first[name]
        learned[f"{name}_last"] = first[f"{name}_before"] - last[name]
    learned["reward"] = last["reward"]
    learned["reward_gain"] = last["reward"] - first["reward_before"]
    per_map = pd.DataFrame(learned).reset_index()
    over_maps = (
        per_map.groupby(["teacher", "learner", "participant"], sort=False)
        .mean(numeric_only=True)
        .reset_index()
    )
    table = pd.concat([per_map, over_maps.assign(map=ALL_MAPS)], ignore_index=True)
    return table[[*key, *learned]]


def summarise(outcomes: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Mean, standard deviation, standard error and n of every outcome in every arm, per map and over maps."""
    long = outcomes.melt(
        ["teacher", "learner", "map", "participant"], list(names), "outcome", "value"
    )
    grouped = long.groupby(["teacher", "learner", "map", "outcome"], sort=False)["value"]
    table = grouped.agg(["mean", "std", "sem", "count"]).reset_index()
    return table.rename(columns={"std": "sd", "count": "n"})


def contrasts(teachers: Sequence[str]) -> list[tuple[Arm, Arm]]:
    """The arms to compare, if a study has them: for every teacher, aware robots with naive ones and with the
    control, adaptive ones with naive and aware ones; then the aware, and the adaptive, robots of every teacher with
    those of the machine and of the random teacher.
    """
    within = [
        ((teacher, first), (teacher, second)) for teacher in teachers for first, second in CONTRASTS
    ]
    order = teachers_in_order(teachers)
    references = [name for name in ("machine", "random") if name in order]
    return within + [
        ((teacher, learner), (reference, learner))
        for learner in ("aware", ADAPTIVE)
        for teacher in order
        for reference in references
        if order.index(reference) > order.index(teacher)
    ]


def compare(outcomes: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Paired tests of all contrasts, for every outcome and map; teachers are paired where participants had both.

    Holm's adjustment is over the maps, separately for each contrast and outcome, so another arm changes no family of
    tests. The mean over maps is a single test and needs no adjustment.
    """
    import pandas as pd

    places = list(dict.fromkeys(outcomes["map"]))
    of_arm = {
        key: rows.set_index(["map", "participant"])
        for key, rows in outcomes.groupby(["teacher", "learner"])
    }
    rows = []
    for left, right in contrasts(list(dict.fromkeys(outcomes["teacher"]))):
        if left not in of_arm or right not in of_arm:
            continue
        both = of_arm[left][list(names)].join(
            of_arm[right][list(names)].add_suffix("|"), how="inner"
        )
        shared = [where for where in places if where in both.index.get_level_values("map")]
        for name in names:
            family = []
            for where in shared:
                first, second = (
                    both[column].xs(where, level="map").to_numpy() for column in (name, f"{name}|")
                )
                arms = dict(zip(ARMS, (*left, *right), strict=True))
                family.append({**arms, "outcome": name, "map": where, **_tested(first, second)})
            adjusted = iter(
                statistics.holm(np.array([row["p"] for row in family if row["map"] != ALL_MAPS]))
            )
            for row in family:
                row["p_holm"] = row["p"] if row["map"] == ALL_MAPS else float(next(adjusted))
                row["stars"] = statistics.stars(row["p_holm"])
            rows += family
    return pd.DataFrame(rows, columns=[*ARMS, "outcome", "map", *TESTED, "p_holm", "stars"])


def _tested(first: np.ndarray, second: np.ndarray) -> dict[str, float | int]:
    """The columns of a paired test, and Wilcoxon's p beside it."""
    columns = statistics.paired(first, second)._asdict()
    columns |= {"mean_first": float(first.mean()), "mean_second": float(second.mean())}
    columns["wilcoxon_p"] = statistics.wilcoxon(first, second)
    return {name: columns[name] for name in TESTED}


def curves_of(steps: "pd.DataFrame") -> "pd.DataFrame":
    """Mean and standard error of every measure at every step (0: before the first), per arm and map."""
    import pandas as pd

    first = steps[steps["step"] == 1]
    start = first.assign(step=0, **{name: first[f"{name}_before"] for name in MEASURES})
    long = pd.concat([start, steps], ignore_index=True)
    grouped = long.groupby(["teacher", "learner", "map", "step"], sort=False)[list(MEASURES)]
    mean, error, count = grouped.mean(), grouped.sem(), grouped.size()
    both = pd.concat([mean, error.add_suffix("_sem")], axis=1).assign(n=count).reset_index()
    return both.sort_values(["teacher", "learner", "map", "step"], kind="stable", ignore_index=True)


def robots(config: Config) -> tuple[str, ...]:
    """The kinds of robot in the order of tables and figures."""
    return tuple(learner for learner in LABELS if learner in config.learners)


def arm(teacher: str, learner: str) -> str:
    """An arm as the paper calls it, such as Human ITAL or Machine IMT."""
    parts = teacher.partition(":")
    name = parts[0].capitalize() + (f" {parts[2]}" if parts[2] else "")
    return f"{name} {LABELS.get(learner, learner)}"


def teachers_in_order(names: Sequence[str]) -> list[str]:
    """People first, then the machine, then Boltzmann teachers, then the random one."""
    rank = {"human": 0, "machine": 1, "boltzmann": 2, "random": 3}
    return sorted(
        dict.fromkeys(names), key=lambda name: (rank.get(name.partition(":")[0], 4), name)
    )
