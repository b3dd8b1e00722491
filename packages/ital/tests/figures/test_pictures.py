import jax
import numpy as np
import pytest

import ital
from ital import figures, learners, tasks, teachers, watch

PAIR = [learners.imt(), learners.teacher_aware()]


@pytest.fixture(scope="module")
def watched():
    return watch(
        tasks.irl(np.diag([1.0, -2.0, 0.0])),
        teachers.cooperative(),
        PAIR,
        seed=3,
        frames=4,
        steps=50,
    )


def test_watching_sees_what_teaching_does(watched):
    result = ital.teach(watched.task, learner=PAIR, seeds=[3], steps=50, eval_every=13)
    assert watched.steps.tolist() == [0, 13, 26, 39, 50]
    assert list(watched.params) == ["imt", "ital"]
    for name, params in watched.params.items():
        np.testing.assert_allclose(params[-1], result.parameters[name][0], rtol=1e-4)
        distances = np.linalg.norm(params[[0, -1]] - watched.target, axis=1)
        np.testing.assert_allclose(
            distances, result.curves["distance"].sel({"learner": name})[0, [0, -1]], rtol=1e-4
        )
    assert (watched.params["imt"][0] == watched.params["ital"][0]).all()


def test_frames_far_apart_are_where_they_say(watched):
    seen = watch(watched.task, learner=["ital"], seed=3, frames=2, steps=4040)
    assert seen.steps.tolist() == [0, 2020, 4040]
    curves = ital.teach(
        watched.task, learner="ital", seeds=[3], steps=4040, eval_every=2020
    ).curves["distance"]
    distances = np.linalg.norm(seen.params["ital"] - seen.target, axis=1)
    np.testing.assert_allclose(distances, curves[0, 0], rtol=1e-3)


def test_pictures_show_every_learner_at_every_step_and_the_target(watched):
    figure = figures.plot_pictures(watched, steps=[0, 26, 50])
    drawn = [axis for axis in figure.axes if axis.images]
    assert len(drawn) == 2 * 3 + 1
    shown = [axis.images[0].get_array() for axis in drawn]
    np.testing.assert_allclose(shown[2], watched.params["imt"][-1].reshape(3, 3))
    np.testing.assert_allclose(shown[3], watched.target.reshape(3, 3))
    assert {axis.images[0].get_clim() for axis in drawn} == {(-2.0, 2.0)}
    texts = [text.get_text() for text in drawn[3].texts]
    assert texts == ["1.0", "0.0", "0.0", "0.0", "−2.0", "0.0", "0.0", "0.0", "0.0"]


def test_rows_of_a_wide_map_are_no_farther_apart_than_those_of_a_square_one(watched):
    wide = watch(tasks.irl(np.zeros((2, 6))), learner=PAIR, frames=2, steps=2)
    gaps = []
    for pictures in (watched, wide):
        figure = figures.plot_pictures(pictures)
        figure.draw_without_rendering()
        height = figure.get_size_inches()[1]
        upper, lower = [a.get_position() for a in figure.axes if a.get_ylabel() in ("IMT", "ITAL")]
        gaps.append((upper.y0 - lower.y1) * height)
    assert gaps[1] < gaps[0] + 0.5


def test_the_arrows_of_the_target_lead_to_its_reward(watched):
    figure = figures.plot_pictures(watched)
    target = next(axis for axis in figure.axes if axis.get_title() == "target")
    arrows = target.collections[0]
    left_of_corner = arrows.U[1], arrows.V[1]  # cell right of the rewarding corner: it leads left
    assert left_of_corner[0] < 0
    assert arrows.V[3] > 0  # the cell below it leads up


def test_animation_has_a_frame_per_step(watched, tmp_path):
    from PIL import Image

    done = []
    file = figures.animate(watched, tmp_path / "moving.gif", show=done.append)
    with Image.open(file) as image:
        assert image.n_frames == len(watched.steps)
    assert done[-1] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["moving.gif"]


def test_tasks_without_a_picture_are_refused(tmp_path):
    seen = watch(
        tasks.regression(dim=3, points=20), teachers.cooperative(), PAIR, frames=2, steps=4
    )
    assert jax.tree.leaves(seen.params)[0].shape[0] == 3
    with pytest.raises(ValueError, match="'regression' has no picture"):
        figures.plot_pictures(seen)
