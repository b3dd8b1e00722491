"""How often the flags of the study about choices are up, for simulated participants of several
kinds.

Run it with ``python benchmarks/study_flags.py``. Times, focus, screens and attention checks are not
simulated: the flags about them follow from their thresholds.
"""

import argparse
import json

import numpy as np
import pandas as pd

import ital_study as study
from ital_study.data import flags

KINDS = ("machine", "boltzmann:30", "boltzmann:10", "boltzmann:3", "boltzmann:1", "random")
LAZY = (
    "always the first of the list",
    "always the first from the top left",
    "always the nearest to the last",
)


def lazy_choice(rule, cells, last, size):
    """The choice of somebody who does not look at the map."""
    if rule == LAZY[0]:
        return 0
    if rule == LAZY[1] or last is None:
        return int(np.argmin(cells))
    return int(np.argmin(np.abs(cells // size - last // size) + np.abs(cells % size - last % size)))


def by_rule(steps, rule, share, size, seed):
    """The steps of somebody who follows a lazy rule in a share of steps; the rest stays."""
    rng = np.random.default_rng(seed)
    rows = steps.copy()
    last = None
    choices = []
    cells_chosen = []
    for own, text in zip(steps["choice"], steps["candidates"], strict=True):
        cells = np.array([arrow[0] for arrow in json.loads(text)])
        choice = lazy_choice(rule, cells, last, size) if rng.random() < share else own
        last = cells[choice]
        choices.append(choice)
        cells_chosen.append(last)
    return rows.assign(choice=choices, cell=cells_chosen)


def main():
    """Print a table: kinds of participants, and the share of them that each flag marks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--participants", type=int, default=100)
    parser.add_argument("--config", default="paper")
    given = parser.parse_args()
    config = study.load_config(given.config)
    teachers = [study.teacher(name, default=config.beta) for name in KINDS]
    steps = study.simulate(config, given.participants, teachers)
    places = {on.name: i for i, on in enumerate(config.maps)}
    steps = steps.assign(place=steps["map"].map(places)).sort_values(
        ["teacher", "participant", "place", "robot", "step"]
    )
    people = {
        kind: [rows for _, rows in steps[steps["teacher"] == kind].groupby("participant")]
        for kind in KINDS
    }
    for rule in LAZY:
        for share in (1.0, 0.5):
            people[f"{rule}, {share:.0%} of steps"] = [
                by_rule(rows, rule, share, config.size, i)
                for i, rows in enumerate(people["random"])
            ]
    table = []
    for kind, everyone in people.items():
        numbers = [flags.numbers_of(rows, (), config) for rows in everyone]
        up = [
            flags.flags_of(each, len(rows), config.quality)
            for each, rows in zip(numbers, everyone, strict=True)
        ]
        shares = np.array([each["same_place_share"] for each in numbers])
        runs = np.array([each["same_place_run"] for each in numbers])
        table.append(
            {
                "participants": kind,
                "same_place": np.mean(["same_place" in each for each in up]),
                "at_chance": np.mean(["at_chance" in each for each in up]),
                "machine's pick": np.mean([each["machine_share"] for each in numbers]),
                "largest share": shares.max(),
                "median share": np.median(shares),
                "longest run": runs.max(),
            }
        )
    print(f"{config.name}: {given.participants} simulated participants of each kind")
    print(pd.DataFrame(table).to_string(index=False, float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
