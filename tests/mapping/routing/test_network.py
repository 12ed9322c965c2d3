"""How hosts hang on a fabric: ports, rails, parallel cables and what is stripped before a search."""

from __future__ import annotations

import numpy as np

from mapping.routing.network import end_points, transit_network
from registry.model import Adapters, Fabric, Links


def two_rail_fabric() -> Fabric:
    """Two hosts with adapters ``b`` and ``a`` each, on two leaves; the leaves joined by two cables."""
    h0, h1, leaf0, leaf1 = 0, 1, 2, 3
    cables = [
        (h0, leaf0, 1, 1, 0, -1),
        (h0, leaf1, 1, 1, 1, -1),
        (h1, leaf0, 1, 2, 2, -1),
        (h1, leaf1, 1, 2, 3, -1),
        (leaf0, leaf1, 3, 3, -1, -1),
        (leaf0, leaf1, 4, 4, -1, -1),
    ]
    rows = cables + [(b, a, q, p, y, x) for a, b, p, q, x, y in cables]
    source, target, source_port, target_port, source_adapter, target_adapter = zip(*rows, strict=True)
    capacity = [1, 1, 1, 1, 1, 3] * 2
    return Fabric(
        names=("h0", "h1", "leaf0", "leaf1"),
        kind=np.array([0, 0, 1, 1], np.uint8),
        slots=np.array([1, 1, 0, 0], np.int32),
        forwards=np.array([False, False, True, True]),
        guid=np.zeros(4, np.uint64),
        lid=np.zeros(4, np.int32),
        links=Links.of(
            source,
            target,
            capacity,
            source_port=source_port,
            target_port=target_port,
            source_adapter=source_adapter,
            target_adapter=target_adapter,
        ),
        adapters=Adapters(
            names=("h0 b", "h0 a", "h1 b", "h1 a"),
            guid=np.arange(4, dtype=np.uint64),
            system_guid=np.zeros(4, np.uint64),
            host=np.array([0, 0, 1, 1], np.int32),
            port_adapter=np.arange(4, dtype=np.int32),
            port_number=np.ones(4, np.int32),
            port_guid=np.zeros(4, np.uint64),
            port_lid=np.zeros(4, np.int32),
            port_lmc=np.zeros(4, np.int32),
        ),
    )


def test_rails_are_ordered_by_adapter_name() -> None:
    ends = end_points(two_rail_fabric(), np.array([0, 1], np.int32))
    assert ends.rail_adapter.tolist() == [1, 0, 3, 2]
    assert ends.rail_number.tolist() == [0, 1, 0, 1]
    assert ends.port_ptr.tolist() == [0, 1, 2, 3, 4]


def test_hosts_are_in_the_given_order() -> None:
    ends = end_points(two_rail_fabric(), np.array([1, 0], np.int32))
    assert ends.rail_adapter.tolist() == [3, 2, 1, 0]
    assert ends.port_host.tolist() == [0, 0, 1, 1]


def test_ports_on_one_cable_are_stripped_from_the_search() -> None:
    fabric = two_rail_fabric()
    network = transit_network(fabric, end_points(fabric, np.array([0, 1], np.int32)))
    assert len(network.arcs.forwards) == 2
    assert network.port_vertex.tolist() == [1, 0, 1, 0]
    assert np.diff(network.up.ptr).tolist() == [1, 1, 1, 1]
    assert fabric.links.target[network.up.link].tolist() == [3, 2, 3, 2]
    assert fabric.links.source[network.down.link].tolist() == [3, 2, 3, 2]


def test_parallel_cables_are_one_arc_shared_by_capacity() -> None:
    fabric = two_rail_fabric()
    network = transit_network(fabric, end_points(fabric, np.array([0, 1], np.int32)))
    assert network.arcs.head.tolist() == [1, 0]
    assert network.cables.share.tolist() == [0.25, 0.75, 0.25, 0.75]


def test_a_host_without_adapters_on_two_leaves_is_a_vertex_that_does_not_forward() -> None:
    fabric = Fabric.from_arcs(
        ["h", "g", "s", "t"],
        [0, 0, 2, 3, 1, 2],
        [2, 3, 0, 0, 2, 1],
        1.0,
        slots=[1, 1, 0, 0],
        forwards=False,
    )
    network = transit_network(fabric, end_points(fabric, np.array([0, 1], np.int32)))
    assert network.arcs.forwards.tolist() == [True, True, False]
    assert network.port_vertex.tolist() == [2, 0]
    assert np.diff(network.up.ptr).tolist() == [0, 1]


def test_hosts_outside_the_allocation_are_left_out() -> None:
    fabric = two_rail_fabric()
    network = transit_network(fabric, end_points(fabric, np.array([0], np.int32)))
    assert len(network.port_vertex) == 2
    assert len(network.arcs.forwards) == 2


def test_a_host_without_cables_has_no_rails() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0], [1], 1.0)
    ends = end_points(fabric, np.array([2, 0], np.int32))
    assert np.diff(ends.rail_ptr).tolist() == [0, 1]


def test_nodes_of_a_direct_network_are_the_transit_vertices_themselves() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0, 1, 2], [1, 2, 0], 1.0)
    network = transit_network(fabric, end_points(fabric, np.array([2, 0], np.int32)))
    assert network.port_vertex.tolist() == [2, 0]
    assert len(network.up.link) == 0
    assert network.arcs.forwards.all()
