import numpy as np

import ital_study as study
from ital_study.server._play import scene
from ital_study.simulation import arms
from tests.server.people import tiny


def test_the_third_robot_is_the_matched_step_control():
    """It moves as the control of the analysis does: the naive direction, the aware robot's length."""
    rules = study.StudyRules(tiny())
    choices = [3, 0, 7]
    control = arms.replay(rules, [arms.Taught(5, "A", choices)], arms.MATCHED)
    scenes = [scene(rules, "A", 5, choices[:t]) for t in range(4)]
    played = [one["matched"]["measures"]["distance"] for one in scenes]
    np.testing.assert_allclose(played, control.measures["distance"][0], rtol=1e-4)
    lengths = np.linalg.norm(np.diff([one["matched"]["belief"] for one in scenes], axis=0), axis=1)
    np.testing.assert_allclose(lengths, control.length[0], rtol=1e-3)
    assert (
        scenes[0]["matched"]["belief"]
        == scenes[0]["naive"]["belief"]
        == scenes[0]["aware"]["belief"]
    )
