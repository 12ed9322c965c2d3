"""Dimension-order routing on tori and meshes, against a walk of single steps and the 2011 paper."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.catalog import build_routes
from mapping.routing.torus import torus_coordinates
from registry.errors import InvalidValue
from registry.model import Fabric, Ints
from tests.support.flow_checks import check_flows
from tests.support.small_fabrics import CAPACITIES

AXES = "xyzabc"


@st.composite
def grids(draw: st.DrawFn, *, hosts_each: int = 0) -> tuple[Fabric, tuple[int, ...], list[bool]]:
    """Return a torus or mesh with coordinates and some double cables; hosts may be apart from switches."""
    sizes = tuple(draw(st.lists(st.integers(2, 5), min_size=1, max_size=3)))
    wraps = [draw(st.booleans()) and size > 2 for size in sizes]
    places = list(itertools.product(*map(range, sizes)))
    arcs = []
    for place, (axis, size) in itertools.product(places, enumerate(sizes)):
        if place[axis] + 1 < size or wraps[axis]:
            after = places.index((*place[:axis], (place[axis] + 1) % size, *place[axis + 1 :]))
            for _ in range(draw(st.integers(1, 2)) if len(places) < 9 else 1):
                arcs += [(places.index(place), after), (after, places.index(place))]
    count = len(places)
    arcs += [(count + host, host // hosts_each) for host in range(hosts_each * count)]
    arcs += [(host // hosts_each, count + host) for host in range(hosts_each * count)]
    capacity = draw(st.lists(st.sampled_from(CAPACITIES), min_size=len(arcs), max_size=len(arcs)))
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(count * (1 + hosts_each))],
        [a for a, _ in arcs],
        [b for _, b in arcs],
        capacity,
        slots=[1] * count if not hosts_each else [0] * count + [1] * count * hosts_each,
        forwards=not hosts_each,
    )
    coordinates = np.array(places + [(0,) * len(sizes)] * (hosts_each * count), np.int32)
    return replace(fabric, coordinates=coordinates), sizes, wraps


def steps(
    source: Ints, target: Ints, order: list[int], sizes: tuple[int, ...], wraps: list[bool]
) -> list[tuple[int, ...]]:
    """Every place on the way, one step at a time; on a tie upwards."""
    at, way = list(map(int, source)), [tuple(map(int, source))]
    for axis in order:
        while at[axis] != target[axis]:
            ahead = int(target[axis]) - at[axis]
            if wraps[axis]:
                forth, back = ahead % sizes[axis], -ahead % sizes[axis]
                at[axis] = (at[axis] + (1 if forth <= back else -1)) % sizes[axis]
            else:
                at[axis] += 1 if ahead > 0 else -1
            way.append(tuple(at))
    return way


@given(grid=grids(), data=st.data())
def test_every_pair_takes_the_steps_of_its_axes_in_order(
    grid: tuple[Fabric, tuple[int, ...], list[bool]], data: st.DataObject
) -> None:
    fabric, sizes, wraps = grid
    assert fabric.coordinates is not None
    order = data.draw(st.permutations(range(len(sizes))))
    text = f"dimension-order:order={''.join(AXES[axis] for axis in order)}"
    routes = build_routes(text, fabric, fabric.hosts)
    places = fabric.coordinates
    vertex = {tuple(place): v for v, place in enumerate(places.tolist())}
    for _ in range(8):
        i, j = data.draw(st.integers(0, len(fabric) - 1)), data.draw(st.integers(0, len(fabric) - 1))
        way = steps(places[i], places[j], order, sizes, wraps)
        expected = np.zeros(len(fabric.links))
        for before, after in itertools.pairwise(way):
            rows = (fabric.links.source == vertex[before]) & (fabric.links.target == vertex[after])
            expected[rows] += 6.0 * fabric.links.capacity[rows] / fabric.links.capacity[rows].sum()
        load = routes.load([i], [j], [6.0])
        np.testing.assert_allclose(load.link_bytes, expected)
        assert load.hops.tolist() == [len(way) - 1]
        assert routes.distances[i, j] == len(way) - 1


@given(grid=grids(), order=st.booleans())
def test_flows_sum_to_the_loads(grid: tuple[Fabric, tuple[int, ...], list[bool]], order: bool) -> None:
    fabric, sizes, _ = grid
    text = f"dimension-order:order={AXES[: len(sizes)][::-1]}" if order else "dimension-order"
    check_flows(build_routes(text, fabric, fabric.hosts[:12]))


@given(grid=grids(hosts_each=2))
def test_hosts_on_the_switches_of_a_torus_are_routed_by_their_switches(
    grid: tuple[Fabric, tuple[int, ...], list[bool]],
) -> None:
    fabric, sizes, wraps = grid
    routes = build_routes("dimension-order", fabric, fabric.hosts[:12])
    check_flows(routes)
    assert routes.distances[0, 1] == 2
    group, between = routes.grouped_hops()
    assert group.tolist() == [host // 2 for host in range(len(routes.hosts))]
    assert fabric.coordinates is not None
    far = steps(fabric.coordinates[0], fabric.coordinates[1], list(range(len(sizes))), sizes, wraps)
    assert between[0, 1] == len(far) + 1


@given(seed=st.integers(0, 99), sizes=st.lists(st.integers(3, 5), min_size=1, max_size=3))
def test_without_coordinates_they_are_found_from_the_links(seed: int, sizes: list[int]) -> None:
    order = np.random.default_rng(seed).permutation(math.prod(sizes))
    number = dict(zip(itertools.product(*map(range, sizes)), order.tolist(), strict=True))
    ends = [
        (number[place], number[(*place[:axis], (place[axis] + 1) % size, *place[axis + 1 :])])
        for place, (axis, size) in itertools.product(number, enumerate(sizes))
    ]
    source, target = np.array(ends).T
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(len(order))], np.r_[source, target], np.r_[target, source], 1.0
    )
    found = torus_coordinates(fabric)
    assert found is not None
    named = build_routes("dimension-order", replace(fabric, coordinates=found.coordinates), fabric.hosts)
    routes = build_routes("dimension-order", fabric, fabric.hosts)
    everyone = np.arange(len(order))
    pairs = everyone, np.roll(everyone, 1), np.ones(len(order))
    np.testing.assert_array_equal(routes.link_bytes(*pairs), named.link_bytes(*pairs))


@pytest.mark.parametrize(
    ("mapping", "congestion", "dilation"), [("000 111 101 100", 2, 3), ("101 111 000 100", 1, 1)]
)
def test_figure_1_of_the_2011_paper(mapping: str, congestion: int, dilation: int) -> None:
    """The guest 0-1, 0-3, 2-3 on a cube, routed in x, y, z order: the two mappings of section 2.3."""
    corners = ["".join(bits) for bits in itertools.product("01", repeat=3)]
    arcs = [
        (a, b)
        for a, b in itertools.product(range(8), repeat=2)
        if sum(x != y for x, y in zip(corners[a], corners[b], strict=True)) == 1
    ]
    source, target = np.array(arcs).T
    fabric = replace(
        Fabric.from_arcs(corners, source, target, 1.0),
        coordinates=np.array([list(map(int, corner)) for corner in corners], np.int32),
    )
    routes = build_routes("dimension-order:order=xyz", fabric, fabric.hosts)
    host = fabric.vertices(mapping.split())
    ends = np.array([(0, 1), (0, 3), (2, 3)])
    both = np.r_[ends, ends[:, ::-1]]
    load = routes.load(host[both[:, 0]], host[both[:, 1]], np.ones(len(both)))
    assert load.link_bytes.max() == congestion
    assert load.hops.max() == dilation


def test_a_fabric_that_is_no_torus_is_refused() -> None:
    star = Fabric.from_arcs(list("abcd"), [0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0], 1.0)
    with pytest.raises(InvalidValue, match="neither a torus nor a mesh"):
        build_routes("dimension-order", star, [1, 2])


@pytest.mark.parametrize("order", ["xx", "xyz", "x", "xz"])
def test_an_order_that_does_not_name_each_axis_once_is_refused(order: str) -> None:
    square = Fabric.from_arcs(list("abcd"), [0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3], 1.0)
    mesh = replace(square, coordinates=np.array([[0, 0], [0, 1], [1, 1], [1, 0]], np.int32))
    with pytest.raises(InvalidValue, match="each of 'xy' once"):
        build_routes(f"dimension-order:order={order}", mesh, [1, 2])
