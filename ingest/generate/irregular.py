"""Irregular networks of switches, as in Orduna, Silla and Duato 2004."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ingest.generate.checks import cabled, numbered, positive, whole
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

ATTEMPTS = 10_000
FIGURE_3 = (
    *((0, 2), (0, 4), (0, 9), (1, 2), (1, 4), (1, 9), (2, 6), (3, 6)),
    *((3, 7), (3, 8), (4, 6), (5, 7), (5, 8), (5, 9), (7, 8)),
)
"""Switches that are joined in the paper's Figure 3."""


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
    """Return switches joined at random, each to `links` others by one link, each with `hosts` hosts.

    The paper's networks (section 5.1): switches of 8 ports, 4 of them to hosts, 3 to other switches, one left
    open; neighbours joined by a single link. Ends of links are drawn one pair after the other from those
    still open, anew from the start when none fits or the network falls apart.

    Raises
    ------
    InvalidValue
        A parameter out of range, more hosts and links than ports, or an odd number of ends of links.
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

    The text does not list the links; these are the ones that give, with up*/down* routing from switch 6, its
    Table 2 to the digit and its Table 1 path for path.
    """
    whole("autonet.hosts", hosts, 1)
    return _of_switches(np.array(FIGURE_3, np.int64), 10, hosts, capacity, slots)


def _draw(count: int, links: int, generator: np.random.Generator) -> Longs | None:
    """Return pairs of joined switches, each switch in `links`; None if what is left over does not fit."""
    left = np.full(count, links)
    joined = np.zeros((count, count), bool)
    np.fill_diagonal(joined, True)
    pairs = []
    while left.any():
        chance = np.triu(left[:, None] * left * ~joined).ravel()
        if not chance.any():
            return None
        one, other = divmod(int(generator.choice(count * count, p=chance / chance.sum())), count)
        joined[one, other] = joined[other, one] = True
        left[[one, other]] -= 1
        pairs.append((one, other))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _connected(pairs: Longs, count: int) -> bool:
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(count, count))
    return int(connected_components(graph, directed=False)[0]) == 1


def _of_switches(pairs: Longs, count: int, hosts: int, capacity: float, slots: int) -> Fabric:
    nodes = count * hosts
    node = np.arange(nodes)
    cables = np.stack((node, nodes + node // hosts), axis=1)
    return cabled(
        [*numbered("node", nodes), *numbered("switch", count)],
        np.concatenate((cables, nodes + pairs)),
        positive("irregular.capacity", capacity),
        slots=np.repeat((whole("irregular.slots", slots, 1), 0), (nodes, count)),
        level=np.repeat((0, 1), (nodes, count)),
    )
