"""How the report writes numbers."""

from typing import Any

import numpy as np

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: Any, digits: int = 3) -> str:
    """A number with so many digits that count, and no e: 0.0231, 8.1×10⁻⁵, 12400."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "diverged" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = f"{abs(value):.{digits - 1}e}"
    mantissa, exponent = size.split("e")
    power = int(exponent)
    if -4 <= power < 6:
        written = f"{abs(value):.{max(digits - 1 - power, 0)}f}"
    else:
        written = f"{mantissa}×10{str(power).translate(SUPERSCRIPTS)}"
    return f"−{written}" if value < 0 else written


def signed(value: Any, digits: int = 3) -> str:
    """A difference: its sign always shows."""
    written = number(value, digits)
    return f"+{written}" if value > 0 and np.isfinite(value) else written


def share(value: Any, digits: int = 1) -> str:
    """A share of a whole, in per cent."""
    return "–" if np.isnan(value) else f"{100 * value:.{digits}f} %"


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Numbers for a text file: so many digits that count, None for what is not finite."""
    return [float(f"{value:.{digits - 1}e}") if np.isfinite(value) else None for value in np.asarray(values, float)]
