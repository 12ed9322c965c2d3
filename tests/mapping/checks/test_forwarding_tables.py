"""Walks that do not arrive and cycles of waiting cables, against slow walks and ibdmchk."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from mapping.checks.finding import Severity
from mapping.checks.forwarding_tables import switch_channels, waiting_graph
from mapping.routing.forwarding_tables import bound_tables
from registry.model import NO_ROUTE
from tests.support.checked_fabrics import findings_of
from tests.support.infiniband_data import SCANS, infiniband
from tests.support.launchers import require
from tests.support.table_walks import all_walks, broken, ibdmchk, tables_of

WALKED = ("fattree2-64-traffic", "irregular-16sw-updown", "torus-4x4x4-dor")
WORDS = {"no entry": "unrouted", "without a cable": "not cabled", "loop through": "loops"}
WORDS["another device"] = "wrong"


@pytest.mark.parametrize("seed", range(3))
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


def test_a_finding_of_a_loop_names_one_of_its_switches_and_a_path_into_it() -> None:
    fabric = infiniband("fattree2-64-traffic")
    tables, bound = tables_of(fabric), bound_tables(fabric)
    leaf, spine = (
        int(np.flatnonzero(tables.switch_guid == fabric.guid[v])[0])
        for v in fabric.vertices(["leaf01", "spine01"], kind="switch")
    )
    onward = np.where(bound.port_link >= 0, bound.link_switch[bound.port_link], -1)
    ports, lid = np.array(tables.ports), int(np.flatnonzero(bound.lid_port >= 0)[0])
    for switch, other in ((leaf, spine), (spine, leaf)):
        (ports[switch, lid],) = np.flatnonzero(onward[switch] == other)
    (finding,) = findings_of(replace(fabric, tables=replace(tables, ports=ports)), "reachability")
    assert "packets loop through leaf01" in finding.text or "packets loop through spine01" in finding.text
    assert f"to LID {lid} of" in finding.text


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("missing", [0, 3])
def test_ibdmchk_finds_the_pairs_without_a_way(missing: int, tmp_path: Path) -> None:
    """Routes of some leaf switches to one host are taken away: as many pairs a leaf as it has hosts."""
    require("ibdmchk")
    fabric = infiniband("fattree2-64-traffic")
    tables, bound = tables_of(fabric), bound_tables(fabric)
    ports = np.array(tables.ports)
    lid = int(np.flatnonzero(bound.lid_port >= 0)[0])
    to_host = (bound.port_link >= 0) & (bound.link_port[bound.port_link] >= 0)
    leaves = np.flatnonzero(to_host.any(axis=1)).tolist()
    others = [s for s in leaves if bound.link_port[bound.port_link[s, ports[s, lid]]] < 0]
    ports[others[:missing], lid] = NO_ROUTE
    cut = replace(fabric, tables=replace(tables, ports=ports))
    output = ibdmchk(cut, tmp_path)
    match = re.search(r"-E- Found (\d+) missing paths", output)
    lost = int(match[1]) if match else 0
    hanging = to_host[others].sum(axis=1).tolist()
    assert lost == sum(hanging[:missing])
    assert sum(finding.count for finding in findings_of(cut, "reachability")) == missing


@pytest.mark.parametrize("name", WALKED)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_waits_are_those_of_all_walks(name: str, seed: int | None) -> None:
    fabric = infiniband(name) if seed is None else broken(name, seed)
    bound = bound_tables(fabric)
    channels = switch_channels(fabric, bound)
    graph = waiting_graph(bound, channels)
    expected: nx.DiGraph[int] = nx.DiGraph()
    for _, links in all_walks(fabric):
        between = [link for link in links if bound.link_switch[link] >= 0]
        expected.add_edges_from(pairwise(between))
    holds, wanted = (channels[ends].tolist() for ends in graph.nonzero())
    got = set(zip(holds, wanted, strict=True))
    # a walk that goes astray comes back to where it was: its last wait may be seen once more
    assert got >= set(expected.edges)
    if seed is None:
        assert got == set(expected.edges)
        knots = sorted(len(knot) for knot in nx.strongly_connected_components(expected) if len(knot) > 1)
        assert sorted(finding.count for finding in findings_of(fabric, "credit-loops")) == knots


@pytest.mark.parametrize("name", SCANS)
def test_tables_of_a_subnet_manager_deliver_everything_and_a_reported_cycle_is_a_cycle(name: str) -> None:
    assert not findings_of(infiniband(name), "reachability")
    for finding in findings_of(infiniband(name), "credit-loops"):
        cables = finding.text.split(": ", 1)[1].split("; ")
        ends = [re.fullmatch(r"(\S+):\d+ - (\S+):\d+", cable) for cable in cables]
        switches = [(end[1], end[2]) for end in ends if end]
        assert len(switches) == len(cables)
        for (_, arrives), (leaves, _) in zip(switches, [*switches[1:], switches[0]], strict=True):
            assert arrives == leaves


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("name", WALKED)
def test_ibdmchk_finds_credit_loops_where_we_do(name: str, tmp_path: Path) -> None:
    require("ibdmchk")
    fabric = infiniband(name)
    output = ibdmchk(fabric, tmp_path)
    hosts = len(fabric.hosts)
    assert f"Scanned:{hosts * (hosts - 1)} CA to CA paths" in output
    found = bool(findings_of(fabric, "credit-loops"))
    assert ("Found credit loop" in output, "no credit loops found" in output) == (found, not found)
