"""Cores of ranks: heavy partners in one NUMA domain, others near the adapter; carried to launchers' files."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.formats.hosts.hwloc_xml import read_layout
from ingest.formats.placements import hostfile, placement_csv
from ingest.formats.placements import openmpi_rankfile as rankfile
from ingest.options import Options
from mapping.evaluation.report import report_placement
from mapping.launchers.catalog import FORMATS, write
from mapping.placement.case import PlacementCase
from mapping.placement.partition.cores import ALL, bind_cores, bind_within_hosts, layouts_on, numa_bytes
from mapping.placement.search.options import SearchOptions
from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Placement, Profile
from registry.model.host_layout import HostLayout
from tests.support.inputs import file, read
from tests.support.small_fabrics import given_placement, profiles
from tests.support.sure import sure

READERS: dict[str, Parser] = {"csv": placement_csv, "openmpi-rankfile": rankfile}
READERS["mpich-machinefile"] = hostfile
FABRIC = Fabric.from_arcs(list("abcs"), [0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2], 1.0, slots=[8, 8, 8, 0])
EACH = Allocation.of(FABRIC, list("abc"), 8)
PAIRS = Profile.from_edges([0, 1, 2, 3, 4], [2, 3, 0, 1, 5], [5.0, 5.0, 5.0, 5.0, 1.0])
"""Ranks 0 and 2, 1 and 3 communicate; 4 and 5 do."""


def layout(
    domains: list[int], *, cpus: list[int] | None = None, near: list[bool] | None = None, far: float = 20.0
) -> HostLayout:
    """Cores in these domains; one fabric adapter near some of them, or none."""
    d = max(domains) + 1
    return HostLayout(
        core_domain=np.array(domains),
        core_cpu=np.arange(len(domains), dtype=np.int32) if cpus is None else np.array(cpus),
        domain_node=np.arange(d, dtype=np.int32),
        distance=np.where(np.eye(d, dtype=bool), 10.0, far),
        nic_name=() if near is None else ("mlx5_0",),
        nic_fabric=np.array([] if near is None else [True], np.bool_),
        nic_guid=np.zeros(0 if near is None else 1, np.uint64),
        nic_near=np.array([] if near is None else [near], np.bool_).reshape(-1, d),
    )


RANKFILE = "rank 0=b slot=2\nrank 1=a slot=0\nrank 2=b slot=0\nrank 3=b slot=1\nrank 4=a slot=1\n"
SPLIT = layout([0, 0, 1, 1], cpus=[0, 2, 1, 3])
"""Two domains of two cores, whose CPUs alternate."""


def placed(hosts: list[int]) -> Placement:
    return given_placement(EACH, hosts)


def test_cores_and_their_cpus_are_carried_and_what_crosses_is_counted() -> None:
    found, cores = bind_cores(PAIRS, placed([0, 0, 0, 0, 1, 1]), {0: SPLIT})
    core, cpu = sure(found.core_of_rank), sure(found.cpu_of_rank)
    domain = SPLIT.core_domain[core[:4]]
    assert domain[0] == domain[2] != domain[1] == domain[3]
    np.testing.assert_array_equal(cpu[:4], SPLIT.core_cpu[core[:4]])
    assert (core[4:].tolist(), cpu[4:].tolist()) == ([0, 1], [-1, -1])
    assert (cores.hosts, cores.without_layout) == (2, 1)
    assert (cores.crossing_bytes_in_order, cores.crossing_bytes) == (20.0, 0.0)
    assert (cores.weighted_bytes_in_order, cores.weighted_bytes) == (40.0, 20.0)


def test_layouts_go_by_host_name_with_one_for_all_others() -> None:
    other = layout([0])
    allocation = Allocation.of(FABRIC, ["a", "b"], 8)
    assert layouts_on(FABRIC, allocation, {ALL: SPLIT, "b.cluster.example": other}) == {0: SPLIT, 1: other}
    assert layouts_on(FABRIC, allocation, {"a": SPLIT, "c": other}) == {0: SPLIT}
    with pytest.raises(UnknownName, match="HOST=FILE"):
        layouts_on(FABRIC, allocation, {"d": SPLIT})


def test_a_report_has_cores_if_layouts_are_known() -> None:
    options = SearchOptions(objective="hop-bytes", strategies=("in-order",), steps=1)
    four = Allocation.of(FABRIC, list("abc"), 4)
    case = PlacementCase(profile=PAIRS, fabric=FABRIC, allocation=four, options=options, layouts={ALL: SPLIT})
    found = report_placement(case)
    assert sure(found.cores).crossing_bytes == 0.0
    assert found.placement.core_of_rank is not None
    without = report_placement(replace(case, layouts={}))
    assert (without.cores, without.placement.core_of_rank) == (None, None)


def test_an_unknown_host_of_a_layout_is_reported_before_the_search() -> None:
    options = SearchOptions(seconds=1e9)
    case = PlacementCase(profile=PAIRS, fabric=FABRIC, allocation=EACH, options=options, layouts={"d": SPLIT})
    with pytest.raises(UnknownName, match="'d'"):
        report_placement(case)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "rank,host,slot,core,cpu\n0,b,0,2,1\n1,a,0,,\n2,b,1,0,0\n3,b,2,1,2\n4,a,1,,\n"),
        ("openmpi-rankfile", RANKFILE),
        ("mpich-machinefile", "b:1 binding=user:1\na:1\nb:2 binding=user:0,2\na:1\n"),
        ("slurm-hostfile", "b\na\nb\nb\na\n"),
    ],
)
def test_files_of_a_placement_bind_cores(format: str, text: str) -> None:
    cores, cpus = np.array([2, 0, 0, 1, 1], np.int32), np.array([1, -1, 0, 2, -1], np.int32)
    found = replace(placed([1, 0, 1, 1, 0]), core_of_rank=cores, cpu_of_rank=cpus)
    assert write(format, found, FABRIC) == text
    if FORMATS.find(format).cores:
        read = sure(READERS[format].parse([file(text)], Options()).placements[0])
        assert read.hosts == ("b", "a", "b", "b", "a")


def test_cores_that_do_not_fit_are_refused() -> None:
    two = np.zeros(2, np.int32)
    with pytest.raises(InvalidPlacement, match="one core"):
        replace(placed([0, 0]), core_of_rank=two, cpu_of_rank=two)
    assert replace(placed([0, 1]), core_of_rank=two, cpu_of_rank=two).ranks == 2
    with pytest.raises(InvalidValue, match="must be given together with"):
        replace(placed([0, 1]), core_of_rank=two)
    with pytest.raises(InvalidValue, match=r"Placement\.core_of_rank"):
        replace(placed([0, 1]), core_of_rank=two - 1, cpu_of_rank=two)


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


def test_ranks_keep_their_slots_without_a_layout_and_where_nothing_is_gained() -> None:
    placement = placed([0, 1, 0, 1])
    profile = Profile.from_edges([0], [2], [1.0], ranks=4)
    assert bind_within_hosts(profile, placement, {}).tolist() == placement.slot_of_rank.tolist()
    pairs = Profile.from_edges([0, 2], [1, 3], [1.0, 1.0])
    assert bind_within_hosts(pairs, placed([0] * 4), {0: layout([0, 0, 1, 1])}).tolist() == [0, 1, 2, 3]


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
        far = draw(st.sampled_from([12.0, 31.0]))
        layouts[vertex] = layout(sorted([*range(d), *extra]), near=near, far=far)
    return profile, placed(hosts), layouts


def slow_cost(
    profile: Profile, placement: Placement, layouts: dict[int, HostLayout], slot: list[int]
) -> float:
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


@given(case=cases())
def test_slots_are_distinct_cores_whose_cost_is_exact_and_never_above_that_in_order(
    case: tuple[Profile, Placement, dict[int, HostLayout]],
) -> None:
    profile, placement, layouts = case
    slot = bind_within_hosts(profile, placement, layouts)
    for vertex in range(3):
        own = slot[placement.host_of_rank == vertex]
        assert len(np.unique(own)) == len(own)
        assert vertex not in layouts or not len(own) or own.max() < layouts[vertex].cores
    cost, before = (numa_bytes(profile, placement, layouts, one) for one in (slot, placement.slot_of_rank))
    assert cost <= before
    assert cost == pytest.approx(slow_cost(profile, placement, layouts, slot.tolist()))
    assert slot.tobytes() == bind_within_hosts(profile, placement, layouts).tobytes()


def test_small_hosts_are_close_to_the_best_of_all_assignments() -> None:
    found, best = 0.0, 0.0
    host = layout([0, 0, 1, 1, 2, 2], near=[False, False, True])
    for seed in range(12):
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
