"""Plain patterns of communication: rings, all-to-all, random, and collectives by a named algorithm."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ingest.generate.checks import positive, whole
from ingest.generate.collectives import Algorithm, Edges, edges, expand, joined, ring_of
from ingest.generate.matrices import crankshaft, kkt, product_traffic
from registry.errors import InvalidValue
from registry.model import Profile


def ring(ranks: int, *, bytes: float = 1.0, both_ways: bool = False) -> Profile:
    """Return every rank sends to the next, the last to the first.

    Parameters
    ----------
    ranks : int
    bytes : float
        Sent along each edge.
    both_ways : bool
        Whether every rank also sends to the one before.
    """
    me = np.arange(whole("ring.ranks", ranks, 1))[None, :]
    size = positive("ring.bytes", bytes)
    sent = [ring_of(me, size), ring_of(me[:, ::-1], size)][: 1 + both_ways]
    return _profile(joined(*sent), ranks, f"ring-{ranks}", "ring")


def all_to_all(ranks: int, *, bytes: float = 1.0) -> Profile:
    """Return every rank sends to every other.

    Parameters
    ----------
    ranks : int
        At most 8,192: pairs grow with the square.
    bytes : float
        Sent to each.
    """
    count = whole("all_to_all.ranks", ranks, 1, 1 << 13)
    sent = expand("all-to-all", np.arange(count), positive("all_to_all.bytes", bytes) * count)
    return _profile(sent, ranks, f"all-to-all-{ranks}", "all-to-all")


def random(ranks: int, *, partners: int = 4, bytes: float = 1.0, skew: float = 0.0, seed: int = 0) -> Profile:
    """Return every rank sends to as many others, drawn at random without repeats.

    Parameters
    ----------
    ranks : int
    partners : int
        Ranks that each sends to; fewer than there are ranks.
    bytes : float
        Mean of what is sent along an edge.
    skew : float
        0: the same along each; above, bytes are log-normal with this standard deviation of the logarithm.
    seed : int

    Raises
    ------
    InvalidValue
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
    return _profile(
        edges(source, (source + step) % count, size * drawn), ranks, f"random-{ranks}", "random pairs"
    )


def collective(
    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"],
    ranks: int,
    *,
    bytes: float = 1.0,
    groups: int = 1,
    algorithm: Algorithm = "ring",
    domain: int | None = None,
) -> Profile:
    """Return one call of a collective in groups of consecutive ranks.

    Parameters
    ----------
    operation : str
    ranks : int
    bytes : float
        Of the whole buffer, as `ingest.generate.collectives` counts it.
    groups : int
        Divides the ranks.
    algorithm : str
    domain : int, optional
        Ranks of an NVLink domain, for the hierarchical algorithm.

    Raises
    ------
    InvalidValue
    """
    whole("collective.ranks", ranks, 1)
    if ranks % whole("collective.groups", groups, 1, ranks):
        raise InvalidValue("collective.groups", f"is {groups}, must divide the {ranks} ranks")
    members = np.arange(ranks).reshape(groups, -1)
    size = positive("collective.bytes", bytes)
    sent = expand(operation, members, size, algorithm=algorithm, domain=domain)
    return _profile(sent, ranks, f"{operation}-{ranks}", f"{operation}, {algorithm}")


def kkt_product(ranks: int, *, side: int = 40, seed: int = 0) -> Profile:
    """Return products of a vector with the matrix of nlpkkt80 to nlpkkt240 at any size, cut by METIS.

    Parameters
    ----------
    ranks : int
    side : int
        Points along each side of the cube; 240 for nlpkkt240.
    seed : int
        Of METIS.
    """
    return product_traffic(kkt(side), ranks, seed=seed, name=f"kkt{side}-{ranks}")


def crankshaft_product(ranks: int, *, nodes: int = 20_000, seed: int = 0) -> Profile:
    """Return products of a vector with the stiffness matrix of a crankshaft, cut by METIS.

    Parameters
    ----------
    ranks : int
    nodes : int
        Of the mesh; 114,597 is the size of F1, 314,565 that of audikw_1.
    seed : int
        Of METIS.
    """
    return product_traffic(crankshaft(nodes), ranks, seed=seed, name=f"crankshaft{nodes}-{ranks}")


def _profile(sent: Edges, ranks: int, name: str, application: str) -> Profile:
    return Profile.from_edges(
        sent.source,
        sent.target,
        sent.bytes,
        ranks=ranks,
        messages=sent.messages,
        name=name,
        application=application,
    )
