"""Hosts by name and by index: whole numbers that may be both are never taken as indices without a word."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from registry import Allocation, Fabric, from_networkx
from registry.errors import InvalidValue, UnknownName


def ring_from(first: int, count: int = 4) -> Fabric:
    """Return a ring whose vertices are numbered from `first`."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edges_from(((first + at, first + (at + 1) % count) for at in range(count)), capacity=1.0)
    fabric = from_networkx(graph)
    assert isinstance(fabric, Fabric)
    return fabric


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param([1, 2, 3], id="list"),
        pytest.param(np.array([3, 1]), id="array"),
        pytest.param(range(1, 5), id="the last is no index"),
    ],
)
def test_numbers_that_are_names_of_a_graph_from_1_are_no_indices(hosts: Any) -> None:
    with pytest.raises(InvalidValue, match=r"Allocation\.hosts: 1 may be the vertex '1' or .* index 1, '2'"):
        Allocation.of(ring_from(1), hosts)


def test_names_as_text_and_what_can_only_be_an_index_are_taken() -> None:
    fabric = ring_from(1)
    assert fabric.names == ("1", "2", "3", "4")
    assert Allocation.of(fabric, ["3", "1"]).hosts.tolist() == [2, 0]
    assert Allocation.of(fabric, [0, 1, 2]).hosts.tolist() == [0, 1, 2]  # there is no vertex '0'
    assert Allocation.of(fabric, fabric.hosts[1:3]).hosts.tolist() == [1, 2]  # the fabric's own are indices
    assert Allocation.of(ring_from(0), [2, 1]).hosts.tolist() == [2, 1]  # both meanings are the same
    with pytest.raises(UnknownName, match="'9'"):
        Allocation.of(fabric, ["9"])
    with pytest.raises(InvalidValue, match=r"outside 0 \.\. 3"):
        Allocation.of(ring_from(0), [4])


def test_ends_of_arcs_are_not_mistaken_for_names() -> None:
    with pytest.raises(InvalidValue, match="source: 1 may be the vertex '1'"):
        Fabric.from_arcs(["1", "2", "3"], [1, 2], [2, 1], 1.0)
    assert len(Fabric.from_arcs(["1", "2", "3"], [0, 1, 2], [1, 2, 0], 1.0).links) == 3
