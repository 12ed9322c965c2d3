"""Which cables traffic between the allocation's hosts can take, and what they carry in a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapping.distances.background import Background
from mapping.distances.equivalent import alike
from mapping.routing import shortest_paths
from mapping.routing.routes import Routes
from registry.model import Bools, Floats

MAX_PAIRS = 4_000_000
"""Most pairs of hosts (those that are routed alike taken together) whose ways are looked at."""
OBLIVIOUS = ("shortest-paths", "tables", "dimension-order", "up-down")
"""Routings of which a pair of hosts takes the same ways whatever else is sent."""
ON_SHORTEST = ("ecmp", "least-loaded")
"""Routings that choose among all shortest paths."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cables:
    """The links of a fabric as far as the allocation's traffic can use them.

    Attributes
    ----------
    usable : bool[m]
        Rows of ``fabric.links`` that some pair of the hosts may load.
    capacity : float64[m]
        Bytes/s, less what background takes.
    background : float64[m]
        Bytes that are there already.
    """

    usable: Bools
    capacity: Floats
    background: Floats

    def least_seconds(self, rows: Bools, bytes: float) -> float:
        """Least time of the worst of some links that so many bytes of ours are spread over.

        In `t` seconds a link carries ``capacity * t``, its background among it, and of links that carry
        nothing of ours the time does not count: the least `t` in which all links have room for the bytes.
        """
        capacity, there = self.capacity[rows], self.background[rows]
        if bytes <= 0 or not len(capacity):
            return 0.0
        begin = there / capacity
        order = np.argsort(begin, kind="stable")
        rate, used = np.cumsum(capacity[order]), np.cumsum(there[order])
        level = (bytes + used) / rate  # with the first links only
        enough = np.append(begin[order][1:], np.inf) >= level
        return float(level[int(np.argmax(enough))])


def cables(routes: Routes, background: Background | None) -> Cables:
    """The cables of the hosts of `routes`, and the network between them."""
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
    """bool[m]: links on a way between two of the hosts; None: all of the network, or it is not looked at."""
    name = routes.name.partition(":")[0]
    if name in ON_SHORTEST:
        routes = shortest_paths.build(routes.fabric, routes.hosts, rails=routes.rails)
    elif name not in OBLIVIOUS:
        return None
    network = routes.fabric.network_link
    if routes.name == shortest_paths.ShortestPaths.name and bool(_between_hosts(routes)[network].all()):
        return None
    _, first, second = alike(routes)
    if len(first) ** 2 > MAX_PAIRS:
        return None
    i, j = np.repeat(first, len(first)), np.tile(first, len(first))
    j = np.where(i == j, np.repeat(second, len(first)), j)
    i, j = i[j >= 0], j[j >= 0]
    found = routes.link_bytes(i, j, np.ones(len(i))) > 0
    ends = routes.ends
    return np.asarray(found | (ends.out_port >= 0) | (ends.in_port >= 0))


def _between_hosts(routes: Routes) -> Bools:
    """bool[m]: links from one of the hosts to another, both forwarding: shortest paths take them."""
    fabric = routes.fabric
    there = np.zeros(len(fabric), bool)
    there[routes.hosts] = fabric.forwards[routes.hosts]
    return np.asarray(there[fabric.links.source] & there[fabric.links.target])
