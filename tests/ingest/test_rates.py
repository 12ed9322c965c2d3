"""Data rates of InfiniBand links."""

from __future__ import annotations

import pytest

from ingest.rates import LANE_BYTES, WIDTHS, link_rate, printed_rate

GIGABITS_OF_4X = {
    "SDR": 8, "DDR": 16, "QDR": 32, "FDR10": 40, "FDR": 54.54, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800,
}  # fmt: skip
"""What vendors print of a four-lane link's data rate, in Gbit/s."""


@pytest.mark.parametrize("speed", GIGABITS_OF_4X)
def test_four_lanes_carry_the_data_rate_that_vendors_print(speed: str) -> None:
    assert link_rate(4, speed) * 8 / 1e9 == pytest.approx(GIGABITS_OF_4X[speed], rel=2e-4)


def test_rates_below_and_above_fdr_are_round_numbers() -> None:
    round_ones = {speed: rate for speed, rate in LANE_BYTES.items() if speed != "FDR"}
    assert round_ones == {
        "SDR": 0.25e9, "DDR": 0.5e9, "QDR": 1e9, "FDR10": 1.25e9,
        "EDR": 3.125e9, "HDR": 6.25e9, "NDR": 12.5e9, "XDR": 25e9,
    }  # fmt: skip


def test_width_multiplies() -> None:
    assert {width: link_rate(width, "EDR") for width in WIDTHS} == {
        width: width * 3.125e9 for width in WIDTHS
    }


@pytest.mark.parametrize(("width", "speed"), [(3, "SDR"), (0, "SDR"), (4, "ABC"), (4, "")])
def test_what_infiniband_does_not_have_is_refused(width: int, speed: str) -> None:
    with pytest.raises(KeyError):
        link_rate(width, speed)


def test_rates_as_tools_print_them() -> None:
    printed = {("4x", "HDR"): 25e9, ("2X", "50"): 12.5e9, ("4X", "FDR10"): 5e9}
    assert {one: printed_rate(*one) for one in printed} == printed
    assert [printed_rate(*one) for one in (("3x", "HDR"), ("??", "HDR"), ("4x", "???"))] == [None] * 3
