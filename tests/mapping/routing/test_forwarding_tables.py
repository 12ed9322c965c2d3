"""Loads along forwarding tables, against truth files and independent walks; and repaired tables."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.routes import DUMP_FTS, FDBS
from ingest.generate.direct import mesh
from mapping.cost.metrics import evaluate
from mapping.routing import forwarding_tables
from mapping.routing.catalog import choose_routing
from mapping.routing.forwarding_tables import bound_tables, repair_tables
from mapping.routing.kernels.forwarding_tables import TableArrays, walk_hops
from mapping.selfcheck.oracles import table_route
from mapping.traffic.names import link_text
from mapping.traffic.what_if import Applied, Change, applied
from registry.errors import InvalidValue, UnreachablePair
from registry.model import NO_ROUTE, Fabric, Floats, HostOrder, Longs, Profile
from tests.support.checked_fabrics import tables_of
from tests.support.fat_tree import fat_tree, tree_tables
from tests.support.flow_checks import check_flows, check_loads, on_links
from tests.support.infiniband_data import DATA, SCANS, infiniband
from tests.support.inputs import parse, read
from tests.support.small_fabrics import table_fabrics
from tests.support.sure import sure
from tests.support.traffic_jobs import two_leaves

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
    tables = sure(fabric.tables)
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
    known, found = (forwarding_tables.build(one, one.hosts) for one in (TREE, other))
    sent = i, j, np.ones(3)
    np.testing.assert_array_equal(found.link_bytes(*sent), known.link_bytes(*sent))


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
    sent = source, target, np.arange(1.0, len(source) + 1)
    assert np.array_equal(known.link_bytes(*sent), other.link_bytes(*sent))


LEAF_A, LEAF_B, SPINE_0, SPINE_1, SPINE_2 = range(5)
"""Rows of the tables of `tree`."""
FIRST = 6
"""First LID of a host."""


def tree() -> Fabric:
    """Return four hosts on each of two leaves, and three spines with a cable to each leaf.

    Leaves reach their hosts, in the order of LIDs, by ports 1 to 4; ports 5, 6 and 7 lead to spines 0, 1 and
    2, whose ports 1 and 2 lead to both leaves. Of the other's hosts each leaf reaches two over spine 0, one
    over spine 1 and one over spine 2.
    """
    tables = tree_tables(2, 3, 4)
    ports = tables.ports.copy()
    ports[LEAF_A, FIRST:], ports[LEAF_B, FIRST:] = [1, 2, 3, 4, 5, 5, 6, 7], [5, 5, 6, 7, 1, 2, 3, 4]
    return replace(fat_tree(2, 3, 4), tables=replace(tables, ports=ports))


def changed(fabric: Fabric, change: Change) -> tuple[Applied, np.ndarray]:
    rows = applied(fabric, change, keep_tables=True)
    return rows, tables_of(repair_tables(rows.fabric, np.flatnonzero(rows.row_before < 0))).ports


def test_routes_over_a_removed_spine_go_to_the_ports_with_fewest_lids() -> None:
    _, ports = changed(tree(), Change(down_switches=("spine0",)))
    # its two LIDs go to ports 6 and 7 in turn: both held one LID
    assert ports[LEAF_A, FIRST:].tolist() == [1, 2, 3, 4, 6, 7, 6, 7]
    assert ports[LEAF_B, FIRST:].tolist() == [6, 7, 6, 7, 1, 2, 3, 4]


def test_only_the_entries_that_use_a_removed_cable_change() -> None:
    before = tables_of(tree()).ports
    _, ports = changed(tree(), Change(down_links=("leaf0:6",)))  # to spine 1
    assert ports[LEAF_A, FIRST:].tolist() == [1, 2, 3, 4, 5, 5, 7, 7]  # port 7 held one, port 5 two
    # spine 1 has no cable to leaf A: its LID takes another spine at leaf B, and spine 1 a way back over B
    assert ports[LEAF_B, FIRST:].tolist() == [5, 5, 7, 7, 1, 2, 3, 4]
    assert ports[SPINE_1, FIRST : FIRST + 4].tolist() == [2, 2, 2, 2]
    assert ports[SPINE_0].tolist() == before[SPINE_0].tolist()


def test_an_added_cable_takes_lids_until_the_ports_are_balanced() -> None:
    rows, ports = changed(tree(), Change(added=("leaf0:spine0",)))
    (leaf,) = rows.fabric.vertices(["leaf0"], kind="switch")
    new = int(np.flatnonzero((rows.row_before < 0) & (rows.fabric.links.source == leaf))[0])
    assert int(rows.fabric.links.source_port[new]) == 8
    assert ports[LEAF_A, FIRST + 4 :].tolist() == [8, 5, 6, 7]  # one of the two LIDs of port 5
    back = [port for port in ports[SPINE_0, FIRST : FIRST + 4].tolist() if port != 1]
    assert len(back) == 2  # half of the four LIDs of the first cable
    assert ports[SPINE_0, FIRST + 4 :].tolist() == [2, 2, 2, 2]


def test_a_shorter_path_is_taken_by_all_lids() -> None:
    rows, ports = changed(tree(), Change(added=("leaf0:leaf1",)))
    assert ports[LEAF_A, FIRST + 4 :].tolist() == [8, 8, 8, 8]
    assert ports[LEAF_B, FIRST : FIRST + 4].tolist() == [8, 8, 8, 8]
    assert np.array_equal(ports[SPINE_0:], tables_of(rows.fabric).ports[SPINE_0:])


def test_a_host_without_a_cable_and_no_change_leave_all_entries_alone() -> None:
    _, ports = changed(tree(), Change(down_links=("leaf0:1",)))
    assert np.array_equal(ports, tables_of(tree()).ports)
    real = infiniband("fattree2-64-traffic")
    found = repair_tables(real, np.zeros(0, np.int64))
    assert np.array_equal(tables_of(found).ports, tables_of(real).ports)


def test_a_fabric_without_tables_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no forwarding tables"):
        repair_tables(two_leaves(), np.zeros(0, np.int64))


@given(table_fabrics(), st.data())
def test_working_walks_stay_and_reachable_lids_are_reached(fabric: Fabric, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(fabric.links) - 1))
    switches = [fabric.names[vertex] for vertex in fabric.switches.tolist()]
    ends = data.draw(st.lists(st.permutations(switches), max_size=2))
    added = tuple(f"{one[0]}:{one[1]}" for one in ends if len(one) > 1)
    rows, ports = changed(fabric, Change(down_links=(link_text(fabric, row),), added=added))
    old = bound_tables(rows.fabric)
    new = bound_tables(replace(rows.fabric, tables=replace(tables_of(rows.fabric), ports=ports)))
    for lid in np.flatnonzero(old.lid_port >= 0).tolist():
        lengths = {switch: walk_hops(old, switch, lid) for switch in range(len(old.ports))}
        reached = fewest_links(old, lid)
        for switch, length in lengths.items():
            now = walk_hops(new, switch, lid)
            assert (now > 0) == (switch in reached)
            if length > 0:
                assert now <= length
                if not added:
                    assert ports[switch, lid] == old.ports[switch, lid]
            elif now > 0:
                assert now >= reached[switch]


def fewest_links(bound: TableArrays, lid: int) -> dict[int, int]:
    port_link, link_switch = bound.port_link, bound.link_switch
    ways = [(s, int(row)) for s in range(len(port_link)) for row in port_link[s] if row >= 0]
    wanted = bound.lid_port[lid]
    found = {s: 1 for s, row in ways if bound.link_port[row] == wanted}
    for length in range(2, len(port_link) + 2):
        nearer = {s for s, at in found.items() if at == length - 1}
        for s, row in ways:
            if s not in found and int(link_switch[row]) in nearer:
                found[s] = length
    return found
