"""Adaptive routing with a stated share of traffic on non-minimal ways, after Valiant and UGAL.

The rest goes by the minimal routing. A non-minimal way leads by shortest paths from the switch of the
sender to a switch drawn uniformly from all, and on to that of the receiver (Valiant, "A scheme for fast
parallel communication", 1982); adaptive routers choose between the two by their queues (Singh, "Load-
balanced routing in interconnection networks", 2005: UGAL), which nothing here knows: so the share is
stated, and `range_over_share` tells what any share can give. What hosts of one switch send each other
stays there. The switches drawn from are all vertices that forward and reach each other.

Loads are exact. They are linear in the share, and the non-minimal part depends only on what each switch
sends and receives in all.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.routing import forwarding_tables
from mapping.routing.detours import Detours
from mapping.routing.kernels.channels import Channels
from mapping.routing.kernels.flows import FlowArrays
from mapping.routing.kernels.paths import Goals
from mapping.routing.network import end_points, transit_network
from mapping.routing.routes import ALL_CONNECTED, Load, Routes, check_rails
from mapping.routing.shortest_paths import ShortestPaths
from mapping.routing.spreading import spread
from mapping.routing.traffic import host_traffic
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Floats, Ints, Longs, Placement, Profile

MINIMAL = ("shortest-paths", "tables")
"""What the minimal part can go by."""
CHUNK = 1 << 22
"""Most demands that are routed at once."""


def build(
    fabric: Fabric,
    hosts: ArrayLike,
    *,
    rails: str,
    name: str,
    share: float,
    minimal: str,
) -> Adaptive:
    """Routes between `hosts` (vertices) with that share of traffic on non-minimal ways.

    Parameters
    ----------
    name : str
        Of the routing.
    share : float
        0 to 1.
    minimal : str
        One of `MINIMAL`.

    Raises
    ------
    InvalidValue
        A share outside 0 to 1, or a fabric without the tables that are asked for.
    UnknownName
        Another minimal routing, or a rails rule that there is not.
    """
    check_rails(rails)
    if not 0 <= share <= 1:
        raise InvalidValue(f"{name}.share", f"{share:g} is not from 0 to 1")
    if minimal not in MINIMAL:
        raise UnknownName("minimal routing", minimal, MINIMAL)
    vertices = np.asarray(hosts, np.int32).reshape(-1)
    tables = forwarding_tables.build(fabric, vertices, rails=rails) if minimal == "tables" else None
    return Adaptive(fabric, vertices, rails, name, share, tables)


class Adaptive(ShortestPaths):
    """Routes of which a share is non-minimal.

    `flows`, which searches walk, are those of the minimal part: a surrogate, as the other part loads
    nearly every link by every pair. `load` and distances are exact.

    Attributes
    ----------
    share : float
    """

    def __init__(
        self, fabric: Fabric, hosts: Ints, rails: str, name: str, share: float, tables: Routes | None
    ) -> None:
        ends = end_points(fabric, hosts)
        super().__init__(fabric, ends, transit_network(fabric, ends), rails)
        self.name = name
        self.share = share
        self._tables = tables

    def load(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Load:
        """Route traffic between hosts; see `Routes.load`."""
        minimal, detour = self.parts(source, target, bytes)
        links = (1 - self.share) * minimal.link_bytes + self.share * detour.link_bytes
        return Load(links, (1 - self.share) * minimal.hops + self.share * detour.hops)

    def parts(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> tuple[Load, Load]:
        """All of the traffic on minimal, and all of it on non-minimal ways."""
        minimal = super().load if self._tables is None else self._tables.load
        return minimal(source, target, bytes), self._detour(source, target, bytes)

    def grouped_hops(self) -> tuple[Ints, Floats]:
        """Mean hops between groups of hosts that are interchangeable; see `Routes.grouped_hops`.

        Raises
        ------
        DisconnectedAllocation
        """
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
        """What each pair puts on one link; see `Routes.on_link`."""
        minimal = super().on_link if self._tables is None else self._tables.on_link
        found: Floats = (1 - self.share) * minimal(source, target, bytes, link)
        if self.share:
            detours = Detours(self.fabric, self.ends, self._network, self.rails, self._middle)
            found += self.share * detours.on_link(source, target, bytes, link)
        return found

    def _detour(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Load:
        """All traffic on non-minimal ways."""
        return self._load(source, target, bytes, self._carry_over_middle)

    def _carry_over_middle(self, channels: Channels, amount: Floats) -> tuple[Floats, Floats]:
        """See `Routes._carry_channels`; the links crossed are means."""
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
        """int32[w]: the vertices that ways are led over: the most that forward and all reach each other."""
        arcs = self._network.arcs
        forwards = np.flatnonzero(arcs.forwards)
        graph = csr_array((np.ones(len(arcs.head)), arcs.head, arcs.out_ptr), shape=(len(arcs.forwards),) * 2)
        _, part = connected_components(graph[forwards][:, forwards], connection="strong")
        most = np.argmax(np.bincount(part)) if len(part) else 0
        return np.asarray(forwards[part == most], np.int32)

    @cached_property
    def _detour_steps(self) -> tuple[Floats, Floats]:
        """float64[k]: mean links from each row to the middle, and back; inf where one is not reached."""
        _, outward = self._ways(self._vertex, self._middle, np.zeros(len(self._vertex)), None)
        _, inward = self._ways(self._middle, self._vertex, None, np.zeros(len(self._vertex)))
        return outward, inward

    def _spread(self, outward: Floats, inward: Floats) -> Floats:
        """float64[m]: loads where each row sends and receives so many bytes by way of the middle."""
        arcs, cables = self._network.arcs, self._network.cables
        senders, receivers = np.flatnonzero(outward), np.flatnonzero(inward)
        arc_load = np.zeros(len(arcs.head))
        arc_load += self._ways(self._vertex[senders], self._middle, outward[senders], None)[0]
        arc_load += self._ways(self._middle, self._vertex[receivers], None, inward[receivers])[0]
        loads = np.zeros(len(self.fabric.links))
        loads[cables.link] = np.repeat(arc_load, np.diff(cables.ptr)) * cables.share
        return loads

    def _ways(
        self, start: Ints, goal: Ints, sent: Floats | None, received: Floats | None
    ) -> tuple[Floats, Floats]:
        """Loads of arcs, and mean links, of the ways between all starts and all goals.

        Each start spreads what it has `sent` evenly over the goals, or each goal has `received` its bytes
        evenly from the starts; means are by start or by goal accordingly.
        """
        arcs, places = self._network.arcs, Goals(goal, np.full(len(goal), -1, np.int32))
        arc_load = np.zeros(len(arcs.head))
        total = np.zeros(len(start) if received is None else len(goal))
        step = max(CHUNK // max(len(goal), 1), 1)
        for at in range(0, len(start), step):
            some = start[at : at + step]
            if received is None:
                assert sent is not None
                amount = np.repeat(sent[at : at + step] / max(len(goal), 1), len(goal))
            else:
                amount = np.tile(received / len(start), len(some))
            number = np.tile(np.arange(len(goal), dtype=np.int32), len(some))
            load, length = spread(arcs, places, np.repeat(some, len(goal)), number, amount)
            arc_load += load
            links = np.where(length < 0, np.inf, length).reshape(len(some), len(goal))
            if received is None:
                total[at : at + step] = links.mean(axis=1) if len(goal) else np.inf
            else:
                total += links.sum(axis=0) / len(start)
        return arc_load, total if len(start) and len(goal) else np.full(len(total), np.inf)


class ShareRange(NamedTuple):
    """Congestion of one placement over the share of non-minimal ways.

    The load of a link is linear in the share and the worst of all links is convex: it is worst at one of
    the two ends, and least where two links are equally bad, or at an end; both are exact.

    Attributes
    ----------
    shares : float64[n]
        As asked for.
    congestion_seconds, network_congestion_seconds : float64[n]
        At each of them.
    least_seconds, least_share : float
        Least congestion over all shares from 0 to 1, and the smallest share that has it.
    most_seconds, most_share : float
    least_network_seconds, least_network_share, most_network_seconds, most_network_share : float
        The same over the links between vertices that forward.
    """

    shares: Floats
    congestion_seconds: Floats
    network_congestion_seconds: Floats
    least_seconds: float
    least_share: float
    most_seconds: float
    most_share: float
    least_network_seconds: float
    least_network_share: float
    most_network_seconds: float
    most_network_share: float


def range_over_share(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    shares: ArrayLike = (0.0, 0.25, 0.5, 0.75, 1.0),
    *,
    minimal: str = "shortest-paths",
    rails: str = ALL_CONNECTED,
) -> ShareRange:
    """What a placement costs under adaptive routing, whatever share of traffic takes non-minimal ways.

    Parameters
    ----------
    shares : float[n]
        Where congestion is wanted, each 0 to 1.
    minimal : str
        What the minimal part goes by: ``shortest-paths`` or ``tables``.

    Raises
    ------
    InvalidPlacement, InvalidValue, UnknownName, DisconnectedAllocation, UnreachablePair
    """
    wanted = np.array(shares, np.float64).reshape(-1)
    if not bool(((wanted >= 0) & (wanted <= 1)).all()):
        raise InvalidValue("range_over_share.shares", "must be from 0 to 1")
    traffic = host_traffic(profile, placement)
    routes = build(fabric, traffic.hosts, rails=rails, name="ugal", share=0.0, minimal=minimal)
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
    """Least and most of the worst link over the share, each with its share; `ends` is float64[2, m]."""
    worst = ends.max(axis=1, initial=0.0)
    most = int(worst[1] > worst[0])
    share, least = 0.0, float(worst[0])
    # The upper envelope from the left: follow the worst line to where a steeper one crosses it.
    at = _worst_line(ends, 0.0)
    while at >= 0 and share < 1.0:
        slope = ends[1] - ends[0]
        if slope[at] >= 0:
            break
        value = ends[0] + share * slope
        steeper = np.flatnonzero(slope > slope[at])
        reach = share + (value[at] - value[steeper]) / (slope[steeper] - slope[at])
        until = min(float(reach.min(initial=1.0)), 1.0)
        least, share = float(ends[0, at] + until * slope[at]), until
        if until < 1.0:
            crossing = steeper[np.isclose(reach, until, rtol=1e-12, atol=1e-15)]
            at = int(crossing[np.argmax(slope[crossing])])
    return least, share, float(worst[most]), float(most)


def _worst_line(ends: Floats, share: float) -> int:
    """The worst link at a share, of equals the one that rises most; -1 where there is none."""
    if ends.shape[1] == 0:
        return -1
    value = (1 - share) * ends[0] + share * ends[1]
    return int(np.lexsort((ends[1], value))[-1])


def _members(label: Ints | Longs) -> tuple[Longs, Longs, Ints]:
    """First and second host of each group (the first again where there is but one), and groups by number."""
    _, first, group = np.unique(label, return_index=True, return_inverse=True)
    rest = np.ones(len(label), np.bool_)
    rest[first] = False
    second, others = first.copy(), np.flatnonzero(rest)[::-1]
    second[group[others]] = others
    return first, second, group.astype(np.int32)
