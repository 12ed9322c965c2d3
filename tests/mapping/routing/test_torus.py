"""Recognition of tori and meshes from their links."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.torus import torus_coordinates
from registry.model import Fabric
from tests.support.small_fabrics import plain_fabrics


def grid(sizes: list[int], wraps: list[bool], order: np.ndarray | None = None) -> Fabric:
    """Return a torus or mesh; `order` is the vertex of each place (default: row by row)."""
    count = math.prod(sizes)
    order = np.arange(count) if order is None else order
    number = {place: int(order[i]) for i, place in enumerate(itertools.product(*map(range, sizes)))}
    arcs = set()
    for place in number:
        for axis, size in enumerate(sizes):
            if place[axis] + 1 < size or (wraps[axis] and size > 2):
                after = (*place[:axis], (place[axis] + 1) % size, *place[axis + 1 :])
                arcs |= {(number[place], number[after]), (number[after], number[place])}
    source, target = np.array(sorted(arcs)).T
    return Fabric.from_arcs([f"v{v}" for v in range(count)], source, target, 1.0)


def check(fabric: Fabric) -> None:
    """Places are distinct, fill a box, and links join just the neighbours on lines and circles."""
    found = torus_coordinates(fabric)
    assert found is not None
    places = [tuple(place) for place in found.coordinates.tolist()]
    assert sorted(places) == list(itertools.product(*map(range, found.sizes.tolist())))
    expected = grid(found.sizes.tolist(), found.wraps.tolist())
    ours = nx.DiGraph(
        [(places[a], places[b]) for a, b in zip(fabric.links.source, fabric.links.target, strict=True)]
    )
    rows = list(itertools.product(*map(range, found.sizes.tolist())))
    theirs = nx.DiGraph(
        [(rows[a], rows[b]) for a, b in zip(expected.links.source, expected.links.target, strict=True)]
    )
    assert set(ours.edges) == set(theirs.edges)


@given(
    axes=st.lists(st.tuples(st.integers(2, 6), st.booleans()), min_size=1, max_size=4).filter(
        lambda axes: math.prod(size for size, _ in axes) <= 400
    ),
    seed=st.integers(0, 99),
)
def test_any_torus_or_mesh_is_recognised_under_any_numbering(axes: list[tuple[int, bool]], seed: int) -> None:
    sizes, wraps = [size for size, _ in axes], [wraps for _, wraps in axes]
    check(grid(sizes, wraps, np.random.default_rng(seed).permutation(math.prod(sizes))))


@pytest.mark.parametrize("sizes", [[8, 8, 8], [4, 4, 4], [5, 3], [12, 6, 7], [2, 2, 2], [3, 4]])
def test_vertices_numbered_row_by_row_keep_their_order(sizes: list[int]) -> None:
    found = torus_coordinates(grid(sizes, [True] * len(sizes)))
    assert found is not None
    if 2 not in sizes:
        assert found.sizes.tolist() == sizes
        assert found.coordinates.tolist() == [list(place) for place in itertools.product(*map(range, sizes))]


def test_a_link_less_or_a_link_more_is_no_torus() -> None:
    fabric = grid([5, 5], [True, True])
    links = fabric.links
    less = (links.source == 7) & (links.target == 8) | (links.source == 8) & (links.target == 7)
    assert torus_coordinates(replace(fabric, links=links.take(np.flatnonzero(~less)))) is None
    more = Fabric.from_arcs(fabric.names, np.r_[links.source, 0, 7], np.r_[links.target, 7, 0], 1.0)
    assert torus_coordinates(more) is None


@given(fabric=plain_fabrics())
def test_coordinates_of_any_graph_are_true(fabric: Fabric) -> None:
    fabric = replace(fabric, forwards=np.ones(len(fabric), bool))
    both = Fabric.from_arcs(
        fabric.names,
        np.r_[fabric.links.source, fabric.links.target],
        np.r_[fabric.links.target, fabric.links.source],
        1.0,
    )
    if torus_coordinates(both) is not None:
        check(both)


def test_coordinates_of_the_fabric_are_kept_where_they_fit() -> None:
    fabric = grid([4, 4], [True, True])
    given = np.stack((np.arange(16) % 4, np.arange(16) // 4), axis=1).astype(np.int32)
    found = torus_coordinates(replace(fabric, coordinates=given))
    assert found is not None
    assert found.coordinates.tolist() == given.tolist()


def test_coordinates_that_do_not_fit_are_not_believed() -> None:
    fabric = grid([4, 5], [True, True])
    wrong = np.random.default_rng(0).permutation(torus_coordinates(fabric).coordinates)  # type: ignore[union-attr]
    check(replace(fabric, coordinates=wrong))


def test_hosts_that_hang_on_the_switches_have_no_place() -> None:
    inner = grid([3, 4], [True, False])
    hosts, switches = np.arange(12), 12 + np.arange(12)
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(24)],
        np.r_[hosts, switches, 12 + inner.links.source],
        np.r_[switches, hosts, 12 + inner.links.target],
        1.0,
        slots=[1] * 12 + [0] * 12,
        forwards=False,
    )
    found = torus_coordinates(fabric)
    assert found is not None
    assert (found.coordinates[:12] == -1).all()
    assert found.sizes.tolist() == [3, 4]
    assert found.wraps.tolist() == [True, False]
