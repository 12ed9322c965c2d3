"""Repaired forwarding tables: by hand on a small fat tree, and on random fabrics against walks and paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.forwarding_tables import TableArrays, walk_hops
from mapping.routing.repaired_tables import repair_tables
from mapping.traffic.device_names import link_text
from mapping.traffic.fabric_changes import Applied, Change, applied
from registry.errors import InvalidValue
from registry.model import Fabric
from tests.support.fat_tree import fat_tree, tree_tables
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import table_fabrics
from tests.support.table_walks import tables_of
from tests.support.traffic_jobs import two_leaves

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
    """Return the changed fabric with the old tables, and the repaired entries."""
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
    """Return the links from each switch that reaches a LID, by a search from its port."""
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
