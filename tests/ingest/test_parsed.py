"""Profiles whose messages were recorded several times."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles.edge_csv import csv_text
from ingest.options import Options
from ingest.pipeline import plan
from registry.errors import InputError
from registry.model import Profile
from tests.support.inputs import DATA, edges_of, recordings


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
