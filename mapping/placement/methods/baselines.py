"""Placements that ignore traffic: in order, at random, and in turn over hosts or switches.

In order is the default of launchers; random, with every choice of slots equally likely, is the baseline of
most papers. In turn is what launchers do on request (Slurm: ``cyclic`` and ``plane``); Li et al. 2020 (see
`mapping.placement.methods.ohtma`), section 5.2, compare with it.

Random with locality: ranks that exchange most are on near hosts, which are chosen at random.

Source: Orduña, Silla and Duato, "On the development of a communication-aware task mapping technique",
2004, section 5.2: "random mappings with locality (rl)" assign "the processes with the highest communication
requirements to workstations attached to the same network switch", "the switch is selected randomly". The
rule here, which also holds for networks without switches: a random host with room, and the hosts nearest to
it, get the heaviest rank without a host and, one after the other, the rank that exchanges most bytes with
those; this repeats until `share` of the ranks have hosts. The others take any slots.

Random search on the mapping coefficient: exchanges from several random mappings until 40 in a row fail.

Source: Orduña, Silla and Duato, "On the development of a communication-aware task mapping technique",
2004, section 4.2. Each of 10 seeds starts from a random mapping; an iteration exchanges two values of it
drawn at random and keeps the exchange only if the mapping coefficient (section 4.1) falls; a seed ends after
40 iterations in a row without a decrease. The best seed wins, of equals the first.

The coefficient is bytes (or packets, option ``packet_bytes``) times the problem's distances; the paper's
own are ``equivalent+2`` of `mapping.distances.distances`. The paper has one process a processor: here the
values of the mapping are those of all slots, free ones with nobody, so that a rank can also move.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from mapping.kernels.random_numbers import State, state_from
from mapping.placement.kernels.hop_bytes_search import SlotAssignment
from mapping.placement.kernels.pair_gain import Course, Partners, exchange_at_random, partners
from mapping.placement.problem import Problem
from mapping.routing.network import packets
from registry.errors import InvalidValue, UnknownName
from registry.model import Allocation, Bools, Floats, Ints, Longs, Placement

HOSTS, SWITCHES = "hosts", "switches"
OVER = (HOSTS, SWITCHES)


def in_order(ranks: int, allocation: Allocation) -> Placement:
    """Return the placement of the ranks in order on the slots, host by host; needs no routes.

    Raises:
        InfeasibleAllocation: More ranks than slots.
    """
    allocation.require(ranks)
    hosts = allocation.host_of_slot[:ranks]
    return Placement(host_of_rank=hosts, allocation=allocation, strategy="in-order")


def random_placement(ranks: int, allocation: Allocation, seed: int) -> Placement:
    """Return a random placement; needs no routes.

    Raises:
        InfeasibleAllocation: More ranks than slots.
    """
    allocation.require(ranks)
    slots = np.random.default_rng(seed).permutation(len(allocation.host_of_slot))[:ranks]
    hosts = allocation.host_of_slot[slots]
    return Placement(host_of_rank=hosts, allocation=allocation, strategy="random", seed=seed)


def place_in_order(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks in order."""
    return problem.slot_host[: problem.ranks].copy()


def place_at_random(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks on random slots."""
    return problem.slot_host[generator.permutation(len(problem.slot_host))[: problem.ranks]]


def place_in_turn(
    problem: Problem, generator: np.random.Generator, *, block: int = 1, over: str = HOSTS
) -> Ints:
    """Place ranks on the hosts in turn.

    With one slot per host that is in order; in turn over switches, neighbouring ranks are then on different
    switches.

    Args:
        block: Ranks that go to one host (or switch) before the next one's turn. Full ones are skipped.
        over: ``hosts``, or ``switches``: groups of hosts with equal distances, in the order of their first
            host; within a group, one host after the other.
    """
    if over not in OVER:
        raise UnknownName("round-robin.over", over, OVER)
    if block < 1:
        raise InvalidValue("round-robin.block", "must be at least 1")
    hosts = problem.slot_host
    turn = np.arange(len(hosts)) - problem.first_slot[hosts]
    unit = hosts
    if over == SWITCHES:
        _, first, number = np.unique(problem.distances.group, return_index=True, return_inverse=True)
        unit = np.argsort(np.argsort(first)).astype(np.int32)[number][hosts]
        order = np.lexsort((hosts, turn, unit))
        turn = np.empty(len(hosts), np.int64)
        turn[order] = np.arange(len(hosts)) - np.searchsorted(unit[order], unit[order])
    return hosts[np.lexsort((turn, unit, turn // block))][: problem.ranks]


def place_random_local(
    problem: Problem, generator: np.random.Generator, *, block: int = 0, share: float = 1.0
) -> Ints:
    """Place clusters of ranks on near hosts, which are chosen at random.

    Args:
        block: Most ranks that are placed together. 0: the number of free slots of the chosen host and of
            those at the least distance from it (on a tree, the hosts of its switch).
        share: Part of the ranks that are placed so, 0 to 1.
    """
    if block < 0 or not 0 <= share <= 1:
        raise InvalidValue("random-local", "block must not be below 0 and share be within 0 to 1")
    clusters, local = _Clusters(problem), round(share * problem.ranks)
    room = problem.allocation.slots.astype(np.int64)
    host_of_rank = np.full(problem.ranks, -1, np.int32)
    placed = 0
    while placed < local:
        slots = generator.permutation(_close_slots(problem, generator, room, block))
        ranks = clusters.take(min(len(slots), local - placed))
        host_of_rank[ranks] = slots[: len(ranks)]
        room -= np.bincount(slots[: len(ranks)], minlength=len(room))
        placed += len(ranks)
    rest = np.flatnonzero(host_of_rank < 0)
    left = np.repeat(np.arange(len(room), dtype=np.int32), room)
    host_of_rank[rest] = generator.permutation(left)[: len(rest)]
    return host_of_rank


def _close_slots(problem: Problem, generator: np.random.Generator, room: Longs, block: int) -> Ints:
    """Return the hosts of free slots on and near a random host with room, one entry per slot."""
    free = np.flatnonzero(room)
    centre = int(generator.choice(free))
    far = problem.distances.of(centre, np.arange(problem.hosts))
    if block == 0:
        others = np.delete(far, centre)
        free = free[far[free] <= others.min(initial=np.inf)]
    order = np.lexsort((generator.random(len(free)), far[free]))
    slots = np.repeat(free[order], room[free[order]]).astype(np.int32)
    return slots[:block] if block else slots


class _Clusters:
    """Clusters of ranks that exchange much."""

    def __init__(self, problem: Problem) -> None:
        guest = problem.guest(directed=False)
        self._ptr, self._partner, self._bytes = guest.indptr, guest.partner, guest.bytes
        talks = np.zeros(problem.ranks)
        np.add.at(talks, np.repeat(np.arange(problem.ranks), np.diff(guest.indptr)), guest.bytes)
        self._heaviest: Ints = np.argsort(-talks, kind="stable").astype(np.int32)
        self._waiting: Bools = np.ones(problem.ranks, bool)
        self._at = 0

    def take(self, count: int) -> list[int]:
        """Return the next cluster of exactly `count` ranks; ties go to the lower rank."""
        cluster: list[int] = []
        gain: dict[int, float] = {}
        queue: list[tuple[float, int]] = []
        while len(cluster) < count:
            rank = self._next(queue)
            self._waiting[rank] = False
            cluster.append(rank)
            for e in range(self._ptr[rank], self._ptr[rank + 1]):
                partner = int(self._partner[e])
                if self._waiting[partner]:
                    gain[partner] = gain.get(partner, 0.0) + float(self._bytes[e])
                    heapq.heappush(queue, (-gain[partner], partner))
        return cluster

    def _next(self, queue: list[tuple[float, int]]) -> int:
        """Return the waiting rank that exchanges most with the cluster, else the heaviest."""
        while queue:
            _, rank = heapq.heappop(queue)  # an older, smaller gain of a rank comes after it was taken
            if self._waiting[rank]:
                return rank
        while not self._waiting[self._heaviest[self._at]]:
            self._at += 1
        return int(self._heaviest[self._at])


ROUND = 4_096
"""Iterations between two checks for an interrupt."""
ROUNDING = 1e-13
"""A decrease below this part of the coefficient is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Search:
    """Result of all seeds."""

    host_of_rank: Ints
    """int32[ranks]: Placement of the best seed."""
    best: int
    """Number of the best seed, from 0."""
    coefficients: tuple[Floats, ...]
    """tuple of float64[iterations + 1]: Mapping coefficient of each seed at its start and after each
    iteration (Figure 7), in bytes or packets times distance."""


def place_by_random_search(
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

    Args:
        seeds: Number of random mappings to start from.
        failures: Number of iterations in a row without a decrease after which a seed ends.
        packet_bytes: Size of a packet, to count packets (section 2 of the paper); 0: count bytes.

    Raises:
        InvalidValue: `seeds` or `failures` below 1, `packet_bytes` below 0.
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
