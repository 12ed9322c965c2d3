"""All shortest paths of a pair share its traffic equally; parallel cables are one path, shared by capacity.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, equations 3 to 5, computed by searches from the goals, path counting and forward accumulation.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.kernels.channels import Ends
from mapping.routing.kernels.flows import PATHS, FlowArrays
from mapping.routing.kernels.paths import Goals, HopArray
from mapping.routing.network import (
    EndPoints,
    Network,
    arcs_with,
    attach,
    empty_flow_arrays,
    graph_arrays,
)
from mapping.routing.paths import fraction_over_arc, hops_to, spread
from mapping.routing.routes import ALL_CONNECTED, SAME_RAIL, Routes
from registry.errors import DisconnectedAllocation
from registry.model import Fabric, Floats, Ints, Longs


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> ShortestPaths:
    """Return routes over all shortest paths."""
    return ShortestPaths(fabric, *attach(fabric, hosts), rails)


class ShortestPaths(Routes):
    """Routes over all shortest paths of a network between end points.

    Parameters
    ----------
    network : Network
        Several arcs may represent one cable, as in a layered graph whose vertices are states of a path.
    twin : int32[v], optional
        Another vertex at which paths to the same place may end, by vertex where paths start; -1 if none.
    """

    name = "shortest-paths"

    def __init__(
        self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, twin: Ints | None = None
    ) -> None:
        vertex, row = np.unique(network.port_vertex, return_inverse=True)
        self._network = network
        self._vertex: Ints = vertex.astype(np.int32)
        none = np.full(len(vertex), -1, np.int32)
        self._goals = Goals(self._vertex, none if twin is None else twin[vertex].astype(np.int32))
        up, down = network.up, network.down
        arrays = Ends(
            same_rail=rails == SAME_RAIL,
            rail_ptr=ends.rail_ptr,
            rail_number=ends.rail_number,
            port_ptr=ends.port_ptr,
            port_row=row.astype(np.int32),
            target_ptr=np.arange(len(row) + 1),
            target=row.astype(np.int32),
            up_ptr=up.ptr,
            up_link=up.link,
            up_share=up.share,
            down_ptr=down.ptr,
            down_link=down.link,
            down_share=down.share,
        )
        super().__init__(fabric, ends, arrays, rails)

    @cached_property
    def _hops_to(self) -> HopArray:
        """Links from every vertex of the network to each row's vertex."""
        return hops_to(self._network.arcs, self._goals)

    @cached_property
    def _hops(self) -> HopArray:
        table, arcs = self._hops_to, self._network.arcs
        if np.array_equal(arcs.out_ptr, arcs.in_ptr) and np.array_equal(arcs.head, arcs.tail):
            every = len(self._vertex) == len(arcs.forwards)  # symmetric: no need to transpose the table
            return table if every else np.ascontiguousarray(table[:, self._vertex])
        return np.ascontiguousarray(table[:, self._vertex].T)

    @cached_property
    def _target_class(self) -> Longs:
        return np.arange(len(self._vertex))  # each is the only one with 0 hops from itself

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        table = self.__dict__.get("_hops_to")  # searching from a few goals is faster than from all
        arc_load, hops = spread(self._network.arcs, self._goals, self._vertex[row], target, amount, table)
        return self._on_links(arc_load), hops

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        """Return the fraction (float64[d]) of each demand that crosses a link."""
        found, network = np.zeros(len(row)), self._network
        for arc, share in zip(*arcs_with(network.cables, link), strict=True):
            found += share * fraction_over_arc(network.arcs, int(arc), self._vertex[row], self._goals, target)
        return found

    def _on_links(self, arc_load: Floats) -> Floats:
        """Return the loads of the rows of ``fabric.links`` (float64[m]) from loads of arcs."""
        cables = self._network.cables
        part = np.repeat(arc_load, np.diff(cables.ptr)) * cables.share
        return np.bincount(cables.link, weights=part, minlength=len(self.fabric.links)).astype(np.float64)

    def _flows(self) -> FlowArrays:
        links = len(self.fabric.links)
        flows = empty_flow_arrays(PATHS, links, links, self.max_channels, self._arrays, self._hops)
        return flows._replace(graph=graph_arrays(self._network, self._vertex, hops_to=self._hops_to))

    def _unconnected(self, i: int, j: int) -> DisconnectedAllocation:
        names = self.fabric.names
        return DisconnectedAllocation(names[self.hosts[i]], names[self.hosts[j]])
