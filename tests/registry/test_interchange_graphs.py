"""Plain graphs of networkx as fabrics and profiles: `from_networkx` with ``capacity`` or ``weight``."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest

from registry import Fabric, Profile, from_networkx
from registry.errors import InvalidValue


def path_of(*nodes: object) -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph()
    for at, pair in enumerate(pairwise(nodes)):
        graph.add_edge(*pair, weight=4.0 + at)
    return graph


def test_edges_without_a_capacity_get_the_given_one_or_that_of_an_attribute() -> None:
    graph = path_of("a", "b", "c")
    graph.edges["a", "b"]["capacity"] = 9.0
    fabric = from_networkx(graph, capacity=2.0)
    assert isinstance(fabric, Fabric)
    assert fabric.links.capacity.tolist() == [9.0, 9.0, 2.0, 2.0]
    fabric = from_networkx(graph, capacity="weight")
    assert isinstance(fabric, Fabric)
    assert fabric.links.capacity.tolist() == [4.0, 4.0, 5.0, 5.0]
    assert "capacity" not in graph.edges["b", "c"]  # the graph is not changed


def test_edges_without_bytes_get_the_given_ones_or_those_of_an_attribute() -> None:
    graph = path_of(0, 1, 2)
    profile = from_networkx(graph, weight=8.0)
    assert isinstance(profile, Profile)
    assert profile.bytes.tolist() == [8.0] * 4
    profile = from_networkx(graph, weight="weight")
    assert isinstance(profile, Profile)
    assert profile.bytes.tolist() == [4.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("nodes", "said"), [((3, 1, 2), "1 .. 3"), (("x", "a", "b"), "'x' .. 'b'"), ((0, 1, 3), "0 .. 3")]
)
def test_nodes_that_are_no_ranks_are_numbered_with_a_warning(nodes: tuple[object, ...], said: str) -> None:
    with pytest.warns(UserWarning, match=re.escape(f"the ranks 0 .. 2 are the nodes {said}, in this order")):
        profile = from_networkx(path_of(*nodes), weight="weight")
    assert isinstance(profile, Profile)
    neighbours = [profile.partner[profile.sender == rank].tolist() for rank in range(3)]
    assert neighbours == ([[1, 2], [0], [0]] if nodes[0] == 3 else [[1], [0, 2], [1]])


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InvalidValue, match="weight: not with capacity"):
        from_networkx(path_of(0, 1), weight=1.0, capacity=1.0)
    with pytest.raises(InvalidValue, match="the edge from 0 to 1 has no attribute 'bandwidth'"):
        from_networkx(path_of(0, 1), capacity="bandwidth")
    with pytest.raises(InvalidValue, match="give capacity= or weight="):
        from_networkx(path_of(0, 1))
