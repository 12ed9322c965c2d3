"""Irregular networks of switches, as in Orduna, Silla and Duato 2004."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ingest.generate.checks import numbered, positive, switched, whole
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

ATTEMPTS = 10_000
FIGURE_3 = (
    *((0, 2), (0, 4), (0, 9), (1, 2), (1, 4), (1, 9), (2, 6), (3, 6)),
    *((3, 7), (3, 8), (4, 6), (5, 7), (5, 8), (5, 9), (7, 8)),
)
"""Linked switches in the paper's Figure 3."""


def irregular(
    switches: int = 16,
    *,
    ports: int = 8,
    hosts: int = 4,
    links: int = 3,
    capacity: float = 1.0,
    slots: int = 1,
    seed: int = 0,
) -> Fabric:
    """Return switches linked at random, each to `links` others by one link, each with `hosts` hosts.

    The paper's networks (section 5.1) have switches of 8 ports: 4 to hosts, 3 to other switches, one open.
    Pairs of open ports are drawn one after the other; if no pair fits or the network is not connected, all
    are drawn again. More hosts and links than ports, and an odd number of ends of links, are errors.

    Parameters
    ----------
    switches : int
        Number of switches.
    ports, hosts, links : int
        Number of ports, of hosts and of links to other switches per switch.
    """
    field = "irregular."
    count = whole(field + "switches", switches, 1, 1 << 16)
    whole(field + "links", links, 0 if count == 1 else 1, count - 1)
    whole(field + "hosts", hosts, 1)
    whole(field + "ports", ports, hosts + links)
    if count * links % 2 or (links == 1 and count > 2):
        raise InvalidValue(field + "links", f"{count} switches of {links} links cannot all be joined")
    generator = np.random.default_rng(seed)
    for _ in range(ATTEMPTS):
        pairs = _draw(count, links, generator)
        if pairs is not None and _connected(pairs, count):
            return _of_switches(pairs, count, hosts, capacity, slots)
    raise InvalidValue(field + "links", f"no network of {count} switches found in {ATTEMPTS} attempts")


def autonet(*, hosts: int = 4, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return the 10 switches of the 2004 paper's Figure 3.

    The text does not list the links; these give, with up*/down* routing from switch 6, its
    Table 2 to the digit and its Table 1 path for path.
    """
    whole("autonet.hosts", hosts, 1)
    return _of_switches(np.array(FIGURE_3, np.int64), 10, hosts, capacity, slots)


def _draw(count: int, links: int, generator: np.random.Generator) -> Longs | None:
    """Return pairs of linked switches, each switch in `links`; None if the remaining ports do not fit."""
    left = np.full(count, links)
    linked = np.eye(count, dtype=bool)
    pairs = []
    while left.any():
        chance = np.triu(left[:, None] * left * ~linked).ravel()
        if not chance.any():
            return None
        one, other = divmod(int(generator.choice(count * count, p=chance / chance.sum())), count)
        linked[one, other] = linked[other, one] = True
        left[[one, other]] -= 1
        pairs.append((one, other))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _connected(pairs: Longs, count: int) -> bool:
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(count, count))
    return int(connected_components(graph, directed=False)[0]) == 1


def _of_switches(pairs: Longs, count: int, hosts: int, capacity: float, slots: int) -> Fabric:
    rate = positive("irregular.capacity", capacity)
    names = numbered("switch", count)
    return switched(names, hosts, [pairs], (rate, rate), whole("irregular.slots", slots, 1))
