"""Routings that spread by load or by a share of detours: pair by pair, and over all shares."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.hyperx import hyperx
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.routing.catalog import build_routes
from mapping.routing.share_range import _extremes, range_over_share
from mapping.selfcheck import oracles
from registry.errors import DisconnectedAllocation, InvalidValue
from registry.model import Allocation, Fabric, Floats, Profile
from tests.support import small_fabrics
from tests.support.flow_checks import check_loads, on_links, on_paths, shortest_ways
from tests.support.small_fabrics import adapter_fabrics, cabled, given_placement
from tests.support.sure import sure

SHARES = st.sampled_from([0.0, 0.25, 0.6, 1.0])


def detour(fabric: Fabric, source: int, target: int, rails: str) -> oracles.Route:
    """What a host sends to another by way of every switch alike, by enumeration (adapters only)."""
    links, middle = fabric.links, fabric.switches.tolist()
    channels: dict[tuple[int, int], list[list[oracles.Route]]] = defaultdict(list)
    for a, b in oracles._rail_pairs(fabric, source, target, rails):
        for p, q in itertools.product(oracles._ports(fabric, source, a), oracles._ports(fabric, target, b)):
            (up,) = [row for row in range(len(links)) if oracles._leaves(fabric, row) == p]
            (down,) = [row for row in range(len(links)) if oracles._enters(fabric, row) == q]
            parts: dict[int, float] = defaultdict(float, {up: 1.0, down: 1.0})
            first, last = int(links.target[up]), int(links.source[down])
            for w in middle if first != last else []:
                for tail, head in ((first, w), (w, last)):
                    ends = oracles.EndPoint(tail, -1, -1), oracles.EndPoint(head, -1, -1)
                    ways = oracles._all_shortest(fabric, oracles._graph(fabric), *ends)
                    for row, part in itertools.chain(*ways):
                        parts[row] += part / len(ways) / len(middle)
            channels[a, b].append([list(parts.items())])
    return sure(oracles._combine(channels))


@pytest.mark.parametrize("minimal", ["shortest-paths", "tables"])
@given(data=st.data(), share=SHARES, rails=st.sampled_from(["all-connected", "same-rail"]))
def test_loads_are_those_of_all_ways(minimal: str, data: st.DataObject, share: float, rails: str) -> None:
    fabric = data.draw(small_fabrics.table_fabrics() if minimal == "tables" else adapter_fabrics())
    find = oracles.table_route if minimal == "tables" else oracles.shortest_path_route
    routes = build_routes(f"ugal:share={share},minimal={minimal}", fabric, fabric.hosts, rails=rails)

    def byte_between(i: int, j: int) -> Floats:
        straight = sure(on_links(fabric, find(fabric, i, j, rails)))
        return (1 - share) * straight + share * sure(on_links(fabric, detour(fabric, i, j, rails)))

    check_loads(routes, byte_between, DisconnectedAllocation)


def test_a_share_of_nothing_is_minimal_and_hosts_of_one_switch_stay_there() -> None:
    fabric = small_fabrics.ring_of_switches(6)
    pairs = ([0, 2, 5], [1, 9, 11], [1.0, 2.0, 4.0])
    minimal, same = (
        build_routes(name, fabric, fabric.hosts).link_bytes(*pairs)
        for name in ("shortest-paths", "ugal:share=0")
    )
    np.testing.assert_allclose(same, minimal)
    valiant = build_routes("valiant", fabric, fabric.hosts)
    assert valiant.load([0], [1], [1.0]).hops[0] == 2.0
    assert valiant.load([0], [4], [1.0]).hops[0] == pytest.approx(2 + 2 * 1.5)


@given(fabric=small_fabrics.plain_fabrics(), data=st.data())
def test_each_pair_loads_a_least_loaded_shortest_path(fabric: Fabric, data: st.DataObject) -> None:
    routes = build_routes("least-loaded", fabric, fabric.hosts)
    connected = np.argwhere(np.isfinite(routes.distances) & (routes.distances > 0))
    if not len(connected):
        return
    chosen = connected[data.draw(st.lists(st.integers(0, len(connected) - 1), min_size=1, max_size=10))]
    count = len(chosen)
    sizes = np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), float)
    before, links = np.zeros(len(fabric.links)), fabric.links
    for turn, (i, j) in enumerate(chosen.tolist()):
        pairs = chosen[: turn + 1]
        load = routes.load(pairs[:, 0], pairs[:, 1], sizes[: turn + 1])
        every = shortest_ways(fabric, int(routes.hosts[i]), int(routes.hosts[j]))
        seconds = before / links.capacity
        cost = [
            sum(seconds[(links.source == a) & (links.target == b)][0] for a, b in itertools.pairwise(way))
            for way in every
        ]
        carried = (sizes[turn] * on_paths(fabric, [way]) for way in every)
        taken = [np.allclose(load.link_bytes, before + one, atol=1e-9) for one in carried]
        assert any(took and cost[w] <= min(cost) + 1e-9 for w, took in enumerate(taken))
        assert load.hops[turn] == len(every[0]) - 1
        before = load.link_bytes


def loads(text: str, sizes: list[float]) -> list[float]:
    """Bytes on 0-2 and 0-3 where 0 sends to 1, by way of 2 or 3, once for each size."""
    fabric, pairs = cabled("0-2 2-1 0-3 3-1", 2), len(sizes)
    found = build_routes(text, fabric, [0, 1]).link_bytes([0] * pairs, [1] * pairs, sizes)
    return [float(found[(fabric.links.source == 0) & (fabric.links.target == v)].sum()) for v in (2, 3)]


def test_pairs_take_their_turn_as_given_or_heaviest_first() -> None:
    assert loads("least-loaded", [1.0, 2.0, 3.0]) == [4.0, 2.0]
    assert loads("least-loaded:order=heaviest", [1.0, 2.0, 3.0]) == [3.0, 3.0]


def test_small_loads_count_beside_any_number_of_hops() -> None:
    """What the paper's large weight on every link loses in 64 bits."""
    assert loads("least-loaded", [0.2, 0.2, 1e17, 0.2]) == [0.2 + 1e17, 0.4]


@given(fabric=adapter_fabrics(), profile=small_fabrics.profiles(min_ranks=2), data=st.data())
def test_the_range_holds_what_any_share_gives(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    placement, shares = data.draw(small_fabrics.placements(fabric, profile)), np.linspace(0, 1, 5)
    found = range_over_share(fabric, profile, placement, shares)
    chosen = [f"ugal:share={share}" for share in (*shares, found.least_share, found.least_network_share)]
    every = [evaluate(fabric, profile, placement, costs=CostModel(routing=one)) for one in chosen]
    at, network = ([getattr(one, f"{of}congestion_seconds") for one in every] for of in ("", "network_"))
    for given_shares, values, least, most, own in (
        (found.congestion_seconds, at, found.least_seconds, found.most_seconds, at[-2]),
        (
            *(found.network_congestion_seconds, network),
            *(found.least_network_seconds, found.most_network_seconds, network[-1]),
        ),
    ):
        np.testing.assert_allclose(given_shares, values[:-2])
        assert least <= min(values) * (1 + 1e-9) + 1e-12
        assert most >= max(values) * (1 - 1e-9) - 1e-12
        assert least == pytest.approx(own, abs=1e-12)


def test_a_worst_pattern_is_best_served_by_some_non_minimal_ways() -> None:
    """On six switches all joined to all, everyone sends to the next: one link of five is used, until
    detours use the others. Way by way: the direct link has 2 (1 - x) + 2 x 2/6, others 4 x / 6.
    """
    fabric = hyperx((6,), 2)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    on = given_placement(allocation, allocation.hosts)
    at = np.arange(12)
    profile = Profile.from_edges(at, (at + 2) % 12, np.ones(12))
    found = range_over_share(fabric, profile, on)
    assert found.network_congestion_seconds[0] == 2.0
    assert (found.most_network_share, found.least_network_share) == (0.0, 1.0)
    assert found.least_network_seconds == pytest.approx(2 / 3)
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        range_over_share(fabric, profile, on, shares=[2.0])


def test_of_equal_worst_links_the_smallest_share_is_returned() -> None:
    ends = np.array([[2.0, 1.0], [2.0, 2.0]])  # seconds of two links at the shares 0 and 1
    assert _extremes(ends) == (2.0, 0.0, 2.0, 0.0)
