"""GraphML of a fabric for networkx, Gephi, yEd and igraph; only forwarding tables are left out.

Attributes are those of `registry.interchange.to_networkx`. GraphML has no lists: a list becomes its JSON
text, ``[1, 2]``, under the same name; `ingest.formats.fabrics.graphs` converts it back.
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


def write(fabric: Fabric) -> str:
    """Return the XML document.

    Raises
    ------
    InvalidValue
        A name with a character that XML cannot contain.
    """
    import networkx as nx

    for name in fabric.names:
        if not name.isprintable():
            raise InvalidValue("fabric.names", f"{name!r} cannot be written as XML")
    lines = nx.generate_graphml(flatten(to_networkx(fabric)))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(lines) + "\n"


def flatten(graph: nx.Graph[Any]) -> nx.Graph[Any]:
    """Return a copy of the graph of a fabric with lists as text; empty lists are left out."""
    flat = graph.copy()
    for _, data in flat.nodes(data=True):
        for name in LISTS:
            values = data.pop(name, None)
            if values:
                data[name] = json.dumps(list(values))
    return flat
