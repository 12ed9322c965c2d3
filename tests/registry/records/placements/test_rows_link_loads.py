"""Loads of links as bytes: the loaded ones only, and those of earlier versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from registry.database import codec
from registry.errors import DatabaseError, InvalidValue
from registry.model.loaded_links import LoadedLinks
from registry.records.placements.rows import pack_loads, unpack_loads

LOADS = arrays(np.float64, st.integers(0, 60), elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.5e9]))


@given(LOADS)
def test_packed_loads_are_unpacked_and_those_of_earlier_versions_too(link_bytes: np.ndarray) -> None:
    found = unpack_loads(pack_loads(link_bytes))
    assert np.array_equal(found.dense(), link_bytes)
    assert found.link.tolist() == [row for row, load in enumerate(link_bytes) if load]
    assert np.array_equal(unpack_loads(codec.pack({"link_bytes": link_bytes})).dense(), link_bytes)


def test_few_loaded_links_of_many_take_few_bytes() -> None:
    rng = np.random.default_rng(0)
    link_bytes = np.zeros(60_000)
    link_bytes[rng.choice(60_000, 600, replace=False)] = rng.random(600)
    assert len(pack_loads(link_bytes)) < 600 * 12 + 300


@pytest.mark.parametrize(
    "columns",
    [
        {"other": np.zeros(1)},
        {"links": np.zeros(0, np.int64), "link": np.zeros(1, np.int32), "bytes": np.ones(1)},
        {"links": np.array([2], np.int64), "link": np.array([2], np.int32), "bytes": np.ones(1)},
        {"links": np.array([2], np.int64), "link": np.array([1, 0], np.int32), "bytes": np.ones(2)},
        {"links": np.array([2], np.int64), "link": np.array([1], np.int32), "bytes": np.ones(2)},
    ],
)
def test_damaged_loads_are_an_error(columns: dict[str, np.ndarray]) -> None:
    with pytest.raises(DatabaseError, match="damaged"):
        unpack_loads(codec.pack(columns))


def test_rows_outside_the_fabric_are_refused() -> None:
    with pytest.raises(InvalidValue, match="outside"):
        LoadedLinks(link=np.array([-1]), bytes=np.array([1.0]), links=2)
    with pytest.raises(InvalidValue, match="ascend"):
        LoadedLinks(link=np.array([1, 1]), bytes=np.array([1.0, 1.0]), links=2)
