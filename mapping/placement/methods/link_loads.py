"""State of a search on link loads: slot assignment, load of every link, and rounds of exchanges.

Each worker has a copy of the loads; the changes of all workers are summed after a round, and
`LoadSearch.measure` computes all loads afresh.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.random_numbers import state_from
from mapping.placement.kernels import congestion_descent as kernel
from mapping.placement.kernels.congestion_descent import Part, Rules, Worker
from mapping.placement.kernels.hop_bytes_search import SearchArrays, SlotAssignment
from mapping.placement.kernels.link_loads import BYTES, SCALE, TERM, Flows, Loads, Talk, accumulate_flows
from mapping.placement.methods.cores import Team, cut
from mapping.placement.methods.pair_routes import (
    MOST_ENTRIES,
    LinkGrid,
    PairRoutes,
    build_link_grid,
    build_pair_routes,
    most_used_first,
    of_another_thread,
)
from mapping.placement.problem import Problem
from registry.model import Bools, Floats, Ints

HOT_PAIRS = 0.02
"""Part of the pairs of ranks that counts as busiest."""
FEWEST_HOT = 8
"""Least number of pairs that count as busiest."""
CACHE_BYTES = 192 << 20
"""Memory of each worker for flows between hosts, if not all are stored."""
OVERFULL = 2.0
"""Limit of the load of others on a link, relative to the worst link; higher powers would dominate the sum."""
SAME = 1e-6


class Schedule(NamedTuple):
    """Schedule of a search; see the constants of `mapping.placement.methods.congestion_descent`."""

    squarings: tuple[int, ...]
    hottest: float
    coldest: float
    frozen: float
    screen: float
    hot: int
    together: float

    def power(self, fraction: float) -> int:
        """Return the number of squarings after a fraction of the limit."""
        return self.squarings[min(int(fraction * len(self.squarings)), len(self.squarings) - 1)]

    def temperature(self, fraction: float) -> float:
        """Return the temperature after a fraction of the limit."""
        if fraction >= self.frozen:
            return 0.0
        return float(self.hottest * (self.coldest / self.hottest) ** (fraction / self.frozen))


class Measured(NamedTuple):
    """A placement with its worst link and its worst network link, in seconds."""

    congestion_seconds: float
    network_congestion_seconds: float
    host_of_rank: Ints


class _Stage(NamedTuple):
    """Values between two calls of `LoadSearch.measure`.

    `total` is the sum over the links whose load shall fall; `rank` and `partner` are the busiest pairs, in
    both directions.
    """

    squarings: int
    total: float
    rank: Ints
    partner: Ints


class LoadSearch:
    """A search on link loads.

    Args:
        start (int32[ranks]): Host indices.
        workers: Number of threads; results depend on it, but not on the number of cores.
    """

    def __init__(self, problem: Problem, start: Ints, workers: int, generator: np.random.Generator) -> None:
        self._problem = problem
        self._generator = generator
        pair_routes, self.grid = routes_and_grid(problem)
        self._talk = talk_of(problem)
        self._guest = problem.guest(directed=len(problem.hops.code) == 2)
        self._pairs = _each_pair_once(self._talk)
        self._several = bool((problem.allocation.slots > 1).any())
        self._cables = self._several or _unequal_cables(pair_routes, self.grid)
        self._movable = (np.diff(self._talk.indptr) > 0) & ~problem.pinned
        self.assignment = problem.assign_slots(start)
        room = 4 * int(np.diff(self._talk.indptr).max()) + 1
        self.pair_routes = [of_another_thread(pair_routes, CACHE_BYTES) for _ in range(workers)]
        self.workers = [
            Worker(routes.lookup, new_loads(len(self.grid)), new_flows(room), state_from(generator))
            for routes in self.pair_routes
        ]
        self._stage = _Stage(0, 0.0, np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.counts = np.zeros(3, np.int64)
        """Number of proposals within domains, examined, and accepted so far."""

    @property
    def movable(self) -> int:
        """Number of ranks that exchange bytes and are not pinned."""
        return int(np.count_nonzero(self._movable))

    def begin(self, start: Ints) -> None:
        """Go on from another placement; `measure` must be called next.

        Args:
            start (int32[ranks]): Host indices.
        """
        self.assignment = self._problem.assign_slots(start)

    def measure(self, schedule: Schedule, fraction: float) -> Measured:
        """Compute all loads afresh, scale links by the worst of their class, and find the busiest pairs."""
        grid, own, pairs, flows = self.grid, self.workers[0], self._pairs, self._flows()
        bytes = self._bytes_of_cells(flows)
        measured = self._measured(bytes)
        squarings = schedule.power(fraction)
        scale, wanted = self._scale(measured, fraction < schedule.together)
        bytes += np.minimum(grid.background, OVERFULL / scale)
        term = (bytes * scale) ** (1 << squarings)
        for column, values in ((BYTES, bytes), (SCALE, scale), (TERM, term)):
            own.loads.state[:, column : column + 2] = values.reshape(-1, 2)
        slope = np.divide(term, bytes, out=np.zeros(len(grid)), where=wanted & (bytes > 0))
        hot = self._hottest(flows, slope)
        one, other = pairs.source[hot], pairs.target[hot]
        self._stage = _Stage(squarings, float(term[wanted].sum()), np.r_[one, other], np.r_[other, one])
        return measured

    def worst(self) -> Measured:
        """Return the placement with its worst links, as `measure` does, and prepare nothing."""
        return self._measured(self._bytes_of_cells(self._flows()))

    def _flows(self) -> Flows:
        """Return the flows between hosts, one for each pair of ranks."""
        here, pairs = self.assignment.host_of_rank, self._pairs
        return pairs._replace(source=here[pairs.source], target=here[pairs.target])

    def _bytes_of_cells(self, flows: Flows) -> Floats:
        """Return float64[c]: the load of all flows on each cell.

        Routes that are not stored are expensive one by one: the routing sums all together.
        """
        if self.pair_routes[0].missing is None:
            return load_all(self.pair_routes[0], self.workers[0].loads, flows)
        problem, of_link = self._problem, self.grid.of_link
        link_bytes = problem.routes.link_bytes(*problem.host_traffic(self.assignment.host_of_rank))
        bytes, known = np.zeros(len(self.grid)), of_link >= 0
        bytes[of_link[known]] = link_bytes[known]
        return bytes

    def _measured(self, bytes: Floats) -> Measured:
        """Return the placement with its worst links, given the bytes of each cell."""
        grid = self.grid
        seconds = np.where(bytes > 0, (bytes + grid.background) / grid.capacity, 0.0)
        worst, network = float(seconds.max(initial=0.0)), float(seconds[grid.network].max(initial=0.0))
        return Measured(worst, network, self.assignment.host_of_rank.copy())

    def round(self, team: Team, proposals: int, schedule: Schedule, fraction: float) -> int:
        """Let each worker make its part of the proposals; return how many were examined."""
        problem, stage = self._problem, self._stage
        heat = schedule.temperature(fraction) / problem.ranks * stage.total * (1 << stage.squarings)
        screen = schedule.screen * problem.median_rank_bytes * problem.hop_unit
        rules = Rules(stage.squarings, heat, screen, schedule.hot, self._cables)
        domain = self._domains(team.workers)
        domain_of_rank = domain[self.assignment.host_of_rank]
        assignment = (
            [_copy(self.assignment) for _ in range(team.workers)] if team.workers > 1 else [self.assignment]
        )
        counts = np.zeros((team.workers, 3), np.int64)
        begin = self.workers[0].loads.state.copy() if team.workers > 1 else None

        def task(number: int) -> None:
            own, hot = self.workers[number], domain_of_rank[stage.rank] == number
            if begin is not None:
                own.loads.state[:] = begin
            movable = np.flatnonzero((domain_of_rank == number) & self._movable).astype(np.int32)
            part = Part(number, domain, movable, stage.rank[hot], stage.partner[hot])
            share = proposals // team.workers + (number < proposals % team.workers)
            arrays = SearchArrays(self._guest, problem.hops, problem.near, assignment[number])
            kernel.exchange_on_congestion(
                share, rules, self._talk, part, own, self.pair_routes[number].missing, arrays, counts[number]
            )

        team.run(task)
        if begin is not None:
            self._merge(assignment, domain, begin)
        self.counts += counts.sum(axis=0)
        return int(counts[:, 1].sum())

    def _merge(self, copies: list[SlotAssignment], domain: NDArray[np.int8], begin: Floats) -> None:
        """Merge the slot assignments of the workers, and add their changes to the loads."""
        assignment, state = self.assignment, self.workers[0].loads.state
        domain_of_slot = domain[assignment.slot_host]
        for number, copy in enumerate(copies):
            own = domain_of_slot == number
            assignment.rank_of_slot[own] = copy.rank_of_slot[own]
        taken = np.flatnonzero(assignment.rank_of_slot >= 0)
        assignment.slot_of_rank[assignment.rank_of_slot[taken]] = taken
        assignment.host_of_rank[:] = assignment.slot_host[assignment.slot_of_rank]
        bytes, columns = begin[:, BYTES : BYTES + 2].copy(), slice(BYTES, BYTES + 2)
        for worker in self.workers:
            bytes += worker.loads.state[:, columns] - begin[:, columns]
        np.maximum(bytes, 0.0, out=bytes)
        state[:, columns] = bytes
        state[:, TERM : TERM + 2] = (bytes * state[:, SCALE : SCALE + 2]) ** (1 << self._stage.squarings)

    def _domains(self, workers: int) -> NDArray[np.int8]:
        problem = self._problem
        if workers == 1:
            return np.zeros(problem.hosts, np.int8)
        centre = int(self._generator.integers(problem.hosts))
        distance = problem.distances.of(centre, np.arange(problem.hosts))
        return cut(distance, problem.first_slot, workers, centre, problem.distances.group)

    def _scale(self, measured: Measured, together: bool) -> tuple[Floats, Bools]:
        """Return float64[c]: the scale of each cell by the worst of its class, and bool[c]: cells that count.

        With one rank per host, the load of its cables does not depend on its host: only the network
        counts. With several, hosts' cables count too: first (`together`) relative to the worst of all links,
        then to the worst of each class.
        """
        grid, highest, inner = self.grid, measured.congestion_seconds, measured.network_congestion_seconds
        if inner == 0 or (self._several and together):
            inner = highest
        worst = np.where(grid.network, inner, highest)
        worst[worst == 0] = 1.0
        return 1.0 / (grid.capacity * worst), grid.network | self._several | (inner == 0)

    def _hottest(self, flows: Flows, slope: Floats) -> Ints:
        """Return the pairs of ranks whose traffic causes most of the sum."""
        heat = np.empty(len(flows.source))
        routes = self.pair_routes[0]
        kernel.pair_heat(flows, routes.lookup, routes.missing, slope, self.workers[0].loads, heat)
        count = min(max(int(len(heat) * HOT_PAIRS), FEWEST_HOT), len(heat))
        coolest = np.partition(heat, len(heat) - count)[len(heat) - count]
        return np.flatnonzero(heat >= coolest).astype(np.int32)


def routes_and_grid(problem: Problem, *, most: int = MOST_ENTRIES) -> tuple[PairRoutes, LinkGrid]:
    """Return the routes between hosts and the links that they use; the problem keeps them.

    Args:
        most: As for `build_pair_routes`.
    """
    grid = link_grid(problem)

    def make() -> tuple[PairRoutes, LinkGrid]:
        return most_used_first(build_pair_routes(problem.routes.flows, grid, CACHE_BYTES, most=most), grid)

    return problem.memo.once("runs", make)


def link_grid(problem: Problem) -> LinkGrid:
    """Return the links between the hosts; the problem keeps them."""
    return problem.memo.once("link grid", lambda: build_link_grid(problem))


def load_all(pair_routes: PairRoutes, loads: Loads, flows: Flows) -> Floats:
    """Return float64[c]: the load of all flows on each cell."""
    apart = flows.source != flows.target
    ends = flows.source[apart], flows.target[apart]
    kept = Flows(*ends, flows.out[apart], flows.back[apart], flows.run)
    accumulate_flows(0, len(kept.source), pair_routes.lookup, pair_routes.missing, kept, True, loads)
    bytes = loads.change.copy()
    loads.change[:] = 0.0
    loads.is_touched[:] = 0
    return bytes


def new_loads(cells: int) -> Loads:
    """Return loads of a number of cells, all zero."""
    cables = cells // 2
    room = np.zeros(8 * cables + 8)
    first = -(room.ctypes.data // 8) % 8  # a cable is one line of the processor's cache
    return Loads(
        room[first : first + 8 * cables].reshape(cables, 8),
        np.zeros(cells),
        np.zeros(cables + 1, np.uint32),
        np.zeros(cables, np.uint8),
    )


def new_flows(count: int) -> Flows:
    """Return buffers for a number of flows."""
    ends, bytes = np.zeros((2, count), np.int32), np.zeros((2, count))
    return Flows(ends[0], ends[1], bytes[0], bytes[1], np.zeros(4 * count + 1, np.int64))


def talk_of(problem: Problem) -> Talk:
    """Return the partners of each rank, with the bytes of both directions."""
    ranks, pairs = problem.ranks, len(problem.bytes)
    rank = np.concatenate([problem.source, problem.target]).astype(np.int64)
    partner = np.concatenate([problem.target, problem.source])
    key, entry = np.unique(rank * ranks + partner, return_inverse=True)
    out = np.bincount(entry[:pairs], weights=problem.bytes, minlength=len(key))
    back = np.bincount(entry[pairs:], weights=problem.bytes, minlength=len(key))
    rank, partner = key // ranks, key % ranks
    apart = rank != partner
    indptr = np.searchsorted(rank[apart], np.arange(ranks + 1)).astype(np.int64)
    return Talk(indptr, partner[apart].astype(np.int32), out[apart], back[apart])


def _each_pair_once(talk: Talk) -> Flows:
    """Return the pairs of ranks that communicate, lower rank first."""
    rank = np.repeat(np.arange(len(talk.indptr) - 1, dtype=np.int32), np.diff(talk.indptr))
    first = rank < talk.partner
    room = np.zeros(4 * int(np.count_nonzero(first)) + 1, np.int64)
    return Flows(rank[first], talk.partner[first], talk.out[first], talk.back[first], room)


def _copy(assignment: SlotAssignment) -> SlotAssignment:
    """Return a copy of an assignment for another worker."""
    return assignment._replace(
        rank_of_slot=assignment.rank_of_slot.copy(),
        slot_of_rank=assignment.slot_of_rank.copy(),
        host_of_rank=assignment.host_of_rank.copy(),
    )


def _unequal_cables(pair_routes: PairRoutes, grid: LinkGrid) -> bool:
    """Return True if hosts' own cables differ, so that their load depends on the placement."""
    hosts = pair_routes.hosts
    if len(hosts.up_cell) == 0:
        return not bool(grid.network.all())
    for ptr, cell in ((hosts.up_ptr, hosts.up_cell), (hosts.down_ptr, hosts.down_cell)):
        host = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        total = np.bincount(host, grid.capacity[cell], len(ptr) - 1)
        if not np.allclose(total, total[0], rtol=SAME) or bool(grid.background[cell].any()):
            return True
    return False
