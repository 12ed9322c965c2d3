"""Small parts of routing by hand: end points of hosts, channels of a pair, traffic of hosts, single paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.generate.tori import torus
from mapping.routing.host_traffic import host_traffic, packets
from mapping.routing.kernels.channels import Ends, add_cables, new_channels, pair_channels, pair_hops
from mapping.routing.kernels.paths import NO_PATH, new_spread
from mapping.routing.kernels.single_paths import ArcCables, Demands, HashedFlows, carry_hashed, carry_singly
from mapping.routing.network import arc_arrays, attach, end_points
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.ibnetdiscover_scans import scanned
from tests.support.small_fabrics import cabled


def two_rail_fabric() -> Fabric:
    """Two hosts with adapters ``b`` and ``a`` each, on two leaves; the leaves joined by two cables."""
    fabric = scanned(
        *(("leaf0", 1, "h0 1", 1), ("leaf1", 1, "h0 2", 1), ("leaf0", 2, "h1 1", 1), ("leaf1", 2, "h1 2", 1)),
        *(("leaf0", 3, "leaf1", 3), ("leaf0", 4, "leaf1", 4)),
    )
    capacity = np.where(fabric.links.source_port == 4, 3.0, 1.0)
    adapters = replace(fabric.adapters, names=("h0 b", "h0 a", "h1 b", "h1 a"))
    return replace(fabric, links=replace(fabric.links, capacity=capacity), adapters=adapters)


def test_rails_are_ordered_by_adapter_name_and_hosts_as_given() -> None:
    ends = end_points(two_rail_fabric(), np.array([0, 1], np.int32))
    assert ends.rail_adapter.tolist() == [1, 0, 3, 2]
    assert ends.rail_number.tolist() == [0, 1, 0, 1]
    assert ends.port_ptr.tolist() == [0, 1, 2, 3, 4]
    ends = end_points(two_rail_fabric(), np.array([1, 0], np.int32))
    assert ends.rail_adapter.tolist() == [3, 2, 1, 0]
    assert ends.port_host.tolist() == [0, 0, 1, 1]


def test_ports_on_one_cable_are_stripped_and_parallel_cables_are_one_arc_shared_by_capacity() -> None:
    fabric = two_rail_fabric()
    _, network = attach(fabric, [0, 1])
    assert len(network.arcs.forwards) == 2
    assert network.port_vertex.tolist() == [1, 0, 1, 0]
    assert np.diff(network.up.ptr).tolist() == [1, 1, 1, 1]
    assert fabric.links.target[network.up.link].tolist() == [3, 2, 3, 2]
    assert fabric.links.source[network.down.link].tolist() == [3, 2, 3, 2]
    assert network.arcs.head.tolist() == [1, 0]
    assert network.cables.share.tolist() == [0.25, 0.75, 0.25, 0.75]
    _, alone = attach(fabric, [0])  # hosts outside the allocation are left out
    assert len(alone.port_vertex) == 2
    assert len(alone.arcs.forwards) == 2


def test_a_host_without_adapters_on_two_leaves_is_a_vertex_that_does_not_forward() -> None:
    _, network = attach(cabled("0-2 0-3 1-2", 2), [0, 1])
    assert network.arcs.forwards.tolist() == [True, True, False]
    assert network.port_vertex.tolist() == [2, 0]
    assert np.diff(network.up.ptr).tolist() == [0, 1]


def test_a_host_without_cables_has_no_rails() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0], [1], 1.0)
    ends = end_points(fabric, np.array([2, 0], np.int32))
    assert np.diff(ends.rail_ptr).tolist() == [0, 1]


def test_nodes_of_a_direct_network_are_the_transit_vertices_themselves() -> None:
    _, network = attach(torus((3,)), [2, 0])
    assert network.port_vertex.tolist() == [2, 0]
    assert len(network.up.link) == 0
    assert network.arcs.forwards.all()


HOPS = np.full((4, 4), 2, np.int8)
HOPS[1, 3] = NO_PATH  # the second adapter does not reach the other's second port


def ends(*, same_rail: bool) -> Ends:
    none, empty = np.zeros(5, np.int64), np.zeros(0, np.int32)
    return Ends(
        same_rail=same_rail,
        rail_ptr=np.array([0, 2, 3]),
        rail_number=np.array([0, 1, 0], np.int32),
        port_ptr=np.array([0, 1, 2, 4]),
        port_row=np.arange(4, dtype=np.int32),
        target_ptr=np.arange(5),
        target=np.arange(4, dtype=np.int32),
        up_ptr=np.array([0, 1, 2, 2, 2]),
        up_link=np.array([5, 6], np.int32),
        up_share=np.ones(2),
        down_ptr=none,
        down_link=empty,
        down_share=np.zeros(0),
    )


@pytest.mark.parametrize(
    ("same_rail", "expected"),
    [
        (False, {(0, 2): 0.25, (0, 3): 0.25, (1, 2): 0.5}),
        (True, {(0, 2): 0.5, (0, 3): 0.5}),
    ],
)
def test_bytes_are_even_over_adapters_then_over_ports(
    same_rail: bool, expected: dict[tuple[int, int], float]
) -> None:
    both, channels = ends(same_rail=same_rail), new_channels(4)
    count = pair_channels(both, HOPS, 0, 1, channels)
    pairs = zip(channels.source[:count].tolist(), channels.port[:count].tolist(), strict=True)
    assert dict(zip(pairs, channels.weight[:count].tolist(), strict=True)) == expected
    assert pair_hops(both, HOPS, channels, count) == 3  # with the cable of the sending host


def test_cables_of_a_port_get_their_shares() -> None:
    load = np.zeros(3)
    add_cables(
        np.array([0, 0, 2]), np.array([2, 0], np.int32), np.array([0.75, 0.25]),
        np.array([1, 1], np.int32), np.array([4.0, 8.0]), load,
    )  # fmt: skip
    assert load.tolist() == [3, 0, 9]


PROFILE = Profile.from_edges([0, 0, 1, 2], [1, 2, 3, 0], [5.0, 7.0, 2.0, 4.0], messages=[1, 2, 1, 1], ranks=4)
ALLOCATION = Allocation(hosts=np.array([0, 1], np.int32), slots=np.array([2, 2], np.int32))


def placed(hosts: list[int]) -> Placement:
    return Placement(host_of_rank=np.array(hosts, np.int32), allocation=ALLOCATION, strategy="given")


def test_traffic_of_ranks_is_summed_by_hosts_without_that_within_a_host() -> None:
    found = host_traffic(PROFILE, placed([0, 0, 1, 1]), packet_bytes=4.0)
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [(0, 1), (1, 0)]
    assert found.bytes.tolist() == [9, 4]
    assert found.rank_pairs.tolist() == [2, 1]
    assert found.messages.tolist() == [3, 1]
    assert found.packets.tolist() == [3, 1]
    assert found.total_messages == 5
    unknown = Profile.from_edges([0], [1], [5.0], ranks=2)  # in an unknown number of messages
    assert np.isnan(host_traffic(unknown, placed([0, 1])).total_messages)


def test_a_message_is_at_least_one_packet() -> None:
    assert packets(PROFILE, 100.0).tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf")])
def test_another_number_of_ranks_and_packets_of_no_size_are_refused(size: float) -> None:
    with pytest.raises(InvalidPlacement):
        host_traffic(PROFILE, placed([0, 1]))
    with pytest.raises(InvalidValue, match="above zero"):
        packets(PROFILE, size)


def test_each_demand_takes_the_path_with_less_load_so_far() -> None:
    diamond = arc_arrays(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.ones(4, np.bool_))
    zeros = np.zeros(3, np.int32)
    demands = Demands(start=zeros, goal=zeros, amount=np.array([5.0, 3.0, 1.0]))
    arc_load, length = np.zeros(4), np.empty(3, np.int32)
    hops_to = np.array([[2, 1, 1, 0]], np.int8)
    carry_singly(diamond, np.ones(4), hops_to, demands, new_spread(4, 4), arc_load, length)
    assert arc_load.tolist() == [5, 4, 5, 4]
    assert length.tolist() == [2, 2, 2]


def test_all_flows_of_a_demand_take_the_only_path() -> None:
    line = arc_arrays(np.array([0, 1]), np.array([1, 2]), np.ones(3, np.bool_))
    cables = ArcCables(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.int32))
    flows = HashedFlows(
        ptr=np.array([0, 2]),
        start=np.array([0, 1], np.int32),
        key=np.array([7, 8]),
        amount=np.array([6.0, 1.0]),
        flows=3,
        seed=1,
    )
    load = np.zeros(2)
    length = carry_hashed(line, cables, np.array([2], np.int32), flows, load)
    np.testing.assert_allclose(load, [7.0, 6.0])
    assert length.tolist() == [2, 1]
