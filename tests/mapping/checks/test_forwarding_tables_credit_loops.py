"""Cycles of waiting cables, against all walks and ibdmchk."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

from mapping.checks.forwarding_tables import switch_channels, waiting_graph
from mapping.routing.forwarding_tables import bound_tables
from tests.support.checked_fabrics import findings_of
from tests.support.ibdmchk import ibdmchk
from tests.support.infiniband_data import SCANS, infiniband
from tests.support.launchers import require
from tests.support.table_walks import all_walks, broken

ROUTED = sorted(SCANS)


@pytest.mark.parametrize("name", ["fattree2-64-traffic", "irregular-16sw-updown", "torus-4x4x4-dor"])
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
        knots = [knot for knot in nx.strongly_connected_components(expected) if len(knot) > 1]
        assert sorted(finding.count for finding in findings_of(fabric, "credit-loops")) == sorted(
            map(len, knots)
        )


@pytest.mark.parametrize("name", ROUTED)
def test_a_reported_cycle_is_a_cycle(name: str) -> None:
    for finding in findings_of(infiniband(name), "credit-loops"):
        cables = finding.text.split(": ", 1)[1].split("; ")
        ends = [re.fullmatch(r"(\S+):\d+ - (\S+):\d+", cable) for cable in cables]
        switches = [(end[1], end[2]) for end in ends if end]
        assert len(switches) == len(cables)
        for (_, arrives), (leaves, _) in zip(switches, [*switches[1:], switches[0]], strict=True):
            assert arrives == leaves


@pytest.mark.parametrize("name", ["fattree2-64-traffic", "irregular-16sw-updown", "torus-4x4x4-dor"])
def test_ibdmchk_finds_credit_loops_where_we_do(name: str, tmp_path: Path) -> None:
    require("ibdmchk")
    fabric = infiniband(name)
    output = ibdmchk(fabric, tmp_path)
    hosts = len(fabric.hosts)
    assert f"Scanned:{hosts * (hosts - 1)} CA to CA paths" in output
    assert ("Found credit loop" in output) == bool(findings_of(fabric, "credit-loops"))
    assert ("no credit loops found" in output) != bool(findings_of(fabric, "credit-loops"))
