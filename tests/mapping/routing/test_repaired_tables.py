"""Repaired forwarding tables: by hand on a small fat tree, and on random fabrics against walks and paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.forwarding_tables import TableArrays, walk_hops
from mapping.routing.repaired_tables import repair_tables
from mapping.traffic.device_names import link_text
from mapping.traffic.fabric_changes import Applied, Change, applied
from registry.errors import InvalidValue
from registry.model import HOST, SWITCH, Adapters, Fabric, ForwardingTables, Links
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import table_fabrics
from tests.support.traffic_jobs import two_leaves

HOSTS = 8
LEAF_A, LEAF_B, SPINE_1, SPINE_2, SPINE_3 = range(5)
"""Rows of the tables of `fat_tree`."""


def fat_tree() -> Fabric:
    """Return hosts 0-3 on leaf A, 4-7 on leaf B, and three spines with a cable to each leaf.

    Host i has LID i + 1; leaves reach it by port i % 4 + 1. Leaf ports 5, 6 and 7 lead to spines 1, 2 and 3,
    whose ports 1 and 2 lead to leaves A and B. Leaf A sends LIDs 5 and 6 over spine 1, 7 over spine 2 and 8
    over spine 3; leaf B sends LIDs 1 and 2 over spine 1, 3 over spine 2 and 4 over spine 3.
    """
    cables = [(i, 8 + i // 4, 1, i % 4 + 1, i) for i in range(HOSTS)]
    cables += [(8 + leaf, 10 + spine, 5 + spine, leaf + 1, -1) for leaf in (0, 1) for spine in (0, 1, 2)]
    a, b, near, far, adapter = (list(column) for column in zip(*cables, strict=True))
    none = [-1] * len(cables)
    links = Links.of(
        a + b,
        b + a,
        1.0,
        source_port=near + far,
        target_port=far + near,
        source_adapter=adapter + none,
        target_adapter=none + adapter,
    )
    ports = np.zeros((5, HOSTS + 1), np.uint8)
    ports[LEAF_A, 1:], ports[LEAF_B, 1:] = [1, 2, 3, 4, 5, 5, 6, 7], [5, 5, 6, 7, 1, 2, 3, 4]
    ports[2:, 1:5], ports[2:, 5:] = 1, 2
    owner = np.r_[np.uint64(0), 200 + np.arange(HOSTS, dtype=np.uint64)]
    return Fabric(
        names=(*(f"h{i}" for i in range(HOSTS)), "A", "B", "S1", "S2", "S3"),
        kind=np.r_[np.full(HOSTS, HOST), np.full(5, SWITCH)],
        slots=np.r_[np.ones(HOSTS, int), np.zeros(5, int)],
        forwards=np.arange(13) >= HOSTS,
        guid=np.r_[np.zeros(HOSTS, np.uint64), np.arange(1, 6, dtype=np.uint64)],
        lid=np.zeros(13, int),
        links=links,
        adapters=Adapters(
            names=tuple(f"hca{i}" for i in range(HOSTS)),
            guid=100 + np.arange(HOSTS, dtype=np.uint64),
            system_guid=np.zeros(HOSTS, np.uint64),
            host=np.arange(HOSTS, dtype=np.int32),
            port_adapter=np.arange(HOSTS, dtype=np.int32),
            port_number=np.ones(HOSTS, np.int32),
            port_guid=200 + np.arange(HOSTS, dtype=np.uint64),
            port_lid=1 + np.arange(HOSTS, dtype=np.int32),
            port_lmc=np.zeros(HOSTS, int),
        ),
        tables=ForwardingTables(switch_guid=np.arange(1, 6, dtype=np.uint64), ports=ports, lid_guid=owner),
    )


def changed(fabric: Fabric, change: Change) -> tuple[Applied, np.ndarray]:
    """Return the changed fabric with the old tables, and the repaired entries."""
    rows = applied(fabric, change, keep_tables=True)
    found = repair_tables(rows.fabric, np.flatnonzero(rows.row_before < 0)).tables
    assert found is not None
    return rows, found.ports


def test_routes_over_a_removed_spine_go_to_the_ports_with_fewest_lids() -> None:
    _, ports = changed(fat_tree(), Change(down_switches=("S1",)))
    # LIDs 5 and 6 go to ports 6 and 7 in turn: both held one LID
    assert ports[LEAF_A, 1:].tolist() == [1, 2, 3, 4, 6, 7, 6, 7]
    assert ports[LEAF_B, 1:].tolist() == [6, 7, 6, 7, 1, 2, 3, 4]


def test_only_the_entries_that_use_a_removed_cable_change() -> None:
    before = fat_tree()
    assert before.tables is not None
    _, ports = changed(before, Change(down_links=("A:6",)))  # to spine 2
    assert ports[LEAF_A, 1:].tolist() == [1, 2, 3, 4, 5, 5, 7, 7]  # port 7 held one, port 5 two
    # spine 2 has no cable to leaf A: LID 3 takes another spine at leaf B, and spine 2 a way back over B
    assert ports[LEAF_B, 1:].tolist() == [5, 5, 7, 7, 1, 2, 3, 4]
    assert ports[SPINE_2, 1:5].tolist() == [2, 2, 2, 2]
    assert ports[SPINE_1].tolist() == before.tables.ports[SPINE_1].tolist()


def test_an_added_cable_takes_lids_until_the_ports_are_balanced() -> None:
    rows, ports = changed(fat_tree(), Change(added=("A:S1",)))
    new = int(np.flatnonzero((rows.row_before < 0) & (rows.fabric.links.source == HOSTS + LEAF_A))[0])
    assert int(rows.fabric.links.source_port[new]) == 8
    assert ports[LEAF_A, 5:].tolist() == [8, 5, 6, 7]  # one of the two LIDs of port 5
    back = [port for port in ports[SPINE_1, 1:5].tolist() if port != 1]
    assert len(back) == 2  # half of the four LIDs of the first cable
    assert ports[SPINE_1, 5:].tolist() == [2, 2, 2, 2]


def test_a_shorter_path_is_taken_by_all_lids() -> None:
    rows, ports = changed(fat_tree(), Change(added=("A:B",)))
    assert ports[LEAF_A].tolist()[5:] == [8, 8, 8, 8]
    assert ports[LEAF_B].tolist()[1:5] == [8, 8, 8, 8]
    assert rows.fabric.tables is not None
    assert np.array_equal(ports[2:], rows.fabric.tables.ports[2:])


def test_a_host_without_a_cable_leaves_all_entries_alone() -> None:
    before = fat_tree()
    assert before.tables is not None
    _, ports = changed(before, Change(down_links=("A:1",)))
    assert np.array_equal(ports, before.tables.ports)


def test_a_fabric_without_tables_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no forwarding tables"):
        repair_tables(two_leaves(), np.zeros(0, np.int64))


@pytest.mark.parametrize("name", ["fattree2-64-traffic"])
def test_without_a_change_real_tables_stay(name: str) -> None:
    fabric = infiniband(name)
    assert fabric.tables is not None
    found = repair_tables(fabric, np.zeros(0, np.int64)).tables
    assert found is not None
    assert np.array_equal(found.ports, fabric.tables.ports)


@settings(deadline=None)
@given(table_fabrics(), st.data())
def test_working_walks_stay_and_reachable_lids_are_reached(fabric: Fabric, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(fabric.links) - 1))
    switches = [fabric.names[vertex] for vertex in fabric.switches.tolist()]
    ends = data.draw(st.lists(st.permutations(switches), max_size=2))
    added = tuple(f"{one[0]}:{one[1]}" for one in ends if len(one) > 1)
    rows, ports = changed(fabric, Change(down_links=(link_text(fabric, row),), added=added))
    old = bound_tables(rows.fabric)
    assert rows.fabric.tables is not None
    new = bound_tables(replace(rows.fabric, tables=replace(rows.fabric.tables, ports=ports)))
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
