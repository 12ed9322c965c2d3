"""Ports: those with more data than their cable, hashed, stored, named; hosts by name and by index."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidValue, UnknownName
from registry.interchange import from_networkx
from registry.model import NO_PORT, PORT_STATES, Adapters, Allocation, Fabric, Ports
from registry.model.fabric import ENDS, end_name, end_parts, port_name, port_names
from registry.model.intake import Intake
from registry.model.links import ACTIVE, DISABLED, DOWN, INITIALIZE, PORT_COLUMNS, TRAINING
from registry.registry import Registry
from registry.store.derived import device_facts, fabric_of, link_facts
from registry.store.snapshots import canonical, content_hash, pack_fabric, unpack_fabric
from tests.support.fat_tree import at, fat_tree
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics


def with_ports(fabric: Fabric) -> Fabric:
    """A port of every vertex that is listed: down at switches, one that could be faster at hosts."""
    adapters = {int(host): a for a, host in enumerate(fabric.adapters.host.tolist())}
    rows = [
        (v, adapters[v], 7, ACTIVE, 1e9 * (v + 1)) if v in adapters else (v, NO_PORT, 7, DOWN, 0.0)
        for v in reversed(range(len(fabric)))
    ]
    columns = dict(zip(PORT_COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))
    return replace(fabric, ports=Ports(**columns))


def test_ports_are_in_order_and_down_without_a_working_link() -> None:
    ports = with_ports(fat_tree()).ports
    assert ports.vertex.tolist() == list(range(8))
    assert [PORT_STATES[ports.state[row]] for row in ports.down.tolist()] == ["down"] * 4
    states = np.array([ACTIVE, DOWN, DISABLED, TRAINING, INITIALIZE], np.uint8)
    zeros = np.zeros(5, np.int32)
    ports = Ports(vertex=zeros, adapter=zeros, number=zeros, state=states, could_be=np.zeros(5))
    assert ports.down.tolist() == [1, 2, 3]


def test_ports_that_do_not_fit_are_refused() -> None:
    good: dict[str, Any] = dict(zip(PORT_COLUMNS, ([0], [NO_PORT], [1], [DOWN], [0.0]), strict=True))
    assert len(replace(fat_tree(), ports=Ports(**good)).ports) == 1
    wrong = {
        "vertex": (99, -1),
        "adapter": (99, -2),
        "state": (len(PORT_STATES),),
        "could_be": (-1.0, math.inf),
    }
    changes: list[dict[str, Any]] = [{name: [value]} for name, values in wrong.items() for value in values]
    for changed in (*changes, {"number": [1, 2]}):
        with pytest.raises(InvalidValue):
            replace(fat_tree(), ports=Ports(**good | changed))


def test_a_fabric_without_listed_ports_has_the_hash_and_bytes_of_before_there_were_any() -> None:
    wiring = canonical(fat_tree(rails=2))
    assert content_hash(wiring) == "30ee24c0815fa726"  # made by the version before Fabric.ports
    assert hashlib.sha256(pack_fabric(wiring)).hexdigest().startswith("af2b3e01faaa18f0")


@settings(max_examples=20)
@given(st.integers(0, 20), st.integers(1, 3))
def test_listed_ports_survive_bytes_facts_and_any_order(shuffle: int, rails: int) -> None:
    plain = fat_tree(rails=rails, shuffle=shuffle)
    listed = with_ports(plain)
    wiring = canonical(listed)
    assert content_hash(wiring) != content_hash(canonical(plain))
    turned = replace(listed, ports=listed.ports.take(np.arange(len(listed.ports))[::-1]))
    for found in (
        unpack_fabric(pack_fabric(wiring)),
        fabric_of(device_facts(wiring).values(), link_facts(wiring)),
        canonical(wiring),
        canonical(turned),
    ):
        assert content_hash(found) == content_hash(wiring)
        assert np.array_equal(found.ports.could_be, wiring.ports.could_be)
    nameless = canonical(anonymous(plain))  # adapters known by their ports
    again = fabric_of(device_facts(nameless).values(), link_facts(nameless))
    assert content_hash(again) == content_hash(nameless)


def anonymous(fabric: Fabric) -> Fabric:
    """The same adapters, known by the GUIDs of their ports alone."""
    guid = np.zeros(len(fabric.adapters), np.uint64)
    return replace(fabric, adapters=replace(fabric.adapters, guid=guid))


def test_listed_ports_and_nameless_adapters_are_read_back_from_the_graph(registry: Registry) -> None:
    tree = fat_tree(rails=2)
    for cluster, scans in (("ports", [tree, with_ports(tree), tree]), ("nameless", [anonymous(tree), tree])):
        for minute, scan in enumerate(scans):
            registry.save(Intake(cluster=cluster, observed_at=at(minute), fabric=scan, source="test"))
        for minute, scan in enumerate(scans):
            found = registry.fabrics.read(cluster, at(minute)).fabric
            hosts = [found.names[v] for v in found.hosts]
            for read in (found, registry.fabrics.subgraph(cluster, hosts, at(minute))):
                assert content_hash(read) == content_hash(canonical(scan))


def test_a_graph_of_before_there_were_ports_is_read(registry: Registry) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), source="test"))
    gone = ", ".join(f"s.{name}" for name in ("listed_adapters", "listed_ports", "port_states", "could_be"))
    registry.database.write(lambda t: t.run(f"MATCH (s:DeviceState) REMOVE {gone}"))
    registry.save(Intake(cluster="toy", observed_at=at(1), fabric=fat_tree(slow=(0,)), source="test"))
    fabric = registry.fabrics.read("toy").fabric
    hosts = [fabric.names[v] for v in fabric.hosts]
    for minute, saved in ((0, fat_tree()), (1, fat_tree(slow=(0,)))):
        found = registry.fabrics.subgraph("toy", hosts, at(minute))
        assert content_hash(found) == content_hash(canonical(saved))
    registry.save(Intake(cluster="toy", observed_at=at(2), fabric=with_ports(fat_tree()), source="test"))
    statement = "MATCH (s:DeviceState) WHERE 'down' IN s.port_states RETURN s.name ORDER BY s.name"
    assert registry.database.query(statement)[1] == [("leaf0",), ("leaf1",), ("spine0",), ("spine1",)]


def rails(*described: str) -> Fabric:
    """A host h with two adapters, port 1 of each connected to ports 7 and 8 of a switch s."""
    fabric = Fabric.from_arcs(["h", "s"], [0, 0, 1, 1], [1, 1, 0, 0], 1.0, slots=[1, 0])
    links, number, zeros = fabric.links, np.array([0, 1, 0, 1]), np.zeros(2, np.int32)
    guid, system_guid = np.array([1, 2], np.uint64), zeros.astype(np.uint64)
    adapters = Adapters(names=described, guid=guid, system_guid=system_guid, host=zeros)
    ends = {
        f"{end}_{what}": np.where(getattr(links, end) == 0, host, switch)
        for end in ("source", "target")
        for what, host, switch in (("port", 1, 7 + number), ("adapter", number, NO_PORT))
    }
    return replace(fabric, adapters=adapters, links=replace(links, **ends))


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (("h mlx5_0", "h mlx5_1"), ["h mlx5_0:1", "h mlx5_1:1"]),
        (("x HCA-1", "y HCA-1"), ["h 0x0000000000000001:1", "h 0x0000000000000002:1"]),
        (("", "h two"), ["h 0x0000000000000001:1", "h two:1"]),
    ],
)
def test_an_adapter_is_named_where_several_have_a_port(described: Any, expected: list[str]) -> None:
    fabric = rails(*described)
    assert [end_name(fabric, row) for row in range(4)] == [*expected, "s:7", "s:8"]
    assert [end_name(fabric, row, "target") for row in range(4)] == ["s:7", "s:8", *expected]


@settings(max_examples=40)
@given(adapter_fabrics())
def test_names_of_all_ports_are_unique_and_those_of_each(fabric: Fabric) -> None:
    texts, *places = port_names(fabric)
    assert texts[0] == ""
    assert len(set(texts)) == len(texts)
    for end, place in zip(ENDS, places, strict=True):
        parts = [end_parts(fabric, row, end) for row in range(len(fabric.links))]
        assert [texts[one] for one in place.tolist()] == [port for _, port in parts]
        assert len({"".join(one) for one in parts}) == len(parts)
        assert {name for name, _ in parts} <= set(fabric.names)


def test_a_port_that_is_known_by_its_number_needs_no_name_of_the_adapter() -> None:
    assert (port_name("leaf", 3), port_name("leaf", NO_PORT)) == ("leaf:3", "leaf")
    fabric = infiniband("torus-4x4x4-dor")
    links = fabric.links
    for row, (vertex, port) in enumerate(zip(links.source, links.source_port, strict=True)):
        assert end_parts(fabric, row) == (fabric.names[vertex], f":{port}")


def ring_from(first: int, count: int = 4) -> Fabric:
    """Return a ring whose vertices are numbered from `first`."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edges_from(((first + at, first + (at + 1) % count) for at in range(count)), capacity=1.0)
    fabric = from_networkx(graph)
    assert isinstance(fabric, Fabric)
    return fabric


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param([1, 2, 3], id="list"),
        pytest.param(np.array([3, 1]), id="array"),
        pytest.param(range(1, 5), id="the last is no index"),
    ],
)
def test_numbers_that_are_names_of_a_graph_from_1_are_no_indices(hosts: Any) -> None:
    with pytest.raises(InvalidValue, match=r"Allocation\.hosts: 1 may be the vertex '1' or .* index 1, '2'"):
        Allocation.of(ring_from(1), hosts)


def test_names_as_text_and_what_can_only_be_an_index_are_taken() -> None:
    fabric = ring_from(1)
    assert fabric.names == ("1", "2", "3", "4")
    assert Allocation.of(fabric, ["3", "1"]).hosts.tolist() == [2, 0]
    assert Allocation.of(fabric, [0, 1, 2]).hosts.tolist() == [0, 1, 2]  # there is no vertex '0'
    assert Allocation.of(fabric, fabric.hosts[1:3]).hosts.tolist() == [1, 2]  # the fabric's own are indices
    assert Allocation.of(ring_from(0), [2, 1]).hosts.tolist() == [2, 1]  # both meanings are the same
    with pytest.raises(UnknownName, match="'9'"):
        Allocation.of(fabric, ["9"])
    with pytest.raises(InvalidValue, match=r"outside 0 \.\. 3"):
        Allocation.of(ring_from(0), [4])


def test_ends_of_arcs_are_not_mistaken_for_names() -> None:
    with pytest.raises(InvalidValue, match="source: 1 may be the vertex '1'"):
        Fabric.from_arcs(["1", "2", "3"], [1, 2], [2, 1], 1.0)
    assert len(Fabric.from_arcs(["1", "2", "3"], [0, 1, 2], [1, 2, 0], 1.0).links) == 3
