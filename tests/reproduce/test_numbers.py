import math

import pytest

from ital.reproduce._numbers import number, rounded, share, signed


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (0.32, "0.320"),
        (0.9996, "1.00"),
        (12.345, "12.3"),
        (1032.4, "1032"),
        (-0.0005, "−0.000500"),
        (8.08e-5, "8.08×10⁻⁵"),
        (1e12, "1.00×10¹²"),
        (math.nan, "–"),
        (math.inf, "diverged"),
    ],
)
def test_numbers_have_three_digits_and_no_e(value, written):
    assert number(value) == written


def test_differences_show_their_sign():
    assert [signed(value) for value in (1.5, -1.5, 0.0)] == ["+1.50", "−1.50", "0"]


def test_shares():
    assert share(0.9731) == "97.3 %"


def test_what_is_stored_is_short_and_finite():
    assert rounded([1.23456, 1234567.0, math.nan, math.inf], 3) == [1.23, 1230000.0, None, None]
