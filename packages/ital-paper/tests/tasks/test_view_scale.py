"""The scale of views: the same networks, and the β that the paper's rule gives."""

import numpy as np
import pytest

from ital import errors
from ital_paper import tasks as paper_tasks
from ital_paper.features import Features

rng = np.random.default_rng(0)
LABELS = np.arange(60) % 5


def made():
    means = {name: rng.normal(size=(5, 3)) for name in "abc"}
    views = {
        name: (means[name][LABELS] + rng.normal(size=(60, 3)) / 2).astype(np.float16)
        for name in "abc"
    }
    layers = {name: np.column_stack([means[name], np.ones(5)]).astype(np.float32) for name in "abc"}
    card = {"name": "views", "data": "drawn", "learner": "a", "teachers": ["b", "c"]}
    return Features(card, LABELS, views, layers, LABELS, {"a": views["a"]})


@pytest.fixture(scope="module")
def features():
    return made()


def answers(features, name):
    layer = features.last_layers[name]
    return features.views[name].astype(float) @ layer[:, :-1].T + layer[:, -1]


def test_scaled_views_are_those_of_the_same_networks(features):
    smaller = paper_tasks.scaled(features, 0.25)
    for name in "abc":
        np.testing.assert_allclose(answers(smaller, name), answers(features, name), atol=1e-5)
    np.testing.assert_array_equal(smaller.test_views["a"], features.test_views["a"] / 4)
    assert paper_tasks.scaled(smaller, 2.0).card["scale"] == 0.5


def test_the_scale_is_the_one_at_which_the_automatic_beta_is_the_wanted_one(features):
    wanted = 0.3 * paper_tasks.average_beta(features, 3)
    found = paper_tasks.scaled_for(features, wanted, seeds=3)
    assert found.card["scale"] > 1  # longer features, smaller β
    np.testing.assert_allclose(paper_tasks.average_beta(found, 3), wanted, rtol=0.02)


def test_a_beta_that_no_scale_gives_is_refused(features):
    with pytest.raises(errors.InputError, match=r"no scale of the views .* 1e\+09"):
        paper_tasks.scaled_for(features, 1e9, seeds=3)
