"""Bisection by METIS, hierarchies of hosts, digits of their positions, and grids that traffic forms."""

from __future__ import annotations

import itertools
import math
from unittest.mock import MagicMock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.nas import lu
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.tori import torus
from mapping.placement.partition.bisection import MOST, bisect, repaired, subgraph, weighted_graph
from mapping.placement.partition.digit_orders import host_digits, host_sides
from mapping.placement.partition.hierarchy import (
    LARGEST,
    Branch,
    factors,
    hierarchy,
    levels_of,
    prime_factors,
)
from mapping.placement.partition.rank_grid import rank_coordinates
from mapping.placement.problem.problem import Problem
from mapping.routing import products
from registry.model import Allocation, Fabric, Ints, Longs, Profile
from tests.support.search_problems import on_all_hosts, problem_on, torus8
from tests.support.strategy_problems import leaves


@st.composite
def weighted(draw: st.DrawFn, weights: st.SearchStrategy[float]) -> csr_matrix:
    n = draw(st.integers(2, 9))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), weights), max_size=20))
    one, other, size = zip(*ends, strict=True) if ends else ((), (), ())
    return weighted_graph(np.array(one, int), np.array(other, int), np.array(size, float), n)


@given(graph=weighted(st.integers(1, 50).map(float)), data=st.data())
def test_the_repair_moves_the_lightest_vertex_until_the_parts_fit(
    graph: csr_matrix, data: st.DataObject
) -> None:
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
    assert repaired(graph, first, size).tolist() == expected.tolist()


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
    assert scaled.sum() == pytest.approx(MOST, rel=1e-8)


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


def position_digits(fabric: Fabric, ranks: int) -> tuple[list[int], list[int], Ints]:
    """Return radix and stride of each digit for a ring of ranks, and the host of each position."""
    ring = Profile.from_edges(np.arange(ranks), np.roll(np.arange(ranks), 1), np.ones(ranks))
    digits = host_digits(*host_sides(on_all_hosts(fabric, ring)), 0, np.random.default_rng(0))
    return digits.radix.tolist(), digits.stride.tolist(), digits.host


@pytest.mark.parametrize(
    ("ranks", "radices", "strides"),
    [(16, [2, 2, 2, 2], [8, 4, 2, 1]), (48, [3, 2, 2, 2, 2], [16, 8, 4, 2, 1])],
)
def test_digits_follow_the_axes_of_hosts_and_their_slots(
    ranks: int, radices: list[int], strides: list[int]
) -> None:
    radix, stride, host = position_digits(torus((6, 4), slots=2), ranks)  # 16 of 48 fill no grid
    assert (radix, stride) == (radices, strides)
    assert host.tolist() == np.repeat(np.arange(ranks // 2), 2).tolist()


def test_digits_follow_the_hierarchy_of_a_tree() -> None:
    radix, stride, host = position_digits(extended_generalised_fat_tree((3, 5), (1, 2)), 15)
    assert (radix, stride) == ([5, 3], [3, 1])
    assert (host.reshape(5, 3) // 3 == host.reshape(5, 3)[:, :1] // 3).all()


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
    top = Branch(
        3.0, (leaf[0], leaf[1], below, *(Branch(0.0, (), hosts[k : k + 2]) for k in (8, 10, 12))), hosts
    )
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
    assert max(sides) <= LARGEST
    assert parts <= np.prod(sides) <= 1.2 * parts + 1


def test_prime_factors_are_found_from_the_smallest() -> None:
    found = [prime_factors(number) for number in (1, 2, 12, 97, 300)]
    assert found == [(), (2,), (2, 2, 3), (97,), (2, 2, 3, 5, 5)]


def problem_of(profile: Profile) -> Problem:
    """Return the profile on a ring; coordinates of ranks do not depend on hosts."""
    fabric = torus((max(profile.ranks, 3),))
    allocation = Allocation.of(fabric, fabric.hosts[: profile.ranks].tolist())
    return problem_on(fabric, profile, allocation)


def check(places: Longs | None, sides: list[int], number: Longs, periodic: bool = False) -> None:
    """Ranks are neighbours in their coordinates if they are in the grid; a ring of four may be two axes."""
    assert places is not None
    assert len(np.unique(places, axis=0)) == len(places)
    assert np.prod(places.max(axis=0) + 1) == len(places)
    grid = np.array(list(itertools.product(*map(range, sides))))
    steps = np.abs(grid[:, None] - grid)
    true = (np.minimum(steps, np.array(sides) - steps) if periodic else steps).sum(axis=2) == 1
    away = np.abs(places[number][:, None] - places[number])
    around = (away == places.max(axis=0)) & (places.max(axis=0) > 1) & periodic
    found = ((away > 0).sum(axis=2) == 1) & ((away == 1) | around).any(axis=2)
    assert (true == found).all()


@given(sides=st.lists(st.integers(2, 7), min_size=2, max_size=3), full=st.booleans(), seed=st.integers(0, 99))
def test_a_shuffled_stencil_is_recognised_exactly(sides: list[int], full: bool, seed: int) -> None:
    points = {2: (5, 9), 3: (7, 27)}[len(sides)][full]
    weights = {5: (9,), 9: (9, 2), 7: (9,), 27: (64, 8, 1)}[points]
    number = np.random.default_rng(seed).permutation(math.prod(sides))
    profile = stencil(sides, points, bytes=weights, seed=seed)
    check(rank_coordinates(problem_of(profile)), sides, number)


@given(sides=st.lists(st.integers(3, 6), min_size=2, max_size=3), seed=st.integers(0, 99))
def test_a_shuffled_stencil_around_a_torus_is_recognised_exactly(sides: list[int], seed: int) -> None:
    number = np.random.default_rng(seed).permutation(math.prod(sides))
    profile = stencil(sides, 2 * len(sides) + 1, periodic=True, seed=seed)
    check(rank_coordinates(problem_of(profile)), sides, number, periodic=True)


def noisy(seed: int) -> Profile:
    """Return 6 x 5 x 4 ranks, shuffled: each axis has its own bytes, one way more, and all send a little."""
    generator = np.random.default_rng(seed)
    rank = np.arange(120).reshape(6, 5, 4)
    parts = [
        (np.delete(rank, -1, axis).ravel(), np.delete(rank, 0, axis).ravel(), bytes)
        for axis, bytes in enumerate((90.0, 40.0, 70.0))
    ]
    parts.append((*generator.integers(0, 120, (2, 600)), 1.0))
    source, target, size = (np.concatenate([np.broadcast_to(part[k], part[0].shape) for part in parts])
                            for k in range(3))  # fmt: skip
    apart = source != target
    return shuffled(Profile.from_edges(source[apart], target[apart], size[apart], ranks=120), seed)


def test_axes_with_different_bytes_and_other_light_traffic_form_a_grid() -> None:
    check(rank_coordinates(problem_of(noisy(5))), [6, 5, 4], np.random.default_rng(5).permutation(120))


def test_a_shuffled_wave_front_is_recognised() -> None:
    places = rank_coordinates(problem_of(shuffled(lu(64), 3)))
    check(places, [8, 8], np.random.default_rng(3).permutation(64))


def test_numbers_row_by_row_are_kept() -> None:
    places = rank_coordinates(problem_of(stencil((6, 3, 5), 27, bytes=(9, 3, 1))))
    assert places is not None
    assert places.tolist() == [list(place) for place in itertools.product(range(6), range(3), range(5))]


@given(seed=st.integers(0, 2**32 - 1), ranks=st.integers(5, 40))
def test_random_traffic_is_no_grid(seed: int, ranks: int) -> None:
    generator = np.random.default_rng(seed)
    source, target = generator.integers(0, ranks, (2, 6 * ranks))
    apart = source != target
    size = generator.uniform(1, 2, np.count_nonzero(apart))
    found = rank_coordinates(problem_of(Profile.from_edges(source[apart], target[apart], size, ranks=ranks)))
    if found is not None:  # by chance a line or ring of few ranks
        assert found.shape[1] == 1


def test_irregular_traffic_and_silent_ranks_are_no_grid() -> None:
    fabric, profile, allocation = torus8()
    assert rank_coordinates(problem_on(fabric, profile, allocation)) is None
    assert rank_coordinates(problem_of(Profile.from_edges([], [], [], ranks=4))) is None
    line = Profile.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0], ranks=5)  # rank 4 is silent
    assert rank_coordinates(problem_of(line)) is None


@pytest.mark.parametrize("partners", [6, 26])
def test_few_of_many_ranks_that_are_no_grid_are_looked_at(
    partners: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(partners)
    source = np.repeat(np.arange(4096), partners)
    target = (source + generator.integers(1, 4096, len(source))) % 4096
    problem = problem_of(Profile.from_edges(source, target, generator.uniform(1, 9, len(source)), ranks=4096))
    followed = MagicMock(side_effect=products._straight)
    monkeypatch.setattr(products, "_straight", followed)
    assert rank_coordinates(problem) is None
    assert 0 < followed.call_count < 4096
