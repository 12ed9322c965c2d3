"""The cost model of a request: routing, rails, distances and the load of other jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from mapping.distances.background import Background
from mapping.distances.distances import LINKS, Distances, distances
from mapping.routing.catalog import build_routes, choose_routing
from mapping.routing.routes import ALL_CONNECTED, Routes
from registry.model import Fabric
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostModel:
    """How the cost of a placement is computed; names are checked when they are used.

    Attributes
    ----------
    routing : str or None
        A routing with its options, such as ``up-down:root=n6`` (`mapping.routing.catalog`); default: the
        forwarding tables if they connect all hosts, else all shortest paths.
    rails : str
        How a pair's bytes are divided over adapters: ``all-connected`` or ``same-rail``.
    distance : str or None
        One of `mapping.distances.distances.CONVENTIONS`; default: ``equivalent+2`` if the objective is the
        mapping coefficient, else ``links``.
    table : DistanceTable or float[h, h] or None
        Distances for the convention ``table``; an array is in the order of the allocation's hosts.
    one_way : bool
        True if the table may differ by direction.
    packet_bytes : float or None
        Count packets of this size in the mapping coefficient instead of bytes (Orduña, Silla and Duato
        2004, section 4.1).
    background : Background or None
        Load of other jobs.
    """

    routing: str | None = None
    rails: str = ALL_CONNECTED
    distance: str | None = None
    table: Any = None
    one_way: bool = False
    packet_bytes: float | None = None
    background: Background | None = None

    __repr__ = one_line

    def choose_routing(self, fabric: Fabric) -> tuple[str, str]:
        """Return the routing to use on a fabric and the reason for it."""
        return choose_routing(fabric) if self.routing is None else (self.routing, "as asked for")

    def build_routes(self, fabric: Fabric, hosts: ArrayLike) -> Routes:
        """Build the routes between hosts (vertices of the fabric)."""
        return build_routes(self.choose_routing(fabric)[0], fabric, hosts, rails=self.rails)

    def distances(self, routes: Routes, default: str = LINKS) -> Distances | None:
        """Return the distances between the hosts of `routes`, or None for the links that routes cross.

        Parameters
        ----------
        default : str
            Convention if the cost model names none.
        """
        name = self.distance or default
        if name == LINKS and self.table is None:
            return None
        return distances(name, routes, table=self.table, one_way=self.one_way)

    def parameters(self, fabric: Fabric) -> dict[str, str | int]:
        """Return what a placement records about the cost model beside the routing."""
        return {
            "rails": self.rails,
            **({} if self.distance is None else {"distance": self.distance}),
            **({} if self.background is None else {"background": self.background.description(fabric)}),
        }
