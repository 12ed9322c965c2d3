"""GraphML of networkx, Gephi, igraph and yEd; see `ingest.formats.fabrics.graphs`.

GraphML has no lists: lists in a node's attributes are JSON text. Document types and entities are rejected.
The name of a node is its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import ParseError

import networkx as nx
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ingest.formats.fabrics.graphs import MAX_GRAPH_BYTES, graph_fabric, read_graph
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError


def recognise(head: str, path: str) -> bool:
    """Return True if the text is XML that begins with GraphML's element."""
    return head.lstrip().startswith("<") and "<graphml" in head[:8192]


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one graph.

    Raises
    ------
    InputError
        Invalid GraphML, a document type or entities, several graphs, or content that
        `ingest.formats.fabrics.graphs.graph_fabric` rejects.
    """
    (file,) = files
    if len(file.data) > MAX_GRAPH_BYTES:
        raise InputError(f"more than {MAX_GRAPH_BYTES} bytes of GraphML", path=file.path)
    text = file.text()
    try:
        fromstring(file.data, forbid_dtd=True)
    except ParseError as error:
        raise InputError(
            f"invalid or truncated XML: {error}", path=file.path, line=error.position[0]
        ) from error
    except DefusedXmlException as error:
        raise InputError("document types and entities are not allowed", path=file.path) from error
    except (ValueError, LookupError) as error:
        raise InputError(f"unreadable XML: {error}", path=file.path) from error
    graph = read_graph(lambda: nx.parse_graphml(text), file.path)
    return graph_fabric(graph, file.path, options)
