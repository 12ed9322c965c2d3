"""Bisection, hierarchies of hosts, groups of ranks of exact sizes, and hosts of several slots so filled."""

from __future__ import annotations

from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from ingest.generate.stencils import shuffled, stencil
from mapping.placement.kernels.multicore import Groups, repair, swap_pass
from mapping.placement.kernels.pair_gain import partners
from mapping.placement.partition import bisection
from mapping.placement.partition import hierarchy as levels
from mapping.placement.partition import multicore as grouping
from mapping.placement.partition.bisection import bisect, subgraph, weighted_graph
from mapping.placement.partition.hierarchy import Branch, factors, hierarchy, levels_of, prime_factors
from mapping.placement.partition.multicore import IMPROVED, PAPER, correct_sizes, cut_bytes, group_ranks
from mapping.placement.strategies import greedy, multicore
from mapping.placement.strategies.baselines import place_in_order
from registry.errors import InvalidValue
from registry.model import Allocation, Ints, Profile
from tests.support.search_problems import problem_on, ring_problem
from tests.support.small_fabrics import profiles
from tests.support.strategy_problems import leaves, rng


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
    found = multicore.place_ranks(problem, rng())
    assert problem.hop_bytes(found) == 0.0


@pytest.mark.parametrize("inner", ["greedy", "random", "ohtma", "recursive-bisection"])
def test_any_inner_strategy_places_groups_within_unequal_slots(inner: str) -> None:
    fabric = leaves(2, 4, top=1)
    allocation = Allocation.of(fabric, range(8), [1, 5, 2, 2, 7, 3, 1, 3])
    profile = shuffled(stencil((4, 5), 5), 2)
    problem = problem_on(fabric, profile, allocation)
    found = multicore.place_ranks(problem, rng(), inner=inner)
    taken = np.bincount(found, minlength=8)
    assert (taken <= allocation.slots).all()
    # As few hosts as hold 20 ranks: 7, 5, 3, 3, 2.
    assert np.sort(taken).tolist() == [0, 0, 0, 2, 3, 3, 5, 7]


def test_one_slot_a_host_leaves_all_to_the_inner_strategy() -> None:
    problem = ring_problem(12, 9)
    inner = greedy.place_ranks(problem, rng())
    assert multicore.place_ranks(problem, rng()).tolist() == inner.tolist()
