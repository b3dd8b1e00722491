import numpy as np
import pytest

import ital
from ital import learners, theory
from ital_paper.experiments import theory as _theory


@pytest.fixture(scope="module")
def panels():
    """The theory of both starts, in the sizes that the test of a whole report uses too."""
    return {
        start: _theory.panel("regression", start, seeds=2, steps=40)
        for start in (None, "normal:0.1")
    }


@pytest.mark.usefixtures("optimised")
def test_large_beta_recovers_the_guarantee_where_the_conditions_hold_and_moderate_beta_does_not():
    found = _theory.guarantee("regression", None, seeds=2, batches=200)
    assert found["held"] > 50
    assert found["where_held"][-1] == 1.0
    assert min(found["where_held"]) < 0.95
    assert found["elsewhere"][-1] < 0.5


def test_sharpness_reaches_its_aim_at_the_value_of_auto(panels):
    found = panels[None]["sharpness"]
    curve = np.interp(np.log(found["auto"]), np.log(found["beta"]), found["sharpness"])
    np.testing.assert_allclose(curve, 0.8, atol=0.15)
    taught = ital.teach("regression", beta="auto", seeds=2, steps=1)
    np.testing.assert_allclose(taught.curves["beta"].values[0], found["auto"], rtol=1e-4)


@pytest.mark.parametrize("start", [None, "normal:0.1"])
def test_diagnostics_are_shares_of_steps(panels, start):
    """Shares over four parts of a run are averaged to those of the whole."""
    found = panels[start]["taught"]
    assert found["beta"] == [50.0, 500.0, 5000.0, 15000.0]
    aware = [learners.teacher_aware(beta)._replace(name=f"{beta:g}") for beta in found["beta"]]
    options = {"seeds": 2, "steps": 40, "init": start, "eval_every": 40, "diagnostics": True}
    whole = (
        ital.teach("regression", "cooperative", aware, **options).curves.isel(step=-1).mean("seed")
    )
    for name in ("conditions", "improved"):
        np.testing.assert_allclose(found[name], whole[f"theorem_{name}"], atol=1e-6)
        np.testing.assert_allclose(
            np.array(found[name]) * 80, np.round(np.array(found[name]) * 80), atol=1e-4
        )
    assert min(found["conditions"]) > 0.9  # 97 % over whole runs
    assert found["improved"][0] == 1.0  # a small β makes a small step in the right direction


def test_panels_tell_what_the_corollary_assumes(panels):
    for panel in panels.values():
        premises = theory.Premises(**panel["premises"])
        assert theory.failing(premises, panel["monotonicity_violations"]) == ["density"]
        # in 101 dimensions 20 rows lie far from the rest: rows of U[−1, 1] are √(2·100/3) apart
        assert premises.radius == pytest.approx(np.sqrt(200 / 3), rel=0.1)
        assert premises.error > 1 > premises.missed > 0
        assert panel["teaching_risk"] < 1e-6  # rotated views
