"""All hop-shortest paths share a pair's traffic equally; parallel cables are one path, shared by capacity.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, equations 3 to 5, computed by path counting from each source and backward accumulation.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mapping.kernels import paths as kernel
from mapping.kernels.flows import Ends, FlowArrays, GraphArrays
from mapping.kernels.paths import HopArray
from mapping.kernels.tables import TableArrays
from mapping.network import EndPoints, Network, end_points, transit_network
from mapping.routing.routes import ALL_CONNECTED, SAME_RAIL, Routes, check_rails, empty
from registry.errors import DisconnectedAllocation
from registry.model import Fabric, Floats, Ints


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> ShortestPaths:
    """Routes between `hosts` (vertices) over all shortest paths.

    Raises
    ------
    UnknownName
        A rails rule that there is not.
    """
    check_rails(rails)
    ends = end_points(fabric, np.asarray(hosts, np.int32).reshape(-1))
    return ShortestPaths(fabric, ends, transit_network(fabric, ends), rails)


class ShortestPaths(Routes):
    """Routes over all hop-shortest paths between end points."""

    name = "shortest-paths"

    def __init__(self, fabric: Fabric, ends: EndPoints, network: Network, rails: str) -> None:
        vertex, row = np.unique(network.port_vertex, return_inverse=True)
        self._network = network
        self._vertex: Ints = vertex.astype(np.int32)
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
    def _hops(self) -> HopArray:
        hops_to, _ = self._paths_to(count=False)
        return np.ascontiguousarray(hops_to[:, self._vertex].T)

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        arcs, cables = self._network.arcs, self._network.cables
        order = np.argsort(row, kind="stable")
        first = np.searchsorted(row[order], np.arange(len(self._vertex) + 1))
        goal, arc_load = self._vertex[target[order]], np.zeros(len(arcs.head))
        hops = np.empty(len(row), np.int32)
        hops[order] = kernel.carry(arcs, self._vertex, first, goal, amount[order], arc_load)
        loads = np.zeros(len(self.fabric.links))
        loads[cables.link] = np.repeat(arc_load, np.diff(cables.ptr)) * cables.share
        return loads, hops

    def _flows(self) -> FlowArrays:
        network, links = self._network, len(self.fabric.links)
        hops_to, paths_to = self._paths_to(count=True)
        graph = GraphArrays(
            arc_ptr=network.arcs.out_ptr,
            arc_head=network.arcs.head,
            link_ptr=network.cables.ptr,
            link=network.cables.link,
            share=network.cables.share,
            forwards=network.arcs.forwards,
            vertex=self._vertex,
            hops_to=hops_to,
            paths_to=paths_to,
        )
        return FlowArrays(
            by_tables=False,
            links=links,
            max_entries=links,
            max_channels=self.max_channels,
            ends=self._arrays,
            hops=np.ascontiguousarray(hops_to[:, self._vertex].T),
            graph=graph,
            tables=TableArrays(empty(0, 0, dtype=np.uint8), empty(0, 0), empty(0), empty(0), empty(0)),
            row_switch=empty(0),
            lid=empty(0),
        )

    def _paths_to(self, *, count: bool) -> tuple[HopArray, Floats]:
        arcs = self._network.arcs
        hops = np.empty((len(self._vertex), len(arcs.forwards)), np.uint16)
        paths = np.empty((len(hops), hops.shape[1] if count else 0))
        kernel.paths_to(arcs, self._vertex, hops, paths)
        return hops, paths

    def _unconnected(self, i: int, j: int) -> DisconnectedAllocation:
        names = self.fabric.names
        return DisconnectedAllocation(names[self.hosts[i]], names[self.hosts[j]])
