"""Tori: recognition, products of graphs, and dimension-order routing against a walk of single steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.direct import hypercube, torus
from mapping.routing import tori
from mapping.routing.catalog import build_routes
from mapping.routing.tori import product_coordinates, torus_coordinates
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Longs
from tests.support.flow_checks import check_flows, check_loads, on_paths
from tests.support.small_fabrics import CAPACITIES, cabled, plain_fabrics
from tests.support.sure import sure


def grid(sizes: Sequence[int], wraps: Sequence[bool] | bool = True, order: Longs | None = None) -> Fabric:
    """Return a torus or mesh without coordinates; `order` is the vertex of each place (default: by row)."""
    links = torus(sizes, wraps=wraps).links
    names, own = [f"v{v}" for v in range(math.prod(sizes))], np.arange(math.prod(sizes))
    at = own if order is None else order
    return Fabric.from_arcs(names, at[links.source], at[links.target], 1.0)


def check_torus(fabric: Fabric) -> None:
    """Places are distinct, fill a box, and links join just the neighbours on lines and circles."""
    found = sure(torus_coordinates(fabric))
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
    check_torus(grid(sizes, wraps, np.random.default_rng(seed).permutation(math.prod(sizes))))


def test_vertices_numbered_row_by_row_keep_their_order() -> None:
    for sizes in ([4, 4, 4], [5, 3], [6, 5, 7], [3, 4]):
        found = sure(torus_coordinates(grid(sizes)))
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
        check_torus(both)


def test_coordinates_of_the_fabric_are_kept_where_they_fit_and_not_believed_otherwise() -> None:
    fabric = grid([4, 4])
    given = np.stack((np.arange(16) % 4, np.arange(16) // 4), axis=1).astype(np.int32)
    found = sure(torus_coordinates(replace(fabric, coordinates=given)))
    assert found.coordinates.tolist() == given.tolist()
    check_torus(replace(fabric, coordinates=np.random.default_rng(0).permutation(given)))


def test_hosts_that_hang_on_the_switches_have_no_place() -> None:
    inner = grid([3, 4], [True, False])
    links = zip((12 + inner.links.source).tolist(), (12 + inner.links.target).tolist(), strict=True)
    between = " ".join(f"{a}-{b}" for a, b in links if a < b)
    fabric = cabled(" ".join(f"{host}-{12 + host}" for host in range(12)) + " " + between, 12)
    found = sure(torus_coordinates(fabric))
    assert (found.coordinates[:12] == -1).all()
    assert found.sizes.tolist() == [3, 4]
    assert found.wraps.tolist() == [True, False]


FACTORS = {"line": nx.path_graph, "ring": nx.cycle_graph, "complete": nx.complete_graph}
Axes = list[tuple[int, str]]


def multiplied(factors: Iterable[nx.Graph[Any]]) -> nx.Graph[Any]:
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


def check_product(places: Longs, links: Longs) -> None:
    """The links are those of the product of the graphs found along each axis, each of a known kind."""
    points = [tuple(place) for place in places.tolist()]
    sizes = [max(axis) + 1 for axis in zip(*points, strict=True)]
    assert sorted(points) == list(itertools.product(*map(range, sizes)))
    ours = {frozenset((points[a], points[b])) for a, b in links.tolist()}
    factors: list[nx.Graph[Any]] = [nx.Graph() for _ in sizes]
    for one, other in map(sorted, ours):
        (axis,) = [k for k in range(len(sizes)) if one[k] != other[k]]
        factors[axis].add_edge(one[axis], other[axis])
    for factor in factors:
        assert any(nx.is_isomorphic(factor, make(len(factor))) for make in FACTORS.values())
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
    places = sure(product_coordinates(len(graph), links))
    check_product(places, links)


@given(seed=st.integers(0, 2**32 - 1), ranks=st.integers(2, 9), part=st.floats(0.1, 1.0))
def test_product_coordinates_of_any_graph_are_true(seed: int, ranks: int, part: float) -> None:
    graph = nx.gnp_random_graph(ranks, part, seed=seed)
    links = numbered(graph, list(range(ranks)))
    places = product_coordinates(ranks, links)
    if places is not None:
        check_product(places, links)


@given(axes=axes(200), seed=st.integers(0, 99))
def test_a_link_less_or_a_link_more_is_no_product_unless_it_is_another_one(axes: Axes, seed: int) -> None:
    graph, generator = product(axes), np.random.default_rng(seed)
    links = numbered(graph, list(range(len(graph))))
    less = np.delete(links, generator.integers(len(links)), axis=0)
    for changed in (less, np.r_[less, [generator.choice(len(graph), 2, replace=False)]]):
        simple = np.unique(np.sort(changed, axis=1), axis=0)
        places = product_coordinates(len(graph), simple)
        if places is not None:
            check_product(places, simple)


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
    ("sizes", "kind"), [((2,) * 5, "line"), *itertools.product([(7,), (5, 3), (3, 5), (3, 5, 6)], FACTORS)]
)
def test_vertices_of_a_product_row_by_row_keep_their_order(sizes: tuple[int, ...], kind: str) -> None:
    graph = product([(size, kind) for size in sizes])
    places = sure(product_coordinates(len(graph), numbered(graph, list(range(len(graph))))))
    assert places.tolist() == [list(place) for place in sorted(graph)]


@pytest.mark.parametrize("partners", [6, 26])
def test_of_many_vertices_in_no_product_few_are_seen(partners: int, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = MagicMock(side_effect=tori._straight)
    monkeypatch.setattr(tori, "_straight", followed)
    graph = nx.random_regular_graph(partners, 4096, seed=3)
    assert product_coordinates(4096, numbered(graph, list(range(4096)))) is None
    assert 0 < followed.call_count < 4096


AXES = "xyzabc"
Place = tuple[int, ...]


@st.composite
def grids(draw: st.DrawFn) -> tuple[Fabric, list[Place], list[bool]]:
    """Return a torus or mesh with coordinates, double cables and hosts that may be apart; and its rings."""
    sizes = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3).filter(lambda one: math.prod(one) < 65))
    wraps, each = [draw(st.booleans()) for _ in sizes], draw(st.sampled_from([0, 2]))
    links, count = torus(sizes, wraps=wraps).links, math.prod(sizes)
    cable = np.flatnonzero(links.source < links.target)
    cable = cable[[*range(len(cable)), *draw(st.lists(st.integers(0, len(cable) - 1), max_size=4))]]
    hosts = np.arange(each * count)
    a = np.r_[links.source[cable], count + hosts]
    b = np.r_[links.target[cable], hosts // max(each, 1)]
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(count + len(hosts))],
        np.r_[a, b],
        np.r_[b, a],
        np.random.default_rng(draw(st.integers(0, 99))).choice(CAPACITIES, 2 * len(a)),
        slots=np.r_[np.full(count, int(each == 0)), np.ones(len(hosts), int)],
        forwards=each == 0,
    )
    places = list(itertools.product(*map(range, sizes)))
    coordinates = np.array(places + [places[0]] * len(hosts), np.int32)
    return replace(fabric, coordinates=coordinates), places, wraps


def steps(source: Place, target: Place, order: list[int], sizes: Place, wraps: list[bool]) -> list[Place]:
    """Every place on the way, one step at a time; on a tie upwards."""
    at, way = list(source), [source]
    for axis in order:
        while at[axis] != target[axis]:
            ahead = target[axis] - at[axis]
            if wraps[axis]:
                forth, back = ahead % sizes[axis], -ahead % sizes[axis]
                at[axis] = (at[axis] + (1 if forth <= back else -1)) % sizes[axis]
            else:
                at[axis] += 1 if ahead > 0 else -1
            way.append(tuple(at))
    return way


@given(grid=grids(), data=st.data())
def test_every_pair_takes_the_steps_of_its_axes_in_order(
    grid: tuple[Fabric, list[Place], list[bool]], data: st.DataObject
) -> None:
    fabric, places, wraps = grid
    sizes, count = tuple(side + 1 for side in places[-1]), len(places)
    order = data.draw(st.permutations(range(len(sizes))))
    hosts = data.draw(st.permutations(fabric.hosts.tolist()))[:7]

    def byte_between(i: int, j: int) -> Floats:
        a, b = (places[v if v < count else (v - count) // 2] for v in (i, j))
        way = [places.index(place) for place in steps(a, b, order, sizes, wraps)]
        return on_paths(fabric, [way if i < count else [i, *way, j]])

    text = f"dimension-order:order={''.join(AXES[axis] for axis in order)}"
    routes = build_routes(text, fabric, hosts)
    check_loads(routes, byte_between, InvalidValue)
    check_flows(routes)
    if hosts[0] >= count:
        assert len(routes.grouped_hops()[1]) == len({(host - count) // 2 for host in hosts})


@given(seed=st.integers(0, 99), sizes=st.lists(st.integers(3, 5), min_size=1, max_size=3))
def test_without_coordinates_they_are_found_from_the_links(seed: int, sizes: list[int]) -> None:
    everyone = np.arange(math.prod(sizes))
    fabric = grid(sizes, order=np.random.default_rng(seed).permutation(len(everyone)))
    found = sure(torus_coordinates(fabric))
    named = replace(fabric, coordinates=found.coordinates)
    routes, known = (build_routes("dimension-order", one, everyone) for one in (fabric, named))
    pairs = everyone, np.roll(everyone, 1), np.ones(len(everyone))
    np.testing.assert_array_equal(routes.link_bytes(*pairs), known.link_bytes(*pairs))


@pytest.mark.parametrize(
    ("where", "worst", "dilation"), [("000 111 101 100", 2, 3), ("101 111 000 100", 1, 1)]
)
def test_figure_1_of_the_2011_paper(where: str, worst: int, dilation: int) -> None:
    """The guest 0-1, 0-3, 2-3 on a cube, routed in x, y, z order: the two mappings of section 2.3."""
    cube = hypercube(3)
    routes = build_routes("dimension-order:order=xyz", cube, cube.hosts)
    host = np.array([int(corner, 2) for corner in where.split()])
    ends = np.array([(0, 1), (0, 3), (2, 3)])
    both = np.r_[ends, ends[:, ::-1]]
    load = routes.load(host[both[:, 0]], host[both[:, 1]], np.ones(len(both)))
    assert (load.link_bytes.max(), load.hops.max()) == (worst, dilation)


def test_a_fabric_that_is_no_torus_is_refused() -> None:
    star = cabled("0-3 1-3 2-3", 3)
    with pytest.raises(InvalidValue, match="neither a torus nor a mesh"):
        build_routes("dimension-order", star, [1, 2])
