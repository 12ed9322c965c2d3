"""Recognition of tori and meshes from their links."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import torus
from mapping.routing.torus import torus_coordinates
from registry.model import Fabric, Longs
from tests.support.small_fabrics import cabled, plain_fabrics


def grid(sizes: Sequence[int], wraps: Sequence[bool] | bool = True, order: Longs | None = None) -> Fabric:
    """Return a torus or mesh without coordinates; `order` is the vertex of each place (default: by row)."""
    links = torus(sizes, wraps=wraps).links
    names, own = [f"v{v}" for v in range(math.prod(sizes))], np.arange(math.prod(sizes))
    at = own if order is None else order
    return Fabric.from_arcs(names, at[links.source], at[links.target], 1.0)


def check(fabric: Fabric) -> None:
    """Places are distinct, fill a box, and links join just the neighbours on lines and circles."""
    found = torus_coordinates(fabric)
    assert found is not None
    places = [tuple(place) for place in found.coordinates.tolist()]
    assert sorted(places) == list(itertools.product(*map(range, found.sizes.tolist())))
    expected = torus(found.sizes.tolist(), wraps=found.wraps.tolist()).links
    rows = list(itertools.product(*map(range, found.sizes.tolist())))
    ours, theirs = (
        {(at[a], at[b]) for a, b in zip(links.source, links.target, strict=True)}
        for at, links in ((places, fabric.links), (rows, expected))
    )
    assert ours == theirs


@given(
    axes=st.lists(st.tuples(st.integers(2, 6), st.booleans()), min_size=1, max_size=4).filter(
        lambda axes: math.prod(size for size, _ in axes) <= 400
    ),
    seed=st.integers(0, 99),
)
def test_any_torus_or_mesh_is_recognised_under_any_numbering(axes: list[tuple[int, bool]], seed: int) -> None:
    sizes, wraps = [size for size, _ in axes], [wraps for _, wraps in axes]
    check(grid(sizes, wraps, np.random.default_rng(seed).permutation(math.prod(sizes))))


def test_vertices_numbered_row_by_row_keep_their_order() -> None:
    for sizes in ([4, 4, 4], [5, 3], [6, 5, 7], [3, 4]):
        found = torus_coordinates(grid(sizes))
        assert found is not None
        assert found.sizes.tolist() == sizes
        assert found.coordinates.tolist() == [list(at) for at in itertools.product(*map(range, sizes))]


def test_a_link_less_or_a_link_more_is_no_torus() -> None:
    fabric = grid([5, 5])
    links = fabric.links
    less = (links.source == 7) & (links.target == 8) | (links.source == 8) & (links.target == 7)
    assert torus_coordinates(replace(fabric, links=links.take(np.flatnonzero(~less)))) is None
    more = Fabric.from_arcs(fabric.names, np.r_[links.source, 0, 7], np.r_[links.target, 7, 0], 1.0)
    assert torus_coordinates(more) is None


@given(fabric=plain_fabrics())
def test_coordinates_of_any_graph_are_true(fabric: Fabric) -> None:
    fabric = replace(fabric, forwards=np.ones(len(fabric), bool))
    source, target = fabric.links.source, fabric.links.target
    both = Fabric.from_arcs(fabric.names, np.r_[source, target], np.r_[target, source], 1.0)
    if torus_coordinates(both) is not None:
        check(both)


def test_coordinates_of_the_fabric_are_kept_where_they_fit_and_not_believed_otherwise() -> None:
    fabric = grid([4, 4])
    given = np.stack((np.arange(16) % 4, np.arange(16) // 4), axis=1).astype(np.int32)
    found = torus_coordinates(replace(fabric, coordinates=given))
    assert found is not None
    assert found.coordinates.tolist() == given.tolist()
    check(replace(fabric, coordinates=np.random.default_rng(0).permutation(given)))


def test_hosts_that_hang_on_the_switches_have_no_place() -> None:
    inner = grid([3, 4], [True, False])
    links = zip((12 + inner.links.source).tolist(), (12 + inner.links.target).tolist(), strict=True)
    between = " ".join(f"{a}-{b}" for a, b in links if a < b)
    fabric = cabled(" ".join(f"{host}-{12 + host}" for host in range(12)) + " " + between, 12)
    found = torus_coordinates(fabric)
    assert found is not None
    assert (found.coordinates[:12] == -1).all()
    assert found.sizes.tolist() == [3, 4]
    assert found.wraps.tolist() == [True, False]
