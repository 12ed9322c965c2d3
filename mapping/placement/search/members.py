"""Default members of a portfolio, chosen by measured features of the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mapping.placement.catalog import Chain
from mapping.placement.problem.objective import Objective, score
from mapping.placement.problem.problem import Problem
from mapping.placement.search.workers import Member
from mapping.placement.strategies.baselines import place_at_random, place_in_order

CONGESTED = {"congestion", "network-congestion", "mean-congestion"}
"""Metrics that the congestion search lowers; the others are left to the one on hop-bytes."""
ORDERS = "digit-search"
"""Refiner that tries orders of digits of rank numbers."""
QUICK = "greedy+congestion-descent"
"""Chain that searches on congestion at once, beside one that computes a better start. One search on all
threads must stay colder: what its workers accept while warm adds up on links that they share. Worst link at
10 s, two searches over one: 0.91 to 0.97 on six instances of 336 to 1,024 ranks, 1.00 on three tori, 0.97 to
1.02 on three of 2,304 and 4,096 ranks; at 30 s 0.73 to 1.00 on these. If the second search starts from the
greedy placement instead of a second layout: 0.87 at 1 s and 1.00 at 10 s on eleven instances."""
SMALL = 256
"""Most ranks for which several searches run: each ends long before the limit, by chance."""
FEW = 640
"""Most ranks for which two searches on hop-bytes, one thread each, end better than one on both: on seven
instances of 336 to 576 ranks 0.964 to 1.001 of it at 6 million steps, on one of 1,024 ranks 1.004."""
WIDE = 2_048
"""Least number of hosts with which a search that starts with few hop-bytes does not find idle links."""
FEW_GROUPS = 128
"""Most switches of hosts with which the result of a search on congestion depends more on its start than on
its length: there are few links, and the rest is chance."""
STARTS = (
    "layout+digit-search:on=congestion+pair-exchange+congestion-descent",
    "spectral+congestion-descent",
    "layout+congestion-descent",
    "layout+digit-search:on=congestion+pair-exchange+congestion-descent",
)
"""Searches with few switches: from ragged parts, from straight blocks, and twice from few hop-bytes."""
MOST_SPECTRAL = 3_000
"""Most ranks whose eigenvectors are computed in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features of a problem by which members are chosen.

    Attributes
    ----------
    ranks, hosts : int
    pairs : int
        Ordered pairs of ranks that send bytes.
    groups : int
        Number of host groups with equal distances.
    free_slots : int
        Number of slots less ranks.
    most_slots : int
        Most slots of a host.
    spread : float
        Mean over median of the bytes of a rank: 1 for even guests, large if few ranks have most.
    scattered : float
        Worst link with ranks on random hosts relative to ranks in order, if no two hosts share a switch and
        at least half of the slots are free; otherwise inf.
    """

    ranks: int
    hosts: int
    pairs: int
    groups: int
    free_slots: int
    most_slots: int
    spread: float
    scattered: float = np.inf

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the features of a problem."""
        talks = np.bincount(np.r_[problem.source, problem.target], np.r_[problem.bytes, problem.bytes])
        talks = talks[talks > 0]
        return cls(
            ranks=problem.ranks,
            hosts=problem.hosts,
            pairs=len(problem.bytes),
            groups=problem.distances.groups,
            free_slots=len(problem.slot_host) - problem.ranks,
            most_slots=int(problem.allocation.slots.max()),
            spread=float(talks.mean() / np.median(talks)) if len(talks) else 1.0,
            scattered=_scattered(problem),
        )


def default_members(objective: Objective, features: Features) -> tuple[Member, ...]:
    """Return the members that run by default."""
    named = {term.metric for term in objective.asked[0]}
    chains: list[str] = []
    if named & CONGESTED:
        chains += _on_congestion(features)
    if named - CONGESTED:
        chains += _on_hop_bytes(features)
    return tuple(Member(chain=Chain.parse(text)) for text in chains)


def refining_members(objective: Objective, features: Features) -> tuple[Member, ...]:
    """Return the default members' refiners alone, which start from a given placement, each chain once.

    Orders of digits move all ranks and are left out.
    """
    chains = dict.fromkeys(
        Chain(None, tuple(link for link in member.chain.refiners if link.name != ORDERS))
        for member in default_members(objective, features)
    )
    return tuple(Member(chain=chain) for chain in chains if chain.refiners)


def near_members(objective: Objective) -> tuple[Member, ...]:
    """Return members that only improve the given placement, best exchanges first, and so stay near it."""
    congested = {term.metric for term in objective.asked[0]} & CONGESTED
    text = "threshold-accepting:first=0" if congested else "ohtma-exchange"
    return (Member(chain=Chain.parse(text)),)


def pareto_members(features: Features) -> tuple[Member, ...]:
    """Return members that lower congestion from few hop-bytes and end at different points.

    A short search ends with hardly more hop-bytes, a long one with the least congestion.
    """
    lengths = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
    return tuple(Member(chain=Chain.parse("congestion-descent"), weight=weight) for weight in lengths)


def _scattered(problem: Problem) -> float:
    if len(problem.slot_host) < 2 * problem.ranks or problem.distances.groups < problem.hosts:
        return np.inf
    anywhere, together = (
        score(problem, place(problem, np.random.default_rng(0))).congestion_seconds
        for place in (place_at_random, place_in_order)
    )
    return anywhere / together if together > 0 else np.inf


def _on_congestion(features: Features) -> list[str]:
    long, anywhere = STARTS[0], "random+congestion-descent"
    if features.scattered < 1.0 and features.hosts > WIDE:
        return [anywhere]
    if features.ranks <= SMALL:
        return [long, anywhere, QUICK, long]
    if features.scattered < 1.0:
        return [long, anywhere]
    if features.groups > min(FEW_GROUPS, features.hosts - 1):
        return [long, QUICK]
    return [text for text in STARTS if features.ranks <= MOST_SPECTRAL or "spectral" not in text]


def _on_hop_bytes(features: Features) -> list[str]:
    more = 0 if features.ranks > FEW else 1 if features.ranks > SMALL else 3
    return ["layout+digit-search+pair-exchange"] + ["greedy+pair-exchange"] * more
