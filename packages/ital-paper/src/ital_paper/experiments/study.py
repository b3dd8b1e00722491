"""The simulated arms of the human study: bars and curves, labelled as simulated."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax

import ital_study as study
from ital.tools.files import write

FIGURES = ("maps", "bars", "curves", "control")
FORMAT = 2  # of what is kept


class SimulatedStudy(NamedTuple):
    """The results of the simulated participants.

    Attributes:
        participants: how many there are per arm.
        maps: panels of the study's maps.
        tests: comparisons of machine-taught ITAL with IMT, a row per map and outcome.
        means: means of every arm, map and outcome.
        titles: the outcomes in words.
        random: what each robot of a random teacher learned, by map and robot.
        control: the comparison of ITAL with steps of the same length, over all maps.
        curves: means and standard errors at every step.
        references: the reward of the true policy on each map.
        paths: the total path length of the robots of each arm.
    """

    participants: int
    maps: list[dict[str, Any]]
    tests: list[dict[str, Any]]
    means: list[dict[str, Any]]
    titles: dict[str, str]
    random: dict[str, dict[str, list[float]]]
    control: dict[str, Any]
    curves: list[dict[str, Any]]
    references: dict[str, float]
    paths: list[dict[str, Any]]


COLUMNS = ["outcome", "map", "mean_first", "mean_second", "difference", "p", "p_holm"]  # of a test
NUMBERS = tuple(name for name in SimulatedStudy._fields if name != "participants")


def simulate(
    out: Path,
    participants: int,
    note: str,
) -> SimulatedStudy:
    """Simulate machine and random teachers instead of people, and store OUT/study.

    Their data are analysed like people's. Results of the same configuration and number of
    participants are not computed again.
    """
    settings = study.load_config()
    folder = out / "study"
    made_with = {
        "format": FORMAT,
        "config": settings.hash,
        "participants": participants,
        "note": note,
    }
    results = folder / "reproduce.json"
    if not (_is_made_with(results, made_with) and _all_drawn(folder)):
        teachers = [study.teacher(name, default=settings.beta) for name in ("machine", "random")]
        # The simulation takes thousands of tiny steps: a GPU would take ten times as long.
        with jax.default_device(jax.devices("cpu")[0]):
            table = study.simulate(settings, participants, teachers)
            analysed = study.analyze(study.StudyData(settings, table))
        folder.mkdir(parents=True, exist_ok=True)
        _draw_figures(analysed, folder, note)
        # The results come last: if they exist, the figures do as well.
        write(results, json.dumps({**made_with, **_quoted_numbers(analysed)}).encode())
    content = json.loads(results.read_text())
    return SimulatedStudy(participants, **{name: content[name] for name in NUMBERS})


def _is_made_with(file: Path, made_with: dict[str, Any]) -> bool:
    """Return whether a file of results has these settings and all numbers."""
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return False
    return made_with.items() <= content.items() and set(NUMBERS) <= set(content)


def _all_drawn(folder: Path) -> bool:
    return all((folder / f"{name}.png").exists() for name in FIGURES)


def _draw_figures(
    analysed: Any,
    folder: Path,
    note: str,
) -> None:
    from ital.figures import save
    from ital_paper.experiments.figures import stamp

    for name in FIGURES:
        figure = study.draw(name, analysed)
        stamp(figure, note)
        save(figure, folder / name)


def _quoted_numbers(analysed: Any) -> dict[str, Any]:
    """Return the numbers that the report quotes, as plain rows."""
    tests = analysed.tests
    machine = tests[(tests["teacher"] == "machine") & (tests["second_teacher"] == "machine")]
    naive = machine[machine["second"] == "naive"]
    matched = machine[machine["second"] == "imt-matched"]
    distance_over_maps = matched[
        (matched["map"] == "all") & (matched["outcome"] == "distance_last")
    ][COLUMNS]

    outcomes = analysed.outcomes
    by_chance = outcomes[(outcomes["teacher"] == "random") & (outcomes["map"] != "all")]
    control: dict[str, Any] = {}
    if len(distance_over_maps):
        control = distance_over_maps.to_dict("records")[0]
    return study.figure_rows(analysed) | {
        "maps": study.map_panels(analysed.config),
        "tests": naive[naive["map"] != "all"][COLUMNS].to_dict("records"),
        "random": {str(name): _distances(rows) for name, rows in by_chance.groupby("map")},
        "control": control,
    }


def _distances(rows: Any) -> dict[str, list[float]]:
    """Return by how much the distance fell on one map, for aware and naive robots."""
    distances = {}
    for learner in ("aware", "naive"):
        # Both lists are in the order of the participants, so that a test can pair them.
        ordered = rows[rows["learner"] == learner].sort_values("participant")
        distances[learner] = ordered["distance_last"].tolist()
    return distances
