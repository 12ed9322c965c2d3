"""Bisection, hierarchies of hosts, groups of ranks of exact sizes; and cores of ranks on each host."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from ingest.formats.hwloc_xml import read_layout
from ingest.formats.placements import HOSTFILE, OPENMPI_RANKFILE, PLACEMENT_CSV
from ingest.generate.stencils import shuffled, stencil
from ingest.options import Options
from ingest.parsed import Format
from mapping.cost.report import report_placement
from mapping.launchers import FORMATS, write
from mapping.placement.case import PlacementCase
from mapping.placement.kernels.multicore import Groups, repair, swap_pass
from mapping.placement.kernels.pair_gain import partners
from mapping.placement.methods import bisection, greedy, multicore
from mapping.placement.methods import bisection as levels
from mapping.placement.methods import multicore as grouping
from mapping.placement.methods.baselines import place_in_order
from mapping.placement.methods.bisection import (
    Branch,
    bisect,
    factors,
    hierarchy,
    levels_of,
    prime_factors,
    subgraph,
    weighted_graph,
)
from mapping.placement.methods.cores import ALL, bind_cores, bind_within_hosts, layouts_on, numa_bytes
from mapping.placement.methods.multicore import IMPROVED, PAPER, correct_sizes, cut_bytes, group_ranks
from mapping.placement.search import SearchOptions
from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Ints, Placement, Profile
from registry.model.hosts import HostLayout
from tests.support.inputs import file, read
from tests.support.search_problems import problem_on, ring_problem
from tests.support.small_fabrics import given_placement, profiles
from tests.support.strategy_problems import leaves, rng
from tests.support.sure import sure


@st.composite
def weighted(draw: st.DrawFn, weights: st.SearchStrategy[float]) -> csr_matrix:
    n = draw(st.integers(2, 9))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), weights), max_size=20))
    one, other, size = zip(*ends, strict=True) if ends else ((), (), ())
    return weighted_graph(np.array(one, int), np.array(other, int), np.array(size, float), n)


@given(graph=weighted(st.integers(1, 50).map(float)), data=st.data())
def test_the_repair_moves_the_lightest_until_parts_fit(graph: csr_matrix, data: st.DataObject) -> None:
    n = graph.shape[0]
    first = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    size = data.draw(st.integers(0, n))
    total, expected = graph.toarray().sum(axis=1), first.copy()
    while expected.sum() != size:
        too_large = expected.sum() > size
        lightest = min(np.flatnonzero(expected == too_large), key=lambda v: (total[v], v))
        expected[lightest] = not too_large
        if expected.sum() == size:
            break
        total = np.where(expected == first, total, np.inf)  # who has moved does not move back
    assert bisection.repaired(graph, first, size).tolist() == expected.tolist()


@given(graph=weighted(st.floats(1e-3, 1e12)), data=st.data())
def test_subgraphs_are_those_of_networkx(graph: csr_matrix, data: st.DataObject) -> None:
    n = graph.shape[0]
    kept = sorted(data.draw(st.sets(st.integers(0, n - 1))))
    slow = nx.from_scipy_sparse_array(graph).subgraph(kept)
    dense = nx.to_numpy_array(slow, nodelist=kept) if kept else np.zeros((0, 0))
    assert np.array_equal(subgraph(graph, np.array(kept, int)).toarray(), dense)


def test_whole_weights_are_kept_and_others_scaled_to_a_sum_that_metis_can_hold() -> None:
    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    assert weighted_graph(*ends, np.array([3.0, 5.0, 7.0]), 3).sum() == 30
    both_ways = weighted_graph([0, 1, 1], [1, 0, 1], np.array([3.0, 5.0, 9.0]), 2)
    assert both_ways.toarray().tolist() == [[0, 8], [8, 0]]
    scaled = weighted_graph(*ends, np.array([0.5, 1.5, 1e-30]), 3).toarray()
    assert scaled[0, 1] * 3 == pytest.approx(scaled[1, 2], rel=1e-8)
    assert scaled[0, 2] == 1
    assert scaled.sum() == pytest.approx(bisection.MOST, rel=1e-8)


def test_bisection_meets_the_share_and_depends_on_nothing_but_the_seed() -> None:
    graph = nx.grid_2d_graph(6, 6)
    ends = np.array([(6 * a + b, 6 * c + d) for (a, b), (c, d) in graph.edges])
    grid = weighted_graph(ends[:, 0], ends[:, 1], np.ones(len(ends)), 36)
    for share in (0.5, 1 / 3):
        found = bisect(grid, np.ones(36, np.int64), share, seed=4)
        assert abs(int(found.sum()) - 36 * share) <= 1
        assert found.tobytes() == bisect(grid, np.ones(36, np.int64), share, seed=4).tobytes()
    cut = bisect(grid, np.ones(36, np.int64), 0.5, seed=4, cuts=4)
    assert sum(cut[a] != cut[b] for a, b in ends.tolist()) == 6


def test_hosts_in_a_mixed_order_are_clustered_by_leaf_switch() -> None:
    fabric, order = leaves(4, 4, top=1), np.random.default_rng(1).permutation(16)
    profile = Profile.from_edges([0], [1], [1.0], ranks=2)
    top = hierarchy(problem_on(fabric, profile, Allocation.of(fabric, order.tolist())))
    found = sorted(sorted((order[part.hosts] // 4).tolist()) for part in top.parts)
    assert found == [[leaf] * 4 for leaf in range(4)]


def test_levels_number_parts_by_room_and_split_many_parts_by_factors() -> None:
    hosts = np.arange(14, dtype=np.int32)
    leaf = [Branch(1.0, (), hosts[begin:end]) for begin, end in ((0, 1), (1, 4), (4, 6), (6, 8))]
    below = Branch(2.0, tuple(leaf[2:]), hosts[4:8])
    pairs = (Branch(0.0, (), hosts[k : k + 2]) for k in (8, 10, 12))
    top = Branch(3.0, (leaf[0], leaf[1], below, *pairs), hosts)
    levels = levels_of(top, np.ones(14, np.int64))
    # room 1, 3, 4, 2, 2, 2: numbers 5, 1, 0, 2, 3, 4 as 3 x 2; the third part's two halves one level lower
    assert levels[[0, 1, 4, 6, 8, 10, 12]].tolist() == [
        [2, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0], [2, 0, 0],
    ]  # fmt: skip
    assert levels_of(leaf[1], np.ones(14, np.int64)).shape == (14, 0)


@given(parts=st.integers(2, 5000))
def test_factors_are_small_fall_and_have_room_for_all_parts(parts: int) -> None:
    sides = factors(parts)
    assert list(sides) == sorted(sides, reverse=True)
    assert max(sides) <= levels.LARGEST
    assert parts <= np.prod(sides) <= 1.2 * parts + 1


def test_prime_factors_are_found_from_the_smallest() -> None:
    found = [prime_factors(number) for number in (1, 2, 12, 97, 300)]
    assert found == [(), (2,), (2, 2, 3), (97,), (2, 2, 3, 5, 5)]


@st.composite
def sized(draw: st.DrawFn) -> tuple[Profile, list[int]]:
    profile = draw(profiles(max_ranks=10))
    ends = draw(st.sets(st.integers(1, profile.ranks)))
    cuts = sorted(ends | {profile.ranks})
    return profile, np.diff([0, *cuts]).tolist()


def blocks(sizes: list[int]) -> Ints:
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


@given(case=sized())
def test_groups_have_exactly_their_sizes_and_no_swap_cuts_less(case: tuple[Profile, list[int]]) -> None:
    profile, sizes = case
    group = group_ranks(profile, sizes, rng())
    assert group.dtype == np.int32
    for found, partition in ((group, IMPROVED), (group_ranks(profile, sizes, rng(), PAPER), PAPER)):
        assert np.bincount(found, minlength=len(sizes)).tolist() == sizes
        assert found.tobytes() == group_ranks(profile, sizes, rng(), partition).tobytes()
    least = cut_bytes(profile, group)
    assert least <= cut_bytes(profile, blocks(sizes))
    for one, other in combinations(range(profile.ranks), 2):
        swapped = group.copy()
        swapped[[one, other]] = group[[other, one]]
        assert cut_bytes(profile, swapped) >= least


@given(case=sized(), data=st.data())
def test_the_repair_moves_as_few_ranks_as_can_be_and_only_out_of_groups_too_large(
    case: tuple[Profile, list[int]], data: st.DataObject
) -> None:
    profile, sizes = case
    anywhere = st.lists(st.integers(0, len(sizes) - 1), min_size=profile.ranks, max_size=profile.ranks)
    before = np.array(data.draw(anywhere), np.int32)
    counts = np.bincount(before, minlength=len(sizes))
    member = np.argsort(before, kind="stable").astype(np.int32)
    table = partners(profile.ranks, profile.sender, profile.partner, profile.bytes)
    groups = Groups(before.copy(), np.r_[0, np.cumsum(counts)], member, np.argsort(member).astype(np.int32))
    weight = table.sent + table.received
    repair(table.indptr, table.partner, weight, groups, np.array(sizes))
    assert np.bincount(groups.group, minlength=len(sizes)).tolist() == sizes
    moved = before != groups.group
    assert moved.sum() == np.maximum(counts - sizes, 0).sum()
    assert (counts[before[moved]] > np.array(sizes)[before[moved]]).all()


def test_the_repair_gives_away_the_rank_that_adds_least_to_the_cut() -> None:
    # 0, 1, 2 are one too many; 2 talks to the other group more than to its own, 3 is there.
    table = partners(4, *map(np.array, ([0, 1, 2, 2], [1, 2, 0, 3], [5.0, 1.0, 1.0, 4.0])))
    at = np.arange(4, dtype=np.int32)
    groups = Groups(np.array([0, 0, 0, 1], np.int32), np.array([0, 3, 4]), at, at)
    repair(table.indptr, table.partner, table.sent + table.received, groups, np.array([2, 2]))
    assert groups.group.tolist() == [0, 0, 1, 1]


def plain_correction(part: list[int], total: list[int], sizes: list[int]) -> list[int]:
    """Hoefler and Snir 2011, sections 3.4 and 4.2: one vertex at a time, as long as a part is too large."""
    part, count = list(part), [part.count(k) for k in range(len(sizes))]
    while count != sizes:
        large = min(k for k, size in enumerate(sizes) if count[k] > size)
        small = min(k for k, size in enumerate(sizes) if count[k] < size)
        lightest = min((v for v, k in enumerate(part) if k == large), key=lambda v: (total[v], v))
        part[lightest] = small
        count[large] -= 1
        count[small] += 1
    return part


@given(case=sized(), data=st.data())
def test_parts_are_corrected_as_in_the_paper(case: tuple[Profile, list[int]], data: st.DataObject) -> None:
    profile, sizes = case
    anywhere = st.lists(st.integers(0, len(sizes) - 1), min_size=profile.ranks, max_size=profile.ranks)
    part = data.draw(anywhere)
    total = np.bincount(profile.sender, profile.bytes, profile.ranks)
    total += np.bincount(profile.partner, profile.bytes, profile.ranks)
    whole = np.rint(total).astype(np.int64)
    found = correct_sizes(np.array(part, np.int32), whole, np.array(sizes))
    assert found.tolist() == plain_correction(part, whole.tolist(), sizes)


def test_the_papers_groups_are_metis_k_way_parts_then_corrected() -> None:
    profile = shuffled(stencil((10, 10, 8), 7), 1)
    sizes = [40] * 20
    graph = weighted_graph(profile.sender, profile.partner, profile.bytes, profile.ranks)
    options = bisection.options_of(rng(), slack=50, cuts=1)
    part = bisection.metis_parts(graph, [1 / 20] * 20, options, recursive=False)
    assert np.bincount(part, minlength=20).tolist() != sizes  # so that there is something to correct
    total = np.asarray(graph.sum(axis=1)).reshape(-1).tolist()
    expected = plain_correction(part.tolist(), total, sizes)
    found = group_ranks(profile, sizes, rng(), PAPER)
    assert found.tolist() == expected
    assert cut_bytes(profile, group_ranks(profile, sizes, rng())) < cut_bytes(profile, found)


def test_a_pass_of_swaps_lowers_the_cut_by_what_it_should() -> None:
    profile = shuffled(stencil((6, 6), 5), 3)
    start = blocks([6] * 6)
    table = partners(profile.ranks, profile.sender, profile.partner, profile.bytes)
    order = np.arange(36, dtype=np.int32)
    groups = Groups(start.copy(), np.arange(0, 37, 6), order.copy(), order.copy())
    values = [cut_bytes(profile, groups.group)]
    while swap_pass(table.indptr, table.partner, table.sent + table.received, groups, 1e-9):
        values.append(cut_bytes(profile, groups.group))
        assert np.bincount(groups.group).tolist() == [6] * 6
        assert (groups.group[groups.member] == start).all()
        assert (groups.member[groups.place] == order).all()
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.7 * values[0]


def test_small_cases_are_close_to_the_best_of_all() -> None:
    found, best = 0.0, 0.0
    for seed in range(20):
        random = np.random.default_rng(seed)
        source, target = random.integers(0, 7, (2, 14))
        profile = Profile.from_edges(source, target, random.integers(1, 9, 14), ranks=7)
        cuts = {cut_bytes(profile, np.array(p)) for p in permutations([0, 0, 0, 1, 1, 2, 2])}
        best += min(cuts)
        found += cut_bytes(profile, group_ranks(profile, [3, 2, 2], rng()))
        assert found >= best
    assert found <= 1.08 * best


@pytest.mark.parametrize("sizes", [[64] * 8, [16] * 32, [100, 12, 200, 56, 144]])
def test_a_stencil_numbered_at_random_is_cut_far_below_blocks(sizes: list[int]) -> None:
    profile = shuffled(stencil((8, 8, 8), 7), 1)
    group = group_ranks(profile, sizes, rng())
    assert np.bincount(group).tolist() == sizes
    assert cut_bytes(profile, group) < 0.5 * cut_bytes(profile, blocks(sizes))


@given(profile=profiles(max_ranks=8), data=st.data())
def test_the_quotient_keeps_every_byte_between_groups(profile: Profile, data: st.DataObject) -> None:
    raw = data.draw(st.lists(st.integers(0, 3), min_size=profile.ranks, max_size=profile.ranks))
    group = np.unique(raw, return_inverse=True)[1].astype(np.int32)
    found = grouping.quotient(profile, group)
    assert found.ranks == int(group.max()) + 1
    assert found.bytes.sum() == cut_bytes(profile, group)
    assert found.self_bytes == profile.bytes.sum() - cut_bytes(profile, group)
    for sender, partner, size in zip(found.sender, found.partner, found.bytes, strict=True):
        pairs = (group[profile.sender] == sender) & (group[profile.partner] == partner)
        assert size == profile.bytes[pairs].sum()


@pytest.mark.parametrize("sizes", [[], [4, 0], [3], [2, 3], [5, -1], [1.5, 2.5]])
def test_sizes_that_ranks_do_not_fill_are_refused(sizes: list[float]) -> None:
    with pytest.raises(InvalidValue):
        group_ranks(Profile.from_edges([0], [3], [1.0]), sizes, rng())


def test_hosts_are_filled_with_ranks_that_talk_to_each_other() -> None:
    fabric = leaves(2, 4, top=1)
    # Eight rings of four, dealt out card by card.
    rank = np.arange(32)
    profile = Profile.from_edges(rank, (rank + 8) % 32, np.ones(32))
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(8), 4))
    assert problem.hop_bytes(place_in_order(problem, rng())) > 0
    found = multicore.place_multicore(problem, rng())
    assert problem.hop_bytes(found) == 0.0


@pytest.mark.parametrize("inner", ["greedy", "random", "ohtma", "recursive-bisection"])
def test_any_inner_strategy_places_groups_within_unequal_slots(inner: str) -> None:
    fabric = leaves(2, 4, top=1)
    allocation = Allocation.of(fabric, range(8), [1, 5, 2, 2, 7, 3, 1, 3])
    profile = shuffled(stencil((4, 5), 5), 2)
    problem = problem_on(fabric, profile, allocation)
    found = multicore.place_multicore(problem, rng(), inner=inner)
    taken = np.bincount(found, minlength=8)
    assert (taken <= allocation.slots).all()
    # As few hosts as hold 20 ranks: 7, 5, 3, 3, 2.
    assert np.sort(taken).tolist() == [0, 0, 0, 2, 3, 3, 5, 7]


def test_one_slot_a_host_leaves_all_to_the_inner_strategy() -> None:
    problem = ring_problem(12, 9)
    inner = greedy.place_greedily(problem, rng())
    assert multicore.place_multicore(problem, rng()).tolist() == inner.tolist()


READERS: dict[str, Format] = {"csv": PLACEMENT_CSV, "openmpi-rankfile": OPENMPI_RANKFILE}
READERS["mpich-machinefile"] = HOSTFILE
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
