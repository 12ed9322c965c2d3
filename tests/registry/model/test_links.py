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
from registry.model import NO_PORT, PORT_STATES, Adapters, Fabric, Ports
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


def test_a_fabric_keeps_its_ports_in_order() -> None:
    ports = with_ports(fat_tree()).ports
    assert ports.vertex.tolist() == list(range(8))
    assert [PORT_STATES[ports.state[row]] for row in ports.down.tolist()] == ["down"] * 4


def test_down_are_ports_without_a_working_link() -> None:
    states = [ACTIVE, DOWN, DISABLED, TRAINING, INITIALIZE]
    zeros = np.zeros(5, np.int32)
    states_of = np.array(states, np.uint8)
    ports = Ports(vertex=zeros, adapter=zeros, number=zeros, state=states_of, could_be=np.zeros(5))
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


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(1, 3))
def test_listed_ports_survive_bytes_facts_and_any_order(shuffle: int, rails: int) -> None:
    plain = fat_tree(rails=rails, shuffle=shuffle)
    wiring = canonical(with_ports(plain))
    assert content_hash(wiring) != content_hash(canonical(plain))
    for found in (
        unpack_fabric(pack_fabric(wiring)),
        fabric_of(device_facts(wiring).values(), link_facts(wiring)),
        canonical(wiring),
    ):
        assert content_hash(found) == content_hash(wiring)
        assert np.array_equal(found.ports.could_be, wiring.ports.could_be)


def test_the_order_of_ports_does_not_matter() -> None:
    one = with_ports(fat_tree(rails=2))
    other = replace(one, ports=one.ports.take(np.arange(len(one.ports))[::-1]))
    assert content_hash(canonical(one)) == content_hash(canonical(other))


def anonymous(fabric: Fabric) -> Fabric:
    """The same adapters, known by the GUIDs of their ports alone."""
    adapters = fabric.adapters
    return replace(
        fabric,
        adapters=Adapters(
            names=adapters.names,
            guid=np.zeros(len(adapters), np.uint64),
            system_guid=adapters.system_guid,
            host=adapters.host,
            port_adapter=adapters.port_adapter,
            port_number=adapters.port_number,
            port_guid=adapters.port_guid,
            port_lid=adapters.port_lid,
            port_lmc=adapters.port_lmc,
        ),
    )


def test_adapters_without_guids_are_known_by_their_ports_in_facts() -> None:
    wiring = canonical(anonymous(fat_tree(rails=2)))
    assert content_hash(fabric_of(device_facts(wiring).values(), link_facts(wiring))) == content_hash(wiring)


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
    fabric = registry.fabrics.read("toy").fabric
    hosts = [fabric.names[v] for v in fabric.hosts]
    assert content_hash(registry.fabrics.subgraph("toy", hosts, at(0))) == content_hash(canonical(fat_tree()))
    registry.save(Intake(cluster="toy", observed_at=at(1), fabric=fat_tree(slow=(0,)), source="test"))
    found = registry.fabrics.subgraph("toy", hosts, at(1))
    assert content_hash(found) == content_hash(canonical(fat_tree(slow=(0,))))


def test_down_ports_can_be_listed(registry: Registry) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=with_ports(fat_tree()), source="test"))
    statement = "MATCH (s:DeviceState) WHERE 'down' IN s.port_states RETURN s.name ORDER BY s.name"
    assert registry.database.query(statement)[1] == [("leaf0",), ("leaf1",), ("spine0",), ("spine1",)]
