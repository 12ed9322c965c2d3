"""The cables that traffic between the allocation's hosts can use, and the time that bytes need on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapping.distances.background import Background
from mapping.distances.equivalent import hosts_routed_alike
from mapping.evaluation.kernels.pair_seconds import fill_seconds
from mapping.routing import shortest_paths
from mapping.routing.kernels.flows import new_scratch
from mapping.routing.routes import Routes
from mapping.threads import each
from registry.model import Bools, Floats, Ints

MAX_PAIRS = 4_000_000
"""Largest number of host pairs (hosts with equal routes counted once) whose routes are searched."""
PAIRS = 1 << 16
"""Pairs of hosts whose paths are compared together."""
OBLIVIOUS = ("shortest-paths", "tables", "dimension-order", "up-down")
"""Routings in which the paths of a pair do not depend on other traffic."""
ON_SHORTEST = ("ecmp", "least-loaded")
"""Routings that choose among all shortest paths."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cables:
    """The links of a fabric that the allocation's traffic can use.

    Attributes
    ----------
    usable : bool[m]
        True for rows of ``fabric.links`` that some pair of the hosts may load.
    capacity : float64[m]
        Bytes/s, reduced by background.
    background : float64[m]
        Bytes of other jobs.
    """

    usable: Bools
    capacity: Floats
    background: Floats

    def least_seconds(self, rows: Bools, bytes: float) -> float:
        """Return the least time of the worst of some links over which the given bytes are spread.

        In `t` seconds a link carries ``capacity * t`` bytes including its background. The time of links
        without bytes of this job does not count: the result is the least `t` in which all links have room for
        the bytes.
        """
        capacity, background = self.capacity[rows], self.background[rows]
        if bytes <= 0 or not len(capacity):
            return 0.0
        begin = background / capacity
        order = np.argsort(begin, kind="stable")
        rate, used = np.cumsum(capacity[order]), np.cumsum(background[order])
        level = (bytes + used) / rate  # time if only the first links are used
        enough = np.append(begin[order][1:], np.inf) >= level
        return float(level[int(np.argmax(enough))])

    def pair_seconds(self, routes: Routes, source: Ints, target: Ints) -> Floats:
        """Return the time of a byte (float64[p]) between two hosts, on the slowest link of its paths.

        Only links of the network count, and no bytes of other jobs on them.
        """
        rate = np.where(routes.fabric.network_link, 1.0 / self.capacity, 0.0)
        found, flows = np.empty(len(source)), routes.flows
        each(
            lambda part: fill_seconds(
                flows, new_scratch(flows), source[part], target[part], rate, found[part]
            ),
            [slice(begin, begin + PAIRS) for begin in range(0, len(source), PAIRS)],
        )
        return found


def cables(routes: Routes, background: Background | None) -> Cables:
    """Return the cables of the hosts of `routes`, and the network between them."""
    fabric, ends = routes.fabric, routes.ends
    own = (ends.out_port >= 0) | (ends.in_port >= 0)
    loaded = _loaded(routes)
    usable = fabric.network_link | own if loaded is None else loaded
    if background is None:
        return Cables(usable=usable, capacity=fabric.links.capacity, background=np.zeros(len(fabric.links)))
    return Cables(
        usable=usable, capacity=background.capacity(fabric), background=background.link_bytes(fabric)
    )


def _loaded(routes: Routes) -> Bools | None:
    """Return the links (bool[m]) on a path between two of the hosts, or None if not searched or all are."""
    name = routes.name.partition(":")[0]
    if name in ON_SHORTEST:
        routes = shortest_paths.build(routes.fabric, routes.hosts, rails=routes.rails)
    elif name not in OBLIVIOUS:
        return None
    network = routes.fabric.network_link
    if routes.name == shortest_paths.ShortestPaths.name and bool(_between_hosts(routes)[network].all()):
        return None
    _, first, second = hosts_routed_alike(routes)
    if len(first) ** 2 > MAX_PAIRS:
        return None
    i, j = np.repeat(first, len(first)), np.tile(first, len(first))
    j = np.where(i == j, np.repeat(second, len(first)), j)
    i, j = i[j >= 0], j[j >= 0]
    found = routes.link_bytes(i, j, np.ones(len(i))) > 0
    ends = routes.ends
    return np.asarray(found | (ends.out_port >= 0) | (ends.in_port >= 0))


def _between_hosts(routes: Routes) -> Bools:
    """Return the links (bool[m]) between two of the hosts that both forward; shortest paths use them."""
    fabric = routes.fabric
    direct = np.zeros(len(fabric), bool)
    direct[routes.hosts] = fabric.forwards[routes.hosts]
    return np.asarray(direct[fabric.links.source] & direct[fabric.links.target])
