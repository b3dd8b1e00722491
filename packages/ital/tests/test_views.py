"""Teaching risk, against closed forms and a search over the kernel."""

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import ortho_group

from ital import losses, tasks, theory, views
from ital.errors import InputError
from ital.tasks import Pool

RNG = np.random.default_rng(0)


def pool_task(learner_x, teacher_x, target):
    """A regression task with these views, whose teacher has this target."""
    labels = np.column_stack([teacher_x, np.ones(len(teacher_x))]) @ target.T
    pool = Pool(learner_x, teacher_x, labels, target, None, learner_x, labels)
    return tasks.from_pool("made-up", pool, losses.squared, beta=1.0)


@pytest.mark.parametrize("name", ["equal", "rotated", "more"])
@pytest.mark.usefixtures("x64")
def test_views_that_can_express_the_target_have_no_risk(name):
    x, target = RNG.normal(size=(60, 5)), RNG.normal(size=(3, 6))
    rotation = ortho_group.rvs(5, random_state=0)
    learner = {
        "equal": x,
        "rotated": x @ rotation,
        "more": np.column_stack([x[:, 2:], x @ rotation]),
    }[name]
    assert theory.teaching_risk(pool_task(learner, x, target)) < 1e-12


@pytest.mark.usefixtures("x64")
def test_a_dropped_column_has_the_risk_of_what_the_others_do_not_explain():
    x, target = RNG.normal(size=(60, 3)), np.array([[0.5, -1.0, 2.0, 0.3]])
    answers = x @ target[0, :3] + 0.3
    kept = np.column_stack([x[:, :2], np.ones(60)])
    unexplained = x[:, 2] - kept @ np.linalg.solve(kept.T @ kept, kept.T @ x[:, 2])
    expected = 2.0 * np.linalg.norm(unexplained) / np.linalg.norm(answers)
    assert theory.teaching_risk(pool_task(x[:, :2], x, target)) == pytest.approx(
        expected, rel=1e-10
    )
    unused = np.array([[0.5, -1.0, 0.0, 0.3]])  # a column that does not matter
    assert theory.teaching_risk(pool_task(x[:, :2], x, unused)) < 1e-12


def test_the_kernels_risk_is_the_largest_product():
    view, weights = RNG.normal(size=(3, 5)), RNG.normal(size=5)
    directions = null_space(view) @ RNG.normal(size=(2, 5000))
    products = weights @ (directions / np.linalg.norm(directions, axis=0))
    assert products.max() <= views.kernel_risk(view, weights) <= products.max() * (1 + 1e-4)
    assert views.kernel_risk(np.eye(3)[:2], np.array([3.0, 4.0, -2.0])) == pytest.approx(2.0)
    assert views.kernel_risk(ortho_group.rvs(5, random_state=1), weights) < 1e-12


def test_features_of_states_define_the_view():
    features, weights = RNG.normal(size=(20, 4)), RNG.normal(size=4)
    map_ = RNG.normal(size=(2, 4))
    expected = views.kernel_risk(map_, weights)
    assert views.feature_risk(features @ map_.T, features, weights) == pytest.approx(
        expected, rel=1e-9
    )
    # The last two columns are equal: weights that cancel each other there change no reward.
    doubled = features[:, [0, 1, 2, 2]]
    assert views.feature_risk(doubled, doubled, np.array([1.0, 0, 5, -5])) < 1e-12
    with pytest.raises(InputError, match="no linear function"):
        views.feature_risk(RNG.normal(size=(20, 2)), features, weights)
    with pytest.raises(InputError, match="expected \\(l, d\\) and \\(d,\\)"):
        views.kernel_risk(map_, weights[:3])


@pytest.mark.usefixtures("x64")
def test_worlds_of_irl_have_no_risk_and_other_learners_are_refused():
    transitions = RNG.dirichlet(np.ones(6), (2, 6)) * 0.9
    features = RNG.normal(size=(6, 3))
    assert (
        theory.teaching_risk(tasks.irl_tabular(transitions, RNG.normal(size=3), features)) < 1e-12
    )
    assert theory.teaching_risk(tasks.irl_dense(4)) == 0.0
    narrow = tasks.irl_tabular(transitions, np.array([1.0, 2.0, 3.0]), features)
    world = narrow.world(0)
    world = world._replace(
        learner=world.learner._replace(encoding=world.teacher.examples.encoding[:, :2])
    )
    assert narrow.rules.risk(world) == pytest.approx(abs(world.teacher.target[2]))
    with pytest.raises(InputError, match="linear in its view"):
        theory.teaching_risk(narrow._replace(rules=narrow.rules._replace(risk=None)))
