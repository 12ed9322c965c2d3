"""Node-link JSON of networkx and D3; see `ingest.formats.fabrics.graphs` for the attributes.

An object with ``nodes`` (each with an ``id``) and ``edges`` or ``links`` (each with ``source`` and
``target``), and optionally ``directed``, ``multigraph`` and ``graph``. Two edges between one pair are
parallel cables, whatever the value of ``multigraph``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import networkx as nx

from ingest.formats.fabrics.graphs import MAX_GRAPH_BYTES, graph_fabric, read_graph
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import SourceFile
from registry.errors import InputError

_RECOGNISED = re.compile(r'"nodes"\s*:\s*\[\s*(\{[^{}]*"id"|\])')
_EDGES = re.compile(r'"(edges|links)"\s*:\s*\[|"multigraph"\s*:')


def recognise(head: str, path: str) -> bool:
    """Return True if the text is a JSON object with a list of nodes with ids, and edges or links."""
    begins = head.lstrip().startswith("{")
    return begins and _RECOGNISED.search(head) is not None and _EDGES.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one graph.

    Raises
    ------
    InputError
        Invalid JSON, no list of nodes or edges, a repeated node, an edge of an unlisted node, or content that
        `ingest.formats.fabrics.graphs.graph_fabric` rejects.
    """
    (file,) = files
    root = Spot(file.path)
    content = root.object(load_json(file, limit=MAX_GRAPH_BYTES))
    key = "edges" if "edges" in content else "links"
    ids: set[str] = set()
    for index, value in enumerate(root.at("nodes").list(content.get("nodes"))):
        spot = root.at("nodes").at(index)
        node = spot.object(value).get("id")
        if isinstance(node, bool) or not isinstance(node, (str, int)) or str(node) in ids:
            raise spot.error("the id is missing or repeated", node)
        ids.add(str(node))
    for index, value in enumerate(root.at(key).list(content.get(key))):
        spot = root.at(key).at(index)
        edge = spot.object(value)
        for end in ("source", "target"):
            if isinstance(edge.get(end), (list, dict)) or str(edge.get(end)) not in ids:
                raise spot.at(end).error("is not the id of a node", edge.get(end))
        edge.pop("key", None)
    if not isinstance(content.get("graph", {}), (dict, list)):
        raise InputError("the attributes of the graph are not an object", path=file.path)
    content["multigraph"] = True
    graph = read_graph(lambda: nx.node_link_graph(content, edges=key), file.path)
    return graph_fabric(graph, file.path, options)
