"""Annealed pair exchange on hop-bytes: swaps of two ranks and moves to free slots, with incremental gains.

A short descent comes first. What it gains tells two kinds of start apart. Where it gains much, the start has
no order yet, and a hot search forms it. Where it gains next to nothing, ranks that talk already sit together,
such as those cut along the hierarchy of hosts: a hot search would melt an order at large that it does not
find again, and a cold one keeps it. A search of few proposals a rank is colder too.

Then the temperature is steered, round by round, so that the part of proposals that change something and are
kept falls geometrically. Guests whose edges differ by orders of magnitude, wide tori and flat trees freeze at
temperatures that differ a hundredfold, but at the same part of kept proposals. The last rounds are a descent.

With several workers the hosts are cut into domains, another way each round; every thread exchanges ranks
of its own domain and sees the others where they were when the round began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.deadline import Deadline
from mapping.kernels.random_numbers import State, state_from
from mapping.placement.kernels.hop_bytes_annealing import Domain, RankState, anneal, compute_costs
from mapping.placement.kernels.hop_bytes_search import Guest, SlotAssignment
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Candidate
from mapping.placement.refine.state.domains import Team, cut, near_pairs
from registry.model import Int8s, Ints

ROUND = 8_192
"""Fewest proposals of a worker between two looks at the clock: 1 to 2 ms."""
PER_RANK = 4
"""Proposals a rank and round: what a round costs beside its proposals grows with the ranks."""
CUTS = 64
"""Ways to cut the hosts into domains; they are used in turn."""
SAMPLE = 1024
"""Pairs of near hosts by which cuts are compared."""
HOTTEST, COLDEST = 0.25, 0.002
"""First and last part of proposals that are kept and change something, from a start without order."""
ORDERED = 0.01
"""A start from which the descent gains less than this part is in order at small already."""
KEEPING = 0.01
"""First part of proposals that are kept and change something from such a start."""
DESCENT = 20
"""Proposals a rank in the descent that comes first."""
MELTING = 300
"""Proposals a rank that the hottest temperature takes; with fewer a search begins colder, in proportion."""
FROZEN = 0.97
"""Part of the budget after which the temperature is 0."""
FIRST_HEAT = 0.003
"""Temperature before anything is measured, in bytes of the median rank times hop units."""
STEERING, SHARPEST = 0.2, 1.4
"""Exponent of wanted over measured in a round's correction of temperature, and the largest correction."""


class _Search(NamedTuple):
    """Arrays of one run; what a thread changes for itself is there once a worker."""

    guest: Guest
    tables: Int8s | None
    assignment: SlotAssignment
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
    """Improve a placement by host index on hop-bytes.

    Parameters
    ----------
    hottest, coldest : float
        First and last part of proposals that are kept and change something.
    keeping : float
        The first from a start that is in order at small already.
    """
    best = Candidate(start, "hop_bytes", problem.hop_bytes(start))
    search = _begin(problem, start, generator, deadline.workers)
    if len(search.movable) == 0 or len(problem.slot_host) < 2:
        return
    most = max(ROUND, PER_RANK * problem.ranks // deadline.workers) * deadline.workers
    lowest = compute_costs(search.guest, problem.hops, search.whole)
    schedule = _Schedule(problem, len(search.movable), lowest, (hottest, keeping, coldest))
    deadline.restart()
    with Team(deadline.workers) as team:
        domains = _Domains(problem, generator, deadline.workers)
        while True:
            schedule.tend(deadline.taken, deadline.fraction, lowest)
            proposals = deadline.claim(most)
            if not proposals:
                return
            schedule.learn(*_round(problem, search, team, domains.next(), proposals, schedule.temperature))
            value = compute_costs(search.guest, problem.hops, search.whole)
            if value < lowest * (1.0 - 1e-9):
                lowest = value
                hosts = search.whole.host.copy()
                best = Candidate(hosts, "hop_bytes", problem.hop_bytes(hosts))
            yield best


class _Schedule:
    """The temperature of each round.

    Parameters
    ----------
    movable : int
        Ranks that may move.
    first : float
        Hop-bytes of the start.
    parts : (float, float, float)
        `hottest`, `keeping` and `coldest`, as in `refine`.
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
        """Of the next round; 0 in a descent."""
        return self._heat if self._wanted > 0 else 0.0

    def tend(self, done: int, spent: float, lowest: float) -> None:
        """Choose what the next round shall keep, after so many proposals and such a part of the deadline."""
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

    def learn(self, made: int, kept: int) -> None:
        """Correct the temperature by what a round kept."""
        if self._wanted > 0:
            off = self._wanted * made / (kept + 0.5)
            self._heat *= min(max(off**STEERING, 1 / SHARPEST), SHARPEST)


def _begin(problem: Problem, start: Ints, generator: np.random.Generator, workers: int) -> _Search:
    directed = len(problem.hops.code) == 2
    guest, assignment = problem.guest(directed=directed), problem.assign_slots(start)
    ranks = problem.ranks

    def rank_state() -> RankState:
        return RankState(assignment.host_of_rank.copy(), np.zeros(ranks, np.int32), np.zeros(ranks))

    return _Search(
        guest=guest,
        tables=guest.table if directed else None,
        assignment=assignment,
        whole=rank_state(),
        own=tuple(rank_state() for _ in range(workers if workers > 1 else 0)),
        states=tuple(state_from(generator) for _ in range(workers)),
        movable=guest.active[~assignment.fixed[guest.active]],
    )


class _Domains:
    """Ways to cut the hosts, drawn once and used in turn.

    Hosts are sorted by distance from one host, or by how much nearer they are to it than to another: on a
    hypercube to one beside it, which gives two cubes. What splits fewest pairs of near hosts is taken.
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
        """int8[h]: domain of each host in the next round."""
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
    problem: Problem, search: _Search, team: Team, of_host: NDArray[np.int8], proposals: int, heat: float
) -> tuple[int, int]:
    """Make proposals in each domain, put the domains together; how many stayed inside, how many were kept."""
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
        return anneal(count, heat, search.guest, search.tables, problem.hops, problem.near, search.assignment,
                      rank_state, Domain(of_host, worker, ranks), search.states[worker])  # fmt: skip

    made, kept = np.array(team.run(work)).sum(axis=0).tolist()
    for worker, rank_state in enumerate(search.own):
        ranks = at == worker
        whole.host[ranks] = rank_state.host[ranks]
    return made, kept
