"""Annealed pair exchange on hop-bytes: swaps of two ranks and moves to free slots, with incremental gains.

A short descent comes first. Its gain distinguishes two kinds of start. If it gains much, the start has no
order yet, and a hot search forms it. If it gains next to nothing, ranks that communicate are already near
each other, such as those cut along the hierarchy of hosts: a hot search would destroy a global order that it
does not find again, and a cold one keeps it. A search with few proposals per rank is colder too.

Then the temperature is controlled, round by round, so that the part of proposals that are accepted and change
something falls geometrically. Guests whose edges differ by orders of magnitude, wide tori and flat trees
freeze at temperatures that differ a hundredfold, but at the same part of accepted proposals. The last rounds
are a descent.

With several workers the hosts are cut into domains, differently in each round; every thread exchanges ranks
of its own domain, and for it the others stay where they were at the start of the round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.deadline import Deadline
from mapping.kernels.random_numbers import State, state_from
from mapping.placement.candidate import Candidate
from mapping.placement.kernels.hop_bytes_search import SearchArrays
from mapping.placement.kernels.pair_exchange import Domain, RankState, anneal, compute_costs
from mapping.placement.methods.cores import Team, cut, near_pairs
from mapping.placement.problem import Problem
from registry.model import Int8s, Ints

ROUND = 8_192
"""Least proposals of a worker between two checks of the clock: 1 to 2 ms."""
PER_RANK = 4
"""Proposals per rank and round; the overhead of a round grows with the ranks."""
CUTS = 64
"""Number of divisions of the hosts into domains, used in turn."""
SAMPLE = 1024
"""Number of pairs of near hosts by which divisions are compared."""
HOTTEST, COLDEST = 0.25, 0.002
"""First and last part of proposals that are accepted and change something, from a start without order."""
ORDERED = 0.01
"""A start from which the descent gains less than this part already has local order."""
KEEPING = 0.01
"""First part of proposals that are accepted and change something from a start with local order."""
DESCENT = 20
"""Proposals per rank in the first descent."""
MELTING = 300
"""Proposals per rank for the hottest temperature; with fewer, a search begins colder in proportion."""
FROZEN = 0.97
"""Part of the limit after which the temperature is 0."""
FIRST_HEAT = 0.003
"""First temperature, in bytes of the median rank times hop units."""
STEERING, SHARPEST = 0.2, 1.4
"""Exponent of wanted over measured part in the correction of the temperature, and the largest correction."""


class _Search(NamedTuple):
    """Arrays of one run; those that a thread changes exist once per worker."""

    arrays: SearchArrays
    tables: Int8s | None
    whole: RankState
    own: tuple[RankState, ...]
    states: tuple[State, ...]
    movable: Ints


def refine(
    problem: Problem,
    start: Ints,
    deadline: Deadline,
    generator: np.random.Generator,
    *,
    hottest: float = HOTTEST,
    keeping: float = KEEPING,
    coldest: float = COLDEST,
) -> Iterator[Candidate]:
    """Improve a placement on hop-bytes.

    Args:
        hottest, coldest: First and last part of proposals that are accepted and change something.
        keeping: First part from a start with local order.
    """
    best = Candidate(start, "hop_bytes", problem.hop_bytes(start))
    search = _begin(problem, start, generator, deadline.workers)
    if len(search.movable) == 0 or len(problem.slot_host) < 2:
        return
    most = max(ROUND, PER_RANK * problem.ranks // deadline.workers) * deadline.workers
    lowest = compute_costs(search.arrays, search.whole)
    schedule = _Schedule(problem, len(search.movable), lowest, (hottest, keeping, coldest))
    deadline.restart()
    with Team(deadline.workers) as team:
        domains = _Domains(problem, generator, deadline.workers)
        while True:
            schedule.update(deadline.taken, deadline.fraction, lowest)
            proposals = deadline.claim(most)
            if not proposals:
                return
            schedule.correct(*_round(search, team, domains.next(), proposals, schedule.temperature))
            value = compute_costs(search.arrays, search.whole)
            if value < lowest * (1.0 - 1e-9):
                lowest = value
                hosts = search.whole.host.copy()
                best = Candidate(hosts, "hop_bytes", problem.hop_bytes(hosts))
            yield best


class _Schedule:
    """The temperature of each round.

    Args:
        movable: Number of ranks that may move.
        first: Hop-bytes of the start.
        parts: `hottest`, `keeping` and `coldest`, as in `refine`.
    """

    def __init__(
        self, problem: Problem, movable: int, first: float, parts: tuple[float, float, float]
    ) -> None:
        self._descent = DESCENT * movable
        self._melting = MELTING * movable
        self._first = first
        self._parts = parts
        self._heat = FIRST_HEAT * problem.median_rank_bytes * problem.hop_unit
        self._hottest, self._begin = 0.0, 1.0
        self._wanted = 0.0

    @property
    def temperature(self) -> float:
        """Temperature of the next round; 0 in a descent."""
        return self._heat if self._wanted > 0 else 0.0

    def update(self, done: int, spent: float, lowest: float) -> None:
        """Choose the part of proposals to accept next, after some proposals and a part of the limit."""
        hottest, keeping, coldest = self._parts
        if self._hottest == 0 and done >= self._descent:
            ordered = self._first - lowest <= ORDERED * self._first
            affords = min(done / (max(spent, 1e-9) * self._melting), 1.0)
            self._hottest = max(coldest, (keeping if ordered else hottest) * affords)
            self._begin = spent
        self._wanted = 0.0
        if self._begin <= spent < FROZEN:
            passed = (spent - self._begin) / (FROZEN - self._begin)
            self._wanted = float(self._hottest * (coldest / self._hottest) ** passed)

    def correct(self, made: int, kept: int) -> None:
        """Correct the temperature by the part of proposals that a round accepted."""
        if self._wanted > 0:
            off = self._wanted * made / (kept + 0.5)
            self._heat *= min(max(off**STEERING, 1 / SHARPEST), SHARPEST)


def _begin(problem: Problem, start: Ints, generator: np.random.Generator, workers: int) -> _Search:
    """Return the arrays of a run that starts from a placement."""
    directed = len(problem.hops.code) == 2
    guest, assignment = problem.guest(directed=directed), problem.assign_slots(start)
    ranks = problem.ranks

    def rank_state() -> RankState:
        return RankState(assignment.host_of_rank.copy(), np.zeros(ranks, np.int32), np.zeros(ranks))

    return _Search(
        arrays=SearchArrays(guest, problem.hops, problem.near, assignment),
        tables=guest.table if directed else None,
        whole=rank_state(),
        own=tuple(rank_state() for _ in range(workers if workers > 1 else 0)),
        states=tuple(state_from(generator) for _ in range(workers)),
        movable=guest.active[~assignment.fixed[guest.active]],
    )


class _Domains:
    """Divisions of the hosts into domains, drawn once and used in turn.

    Hosts are sorted by distance from one host, or by how much nearer they are to it than to another: on a
    hypercube to a neighbour, which gives two cubes. The division that splits fewest pairs of near hosts is
    used.
    """

    def __init__(self, problem: Problem, generator: np.random.Generator, workers: int) -> None:
        self._problem = problem
        self._workers = workers
        self._centres = generator.integers(problem.hosts, size=CUTS).tolist()
        self._others = generator.integers(problem.hosts, size=CUTS).tolist()
        self._pairs = near_pairs(problem.near, generator.integers(1 << 62, size=(2, SAMPLE)))
        self._cuts: list[NDArray[np.int8]] = []
        self._at = -1

    def next(self) -> NDArray[np.int8]:
        """Return int8[h]: the domain of each host in the next round."""
        self._at = (self._at + 1) % CUTS
        if self._workers == 1 and not self._cuts:
            self._cuts = [np.zeros(self._problem.hosts, np.int8)] * CUTS
        if self._at == len(self._cuts):
            self._cuts.append(self._cut(self._centres[self._at], self._others[self._at]))
        return self._cuts[self._at]

    def _cut(self, centre: int, other: int) -> NDArray[np.int8]:
        problem, (one, near) = self._problem, self._pairs
        hosts, distances = np.arange(problem.hosts), problem.distances
        far = distances.of(centre, hosts)
        keys = [far, far - distances.of(other, hosts)]
        if len(one):
            at = centre % len(one)
            keys.append(distances.of(int(one[at]), hosts) - distances.of(int(near[at]), hosts))
        found = [cut(key, problem.first_slot, self._workers, centre, distances.group) for key in keys]
        return min(found, key=lambda domain: int(np.count_nonzero(domain[one] != domain[near])))


def _round(
    search: _Search, team: Team, of_host: NDArray[np.int8], proposals: int, heat: float
) -> tuple[int, int]:
    """Make proposals in each domain, merge them, and return how many were inside and how many accepted."""
    whole, movable = search.whole, search.movable
    at = of_host[whole.host]
    where = at[movable]

    def work(worker: int) -> tuple[int, int]:
        rank_state = whole
        if search.own:
            rank_state = search.own[worker]
            rank_state.host[:] = whole.host
            rank_state.group[:] = whole.group
            rank_state.cost[:] = whole.cost
        ranks = movable[where == worker]
        count = proposals // team.workers + (worker < proposals % team.workers)
        if len(ranks) == 0:
            return 0, 0
        domain = Domain(of_host, worker, ranks)
        return anneal(count, heat, search.arrays, search.tables, rank_state, domain, search.states[worker])

    made, kept = np.array(team.run(work)).sum(axis=0).tolist()
    for worker, rank_state in enumerate(search.own):
        ranks = at == worker
        whole.host[ranks] = rank_state.host[ranks]
    return made, kept
