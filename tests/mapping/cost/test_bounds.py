"""Lower bounds: no placement goes below them, some meet them; by cuts, and by pairs of many bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.generate import collectives
from ingest.generate.collectives import all_to_all
from ingest.generate.direct import hypercube, mesh, torus
from mapping.cost.bounds import catalog, cuts
from mapping.cost.bounds import pairs as module
from mapping.cost.bounds.catalog import BOUNDS, METRICS, every_bound, lower_bounds
from mapping.cost.bounds.cuts import Groups, cut_bounds, routed_cuts
from mapping.cost.bounds.hop_bytes import _least, least_assignment, least_cost
from mapping.cost.bounds.hop_bytes import all_to_all as all_to_all_bound
from mapping.cost.bounds.pairs import _HeavyPairs, detours, heavy_pairs
from mapping.cost.bounds.partition import Crossings
from mapping.cost.bounds.parts import Cables, cables
from mapping.cost.kernels.detours import least_hop_bytes
from mapping.cost.metrics import link_seconds
from mapping.distances.cost_model import Background
from mapping.distances.distances import LINKS, Distances, distances
from mapping.routing import forwarding_tables, shortest_paths
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import every_placement
from registry.errors import DisconnectedAllocation, InfeasibleAllocation
from registry.model import Allocation, Bound, Fabric, Floats, Longs, Profile
from tests.support import small_fabrics
from tests.support.infiniband_data import infiniband
from tests.support.search_problems import ring
from tests.support.small_fabrics import adapter_fabrics, allocations, any_fabrics, cabled, profiles


def least_of_all_placements(
    routes: Routes, profile: Profile, allocation: Allocation, background: Background | None = None
) -> dict[str, float]:
    """Each metric at its best over every placement, by brute force."""
    fabric, least = routes.fabric, dict.fromkeys(METRICS, np.inf)
    for placed in every_placement(range(len(allocation)), allocation.slots.tolist(), profile.ranks):
        at = np.array(placed)
        loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
        seconds = link_seconds(fabric, loads, background)
        found = {
            "congestion_seconds": seconds.max(initial=0.0),
            "network_congestion_seconds": seconds[fabric.network_link].max(initial=0.0),
            "hop_bytes": loads.sum(),
        }
        least = {name: min(value, float(found[name])) for name, value in least.items()}
    return least


def check(
    routes: Routes, profile: Profile, allocation: Allocation, background: Background | None = None
) -> None:
    best = lower_bounds(routes, profile, allocation, background=background)
    every = every_bound(routes, profile, allocation, background=background)
    for name, least in least_of_all_placements(routes, profile, allocation, background).items():
        assert best[name].value <= least, best[name].proof
        for bound in every[name]:
            assert bound.value <= least * (1 + 1e-9), (bound.name, bound.proof)
            assert bound.name in (*BOUNDS.names, "one-host")


@settings(max_examples=120)
@given(fabric=any_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_on_short_paths_is_below(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    """Nor below an argument that is tried although others have proved more."""
    allocation = data.draw(allocations(fabric, profile.ranks))
    rails = data.draw(st.sampled_from(["all-connected", "same-rail"]))
    routes = shortest_paths.build(fabric, allocation.hosts, rails=rails)
    if routes.connected:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(catalog, "all_to_all", partial(_alone, all_to_all_bound))
            patch.setattr(catalog, "detours", partial(_alone, detours))
            check(routes, profile, allocation)
    else:
        with pytest.raises(DisconnectedAllocation):
            lower_bounds(routes, profile, allocation)


def _alone(argument: Callable[..., Bound], *given: Any, above: float, **more: Any) -> Bound:
    return argument(*given, above=0.0, **more)


@given(fabric=small_fabrics.table_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_on_tables_is_below(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    check(forwarding_tables.build(fabric, allocation.hosts), profile, allocation)


def star(leaves: int, *, slow: float = 1.0) -> Fabric:
    """Hosts on one switch; the last host's cables may be slower."""
    return cabled(" ".join(f"{i}-{leaves}" for i in range(leaves)), leaves, [1.0] * (leaves - 1) + [slow])


def bounds_on(fabric: Fabric, profile: Profile, slots: int = 1) -> dict[str, float]:
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), slots)
    routes = shortest_paths.build(fabric, allocation.hosts)
    return {name: b.value for name, b in lower_bounds(routes, profile, allocation).items()}


def test_the_injection_bound_is_met_on_a_star() -> None:
    profile = Profile.from_edges([0, 0, 1], [1, 2, 2], [3.0, 4.0, 1.0])
    bounds = bounds_on(star(3), profile)
    assert bounds["congestion_seconds"] == pytest.approx(7.0)
    assert bounds["hop_bytes"] == pytest.approx(2 * 8.0)
    assert bounds["network_congestion_seconds"] == 0.0
    back = Profile.from_edges([1, 2], [0, 0], [3.0, 4.0])  # more is received than sent
    assert bounds_on(star(3), back)["congestion_seconds"] == pytest.approx(7.0)


def test_the_slow_host_gets_the_lightest_rank() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [8.0, 8.0, 4.0])
    assert bounds_on(star(3, slow=0.1), profile)["congestion_seconds"] == pytest.approx(80.0)
    assert bounds_on(star(4, slow=0.1), profile)["congestion_seconds"] == pytest.approx(8.0)


def test_a_slot_takes_the_heaviest_partner_off_the_cable() -> None:
    ring = Profile.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [5.0, 1.0, 5.0, 1.0])
    assert bounds_on(star(2), ring, slots=2)["hop_bytes"] == pytest.approx(2 * 2.0)
    both = Profile.from_edges([0, 0, 1, 2], [1, 2, 2, 3], [5.0, 3.0, 1.0, 9.0])
    assert bounds_on(star(2), both, slots=2)["congestion_seconds"] >= 2.99
    pair = Profile.from_edges([0, 1], [1, 0], [5.0, 5.0])  # on one host
    assert bounds_on(star(2), pair, slots=2) == dict.fromkeys(METRICS, 0.0)


def test_unequal_rails_bound_by_the_slower_one() -> None:
    fabric = infiniband("mixed-speeds-oversubscribed")
    host = int(np.flatnonzero(np.bincount(fabric.adapters.host[fabric.adapters.port_adapter]) > 1)[0])
    others = [v for v in fabric.hosts.tolist() if v != host][:2]
    allocation = Allocation.of(fabric, [host, *others])
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [1e9, 1e9, 1e9])
    check(forwarding_tables.build(fabric, allocation.hosts), profile, allocation)


def gilmore_lawler(profile: Profile, between: Floats) -> float:
    """The bound with one slot per host."""
    near = Distances(name="links", group=np.arange(len(between), dtype=np.int32), between=between)
    return least_assignment(Crossings(profile).partners.both, near, np.ones(profile.ranks, np.int32))


def test_gilmore_lawler_is_met_by_a_ring_on_a_ring() -> None:
    at = np.arange(8)
    around = np.minimum((at[:, None] - at) % 8, (at - at[:, None]) % 8).astype(np.float64)
    assert gilmore_lawler(collectives.ring(8, bytes=2.0), around) == pytest.approx(16.0)


def test_gilmore_lawler_without_assignment_is_the_weaker_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points = rng.random((9, 2))
    between = np.abs(points[:, None] - points).sum(axis=2)
    edges = rng.integers(0, 9, (30, 2))
    profile = Profile.from_edges(edges[:, 0], edges[:, 1], rng.random(30), ranks=9)
    strong = gilmore_lawler(profile, between)
    monkeypatch.setattr("mapping.cost.bounds.hop_bytes.MAX_ASSIGNMENT", 0)
    assert gilmore_lawler(profile, between) < strong


LIMITS = {
    "hop_bytes.MAX_GROUPS": 0, "hop_bytes.MAX_LEVELS": 2, "partition.MAX_EIGEN_RANKS": 0,
    "hop_bytes.MAX_TABLE": 5, "parts.MAX_PAIRS": 0, "parts.MAX_CLIQUE_WORK": 0,
}  # fmt: skip


@settings(max_examples=150)
@given(limit=st.sampled_from(sorted(LIMITS)), fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_weaker_bounds_hold_too(limit: str, fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"mapping.cost.bounds.{limit}", LIMITS[limit])
        patch.setattr("mapping.cost.bounds.hop_bytes.MAX_ASSIGNMENT", 0)
        check(shortest_paths.build(fabric, allocation.hosts), profile, allocation)


def test_leaf_switches_are_cut_by_eigenvalues() -> None:
    """Six ranks that all talk, on two leaves of three hosts: nine pairs must cross, each way."""
    found = bounds_on(cabled("0-6 1-6 2-6 3-7 4-7 5-7 6-7", 6), collectives.all_to_all(6))
    assert found["network_congestion_seconds"] == pytest.approx(9.0)
    assert found["hop_bytes"] == pytest.approx(12 * 2 + 18 * 3)


def test_more_ranks_than_slots_are_refused() -> None:
    with pytest.raises(InfeasibleAllocation):
        bounds_on(star(3), Profile.from_edges([0], [3], [1.0]))


@given(fabric=any_fabrics(), profile=profiles(), data=st.data())
def test_distances_in_bytes_do_not_matter(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    routes = shortest_paths.build(fabric, allocation.hosts)
    if not routes.connected:
        return
    near = distances(LINKS, routes)
    plain = Distances(name=LINKS, group=near.group, between=near.between)
    crossings = Crossings(profile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mapping.cost.bounds.hop_bytes.MAX_GROUPS", data.draw(st.sampled_from([0, 4096])))
        found, wanted = (least_cost(crossings, one, allocation.slots) for one in (near, plain))
    for one, other in zip(found, wanted, strict=True):
        assert one.value == pytest.approx(other.value), one.proof


@pytest.mark.parametrize(
    ("limit", "left_out"),
    [
        ("parts.MAX_BISECTED_ARCS", "bisection of parts of 2 and of 4: 8 arcs, more than 0"),
        ("parts.MAX_CLIQUE_WORK", "pod-cut of densely cabled parts: 16 pairs of arcs, more than 0"),
        ("parts.MAX_GROUPS", "pod-cut of pods: 4 kinds of hosts, more than 0"),
        ("pairs.MAX_GROUPS", "heavy-pairs: 4 kinds of hosts, more than 0"),
        ("pairs.MAX_PAIRS", "detours: 12 pairs, more than 0"),
    ],
)
def test_what_is_left_out_is_named(limit: str, left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"mapping.cost.bounds.{limit}", 0)
    fabric, profile, allocation = ring(4, 4)
    found = lower_bounds(shortest_paths.build(fabric, allocation.hosts), profile, allocation)
    assert f"not tried: {left_out}" in found["congestion_seconds"].proof
    assert f"not tried: {left_out}" in found["network_congestion_seconds"].proof
    assert "not tried" not in found["hop_bytes"].proof


def named(routes: Routes, profile: Profile, metric: str, name: str, slots: int = 1, **more: Any) -> float:
    allocation = Allocation.of(routes.fabric, routes.hosts.tolist(), slots)
    found = every_bound(routes, profile, allocation, **more)[metric]
    return max(bound.value for bound in found if bound.name == name)


def test_bisection_and_total_work_are_met_by_all_to_all_on_a_ring() -> None:
    """Eight on a ring: 32 bytes cross between halves on four links, 128 hops on 16 links; each link has 8."""
    routes, profile = shortest_paths.build(torus((8,)), range(8)), all_to_all(8)
    assert routes.link_bytes(profile.sender, profile.partner, profile.bytes).max() == pytest.approx(8.0)
    for name in ("bisection", "total-work"):
        assert named(routes, profile, "network_congestion_seconds", name) == pytest.approx(8.0), name


def test_the_host_cut_is_met_by_all_to_all_on_a_star() -> None:
    routes = shortest_paths.build(star(5), range(5))
    assert named(routes, all_to_all(5), "congestion_seconds", "host-cut") == pytest.approx(4.0)


TREE = "0-8 1-8 2-9 3-9 4-10 5-10 6-11 7-11 8-12 9-12 10-13 11-13 12-14 13-14"
"""Two pods of two leaves of two hosts; a pod's leaves on its own switch, both of those on a core."""


def test_pod_switch_and_nested_cuts_are_met_by_all_to_all_on_a_tree() -> None:
    """16 of 56 ordered pairs cross each way between pods, 24 out of a leaf's three others each 12."""
    fabric = cabled(TREE, 8, [9] * 8 + [3] * 4 + [1] * 2)
    routes, profile = shortest_paths.build(fabric, range(8)), all_to_all(8)
    loads = routes.link_bytes(profile.sender, profile.partner, profile.bytes)
    assert named(routes, profile, "network_congestion_seconds", "pod-cut") == pytest.approx(16.0)
    assert named(routes, profile, "network_congestion_seconds", "switch-cut") == pytest.approx(12.0 / 3)
    assert named(routes, profile, "hop_bytes", "nested-cuts") == pytest.approx(loads.sum())


def test_links_that_no_way_takes_do_not_weaken_a_cut() -> None:
    """Three leaves all joined; the allocation's two are joined by one cable, the others lead elsewhere."""
    routes = shortest_paths.build(cabled("0-4 1-4 2-5 3-5 4-5 4-6 5-6", 4), range(4))
    assert named(routes, all_to_all(4), "network_congestion_seconds", "switch-cut") == pytest.approx(4.0)


ROUTINGS = ["shortest-paths", "ecmp:seed=3", "ecmp:paths=2", "least-loaded", "valiant", "up-down"]
ROUTINGS += ["ugal:share=0.3"]


@settings(max_examples=180)
@given(routing=st.sampled_from(ROUTINGS), fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_any_routing_is_bounded(routing: str, fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    check(build_routes(routing, fabric, allocation.hosts), profile, allocation)


@settings(max_examples=100)
@given(fabric=any_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_beside_others_is_below(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    m = len(fabric.links)
    load = np.array(data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m)), np.float64)
    background = Background(kind=data.draw(st.sampled_from(["added", "reduced"])), load=load)
    routes = shortest_paths.build(fabric, allocation.hosts)
    if routes.connected:
        check(routes, profile, allocation, background)


def test_bytes_that_are_there_already_raise_a_bound() -> None:
    profile = Profile.from_edges([0, 0, 1], [1, 2, 2], [3.0, 4.0, 1.0])
    routes = shortest_paths.build(star(3), range(3))
    there = Background(kind="added", load=np.full(6, 10.0))
    alone = named(routes, profile, "congestion_seconds", "total-work")
    beside = named(routes, profile, "congestion_seconds", "total-work", background=there)
    assert beside == pytest.approx(alone + 10.0)


def test_how_far_from_the_best_is_certified_by_an_argument() -> None:
    bound = Bound(value=2.0, proof="because", name="injection")
    assert bound.certifies(3.0) == "at most 1.5 times the best possible, certified by injection"
    assert bound.certifies(2.0) == "at most 1 times the best possible, certified by injection"
    assert Bound(value=0.0, proof="none").certifies(3.0) == "nothing is certified"
    assert Bound(value=0.0, proof="none").certifies(0.0) == "the best possible"


@pytest.mark.parametrize(("hosts", "slots", "alone", "together"), [(6, 1, 6.0, 8.0), (4, 2, 3.0, 4.0)])
def test_three_that_talk_are_not_neighbours(hosts: int, slots: int, alone: float, together: float) -> None:
    """On an even ring a triangle takes 4 hops each way; each rank's two nearest hosts are one hop away: 3.

    With two slots on a host two ranks are on one, the third is one hop from both; each alone has a partner
    beside it.
    """
    routes, profile = shortest_paths.build(torus((hosts,)), range(hosts)), all_to_all(3)
    assert named(routes, profile, "hop_bytes", "gilmore-lawler", slots) == pytest.approx(alone)
    assert named(routes, profile, "hop_bytes", "common-partners", slots) == pytest.approx(together, rel=1e-3)


def test_common_partners_cost_what_every_choice_of_hosts_does() -> None:
    """Two hosts and m others on a 4 x 4 torus, by trying all."""
    at = np.stack(np.unravel_index(np.arange(16), (4, 4)), axis=1)
    apart = np.abs(at[:, None] - at)
    matrix = np.minimum(apart, 4 - apart).sum(axis=2).astype(np.float64)
    rising = np.sort(matrix + np.diag(np.full(16, np.inf)), axis=1)
    found = _least(matrix, rising)
    for m in range(len(found)):
        every = (
            matrix[i, j] + np.sort(np.delete(matrix[i] + matrix[j], [i, j]))[:m].sum()
            for i in range(16)
            for j in range(i)
        )
        assert found[m] == min(every)
    assert found.tolist() == [1, 4, 6, 10, 13, 16, 19]


@settings(max_examples=40)
@given(profile=profiles(min_ranks=3, max_ranks=5), data=st.data())
def test_no_placement_on_a_small_torus_goes_below_a_bound(profile: Profile, data: st.DataObject) -> None:
    links = {(a, b) for a in range(6) for b in (a ^ 1, (a + 2) % 6, (a - 2) % 6)}
    fabric = Fabric.from_arcs(
        [f"n{v}" for v in range(6)], [a for a, _ in sorted(links)], [b for _, b in sorted(links)], 1.0
    )
    hosts = data.draw(st.sampled_from([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]]))
    check(shortest_paths.build(fabric, hosts), profile, Allocation.of(fabric, hosts))


def two_planes() -> Fabric:
    """Four hosts on two planes, each of two switches; the first plane's cable has 1 byte/s, the other's 3."""
    return cabled("0-4 1-4 2-5 3-5 0-6 1-6 2-7 3-7 4-5 6-7", 4, [9] * 8 + [1, 3])


def proved_by_cuts(routes: Routes, profile: Profile, slots: list[int], groupings: list[Longs]) -> float:
    held = np.array(slots, np.int32)
    return routed_cuts(Crossings(profile), routes, cables(routes, None), held, groupings).value


def test_bytes_that_are_divided_evenly_cannot_all_take_the_fast_plane() -> None:
    """Four bytes cross each way, two on each plane: 2 s. The average of both planes takes half of that."""
    fabric = two_planes()
    routes, profile = shortest_paths.build(fabric, range(4)), all_to_all(4)
    found = every_bound(routes, profile, Allocation.of(fabric, range(4)))["network_congestion_seconds"]
    best = {bound.name: bound.value for bound in found}
    assert (best["total-work"], best["routed-cuts"]) == pytest.approx((1.0, 2.0))
    loads = routes.link_bytes(profile.sender, profile.partner, profile.bytes)
    assert (loads / fabric.links.capacity)[fabric.network_link].max() == pytest.approx(2.0)


def test_free_slots_are_used_where_paths_are_fast() -> None:
    """Three of five ranks are on one switch and two on the other, or four and one: 6 bytes cross, or 4."""
    fabric = cabled("0-4 1-4 2-5 3-5 4-5", 4, slots=2)
    routes, sides = shortest_paths.build(fabric, range(4)), np.array([0, 0, 1, 1])
    assert proved_by_cuts(routes, all_to_all(5), [2] * 4, [sides]) == pytest.approx(4.0)
    assert proved_by_cuts(routes, all_to_all(5), [2, 1, 1, 1], [sides]) == pytest.approx(6.0)


@given(fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_is_below_with_any_groups(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    routes = shortest_paths.build(fabric, allocation.hosts)
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(allocation), max_size=len(allocation)))
    found = proved_by_cuts(routes, profile, allocation.slots.tolist(), [np.array(labels)])
    least = least_of_all_placements(routes, profile, allocation)["network_congestion_seconds"]
    assert found <= least * (1 + 1e-9)


def test_too_many_kinds_and_routings_by_loads_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    routes, sides = shortest_paths.build(two_planes(), range(4)), [np.array([0, 0, 1, 1])]
    profile = all_to_all(4)
    assert proved_by_cuts(routes, profile, [1] * 4, sides) == pytest.approx(2.0)
    assert proved_by_cuts(routes, Profile.from_edges([], [], [], ranks=4), [1] * 4, sides) == 0.0
    monkeypatch.setattr(cuts, "MAX_KINDS", 1)
    assert proved_by_cuts(routes, profile, [1] * 4, sides) == 0.0
    monkeypatch.undo()
    routes.name = "ecmp"
    assert proved_by_cuts(routes, profile, [1] * 4, sides) == 0.0


class Flows:
    """Replacement of `Crossings`: 6 bytes cross, which are found only if this is more than `above`."""

    def __init__(self) -> None:
        self.above: list[float] = []

    def least(self, slots: Longs, *, above: float = 0.0) -> tuple[float, str]:
        self.above.append(above)
        return (6.0 if above < 6.0 else 0.0), "flows"


@pytest.mark.parametrize(
    ("capacity", "above", "values"), [((4, 1), 5.0, [1.5, 6]), ((1, 4), 5.0, [6, 1.5]), ((4, 1), 7.0, [0, 0])]
)
def test_a_cut_is_searched_for_as_far_as_the_narrower_direction_can_give_more(
    capacity: tuple[float, float], above: float, values: list[float]
) -> None:
    """Six bytes take 1.5 s over the wide cables and 6 s over the narrow ones: more than 5 s, less than 7."""
    first, none, flows = np.array([True, False]), np.zeros(2), Flows()
    sides: dict[str, Any] = {"outwards": none, "inwards": none, "leaving": first, "entering": ~first}
    sides |= {"group": np.arange(2), "slots": np.ones(2, np.int64), "within_network": True}
    groups = Groups(name="switch-cut", place="leaf switch", **sides)
    cables = Cables(usable=np.ones(2, bool), capacity=np.array(capacity, np.float64), background=none)
    found = cut_bounds(cast(Crossings, flows), groups, cables, above=above)
    assert sorted((bound.value, bound.name) for bound in found) == [(v, "switch-cut") for v in sorted(values)]
    assert flows.above == [above * 1.0]


def directly_connected(capacity: list[list[float]]) -> Fabric:
    """Hosts with a cable from each to each other one, of this capacity."""
    source, target = np.nonzero(~np.eye(len(capacity), dtype=bool))
    names = [f"n{host}" for host in range(len(capacity))]
    return Fabric.from_arcs(names, source, target, np.array(capacity)[source, target])


def by_pairs(fabric: Fabric, profile: Profile, above: float = 0.0) -> float:
    routes = shortest_paths.build(fabric, fabric.hosts)
    slots = np.ones(len(fabric.hosts), np.int32)
    return heavy_pairs(profile, routes, cables(routes, None), slots, above).value


def test_the_three_pairs_of_a_triangle_need_one_cable_each() -> None:
    """8, 6 and 4 bytes at 4, 2 and 1 bytes/s take at least 2, 3 and 4 s, since each has its own cable."""
    fabric = directly_connected([[0, 4, 2], [4, 0, 1], [2, 1, 0]])
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [8.0, 6.0, 4.0])
    assert by_pairs(fabric, profile) == pytest.approx(4.0)
    assert by_pairs(fabric, profile, above=100.0) == 0.0


def test_a_rank_with_two_heavy_partners_needs_a_host_with_two_fast_cables() -> None:
    """The second pair takes a cable with 1 byte/s; the faster of both directions counts."""
    fabric = directly_connected([[0, 9, 1, 1], [9, 0, 1, 1], [1, 1, 0, 3], [1, 1, 9, 0]])
    profile = Profile.from_edges([0, 0], [1, 2], [5.0, 7.0])
    assert by_pairs(fabric, profile) == pytest.approx(5.0)


def test_a_chain_that_no_fast_group_holds_uses_a_slow_path() -> None:
    """Two squares of fast paths, and a chain of five ranks: one of its pairs is not within a square."""
    near = np.full((8, 8), 1.0)
    for first in (0, 4):
        near[first : first + 4, first : first + 4] = 0.1
    np.fill_diagonal(near, 0.0)
    hosts = Distances(name="seconds", group=np.arange(8, dtype=np.int32), between=near)
    slots = np.ones(8, np.int32)
    five = _HeavyPairs(Profile.from_edges([0, 1, 2, 3], [1, 2, 3, 4], [7.0, 6.0, 8.0, 9.0]))
    assert five.groups(hosts, slots) == pytest.approx(6.0)
    assert five.stars(hosts, slots) == pytest.approx(0.9)
    assert five.all_together(hosts, slots) == pytest.approx(0.9)
    four = _HeavyPairs(Profile.from_edges([0, 1, 2], [1, 2, 3], [7.0, 6.0, 8.0]))
    assert four.groups(hosts, slots) == pytest.approx(0.8)


def test_slots_of_one_host_need_no_path() -> None:
    """Two hosts of two slots hold two pairs; the third pair is between them."""
    hosts = Distances(name="seconds", group=np.array([0, 0], np.int32), between=np.array([[2.0]]))
    slots = np.array([2, 2], np.int32)
    pairs = _HeavyPairs(Profile.from_edges([0, 1, 2], [1, 2, 3], [7.0, 5.0, 6.0]))
    assert pairs.all_together(hosts, slots) == pytest.approx(10.0)
    assert pairs.groups(hosts, slots) == pytest.approx(10.0)
    assert pairs.stars(hosts, slots) == pytest.approx(10.0)


@given(profile=profiles(min_ranks=3, max_ranks=5), data=st.data())
def test_no_placement_on_direct_cables_is_below(profile: Profile, data: st.DataObject) -> None:
    number = data.draw(st.integers(profile.ranks, 5))
    speed = st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=number, max_size=number)
    fabric = directly_connected(data.draw(st.lists(speed, min_size=number, max_size=number)))
    allocation = Allocation.of(fabric, fabric.hosts)
    least = least_of_all_placements(shortest_paths.build(fabric, fabric.hosts), profile, allocation)
    assert by_pairs(fabric, profile) <= least["congestion_seconds"] * (1 + 1e-9)


def proved(routes: Routes, profile: Profile, above: float = 0.0) -> Bound:
    slots = routes.fabric.slots[routes.hosts]
    found, near = cables(routes, None), distances(LINKS, routes)
    usable = found.usable & routes.fabric.network_link
    return detours(profile, routes, found, usable, slots, near=near, above=above)


def seconds(routes: Routes, profile: Profile, at: np.ndarray) -> float:
    loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
    return float((loads / routes.fabric.links.capacity).max(initial=0.0))


def on_all(fabric: Fabric, routing: str = "shortest-paths") -> Routes:
    return build_routes(routing, fabric, fabric.hosts)


def test_four_pairs_on_a_cube_meet_it() -> None:
    """Neighbours have one path, which takes 1 s; corners of a face two paths of two links, half a second.

    A time below that allows only opposite corners: 12 links on 24 cables, half a second again.
    """
    routes = on_all(hypercube(3, capacity=1.0))
    profile = Profile.from_edges([0, 2, 4, 6], [1, 3, 5, 7], np.ones(4))
    found = proved(routes, profile)
    assert found.value == pytest.approx(0.5)
    assert found.proof == (
        "detours: faster, pairs with many bytes need several paths, and all bytes times links of the network"
        " are at least 12"
    )
    assert seconds(routes, profile, np.array([0, 3, 1, 4, 6, 5, 7, 2])) == pytest.approx(0.5)
    assert proved(routes, profile, above=0.49).value == pytest.approx(0.5)
    assert proved(routes, profile, above=0.6).value == 0.0


def test_a_pair_that_sends_both_ways_has_its_own_cables_each_way() -> None:
    """The same pairs send back: corners of a face still take half a second, 16 links on 24 cables more."""
    first, second = np.array([0, 2, 4, 6]), np.array([1, 3, 5, 7])
    both = Profile.from_edges(np.r_[first, second], np.r_[second, first], np.ones(8))
    assert proved(on_all(hypercube(3, capacity=1.0)), both).value == pytest.approx(16 / 24)


def test_slots_around_hosts_are_counted_by_links_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte takes the faster of both ways: 1/4 s between the first two, 1/2 s and 1 s.

    Of hosts beyond the nearest ones nothing is known: a byte to them may take no time.
    """
    routes = on_all(directly_connected([[0, 4, 2], [1, 0, 1], [2, 1, 0]]))
    given = routes, cables(routes, None), np.ones(3, np.int32), distances(LINKS, routes), np.arange(3)
    around = module._around(*given)
    np.testing.assert_allclose(around.seconds, [0, 0.25, 0.5, 1])
    np.testing.assert_array_equal(around.slots, [[0, 0, 0, 0], [0, 1, 2, 2]])
    monkeypatch.setattr(module, "NEAREST", 1)
    around = module._around(*given)
    np.testing.assert_array_equal(around.slots[:, [0, -1]], [[0, 0], [1, 2]])


def test_partners_on_the_same_host_need_no_link() -> None:
    routes = on_all(torus((4, 4), capacity=1.0, slots=2))
    first = np.arange(0, 32, 2)
    pairs = Profile.from_edges(first, first + 1, np.ones(16), ranks=32)
    assert proved(routes, pairs).value == 0.0
    ring = Profile.from_edges(np.arange(32), np.roll(np.arange(32), -1), np.ones(32))
    assert proved(routes, ring).value > 0.0


def test_routings_whose_paths_depend_on_load_prove_nothing() -> None:
    fabric, profile = hypercube(3, capacity=1.0), Profile.from_edges([0], [1], [1.0], ranks=8)
    assert proved(on_all(fabric), profile).value > 0.0
    assert proved(on_all(fabric, "least-loaded"), profile).value == 0.0


FABRICS = [torus((6,)), torus((2, 3)), mesh((2, 3)), hypercube(2, slots=2)]


@settings(max_examples=120)
@given(few=st.booleans(), fabric=st.sampled_from(FABRICS), profile=profiles(min_ranks=2, max_ranks=4))
def test_no_placement_goes_below(few: bool, fabric: Fabric, profile: Profile) -> None:
    """Nor do few hosts and values, with all others rounded down, prove too much."""
    routes = on_all(fabric)
    least = least_of_all_placements(routes, profile, Allocation.of(fabric, fabric.hosts))
    with pytest.MonkeyPatch.context() as patch:
        if few:
            patch.setattr(module, "NEAREST", 2)
            patch.setattr(module, "VALUES", 2)
        assert proved(routes, profile).value <= least["network_congestion_seconds"] * (1 + 1e-8)


def dearest(bytes: list[int], allowed: list[int], near: np.ndarray, links: np.ndarray) -> float:
    """The least cost of one rank level by level, over every set of partners that its slots have room for."""
    total = 0.0
    for level in range(len(links) - 1):
        room = [int(near[level, one]) if one >= 0 else 0 for one in allowed]
        most = 0
        for size in range(len(bytes) + 1):
            for chosen in itertools.combinations(range(len(bytes)), size):
                if all(sum(room[x] <= room[y] for x in chosen) <= room[y] for y in chosen):
                    most = max(most, sum(bytes[x] for x in chosen))
        total += (sum(bytes) - most) * (links[level + 1] - links[level]) / 2
    return total


@given(data=st.data())
def test_partners_are_chosen_as_well_as_the_slots_allow(data: st.DataObject) -> None:
    """Heaviest first, each as late as possible, is the best of all sets of partners."""
    count, columns, levels = (data.draw(st.integers(1, 5)) for _ in range(3))
    bytes = sorted(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), reverse=True)
    allowed = data.draw(st.lists(st.integers(-1, columns - 1), min_size=count, max_size=count))
    cells = st.lists(st.integers(0, 2), min_size=columns, max_size=columns)
    table = np.array(data.draw(st.lists(cells, min_size=levels, max_size=levels)), np.int64)
    near = table.cumsum(axis=0).cumsum(axis=1)
    steps = data.draw(st.lists(st.integers(1, 3), min_size=levels - 1, max_size=levels - 1))
    links = np.cumsum([0.0, *steps])
    found = least_hop_bytes(np.array([0, count]), np.array(bytes, np.float64), np.array(allowed), near, links)
    assert found == pytest.approx(dearest(bytes, allowed, near, links))
