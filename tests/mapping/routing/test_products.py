"""Recognition of products of lines, rings and complete graphs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any
from unittest.mock import MagicMock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing import products
from mapping.routing.products import product_coordinates
from registry.model import Longs

FACTORS = {"line": nx.path_graph, "ring": nx.cycle_graph, "complete": nx.complete_graph}
Axes = list[tuple[int, str]]


def multiplied(factors: Iterable[nx.Graph[Any]]) -> nx.Graph[Any]:
    """Return the product of graphs by networkx; vertices are coordinates."""
    found: nx.Graph[Any] = nx.empty_graph([()])
    for factor in factors:
        longer = nx.cartesian_product(found, factor)
        found = nx.relabel_nodes(longer, {(place, index): (*place, index) for place, index in longer})
    return found


def product(axes: Axes) -> nx.Graph[Any]:
    return multiplied(FACTORS[kind](size) for size, kind in axes)


def numbered(graph: nx.Graph[Any], order: list[int]) -> Longs:
    """Return the links with ``order[i]`` as the number of vertex i, the vertices in ascending order."""
    number = dict(zip(sorted(graph), order, strict=True))
    return np.array([(number[a], number[b]) for a, b in graph.edges], np.int64).reshape(-1, 2)


def is_simple(factor: nx.Graph[Any]) -> bool:
    return any(nx.is_isomorphic(factor, make(len(factor))) for make in FACTORS.values())


def check(places: Longs, links: Longs) -> None:
    """The links are those of the product of the graphs found along each axis, each of a known kind."""
    points = [tuple(place) for place in places.tolist()]
    sizes = [max(axis) + 1 for axis in zip(*points, strict=True)]
    assert sorted(points) == list(itertools.product(*map(range, sizes)))
    ours = {frozenset((points[a], points[b])) for a, b in links.tolist()}
    factors: list[nx.Graph[Any]] = [nx.Graph() for _ in sizes]
    for one, other in map(sorted, ours):
        (axis,) = [k for k in range(len(sizes)) if one[k] != other[k]]
        factors[axis].add_edge(one[axis], other[axis])
    assert all(map(is_simple, factors))
    expected = multiplied(factors)
    assert ours == {frozenset(edge) for edge in expected.edges}


def axes(most: int) -> st.SearchStrategy[Axes]:
    one = st.tuples(st.integers(2, 7), st.sampled_from(sorted(FACTORS)))
    longer = st.lists(one, min_size=1, max_size=4)
    return longer.filter(lambda found: math.prod(size for size, _ in found) <= most)


@given(axes=axes(300), seed=st.integers(0, 99))
def test_any_product_is_recognised_under_any_numbering(axes: Axes, seed: int) -> None:
    graph = product(axes)
    links = numbered(graph, np.random.default_rng(seed).permutation(len(graph)).tolist())
    places = product_coordinates(len(graph), links)
    assert places is not None
    check(places, links)


@given(seed=st.integers(0, 2**32 - 1), ranks=st.integers(2, 9), part=st.floats(0.1, 1.0))
def test_coordinates_of_any_graph_are_true(seed: int, ranks: int, part: float) -> None:
    graph = nx.gnp_random_graph(ranks, part, seed=seed)
    links = numbered(graph, list(range(ranks)))
    places = product_coordinates(ranks, links)
    if places is not None:
        check(places, links)


@given(axes=axes(200), seed=st.integers(0, 99))
def test_a_link_less_or_a_link_more_is_no_product_unless_it_is_another_one(axes: Axes, seed: int) -> None:
    graph, generator = product(axes), np.random.default_rng(seed)
    links = numbered(graph, list(range(len(graph))))
    less = np.delete(links, generator.integers(len(links)), axis=0)
    for changed in (less, np.r_[less, [generator.choice(len(graph), 2, replace=False)]]):
        simple = np.unique(np.sort(changed, axis=1), axis=0)
        places = product_coordinates(len(graph), simple)
        if places is not None:
            check(places, simple)


@pytest.mark.parametrize(
    "graph",
    [
        nx.petersen_graph(),
        nx.circulant_graph(12, [1, 6]),
        nx.random_regular_graph(4, 64, seed=1),
        nx.strong_product(nx.path_graph(4), nx.path_graph(5)),
        nx.star_graph(8),
        nx.disjoint_union(nx.path_graph(4), nx.path_graph(4)),
        nx.empty_graph(3),
    ],
    ids=["petersen", "moebius", "regular", "9 points", "star", "two lines", "no links"],
)
def test_graphs_that_are_no_products_have_no_coordinates(graph: nx.Graph[Any]) -> None:
    assert product_coordinates(len(graph), numbered(graph, list(range(len(graph))))) is None


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [((2,) * 5, "line"), *itertools.product([(7,), (5, 3), (3, 5), (3, 5, 6)], FACTORS)],
)
def test_vertices_numbered_row_by_row_keep_their_order(sizes: tuple[int, ...], kind: str) -> None:
    graph = product([(size, kind) for size in sizes])
    places = product_coordinates(len(graph), numbered(graph, list(range(len(graph)))))
    assert places is not None
    assert places.tolist() == [list(place) for place in sorted(graph)]


def test_few_vertices_of_a_large_graph_that_is_no_product_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed = MagicMock(side_effect=products._straight)
    monkeypatch.setattr(products, "_straight", followed)
    graph = nx.random_regular_graph(26, 4096, seed=3)
    assert product_coordinates(4096, numbered(graph, list(range(4096)))) is None
    assert 0 < followed.call_count < 4096
