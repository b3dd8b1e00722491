"""The teacher that imitates the learner: with equal views and a known start it is the omniscient
teacher.
"""

import numpy as np
import pytest

import ital
from ital import learners, teachers
from ital.errors import InputError
from tests.worlds import classes_pool, small_numbers

RUN = {"steps": 60, "seeds": 3, "batch_size": 5, "lr": 0.05, "eval_every": 60}


def shared_classes():
    """Classes whose views are equal."""

    def pool(seed):
        drawn = classes_pool(seed)
        return drawn._replace(teacher_x=drawn.learner_x, teacher_target=drawn.learner_target)

    return ital.tasks.from_pool("shared-classes", pool, ital.losses.cross_entropy, beta=300.0)


@pytest.mark.parametrize("task", [small_numbers, shared_classes])
@pytest.mark.usefixtures("x64")
def test_of_a_naive_learner_that_starts_at_its_estimate_it_knows_everything(task):
    known = ital.teach(task(), "omniscient", "imt", init="uniform:0", **RUN)
    imitated = ital.teach(task(), "imitation", "imt", init="uniform:0", **RUN)
    np.testing.assert_allclose(
        imitated.parameters["imt"], known.parameters["imt"], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        imitated.memories["imt"], imitated.parameters["imt"], rtol=0, atol=1e-12
    )
    assert (imitated.curves["imitation_error"].values[..., -1] < 1e-12).all()


def test_answers_correct_the_estimate_of_an_aware_learner():
    def gap(teacher):
        slowly = {**RUN, "lr": 0.005, "beta": 50.0}
        result = ital.teach(small_numbers(), teacher, "ital", init="uniform:0", **slowly)
        return np.linalg.norm(
            np.asarray(result.memories["ital"]) - np.asarray(result.parameters["ital"]), axis=(1, 2)
        )

    corrected, never = gap("imitation"), gap("imitation:0")
    assert (corrected < 0.3 * never).all()


def test_a_correction_makes_the_estimate_agree_with_the_answer():
    # A learner that never moves: the estimate after the correction and a naive step of size 0 has
    # its answers.
    still = learners.Learner(
        "still",
        "Still",
        learners.Rule(lambda *_: (), lambda lesson, settings, params, _: learners.Update(params)),
    )
    long = {**RUN, "steps": 400, "lr": 1e-9}
    result = ital.teach(small_numbers(), "imitation", still, **long)
    np.testing.assert_allclose(result.memories["still"], result.parameters["still"], atol=1e-3)


def test_it_needs_a_model_of_the_learner():
    with pytest.raises(
        InputError, match="teacher 'imitation' makes no sense on task 'irl': it needs simulation"
    ):
        ital.teach(ital.tasks.irl(np.eye(3)), "imitation", "imt", **RUN)


@pytest.mark.parametrize("name", ["imitation:x", "imitation:-1", "imitation:inf"])
def test_rates_that_are_no_rates_are_refused(name):
    with pytest.raises(InputError, match="is written imitation or imitation:RATE"):
        teachers.make(name)
