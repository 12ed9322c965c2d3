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
    path.write_text(csv_text(Profile.from_edges([0, 1], [1, 0], [0.1, 1e300], messages=[1, 1])))
    assert np.array_equal(plan([path]).profiles[0].bytes, [0.1, 1e300])
