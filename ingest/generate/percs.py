"""PERCS: IBM's two-level network of fully connected supernodes (Hoefler and Snir 2011, section 5.3.2)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ingest.generate.checks import cabled, each, pairs, whole
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

GIB = float(2**30)
NODES = 32
"""Number of nodes of a supernode."""
DRAWER = 8
"""Number of nodes of a drawer."""


def percs(
    supernodes: int = 289,
    d_links: int = 9,
    *,
    capacities: tuple[float, float, float] = (24 * GIB, 5 * GIB, 10 * GIB),
    hosting: str = "random",
    seed: int = 0,
    slots: int = 1,
) -> Fabric:
    """Return supernodes of four drawers of eight nodes; every node hosts ranks and forwards traffic.

    A node is connected to the 7 others of its drawer by LL links and to the 24 others of its supernode by LR
    links. Every two supernodes are connected by one D link; the distance of two nodes is at most 3. There are
    at most ``32 * d_links + 1`` supernodes; with the defaults, 289 and 9, every node has 9 D links and the
    network 9,248 nodes, as in the paper's Figure 5(b). Its sentence "We connect all D links randomly" is
    taken to mean the nodes of a supernode that host its D links.

    Parameters
    ----------
    supernodes : int
        Number of supernodes.
    d_links : int
        Largest number of D links per node.
    capacities : (float, float, float)
        Bytes/s in each direction of an LL, LR and D link; the paper gives 24, 5 and 10 GiB/s.
    hosting : str
        ``random``, or ``in-order``: a supernode's first D links on its first node, and so on.
    """
    whole("percs.d_links", d_links, 1, 1 << 16)
    whole("percs.supernodes", supernodes, 1, NODES * d_links + 1)
    if hosting not in ("random", "in-order"):
        raise InvalidValue("percs.hosting", f"must be random or in-order, not {hosting!r}")
    rates = each("percs.capacities", capacities, 3)
    within = np.array(list(combinations(range(NODES), 2)))
    inside = (np.arange(supernodes)[:, None, None] * NODES + within).reshape(-1, 2)
    same_drawer = np.tile(within[:, 0] // DRAWER == within[:, 1] // DRAWER, supernodes)
    across = _d_links(supernodes, d_links, np.random.default_rng(seed) if hosting == "random" else None)
    node = np.arange(supernodes * NODES)
    places = np.stack((node // NODES, node % NODES // DRAWER, node % DRAWER), axis=1)
    return cabled(
        (f"s{group}d{drawer}n{index}" for group, drawer, index in places.tolist()),
        (inside[same_drawer], inside[~same_drawer], across),
        rates,
        slots=whole("percs.slots", slots, 1),
        direct=True,
    )


def _d_links(supernodes: int, d_links: int, generator: np.random.Generator | None) -> Longs:
    """Return the nodes of the D link of each pair of supernodes, at most `d_links` per node."""
    ends = np.repeat(np.arange(NODES), d_links)
    host = np.stack([ends if generator is None else generator.permutation(ends) for _ in range(supernodes)])
    one, other = np.triu_indices(supernodes, 1)
    # The links of a supernode are in the order of the other supernodes.
    return pairs(one * NODES + host[one, other - 1], other * NODES + host[other, one])
