"""Generated fabrics, profiles and weights as files."""

from __future__ import annotations

import io

import numpy as np
import pytest

from ingest import catalog as formats
from ingest.generate.catalog import FABRICS, PROFILES, make
from ingest.reading.source import SourceGroup
from ingest.writers.generated_files import as_fabric, formats_of, npz_bytes, weights_csv, write
from registry.errors import InvalidValue
from registry.model import Fabric, Profile
from tests.support.inputs import file

PAIR = Profile.from_edges([2, 0], [0, 2], [8, 2.5], ranks=4, messages=[2, 1])


def test_profiles_and_weights_are_written_as_rows_or_arrays() -> None:
    assert write(PAIR) == b"# ranks: 4\nsrc,dst,bytes,messages\n0,2,2.5,1\n2,0,8,2\n"
    assert list(formats_of(PAIR)) == ["edge-csv", "npz"]
    found = np.load(io.BytesIO(npz_bytes(PAIR)))
    assert {name: found[name].tolist() for name in found.files} == {
        "src": [0, 2], "dst": [2, 0], "bytes": [2.5, 8.0], "messages": [1, 2], "ranks": 4,
    }  # fmt: skip
    weights = np.array([1.0, 0.1])
    assert write(weights).decode() == weights_csv(weights) == "rank,weight\n0,1.0\n1,0.1\n"
    with pytest.raises(InvalidValue, match="must be one of edge-csv, npz"):
        write(make(PROFILES.find("ring"), {"ranks": "4"}), "xml")


def test_a_fabric_is_made_of_text_and_written() -> None:
    made = make(FABRICS.find("torus"), {"sides": "4x4", "capacity": "1,2.5", "slots": "2"})
    assert isinstance(made, Fabric)
    assert as_fabric(made) is made
    assert len(made.hosts) == 16
    assert set(made.links.capacity.tolist()) == {1.0, 2.5}
    assert write(made).startswith(b'{"directed"')


def test_devices_of_a_scan_are_a_fabric_and_a_scan() -> None:
    made = make(FABRICS.find("infiniband-fat-tree"), {"leaves": "2", "hosts_per_leaf": "3", "spines": "2"})
    fabric = as_fabric(made)
    assert (len(fabric.hosts), len(fabric.switches)) == (6, 4)
    group = SourceGroup(path="x", files=(file(write(made)),))
    assert formats.recognise(group).name == "ibnetdiscover"
