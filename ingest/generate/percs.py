"""PERCS: IBM's two-level network of fully joined supernodes (Hoefler and Snir 2011, section 5.3.2)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ingest.generate.checks import cabled, each, whole
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

GIB = float(2**30)
NODES = 32
"""Nodes of a supernode."""
DRAWER = 8
"""Nodes of a drawer."""


def percs(
    supernodes: int = 289,
    d_links: int = 9,
    *,
    capacities: tuple[float, float, float] = (24 * GIB, 5 * GIB, 10 * GIB),
    hosting: str = "random",
    seed: int = 0,
    slots: int = 1,
) -> Fabric:
    """Return supernodes of four drawers of eight nodes; every node hosts ranks and carries others' traffic.

    A node is joined to the 7 others of its drawer by LL links, to the 24 others of its supernode by LR
    links, and every two supernodes are joined by one D link; the distance of two nodes is at most 3. There
    are at most ``32 * d_links + 1`` supernodes; with the defaults, 289 and 9, every node has 9 D links and
    the network 9,248 nodes, as in the paper's Figure 5(b). "We connect all D links randomly" says which
    node of a supernode hosts each of its D links.

    Parameters
    ----------
    supernodes : int
    d_links : int
        D links a node can have.
    capacities : (float, float, float)
        Bytes/s of an LL, LR and D link and direction; the paper gives 24, 5 and 10 GiB/s.
    hosting : str
        ``random``, or ``in-order``: a supernode's first D links on its first node, and so on.
    seed : int
        Of the random hosting.
    slots : int
        Ranks a node takes.

    Raises
    ------
    InvalidValue
    """
    whole("percs.d_links", d_links, 1, 1 << 16)
    whole("percs.supernodes", supernodes, 1, NODES * d_links + 1)
    if hosting not in ("random", "in-order"):
        raise InvalidValue("percs.hosting", f"must be random or in-order, not {hosting!r}")
    near, local, far = each("percs.capacities", capacities, 3)
    within = np.array(list(combinations(range(NODES), 2)))
    inside = (np.arange(supernodes)[:, None, None] * NODES + within).reshape(-1, 2)
    same_drawer = within[:, 0] // DRAWER == within[:, 1] // DRAWER
    across = _d_links(supernodes, d_links, np.random.default_rng(seed) if hosting == "random" else None)
    size = np.r_[np.tile(np.where(same_drawer, near, local), supernodes), np.full(len(across), far)]
    node = np.arange(supernodes * NODES)
    places = np.stack((node // NODES, node % NODES // DRAWER, node % DRAWER), axis=1)
    return cabled(
        (f"s{group}d{drawer}n{index}" for group, drawer, index in places.tolist()),
        np.concatenate((inside, across)),
        size,
        slots=whole("percs.slots", slots, 1),
        direct=True,
    )


def _d_links(supernodes: int, d_links: int, generator: np.random.Generator | None) -> Longs:
    """Return nodes of the D link of each pair of supernodes: no node with more than `d_links`."""
    seats = np.repeat(np.arange(NODES), d_links)
    host = np.stack([seats if generator is None else generator.permutation(seats) for _ in range(supernodes)])
    one, other = np.triu_indices(supernodes, 1)
    # A supernode's links in the order of the supernodes they lead to, itself left out.
    ends = one * NODES + host[one, other - 1], other * NODES + host[other, one]
    return np.stack(ends, axis=1).astype(np.int64)
