"""Adaptive routing with a given share of non-minimal traffic, pair by pair."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.catalog import build_routes
from mapping.selfcheck.oracles import (
    EndPoint,
    Route,
    _all_shortest,
    _combine,
    _enters,
    _graph,
    _leaves,
    _ports,
    _rail_pairs,
    shortest_path_route,
    table_route,
)
from registry.errors import DisconnectedAllocation
from registry.model import Fabric, Floats
from tests.support.flow_checks import check_loads, on_links
from tests.support.small_fabrics import adapter_fabrics, ring_of_switches, table_fabrics

SHARES = st.sampled_from([0.0, 0.25, 0.6, 1.0])


def detour(fabric: Fabric, source: int, target: int, rails: str) -> Route:
    """What a host sends to another by way of every switch alike, by enumeration (adapters only)."""
    links, middle = fabric.links, fabric.switches.tolist()
    channels: dict[tuple[int, int], list[list[Route]]] = defaultdict(list)
    for a, b in _rail_pairs(fabric, source, target, rails):
        for p, q in itertools.product(_ports(fabric, source, a), _ports(fabric, target, b)):
            (up,) = [row for row in range(len(links)) if _leaves(fabric, row) == p]
            (down,) = [row for row in range(len(links)) if _enters(fabric, row) == q]
            parts: dict[int, float] = defaultdict(float, {up: 1.0, down: 1.0})
            first, last = int(links.target[up]), int(links.source[down])
            for w in middle if first != last else []:
                for tail, head in ((first, w), (w, last)):
                    ends = EndPoint(tail, -1, -1), EndPoint(head, -1, -1)
                    ways = _all_shortest(fabric, _graph(fabric), *ends)
                    for row, part in itertools.chain(*ways):
                        parts[row] += part / len(ways) / len(middle)
            channels[a, b].append([list(parts.items())])
    route = _combine(channels)
    assert route is not None
    return route


@pytest.mark.parametrize("minimal", ["shortest-paths", "tables"])
@given(data=st.data(), share=SHARES, rails=st.sampled_from(["all-connected", "same-rail"]))
def test_adaptive_loads_are_those_of_enumerated_ways(
    minimal: str, data: st.DataObject, share: float, rails: str
) -> None:
    fabric = data.draw(table_fabrics() if minimal == "tables" else adapter_fabrics())
    find = table_route if minimal == "tables" else shortest_path_route
    routes = build_routes(f"ugal:share={share},minimal={minimal}", fabric, fabric.hosts, rails=rails)

    def byte_between(i: int, j: int) -> Floats:
        straight = on_links(fabric, find(fabric, i, j, rails))
        around = on_links(fabric, detour(fabric, i, j, rails))
        assert straight is not None
        assert around is not None
        return (1 - share) * straight + share * around

    check_loads(routes, byte_between, DisconnectedAllocation)


def test_a_share_of_nothing_is_minimal_and_hosts_of_one_switch_stay_there() -> None:
    fabric = ring_of_switches(6)
    pairs = ([0, 2, 5], [1, 9, 11], [1.0, 2.0, 4.0])
    minimal, same = (
        build_routes(name, fabric, fabric.hosts).link_bytes(*pairs)
        for name in ("shortest-paths", "ugal:share=0")
    )
    np.testing.assert_allclose(same, minimal)
    valiant = build_routes("valiant", fabric, fabric.hosts)
    assert valiant.load([0], [1], [1.0]).hops[0] == 2.0
    assert valiant.load([0], [4], [1.0]).hops[0] == pytest.approx(2 + 2 * 1.5)
