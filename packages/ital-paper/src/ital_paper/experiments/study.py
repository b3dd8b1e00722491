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

    ``maps`` are panels of the study's maps. ``tests`` compare machine-taught ITAL with IMT, a row per map and outcome;
    ``means`` are those of every arm, map and outcome, and ``titles`` name the outcomes. ``random`` holds what each
    robot of a random teacher learned, ``control`` compares ITAL with steps of the same length over all maps,
    ``curves`` are means and standard errors at every step, ``references`` the reward of the true policy on each map,
    ``paths`` the total path length of the robots of each arm.
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


def simulate(out: Path, participants: int, note: str) -> SimulatedStudy:
    """Simulate machine and random teachers instead of people, analyse them like people's data, and store OUT/study.

    Results of the same configuration and number of participants are not computed again.
    """
    settings = study.load_config()
    folder = out / "study"
    made_with = {
        "format": FORMAT,
        "config": settings.hash,
        "participants": participants,
        "note": note,
    }
    done = folder / "reproduce.json"
    if not _same(done, made_with) or not all((folder / f"{name}.png").exists() for name in FIGURES):
        teachers = [study.teacher(name, default=settings.beta) for name in ("machine", "random")]
        with jax.default_device(
            jax.devices("cpu")[0]
        ):  # thousands of tiny steps: a GPU would take ten times as long
            table = study.simulate(settings, participants, teachers)
            analysed = study.analyze(study.StudyData(settings, table))
        folder.mkdir(parents=True, exist_ok=True)
        _draw(analysed, folder, note)
        content = {**made_with, **_numbers(analysed)}
        write(done, json.dumps(content).encode())
    content = json.loads(done.read_text())
    return SimulatedStudy(participants, **{name: content[name] for name in NUMBERS})


def _same(file: Path, made_with: dict[str, Any]) -> bool:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return False
    return made_with.items() <= content.items() and set(NUMBERS) <= set(content)


def _draw(analysed: Any, folder: Path, note: str) -> None:
    from ital.figures import save
    from ital_paper.experiments.figures import stamp

    for name in FIGURES:
        figure = study.draw(name, analysed)
        stamp(figure, note)
        save(figure, folder / name)


def _numbers(analysed: Any) -> dict[str, Any]:
    """The numbers that the report quotes, as plain rows."""
    tests, outcomes = analysed.tests, analysed.outcomes
    own = tests[(tests["teacher"] == "machine") & (tests["second_teacher"] == "machine")]
    naive, matched = (own[own["second"] == second] for second in ("naive", "imt-matched"))
    over_maps = matched[(matched["map"] == "all") & (matched["outcome"] == "distance_last")][
        COLUMNS
    ]
    by_chance = outcomes[(outcomes["teacher"] == "random") & (outcomes["map"] != "all")]
    return study.figure_rows(analysed) | {
        "maps": study.map_panels(analysed.config),
        "tests": naive[naive["map"] != "all"][COLUMNS].to_dict("records"),
        "random": {
            str(name): {
                learner: rows[rows["learner"] == learner]
                .sort_values("participant")["distance_last"]
                .tolist()
                for learner in ("aware", "naive")
            }
            for name, rows in by_chance.groupby("map")
        },
        "control": over_maps.to_dict("records")[0] if len(over_maps) else {},
    }
