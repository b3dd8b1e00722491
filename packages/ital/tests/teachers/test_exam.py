"""The teacher that learns about the learner only from exams."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import teachers
from ital.errors import InputError
from ital.models import LinearRows
from ital.tasks._pool import TeacherRows
from ital.teachers._exam import RIDGE, fitted
from tests.worlds import small_numbers

RUN = {"steps": 60, "seeds": 3, "batch_size": 5, "lr": 0.05, "eval_every": 20}


@pytest.mark.usefixtures("x64")
def test_an_exam_in_every_step_shows_everything():
    known = ital.teach(small_numbers(), "omniscient", ["imt", "ital"], **RUN)
    examined = ital.teach(small_numbers(), "exam:1:30", ["imt", "ital"], **RUN)
    for method in ("imt", "ital"):
        np.testing.assert_allclose(
            examined.memories[method].shape, examined.parameters[method].shape
        )
    # The aware learner imagines the teaching volume that fits its teacher, so only the naive ones
    # are comparable.
    np.testing.assert_allclose(
        examined.parameters["imt"], known.parameters["imt"], rtol=0, atol=1e-6
    )


def test_answers_are_counted():
    curves = ital.teach(small_numbers(), "exam:25:7", "imt", **RUN).curves
    assert curves["answers"].values[0, 0].tolist() == [0, 7, 14, 21]


def test_no_exam_asks_about_more_rows_than_there_are():
    curves = ital.teach(small_numbers(), "exam:60:1000", "imt", **RUN).curves
    assert curves["answers"].values[0, 0].tolist() == [0, 40, 40, 40]


@pytest.mark.usefixtures("x64")
def test_the_fit_is_least_squares_with_a_penalty():
    rng = np.random.default_rng(0)
    x, before, answers = rng.normal(size=(6, 4)), rng.normal(size=(2, 4)), rng.normal(size=(6, 2))
    rows = jax.tree.map(jnp.asarray, TeacherRows(LinearRows(x, None), None, None))
    asked = teachers.Answers(rows, jnp.asarray(answers), jnp.asarray(True))
    augmented = np.vstack([x, np.sqrt(RIDGE) * np.eye(4)])
    expected = np.linalg.lstsq(
        augmented, np.vstack([answers, np.sqrt(RIDGE) * before.T]), rcond=None
    )[0].T
    np.testing.assert_allclose(fitted(asked, jnp.asarray(before)), expected, rtol=1e-9)


def test_more_answers_bring_the_learner_closer():
    task = ital.tasks.regression(dim=20, points=200)
    run = {"steps": 300, "seeds": 10, "lr": 0.01, "eval_every": 300}
    ends = [
        ital.teach(task, f"exam:20:{n}", "imt", **run).curves["distance"].values[0, :, -1].mean()
        for n in (2, 8, 40)
    ]
    assert ends[0] > ends[1] > ends[2]


@pytest.mark.parametrize("name", ["exam:20", "exam:0:5", "exam:5:0", "exam:a:b"])
def test_exams_that_are_no_exams_are_refused(name):
    with pytest.raises(InputError, match="is written exam:m:n"):
        teachers.make(name)
