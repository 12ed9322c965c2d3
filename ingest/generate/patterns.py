"""Plain patterns of communication, collectives by a named algorithm, and matrix-vector products."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ingest.generate.checks import positive, whole
from ingest.generate.collectives import Algorithm, edges, expand, joined, ring_of
from ingest.generate.matrices import crankshaft, kkt, product_traffic
from registry.errors import InvalidValue
from registry.model import Profile


def ring(ranks: int, *, bytes: float = 1.0, both_ways: bool = False) -> Profile:
    """Return a profile in which every rank sends to the next, the last to the first.

    Parameters
    ----------
    bytes : float
        Bytes from each rank to the next.
    both_ways : bool
        Whether every rank also sends to the one before.
    """
    me = np.arange(whole("ring.ranks", ranks, 1))[None, :]
    size = positive("ring.bytes", bytes)
    sent = [ring_of(me, size), ring_of(me[:, ::-1], size)][: 1 + both_ways]
    return joined(*sent).profile(ranks, f"ring-{ranks}", "ring")


def all_to_all(ranks: int, *, bytes: float = 1.0) -> Profile:
    """Return a profile in which every rank sends to every other.

    Parameters
    ----------
    ranks : int
        Number of ranks, at most 8,192: the number of pairs grows with its square.
    bytes : float
        Bytes from each rank to each other.
    """
    count = whole("all_to_all.ranks", ranks, 1, 1 << 13)
    sent = expand("all-to-all", np.arange(count), positive("all_to_all.bytes", bytes) * count)
    return sent.profile(ranks, f"all-to-all-{ranks}", "all-to-all")


def random(ranks: int, *, partners: int = 4, bytes: float = 1.0, skew: float = 0.0, seed: int = 0) -> Profile:
    """Return a profile in which every rank sends to `partners` others, drawn at random without repeats.

    Parameters
    ----------
    partners : int
        Number of ranks to which each rank sends.
    bytes : float
        Mean bytes from a rank to another.
    skew : float
        Standard deviation of the logarithm of these bytes, which are log-normal; 0 makes all equal.
    """
    count = whole("random.ranks", ranks, 2)
    whole("random.partners", partners, 1, count - 1)
    size = positive("random.bytes", bytes)
    if not 0 <= skew <= 10:
        raise InvalidValue("random.skew", f"is {skew}, not within 0 .. 10")
    generator = np.random.default_rng(seed)
    source = np.repeat(np.arange(count), partners)
    step = np.concatenate([1 + generator.choice(count - 1, partners, replace=False) for _ in range(count)])
    drawn = np.exp(generator.normal(-(skew**2) / 2, skew, len(source))) if skew else np.ones(len(source))
    sent = edges(source, (source + step) % count, size * drawn)
    return sent.profile(ranks, f"random-{ranks}", "random pairs")


def collective(
    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"],
    ranks: int,
    *,
    bytes: float = 1.0,
    groups: int = 1,
    algorithm: Algorithm = "ring",
    domain: int | None = None,
) -> Profile:
    """Return the profile of one call of a collective in groups of consecutive ranks.

    Parameters
    ----------
    bytes : float
        Bytes of the whole buffer, as defined in `ingest.generate.collectives`.
    groups : int
        Number of groups, a divisor of the number of ranks.
    domain : int, optional
        Number of ranks of an NVLink domain, for the hierarchical algorithm.
    """
    whole("collective.ranks", ranks, 1)
    if ranks % whole("collective.groups", groups, 1, ranks):
        raise InvalidValue("collective.groups", f"is {groups}, must divide the {ranks} ranks")
    members = np.arange(ranks).reshape(groups, -1)
    size = positive("collective.bytes", bytes)
    sent = expand(operation, members, size, algorithm=algorithm, domain=domain)
    return sent.profile(ranks, f"{operation}-{ranks}", f"{operation}, {algorithm}")


def kkt_product(ranks: int, *, side: int = 40, seed: int = 0) -> Profile:
    """Return the profile of products of a vector with a matrix like nlpkkt80 to nlpkkt240, cut by METIS.

    Parameters
    ----------
    side : int
        Number of points along each side of the cube; 240 for nlpkkt240.
    """
    return product_traffic(kkt(side), ranks, seed=seed, name=f"kkt{side}-{ranks}")


def crankshaft_product(ranks: int, *, nodes: int = 20_000, seed: int = 0) -> Profile:
    """Return the profile of products of a vector with the stiffness matrix of a crankshaft, cut by METIS.

    Parameters
    ----------
    nodes : int
        Number of nodes of the mesh; 114,597 is the size of F1, 314,565 that of audikw_1.
    """
    return product_traffic(crankshaft(nodes), ranks, seed=seed, name=f"crankshaft{nodes}-{ranks}")
