"""Lower bounds: no placement goes below them, and some meet them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.distances import LINKS, Distances, distances
from mapping.evaluation.bounds.catalog import BOUNDS, METRICS, every_bound, lower_bounds
from mapping.evaluation.bounds.hop_bytes import least_assignment, least_cost
from mapping.evaluation.bounds.partition import Crossings
from mapping.routing import forwarding_tables, shortest_paths
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import every_placement
from registry.errors import DisconnectedAllocation, InfeasibleAllocation
from registry.model import Allocation, Fabric, Profile
from tests.support.infiniband_data import infiniband
from tests.support.search_problems import ring
from tests.support.small_fabrics import adapter_fabrics, allocations, plain_fabrics, profiles, table_fabrics


def least_of_all_placements(routes: Routes, profile: Profile, allocation: Allocation) -> dict[str, float]:
    """Each metric at its best over every placement, by brute force."""
    fabric, least = routes.fabric, dict.fromkeys(METRICS, np.inf)
    for placed in every_placement(range(len(allocation)), allocation.slots.tolist(), profile.ranks):
        at = np.array(placed)
        loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
        seconds = loads / fabric.links.capacity
        found = {
            "congestion_seconds": seconds.max(initial=0.0),
            "network_congestion_seconds": seconds[fabric.network_link].max(initial=0.0),
            "hop_bytes": loads.sum(),
        }
        least = {name: min(value, float(found[name])) for name, value in least.items()}
    return least


def check(routes: Routes, profile: Profile, allocation: Allocation) -> None:
    best = lower_bounds(routes, profile, allocation)
    every = every_bound(routes, profile, allocation)
    for name, least in least_of_all_placements(routes, profile, allocation).items():
        assert best[name].value <= least, best[name].proof
        for bound in every[name]:
            assert bound.value <= least * (1 + 1e-9), (bound.name, bound.proof)
            assert bound.name in (*BOUNDS.names, "one-host")


@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), profile=profiles(), data=st.data())
def test_no_placement_on_shortest_paths_goes_below_a_bound(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    rails = data.draw(st.sampled_from(["all-connected", "same-rail"]))
    routes = shortest_paths.build(fabric, allocation.hosts, rails=rails)
    if routes.connected:
        check(routes, profile, allocation)
    else:
        with pytest.raises(DisconnectedAllocation):
            lower_bounds(routes, profile, allocation)


@given(fabric=table_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_on_tables_goes_below_a_bound(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    check(forwarding_tables.build(fabric, allocation.hosts), profile, allocation)


def star(leaves: int, *, speed: float = 1.0, slow: float | None = None) -> Fabric:
    """Hosts on one switch; the last host's cables may be slower."""
    hosts = np.arange(leaves)
    capacity = np.full(leaves, speed)
    capacity[-1] = speed if slow is None else slow
    return Fabric.from_arcs(
        [f"h{i}" for i in hosts] + ["switch"],
        np.r_[hosts, np.full(leaves, leaves)],
        np.r_[np.full(leaves, leaves), hosts],
        np.r_[capacity, capacity],
        slots=np.r_[np.ones(leaves, int), 0],
        forwards=False,
    )


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


def test_ejection_counts_where_more_is_received_than_sent() -> None:
    profile = Profile.from_edges([1, 2], [0, 0], [3.0, 4.0])
    assert bounds_on(star(3), profile)["congestion_seconds"] == pytest.approx(7.0)


def test_the_slow_host_gets_the_lightest_rank() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [8.0, 8.0, 4.0])
    assert bounds_on(star(3, slow=0.1), profile)["congestion_seconds"] == pytest.approx(80.0)
    assert bounds_on(star(4, slow=0.1), profile)["congestion_seconds"] == pytest.approx(8.0)


def test_a_slot_takes_the_heaviest_partner_off_the_cable() -> None:
    ring = Profile.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [5.0, 1.0, 5.0, 1.0])
    assert bounds_on(star(2), ring, slots=2)["hop_bytes"] == pytest.approx(2 * 2.0)
    both = Profile.from_edges([0, 0, 1, 2], [1, 2, 2, 3], [5.0, 3.0, 1.0, 9.0])
    assert bounds_on(star(2), both, slots=2)["congestion_seconds"] >= 2.99


def test_all_ranks_on_one_host_need_no_cable() -> None:
    profile = Profile.from_edges([0, 1], [1, 0], [5.0, 5.0])
    assert bounds_on(star(2), profile, slots=2) == {
        "congestion_seconds": 0.0,
        "network_congestion_seconds": 0.0,
        "hop_bytes": 0.0,
    }


def test_unequal_rails_bound_by_the_slower_one() -> None:
    fabric = infiniband("mixed-speeds-oversubscribed")
    host = int(np.flatnonzero(np.bincount(fabric.adapters.host[fabric.adapters.port_adapter]) > 1)[0])
    others = [v for v in fabric.hosts.tolist() if v != host][:2]
    allocation = Allocation.of(fabric, [host, *others])
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [1e9, 1e9, 1e9])
    check(forwarding_tables.build(fabric, allocation.hosts), profile, allocation)


def gilmore_lawler(profile: Profile, distances: Distances) -> float:
    """The bound with one slot per host."""
    return least_assignment(Crossings(profile).partners.both, distances, np.ones(profile.ranks, np.int32))


def test_gilmore_lawler_is_met_by_a_ring_on_a_ring() -> None:
    ring = np.arange(8)
    around = np.minimum((ring[:, None] - ring) % 8, (ring - ring[:, None]) % 8).astype(np.float64)
    profile = Profile.from_edges(ring, (ring + 1) % 8, np.full(8, 2.0))
    assert gilmore_lawler(profile, each_alone(around)) == pytest.approx(16.0)


def each_alone(matrix: np.ndarray) -> Distances:
    return Distances(name="links", group=np.arange(len(matrix), dtype=np.int32), between=matrix)


def test_gilmore_lawler_without_assignment_is_the_weaker_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points = rng.random((9, 2))
    distances = each_alone(np.abs(points[:, None] - points).sum(axis=2))
    edges = rng.integers(0, 9, (30, 2))
    profile = Profile.from_edges(edges[:, 0], edges[:, 1], rng.random(30), ranks=9)
    strong = gilmore_lawler(profile, distances)
    monkeypatch.setattr("mapping.evaluation.bounds.hop_bytes.MAX_ASSIGNMENT", 0)
    assert gilmore_lawler(profile, distances) < strong


@pytest.mark.parametrize(
    "limit",
    [
        "hop_bytes.MAX_GROUPS",
        "hop_bytes.MAX_LEVELS",
        "partition.MAX_EIGEN_RANKS",
        "hop_bytes.MAX_TABLE",
        "cables.MAX_PAIRS",
        "network_parts.MAX_CLIQUE_WORK",
    ],
)
@given(fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_bounds_hold_where_there_is_no_room_for_the_better_ones(
    limit: str, fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            f"mapping.evaluation.bounds.{limit}", {"TABLE": 5, "LEVELS": 2}.get(limit.split("_")[-1], 0)
        )
        patch.setattr("mapping.evaluation.bounds.hop_bytes.MAX_ASSIGNMENT", 0)
        check(shortest_paths.build(fabric, allocation.hosts), profile, allocation)


def test_leaf_switches_are_cut_by_eigenvalues() -> None:
    """Six ranks that all talk, on two leaves of three hosts: nine pairs must cross, each way."""
    leaf = [6, 6, 6, 7, 7, 7]
    a, b = [*range(6), 6], [*leaf, 7]
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(8)], a + b, b + a, 1.0, slots=[1] * 6 + [0] * 2, forwards=False
    )
    source, target = np.nonzero(~np.eye(6, dtype=bool))
    profile = Profile.from_edges(source, target, np.ones(30))
    found = bounds_on(fabric, profile)
    assert found["network_congestion_seconds"] == pytest.approx(9.0)
    assert found["hop_bytes"] == pytest.approx(12 * 2 + 18 * 3)


def test_more_ranks_than_slots_are_refused() -> None:
    profile = Profile.from_edges([0], [3], [1.0])
    with pytest.raises(InfeasibleAllocation):
        bounds_on(star(3), profile)


@given(fabric=st.one_of(plain_fabrics(), adapter_fabrics()), profile=profiles(), data=st.data())
def test_distances_of_whole_numbers_give_the_same_bounds_as_their_matrix(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    routes = shortest_paths.build(fabric, allocation.hosts)
    if not routes.connected:
        return
    near = distances(LINKS, routes)
    plain = Distances(name=LINKS, group=near.group, between=near.between)
    crossings = Crossings(profile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mapping.evaluation.bounds.hop_bytes.MAX_GROUPS", data.draw(st.sampled_from([0, 4096])))
        for one, other in zip(
            least_cost(crossings, near, allocation.slots),
            least_cost(crossings, plain, allocation.slots),
            strict=True,
        ):
            assert one.value == pytest.approx(other.value), one.proof


@pytest.mark.parametrize(
    ("limit", "left_out"),
    [
        (
            "network_parts.MAX_BISECTED_ARCS",
            "not tried: bisection of parts of 2 and of 4: 8 arcs, more than 0",
        ),
        (
            "network_parts.MAX_CLIQUE_WORK",
            "not tried: pod-cut of densely cabled parts: 16 pairs of arcs, more than 0",
        ),
        ("network_parts.MAX_GROUPS", "not tried: pod-cut of pods: 4 kinds of hosts, more than 0"),
    ],
)
def test_a_cut_that_is_left_out_for_size_is_named_with_the_reason(
    limit: str, left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"mapping.evaluation.bounds.{limit}", 0)
    fabric, profile, allocation = ring(4, 4)
    found = lower_bounds(shortest_paths.build(fabric, allocation.hosts), profile, allocation)
    assert left_out in found["congestion_seconds"].proof
    assert left_out in found["network_congestion_seconds"].proof
    assert "not tried" not in found["hop_bytes"].proof
