"""`mapping.evaluate` takes what other tools find: a host for each rank, by name or by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mapping
from ingest.generate.tori import torus
from registry import Fabric, HostOrder, Profile
from registry.errors import InvalidPlacement, InvalidValue, UnknownName

FABRIC = torus((4,))
PAIRS = Profile.from_edges([0, 1, 2, 3], [2, 3, 0, 1], [8.0] * 4)


@pytest.mark.parametrize("hosts", [[0, 2, 1, 3], (0, 2, 1, 3), np.array([0, 2, 1, 3])])
def test_a_list_of_indices_or_names_is_evaluated_as_the_placement(hosts: Any) -> None:
    names = [FABRIC.names[vertex] for vertex in [0, 2, 1, 3]]
    wanted = mapping.evaluate(FABRIC, PAIRS, HostOrder(hosts=tuple(names)).on(FABRIC), bounds=True)
    for given in (hosts, names):
        found = mapping.evaluate(FABRIC, PAIRS, given, bounds=True)
        assert (found.hop_bytes, found.congestion_seconds) == (32.0, wanted.congestion_seconds)
        assert found.bounds.keys() == wanted.bounds.keys()


def test_several_ranks_share_a_host() -> None:
    assert mapping.evaluate(FABRIC, PAIRS, [0, 1, 0, 1]).hop_bytes == 0.0


def test_wrong_hosts_are_named() -> None:
    with pytest.raises(InvalidPlacement, match="3 ranks"):
        mapping.evaluate(FABRIC, PAIRS, [0, 1, 2])
    with pytest.raises(UnknownName, match="'nobody'"):
        mapping.evaluate(FABRIC, PAIRS, ["nobody"] * 4)
    with pytest.raises(InvalidValue, match=r"placement: outside 0 \.\. 3"):
        mapping.evaluate(FABRIC, PAIRS, [0, 1, 2, 4])


def test_numbers_that_may_be_names_are_refused_also_in_pins() -> None:
    ring = Fabric.from_arcs([1, 2, 3, 4], [0, 1, 2, 3], [1, 2, 3, 0], 1.0)  # type: ignore[list-item]
    with pytest.raises(InvalidValue, match="placement: 1 may be the vertex '1' or the one with index 1, '2'"):
        mapping.evaluate(ring, PAIRS, [1, 2, 3, 1])
    with pytest.raises(InvalidValue, match="pins: 1 may be the vertex '1'"):
        mapping.evaluate(ring, PAIRS, ["1", "2", "3", "4"], pins={0: 1})
    assert mapping.evaluate(ring, PAIRS, ["1", "2", "3", "4"], pins={0: "1"}).total_bytes == 32.0
