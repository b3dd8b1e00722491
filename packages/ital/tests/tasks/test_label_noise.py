"""Noise of labels: a share replaced, or Gaussian noise."""

import numpy as np
import pytest

from ital import tasks
from ital.errors import InputError


def labels(task, seed=0):
    return task.world(seed).learner.labels


def test_gaussian_noise_is_fixed_per_row_and_drawn_per_seed():
    clean = tasks.regression(dim=3, points=4000)
    noisy = tasks.regression(dim=3, points=4000, noise=0.5)
    difference = labels(noisy) - labels(clean)
    assert np.std(difference) == pytest.approx(0.5, rel=0.05)
    np.testing.assert_array_equal(labels(noisy), labels(noisy))
    assert np.abs(labels(noisy, 1) - labels(clean, 1) - difference).max() > 0.1
    # The target and the test set stay clean.
    np.testing.assert_array_equal(noisy.world(0).truth.target, clean.world(0).truth.target)


def test_one_noise_has_one_spelling():
    spellings = [{"noise": 1.0}, {"label_noise": "sd:1.0"}, {"label_noise": "sd:1"}]
    assert {tasks.regression(**given).settings["label_noise"] for given in spellings} == {"sd:1"}
    assert tasks.regression(label_noise="sd:0").settings["label_noise"] == 0.0


@pytest.mark.parametrize("given", ["sd:x", "sd:-1", "uniform:1", 2.0, "sd:inf"])
def test_other_noise_is_refused(given):
    with pytest.raises(InputError, match="label noise must be"):
        tasks.regression(label_noise=given)


def test_gaussian_noise_is_not_for_classes_nor_beside_replaced_labels():
    with pytest.raises(InputError, match="for labels that are numbers"):
        tasks.gaussian(label_noise="sd:1")
    with pytest.raises(InputError, match="exclude each other"):
        tasks.regression(label_noise=0.1, noise=1.0)
