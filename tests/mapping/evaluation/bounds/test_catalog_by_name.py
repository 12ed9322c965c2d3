"""Every argument for a lower bound by its name: where it is met, and that nothing goes below it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.generate.patterns import all_to_all
from ingest.generate.tori import torus
from mapping.distances.background import Background
from mapping.evaluation.bounds.catalog import every_bound
from mapping.evaluation.bounds.common_partners import _least
from mapping.evaluation.metrics import link_seconds
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import every_placement
from registry.model import Allocation, Bound, Fabric, Profile
from tests.mapping.evaluation.bounds.test_catalog import check, star
from tests.support.small_fabrics import adapter_fabrics, allocations, cabled, plain_fabrics, profiles


def named(routes: Routes, profile: Profile, allocation: Allocation, metric: str, name: str) -> float:
    """The best of all bounds of that name."""
    found = every_bound(routes, profile, allocation)[metric]
    return max(bound.value for bound in found if bound.name == name)


def host_ring(hosts: int) -> Routes:
    return shortest_paths.build(torus((hosts,)), range(hosts))


def test_bisection_and_total_work_are_met_by_all_to_all_on_a_ring() -> None:
    """Eight on a ring: 32 bytes cross between halves on four links, 128 hops on 16 links; each link has 8."""
    routes, profile = host_ring(8), all_to_all(8)
    allocation = Allocation.of(routes.fabric, routes.hosts.tolist())
    assert routes.link_bytes(profile.sender, profile.partner, profile.bytes).max() == pytest.approx(8.0)
    for name in ("bisection", "total-work"):
        found = named(routes, profile, allocation, "network_congestion_seconds", name)
        assert found == pytest.approx(8.0), name


def test_the_host_cut_is_met_by_all_to_all_on_a_star() -> None:
    routes = shortest_paths.build(star(5), range(5))
    allocation = Allocation.of(routes.fabric, range(5))
    found = named(routes, all_to_all(5), allocation, "congestion_seconds", "host-cut")
    assert found == pytest.approx(4.0)


TREE = "0-8 1-8 2-9 3-9 4-10 5-10 6-11 7-11 8-12 9-12 10-13 11-13 12-14 13-14"
"""Two pods of two leaves of two hosts; a pod's leaves on its own switch, both of those on a core."""


def test_pod_switch_and_nested_cuts_are_met_by_all_to_all_on_a_tree() -> None:
    """16 of 56 ordered pairs cross each way between pods, 24 out of a leaf's three others each 12."""
    fabric = cabled(TREE, 8, [9] * 8 + [3] * 4 + [1] * 2)
    routes, profile = shortest_paths.build(fabric, range(8)), all_to_all(8)
    allocation = Allocation.of(routes.fabric, range(8))
    loads = routes.link_bytes(profile.sender, profile.partner, profile.bytes)
    metric = "network_congestion_seconds"
    assert named(routes, profile, allocation, metric, "pod-cut") == pytest.approx(16.0)
    assert named(routes, profile, allocation, metric, "switch-cut") == pytest.approx(12.0 / 3)
    assert named(routes, profile, allocation, "hop_bytes", "nested-cuts") == pytest.approx(loads.sum())


def test_links_that_no_way_takes_do_not_weaken_a_cut() -> None:
    """Three leaves all joined; the allocation's two are joined by one cable, the others lead elsewhere."""
    fabric = cabled("0-4 1-4 2-5 3-5 4-5 4-6 5-6", 4)
    routes, allocation = shortest_paths.build(fabric, range(4)), Allocation.of(fabric, range(4))
    found = named(routes, all_to_all(4), allocation, "network_congestion_seconds", "switch-cut")
    assert found == pytest.approx(4.0)


ROUTINGS = [
    "shortest-paths",
    "ecmp:seed=3",
    "ecmp:paths=2",
    "least-loaded",
    "valiant",
    "ugal:share=0.3",
    "up-down",
]


@settings(max_examples=180)
@given(routing=st.sampled_from(ROUTINGS), fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_goes_below_a_bound_whatever_the_routing(
    routing: str, fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    check(build_routes(routing, fabric, allocation.hosts), profile, allocation)


@settings(max_examples=100)
@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), profile=profiles(), data=st.data())
def test_no_placement_goes_below_a_bound_beside_other_jobs(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    m = len(fabric.links)
    load = np.array(data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m)), np.float64)
    background = Background(kind=data.draw(st.sampled_from(["added", "reduced"])), load=load)
    routes = shortest_paths.build(fabric, allocation.hosts)
    if not routes.connected:
        return
    bounds, inside = every_bound(routes, profile, allocation, background=background), fabric.network_link
    for placed in every_placement(range(len(allocation)), allocation.slots.tolist(), profile.ranks):
        at = np.array(placed)
        loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
        seconds = link_seconds(fabric, loads, background)
        for metric, rows in (("congestion_seconds", slice(None)), ("network_congestion_seconds", inside)):
            for bound in bounds[metric]:
                worst = seconds[rows].max(initial=0.0)
                assert bound.value <= worst * (1 + 1e-9), (bound.name, bound.proof)


def test_bytes_that_are_there_already_raise_a_bound() -> None:
    profile = Profile.from_edges([0, 0, 1], [1, 2, 2], [3.0, 4.0, 1.0])
    routes = shortest_paths.build(star(3), range(3))
    allocation = Allocation.of(routes.fabric, range(3))
    there = Background(kind="added", load=np.full(6, 10.0))
    every = [every_bound(routes, profile, allocation, background=one) for one in (None, there)]
    alone, beside = (
        max(bound.value for bound in one["congestion_seconds"] if bound.name == "total-work") for one in every
    )
    assert beside == pytest.approx(alone + 10.0)


def test_how_far_from_the_best_is_certified_by_an_argument() -> None:
    bound = Bound(value=2.0, proof="because", name="injection")
    assert bound.certifies(3.0) == "at most 1.5 times the best possible, certified by injection"
    assert bound.certifies(2.0) == "at most 1 times the best possible, certified by injection"
    assert Bound(value=0.0, proof="none").certifies(3.0) == "nothing is certified"
    assert Bound(value=0.0, proof="none").certifies(0.0) == "the best possible"


@pytest.mark.parametrize(("hosts", "slots", "alone", "together"), [(6, 1, 6.0, 8.0), (4, 2, 3.0, 4.0)])
def test_three_ranks_that_all_talk_cannot_all_be_neighbours(
    hosts: int, slots: int, alone: float, together: float
) -> None:
    """On an even ring a triangle takes 4 hops each way; each rank's two nearest hosts are one hop away: 3.

    With two slots on a host two ranks are on one, the third is one hop from both; each alone has a partner
    beside it.
    """
    routes, profile = host_ring(hosts), all_to_all(3)
    allocation = Allocation.of(routes.fabric, routes.hosts.tolist(), slots)
    assert named(routes, profile, allocation, "hop_bytes", "gilmore-lawler") == pytest.approx(alone)
    found = named(routes, profile, allocation, "hop_bytes", "common-partners")
    assert found == pytest.approx(together, rel=1e-3)


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
