"""Loads along forwarding tables, against truth files and an independent walk."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.evaluation.metrics import evaluate
from mapping.routing import forwarding_tables
from mapping.routing.catalog import build_routes, choose_routing
from mapping.selfcheck.oracles import table_route
from registry.errors import InvalidValue, UnknownName, UnreachablePair
from registry.model import NO_ROUTE, Fabric, HostOrder, Profile
from tests.support.infiniband_data import DATA, SCANS, infiniband
from tests.support.small_fabrics import table_fabrics

RAILS = st.sampled_from(["all-connected", "same-rail"])


def test_every_link_of_the_truth_file_carries_its_bytes() -> None:
    truth = json.loads((DATA / "infiniband/fattree2-64-traffic/truth.json").read_text())
    fabric = infiniband("fattree2-64-traffic")
    profile = Profile.from_edges(*np.array(truth["traffic"]).T)
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


@pytest.mark.parametrize("name", SCANS)
def test_loads_on_real_tables_are_those_of_an_independent_walk(name: str) -> None:
    fabric = infiniband(name)
    rng = np.random.default_rng(1)
    hosts = np.sort(rng.choice(fabric.hosts, 12, replace=False))
    routes = forwarding_tables.build(fabric, hosts)
    for i, j in rng.integers(0, 12, (24, 2)):
        route = table_route(fabric, int(hosts[i]), int(hosts[j])) if i != j else []
        assert route is not None
        expected = np.zeros(len(fabric.links))
        for row, part in route:
            expected[row] += part
        np.testing.assert_allclose(routes.link_bytes([i], [j], [1.0]), expected, atol=1e-15)
        np.testing.assert_allclose(routes.distances[i, j], expected.sum())


@pytest.mark.parametrize("name", SCANS)
def test_real_tables_are_complete(name: str) -> None:
    fabric = infiniband(name)
    assert forwarding_tables.complete(fabric)
    assert choose_routing(fabric)[0] == "tables"


@given(fabric=st.one_of(table_fabrics(), table_fabrics(broken=True)), rails=RAILS)
def test_loads_on_random_tables_are_those_of_an_independent_walk(fabric: Fabric, rails: str) -> None:
    routes = forwarding_tables.build(fabric, fabric.hosts, rails=rails)
    reached = True
    for i, j in np.ndindex(len(routes.hosts), len(routes.hosts)):
        if i == j:
            continue
        route = table_route(fabric, int(routes.hosts[i]), int(routes.hosts[j]), rails)
        if route is None:
            reached = False
            with pytest.raises(UnreachablePair):
                routes.link_bytes([i], [j], [1.0])
            assert routes.distances[i, j] == np.inf
            continue
        expected = np.zeros(len(fabric.links))
        for row, part in route:
            expected[row] += 8.0 * part
        load = routes.load([i], [j], [8.0])
        np.testing.assert_allclose(load.link_bytes, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(routes.distances[i, j], expected.sum() / 8.0)
    assert routes.connected == reached


@given(fabric=table_fabrics())
def test_tables_along_shortest_ways_are_complete(fabric: Fabric) -> None:
    assert forwarding_tables.complete(fabric)


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
    fabric = with_entry(infiniband("fattree2-64-traffic"), "node0009", NO_ROUTE)
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
    fabric = with_entry(infiniband("fattree2-64-traffic"), "node0009", 1)
    routes = forwarding_tables.build(fabric, fabric.vertices(["node0002", "node0009"]))
    with pytest.raises(UnreachablePair, match="ends at 'node0001'"):
        routes.link_bytes([0], [1], [1.0])


def test_a_loop_is_an_error() -> None:
    fabric = infiniband("fattree2-64-traffic")
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


def test_port_guids_that_the_tables_do_not_know_fall_back_to_the_lids_of_the_scan() -> None:
    fabric = infiniband("fattree2-64-traffic")
    renamed = replace(
        fabric, adapters=replace(fabric.adapters, port_guid=fabric.adapters.port_guid + np.uint64(7 << 40))
    )
    hosts = fabric.hosts[:8]
    pairs = np.array([(0, 7), (3, 2), (6, 1)]).T
    expected = forwarding_tables.build(fabric, hosts).link_bytes(pairs[0], pairs[1], np.ones(3))
    found = forwarding_tables.build(renamed, hosts).link_bytes(pairs[0], pairs[1], np.ones(3))
    np.testing.assert_array_equal(found, expected)


def test_a_lid_that_moved_is_found_by_its_guid() -> None:
    fabric = infiniband("fattree2-64-traffic")
    moved = replace(fabric, adapters=replace(fabric.adapters, port_lid=np.roll(fabric.adapters.port_lid, 1)))
    pairs = np.array([(0, 7), (3, 2), (6, 1)]).T
    expected = forwarding_tables.build(fabric, fabric.hosts).link_bytes(pairs[0], pairs[1], np.ones(3))
    found = forwarding_tables.build(moved, fabric.hosts).link_bytes(pairs[0], pairs[1], np.ones(3))
    np.testing.assert_array_equal(found, expected)


def test_a_fabric_without_tables_is_refused_and_routed_by_shortest_paths() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    assert choose_routing(fabric) == ("shortest-paths", "the fabric has no forwarding tables")
    with pytest.raises(InvalidValue, match="no forwarding tables"):
        build_routes("tables", fabric, [0, 1])


def test_an_unknown_routing_is_refused_with_the_known_ones() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    with pytest.raises(UnknownName, match="tables"):
        build_routes("table", fabric, [0, 1])
