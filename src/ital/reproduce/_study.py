"""The simulated arms of the human study: bars and curves, labelled as what they are."""

import importlib
import importlib.util
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from ital.experiments._store import write

FIGURES = ("bars", "curves", "control")
ABSENT = "The simulated arms of the human study are left out: this installation has no ital.study."


class Study(NamedTuple):
    """What the simulated participants brought: tests per map, means per arm and map, and the figures as PNG."""

    participants: int
    tests: list[dict[str, Any]]
    means: list[dict[str, Any]]
    control: dict[str, Any]
    pictures: dict[str, bytes]


def is_there() -> bool:
    """Whether this installation has the human study."""
    return importlib.util.find_spec("ital.study") is not None


def simulate(out: Path, participants: int, note: str) -> Study:
    """Machine and random teachers in the place of people, analysed as people's data would be; kept in OUT/study.

    What is there from the same configuration and number of participants is not computed again.
    """
    arms, analysis, config, table = (
        importlib.import_module(f"ital.study.{name}") for name in ("_arms", "_analysis", "_config", "_table")
    )
    settings = config.load_config()
    folder = out / "study"
    made_with = {"config": settings.hash, "participants": participants, "note": note}
    done = folder / "reproduce.json"
    if not _same(done, made_with) or not (pictures := _pictures(folder)):
        teachers = [arms.teacher(name, default=settings.beta) for name in ("machine", "random")]
        analysed = analysis.analyze(table.Study(settings, arms.simulate(settings, participants, teachers)))
        folder.mkdir(parents=True, exist_ok=True)
        pictures = _draw(analysed, folder, note)
        content = {**made_with, **_numbers(analysed)}
        write(done, json.dumps(content).encode())
    content = json.loads(done.read_text())
    return Study(participants, content["tests"], content["means"], content["control"], pictures)


def _same(file: Path, made_with: dict[str, Any]) -> bool:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return False
    return made_with.items() <= content.items()


def _pictures(folder: Path) -> dict[str, bytes] | None:
    files = {name: folder / f"{name}.png" for name in FIGURES}
    return {name: file.read_bytes() for name, file in files.items()} if all(map(Path.exists, files.values())) else None


def _draw(analysed: Any, folder: Path, note: str) -> dict[str, bytes]:
    from ital.figures import save
    from ital.reproduce._figures import stamp

    figures = importlib.import_module("ital.study._figures")
    pictures = {}
    for name in FIGURES:
        figure = figures.draw(name, analysed)
        stamp(figure, note)
        save(figure, folder / name)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        pictures[name] = buffer.getvalue()
    return pictures


def _numbers(analysed: Any) -> dict[str, Any]:
    """The numbers that the report quotes, as plain rows."""
    tests, means = analysed.tests, analysed.summary
    own = tests[(tests["teacher"] == "machine") & (tests["second_teacher"] == "machine")]
    own = own[own["outcome"] == "distance_last"]
    naive, matched = own[own["second"] == "naive"], own[own["second"] == "imt-matched"]
    shown = means[means["outcome"].isin(["distance_last", "reward"]) & means["learner"].isin(["aware", "naive"])]
    columns = ["map", "mean_first", "mean_second", "difference", "p"]
    over_maps = matched[matched["map"] == "all"][columns]
    return {
        "tests": naive[naive["map"] != "all"][columns].to_dict("records"),
        "means": shown[shown["map"] != "all"][["teacher", "learner", "map", "outcome", "mean", "sem"]].to_dict(
            "records"
        ),
        "control": over_maps.to_dict("records")[0] if len(over_maps) else {},
    }
