"""What all routings have in common: loads that add up, and errors that name hosts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import mesh
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from registry.errors import DisconnectedAllocation, InvalidValue, UnknownName
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics


@pytest.mark.parametrize(
    "routing", ["shortest-paths", "ecmp:paths=2,seed=9", "valiant", "ugal:share=0.6", "up-down"]
)
@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), data=st.data())
def test_loads_of_many_pairs_are_the_sum_of_each(routing: str, fabric: Fabric, data: st.DataObject) -> None:
    routes = build_routes(routing, fabric, fabric.hosts)
    if not routes.connected:
        return
    hosts = st.integers(0, len(fabric.hosts) - 1)
    pairs = data.draw(st.lists(st.tuples(hosts, hosts, st.integers(0, 9)), max_size=6))
    i, j, size = (np.array([pair[k] for pair in pairs], np.int64) for k in range(3))
    try:
        apart = [routes.load([a], [b], [c]) for a, b, c in pairs]
    except DisconnectedAllocation:  # from some host no switch is reached, or from no switch some host
        assert routing in ("valiant", "ugal:share=0.6")
        return
    found = routes.load(i, j, size)
    np.testing.assert_allclose(found.link_bytes, sum(one.link_bytes for one in apart), atol=1e-12)
    np.testing.assert_allclose(found.hops, [one.hops[0] for one in apart])
    np.testing.assert_allclose(found.hops, routes.distances[i, j])
    assert found.link_bytes.sum() == pytest.approx(size @ found.hops)


@pytest.mark.parametrize("routing", ["shortest-paths", "ecmp", "least-loaded", "valiant", "ugal", "up-down"])
def test_hosts_that_no_path_joins_are_named_whatever_they_send(routing: str) -> None:
    fabric = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    routes = build_routes(routing, fabric, [0, 1, 3])
    with pytest.raises(DisconnectedAllocation, match="'b' to host 'd'") as caught:
        routes.link_bytes([0, 1], [1, 2], [1.0, 0.0])
    assert (caught.value.source, caught.value.target) == ("b", "d")
    with pytest.raises(DisconnectedAllocation, match="'a' to host 'd'"):
        routes.require_connected()
    assert not routes.connected


def test_traffic_within_a_host_and_no_traffic_load_nothing() -> None:
    routes = shortest_paths.build(mesh((2,)), [0, 1])
    load = routes.load([0, 1], [0, 0], [5.0, 3.0])
    assert load.link_bytes.tolist() == [0.0, 3.0]
    assert load.hops.tolist() == [0.0, 1.0]
    assert routes.load([], [], []).link_bytes.tolist() == [0.0, 0.0]


def test_an_index_that_is_no_host_and_an_unknown_rails_rule_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"must be from 0 to 1"):
        shortest_paths.build(mesh((2,)), [0, 1]).link_bytes([2], [0], [1.0])
    with pytest.raises(UnknownName, match="same-rail"):
        shortest_paths.build(mesh((2,)), [0, 1], rails="same-rails")
