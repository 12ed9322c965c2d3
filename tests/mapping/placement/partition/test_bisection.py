"""Bisection by METIS, and the repair of its balance."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from mapping.placement.partition.bisection import MOST, bisect, repaired, subgraph, weighted_graph


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
