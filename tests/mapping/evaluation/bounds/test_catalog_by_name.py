"""Every argument for a lower bound by its name: where it is met, and that nothing goes below it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from tests.support.small_fabrics import adapter_fabrics, allocations, plain_fabrics, profiles


def named(routes: Routes, profile: Profile, allocation: Allocation, metric: str, name: str) -> float:
    """The best of all bounds of that name."""
    found = every_bound(routes, profile, allocation)[metric]
    return max(bound.value for bound in found if bound.name == name)


def all_to_all(ranks: int) -> Profile:
    source, target = np.nonzero(~np.eye(ranks, dtype=bool))
    return Profile.from_edges(source, target, np.ones(len(source)))


def host_ring(hosts: int) -> Routes:
    at = np.arange(hosts)
    after = (at + 1) % hosts
    fabric = Fabric.from_arcs([f"n{i:02}" for i in at], np.r_[at, after], np.r_[after, at], 1.0)
    return shortest_paths.build(fabric, at)


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


def tree() -> Fabric:
    """Two pods of two leaves of two hosts; a pod's leaves on its own switch, both of those on a core."""
    below = [*range(8), 8, 9, 10, 11, 12, 13]
    above = [8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14]
    capacity = np.r_[np.full(8, 9.0), np.full(4, 3.0), np.full(2, 1.0)]
    return Fabric.from_arcs(
        [f"v{v:02}" for v in range(15)],
        below + above,
        above + below,
        np.r_[capacity, capacity],
        slots=[1] * 8 + [0] * 7,
        forwards=False,
    )


def test_pod_switch_and_nested_cuts_are_met_by_all_to_all_on_a_tree() -> None:
    """16 of 56 ordered pairs cross each way between pods, 24 out of a leaf's three others each 12."""
    routes, profile = shortest_paths.build(tree(), range(8)), all_to_all(8)
    allocation = Allocation.of(routes.fabric, range(8))
    loads = routes.link_bytes(profile.sender, profile.partner, profile.bytes)
    metric = "network_congestion_seconds"
    assert named(routes, profile, allocation, metric, "pod-cut") == pytest.approx(16.0)
    assert named(routes, profile, allocation, metric, "switch-cut") == pytest.approx(12.0 / 3)
    assert named(routes, profile, allocation, "hop_bytes", "nested-cuts") == pytest.approx(loads.sum())


def test_links_that_no_way_takes_do_not_weaken_a_cut() -> None:
    """Three leaves all joined; the allocation's two are joined by one cable, the others lead elsewhere."""
    a, b = [0, 1, 2, 3, 4, 4, 5], [4, 4, 5, 5, 5, 6, 6]
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(7)], a + b, b + a, 1.0, slots=[1] * 4 + [0] * 3, forwards=False
    )
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


@pytest.mark.parametrize("routing", ROUTINGS)
@given(fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_goes_below_a_bound_whatever_the_routing(
    routing: str, fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    check(build_routes(routing, fabric, allocation.hosts), profile, allocation)


@pytest.mark.parametrize("kind", ["added", "reduced"])
@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), profile=profiles(), data=st.data())
def test_no_placement_goes_below_a_bound_beside_other_jobs(
    kind: str, fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    m = len(fabric.links)
    load = np.array(data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m)), np.float64)
    background = Background(kind=kind, load=load)
    routes = shortest_paths.build(fabric, allocation.hosts)
    if not routes.connected:
        return
    bounds = every_bound(routes, profile, allocation, background=background)
    for placed in every_placement(range(len(allocation)), allocation.slots.tolist(), profile.ranks):
        at = np.array(placed)
        loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
        seconds = link_seconds(fabric, loads, background)
        for bound in bounds["congestion_seconds"]:
            assert bound.value <= seconds.max() * (1 + 1e-9), (bound.name, bound.proof)
        for bound in bounds["network_congestion_seconds"]:
            worst = seconds[fabric.network_link].max(initial=0.0)
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


def test_how_far_from_the_best_is_said_with_the_arguments_name() -> None:
    bound = Bound(value=2.0, proof="because", name="injection")
    assert bound.certifies(3.0) == "at most 1.5 times the best possible, certified by injection"
    assert bound.certifies(2.0) == "at most 1 times the best possible, certified by injection"
    assert Bound(value=0.0, proof="none").certifies(3.0) == "nothing is certified"
    assert Bound(value=0.0, proof="none").certifies(0.0) == "the best possible"


def test_three_ranks_that_all_talk_cannot_all_be_neighbours_on_an_even_ring() -> None:
    """A triangle takes 4 hops each way; each rank's two nearest hosts are one hop away: 3."""
    routes, profile = host_ring(6), all_to_all(3)
    allocation = Allocation.of(routes.fabric, routes.hosts.tolist())
    assert named(routes, profile, allocation, "hop_bytes", "gilmore-lawler") == pytest.approx(6.0)
    assert named(routes, profile, allocation, "hop_bytes", "common-partners") == pytest.approx(8.0, rel=1e-3)


def test_three_ranks_that_all_talk_are_not_on_one_host_of_two_slots() -> None:
    """Two are on one host, the third is one hop from both: 4 in all; each alone has a partner beside it."""
    routes, profile = host_ring(4), all_to_all(3)
    allocation = Allocation.of(routes.fabric, routes.hosts.tolist(), 2)
    assert named(routes, profile, allocation, "hop_bytes", "gilmore-lawler") == pytest.approx(3.0)
    assert named(routes, profile, allocation, "hop_bytes", "common-partners") == pytest.approx(4.0, rel=1e-3)


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


@given(profile=profiles(min_ranks=3, max_ranks=5), data=st.data())
def test_no_placement_on_a_small_torus_goes_below_a_bound(profile: Profile, data: st.DataObject) -> None:
    links = {(a, b) for a in range(6) for b in (a ^ 1, (a + 2) % 6, (a - 2) % 6)}
    fabric = Fabric.from_arcs(
        [f"n{v}" for v in range(6)], [a for a, _ in sorted(links)], [b for _, b in sorted(links)], 1.0
    )
    hosts = data.draw(st.sampled_from([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]]))
    check(shortest_paths.build(fabric, hosts), profile, Allocation.of(fabric, hosts))
