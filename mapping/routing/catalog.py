"""The routings by name, and which of them fits a fabric. A new routing is one file and one line here."""

from __future__ import annotations

import importlib

from numpy.typing import ArrayLike

from mapping.routing.routes import ALL_CONNECTED, Routes
from registry.errors import UnknownName
from registry.model import Fabric

ROUTINGS = {
    "tables": "mapping.routing.forwarding_tables",
    "shortest-paths": "mapping.routing.shortest_paths",
}
"""Name of a routing -> module with ``build(fabric, hosts, *, rails) -> Routes``."""


def build_routes(name: str, fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> Routes:
    """Routes between hosts (vertices) by the routing of that name.

    Raises
    ------
    UnknownName
        A routing or rails rule that there is not.
    InvalidValue
        The fabric lacks what the routing needs.
    """
    if name not in ROUTINGS:
        raise UnknownName("routing", name, ROUTINGS)
    routes: Routes = importlib.import_module(ROUTINGS[name]).build(fabric, hosts, rails=rails)
    return routes


def choose_routing(fabric: Fabric) -> tuple[str, str]:
    """The routing that a fabric is judged on unless told, and why in a few words."""
    from mapping.routing import forwarding_tables

    if fabric.tables is None:
        return "shortest-paths", "the fabric has no forwarding tables"
    if forwarding_tables.complete(fabric):
        return "tables", "the fabric has complete forwarding tables"
    return "shortest-paths", "the fabric's forwarding tables do not join all of its hosts"
