"""Walks of forwarding tables that do not arrive, against slow walks and ibdmchk."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mapping.checks.finding import Severity
from mapping.routing.forwarding_tables import bound_tables
from registry.model import NO_ROUTE
from tests.support.checked_fabrics import findings_of
from tests.support.ibdmchk import ibdmchk
from tests.support.infiniband_data import SCANS, infiniband
from tests.support.launchers import require
from tests.support.table_walks import all_walks, broken, tables_of

ROUTED = sorted(SCANS)


WORDS = {
    "no entry": "unrouted",
    "without a cable": "not cabled",
    "another device": "wrong",
    "loop through": "loops",
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["fattree2-64-traffic", "irregular-16sw-updown", "irregular-16sw-lmc1"])
def test_walks_that_do_not_arrive_are_counted_as_a_slow_walk_counts_them(name: str, seed: int) -> None:
    fabric = broken(name, seed)
    expected = Counter(end for end, _ in all_walks(fabric))
    del expected["delivered"]
    counted: Counter[str] = Counter()
    for finding in findings_of(fabric, "reachability"):
        (end,) = {end for words, end in WORDS.items() if words in finding.text}
        counted[end] += finding.count
        assert finding.severity is Severity.ERROR
    assert counted == expected


@pytest.mark.parametrize("name", ROUTED)
def test_tables_of_a_subnet_manager_deliver_everything(name: str) -> None:
    assert not findings_of(infiniband(name), "reachability")


def test_a_finding_of_a_loop_names_one_of_its_switches_and_a_path_into_it() -> None:
    fabric = infiniband("fattree2-64-traffic")
    tables = tables_of(fabric)
    leaf, spine = (
        int(np.flatnonzero(tables.switch_guid == fabric.guid[v])[0])
        for v in fabric.vertices(["leaf01", "spine01"], kind="switch")
    )
    bound = bound_tables(fabric)
    (up,) = [
        p
        for p in range(256)
        if bound.port_link[leaf, p] >= 0 and bound.link_switch[bound.port_link[leaf, p]] == spine
    ]
    (down,) = [
        p
        for p in range(256)
        if bound.port_link[spine, p] >= 0 and bound.link_switch[bound.port_link[spine, p]] == leaf
    ]
    ports = np.array(tables.ports)
    lid = int(np.flatnonzero(bound.lid_port >= 0)[0])
    ports[leaf, lid], ports[spine, lid] = up, down
    (finding,) = findings_of(replace(fabric, tables=replace(tables, ports=ports)), "reachability")
    assert "packets loop through leaf01" in finding.text or "packets loop through spine01" in finding.text
    assert f"to LID {lid} of" in finding.text


@pytest.mark.parametrize("missing", [0, 3])
def test_ibdmchk_finds_the_pairs_without_a_way(missing: int, tmp_path: Path) -> None:
    """Routes of some leaf switches to one host are taken away: as many pairs a leaf as it has hosts."""
    require("ibdmchk")
    fabric = infiniband("fattree2-64-traffic")
    tables, bound = tables_of(fabric), bound_tables(fabric)
    ports = np.array(tables.ports)
    lid = int(np.flatnonzero(bound.lid_port >= 0)[0])
    leaves = [
        s for s in range(len(ports)) if any(bound.link_port[k] >= 0 for k in bound.port_link[s] if k >= 0)
    ]
    others = [s for s in leaves if bound.link_port[bound.port_link[s, ports[s, lid]]] < 0]
    ports[others[:missing], lid] = NO_ROUTE
    cut = replace(fabric, tables=replace(tables, ports=ports))
    output = ibdmchk(cut, tmp_path)
    match = re.search(r"-E- Found (\d+) missing paths", output)
    lost = int(match[1]) if match else 0
    hanging = [int((bound.link_port[bound.port_link[s][bound.port_link[s] >= 0]] >= 0).sum()) for s in others]
    assert lost == sum(hanging[:missing])
    assert sum(finding.count for finding in findings_of(cut, "reachability")) == missing
