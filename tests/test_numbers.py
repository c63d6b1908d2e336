"""All numbers in tables are written by one function."""

from __future__ import annotations

import pytest

from mt_scaffold.tables import decimal


@pytest.mark.parametrize("value", [-0.004, -0.0, 0.0, 0.004, -1e-300])
def test_zero_has_no_minus(value: float) -> None:
    """A difference of ``-0.00``, or an interval up to it, looks like a loss."""
    assert decimal(value) == "0.00"
    assert decimal(value, signed=True) == "+0.00"


def test_other_numbers_are_as_python_writes_them() -> None:
    """Including halves, which are rounded by the float's exact value."""
    for value in (-0.005, 0.125, -2.675, 1e9, -0.0051, 37.915, float("nan"), float("-inf")):
        assert decimal(value) == f"{value:.2f}" and decimal(value, 3, signed=True) == f"{value:+.3f}"
