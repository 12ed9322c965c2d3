"""Checks of a fabric beside slow oracles, and beside Debian's ibdmchk."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from mapping.checks.catalog import CHECKS, check, worst
from mapping.checks.credit_loops import switch_channels, waiting_graph
from mapping.checks.finding import Finding, Severity, Subject
from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.tables import TableArrays
from registry.errors import UnknownName
from registry.model import NO_ROUTE, Adapters, Fabric, ForwardingTables
from registry.model.ports import ACTIVE, DOWN, PORT_COLUMNS, TRAINING, Ports
from tests.support.infiniband_data import SCANS, infiniband
from tests.support.launchers import require

ROUTED = sorted(SCANS)


def tables_of(fabric: Fabric) -> ForwardingTables:
    assert fabric.tables is not None
    return fabric.tables


def broken(name: str, seed: int, entries: int = 40) -> Fabric:
    """A real fabric with some entries of its tables changed at random."""
    fabric = infiniband(name)
    generator = np.random.default_rng(seed)
    tables = tables_of(fabric)
    ports = np.array(tables.ports)
    row, lid = (
        generator.integers(len(ports), size=entries),
        generator.integers(1, ports.shape[1], size=entries),
    )
    ports[row, lid] = generator.choice([NO_ROUTE, 0, 1, 2, 3, 5, 7, 9, 200], size=entries)
    return replace(fabric, tables=replace(tables, ports=ports))


def walk(bound: TableArrays, start: int, lid: int) -> tuple[str, list[int]]:
    """How a walk from a switch (row of the tables) ends, and the links that it takes; step by step."""
    taken, seen = list[int](), set[int]()
    at = start
    while at not in seen:
        seen.add(at)
        port = int(bound.ports[at, lid])
        link = int(bound.port_link[at, port])
        if link < 0:
            return ("unrouted" if port == NO_ROUTE else "wrong" if port == 0 else "not cabled"), taken
        taken.append(link)
        if bound.link_port[link] >= 0:
            return ("delivered" if bound.link_port[link] == bound.lid_port[lid] else "wrong"), taken
        if bound.link_switch[link] < 0:
            return "wrong", taken
        at = int(bound.link_switch[link])
    return "loops", taken


def all_walks(fabric: Fabric) -> Iterator[tuple[str, list[int]]]:
    """Walks from all switches that a host hangs on to all LIDs of adapters."""
    bound = bound_tables(fabric)
    leaves = {
        s
        for s in range(len(bound.ports))
        for link in bound.port_link[s]
        if link >= 0 and bound.link_port[link] >= 0
    }
    for start in sorted(leaves):
        for lid in np.flatnonzero(bound.lid_port >= 0).tolist():
            yield walk(bound, start, lid)


def found(fabric: Fabric, name: str) -> list[Finding]:
    return list(check(Subject(fabric=fabric), [name]))


WORDS = {"no route": "unrouted", "without a cable": "not cabled", "another device": "wrong", "loops": "loops"}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["fattree2-64-traffic", "irregular-16sw-updown", "irregular-16sw-lmc1"])
def test_walks_that_do_not_arrive_are_counted_as_a_slow_walk_counts_them(name: str, seed: int) -> None:
    fabric = broken(name, seed)
    expected = Counter(end for end, _ in all_walks(fabric))
    del expected["delivered"]
    counted: Counter[str] = Counter()
    for finding in found(fabric, "reachability"):
        (end,) = {end for words, end in WORDS.items() if words in finding.text}
        counted[end] += finding.count
        assert finding.severity is Severity.ERROR
    assert counted == expected


@pytest.mark.parametrize("name", ROUTED)
def test_tables_of_a_subnet_manager_deliver_everything(name: str) -> None:
    assert not found(infiniband(name), "reachability")


def test_a_finding_of_a_loop_names_a_switch_of_it_and_a_way_into_it() -> None:
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
    (finding,) = found(replace(fabric, tables=replace(tables, ports=ports)), "reachability")
    assert "it loops through leaf01" in finding.text or "it loops through spine01" in finding.text
    assert f"to LID {lid} of" in finding.text


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
        assert sorted(finding.count for finding in found(fabric, "credit-loops")) == sorted(map(len, knots))


@pytest.mark.parametrize("name", ROUTED)
def test_a_circle_that_is_told_is_one(name: str) -> None:
    for finding in found(infiniband(name), "credit-loops"):
        cables = finding.text.split(": ", 1)[1].split("; ")
        ends = [re.fullmatch(r"(\S+) port \d+ - (\S+) port \d+", cable) for cable in cables]
        switches = [(end[1], end[2]) for end in ends if end]
        assert len(switches) == len(cables)
        for (_, arrives), (leaves, _) in zip(switches, [*switches[1:], switches[0]], strict=True):
            assert arrives == leaves


def subnet_text(fabric: Fabric) -> str:
    """The fabric as OpenSM's subnet.lst tells it."""
    links, adapters = fabric.links, fabric.adapters
    lid = {}
    for port in range(len(adapters.port_adapter)):
        lid[int(adapters.port_adapter[port]), int(adapters.port_number[port])] = port

    def end(vertex: int, adapter: int, port: int) -> str:
        if adapter >= 0:
            at = lid[adapter, port]
            guid, own = int(adapters.guid[adapter]), int(adapters.port_guid[at])
            what, ports, number, name = "CA", 1, int(adapters.port_lid[at]), adapters.names[adapter]
        else:
            guid = own = int(fabric.guid[vertex])
            what, ports, number, name = "SW", 64, int(fabric.lid[vertex]), fabric.names[vertex]
        return (
            f"{{ {what} Ports:{ports:02X} SystemGUID:{guid:016x} NodeGUID:{guid:016x} PortGUID:{own:016x} "
            f"VenID:0002C9 DevID:D2F0 Rev:000000A1 {{{name}}} LID:{number:04X} PN:{port:02X} }}"
        )

    return "".join(
        f"{end(*a)} {end(*b)} PHY=4x LOG=ACT SPD=10\n"
        for a, b in zip(
            zip(
                links.source.tolist(), links.source_adapter.tolist(), links.source_port.tolist(), strict=True
            ),
            zip(
                links.target.tolist(), links.target_adapter.tolist(), links.target_port.tolist(), strict=True
            ),
            strict=True,
        )
    )


def routes_text(fabric: Fabric) -> str:
    """The tables as OpenSM's .fdbs tells them."""
    tables = tables_of(fabric)
    lines = []
    for guid, row in zip(tables.switch_guid.tolist(), tables.ports, strict=True):
        lines += [f"osm_ucast_mgr_dump_ucast_routes: Switch 0x{guid:016x}", "LID    : Port : Hops : Optimal"]
        lines += [
            f"0x{lid:04X} : {port:03d}  : 01   : yes"
            for lid, port in enumerate(row.tolist())
            if port != NO_ROUTE
        ]
    return "\n".join(lines) + "\n"


def ibdmchk(fabric: Fabric, folder: Path) -> str:
    """What Debian's ibdmchk says of a fabric; after its report it ends with a signal of its own making."""
    (folder / "subnet.lst").write_text(subnet_text(fabric))
    (folder / "osm.fdbs").write_text(routes_text(fabric))
    (folder / "osm.mcfdbs").write_text("")
    files = ["-s", "subnet.lst", "-f", "osm.fdbs", "-m", "osm.mcfdbs"]
    told = subprocess.run(["ibdmchk", *files], cwd=folder, capture_output=True, text=True, timeout=120)
    return told.stdout + told.stderr


@pytest.mark.parametrize("name", ["fattree2-64-traffic", "irregular-16sw-updown", "torus-4x4x4-dor"])
def test_ibdmchk_finds_credit_loops_where_we_do(name: str, tmp_path: Path) -> None:
    require("ibdmchk")
    fabric = infiniband(name)
    told = ibdmchk(fabric, tmp_path)
    hosts = len(fabric.hosts)
    assert f"Scanned:{hosts * (hosts - 1)} CA to CA paths" in told
    assert ("Found credit loop" in told) == bool(found(fabric, "credit-loops"))
    assert ("no credit loops found" in told) != bool(found(fabric, "credit-loops"))


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
    told = ibdmchk(cut, tmp_path)
    match = re.search(r"-E- Found (\d+) missing paths", told)
    lost = int(match[1]) if match else 0
    hanging = [int((bound.link_port[bound.port_link[s][bound.port_link[s] >= 0]] >= 0).sum()) for s in others]
    assert lost == sum(hanging[:missing])
    assert sum(finding.count for finding in found(cut, "reachability")) == missing


def test_a_host_with_fewer_rails_than_its_kind_is_named() -> None:
    findings = found(infiniband("ndr-dgx-minhop"), "rails")
    (finding,) = findings
    assert finding.count == 10
    assert "3 cables up" in finding.text
    assert finding.subject in finding.text


def plain(names: list[str], cables: list[tuple[str, str]], switches: set[str]) -> Fabric:
    at = {name: index for index, name in enumerate(names)}
    ends = [(at[a], at[b]) for a, b in cables] + [(at[b], at[a]) for a, b in cables]
    source, target = zip(*ends, strict=True)
    return Fabric.from_arcs(
        names, source, target, 1.0, slots=[int(name not in switches) for name in names], forwards=False
    )


def test_a_leaf_with_fewer_uplinks_than_the_others_is_named() -> None:
    leaves, spines = [f"leaf{i}" for i in range(5)], ["spine0", "spine1"]
    hosts = [f"n{i}" for i in range(5)]
    cables = [(leaf, spine) for leaf in leaves for spine in spines if (leaf, spine) != ("leaf3", "spine1")]
    cables += list(zip(hosts, leaves, strict=True))
    fabric = plain(hosts + leaves + spines, cables, {*leaves, *spines})
    (finding,) = found(fabric, "uplinks")
    assert finding.subject == "leaf3"
    assert "1 cables to other switches, 4 of 5 leaf switches have 2" in finding.text


def test_names_guids_and_lids_of_two_devices_are_found() -> None:
    (finding,) = found(infiniband("mixed-speeds-oversubscribed"), "identities")
    assert finding.subject == "Quantum Mellanox Technologies"
    fabric = infiniband("fattree2-64-traffic")
    adapters = fabric.adapters
    guid, lid = np.array(adapters.guid), np.array(adapters.port_lid)
    guid[1], lid[5] = guid[0], lid[4]
    columns = {name: getattr(adapters, name) for name in Adapters.__slots__}
    twice = replace(fabric, adapters=Adapters(**{**columns, "guid": guid, "port_lid": lid}))
    findings = found(twice, "identities")
    assert [finding.severity for finding in findings] == [Severity.ERROR] * 2
    assert findings[0].text.startswith("node GUID 0x")
    assert findings[1].subject == f"LID {int(lid[4])}"


def with_ports(*rows: tuple[str, int, int, float]) -> Fabric:
    """The traffic fixture's fabric, with more said of some of its switches' ports."""
    fabric = infiniband("fattree2-64-traffic")
    vertex = fabric.vertices([name for name, *_ in rows], kind="switch")
    _, number, state, could_be = zip(*rows, strict=True)
    columns = (vertex, [-1] * len(rows), number, state, could_be)
    return replace(fabric, ports=Ports(**dict(zip(PORT_COLUMNS, map(np.array, columns), strict=True))))


def test_a_cable_that_could_be_faster_is_told_once_though_both_its_ends_say_so() -> None:
    fabric = infiniband("fattree2-64-traffic")
    links = fabric.links
    leaf, spine = fabric.vertices(["leaf01", "spine01"], kind="switch").tolist()
    (row,) = np.flatnonzero((links.source == leaf) & (links.target == spine)).tolist()
    rate, ports = float(links.capacity[row]), (int(links.source_port[row]), int(links.target_port[row]))
    told = with_ports(("leaf01", ports[0], ACTIVE, 2 * rate), ("spine01", ports[1], ACTIVE, 2 * rate))
    (finding,) = found(told, "slow-links")
    assert finding.severity is Severity.WARNING
    assert finding.subject == f"leaf01 port {ports[0]} - spine01 port {ports[1]}"
    assert not found(with_ports(("leaf01", ports[0], ACTIVE, rate)), "slow-links")


def test_a_cable_slower_than_nearly_all_others_is_a_note() -> None:
    fabric = infiniband("fattree2-64-traffic")
    links = fabric.links
    leaf, spine = fabric.vertices(["leaf01", "spine01"], kind="switch").tolist()
    capacity = np.array(links.capacity)
    both = ((links.source == leaf) & (links.target == spine)) | (
        (links.source == spine) & (links.target == leaf)
    )
    assert not found(fabric, "slow-links")
    capacity[both] /= 2
    (finding,) = found(replace(fabric, links=replace(links, capacity=capacity)), "slow-links")
    assert finding.severity is Severity.NOTE
    assert "31 of 32 cables between switches" in finding.text


def test_ports_that_are_down_are_told_a_device_and_state() -> None:
    told = with_ports(("leaf01", 30, DOWN, 0.0), ("leaf01", 31, DOWN, 0.0), ("leaf02", 30, TRAINING, 0.0))
    findings = check(Subject(fabric=told), ["down-ports"])
    assert [(f.severity, f.subject, f.count) for f in findings] == [
        (Severity.WARNING, "leaf02", 1),
        (Severity.NOTE, "leaf01", 2),
    ]
    assert findings[1].text == "leaf01 ports 30, 31: down"


def test_a_fabric_without_tables_or_adapters_can_be_checked() -> None:
    fabric = plain(["a", "b"], [("a", "b")], set())
    assert check(Subject(fabric=fabric)) == ()
    assert worst(check(Subject(fabric=fabric))) is None


def test_a_host_without_a_cable_is_an_error() -> None:
    names = [f"n{i}" for i in range(4)]
    fabric = plain([*names, "s"], [(name, "s") for name in names[:3]], {"s"})
    findings = check(Subject(fabric=fabric))
    assert [(f.severity, f.subject) for f in findings] == [(Severity.ERROR, "n3")]
    assert worst(findings) is Severity.ERROR


def test_an_unknown_check_is_refused_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="credit-loops"):
        check(Subject(fabric=plain(["a", "b"], [("a", "b")], set())), ["credit-loop"])


def test_every_check_has_its_own_name() -> None:
    import importlib

    modules = [importlib.import_module(one.load().__module__) for one in CHECKS]
    assert tuple(module.NAME for module in modules) == CHECKS.names
    assert [str(severity) for severity in Severity] == ["note", "warning", "error"]
    assert Severity.of("warning") is Severity.WARNING
