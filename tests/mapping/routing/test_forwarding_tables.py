"""Loads along forwarding tables, against truth files and an independent walk; with two LIDs a port."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.routes.dialects import DUMP_FTS, FDBS
from ingest.generate.tori import mesh
from mapping.evaluation.metrics import evaluate
from mapping.routing import forwarding_tables
from mapping.routing.catalog import choose_routing
from mapping.selfcheck.oracles import table_route
from registry.errors import UnreachablePair
from registry.model import NO_ROUTE, Fabric, Floats, HostOrder, Longs, Profile
from tests.support.flow_checks import check_flows, check_loads, on_links
from tests.support.infiniband_data import DATA, SCANS, infiniband
from tests.support.inputs import parse, read
from tests.support.small_fabrics import table_fabrics

RAILS = st.sampled_from(["all-connected", "same-rail"])
TREE, LMC = infiniband("fattree2-64-traffic"), infiniband("fattree2-64-lmc1")


def test_every_link_of_the_truth_file_carries_its_bytes() -> None:
    truth = json.loads((DATA / "infiniband/fattree2-64-traffic/truth.json").read_text())
    fabric, profile = TREE, Profile.from_edges(*np.array(truth["traffic"]).T)
    hosts = tuple(name.split()[0] for name in truth["hosts"])
    found = evaluate(fabric, profile, HostOrder(hosts=hosts).on(fabric))
    assert found.routing == "tables"
    links, adapters = fabric.links, fabric.adapters
    by_port = {}
    for row in np.flatnonzero(found.link_bytes):
        adapter = links.source_adapter[row]
        guid = adapters.guid[adapter] if adapter >= 0 else fabric.guid[links.source[row]]
        by_port[f"{int(guid):016x}/{links.source_port[row]}"] = int(found.link_bytes[row])
    assert by_port == truth["link_bytes"]
    assert found.hop_bytes == truth["hop_bytes"]
    assert found.average_dilation == truth["avg_dilation"]
    assert found.link_bytes[fabric.network_link].max() == truth["max_switch_link_bytes"]


def check(fabric: Fabric, hosts: Longs, rails: str = "all-connected") -> bool:
    """Compare routes with an independent walk, and return True if they connect all hosts."""

    def byte_between(i: int, j: int) -> Floats | None:
        return on_links(fabric, table_route(fabric, i, j, rails))

    routes = forwarding_tables.build(fabric, hosts, rails=rails)
    check_loads(routes, byte_between, UnreachablePair)
    check_flows(routes)
    return routes.connected


@pytest.mark.parametrize("name", SCANS)
def test_real_tables_are_complete_and_loads_those_of_an_independent_walk(name: str) -> None:
    fabric = infiniband(name)
    assert check(fabric, np.random.default_rng(1).choice(fabric.hosts, 5, replace=False))
    assert forwarding_tables.complete(fabric)
    assert choose_routing(fabric)[0] == "tables"


@given(fabric=table_fabrics(), rails=RAILS)
def test_tables_along_shortest_ways_are_complete(fabric: Fabric, rails: str) -> None:
    assert check(fabric, fabric.hosts, rails) or rails == "same-rail"
    assert forwarding_tables.complete(fabric)


@given(fabric=table_fabrics(broken=True), rails=RAILS)
def test_loads_on_random_tables_are_those_of_an_independent_walk(fabric: Fabric, rails: str) -> None:
    check(fabric, fabric.hosts, rails)


def with_entry(fabric: Fabric, host: str, entry: int, *, of: int | None = None) -> Fabric:
    """The fabric with the entries for a host's LID replaced: in one switch's table, or in all."""
    tables = fabric.tables
    assert tables is not None
    adapter = int(np.flatnonzero(fabric.adapters.host == fabric.vertices([host])[0])[0])
    port = int(np.flatnonzero(fabric.adapters.port_adapter == adapter)[0])
    lid = int(np.flatnonzero(tables.lid_guid == fabric.adapters.port_guid[port])[0])
    ports = tables.ports.copy()
    ports[slice(None) if of is None else of, lid] = entry
    return replace(fabric, tables=replace(tables, ports=ports))


def test_a_destination_that_a_table_lacks_is_reported_with_switch_and_lid() -> None:
    fabric = with_entry(TREE, "node0009", NO_ROUTE)
    hosts = fabric.vertices(["node0001", "node0009"])
    routes = forwarding_tables.build(fabric, hosts)
    with pytest.raises(UnreachablePair, match="has no route for LID") as caught:
        routes.link_bytes([1, 0], [0, 1], [1.0, 1.0])
    assert (caught.value.source, caught.value.target) == ("node0001", "node0009")
    assert not forwarding_tables.complete(fabric)
    assert choose_routing(fabric) == (
        "shortest-paths",
        "the fabric's forwarding tables do not connect all of its hosts",
    )


def test_a_table_that_sends_to_another_host_is_an_error() -> None:
    fabric = with_entry(TREE, "node0009", 1)
    routes = forwarding_tables.build(fabric, fabric.vertices(["node0002", "node0009"]))
    with pytest.raises(UnreachablePair, match="ends at 'node0001'"):
        routes.link_bytes([0], [1], [1.0])


def test_a_loop_is_an_error() -> None:
    fabric = TREE
    tables, links = fabric.tables, fabric.links
    assert tables is not None
    leaf = int(links.target[np.flatnonzero(links.source == fabric.vertices(["node0001"])[0])[0]])
    up = int(np.flatnonzero((links.source == leaf) & fabric.network_link)[0])
    leaf_row = int(np.flatnonzero(tables.switch_guid == fabric.guid[leaf])[0])
    spine_row = int(np.flatnonzero(tables.switch_guid == fabric.guid[links.target[up]])[0])
    fabric = with_entry(fabric, "node0009", int(links.source_port[up]), of=leaf_row)
    fabric = with_entry(fabric, "node0009", int(links.target_port[up]), of=spine_row)
    routes = forwarding_tables.build(fabric, fabric.vertices(["node0001", "node0009"]))
    with pytest.raises(UnreachablePair, match="loops"):
        routes.link_bytes([0], [1], [1.0])


PORT_LIDS, PORT_GUIDS = np.roll(TREE.adapters.port_lid, 1), TREE.adapters.port_guid + np.uint64(7 << 40)


@pytest.mark.parametrize(
    "changed", [{"port_guid": PORT_GUIDS}, {"port_lid": PORT_LIDS}], ids=["unknown guid", "lid that moved"]
)
def test_a_port_is_found_by_its_guid_or_its_lid(changed: dict[str, Any]) -> None:
    other = replace(TREE, adapters=replace(TREE.adapters, **changed))
    i, j = np.array([(0, 7), (3, 2), (6, 1)]).T
    expected, found = (
        forwarding_tables.build(one, one.hosts).link_bytes(i, j, np.ones(3)) for one in (TREE, other)
    )
    np.testing.assert_array_equal(found, expected)


def test_a_fabric_without_tables_is_routed_by_shortest_paths() -> None:
    assert choose_routing(mesh((2,))) == ("shortest-paths", "the fabric has no forwarding tables")


@pytest.mark.parametrize(
    ("parser", "name"),
    [(FDBS, "opensm.fdbs.gz"), (DUMP_FTS, "dump_fts.txt.gz"), (DUMP_FTS, "dump_fts-n.txt.gz")],
    ids=["fdbs", "dump_fts", "dump_fts -n"],
)
def test_tables_that_name_no_owners_split_the_load_alike(parser: object, name: str) -> None:
    tables = parse(parser, read(f"infiniband/fattree2-64-lmc1/{name}")).tables  # type: ignore[arg-type]
    hosts = LMC.hosts[::5]
    known = forwarding_tables.build(LMC, hosts)
    other = forwarding_tables.build(replace(LMC, tables=tables), hosts)
    source, target = np.nonzero(~np.eye(len(hosts), dtype=bool))
    amounts = np.arange(1.0, len(source) + 1)
    assert np.array_equal(
        known.link_bytes(source, target, amounts), other.link_bytes(source, target, amounts)
    )
