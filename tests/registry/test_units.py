"""Numbers with units: the unit in which the value is at least 1, and few digits without exponents."""

from __future__ import annotations

import math

import pytest

from registry import units


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (0.00033664, units.SECONDS, "337 µs"),
        (1234.0, units.SECONDS, "1,230 s"),
        (4.84215e9, units.BYTES, "4.84 GB"),
        (999.6, units.BYTES, "1 kB"),
        (0.0, units.RATE, "0 B/s"),
        (-0.0125, units.SECONDS, "-12.5 ms"),
        (1e-12, units.SECONDS, "0.001 ns"),
        (61.0, units.SECONDS, "61 s"),
        (0.999999999, units.SECONDS, "1 s"),
        (0.9994, units.SECONDS, "999 ms"),
        (2.5, units.HOPS, "2.5 hops"),
    ],
)
def test_a_value_has_three_significant_figures_and_no_exponent(
    value: float, base: str, expected: str
) -> None:
    assert units.short(value, base) == expected


def test_numbers_without_a_unit() -> None:
    assert units.figures(12_345.0) == "12,300"
    assert units.figures(2.0) == "2"
    assert units.figures(math.inf) == "inf"
    assert units.text(0.00033664, units.SECONDS) == "336.6 µs"
    assert units.text(0.999999999, units.SECONDS) == "1 s"
    assert units.counted(1, "leaf", "leaves") == "1 leaf"
    assert units.counted(2048, "leaf", "leaves") == "2,048 leaves"
