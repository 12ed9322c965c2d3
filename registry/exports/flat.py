"""Graphs whose attributes are plain numbers and text, for formats that know no lists (GraphML).

A list becomes its JSON text, ``[1, 2]``, under the same name; `ingest.formats.fabrics.graphs` turns it back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from registry.fabrics.facts import DEVICE_LISTS

if TYPE_CHECKING:
    import networkx as nx

LISTS = ("coordinates", *DEVICE_LISTS)
"""Attributes of a fabric's vertices that are lists, see `registry.fabrics.facts.DeviceFact`."""


def flatten(graph: nx.Graph[Any]) -> nx.Graph[Any]:
    """A copy of the graph of a fabric in which lists are text, and empty ones are left out."""
    flat = graph.copy()
    for _, data in flat.nodes(data=True):
        for name in LISTS:
            values = data.pop(name, None)
            if values:
                data[name] = json.dumps(list(values))
    return flat
