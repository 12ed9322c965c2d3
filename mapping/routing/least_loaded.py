"""Single shortest paths, each the least loaded one at the time when its pair is routed.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, Algorithm 3. There a large weight on every link makes shortest paths win over longer ones. On large
networks a 64-bit number with that weight loses the loads, so here paths are compared by hops first, then by
the sum of load / capacity. Parallel cables are one link, shared in proportion to capacity.

Loads depend on all traffic and on the order of the pairs: as given (for a placement by sending, then by
receiving vertex), or heaviest first.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.kernels.channels import Channels
from mapping.routing.kernels.paths import new_spread
from mapping.routing.kernels.single_paths import Demands, carry_singly
from mapping.routing.network import EndPoints, Network, arcs_with, attach
from mapping.routing.routes import ALL_CONNECTED
from mapping.routing.shortest_paths import ShortestPaths
from registry.errors import UnknownName
from registry.model import Fabric, Floats, Ints, Longs

GIVEN, HEAVIEST = "given", "heaviest"
ORDERS = (GIVEN, HEAVIEST)


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, order: str = GIVEN) -> LeastLoaded:
    """Return routes over single least-loaded paths.

    Parameters
    ----------
    order : str
        ``given``: pairs are routed in the order given to `Routes.load`; ``heaviest``: by decreasing bytes,
        equal ones in the given order.
    """
    if order not in ORDERS:
        raise UnknownName("order of pairs", order, ORDERS)
    return LeastLoaded(fabric, *attach(fabric, hosts), rails, order)


class LeastLoaded(ShortestPaths):
    """Routes over single paths that depend on all traffic.

    `load` is exact. `flows`, which searches use, are those of all shortest paths: an approximation, since the
    path of a pair depends on other pairs. Distances are the same for both.
    """

    name = "least-loaded"

    def __init__(self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, order: str) -> None:
        super().__init__(fabric, ends, network, rails)
        self._order = order

    @cached_property
    def _capacity(self) -> Floats:
        """Total bytes/s (float64[arcs]) of each arc's cables."""
        cables = self._network.cables
        arc = np.repeat(np.arange(len(cables.ptr) - 1), np.diff(cables.ptr))
        capacity = self.fabric.links.capacity[cables.link]
        return np.bincount(arc, weights=capacity, minlength=len(cables.ptr) - 1).astype(np.float64)

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        order, arc_load = self._order_of(amount), np.zeros(len(self._network.arcs.head))
        hops = np.empty(len(row), np.int32)
        hops[order] = self._singly(row[order], target[order], amount[order], arc_load)
        return self._on_links(arc_load), hops

    def _crossing(self, channels: Channels, amount: Floats, link: int) -> Floats:
        """Return the bytes of each channel on a link; each with a shortest path over it is routed singly."""
        row, target = self._arrays.port_row[channels.source], channels.target
        crossing = np.zeros(len(amount))
        arcs, share = arcs_with(self._network.cables, link)
        if not len(arcs):
            return crossing
        arc, order = int(arcs[0]), self._order_of(amount)  # this graph has no layers, so a link is in one arc
        may = np.flatnonzero(super()._crossing(channels, np.ones(len(amount)), link)[order])
        arc_load, done = np.zeros(len(self._network.arcs.head)), 0
        for index in may.tolist():
            before, own = order[done:index], order[index : index + 1]
            self._singly(row[before], target[before], amount[before], arc_load)
            others = arc_load[arc]
            self._singly(row[own], target[own], amount[own], arc_load)
            if arc_load[arc] > others:
                crossing[order[index]] = amount[order[index]] * share[0]
            done = index + 1
        return crossing

    def _order_of(self, amount: Floats) -> Longs:
        """Return the order (int64[d]) in which demands are routed."""
        return np.argsort(-amount, kind="stable") if self._order == HEAVIEST else np.arange(len(amount))

    def _singly(self, row: Ints, target: Ints, amount: Floats, arc_load: Floats) -> Ints:
        """Route each demand on one path, add its load to the arcs, and return path lengths (int32[d])."""
        arcs, steps = self._network.arcs, np.empty(len(row), np.int32)
        demands = Demands(self._vertex[row], np.ascontiguousarray(target, np.int32), amount)
        buffer = new_spread(len(arcs.forwards), len(arcs.head))
        carry_singly(arcs, self._capacity, self._hops_to, demands, buffer, arc_load, steps)
        return steps
