"""GraphML, as networkx, Gephi, igraph and yEd write it; see `ingest.formats.fabrics.graphs`.

GraphML has no lists: lists of a node's attributes stand as JSON text. Document types and entities are
refused. A node is called by its id.
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
    """Whether it is XML that begins with GraphML's element."""
    return head.lstrip().startswith("<") and "<graphml" in head[:8192]


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The fabric of one graph.

    Raises
    ------
    InputError
        No GraphML, with a document type or entities, several graphs, and what
        `ingest.formats.fabrics.graphs.graph_fabric` refuses.
    """
    (file,) = files
    if len(file.data) > MAX_GRAPH_BYTES:
        raise InputError(f"more than {MAX_GRAPH_BYTES} bytes of GraphML", path=file.path)
    text = file.text()
    try:
        fromstring(file.data, forbid_dtd=True)
    except ParseError as error:
        raise InputError(f"not XML, or cut off: {error}", path=file.path, line=error.position[0]) from error
    except DefusedXmlException as error:
        raise InputError("a document type or entities, which are not read", path=file.path) from error
    except (ValueError, LookupError) as error:
        raise InputError(f"not XML that can be read: {error}", path=file.path) from error
    graph = read_graph(lambda: nx.parse_graphml(text), file.path)
    return graph_fabric(graph, file.path, options)
