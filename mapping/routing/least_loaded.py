"""Single shortest paths, each chosen when its turn comes as the least loaded so far.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, Algorithm 3. There a large weight on every link makes shortest paths win over longer ones; in 64 bits
that weight swallows the loads on large networks, so here paths are compared by (hops, sum of load / capacity
over the path) in that order. Parallel cables are one link, shared by capacity.

Loads depend on all traffic together and on the order in which pairs take their turn: as they are given,
which for a placement is by sending, then receiving vertex; or heaviest first.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.kernels.channels import Channels
from mapping.routing.kernels.least_loaded import carry_singly
from mapping.routing.kernels.paths import new_spread
from mapping.routing.network import EndPoints, Network, end_points, transit_network
from mapping.routing.on_link import arcs_with
from mapping.routing.routes import ALL_CONNECTED, check_rails
from mapping.routing.shortest_paths import ShortestPaths
from registry.errors import UnknownName
from registry.model import Fabric, Floats, Ints, Longs

GIVEN, HEAVIEST = "given", "heaviest"
ORDERS = (GIVEN, HEAVIEST)


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, order: str = GIVEN) -> LeastLoaded:
    """Routes between `hosts` (vertices) over single least-loaded paths.

    Parameters
    ----------
    order : str
        ``given``: pairs take their turn as they are given to `Routes.load`; ``heaviest``: by falling
        bytes, equals as they are given.

    Raises
    ------
    UnknownName
        Another order, or a rails rule that there is not.
    """
    check_rails(rails)
    if order not in ORDERS:
        raise UnknownName("order of pairs", order, ORDERS)
    ends = end_points(fabric, np.asarray(hosts, np.int32).reshape(-1))
    return LeastLoaded(fabric, ends, transit_network(fabric, ends), rails, order)


class LeastLoaded(ShortestPaths):
    """Routes over single paths that depend on all traffic.

    `load` is exact. `flows`, which searches walk, are those of all shortest paths: a surrogate, as what a
    pair loads is not its own alone. Distances are the same for both.
    """

    name = "least-loaded"

    def __init__(self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, order: str) -> None:
        super().__init__(fabric, ends, network, rails)
        self._order = order

    @cached_property
    def _capacity(self) -> Floats:
        """float64[arcs]: bytes/s of each arc's cables together."""
        cables = self._network.cables
        arc = np.repeat(np.arange(len(cables.ptr) - 1), np.diff(cables.ptr))
        capacity = self.fabric.links.capacity[cables.link]
        return np.bincount(arc, weights=capacity, minlength=len(cables.ptr) - 1).astype(np.float64)

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        turn, arc_load = self._turns(amount), np.zeros(len(self._network.arcs.head))
        hops = np.empty(len(row), np.int32)
        hops[turn] = self._singly(row[turn], target[turn], amount[turn], arc_load)
        return self._on_links(arc_load), hops

    def _crossing(self, channels: Channels, amount: Floats, link: int) -> Floats:
        """See `Routes`: each channel with a shortest way over the link takes its turn by itself."""
        row, target = self._arrays.port_row[channels.source], channels.target
        found = np.zeros(len(amount))
        arcs, share = arcs_with(self._network.cables, link)
        if not len(arcs):
            return found
        arc, turn = int(arcs[0]), self._turns(amount)  # a link is in one arc: this graph has no layers
        may = np.flatnonzero(super()._crossing(channels, np.ones(len(amount)), link)[turn])
        arc_load, done = np.zeros(len(self._network.arcs.head)), 0
        for at in may.tolist():
            before, own = turn[done:at], turn[at : at + 1]
            self._singly(row[before], target[before], amount[before], arc_load)
            others = arc_load[arc]
            self._singly(row[own], target[own], amount[own], arc_load)
            if arc_load[arc] > others:
                found[turn[at]] = amount[turn[at]] * share[0]
            done = at + 1
        return found

    def _turns(self, amount: Floats) -> Longs:
        """int64[d]: demands in the order in which they take their turn."""
        return np.argsort(-amount, kind="stable") if self._order == HEAVIEST else np.arange(len(amount))

    def _singly(self, row: Ints, target: Ints, amount: Floats, arc_load: Floats) -> Ints:
        """int32[d]: links of the path of each demand; loads are added to those of arcs."""
        arcs, steps = self._network.arcs, np.empty(len(row), np.int32)
        carry_singly(
            arcs,
            self._capacity,
            self._hops_to,
            self._vertex[row],
            np.ascontiguousarray(target, np.int32),
            amount,
            new_spread(len(arcs.forwards), len(arcs.head)),
            arc_load,
            steps,
        )
        return steps
