"""Graph files for networkx, Gephi, yEd, igraph and D3; only forwarding tables are left out.

Attributes are those of `registry.interchange.to_networkx`.

Weighted map of LibTopoMap: ``num: N w``, names, then each vertex with ``neighbour(weight)``.

A weight is the capacity of all cables of a pair in one direction, as a multiple of a unit: the largest unit
with which all weights are whole, down to a thousandth of the smallest capacity, else that thousandth,
rounded. The file does not contain the unit (`unit`): reading it with ``--rate`` unit gives the capacities.
Ports, adapters, parallel cables and the kinds of vertices are left out.

The library reads names up to a blank: blanks in names of switches become ``_``; the name of a host must be
one word, since ranks look it up.

Links of a fabric as CSV for tables and scripts, one row per cable and direction.

Capacities are in bytes/s. GUIDs are node GUIDs; those of hosts are of their adapters. Unknown ports and GUIDs
are empty. Each row has kind, slots and forwarding of its source; a vertex without links has a row without a
target. LIDs, levels, coordinates and names of adapters are left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from registry.csv_text import csv_text
from registry.errors import InvalidValue
from registry.interchange import to_networkx
from registry.model import HOST, Fabric, format_guid
from registry.store.derived import DEVICE_LISTS

if TYPE_CHECKING:
    import networkx as nx


LISTS = ("coordinates", *DEVICE_LISTS)
"""Attributes of a fabric's vertices that are lists, see `registry.store.derived.DeviceFact`."""


def write_node_link(fabric: Fabric) -> str:
    """Return node-link JSON in one line.

    Read it with ``networkx.node_link_graph(json.load(file), edges="links")``.
    """
    import networkx as nx

    graph: nx.Graph[Any] = to_networkx(fabric)
    data = nx.node_link_data(graph, edges="links")
    return json.dumps(data, separators=(",", ":"), allow_nan=False) + "\n"


def write_graphml(fabric: Fabric) -> str:
    """Return GraphML; a name with a character that XML cannot contain is an error.

    GraphML has no lists: a list becomes its JSON text, ``[1, 2]``, under the same name, and an empty list is
    left out; `ingest.formats.fabrics.graphs` converts it back.
    """
    import networkx as nx

    for name in fabric.names:
        if not name.isprintable():
            raise InvalidValue("fabric.names", f"{name!r} cannot be written as XML")
    graph: nx.Graph[Any] = to_networkx(fabric)
    for _, data in graph.nodes(data=True):
        for name in LISTS:
            values = data.pop(name, None)
            if values:
                data[name] = json.dumps(list(values))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(nx.generate_graphml(graph)) + "\n"


FINEST = 1000
"""Smallest unit: the smallest capacity divided by this."""


def write_libtopomap(fabric: Fabric) -> str:
    """Return the map; vertices in the fabric's order."""
    weights = np.maximum(1, np.rint(fabric.capacity / unit(fabric))).astype(np.int64).tolist()
    lines = [f"num: {len(fabric)} w"]
    lines += [f"{vertex} {name}" for vertex, name in enumerate(_names(fabric))]
    near, first = fabric.neighbour.tolist(), fabric.indptr.tolist()
    for vertex in range(len(fabric)):
        arcs = range(first[vertex], first[vertex + 1])
        lines.append(" ".join([str(vertex), *(f"{near[arc]}({weights[arc]})" for arc in arcs)]))
    return "\n".join(lines) + "\n"


def unit(fabric: Fabric) -> float:
    """Return the bytes/s of weight 1.

    Raises:
        InvalidValue: The fabric has no links.
    """
    if not len(fabric.capacity):
        raise InvalidValue("fabric.links", "a map needs at least one link")
    ratio = np.unique(fabric.capacity) / fabric.capacity.min()
    for parts in range(1, FINEST + 1):
        whole = np.rint(ratio * parts)
        if np.allclose(ratio * parts, whole, rtol=1e-9, atol=0.0):
            break
    return float(fabric.capacity.min() / parts)


def _names(fabric: Fabric) -> list[str]:
    """Return unique names of one word."""
    found: list[str] = []
    seen = {name for name in fabric.names if not any(map(str.isspace, name))}
    for name, kind in zip(fabric.names, fabric.kind.tolist(), strict=True):
        if not name.isprintable() or not name:
            raise InvalidValue("fabric.names", f"{name!r} would break the file")
        if name in seen:
            found.append(name)
            continue
        if kind == HOST:
            raise InvalidValue("fabric.names", f"host {name!r} is not one word: ranks could not find it")
        plain = unique = "_".join(name.split())
        count = 1
        while unique in seen:
            count += 1
            unique = f"{plain}-{count}"
        seen.add(unique)
        found.append(unique)
    return found


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


def write_csv(fabric: Fabric) -> str:
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
