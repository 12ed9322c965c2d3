"""A fabric as GraphML, as networkx, Gephi, yEd and igraph read it; nothing but forwarding tables is left out.

Attributes are those of `registry.interchange.to_networkx`; lists are JSON text, see `registry.exports.flat`.
"""

from __future__ import annotations

from registry.errors import InvalidValue
from registry.exports.flat import flatten
from registry.interchange import to_networkx
from registry.model import Fabric


def write(fabric: Fabric) -> str:
    """The XML document.

    Raises
    ------
    InvalidValue
        A name with a character that XML does not know.
    """
    import networkx as nx

    for name in fabric.names:
        if not name.isprintable():
            raise InvalidValue("fabric.names", f"{name!r} cannot stand in XML")
    lines = nx.generate_graphml(flatten(to_networkx(fabric)))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(lines) + "\n"
