"""Algorithm 3 of the 2011 paper: a pair's path is a shortest one, the least loaded when its turn comes."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.catalog import build_routes
from registry.model import Fabric
from tests.support.flow_checks import on_paths, shortest_ways
from tests.support.small_fabrics import cabled, plain_fabrics


@given(fabric=plain_fabrics(), data=st.data())
def test_each_pair_adds_its_bytes_to_a_least_loaded_shortest_path(
    fabric: Fabric, data: st.DataObject
) -> None:
    routes = build_routes("least-loaded", fabric, fabric.hosts)
    connected = np.argwhere(np.isfinite(routes.distances) & (routes.distances > 0))
    if not len(connected):
        return
    chosen = connected[data.draw(st.lists(st.integers(0, len(connected) - 1), min_size=1, max_size=10))]
    sizes = np.array(
        data.draw(st.lists(st.integers(1, 9), min_size=len(chosen), max_size=len(chosen))), float
    )
    before, links = np.zeros(len(fabric.links)), fabric.links
    for turn, (i, j) in enumerate(chosen.tolist()):
        pairs = chosen[: turn + 1]
        load = routes.load(pairs[:, 0], pairs[:, 1], sizes[: turn + 1])
        every = shortest_ways(fabric, int(routes.hosts[i]), int(routes.hosts[j]))
        seconds = before / links.capacity
        cost = [
            sum(seconds[(links.source == a) & (links.target == b)][0] for a, b in itertools.pairwise(way))
            for way in every
        ]
        carried = (sizes[turn] * on_paths(fabric, [way]) for way in every)
        taken = [np.allclose(load.link_bytes, before + one, atol=1e-9) for one in carried]
        assert any(took and cost[w] <= min(cost) + 1e-9 for w, took in enumerate(taken))
        assert load.hops[turn] == len(every[0]) - 1
        before = load.link_bytes


def loads(text: str, sizes: list[float]) -> list[float]:
    """Bytes on 0-2 and 0-3 where 0 sends to 1, by way of 2 or 3, once for each size."""
    fabric, pairs = cabled("0-2 2-1 0-3 3-1", 2), len(sizes)
    found = build_routes(text, fabric, [0, 1]).link_bytes([0] * pairs, [1] * pairs, sizes)
    return [
        float(found[(fabric.links.source == 0) & (fabric.links.target == middle)].sum()) for middle in (2, 3)
    ]


def test_pairs_take_their_turn_as_given_or_heaviest_first() -> None:
    assert loads("least-loaded", [1.0, 2.0, 3.0]) == [4.0, 2.0]
    assert loads("least-loaded:order=heaviest", [1.0, 2.0, 3.0]) == [3.0, 3.0]


def test_small_loads_count_beside_any_number_of_hops() -> None:
    """What the paper's large weight on every link loses in 64 bits."""
    assert loads("least-loaded", [0.2, 0.2, 1e17, 0.2]) == [0.2 + 1e17, 0.4]
