"""A fabric as node-link JSON, as networkx and D3 read it; nothing but forwarding tables is left out.

``networkx.node_link_graph(json.load(file), edges="links")``. Attributes are those of
`registry.interchange.to_networkx`.
"""

from __future__ import annotations

import json
from typing import Any

from registry.interchange import to_networkx
from registry.model import Fabric


def write(fabric: Fabric) -> str:
    """One line of JSON."""
    import networkx as nx

    graph: nx.Graph[Any] = to_networkx(fabric)
    told = nx.node_link_data(graph, edges="links")
    return json.dumps(told, separators=(",", ":"), allow_nan=False) + "\n"
