"""What the study's departures from the paper change.

Run it with ``python benchmarks/study_departures.py [PARTICIPANTS]``.

Simulated participants teach with the shipped configuration and with one variant at a time. The
script prints means over participants and maps: the decrease of distance and of policy total
variation, and the final reward. It also prints how much paired differences of the two robots
scatter if each robot has its own arrows.
"""

import contextlib
import dataclasses
import sys
from unittest import mock

import jax
import numpy as np

import ital_study as study
from ital import volume
from ital_study.robots import world
from ital_study.simulation import arms

draw_arrows = world.draw_arrows


def any_cell(game, count, key, cumulative, first, used):
    """Draw candidates as if the step before had used no cells."""

    def draw(step):
        return draw_arrows(
            game, count, key, cumulative, step, np.zeros(game.dynamics.states, bool)
        )[1]

    drawn = jax.vmap(lambda step: jax.tree.map(lambda leaf: leaf[0], draw(step)))(
        first + np.arange(world.DRAWN)
    )
    return used, drawn


def own_arrows(game, count, key, *rest):
    """Draw the candidates of a robot that does not share those of the other."""
    return draw_arrows(game, count, jax.random.fold_in(key, 1), *rest)


def imitated_volumes(lesson, belief, target):
    """The score of a cooperative teacher, equation (imit-teacher)."""
    here = lesson.here
    return volume.imitated(
        lesson.lr, here.squared_norms, here.losses, lesson.gradients(target).losses
    )


CONFIG = study.load_config()
OTHER_CELLS = mock.patch.object(world, "draw_arrows", any_cell)
OTHER_MACHINE = mock.patch.object(world, "volumes", imitated_volumes)
VARIANTS = {
    "as shipped": ({}, contextlib.nullcontext()),
    "robots imagine the imitated volume": ({"volume": "imitated"}, contextlib.nullcontext()),
    "the machine goes by the imitated volume": ({}, OTHER_MACHINE),
    "both": ({"volume": "imitated"}, OTHER_MACHINE),
    "optimal arrows": ({"arrows": "optimal"}, contextlib.nullcontext()),
    "cells of the step before not excluded": ({}, OTHER_CELLS),
    "starts from U(−1, 1)": ({"start": 1.0}, contextlib.nullcontext()),
}


def main(participants):
    """Simulate every variant."""
    teachers = [study.teacher(name, default=CONFIG.beta) for name in ("machine", "random")]
    print("| variant | arm | distance | policy | reward |\n|---|---|---|---|---|")
    for name, (changes, patch) in VARIANTS.items():
        jax.clear_caches()  # programs keep the functions that they were traced with
        with patch:
            ran = arms.run(dataclasses.replace(CONFIG, **changes), participants, teachers)
        for i, (teacher, learner) in enumerate(ran.arms):
            fell = [
                (ran.measures[m][:, :, i, 0] - ran.measures[m][:, :, i, -1]).mean()
                for m in ("distance", "policy_tv")
            ]
            reward = ran.measures["reward"][:, :, i, -1].mean()
            print(
                f"| {name} | {teacher} {learner} | {fell[0]:.2f} | {fell[1]:.3f} | {reward:.0f} |",
                flush=True,
            )
    scatter(participants, teachers)


def scatter(participants, teachers):
    """Print the mean and the standard deviation over participants of aware − naive, mean over maps,
    for both ways.
    """

    def fell(learner):
        jax.clear_caches()
        distance = arms.run(CONFIG, participants, teachers, [learner]).measures["distance"]
        return (distance[..., 0] - distance[..., -1]).mean(axis=1)

    aware = fell("aware")
    naive = fell("naive")
    with mock.patch.object(world, "draw_arrows", own_arrows):
        apart = fell("naive")
    print("| teacher | aware − naive | mean | standard deviation |\n|---|---|---|---|")
    for i, teacher in enumerate(teachers):
        for name, other in (("the same arrows", naive), ("arrows of its own", apart)):
            paired = (aware - other)[:, i]
            print(
                f"| {teacher.name} | {name} | {paired.mean():.3f} | {paired.std(ddof=1):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
