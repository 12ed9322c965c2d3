"""Fabrics in the graph: observations are the truth, the graph to query always says the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.database.driver import Database
from registry.errors import UnknownName
from registry.model import Fabric, ForwardingTables
from registry.model.intake import Intake, Receipt
from registry.registry import Registry
from registry.store.snapshots import canonical, content_hash
from registry.store.timeline import FOREVER
from tests.conftest import empty
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.full_cluster import counts, same
from tests.support.infiniband_data import infiniband

A = fat_tree()
B = fat_tree(without=(0,), slow=(5,))
C = fat_tree(leaves=3, renamed={"leaf0": "other"})
D = fat_tree(hosts=3, rails=2)
CONTENTS = (A, B, C, D)
NUMBERS = count()


def save(
    registry: Registry,
    fabric: Fabric | None,
    minutes: float,
    tables: ForwardingTables | None = None,
    cluster: str = "toy",
) -> Receipt:
    return registry.save(
        Intake(cluster=cluster, observed_at=at(minutes), fabric=fabric, tables=tables, source="test")
    )


def derived(database: Database, cluster: str) -> list[Any]:
    """All of a cluster's derived graph, without the cluster's name."""
    statements = (
        "MATCH (d:Device) WHERE d.cluster = $cluster RETURN d",
        "MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState) WHERE d.cluster = $cluster RETURN d.key, s",
        "MATCH (a:Device)-[l:LINK]->(b:Device) WHERE a.cluster = $cluster RETURN a.key, b.key, l",
    )
    found = []
    for statement in statements:
        for row in database.query(statement, cluster=cluster)[1]:
            plain = [sorted(cell.items()) if isinstance(cell, dict) else cell for cell in row]
            found.append(repr(plain).replace(f"'{cluster}", "'"))
    return sorted(found)


def subgraph(registry: Registry, cluster: str, moment: datetime | None = None) -> Fabric:
    """The whole fabric, read from the derived graph."""
    fabric = registry.fabrics.read(cluster, moment).fabric
    return registry.fabrics.subgraph(cluster, [fabric.names[v] for v in fabric.hosts], moment)


def wider(tables: ForwardingTables) -> ForwardingTables:
    """Tables with LIDs at the end that nobody uses."""
    ports = np.pad(tables.ports, ((0, 0), (0, 5)), constant_values=255)
    return replace(tables, ports=ports, lid_guid=np.pad(tables.lid_guid, (0, 5)))


TORUS = Fabric.from_arcs(list("abc"), [0, 1, 2], [1, 2, 0], 1.0)
AXES = np.arange(6, dtype=np.int32).reshape(3, 2)
SCANS: dict[str, Callable[[], Fabric]] = {
    "order of a file": lambda: fat_tree(rails=2, cables=2, shuffle=4),
    "arcs alone": lambda: Fabric.from_arcs([*"cab"], [0, 0, 1], [1, 1, 2], [1.0, 2.0, 3.0], slots=[1, 2, 0]),
    "coordinates": lambda: replace(TORUS, level=np.zeros(3, np.int32), coordinates=AXES),
    "tables": lambda: replace(A, tables=tree_tables()),
    "unused LIDs": lambda: replace(A, tables=wider(tree_tables())),
    "ndr-dgx-minhop": lambda: infiniband("ndr-dgx-minhop"),
    "mixed-speeds-oversubscribed": lambda: infiniband("mixed-speeds-oversubscribed"),
}


@pytest.mark.parametrize("name", SCANS)
def test_a_scan_is_read_back_from_its_content_and_the_derived_graph(registry: Registry, name: str) -> None:
    scan = SCANS[name]()
    receipt = save(registry, scan, 0, scan.tables)
    found = registry.fabrics.read("toy")
    assert list(found.fabric.names) == sorted(scan.names)
    assert content_hash(found.fabric) == content_hash(canonical(scan))
    assert content_hash(subgraph(registry, "toy")) == content_hash(canonical(scan))
    assert (found.id, found.observed_at, found.routing) == (receipt.snapshot, at(0), receipt.routing)
    assert found.fabric.observed_at == at(0)
    assert (receipt.new_content, receipt.new_observation) == (True, True)
    assert (receipt.links_opened, receipt.links_closed) == (len(scan.links), 0)
    tables = found.fabric.tables
    assert (tables is None, receipt.routing is None) == (scan.tables is None,) * 2
    assert tables is None or same(tables, scan.tables)


def test_what_was_seen_before_is_stored_once(registry: Registry) -> None:
    first = save(registry, A, 0, tree_tables())
    nodes, relationships = counts(registry.database)
    again = save(registry, fat_tree(shuffle=1), 0, tree_tables())
    assert counts(registry.database) == (nodes, relationships)
    assert (again.new_observation, again.new_content, again.new_routing) == (False, False, False)
    assert (again.snapshot, again.routing) == (first.snapshot, first.routing) != (None, None)
    later = save(registry, fat_tree(shuffle=2), 1, tree_tables())
    # the observation with what it saw (content, routing), and the run that recorded it
    assert counts(registry.database) == (nodes + 2, relationships + 3)
    assert (later.new_observation, later.new_content, later.new_routing) == (True, False, False)
    stored = "MATCH (r:Routing)-[h:HAS_TABLE]->(t:ForwardingTable) RETURN count(DISTINCT t), count(h)"
    [(tables, routings)] = registry.database.query(stored)[1]
    assert (tables, routings) == (3, 4)  # the two spines forward alike
    receipts = [save(registry, fabric, minute) for minute, fabric in ((2, B), (3, A))]
    seen = registry.fabrics.observations("toy")
    assert [one.snapshot for one in seen[2:]] == [receipt.snapshot for receipt in receipts]
    assert [one.at for one in seen] == [at(0), at(1), at(2), at(3)]
    assert receipts[1].snapshot == first.snapshot != receipts[0].snapshot
    info = registry.fabrics.clusters()[0]
    assert (info.observations, info.contents) == (4, 2)
    assert (info.first_observed_at, info.last_observed_at) == (at(0), at(3))


def test_a_fabric_is_read_as_of_a_time(registry: Registry) -> None:
    soon = 2 + 1 / 60_000_000  # a microsecond later
    for minute, fabric in ((0, A), (1, B), (2, A), (soon, B), (5, B), (5, C)):
        save(registry, fabric, minute)
    expected = {0: A, 0.5: A, 1: B, 1.99: B, 2: A, soon: B, 4.99: B, 5: C, 99: C}  # of one moment the later
    for minutes, fabric in expected.items():
        found = registry.fabrics.read("toy", at(minutes))
        assert content_hash(found.fabric) == content_hash(canonical(fabric))
        assert content_hash(subgraph(registry, "toy", at(minutes))) == content_hash(found.fabric)
    assert registry.fabrics.read("toy", at(soon)).observed_at == at(2) + timedelta(microseconds=1)
    early = r"not observed at or before 2025-12-31 23:59:00 UTC; its first scan is of 2026-01-01 00:00:00 UTC"
    with pytest.raises(UnknownName, match=early):
        registry.fabrics.read("toy", at(-1))


@given(seen=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=6), data=st.data())
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_order_the_derived_graph_is_the_same(registry: Registry, seen: Any, data: Any) -> None:
    in_time = [(minute, CONTENTS[index]) for minute, index in sorted(dict(seen).items())]
    arriving = data.draw(st.permutations(in_time))
    orderly, shuffled = (f"c{next(NUMBERS)}" for _ in range(2))
    for minute, fabric in in_time:
        save(registry, fabric, minute, cluster=orderly)
    for minute, fabric in arriving:
        save(registry, fabric, minute, cluster=shuffled)
    expected = derived(registry.database, orderly)
    assert derived(registry.database, shuffled) == expected
    for minute, fabric in in_time:
        assert content_hash(subgraph(registry, shuffled, at(minute))) == content_hash(canonical(fabric))
    registry.fabrics.rebuild(shuffled)
    assert derived(registry.database, shuffled) == expected


def test_a_graph_of_hundreds_of_states_is_rebuilt(embedded_database: Database) -> None:
    """ArcadeDB left one of 400 states out when they were deleted while they were looked up."""
    empty(embedded_database)
    registry = Registry(embedded_database)
    for number in range(6):
        renamed = {f"node{host:02}": f"x{host}" for host in range(0, 128, 2)} if number % 2 else {}
        fabric = fat_tree(leaves=8, hosts=16, renamed={"leaf0": f"l{number}", **renamed})
        save(registry, fabric, number)
    save(registry, A, 0, cluster="two")
    before, everything = derived(registry.database, "toy"), counts(registry.database)
    registry.fabrics.rebuild("toy")
    assert derived(registry.database, "toy") == before
    assert counts(registry.database) == everything  # of others and what points at devices


def test_intervals_are_half_open_and_the_last_is_open(registry: Registry) -> None:
    save(registry, A, 0)
    save(registry, B, 1)
    rows = registry.database.query(
        "MATCH (:Device {id: 'toy/0x0000000000b00000'})-[l:LINK]->(d:Device) "
        "RETURN d.name, l.valid_from, l.valid_to ORDER BY d.name, l.valid_from"
    )[1]
    assert rows == [
        ("node00", at(0), FOREVER),
        ("node01", at(0), at(1)),  # slower from then on
        ("node01", at(1), FOREVER),
        ("spine0", at(0), at(1)),
        ("spine1", at(0), FOREVER),
    ]


def test_a_rename_is_history_of_one_device(registry: Registry) -> None:
    save(registry, A, 0)
    save(registry, fat_tree(renamed={"leaf0": "new"}), 5)
    save(registry, fat_tree(renamed={"leaf0": "older"}), 3)
    rows = registry.database.query(
        "MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState) WHERE d.key = '0x0000000000b00000' "
        "RETURN d.name, s.name, s.valid_from ORDER BY s.valid_from"
    )[1]
    assert rows == [("new", "leaf0", at(0)), ("new", "older", at(3)), ("new", "new", at(5))]


def test_tables_are_those_seen_last(registry: Registry) -> None:
    with pytest.raises(UnknownName, match="ingest a scan of its fabric first"):
        save(registry, None, 0, tree_tables())
    first = save(registry, A, 0, tree_tables())
    with pytest.raises(UnknownName, match="was not observed at or before"):
        save(registry, None, -1, tree_tables())
    second = save(registry, None, 2, tree_tables(turn=1))
    save(registry, B, 4)
    late = save(registry, None, 3, tree_tables())
    expected = {0: first, 1: first, 2: second, 3: first, 4: first}
    for minute, receipt in expected.items():
        assert registry.fabrics.read("toy", at(minute)).routing == receipt.routing
    assert (second.snapshot, late.new_routing) == (first.snapshot, False)


def test_changes_contain_wiring_and_tables(registry: Registry) -> None:
    save(registry, A, 0, tree_tables())
    save(registry, B, 1, tree_tables(turn=1))
    shown = registry.fabrics.changes("toy", at(0), at(1))
    assert [cable.cables for cable in shown.cables_vanished] == [1]
    assert len(shown.capacity_changed) == 1
    assert shown.switches_rerouted == ("0x0000000000b00000", "0x0000000000b00001")
    assert (shown.start, shown.end) == (at(0), at(1))
    assert registry.fabrics.changes("toy", at(0), at(0.5)).empty
    assert registry.fabrics.changes("toy", at(0)) == shown


def test_a_subgraph_has_the_named_hosts_and_all_that_forwards(registry: Registry) -> None:
    save(registry, D, 0)
    found = registry.fabrics.subgraph("toy", ["node04", "node00"])
    assert [found.names[v] for v in found.hosts] == ["node00", "node04"]
    assert [found.names[v] for v in found.switches] == ["leaf0", "leaf1", "spine0", "spine1"]
    assert found.cable_count == 4 + 2 * 2
    assert len(found.adapters) == 4
    with pytest.raises(UnknownName) as caught:
        registry.fabrics.subgraph("toy", ["node00", "node9"])
    assert (caught.value.name, "node05" in caught.value.close) == ("node9", True)


def test_an_unknown_cluster_is_an_error_with_the_closest(registry: Registry) -> None:
    save(registry, A, 0)
    fabrics = registry.fabrics
    for work in (
        lambda: fabrics.read("toi"),
        lambda: fabrics.observations("toi"),
        lambda: fabrics.changes("toi", at(0)),
        lambda: fabrics.rebuild("toi"),
        lambda: fabrics.subgraph("toi", ["node00"]),
    ):
        with pytest.raises(UnknownName) as caught:
            work()
        assert (caught.value.kind, caught.value.close) == ("cluster", ("toy",))


def test_a_content_is_read_by_its_id(registry: Registry) -> None:
    receipt = save(registry, A, 0, tree_tables())
    save(registry, B, 1)
    assert receipt.snapshot is not None
    found = registry.fabrics.read_content(receipt.snapshot, receipt.routing)
    assert content_hash(found.fabric) == content_hash(canonical(A))
    assert found.fabric.tables is not None
    short = registry.fabrics.read_content(receipt.snapshot.split("/")[1][:8])
    assert (short.id, short.fabric.tables) == (receipt.snapshot, None)
    for unknown in (("toy/0",), (receipt.snapshot, "toy/0")):
        with pytest.raises(UnknownName):
            registry.fabrics.read_content(*unknown)


def test_clusters_are_listed_with_their_counts(registry: Registry) -> None:
    save(registry, D, 0, cluster="b")
    save(registry, A, 0, cluster="a")
    save(registry, C, 1, cluster="a")
    shown = [(c.name, c.hosts, c.switches, c.adapters, c.cables) for c in registry.fabrics.clusters()]
    assert shown == [("a", 6, 5, 6, 12), ("b", 6, 4, 12, 16)]
