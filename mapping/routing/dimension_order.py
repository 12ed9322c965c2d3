"""Dimension-order routing on tori and meshes: one axis after the other, each the shorter way around.

Half way around an even circle both ways are equally short: then upwards. Source: the routing of the example
in Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures", 2011,
section 2.3; Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 8.4.
Parallel cables are one link, shared by capacity.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.flow_arrays import flow_arrays, graph_arrays
from mapping.routing.kernels import dimension_order as kernel
from mapping.routing.kernels.flows import ARCS, FlowArrays, GraphArrays, follow_arcs
from mapping.routing.kernels.paths import HopArray
from mapping.routing.network import EndPoints, Network, end_points, transit_network
from mapping.routing.on_link import arcs_with, by_arcs
from mapping.routing.routes import ALL_CONNECTED, check_rails
from mapping.routing.shortest_paths import ShortestPaths
from mapping.routing.torus import Torus, torus_coordinates
from mapping.threads import each
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Int8s, Ints

AXES = "xyzabcdefghi"
"""Names of the axes, as the option `order` has them."""
AT_ONCE = 256
"""Goals that one piece of work fills tables for."""


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, order: str = "") -> DimensionOrder:
    """Routes between `hosts` (vertices) by dimension order.

    Parameters
    ----------
    order : str
        Axes by the letters of `AXES`, the first to be travelled first, such as ``zyx``; unless told, as
        they are in ``fabric.coordinates``, or as `torus_coordinates` finds them.

    Raises
    ------
    InvalidValue
        The vertices that forward are no torus or mesh, a host hangs on several of them by one port, or
        an order that does not name every axis once.
    UnknownName
        A rails rule that there is not.
    """
    check_rails(rails)
    torus = torus_coordinates(fabric)
    if torus is None:
        raise InvalidValue("dimension-order", "the fabric is neither a torus nor a mesh")
    names = AXES[: len(torus.sizes)]
    if sorted(order or names) != sorted(names):
        raise InvalidValue("dimension-order.order", f"{order!r} does not name each of {names!r} once")
    ends = end_points(fabric, np.asarray(hosts, np.int32).reshape(-1))
    network = transit_network(fabric, ends)
    odd = ends.port_host[~network.arcs.forwards[network.port_vertex]]
    if len(odd):
        name = fabric.names[ends.hosts[odd[0]]]
        raise InvalidValue("dimension-order", f"host {name!r} does not hang on one vertex of the torus")
    axes = np.array([names.index(axis) for axis in order or names], np.int32)
    return DimensionOrder(fabric, ends, network, rails, torus, axes)


class DimensionOrder(ShortestPaths):
    """Routes by dimension order; each pair has one shortest way."""

    name = "dimension-order"

    def __init__(
        self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, torus: Torus, axes: Ints
    ) -> None:
        super().__init__(fabric, ends, network, rails)
        self._place: Ints = torus.coordinates[fabric.forwards]  # the network's vertices, in its order
        self._torus = torus
        self._axes = axes

    @cached_property
    def _hops(self) -> HopArray:
        hops = np.empty((len(self._vertex),) * 2, np.int16)

        def fill(first: int) -> None:
            rows = slice(first, first + AT_ONCE)
            sizes, wraps = self._torus.sizes, self._torus.wraps
            kernel.fill_distances(self._place, sizes, wraps, self._vertex[rows], self._vertex, hops[rows])

        each(fill, range(0, len(hops), AT_ONCE))
        return hops.astype(np.int8) if int(hops.max(initial=0)) <= 127 else hops

    @cached_property
    def _next_arc(self) -> Int8s:
        """uint8[k, v]: arc to follow from every vertex to each row's."""
        found = np.empty((len(self._vertex), len(self._place)), np.uint8)
        torus, step_arc = self._torus, self._step_arc()

        def fill(first: int) -> None:
            rows = slice(first, first + AT_ONCE)
            kernel.fill_next_arcs(
                self._place, torus.sizes, torus.wraps, self._axes, step_arc, self._vertex[rows], found[rows]
            )

        each(fill, range(0, len(found), AT_ONCE))
        return found

    def _step_arc(self) -> Int8s:
        """uint8[v, d, 2]: arc of each step, counted from the vertex's first."""
        arcs, place, sizes = self._network.arcs, self._place.astype(np.int64), self._torus.sizes
        tail = np.repeat(np.arange(len(arcs.forwards)), np.diff(arcs.out_ptr))
        step = place[arcs.head] - place[tail]
        axis = np.abs(step).argmax(axis=1)
        length = step[np.arange(len(step)), axis]
        up = (length == 1) | (length < -1)  # from the last of a circle to its first
        found = np.zeros((len(arcs.forwards), len(sizes), 2), np.uint8)
        found[tail, axis, up.astype(int)] = np.arange(len(tail)) - arcs.out_ptr[tail]
        return found

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        arc_load, hops = np.zeros(len(self._network.arcs.head)), np.empty(len(row), np.int32)
        follow_arcs(self._graph, row, target, amount, arc_load, hops)
        return self._on_links(arc_load), hops

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        arcs, share = arcs_with(self._network.cables, link)
        over = np.zeros(len(self._network.arcs.head))
        over[arcs] = share
        return by_arcs(self._graph, over, row, target)

    def _flows(self) -> FlowArrays:
        links = len(self.fabric.links)
        return flow_arrays(
            ARCS,
            links=links,
            max_entries=links,
            max_channels=self.max_channels,
            ends=self._arrays,
            hops=self._hops,
            graph=self._graph,
        )

    @cached_property
    def _graph(self) -> GraphArrays:
        none = np.zeros((0, 0), self._hops.dtype)
        return graph_arrays(self._network, self._vertex, hops_to=none, next_arc=self._next_arc)
