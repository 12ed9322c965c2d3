"""Debian's ibdmchk on a fabric and its forwarding tables."""

from __future__ import annotations

import subprocess
from pathlib import Path

from registry.model import NO_ROUTE, Fabric
from tests.support.table_walks import tables_of


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
