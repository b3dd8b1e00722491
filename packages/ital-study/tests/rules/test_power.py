import dataclasses

import numpy as np
import pytest
from scipy import stats

from ital.errors import InputError
from ital_study.analysis import power as _power
from ital_study.simulation import arms


@pytest.mark.parametrize(
    ("effect", "power", "needed"),
    [(0.2, 0.8, 199), (0.5, 0.8, 34), (0.8, 0.8, 15), (0.5, 0.95, 54)],
)
def test_known_sizes_of_paired_studies(effect, power, needed):
    """Two-sided, 5 %: as in the tables of the usual programs."""
    assert _power.participants_needed(effect, power) == needed
    assert _power.participants_needed(-effect, power) == needed
    assert _power.power_of(needed, effect) >= power > _power.power_of(needed - 1, effect)


@pytest.mark.parametrize(
    ("n", "effect", "tests"),
    [
        (2, 12, 5), (2, 0.5, 1), (2, 40, 1), (2, 300, 50), (3, 12, 50), (3, 2, 1),
        (5, 12, 1), (5, 1.5, 5), (10, 3, 1), (18, 0.6, 1), (50, 0.4, 5), (100, 0.0, 1),
    ],
)  # fmt: skip
def test_power_is_the_share_of_simulated_studies_that_find_the_effect(n, effect, tests):
    studies, rng = 10_000, np.random.default_rng(n)
    p = stats.ttest_1samp(rng.normal(effect, 1, (studies, n)), 0, axis=1).pvalue
    found = np.mean(p <= 0.05 / tests)
    power = _power.power_of(n, effect, tests=tests)
    error = max(np.sqrt(power * (1 - power) / studies), 1 / studies)  # of the share, by chance
    assert power == pytest.approx(found, abs=4 * error)


def test_power_equals_the_noncentral_t_where_that_is_a_number():
    for n, effect, alpha in ((2, 1.0, 0.05), (3, 0.1, 1e-3), (30, 0.5, 0.01), (1000, 0.1, 0.05)):
        limit = stats.t.isf(alpha / 2, n - 1)
        away = effect * np.sqrt(n)
        expected = stats.nct.sf(limit, n - 1, away) + stats.nct.cdf(-limit, n - 1, away)
        assert _power.power_of(n, effect, alpha) == pytest.approx(expected, abs=1e-9)


def test_more_tests_need_more_people():
    assert _power.participants_needed(0.5, tests=5) > _power.participants_needed(0.5)
    assert _power.smallest_effect(34) == pytest.approx(0.495, abs=0.005)
    assert _power.power_of(34, _power.smallest_effect(34)) == pytest.approx(0.8, abs=1e-6)
    assert _power.power_of(50, 40.0) == pytest.approx(1.0)
    assert _power.participants_needed(12, tests=5) == 3
    smallest = _power.smallest_effect(2, tests=5)
    assert _power.power_of(2, smallest, tests=5) == pytest.approx(0.8, abs=1e-6)


def test_all_maps_at_once_by_drawing_studies():
    rng = np.random.default_rng(2)
    easy, none = rng.normal(3, 1, (100, 3)), rng.normal(0, 1, (100, 3))
    needed = _power.needed_for_all_maps(easy)
    assert 3 <= needed <= 8
    assert _power.share_found(easy, needed) >= 0.8 > _power.share_found(easy, needed - 1)
    assert _power.needed_for_all_maps(none, most=50) is None
    one = rng.normal(0.5, 1, (2000, 1))
    effect = one.mean() / one.std(ddof=1)
    assert _power.share_found(one, 34) == pytest.approx(_power.power_of(34, effect), abs=0.05)


def test_effects_of_simulated_teachers(config):
    teachers = [arms.teacher(name, default=1.0) for name in ("random", "machine")]
    found = _power.simulated_effects(config, teachers, pool=12).set_index("teacher")
    assert found.loc["machine", "agrees"] == 1
    assert found.loc["random", "agrees"] == pytest.approx(0.1, abs=0.04)
    assert found.loc["machine", "d"] > 5
    assert found.loc["machine", "needed"] <= 3
    assert found.loc["machine", "needed_all_maps"] <= 6
    steps = arms.table(config, arms.run(config, 12, teachers, ("aware", "naive")))
    for teacher in ("random", "machine"):
        own = steps[steps["teacher"] == teacher]
        fell = {}
        for place, rows in own.groupby(["learner", "map", "participant"]):
            by_step = rows.set_index("step")
            fell[place] = by_step.loc[1, "distance_before"] - by_step.loc[config.steps, "distance"]
        names = [on.name for on in config.maps]
        apart = np.array(
            [[fell["aware", on, n] - fell["naive", on, n] for on in names] for n in range(1, 13)]
        )
        effects = apart.mean(axis=0) / apart.std(axis=0, ddof=1)
        over_maps = apart.mean(axis=1)
        aware = own[own["learner"] == "aware"]
        row = found.loc[teacher]
        assert row["difference"] == pytest.approx(apart.mean())
        assert row["d"] == pytest.approx(over_maps.mean() / over_maps.std(ddof=1))
        assert row["smallest_d"] == pytest.approx(min(effects, key=abs))
        assert row["agrees"] == pytest.approx((aware["choice"] == aware["machine_choice"]).mean())
        assert row["needed"] == _power.participants_needed(row["d"])


def test_effects_of_the_adaptive_robot(config):
    one_map, machine = (
        dataclasses.replace(config, maps=config.maps[:1]),
        [arms.teacher("machine", default=1.0)],
    )
    found = _power.simulated_effects(one_map, machine, pool=10, robot="adaptive").iloc[0]
    distance = arms.run(one_map, 10, machine, ("adaptive", "naive")).measures["distance"][:, 0]
    apart = distance[:, 1, -1] - distance[:, 0, -1]
    assert found["difference"] == pytest.approx(apart.mean())
    assert found["d"] == pytest.approx(apart.mean() / apart.std(ddof=1))
    assert found["d"] > 0.4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _power.participants_needed(float("nan")), "the effect must be a number"),
        (lambda: _power.smallest_effect(2, alpha=1e-30), "find no effect at a level of 1e-30"),
        (lambda: _power.participants_needed(0.0), "an effect of zero cannot be found"),
        (lambda: _power.participants_needed(1e-4), "needs more than 100000 participants"),
        (lambda: _power.participants_needed(0.5, power=1.0), "power must lie between alpha and 1"),
        (lambda: _power.participants_needed(0.5, alpha=0.0), "alpha must lie between 0 and 0.5"),
        (lambda: _power.smallest_effect(1), "at least two participants"),
        (lambda: _power.check(tests=0), "the number of tests must be at least 1"),
    ],
)
def test_what_has_no_answer(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_outcomes_that_there_are_not(config):
    with pytest.raises(InputError, match="outcome must be one of distance_first"):
        _power.simulated_effects(config, [], outcome="joy")
    with pytest.raises(InputError, match=r"against must be one of .*, not 'nobody'"):
        _power.simulated_effects(config, [], against="nobody")
    with pytest.raises(InputError, match=r"robot must be one of naive, .*, not 'clever'"):
        _power.simulated_effects(config, [], robot="clever")
    with pytest.raises(InputError, match=r"against must be one of naive, .*, not 'aware'"):
        _power.simulated_effects(config, [], robot="aware", against="aware")
    with pytest.raises(InputError, match="imt-matched takes steps as long as the aware robot's"):
        _power.simulated_effects(config, [], robot="adaptive", against="imt-matched")
    with pytest.raises(InputError, match="at least 10 simulated participants, not 5"):
        _power.simulated_effects(config, [], pool=5)
