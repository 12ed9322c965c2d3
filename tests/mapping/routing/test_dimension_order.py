"""Dimension-order routing on tori and meshes, against a walk of single steps and the 2011 paper."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import hypercube, torus
from mapping.routing.catalog import build_routes
from mapping.routing.torus import torus_coordinates
from registry.errors import InvalidValue
from registry.model import Fabric, Floats
from tests.mapping.routing.test_torus import grid
from tests.support.flow_checks import check_flows, check_loads, on_paths
from tests.support.small_fabrics import CAPACITIES, cabled

AXES = "xyzabc"


Place = tuple[int, ...]


@st.composite
def grids(draw: st.DrawFn) -> tuple[Fabric, list[Place], list[bool]]:
    """Return a torus or mesh with coordinates, double cables and hosts that may be apart; and its rings."""
    sizes = draw(
        st.lists(st.integers(2, 5), min_size=1, max_size=3).filter(lambda sizes: math.prod(sizes) < 65)
    )
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
    found = torus_coordinates(fabric)
    assert found is not None
    named = replace(fabric, coordinates=found.coordinates)
    routes, known = (build_routes("dimension-order", one, everyone) for one in (fabric, named))
    pairs = everyone, np.roll(everyone, 1), np.ones(len(everyone))
    np.testing.assert_array_equal(routes.link_bytes(*pairs), known.link_bytes(*pairs))


@pytest.mark.parametrize(
    ("mapping", "congestion", "dilation"), [("000 111 101 100", 2, 3), ("101 111 000 100", 1, 1)]
)
def test_figure_1_of_the_2011_paper(mapping: str, congestion: int, dilation: int) -> None:
    """The guest 0-1, 0-3, 2-3 on a cube, routed in x, y, z order: the two mappings of section 2.3."""
    cube = hypercube(3)
    routes = build_routes("dimension-order:order=xyz", cube, cube.hosts)
    host = np.array([int(corner, 2) for corner in mapping.split()])
    ends = np.array([(0, 1), (0, 3), (2, 3)])
    both = np.r_[ends, ends[:, ::-1]]
    load = routes.load(host[both[:, 0]], host[both[:, 1]], np.ones(len(both)))
    assert load.link_bytes.max() == congestion
    assert load.hops.max() == dilation


def test_a_fabric_that_is_no_torus_is_refused() -> None:
    star = cabled("0-3 1-3 2-3", 3)
    with pytest.raises(InvalidValue, match="neither a torus nor a mesh"):
        build_routes("dimension-order", star, [1, 2])
