"""Links of a fabric as CSV for tables and scripts, one row per cable and direction.

Capacities are in bytes/s. GUIDs are node GUIDs; those of hosts are of their adapters. Unknown ports and GUIDs
are empty. Each row has kind, slots and forwarding of its source; a vertex without links has a row without a
target. LIDs, levels, coordinates and names of adapters are left out.
"""

from __future__ import annotations

from registry.csv_text import csv_text
from registry.errors import InvalidValue
from registry.model import HOST, Fabric, format_guid

COLUMNS = (
    "source",
    "source_guid",
    "source_port",
    "target",
    "target_guid",
    "target_port",
    "capacity",
    "cables",
    "source_kind",
    "source_slots",
    "source_forwards",
)


def write(fabric: Fabric) -> str:
    """Return a header and the rows, in the fabric's order of links."""
    for name in fabric.names:
        if not name.isprintable() or name != name.strip():
            raise InvalidValue("fabric.names", f"{name!r} would break the file")
    rows: list[tuple[str | int | float, ...]] = []
    links = fabric.links
    ends = [
        zip(vertices.tolist(), adapters.tolist(), ports.tolist(), strict=True)
        for vertices, adapters, ports in (
            (links.source, links.source_adapter, links.source_port),
            (links.target, links.target_adapter, links.target_port),
        )
    ]
    for source, target, capacity, cables in zip(
        *ends, links.capacity.tolist(), links.cables.tolist(), strict=True
    ):
        ends_of_row = (*_end(fabric, *source), *_end(fabric, *target))
        rows.append((*ends_of_row, capacity, cables, *_vertex(fabric, source[0])))
    unlinked = sorted(set(range(len(fabric))) - set(links.source.tolist()))
    rows += [(fabric.names[vertex], *[""] * 7, *_vertex(fabric, vertex)) for vertex in unlinked]
    return csv_text(COLUMNS, rows)


def _end(fabric: Fabric, vertex: int, adapter: int, port: int) -> tuple[str, str, int | str]:
    """Return name, GUID and port of an end of a link."""
    guid = fabric.adapters.guid[adapter] if adapter >= 0 else fabric.guid[vertex]
    return fabric.names[vertex], format_guid(int(guid)), port if port >= 0 else ""


def _vertex(fabric: Fabric, vertex: int) -> tuple[str, int, int]:
    """Return kind, slots and forwarding of a vertex."""
    kind = "host" if fabric.kind[vertex] == HOST else "switch"
    return kind, int(fabric.slots[vertex]), int(fabric.forwards[vertex])
