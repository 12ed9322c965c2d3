"""Routings that spread traffic: adaptive ones over non-minimal paths, and single paths, least loaded first.

Adaptive routing with a given share of traffic on non-minimal paths (Valiant, UGAL).

The remaining traffic uses the minimal routing. A non-minimal path consists of two shortest paths: from the
sender's switch to an intermediate switch drawn uniformly from all switches, and from there to the receiver's
switch (Valiant, "A scheme for fast parallel communication", 1982). Adaptive routers choose between the two by
the length of their queues (Singh, "Load-balanced routing in interconnection networks", 2005: UGAL). Queues
are not known here, so the share is an option; `mapping.routing.spread` computes the effect of every
share. Traffic between hosts of one switch stays in that switch. The intermediate switches are all vertices
that forward and reach each other.

Loads are exact: they are linear in the share, and the non-minimal part depends only on how much each switch
sends and receives in total.

Single shortest paths, each the least loaded one at the time when its pair is routed.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, Algorithm 3. There a large weight on every link makes shortest paths win over longer ones. On large
networks a 64-bit number with that weight loses the loads, so here paths are compared by hops first, then by
the sum of load / capacity. Parallel cables are one link, shared in proportion to capacity.

Loads depend on all traffic and on the order of the pairs: as given (for a placement by sending, then by
receiving vertex), or heaviest first.

Congestion of a placement under adaptive routing, for every share of non-minimal traffic.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.routing import forwarding_tables
from mapping.routing.kernels.channels import Channels
from mapping.routing.kernels.flows import FlowArrays
from mapping.routing.kernels.paths import Goals, new_spread
from mapping.routing.kernels.single_paths import Demands, carry_singly
from mapping.routing.network import EndPoints, Network, arcs_with, attach, host_traffic, second_hosts
from mapping.routing.routes import ALL_CONNECTED, Load, Routes
from mapping.routing.shortest_paths import ShortestPaths, fraction_over_arc, spread
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Floats, Ints, Longs, Placement, Profile

MINIMAL = PATHS, TABLES = "shortest-paths", "tables"
"""Routings that the minimal part may use."""
CHUNK = 1 << 22
"""Largest number of demands routed at once."""


def ugal(
    fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, share: float = 0.25, minimal: str = PATHS
) -> Adaptive:
    """Return routes with a share of traffic over random switches, like UGAL.

    The share in a real router depends on its queues: report the range (`mapping.routing.spread`).

    Args:
        share: Share of non-minimal traffic, 0 to 1.
        minimal: Routing of the minimal part, one of `MINIMAL`.
    """
    return _build(fabric, hosts, rails, "ugal", share, minimal)


def valiant(
    fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, share: float = 1.0, minimal: str = PATHS
) -> Adaptive:
    """Return routes with all traffic over random switches, as Valiant; options as for `ugal`."""
    return _build(fabric, hosts, rails, "valiant", share, minimal)


def _build(fabric: Fabric, hosts: ArrayLike, rails: str, name: str, share: float, minimal: str) -> Adaptive:
    if not 0 <= share <= 1:
        raise InvalidValue(f"{name}.share", f"{share:g} is not from 0 to 1")
    if minimal not in MINIMAL:
        raise UnknownName("minimal routing", minimal, MINIMAL)
    tables = forwarding_tables.build(fabric, hosts, rails=rails) if minimal == TABLES else None
    return Adaptive(fabric, hosts, rails, name, share, tables)


class Adaptive(ShortestPaths):
    """Routes with a given share of non-minimal traffic.

    `load` and distances are exact. `flows`, which searches use, contains the minimal part only: the
    non-minimal part loads nearly every link for every pair.

    Attributes:
        share: Share of non-minimal traffic.
    """

    def __init__(
        self, fabric: Fabric, hosts: ArrayLike, rails: str, name: str, share: float, tables: Routes | None
    ) -> None:
        super().__init__(fabric, *attach(fabric, hosts), rails)
        self.name = name
        self.share = share
        self._tables = tables

    def load(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Load:
        """Return the load of traffic between hosts; see `Routes.load`."""
        minimal, detour = self.parts(source, target, bytes)
        links = (1 - self.share) * minimal.link_bytes + self.share * detour.link_bytes
        return Load(links, (1 - self.share) * minimal.hops + self.share * detour.hops)

    def parts(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> tuple[Load, Load]:
        """Return the load of all traffic on minimal paths, and that of all traffic on non-minimal paths."""
        minimal = super().load if self._tables is None else self._tables.load
        return minimal(source, target, bytes), self._detour(source, target, bytes)

    def grouped_hops(self) -> tuple[Ints, Floats]:
        """Return the mean hops between groups of interchangeable hosts; see `Routes.grouped_hops`."""
        group, between = super().grouped_hops()
        first, second, of_host = _members(group)
        own: Ints | Longs = np.arange(len(first))
        if self._tables is not None:
            by_tables, between = self._tables.grouped_hops()
            joint = by_tables.astype(np.int64) * len(first) + of_host
            first, second, of_host = _members(joint)
            own = by_tables[first]
        i, j = np.repeat(first, len(first)), np.tile(first, len(first))
        j = np.where(i == j, np.repeat(second, len(first)), j)
        detour = self._detour(i, j, np.zeros(len(i))).hops.reshape(len(first), len(first))
        found = (1 - self.share) * between[own][:, own] + self.share * detour
        found[np.arange(len(first)), np.arange(len(first))] *= first != second
        return of_host, found

    def on_link(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike, link: int) -> Floats:
        """Return the bytes of each pair on one link; see `Routes.on_link`."""
        minimal = super().on_link if self._tables is None else self._tables.on_link
        crossing: Floats = (1 - self.share) * minimal(source, target, bytes, link)
        if self.share:
            detours = NonMinimal(self.fabric, self.ends, self._network, self.rails, self._middle)
            crossing += self.share * detours.on_link(source, target, bytes, link)
        return crossing

    def _detour(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Load:
        """Return the load of all traffic on non-minimal paths."""
        return self._load(source, target, bytes, self._carry_over_middle)

    def _carry_over_middle(self, channels: Channels, amount: Floats) -> tuple[Floats, Floats]:
        """Route channels over intermediate switches (see `Routes._carry_channels`); links are means."""
        row, goal = self._arrays.port_row[channels.source], channels.target
        away = row != goal
        outward, inward = self._detour_steps
        steps = np.where(away, outward[row] + inward[goal], 0.0)
        if not bool(np.isfinite(steps).all()):
            return np.zeros(len(self.fabric.links)), np.where(np.isfinite(steps), steps, -1.0)
        rows = len(self._vertex)
        loads = self._spread(
            np.bincount(row[away], amount[away], rows).astype(np.float64),
            np.bincount(goal[away], amount[away], rows).astype(np.float64),
        )
        return loads, steps

    def _flows(self) -> FlowArrays:
        return super()._flows() if self._tables is None else self._tables.flows

    @cached_property
    def _middle(self) -> Ints:
        """Intermediate vertices (int32[w]): the largest set of forwarding vertices that reach each other."""
        arcs = self._network.arcs
        forwards = np.flatnonzero(arcs.forwards)
        graph = csr_array((np.ones(len(arcs.head)), arcs.head, arcs.out_ptr), shape=(len(arcs.forwards),) * 2)
        _, part = connected_components(graph[forwards][:, forwards], connection="strong")
        most = np.argmax(np.bincount(part)) if len(part) else 0
        return np.asarray(forwards[part == most], np.int32)

    @cached_property
    def _detour_steps(self) -> tuple[Floats, Floats]:
        """Mean links (float64[k]) from each row to the intermediate vertices, and back; inf if none."""
        _, outward = self._paths_between(self._vertex, self._middle, np.zeros(len(self._vertex)), None)
        _, inward = self._paths_between(self._middle, self._vertex, None, np.zeros(len(self._vertex)))
        return outward, inward

    def _spread(self, outward: Floats, inward: Floats) -> Floats:
        """Return loads (float64[m]) if each row sends and receives these bytes over intermediate vertices."""
        arcs, cables = self._network.arcs, self._network.cables
        senders, receivers = np.flatnonzero(outward), np.flatnonzero(inward)
        arc_load = np.zeros(len(arcs.head))
        arc_load += self._paths_between(self._vertex[senders], self._middle, outward[senders], None)[0]
        arc_load += self._paths_between(self._middle, self._vertex[receivers], None, inward[receivers])[0]
        loads = np.zeros(len(self.fabric.links))
        loads[cables.link] = np.repeat(arc_load, np.diff(cables.ptr)) * cables.share
        return loads

    def _paths_between(
        self, start: Ints, goal: Ints, sent: Floats | None, received: Floats | None
    ) -> tuple[Floats, Floats]:
        """Return loads of arcs and mean numbers of links of the paths between all starts and all goals.

        Each start spreads the bytes in `sent` evenly over the goals, or each goal receives the bytes in
        `received` evenly from the starts. Means are by start or by goal, respectively.
        """
        arcs, goals = self._network.arcs, Goals(goal, np.full(len(goal), -1, np.int32))
        arc_load = np.zeros(len(arcs.head))
        total = np.zeros(len(start) if received is None else len(goal))
        step = max(CHUNK // max(len(goal), 1), 1)
        for first in range(0, len(start), step):
            some = start[first : first + step]
            if received is None:
                assert sent is not None
                amount = np.repeat(sent[first : first + step] / max(len(goal), 1), len(goal))
            else:
                amount = np.tile(received / len(start), len(some))
            number = np.tile(np.arange(len(goal), dtype=np.int32), len(some))
            load, length = spread(arcs, goals, np.repeat(some, len(goal)), number, amount)
            arc_load += load
            links = np.where(length < 0, np.inf, length).reshape(len(some), len(goal))
            if received is None:
                total[first : first + step] = links.mean(axis=1) if len(goal) else np.inf
            else:
                total += links.sum(axis=0) / len(start)
        return arc_load, total if len(start) and len(goal) else np.full(len(total), np.inf)


def _members(label: Ints | Longs) -> tuple[Longs, Longs, Ints]:
    """Return the first and second host of each group (the same if it has one), and group numbers."""
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    group: Ints = number.astype(np.int32)
    return first, second_hosts(group, first.astype(np.int32)).astype(np.int64), group


class NonMinimal(ShortestPaths):
    """All traffic on non-minimal paths, for `Routes.on_link`; its other methods are those of shortest paths.

    Args:
        middle (int32[w]): Intermediate vertices of the network, each used with the same probability.
    """

    def __init__(self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, middle: Ints) -> None:
        super().__init__(fabric, ends, network, rails)
        self._middle = middle

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        """Return the fraction (float64[d]) of each demand that crosses a link to or from the middle."""
        network, middle = self._network, self._middle
        to_middle = Goals(middle, np.full(len(middle), -1, np.int32))
        every = np.arange(len(middle), dtype=np.int32)
        begin, of_row = np.unique(row, return_inverse=True)
        end, of_target = np.unique(target, return_inverse=True)
        outward, inward = np.zeros(len(begin)), np.zeros(len(end))
        for arc, share in zip(*arcs_with(network.cables, link), strict=True):
            out = fraction_over_arc(
                *(network.arcs, int(arc), np.repeat(self._vertex[begin], len(middle)), to_middle),
                np.tile(every, len(begin)),
            )
            back = fraction_over_arc(
                *(network.arcs, int(arc), np.repeat(middle, len(end)), self._goals),
                np.tile(end, len(middle)),
            )
            outward += share * out.reshape(len(begin), len(middle)).mean(axis=1)
            inward += share * back.reshape(len(middle), len(end)).mean(axis=0)
        return np.where(row != target, outward[of_row] + inward[of_target], 0.0)


GIVEN, HEAVIEST = "given", "heaviest"
ORDERS = (GIVEN, HEAVIEST)


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, order: str = GIVEN) -> LeastLoaded:
    """Return routes over single least-loaded paths.

    Args:
        order: ``given``: pairs are routed in the order given to `Routes.load`; ``heaviest``: by decreasing
            bytes, equal ones in the given order.
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


class ShareRange(NamedTuple):
    """Congestion of one placement as a function of the share of non-minimal traffic.

    The load of a link is linear in the share, so the maximum over links is convex: it is largest at one end
    of the range and smallest where two links have equal load, or at an end. Both are exact.
    """

    shares: Floats
    """float64[n]: The requested shares."""
    congestion_seconds: Floats
    network_congestion_seconds: Floats
    """float64[n]: Congestion at each of these shares."""
    least_seconds: float
    least_share: float
    """Least congestion over all shares from 0 to 1, and the smallest share that has it."""
    most_seconds: float
    most_share: float
    """Largest congestion over all shares, and its share."""
    least_network_seconds: float
    least_network_share: float
    most_network_seconds: float
    most_network_share: float
    """The same for links between vertices that forward."""


def range_over_share(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    shares: ArrayLike = (0.0, 0.25, 0.5, 0.75, 1.0),
    *,
    minimal: str = PATHS,
    rails: str = ALL_CONNECTED,
) -> ShareRange:
    """Return the congestion of a placement under adaptive routing for all shares of non-minimal traffic.

    Args:
        shares (float[n]): Shares, each 0 to 1, at which congestion is returned.
        minimal: Routing of the minimal part: ``shortest-paths`` or ``tables``.

    Raises:
        InvalidPlacement, InvalidValue, UnknownName, DisconnectedAllocation, UnreachablePair
    """
    wanted = np.array(shares, np.float64).reshape(-1)
    if not bool(((wanted >= 0) & (wanted <= 1)).all()):
        raise InvalidValue("range_over_share.shares", "must be from 0 to 1")
    traffic = host_traffic(profile, placement)
    routes = ugal(fabric, traffic.hosts, rails=rails, share=0.0, minimal=minimal)
    parts = routes.parts(traffic.source, traffic.target, traffic.bytes)
    ends = np.stack([part.link_bytes / fabric.links.capacity for part in parts])
    seconds = (1 - wanted)[:, None] * ends[0] + wanted[:, None] * ends[1]
    network = fabric.network_link
    return ShareRange(
        wanted,
        seconds.max(axis=1, initial=0.0),
        seconds[:, network].max(axis=1, initial=0.0),
        *_extremes(ends),
        *_extremes(ends[:, network]),
    )


def _extremes(ends: Floats) -> tuple[float, float, float, float]:
    """Return least and most of the worst link, each with its share.

    Args:
        ends (float64[2, m]): Seconds of each link at the shares 0 and 1.
    """
    worst = ends.max(axis=1, initial=0.0)
    most = int(worst[1] > worst[0])
    share, least = 0.0, float(worst[0])
    # Walk the upper envelope from the left: follow the worst line (of equal ones the steepest) until a
    # steeper one crosses it.
    line = int(np.lexsort((ends[1], ends[0]))[-1]) if ends.shape[1] else -1
    while line >= 0 and share < 1.0:
        slope = ends[1] - ends[0]
        if slope[line] >= 0:
            break
        value = ends[0] + share * slope
        steeper = np.flatnonzero(slope > slope[line])
        reach = share + (value[line] - value[steeper]) / (slope[steeper] - slope[line])
        until = min(float(reach.min(initial=1.0)), 1.0)
        least, share = float(ends[0, line] + until * slope[line]), until
        if until < 1.0:
            crossing = steeper[np.isclose(reach, until, rtol=1e-12, atol=1e-15)]
            line = int(crossing[np.argmax(slope[crossing])])
    return least, share, float(worst[most]), float(most)
