import numpy as np

import ital_study as study
from ital_study.server import create_play_app
from ital_study.simulation import arms
from tests.server.conftest import running
from tests.server.people import tiny


def test_the_third_robot_is_the_matched_step_control():
    """It moves as the control of the analysis does: naive direction, length of the aware step."""
    rules = study.StudyRules(tiny())
    choices = [3, 0, 7]
    control = arms.replay(rules, [arms.Taught(5, "A", choices)], arms.MATCHED)
    with running(create_play_app(tiny())) as client:
        scenes = [
            client.post(
                "/api/play/step", json={"map": "A", "seed": 5, "choices": choices[:count]}
            ).json()
            for count in range(4)
        ]
    played = [one["matched"]["measures"]["distance"] for one in scenes]
    np.testing.assert_allclose(played, control.measures["distance"][0], rtol=1e-4)
    lengths = np.linalg.norm(np.diff([one["matched"]["belief"] for one in scenes], axis=0), axis=1)
    np.testing.assert_allclose(lengths, control.length[0], rtol=1e-3)
    start = scenes[0]
    assert start["matched"]["belief"] == start["naive"]["belief"] == start["aware"]["belief"]
