"""Random search on the mapping coefficient: exchanges from several random mappings until 40 in a row fail.

Source: Orduña, Silla and Duato, "On the development of a communication-aware task mapping technique",
2004, section 4.2. Each of 10 seeds starts from a random mapping; an iteration exchanges two values of it
drawn at random and keeps the exchange only if the mapping coefficient (section 4.1) falls; a seed ends after
40 iterations in a row without a decrease. The best seed wins, of equals the first.

The coefficient is bytes (or packets, option ``packet_bytes``) times the problem's distances; the paper's
own are ``equivalent+2`` of `mapping.distances.distances`. The paper has one process a processor: here the
values of the mapping are those of all slots, free ones with nobody, so that a rank can also move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapping.kernels.random_numbers import State, state_from
from mapping.placement.kernels.hop_bytes_search import SlotAssignment
from mapping.placement.kernels.pair_gain import Course, Partners, exchange_at_random, partners
from mapping.placement.problem.problem import Problem
from mapping.routing.host_traffic import packets
from registry.errors import InvalidValue
from registry.model import Floats, Ints

ROUND = 4_096
"""Iterations between two checks for an interrupt."""
ROUNDING = 1e-13
"""A decrease below this part of the coefficient is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Search:
    """Result of all seeds.

    Attributes
    ----------
    host_of_rank : int32[ranks]
        Placement of the best seed.
    best : int
        Number of the best seed, from 0.
    coefficients : tuple of float64[iterations + 1]
        Mapping coefficient of each seed at its start and after each iteration (Figure 7), in bytes
        or packets times distance.
    """

    host_of_rank: Ints
    best: int
    coefficients: tuple[Floats, ...]


def place_ranks(
    problem: Problem,
    generator: np.random.Generator,
    *,
    seeds: int = 10,
    failures: int = 40,
    packet_bytes: float = 0.0,
) -> Ints:
    """Return int32[ranks]: the host index of each rank; see `search`."""
    found = search(problem, generator, seeds=seeds, failures=failures, packet_bytes=packet_bytes)
    return found.host_of_rank


def search(
    problem: Problem,
    generator: np.random.Generator,
    *,
    seeds: int = 10,
    failures: int = 40,
    packet_bytes: float = 0.0,
) -> Search:
    """Search from random mappings.

    Parameters
    ----------
    seeds : int
        Number of random mappings to start from.
    failures : int
        Number of iterations in a row without a decrease after which a seed ends.
    packet_bytes : float
        Size of a packet, to count packets (section 2 of the paper); 0: count bytes.

    Raises
    ------
    InvalidValue
        `seeds` or `failures` below 1, `packet_bytes` below 0.
    """
    if seeds < 1 or failures < 1 or not packet_bytes >= 0:
        raise InvalidValue("random-search", "seeds and failures must be at least 1, packet_bytes 0 or more")
    weight = problem.bytes
    if packet_bytes > 0:
        weight = packets(problem.profile, packet_bytes)[problem.profile.bytes > 0]
    table = partners(problem.ranks, problem.source, problem.target, weight)
    hosts: list[Ints] = []
    curves: list[Floats] = []
    for _ in range(seeds):
        slots = generator.permutation(len(problem.slot_host))[: problem.ranks]
        assignment = _assigned(problem, slots.astype(np.int32))
        curves.append(_descend(problem, table, weight, assignment, state_from(generator), failures))
        hosts.append(assignment.host_of_rank)
    best = int(np.argmin([curve[-1] for curve in curves]))
    return Search(host_of_rank=hosts[best], best=best, coefficients=tuple(curves))


def _assigned(problem: Problem, slots: Ints) -> SlotAssignment:
    """Return the assignment of each rank to a slot."""
    rank_of_slot = np.full(len(problem.slot_host), -1, np.int32)
    rank_of_slot[slots] = np.arange(problem.ranks)
    hosts = problem.slot_host[slots]
    return SlotAssignment(
        problem.slot_host, problem.first_slot, rank_of_slot, slots, hosts, problem.pinned.copy()
    )


def _descend(
    problem: Problem, table: Partners, weight: Floats, assignment: SlotAssignment, state: State, limit: int
) -> Floats:
    """Run one seed and return the course of the coefficient; `assignment` is changed in place."""
    distances = problem.distances
    source, target, _ = problem.host_traffic(assignment.host_of_rank)
    begin = float(weight @ distances.of(source, target))
    gains, failures = [np.zeros(1)], 0
    while failures < limit and len(problem.slot_host) > 1:
        saved, course = np.zeros(ROUND), Course(failures, limit, ROUNDING * begin)
        done, failures = exchange_at_random(
            table, distances.group, distances.between, assignment, course, state, saved
        )
        gains.append(saved[:done])
    return begin - np.cumsum(np.concatenate(gains))
