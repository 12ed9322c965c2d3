"""Which members a portfolio has unless told: chosen by what is measured of a problem, never by a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mapping.catalog import Chain
from mapping.model.objective import Objective
from mapping.model.problem import Problem
from mapping.search.lanes import Member

CONGESTED = {"congestion", "network-congestion", "mean-congestion"}
"""Metrics that the congestion search lowers; the others are left to the one on hop-bytes."""
SMALL = 256
"""Up to so many ranks a search is over long before its budget, and ends where luck leads it: so few ranks
get several."""


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
    """

    ranks: int
    hosts: int
    pairs: int
    groups: int
    free_slots: int
    most_slots: int
    spread: float

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


def _on_congestion(features: Features) -> list[str]:
    long = "in-order+pair-exchange+congestion-descent"
    if features.ranks > SMALL:
        return [long]
    return [long, "random+congestion-descent", "greedy+congestion-descent"]


def _on_hop_bytes(features: Features) -> list[str]:
    if features.ranks > SMALL:
        return ["layout+pair-exchange"]
    return ["layout+pair-exchange", "greedy+pair-exchange"]
