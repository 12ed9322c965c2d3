"""Cores within a host: heavy partners in one NUMA domain, ranks that leave the host near the adapter."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.hosts.hwloc_xml import read_layout
from mapping.placement.partition.cores import bind_within_hosts, numa_bytes
from registry.errors import InvalidPlacement
from registry.model import Allocation, Fabric, Placement, Profile
from registry.model.host_layout import HostLayout
from tests.support.inputs import file, read
from tests.support.small_fabrics import profiles


def layout(domains: list[int], *, near: list[bool] | None = None, far: float = 20.0) -> HostLayout:
    """Cores in these domains; one fabric adapter near some of them, or none."""
    d = max(domains) + 1
    return HostLayout(
        core_domain=np.array(domains),
        core_cpu=np.arange(len(domains), dtype=np.int32),
        domain_node=np.arange(d, dtype=np.int32),
        distance=np.where(np.eye(d, dtype=bool), 10.0, far),
        nic_name=() if near is None else ("mlx5_0",),
        nic_fabric=np.array([] if near is None else [True], np.bool_),
        nic_guid=np.zeros(0 if near is None else 1, np.uint64),
        nic_near=np.array([] if near is None else [near], np.bool_).reshape(-1, d),
    )


def placed(hosts: list[int], *, slots: int = 8) -> Placement:
    """Ranks on hosts of a fabric of three."""
    fabric = Fabric.from_arcs(
        list("abcs"), [0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2], 1.0, slots=[slots] * 3 + [0]
    )
    return Placement(
        host_of_rank=np.array(hosts), allocation=Allocation.of(fabric, list("abc"), slots), strategy="given"
    )


def test_heavy_partners_share_a_domain() -> None:
    pairs = Profile.from_edges([0, 1, 2, 3], [2, 3, 0, 1], [5.0] * 4)
    host = layout([0, 0, 1, 1])
    slot = bind_within_hosts(pairs, placed([0] * 4), {0: host})
    assert slot.dtype == np.int32
    assert sorted(slot.tolist()) == [0, 1, 2, 3]
    domain = host.core_domain[slot]
    assert domain[0] == domain[2] != domain[1] == domain[3]


def test_ranks_with_most_bytes_to_other_hosts_are_near_the_adapter() -> None:
    # 0 to 3 on one host; 2 and 3 talk to rank 4 elsewhere.
    profile = Profile.from_edges([2, 4, 0], [4, 3, 1], [9.0, 7.0, 1.0])
    host = layout([0, 0, 1, 1, 2, 2], near=[False, True, False])
    slot = bind_within_hosts(profile, placed([0, 0, 0, 0, 1]), {0: host})
    assert host.core_domain[slot[[2, 3]]].tolist() == [1, 1]
    assert host.core_domain[slot[0]] == host.core_domain[slot[1]]


def test_ethernet_beside_a_fabric_adapter_does_not_draw_ranks() -> None:
    described = read_layout(file(read("hwloc/two_rails_v2.xml")))
    profile = Profile.from_edges([0, 1], [2, 2], [4.0, 4.0])
    slot = bind_within_hosts(profile, placed([0, 0, 1]), {0: described})
    # InfiniBand is on the second and third domain, Ethernet on all.
    assert set(described.core_domain[slot[:2]].tolist()) <= {1, 2}


def test_a_host_without_a_layout_keeps_its_slots() -> None:
    placement = placed([0, 1, 0, 1])
    profile = Profile.from_edges([0], [2], [1.0], ranks=4)
    assert bind_within_hosts(profile, placement, {}).tolist() == placement.slot_of_rank.tolist()


def test_ranks_in_order_stay_where_nothing_is_gained() -> None:
    profile = Profile.from_edges([0, 2], [1, 3], [1.0, 1.0])
    assert bind_within_hosts(profile, placed([0] * 4), {0: layout([0, 0, 1, 1])}).tolist() == [0, 1, 2, 3]


def test_more_ranks_than_cores_are_refused() -> None:
    profile = Profile.from_edges([0], [1], [1.0], ranks=3)
    with pytest.raises(InvalidPlacement, match="3 ranks on vertex 0"):
        bind_within_hosts(profile, placed([0] * 3), {0: layout([0, 1])})
    with pytest.raises(InvalidPlacement, match="4 ranks"):
        bind_within_hosts(profile, placed([0] * 4), {})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Profile, Placement, dict[int, HostLayout]]:
    """Up to eight ranks on up to three hosts, some of them with a layout."""
    profile = draw(profiles(max_ranks=8))
    hosts = draw(st.lists(st.integers(0, 2), min_size=profile.ranks, max_size=profile.ranks))
    layouts = {}
    for vertex in draw(st.sets(st.integers(0, 2))):
        d = draw(st.integers(1, 3))
        extra = draw(st.lists(st.integers(0, d - 1), min_size=8, max_size=9))
        near = draw(st.none() | st.lists(st.booleans(), min_size=d, max_size=d))
        layouts[vertex] = layout(
            sorted([*range(d), *extra]), near=near, far=draw(st.sampled_from([12.0, 31.0]))
        )
    return profile, placed(hosts), layouts


def slow_cost(
    profile: Profile, placement: Placement, layouts: dict[int, HostLayout], slot: list[int]
) -> float:
    """Bytes times relative distance, edge by edge."""
    total = 0.0
    for a, b, size in zip(profile.sender, profile.partner, profile.bytes, strict=True):
        here, there = int(placement.host_of_rank[a]), int(placement.host_of_rank[b])
        if here == there:
            if here in layouts:
                host = layouts[here]
                total += size * host.distance[host.core_domain[slot[a]], host.core_domain[slot[b]]] / 10.0
            continue
        for rank, vertex in ((a, here), (b, there)):
            if vertex in layouts and layouts[vertex].nic_near.any():
                host = layouts[vertex]
                row = host.distance[host.core_domain[slot[rank]]]
                total += size * row[host.nic_near[0]].min() / 10.0
    return total


@settings(deadline=None)
@given(case=cases())
def test_slots_are_distinct_cores_and_never_cost_more_than_in_order(
    case: tuple[Profile, Placement, dict[int, HostLayout]],
) -> None:
    profile, placement, layouts = case
    slot = bind_within_hosts(profile, placement, layouts)
    for vertex in range(3):
        own = slot[placement.host_of_rank == vertex]
        assert len(np.unique(own)) == len(own)
        assert vertex not in layouts or not len(own) or own.max() < layouts[vertex].cores
    before = placement.slot_of_rank
    assert numa_bytes(profile, placement, layouts, slot) <= numa_bytes(profile, placement, layouts, before)
    assert slot.tobytes() == bind_within_hosts(profile, placement, layouts).tobytes()


@settings(deadline=None)
@given(case=cases())
def test_the_cost_is_bytes_times_distance_edge_by_edge(
    case: tuple[Profile, Placement, dict[int, HostLayout]],
) -> None:
    profile, placement, layouts = case
    slot = bind_within_hosts(profile, placement, layouts)
    wanted = slow_cost(profile, placement, layouts, slot.tolist())
    assert numa_bytes(profile, placement, layouts, slot) == pytest.approx(wanted)


def test_small_hosts_are_close_to_the_best_of_all_assignments() -> None:
    found, best = 0.0, 0.0
    host = layout([0, 0, 1, 1, 2, 2], near=[False, False, True])
    for seed in range(30):
        rng = np.random.default_rng(seed)
        source, target = rng.integers(0, 7, (2, 16))
        profile = Profile.from_edges(source, target, rng.integers(1, 9, 16), ranks=7)
        placement = placed([0] * 6 + [1])
        slot = bind_within_hosts(profile, placement, {0: host})
        value = numa_bytes(profile, placement, {0: host}, slot)
        every = [slow_cost(profile, placement, {0: host}, [*p, 0]) for p in permutations(range(6))]
        assert value >= min(every) - 1e-9
        found, best = found + value, best + min(every)
    assert found <= 1.03 * best
