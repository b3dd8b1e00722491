import numpy as np
import pytest

import ital
from ital import fit
from ital.errors import InputError


def taught(by, seed, steps=25):
    """A session in which each choice has the largest score of a kind."""
    task = ital.tasks.regression(dim=4, points=30)
    live = ital.session(task, "imt", seed=seed, steps=steps, batch_size=6)
    for _ in range(steps):
        live.choose(int(live.scores[by].argmax()))
    return live


def test_scores_are_those_by_which_the_teachers_choose():
    live = taught("exact", 3)
    result = ital.teach(live.task, "omniscient", "imt", seeds=[3], steps=25, batch_size=6)
    end = float(result.curves["distance"].isel(step=-1, seed=0, learner=0))
    assert live.metrics["distance"] == pytest.approx(end, rel=1e-5)
    with pytest.raises(InputError, match="has ended"):
        live.scores  # noqa: B018
    fresh = ital.session(live.task, "imt", seed=3, steps=5, batch_size=6)
    np.testing.assert_allclose(fresh.scores["imitated"], fresh.volumes, rtol=1e-6)
    assert fresh.scores["gradient"].shape == fresh.scores["loss"].shape == (6,)


def test_people_in_sessions_are_found_out():
    kinds = ["exact", "imitated", "loss", "gradient"]
    sessions = {kind: taught(kind, i) for i, kind in enumerate(kinds)}
    choices = fit.replay(sessions)
    assert len(choices) == 100
    assert choices.of_trials("step").tolist() == [*range(25)] * 4
    found = fit.fit(choices, [*(fit.TeacherModel(kind, kind) for kind in kinds), fit.uniform()])
    likelihoods = found.people.pivot_table(index="person", columns="model", values="log_likelihood")
    for kind in kinds:
        # At the bound ρ = 100 near ties cost a little; related scores may lose less.
        assert likelihoods.loc[kind, kind] >= likelihoods.loc[kind].max() - 1.0
        assert likelihoods.loc[kind, kind] > -15  # −44.8 by chance


def test_a_planner_is_a_model_whose_scores_are_those_of_the_best_plans():
    task = ital.tasks.regression(dim=4, points=30)
    live = ital.session(task, "imt", seed=5, steps=12, batch_size=6, lr=0.05)
    np.testing.assert_allclose(live.plan_worths(1), live.scores["exact"], rtol=1e-6)
    for _ in range(12):
        live.choose(int(live.plan_worths(3).argmax()))
    planned = ital.teach(task, "planner:3", "imt", seeds=[5], steps=12, batch_size=6, lr=0.05)
    end = float(planned.curves["distance"].isel(step=-1, seed=0, learner=0))
    assert live.metrics["distance"] == pytest.approx(end, rel=1e-5)
    choices = fit.replay({"ann": live}, horizons=[2, 3])
    names = ["exact", "loss", "planner:2", "planner:3"]
    found = fit.fit(choices, [*(fit.TeacherModel(name, name) for name in names), fit.uniform()])
    assert found.people.set_index("model")["log_likelihood"].idxmax() == "planner:3"
    with pytest.raises(InputError, match="a planner is written planner:H"):
        fit.replay({"ann": live}, horizons=[0])


def test_nothing_to_replay():
    with pytest.raises(InputError, match="there is no session"):
        fit.replay({})
    with pytest.raises(InputError, match="session of ann has no choices"):
        fit.replay({"ann": ital.session("regression", "imt", steps=3)})
