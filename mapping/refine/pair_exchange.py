"""Annealed pair exchange on hop-bytes: swaps of two ranks and moves to free slots, with incremental gains.

The temperature is steered, round by round, so that the part of proposals that change something and are kept
falls geometrically: from where large-scale order forms to where little moves. Guests whose edges differ by
orders of magnitude, wide tori and flat trees freeze at temperatures that differ a hundredfold, but at the
same part of kept proposals. The last rounds are a descent at temperature 0.

A short cold search comes first: a start that is good at large, such as ranks cut along the hierarchy of
hosts for guests of powers of two, can be better than all that annealing finds again after melting it.

With several workers the hosts are cut into domains, another way each round; every thread exchanges ranks
of its own domain and sees the others where they were when the round began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.hop_bytes_annealing import Domain, Standing, anneal, stand
from mapping.kernels.hop_bytes_search import Guest, Seats
from mapping.kernels.random_numbers import State, state_from
from mapping.model.budget import Budget
from mapping.model.problem import Problem
from mapping.refine import Found
from mapping.refine.state.domains import Team, cut
from registry.model import Int8s, Ints

ROUND = 16_384
"""Fewest proposals of a worker between two looks at the clock: 1 to 4 ms."""
PER_RANK = 4
"""Proposals a rank and round: what a round costs beside its proposals grows with the ranks."""
CUTS = 64
"""Ways to cut the hosts into domains; they are used in turn."""
HOTTEST, COLDEST = 0.25, 0.002
"""First and last part of proposals that are kept and change something."""
COLD, COLD_SHARE = 0.01, 0.06
"""The same at the beginning of the cold search that comes first, and its part of the budget."""
FROZEN = 0.97
"""Part of the budget after which the temperature is 0."""
FIRST_HEAT = 0.03
"""Temperature before anything is measured, in bytes of the median rank times hop units."""
STEERING, SHARPEST = 0.2, 1.4
"""Exponent of wanted over measured in a round's correction of temperature, and the largest correction."""


class _Search(NamedTuple):
    """Arrays of one run; what a thread changes for itself is there once a worker."""

    guest: Guest
    tables: Int8s | None
    seats: Seats
    whole: Standing
    own: tuple[Standing, ...]
    states: tuple[State, ...]
    movable: Ints


def refine(
    problem: Problem,
    start: Ints,
    budget: Budget,
    generator: np.random.Generator,
    *,
    hottest: float = HOTTEST,
    coldest: float = COLDEST,
    cold: float = COLD_SHARE,
) -> Iterator[Found]:
    """Improve a placement by host index on hop-bytes.

    Parameters
    ----------
    hottest, coldest : float
        First and last part of proposals that are kept and change something.
    cold : float
        Part of the budget for a cold search before.
    """
    best = Found(start, "hop_bytes", problem.hop_bytes(start))
    search = _begin(problem, start, generator, budget.workers)
    if len(search.movable) == 0 or len(problem.slot_host) < 2:
        return
    most = max(ROUND, PER_RANK * problem.ranks // budget.workers) * budget.workers
    lowest = stand(search.guest, problem.hops, search.whole)
    heat = FIRST_HEAT * problem.median_rank_bytes * problem.hop_unit
    with Team(budget.workers) as team:
        domains = _Domains(problem, generator, budget.workers)
        while proposals := budget.claim(most):
            spent = budget.fraction
            wanted = _wanted(spent, hottest, coldest, cold)
            made, kept = _round(problem, search, team, domains.next(), proposals, heat if wanted > 0 else 0.0)
            if wanted > 0:
                off = wanted * made / (kept + 0.5)
                heat *= min(max(off**STEERING, 1 / SHARPEST), SHARPEST)
            value = stand(search.guest, problem.hops, search.whole)
            if value < lowest * (1.0 - 1e-9):
                lowest = value
                hosts = search.whole.host.copy()
                best = Found(hosts, "hop_bytes", problem.hop_bytes(hosts))
            yield best


def _wanted(spent: float, hottest: float, coldest: float, cold: float) -> float:
    """Part of proposals to be kept after a fraction of the budget; 0 for none that loses."""
    if spent < cold:
        return float(COLD * (coldest / COLD) ** (spent / cold))
    if spent >= FROZEN:
        return 0.0
    return float(hottest * (coldest / hottest) ** ((spent - cold) / (FROZEN - cold)))


def _begin(problem: Problem, start: Ints, generator: np.random.Generator, workers: int) -> _Search:
    directed = len(problem.hops.code) == 2
    guest, seats = problem.guest(directed=directed), problem.seats(start)
    ranks = problem.ranks

    def standing() -> Standing:
        return Standing(seats.host_of_rank.copy(), np.zeros(ranks, np.int32), np.zeros(ranks))

    return _Search(
        guest=guest,
        tables=guest.table if directed else None,
        seats=seats,
        whole=standing(),
        own=tuple(standing() for _ in range(workers if workers > 1 else 0)),
        states=tuple(state_from(generator) for _ in range(workers)),
        movable=guest.active[~seats.fixed[guest.active]],
    )


class _Domains:
    """Ways to cut the hosts, drawn once and used in turn."""

    def __init__(self, problem: Problem, generator: np.random.Generator, workers: int) -> None:
        self._problem = problem
        self._workers = workers
        self._centres = generator.integers(problem.hosts, size=CUTS).tolist()
        self._cuts: list[NDArray[np.int8]] = []
        self._at = -1

    def next(self) -> NDArray[np.int8]:
        """int8[h]: domain of each host in the next round."""
        problem, self._at = self._problem, (self._at + 1) % CUTS
        if self._workers == 1 and not self._cuts:
            self._cuts = [np.zeros(problem.hosts, np.int8)] * CUTS
        if self._at == len(self._cuts):
            centre = self._centres[self._at]
            distance = problem.distances.of(centre, np.arange(problem.hosts))
            self._cuts.append(
                cut(distance, problem.first_slot, self._workers, centre, problem.distances.group)
            )
        return self._cuts[self._at]


def _round(
    problem: Problem, search: _Search, team: Team, of_host: NDArray[np.int8], proposals: int, heat: float
) -> tuple[int, int]:
    """Make proposals in each domain, put the domains together; how many stayed inside, how many were kept."""
    whole, movable = search.whole, search.movable
    at = of_host[whole.host]
    where = at[movable]

    def work(worker: int) -> tuple[int, int]:
        standing = whole
        if search.own:
            standing = search.own[worker]
            standing.host[:] = whole.host
            standing.group[:] = whole.group
            standing.cost[:] = whole.cost
        ranks = movable[where == worker]
        count = proposals // team.workers + (worker < proposals % team.workers)
        if len(ranks) == 0:
            return 0, 0
        return anneal(count, heat, search.guest, search.tables, problem.hops, problem.near, search.seats,
                      standing, Domain(of_host, worker, ranks), search.states[worker])  # fmt: skip

    made, kept = np.array(team.run(work)).sum(axis=0).tolist()
    for worker, standing in enumerate(search.own):
        ranks = at == worker
        whole.host[ranks] = standing.host[ranks]
    return made, kept
