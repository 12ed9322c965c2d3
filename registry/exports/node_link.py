"""Node-link JSON of a fabric for networkx and D3; only forwarding tables are left out.

Read it with ``networkx.node_link_graph(json.load(file), edges="links")``. Attributes are those of
`registry.interchange.to_networkx`.
"""

from __future__ import annotations

import json
from typing import Any

from registry.interchange import to_networkx
from registry.model import Fabric


def write(fabric: Fabric) -> str:
    """Return one line of JSON."""
    import networkx as nx

    graph: nx.Graph[Any] = to_networkx(fabric)
    data = nx.node_link_data(graph, edges="links")
    return json.dumps(data, separators=(",", ":"), allow_nan=False) + "\n"
