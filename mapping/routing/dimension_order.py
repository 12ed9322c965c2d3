"""Dimension-order routing on tori and meshes: one axis after the other, each in the shorter direction.

If both directions around a ring of even size are equally short, the upward one is used. Sources: the example
in Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures", 2011,
section 2.3; Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 8.4.
Parallel cables are one link, shared in proportion to capacity.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.kernels import dimension_order as kernel
from mapping.routing.kernels.flows import ARCS, NO_ARC, FlowArrays, GraphArrays, follow_arcs
from mapping.routing.kernels.paths import HopArray
from mapping.routing.network import (
    EndPoints,
    Network,
    arcs_with,
    attach,
    empty_flow_arrays,
    graph_arrays,
)
from mapping.routing.routes import ALL_CONNECTED
from mapping.routing.shortest_paths import ShortestPaths
from mapping.routing.torus import Torus, torus_coordinates
from mapping.threads import each
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Int8s, Ints

AXES = "xyzabcdefghi"
"""Names of the axes in the option `order`."""
AT_ONCE = 256
"""Goals per piece of parallel work."""


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, order: str = "") -> DimensionOrder:
    """Return routes by dimension order.

    The forwarding vertices must be a torus or mesh, and each port of a host attached to only one of them.

    Parameters
    ----------
    order : str
        Axes by the letters of `AXES`, in the order of travel, such as ``zyx`` (default: the order of
        ``fabric.coordinates``, or the one that `torus_coordinates` finds).
    """
    torus = torus_coordinates(fabric)
    if torus is None:
        raise InvalidValue("dimension-order", "the fabric is neither a torus nor a mesh")
    names = AXES[: len(torus.sizes)]
    if sorted(order or names) != sorted(names):
        raise InvalidValue("dimension-order.order", f"{order!r} does not name each of {names!r} once")
    ends, network = attach(fabric, hosts)
    odd = ends.port_host[~network.arcs.forwards[network.port_vertex]]
    if len(odd):
        name = fabric.names[ends.hosts[odd[0]]]
        raise InvalidValue("dimension-order", f"host {name!r} is not attached to one vertex of the torus")
    axes = np.array([names.index(axis) for axis in order or names], np.int32)
    return DimensionOrder(fabric, ends, network, rails, torus, axes)


class DimensionOrder(ShortestPaths):
    """Routes by dimension order; each pair has one shortest path."""

    name = "dimension-order"

    def __init__(
        self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, torus: Torus, axes: Ints
    ) -> None:
        super().__init__(fabric, ends, network, rails)
        self._place: Ints = torus.coordinates[fabric.forwards]  # of the network's vertices
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
        """Arc to follow from every vertex to the vertex of each row (uint8[k, v])."""
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
        """Return the arc of each step (uint8[v, d, 2]), counted from the vertex's first arc."""
        arcs, place, sizes = self._network.arcs, self._place.astype(np.int64), self._torus.sizes
        tail = np.repeat(np.arange(len(arcs.forwards)), np.diff(arcs.out_ptr))
        step = place[arcs.head] - place[tail]
        axis = np.abs(step).argmax(axis=1)
        length = step[np.arange(len(step)), axis]
        up = (length == 1) | (length < -1)  # from the last vertex of a ring to its first
        step_arc = np.zeros((len(arcs.forwards), len(sizes), 2), np.uint8)
        step_arc[tail, axis, up.astype(int)] = np.arange(len(tail)) - arcs.out_ptr[tail]
        return step_arc

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        arc_load, hops = np.zeros(len(self._network.arcs.head)), np.empty(len(row), np.int32)
        follow_arcs(self._graph, row, target, amount, arc_load, hops)
        return self._on_links(arc_load), hops

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        arcs, share = arcs_with(self._network.cables, link)
        over = np.zeros(len(self._network.arcs.head))
        over[arcs] = share
        return fraction_along_arcs(self._graph, over, row, target)

    def _flows(self) -> FlowArrays:
        links = len(self.fabric.links)
        flows = empty_flow_arrays(ARCS, links, links, self.max_channels, self._arrays, self._hops)
        return flows._replace(graph=self._graph)

    @cached_property
    def _graph(self) -> GraphArrays:
        none = np.zeros((0, 0), self._hops.dtype)
        return graph_arrays(self._network, self._vertex, hops_to=none, next_arc=self._next_arc)


def fraction_along_arcs(graph: GraphArrays, over: Floats, row: Ints, target: Ints) -> Floats:
    """Return the fraction (float64[d]) of each demand that crosses a link, with one arc to follow per vertex.

    Parameters
    ----------
    over : float64[arcs]
        Fraction of each arc's bytes on the link.
    row, target : int32[d]
        Indices into ``graph.vertex`` and ``graph.next_arc``.
    """
    fraction, vertex = np.zeros(len(row)), graph.vertex[row].astype(np.int64)
    walking = np.arange(len(row))
    while len(walking):
        onward = graph.next_arc[target[walking], vertex[walking]]
        walking, onward = walking[onward != NO_ARC], onward[onward != NO_ARC]
        arc = graph.arc_ptr[vertex[walking]] + onward
        fraction[walking] += over[arc]
        vertex[walking] = graph.arc_head[arc]
    return fraction
