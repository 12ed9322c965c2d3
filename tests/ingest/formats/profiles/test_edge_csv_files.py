"""Profiles written as edge lists and read back from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from ingest.formats.profiles.edge_csv import csv_text
from ingest.pipeline import plan
from registry.errors import InputError
from registry.model import Profile
from tests.support.inputs import edges_of, recordings


@given(recordings())
def test_a_written_profile_is_read_back_with_its_silent_ranks(
    tmp_path_factory: pytest.TempPathFactory, profile: Profile
) -> None:
    path = tmp_path_factory.mktemp("edges") / "p.csv"
    path.write_text(csv_text(profile))
    (found,) = plan([path]).profiles
    assert edges_of(found) == edges_of(profile)
    assert found.ranks == profile.ranks


@pytest.mark.parametrize("number", ["x", "0", "99999999999", "-1", ""])
def test_an_invalid_number_of_ranks_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"# ranks: {number}\nsrc,dst,bytes\n0,1,2\n")
    with pytest.raises(InputError, match="invalid number of ranks") as caught:
        plan([path])
    assert caught.value.line == 1
    path.write_text("# ranks: 1\nsrc,dst,bytes\n0,1,2\n")
    with pytest.raises(InputError, match="contains rank 1, but declares 1 ranks"):
        plan([path])


def test_fractions_of_bytes_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(csv_text(Profile.from_edges([0, 1], [1, 0], [0.1, 1e18], messages=[1, 1])))
    assert np.array_equal(plan([path]).profiles[0].bytes, [0.1, 1e18])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("edges.csv", "src,dst,bytes\n0,1,5\n1,0,1e308\n", "3: bytes is more than 2^63"),
        (
            "sum.csv",
            "src,dst,bytes\n0,1,9e18\n0,1,9e18\n",
            "1.8e+19 bytes from rank 0 to 1 are more",
        ),
        ("dense.csv", "0,1e308\n0,0\n", "dense.csv: 1e+308 bytes from rank 0 to 1 are more than 2^63"),
    ],
)
def test_more_bytes_than_any_run_sends_are_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    """Their sum over all pairs would not be finite."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        plan([path])
    assert reason in str(caught.value)
    path.write_text(text.replace("1e308", "9e18").replace("0,1,9e18\n0,1,9e18", "0,1,4e18\n0,1,4e18"))
    assert plan([path]).profiles[0].bytes.max() >= 8e18


@pytest.mark.parametrize(
    "rows", ["src,dst,bytes\n0,1,5\n1,16777215,5\n", "t_s,src,dst,bytes\n0,0,1,5\n1,1,16777215,5\n"]
)
def test_a_rank_far_above_the_others_is_reported_unless_the_number_is_declared(
    tmp_path: Path, rows: str
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(rows.replace("16777215", "99"))
    (warning,) = plan([path]).warnings
    assert "97 of 100 ranks neither send nor receive: is rank 99 right? '# ranks: 100'" in warning
    path.write_text("# ranks: 100\n" + rows.replace("16777215", "99"))
    assert plan([path]).warnings == ()
    path.write_text(rows.replace("16777215", "3"))
    assert plan([path]).warnings == ()
