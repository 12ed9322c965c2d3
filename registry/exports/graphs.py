"""Graph files for networkx, Gephi, yEd, igraph and D3; only forwarding tables are left out.

Attributes are those of `registry.interchange.to_networkx`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from registry.errors import InvalidValue
from registry.fabrics.facts import DEVICE_LISTS
from registry.interchange import to_networkx
from registry.model import Fabric

if TYPE_CHECKING:
    import networkx as nx

LISTS = ("coordinates", *DEVICE_LISTS)
"""Attributes of a fabric's vertices that are lists, see `registry.fabrics.facts.DeviceFact`."""


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
