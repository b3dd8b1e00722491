"""What awareness amounts to at the start: the sharpness of q and the length of its step."""

import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import teaching
from ital.errors import InputError
from tests.typed import ital as type_in

FEW = {"seeds": 2, "batch_size": 4}


@pytest.fixture(scope="module")
def task():
    return ital.tasks.regression(dim=3, points=20)


def test_without_rationality_q_is_even_and_the_awareness_step_nearly_nothing(task):
    (row,) = teaching.awareness(task, learner=["imt", "ital"], beta=1e-6, **FEW).itertuples()
    assert row.method == "ITAL"
    assert row.sharpness == pytest.approx(row.even, abs=1e-4)
    assert row.step < 1e-6


def test_the_numbers_are_those_of_the_first_steps_of_live_sessions(task):
    """Sharpness grows with β.

    The step is 2βη of the difference between the chosen and the imagined gradient.
    """
    rows = [
        teaching.awareness(task, beta=beta, lr=0.01, **FEW).iloc[0] for beta in (1.0, 100.0, 1e4)
    ]
    assert np.all(np.diff([row["sharpness"] for row in rows]) > 0)
    # q is even there: the step is linear in β.
    assert rows[1]["step"] == pytest.approx(100 * rows[0]["step"], rel=0.2)


def test_a_result_tells_the_same_of_its_run():
    result = ital.teach("regression", learner=["imt", "ital"], steps=10, lr=0.01, beta=50.0, **FEW)
    expected = teaching.awareness("regression", learner="ital", lr=0.01, beta=50.0, **FEW)
    assert jnp.allclose(
        result.awareness().iloc[0, 1:].astype(float).values,
        expected.iloc[0, 1:].astype(float).values,
    )


def test_the_command_line_prints_it(capsys, tmp_path, undrawn):
    status, out, _ = type_in(
        capsys,
        "run",
        "regression",
        "--methods",
        "imt,ital",
        "--steps",
        "10",
        "--seeds",
        "2",
        "--batch-size",
        "4",
        "--awareness",
        "--out",
        str(tmp_path),
    )
    assert status == 0
    assert "ITAL: β = 5e+03; q gives its likeliest example" in out
    status, _, err = type_in(capsys, "list", "--awareness")
    assert (status, err) == (2, "ital: --awareness needs a TASK: ital list TASK --awareness\n")


def test_an_own_teacher_has_to_be_given():
    curves = ital.teach("regression", learner=["ital"], steps=10, **FEW).curves.assign_attrs(
        teacher="mine"
    )
    with pytest.raises(InputError, match="unknown teacher 'mine'"):
        ital.Result(curves, ital.tasks.regression(), {}).awareness()
