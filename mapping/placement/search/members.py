"""Which members a portfolio has unless told: chosen by what is measured of a problem, never by a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mapping.placement.catalog import Chain
from mapping.placement.problem.objective import Objective, score
from mapping.placement.problem.problem import Problem
from mapping.placement.search.workers import Member
from mapping.placement.strategies import in_order, random

CONGESTED = {"congestion", "network-congestion", "mean-congestion"}
"""Metrics that the congestion search lowers; the others are left to the one on hop-bytes."""
SMALL = 256
"""Up to so many ranks a search on congestion is over long before its budget, and ends where luck leads it: so
few ranks get several."""
FEW = 640
"""Up to so many ranks two searches on hop-bytes, a thread each, end better than one on both: on seven
instances of 336 to 576 ranks 0.964 to 1.001 of it at 6 million steps, on one of 1,024 ranks 1.004."""
WIDE = 2_048
"""Hosts from which on a search that starts with few hop-bytes does not find idle links again."""
PAIRED = 2_048
"""Up to so many ranks two searches on congestion, a thread each, end better than one on both, which must stay
colder: what its workers accept while warm adds up on links that they share. Worst link at 10 s, two
searches over one, mean of one to three seeds: 0.91 to 0.97 on six instances of 336 to 1,024 ranks, 1.00 on
three tori, 1.05 on PERCS, where a proposal takes longest; at 30 s 0.95 to 0.98 on four, PERCS too."""
FEW_GROUPS = 128
"""Where hosts hang on at most so many switches, what a search on congestion ends with depends on its start
more than on its length: there are few links, and soon nothing but luck is left."""
STARTS = (
    "layout+pair-exchange+congestion-descent",
    "spectral+congestion-descent",
    "layout+congestion-descent",
    "layout+pair-exchange+congestion-descent",
)
"""Searches there: from ragged parts of little cut, from straight blocks, and twice from few hop-bytes."""
MOST_SPECTRAL = 3_000
"""Most ranks whose graph's smooth vectors are found in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What is measured of a problem before members are chosen.

    Attributes
    ----------
    ranks, hosts : int
    pairs : int
        Ordered pairs of ranks that send bytes.
    groups : int
        Of hosts that are alike as to distance.
    free_slots : int
        More slots than ranks.
    most_slots : int
        Of a host.
    spread : float
        Mean over median of what a rank sends and receives: 1 for even guests, large where few ranks
        carry most.
    scattered : float
        Worst link with ranks on random hosts over that with ranks in order, where no two hosts hang on one
        switch and at least as many slots are free as there are ranks; inf elsewhere.
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
        """Measure a problem."""
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
    """The members that run where none are asked for."""
    named = {term.metric for term in objective.asked[0]}
    chains: list[str] = []
    if named & CONGESTED:
        chains += _on_congestion(features)
    if named - CONGESTED:
        chains += _on_hop_bytes(features)
    return tuple(Member(chain=Chain.parse(text)) for text in chains)


def near_members(objective: Objective) -> tuple[Member, ...]:
    """Members that go downhill from the placement given, best exchanges first, and so stay close to it."""
    congested = {term.metric for term in objective.asked[0]} & CONGESTED
    text = "threshold-accepting:first=0" if congested else "ohtma-exchange"
    return (Member(chain=Chain.parse(text)),)


def pareto_members(features: Features) -> tuple[Member, ...]:
    """Members that lower congestion from a placement of few hop-bytes, and end at different points.

    A short search stops where hop-bytes have hardly grown, a long one where congestion is least.
    """
    lengths = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
    return tuple(Member(chain=Chain.parse("congestion-descent"), weight=weight) for weight in lengths)


def _scattered(problem: Problem) -> float:
    if len(problem.slot_host) < 2 * problem.ranks or problem.distances.groups < problem.hosts:
        return np.inf
    anywhere, together = (
        score(problem, strategy.place_ranks(problem, np.random.default_rng(0))).congestion_seconds
        for strategy in (random, in_order)
    )
    return anywhere / together if together > 0 else np.inf


def _on_congestion(features: Features) -> list[str]:
    long, anywhere = STARTS[0], "random+congestion-descent"
    if features.scattered < 1.0 and features.hosts > WIDE:
        return [anywhere]
    if features.ranks <= SMALL:
        return [long, anywhere, "greedy+congestion-descent"]
    if features.scattered < 1.0:
        return [long, anywhere]
    if features.groups > min(FEW_GROUPS, features.hosts - 1):
        return [long, long] if features.ranks <= PAIRED else [long]
    return [text for text in STARTS if features.ranks <= MOST_SPECTRAL or "spectral" not in text]


def _on_hop_bytes(features: Features) -> list[str]:
    if features.ranks > FEW:
        return ["layout+pair-exchange"]
    return ["layout+pair-exchange", "greedy+pair-exchange"]
