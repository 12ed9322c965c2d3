"""Options of parsers, what they return, and rates of cables."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles.edge_csv import csv_text
from ingest.options import Options
from ingest.pipeline import plan
from ingest.rates import LANE_BYTES, WIDTHS, link_rate, printed_rate
from registry.errors import InputError, InvalidValue
from registry.model import Profile
from tests.support.inputs import DATA, edges_of, recordings

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("divide", {"divide": 0}),
        ("parts", {"parts": 0}),
        ("domain", {"domain": -1}),
        ("collectives", {"collectives": "star"}),
        ("rate", {"rate": 0.0}),
        ("rate", {"rate": -1.0}),
        ("rate", {"rate": float("nan")}),
        ("rate", {"rate": float("inf")}),
        ("hosts", {"hosts": ("a", "a")}),
        ("slots", {"hosts": ("a", "b", "c"), "slots": (1, 2)}),
        ("slots", {"hosts": ("a", "b", "c"), "slots": (0,)}),
        ("slots", {"hosts": ("a", "b", "c"), "slots": ()}),
    ],
)
def test_options_out_of_range_are_refused(field: str, values: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=rf"^Options\.{field}"):
        Options(**values)  # type: ignore[arg-type]


def test_the_time_of_an_observation_is_that_of_the_option_or_of_the_file() -> None:
    assert Options().time(WHEN) == WHEN
    assert Options(observed_at=datetime(2025, 1, 1)).time(WHEN) == datetime(2025, 1, 1, tzinfo=UTC)


@given(recordings(), st.integers(2, 3))
def test_a_profile_recorded_several_times_over_is_divided_to_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, once: Profile, times: int
) -> None:
    path = tmp_path_factory.mktemp("doubled") / "p.csv"
    repeated = Profile.from_edges(
        once.sender, once.partner, once.bytes * times, ranks=once.ranks, messages=once.messages * times
    )
    path.write_text(csv_text(repeated))
    (found,) = plan([path], Options(divide=times)).profiles
    assert edges_of(found) == edges_of(once)
    assert found.ranks == once.ranks
    if once.pairs:
        assert found.source == f"edge-csv, divided by {times}"


def test_what_is_no_multiple_was_not_recorded_so_often(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("src,dst,bytes,messages\n0,1,8,2\n1,0,8,3\n")
    with pytest.raises(InputError, match="cannot have been recorded 2 times: 1") as caught:
        plan([path], Options(divide=2))
    assert "1 to 0: 3 messages" in (caught.value.text or "")


@pytest.mark.parametrize(
    ("rows", "warned"),
    [
        ("0,1,8,2\n1,0,8,4\n", "even number of messages"),
        ("0,1,8,2\n1,0,8,3\n", ""),
        ("0,1,7,2\n1,0,8,2\n", ""),
        ("0,1,7,1\n1,0,9,3\n0,1,7,1\n1,0,9,3\n", "every row is repeated"),
        ("0,1,7,1\n0,1,7,1\n1,0,9,3\n1,0,9,3\n", "every row is repeated"),
    ],
)
def test_a_profile_that_may_be_doubled_has_a_warning(tmp_path: Path, rows: str, warned: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"src,dst,bytes,messages\n{rows}")
    warnings = " ".join(plan([path]).warnings)
    assert warned in warnings if warned else not warnings


def test_open_mpis_monitoring_has_no_warning_of_doubling() -> None:
    """NAS CG sends every message an even number of times."""
    report = plan([DATA / "openmpi/npb_cg_S_16.tar.gz"], Options(kinds=("E",)))
    assert bool((report.profiles[0].messages % 2 == 0).all())
    assert not any("even number" in warning for warning in report.warnings)


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
