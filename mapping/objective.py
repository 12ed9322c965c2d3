"""What is minimised, and in which order metrics decide between two placements."""

from __future__ import annotations

from typing import NamedTuple

from mapping.problem import Problem
from registry.errors import UnknownName
from registry.model import Fabric, Floats, Ints

OBJECTIVES = {
    "congestion": ("congestion_seconds", "network_congestion_seconds", "hop_bytes"),
    "hop-bytes": ("hop_bytes", "congestion_seconds", "network_congestion_seconds"),
    "dilation": ("hop_bytes", "congestion_seconds", "network_congestion_seconds"),
}
"""Objective -> metrics, most important first. Average dilation is hop-bytes over bytes, and the bytes are
the profile's: it orders placements as hop-bytes do."""

SAME = 1e-9
"""Two values closer than this, relatively, are equal: sums of loads differ by rounding alone."""


class Score(NamedTuple):
    """Exact metrics of a placement; names and units as in `registry.model.Evaluation`."""

    congestion_seconds: float
    network_congestion_seconds: float
    hop_bytes: float


def check_objective(name: str) -> None:
    """Raise `UnknownName` for an objective that there is not."""
    if name not in OBJECTIVES:
        raise UnknownName("objective", name, OBJECTIVES)


def score(problem: Problem, host_of_rank: Ints) -> Score:
    """Exact metrics of a placement by host index.

    Raises
    ------
    DisconnectedAllocation, UnreachablePair
    """
    loads = problem.routes.link_bytes(*problem.host_traffic(host_of_rank))
    return score_of(problem.routes.fabric, loads)


def score_of(fabric: Fabric, link_bytes: Floats) -> Score:
    """Metrics of loads of ``fabric.links``."""
    seconds = link_bytes / fabric.links.capacity
    return Score(
        congestion_seconds=float(seconds.max(initial=0.0)),
        network_congestion_seconds=float(seconds[fabric.network_link].max(initial=0.0)),
        hop_bytes=float(link_bytes.sum()),
    )


def better(objective: str, one: Score, other: Score) -> bool:
    """Whether the first placement is better: by the first metric in which the two differ."""
    for metric in OBJECTIVES[objective]:
        a, b = getattr(one, metric), getattr(other, metric)
        if abs(a - b) > SAME * max(abs(a), abs(b)):
            return bool(a < b)
    return False
