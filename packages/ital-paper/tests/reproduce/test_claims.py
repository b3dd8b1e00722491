from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from ital_paper.claims import catalogue, judging
from ital_paper.claims.judging import FAILS, HOLDS, IN_PART, NEEDS_PEOPLE, NO_DATA
from ital_paper.experiments.data import Data, Evidence
from ital_paper.experiments.plan import STARTS, Condition
from tests.reproduce.made_up import both_starts, experiment, theory

ADVERSARIAL = {"teacher": "adversarial"}
RANDOM = {"teacher": "random"}


def verdict(rule, data):
    claim = next(claim for claim in catalogue.CLAIMS if claim.check is rule)
    return catalogue.judge(claim, data).verdict


def pair(left, other=None):
    """A smaller and a larger teacher network."""
    parts = [
        both_starts(left, task="mnist-20"),
        both_starts(left if other is None else other, task="mnist-30"),
    ]
    return Data([one for part in parts for one in part.experiments.values()])


def study(difference, **others):
    """All measures with the same difference between robots, except those named; none in distances
    after one step.
    """
    differences = dict.fromkeys(("distance_last", "policy_tv_last", "reward"), difference) | others
    rows = [
        {
            "outcome": outcome,
            "map": name,
            "mean_first": 6.0,
            "mean_second": 6.0 - own,
            "difference": own,
            "p": 1e-6,
        }
        for outcome, own in (differences | {"distance_first": 0.0}).items()
        for name in "ABCDE"
    ]
    return Data([], study=SimpleNamespace(tests=rows, random={}))


def panels(**options):
    return Data([], {(start, "regression"): theory(**options) for start in STARTS})


def tuned(aware):
    """A sweep in which the best aware setting ends at ``aware``, the best naive one at 0.5."""
    lrs, betas = [0.001, 0.01, 0.1], [0.0, 10.0, 100.0]
    finals = np.full((2, 3, 3, 8), 2.0) + np.random.default_rng(0).normal(0, 0.01, (2, 3, 3, 8))
    finals[0, 1] -= 1.5
    finals[1, 1, 1] -= 2.0 - aware
    values = np.stack([np.full_like(finals, 4.0), finals], axis=-1)
    dims = ("learner", "lr", "beta", "seed", "step")
    grid = xr.Dataset(
        {
            "distance": (dims, values),
            "computed": (dims[:4], np.ones(finals.shape)),
            "diverged_at": (dims[:4], np.full(finals.shape, -1)),
        },
        {
            "learner": ["imt", "ital"],
            "label": ("learner", ["IMT", "ITAL"]),
            "lr": lrs,
            "beta": betas,
            "step": [0, 2000],
        },
        {"without_beta": '["imt"]'},
    ).assign_coords(seed=range(8))
    return Data([], sweeps={Condition("normal:0.1", "regression", "cooperative"): grid})


def beliefs(aware, **options):
    """Beliefs on two tasks: from labels alone at 0.5 of the start, with choices at ``aware``."""
    left = {"posterior": 0.5, "ital-posterior": aware}
    steps = np.arange(0, 201, 50)
    tasks = ("irl-dense", "equation-40")
    return Data(
        [], evidence=[experiment(left, task=task, steps=steps, **options) for task in tasks]
    )


def slow():
    data = both_starts()
    for one in data.experiments.values():
        one.curves.attrs["seconds"] = 13 * 3600.0
    return data


CASES = {
    catalogue.batch_is_sgd: (both_starts(), both_starts({"sgd": 0.5})),
    catalogue.imt_is_better: (both_starts(), both_starts({"imt": 0.85})),
    catalogue.ital_is_best: (both_starts(), both_starts({"ital": 0.9})),
    catalogue.ital_2_beats_imt: (both_starts(), both_starts({"ital-2": 0.95})),
    catalogue.more_is_faster: (
        both_starts(),
        both_starts({"ital-2": 0.04, "ital-5": 0.08, "ital": 0.3}),
    ),
    catalogue.ital_converges: (both_starts(), both_starts({"ital": 0.7})),
    catalogue.both_networks: (pair({}), pair({}, {"ital": 0.9})),
    catalogue.adversary: (
        both_starts({"imt": 0.98}, **ADVERSARIAL),
        both_starts({"imt": 0.5}, **ADVERSARIAL),
    ),
    catalogue.sparse: (
        both_starts(task="irl-sparse"),
        both_starts({"ital": 0.8}, task="irl-sparse"),
    ),
    catalogue.random_teacher: (
        both_starts({"ital": 0.8, "imt": 0.7}, spread={"ital": 0.3}, **RANDOM),
        both_starts({"ital": 0.3, "imt": 0.7}, **RANDOM),
    ),
    catalogue.study_arms: (study(5.0), study(-1.0)),
    catalogue.theorem: (panels(), panels(held=0.9)),
    catalogue.monotonicity: (panels(), panels(violations=0.2)),
    catalogue.never_behind: (both_starts(), both_starts({"ital": 0.9})),
    catalogue.hours: (both_starts(), slow()),
    catalogue.awareness_when_tuned: (tuned(0.1), tuned(0.9)),
    catalogue.awareness_as_evidence: (beliefs(0.05), beliefs(0.6)),
    catalogue.awareness: (both_starts(), both_starts({"imt-matched": 0.02})),
}


@pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.__name__)
def test_a_claim_holds_where_the_data_say_so_and_fails_where_they_do_not(rule):
    fitting, failing = CASES[rule]
    assert verdict(rule, fitting) == HOLDS
    assert verdict(rule, failing) == FAILS


def test_every_claim_is_among_the_cases_but_the_one_that_needs_people():
    others = [claim for claim in catalogue.CLAIMS if claim.check not in CASES]
    assert [catalogue.judge(claim, both_starts()).verdict for claim in others] == [NEEDS_PEOPLE]


@pytest.mark.parametrize(
    "rule", [catalogue.ital_2_beats_imt, catalogue.ital_is_best, catalogue.never_behind]
)
def test_a_claim_that_depends_on_the_start_holds_in_part(rule):
    worse = {"ital-2": 0.95, "ital": 0.9}
    assert verdict(rule, both_starts({}, worse)) == IN_PART


def test_a_modest_gain_must_be_the_smaller_one():
    assert verdict(catalogue.imt_is_better, both_starts({"imt": 0.3, "ital": 0.25})) == FAILS


def test_a_difference_that_is_noise_is_no_better_method():
    noise = {"ital-2": 0.5, "imt": 0.5}
    assert (
        verdict(catalogue.ital_2_beats_imt, both_starts(noise, spread={"ital-2": 0.3, "imt": 0.3}))
        == FAILS
    )


def test_a_diverged_learner_is_never_the_better_one():
    data = both_starts()
    for one in data.experiments.values():
        one.curves["distance"].loc[{"learner": "ital-2", "step": slice(200, None)}] = np.nan
        one.curves["diverged_at"].loc[{"learner": "ital-2"}] = 200
    assert verdict(catalogue.ital_2_beats_imt, data) == FAILS
    assert verdict(catalogue.more_is_faster, data) == FAILS


@pytest.mark.parametrize("measure", ["distance_last", "policy_tv_last", "reward"])
def test_the_claim_of_the_study_is_about_all_three_measures(measure):
    assert verdict(catalogue.study_arms, study(5.0, **{measure: -1.0})) == IN_PART
    claim = next(claim for claim in catalogue.CLAIMS if claim.check is catalogue.study_arms)
    checks = catalogue.judge(claim, study(5.0, **{measure: -1.0})).checks
    assert len(checks) == 15
    short = {"distance_last": "distance", "policy_tv_last": "policy", "reward": "reward"}[measure]
    assert [check.where for check in checks if not check.holds] == [
        f"map {name}, {short}" for name in "ABCDE"
    ]


def test_random_arms_of_the_study_count_for_the_random_teacher():
    rng = np.random.default_rng(0)
    gain, none = rng.normal(3, 0.1, 20), rng.normal(0, 1, 20)
    naive = rng.normal(0.1, 0.05, 20)
    arms = {
        name: {"aware": aware.tolist(), "naive": naive.tolist()}
        for name, aware in (("A", gain), ("B", none))
    }
    data = Data([], study=SimpleNamespace(tests=[], random=arms))
    claim = next(claim for claim in catalogue.CLAIMS if claim.check is catalogue.random_teacher)
    assert [check.holds for check in catalogue.judge(claim, data).checks] == [False, True]


def test_convergence_is_not_judged_by_short_runs():
    short = Data([experiment(steps=np.arange(0, 401, 100))])
    assert verdict(catalogue.ital_converges, short) == NO_DATA


def test_without_data_nothing_is_judged():
    assert {finding.verdict for finding in catalogue.judge_all(Data([]))} == {NO_DATA, NEEDS_PEOPLE}


def test_an_experiment_that_lacks_a_method_is_not_judged_by_it():
    one = experiment()
    without = Evidence(one.condition, one.task, curves=one.curves.drop_sel(learner="ital-2"))
    assert verdict(catalogue.ital_2_beats_imt, Data([without])) == NO_DATA


def test_choices_as_evidence_are_judged_after_100_and_after_200_steps():
    claim = next(
        claim for claim in catalogue.CLAIMS if claim.check is catalogue.awareness_as_evidence
    )
    places = [
        f"{task} after {step} steps" for task in ("irl-dense", "equation-40") for step in (100, 200)
    ]
    assert [check.where for check in catalogue.judge(claim, beliefs(0.05)).checks] == places
    # A lead that is lost later counts where it was.
    lost = beliefs(0.05)
    for one in lost.evidence.values():
        one.curves["distance"].loc[{"learner": "ital-posterior", "step": 200}] = 7.0
    checks = catalogue.judge(claim, lost).checks
    assert [check.holds for check in checks] == [True, False, True, False]
    short = beliefs(0.05)
    early = [one.until(150) for one in short.evidence.values()]
    checks = catalogue.judge(claim, Data([], evidence=early)).checks
    assert [check.where for check in checks] == places[::2]


def test_a_choice_that_tells_nothing_is_no_evidence():
    noise = {"posterior": 0.3, "ital-posterior": 0.3}
    assert verdict(catalogue.awareness_as_evidence, beliefs(0.5, spread=noise)) == FAILS


def test_p_values_are_adjusted_within_a_claim():
    checks = [judging.Check("here", "", True, "", p=p, tested=True) for p in (0.02, 0.03)]
    assert [check.holds for check in judging.adjusted(checks)] == [True, True]
    checks = [judging.Check("here", "", True, "", p=p, tested=True) for p in (0.03, 0.04)]
    assert [check.holds for check in judging.adjusted(checks)] == [False, False]


def test_the_summary_names_where_a_claim_fails():
    data = Data([experiment(), experiment({"ital-2": 0.9}, task="gaussian")])
    claim = next(claim for claim in catalogue.CLAIMS if claim.check is catalogue.ital_2_beats_imt)
    finding = catalogue.judge(claim, data)
    assert finding.verdict == IN_PART
    assert "1 of 2, not on gaussian" in finding.summary
