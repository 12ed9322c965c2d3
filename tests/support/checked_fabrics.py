"""Fabrics with faults and findings of one check; tables with faults, slow walks, and Debian's ibdmchk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from mapping.checks.checks import check
from mapping.checks.finding import Finding, Subject
from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.forwarding_tables import TableArrays
from registry.model import NO_ROUTE, Fabric, ForwardingTables
from registry.model.links import PORT_COLUMNS, Ports
from tests.support.infiniband_data import infiniband
from tests.support.waiting import PATIENCE


def tables_of(fabric: Fabric) -> ForwardingTables:
    assert fabric.tables is not None
    return fabric.tables


def broken(name: str, seed: int, entries: int = 40) -> Fabric:
    """A real fabric with some entries of its tables changed at random."""
    fabric = infiniband(name)
    generator = np.random.default_rng(seed)
    tables = tables_of(fabric)
    ports = np.array(tables.ports)
    row = generator.integers(len(ports), size=entries)
    lid = generator.integers(1, ports.shape[1], size=entries)
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
    cabled = bound.port_link >= 0
    to_hosts = cabled & (bound.link_port[np.where(cabled, bound.port_link, 0)] >= 0)
    for start in np.flatnonzero(to_hosts.any(axis=1)).tolist():
        for lid in np.flatnonzero(bound.lid_port >= 0).tolist():
            yield walk(bound, start, lid)


def subnet_text(fabric: Fabric) -> str:
    links, adapters = fabric.links, fabric.adapters
    owners = zip(adapters.port_adapter.tolist(), adapters.port_number.tolist(), strict=True)
    lid = {port: row for row, port in enumerate(owners)}

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

    near, far = (
        zip(*(getattr(links, f"{side}{part}").tolist() for part in ("", "_adapter", "_port")), strict=True)
        for side in ("source", "target")
    )
    return "".join(f"{end(*a)} {end(*b)} PHY=4x LOG=ACT SPD=10\n" for a, b in zip(near, far, strict=True))


def routes_text(fabric: Fabric) -> str:
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
    """Return the report of Debian's ibdmchk on a fabric; it ends with a signal of its own making."""
    (folder / "subnet.lst").write_text(subnet_text(fabric))
    (folder / "osm.fdbs").write_text(routes_text(fabric))
    (folder / "osm.mcfdbs").write_text("")
    files = ["-s", "subnet.lst", "-f", "osm.fdbs", "-m", "osm.mcfdbs"]
    done = subprocess.run(["ibdmchk", *files], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout + done.stderr


def findings_of(fabric: Fabric, name: str) -> list[Finding]:
    return list(check(Subject(fabric=fabric), [name]))


def fabric_of_cables(names: list[str], cables: list[tuple[str, str]], switches: set[str]) -> Fabric:
    at = {name: index for index, name in enumerate(names)}
    ends = [(at[a], at[b]) for a, b in cables] + [(at[b], at[a]) for a, b in cables]
    source, target = zip(*ends, strict=True)
    slots = [int(name not in switches) for name in names]
    return Fabric.from_arcs(names, source, target, 1.0, slots=slots, forwards=False)


def with_ports(*rows: tuple[str, int, int, float]) -> Fabric:
    """The traffic fixture's fabric, with more said of some of its switches' ports."""
    fabric = infiniband("fattree2-64-traffic")
    vertex = fabric.vertices([name for name, *_ in rows], kind="switch")
    _, number, state, could_be = zip(*rows, strict=True)
    columns = (vertex, [-1] * len(rows), number, state, could_be)
    return replace(fabric, ports=Ports(**dict(zip(PORT_COLUMNS, map(np.array, columns), strict=True))))
