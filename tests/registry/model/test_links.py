"""Ports with more data than their cable: hashed, stored and read back."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidValue
from registry.fabrics.contents import canonical, content_hash, pack_fabric, unpack_fabric
from registry.fabrics.facts import device_facts, fabric_of, link_facts
from registry.model import NO_PORT, PORT_STATES, Fabric, Ports
from registry.model.intake import Intake
from registry.model.links import ACTIVE, DISABLED, DOWN, INITIALIZE, TRAINING
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree


def with_ports(fabric: Fabric) -> Fabric:
    """A port of every vertex that is listed: down at switches, one that could be faster at hosts."""
    adapters = {int(host): a for a, host in enumerate(fabric.adapters.host.tolist())}
    n = len(fabric)
    ports = Ports(
        vertex=np.arange(n, dtype=np.int32)[::-1],
        adapter=np.array([adapters.get(v, NO_PORT) for v in range(n)])[::-1],
        number=np.full(n, 7),
        state=np.array([ACTIVE if v in adapters else DOWN for v in range(n)])[::-1],
        could_be=np.array([1e9 * (v + 1) if v in adapters else 0.0 for v in range(n)])[::-1],
    )
    return replace(fabric, ports=ports)


def test_ports_are_in_order_and_down_without_a_working_link() -> None:
    ports = with_ports(fat_tree()).ports
    assert ports.vertex.tolist() == list(range(8))
    assert [PORT_STATES[ports.state[row]] for row in ports.down.tolist()] == ["down"] * 4
    states = np.array([ACTIVE, DOWN, DISABLED, TRAINING, INITIALIZE], np.uint8)
    zeros = np.zeros(5, np.int32)
    ports = Ports(vertex=zeros, adapter=zeros, number=zeros, state=states, could_be=np.zeros(5))
    assert ports.down.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vertex", [99]),
        ("vertex", [-1]),
        ("adapter", [99]),
        ("adapter", [-2]),
        ("state", [len(PORT_STATES)]),
        ("could_be", [-1.0]),
        ("could_be", [float("inf")]),
        ("number", [1, 2]),
    ],
)
def test_ports_that_do_not_fit_are_refused(field: str, value: list[float]) -> None:
    columns = {"vertex": [0], "adapter": [NO_PORT], "number": [1], "state": [DOWN], "could_be": [0.0]}
    assert len(replace(fat_tree(), ports=Ports(**columns)).ports) == 1  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        replace(fat_tree(), ports=Ports(**columns | {field: value}))  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    "scans",
    [
        [fat_tree(rails=2), with_ports(fat_tree(rails=2)), fat_tree(rails=2)],
        [anonymous(fat_tree(rails=2)), fat_tree(rails=2)],
    ],
    ids=["ports", "adapters without GUIDs"],
)
def test_listed_ports_and_nameless_adapters_are_read_back_from_the_graph(
    registry: Registry, scans: list[Fabric]
) -> None:
    for minute, scan in enumerate(scans):
        registry.save(Intake(cluster="toy", observed_at=at(minute), fabric=scan, source="test"))
    for minute, scan in enumerate(scans):
        found = registry.fabrics.read("toy", at(minute)).fabric
        hosts = [found.names[v] for v in found.hosts]
        for read in (found, registry.fabrics.subgraph("toy", hosts, at(minute))):
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
