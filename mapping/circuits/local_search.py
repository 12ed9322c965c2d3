"""Local search on circuits: change links and keep the partition, which is then refined.

The loop of the paper partitions and routes from scratch for each topology. Here a trial changes links, keeps
the partition, routes the flows that lost a link again, and refines that (section 3.2.3), so that far more
topologies are tried in the same time. A slightly worse topology is accepted too, less and less so towards the
end, and the best is kept. After `AGAIN` trials without gain, and at the start, the search goes on from the
best in another way (`mapping.circuits.search`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mapping.circuits.bounds import throughput_bound
from mapping.circuits.kernels.routes import PartitionState, new_search, reroute_flows
from mapping.circuits.paper import LoopOptions, co_optimise
from mapping.circuits.paper_partition import (
    HIGHEST,
    build_net,
    evaluate_state,
    load_kernels,
    longest_route,
    refine,
    route_missing,
    set_loads,
)
from mapping.circuits.paper_seeds import CONDENSED, TORUS, condensed_topology
from mapping.circuits.problem import Application, LinkChange, Machine, Topology, require_not_negative
from mapping.circuits.search import (
    EXCHANGE,
    GATHER,
    SCRATCH,
    SHAKE,
    Restarts,
    choose_ends,
    exchange_edges,
    load_search_kernels,
)
from mapping.circuits.solution import COMMUNICATION, Iteration, SearchResult, Solution, bottleneck
from mapping.deadline import Deadline
from registry.errors import InvalidValue
from registry.model import Floats
from registry.progress import Progress, silent

TRIALS = 1000
"""Default number of changes of links to try."""
AGAIN = 100
"""Number of trials without gain after which the search goes on from the best in another way."""
CONDENSE = "condense"
WAYS = (EXCHANGE, GATHER, CONDENSE, SHAKE, SCRATCH)
"""Ways in which it goes on, in turns. `CONDENSE` makes a topology of the condensed graph of the present
partition; the paper condenses the partition of METIS only."""
WORSE = 0.05
"""Largest accepted relative loss of throughput at the start; it falls to 0 at the end."""
ROUNDING = 1e-9
"""Relative distance from an upper bound at which a throughput counts as having reached it."""
BEST_SEEDS = (CONDENSED, TORUS)
"""Default seed topologies of `search_from_seeds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """Parameters of the local search.

    Raises:
        InvalidValue: A parameter is out of range.
    """

    trials: int = TRIALS
    """Number of changes of links to try, >= 0."""
    seed: int = 0
    seconds: float | None = None
    """As in `mapping.circuits.paper.LoopOptions`."""
    expansion: str = HIGHEST
    """Order in which graphs are coarsened for partitions from scratch: the ``highest`` expansion first, or
    the ``lowest`` as in the paper, by which the heaviest vertices grow to hubs that no partition balances."""

    def __post_init__(self) -> None:
        require_not_negative(trials=self.trials, seed=self.seed, seconds=self.seconds)


DEFAULTS = TrialOptions()


def search_from_seeds(
    application: Application,
    machine: Machine,
    options: TrialOptions = DEFAULTS,
    *,
    seed_topologies: tuple[str | Topology, ...] = BEST_SEEDS,
    progress: Progress = silent,
) -> SearchResult:
    """Run the loop of the paper from each seed topology, then `improve` the best result.

    After an interrupt the best result so far is returned, marked incomplete; an interrupt before the first
    result is raised.

    Args:
        options: Half of the seconds goes to the loops, in equal parts.

    Raises:
        InvalidValue, UnknownName: As of `mapping.circuits.paper.co_optimise`; or there is no seed topology.
    """
    if not seed_topologies:
        raise InvalidValue("seed_topologies", "are none")
    (load_search_kernels if options.trials > 0 else load_kernels)(progress)
    deadline, most = Deadline(seconds=options.seconds), _ceiling(application, machine)
    share = None if options.seconds is None else options.seconds / 2 / len(seed_topologies)
    best: SearchResult | None = None
    with deadline.interruptible():
        for start in seed_topologies:
            loop = LoopOptions(
                seed_topology=start, seed=options.seed, seconds=share, expansion=options.expansion
            )
            found = co_optimise(application, machine, loop, progress=progress)
            if best is None or found.throughput > best.throughput:
                best = found
            if not found.complete:
                return replace(best, complete=False)
            if best.throughput >= most:
                return best
    if best is None:
        raise KeyboardInterrupt
    if deadline.interrupted:
        return replace(best, complete=False)
    options = replace(options, seconds=deadline.time_until(1.0).seconds)
    return improve(application, machine, best, options, progress=progress)


def improve(
    application: Application,
    machine: Machine,
    start: SearchResult,
    options: TrialOptions = DEFAULTS,
    *,
    pinned: bool = False,
    progress: Progress = silent,
) -> SearchResult:
    """Change links while keeping the partition, as long as that helps; never worse than `start`.

    The search ends early if nothing can be better by `mapping.circuits.bounds`. Gains are appended to
    the trail as iterations; their links are compared with the topology that the trial changed. After an
    interrupt the best result so far is returned, marked incomplete.

    Args:
        start: A result for this application on this machine.
        pinned: Vertices stay on their nodes: only links and routes change.

    Raises:
        UnknownName: The expansion is unknown.
    """
    compiling = Deadline()
    with compiling.interruptible():
        (load_search_kernels if options.trials > 0 and not pinned else load_kernels)(progress)
        search = LocalSearch(application, machine, start, options, pinned=pinned)
        most = _ceiling(application, machine)
    if compiling.interrupted:
        return replace(start, complete=False)
    with search.deadline.interruptible():
        for trial in range(options.trials):
            if search.deadline.over or search.best.solution.throughput >= most:
                break
            if search.try_one(WORSE * (1 - trial / options.trials)):
                progress("trials", trial, options.trials, search.best.solution.throughput)
    return SearchResult(
        topology=search.best.topology,
        solution=search.best.solution,
        trail=tuple(search.trail),
        complete=start.complete and not search.deadline.interrupted,
    )


def _ceiling(application: Application, machine: Machine) -> float:
    """Return a throughput that no search exceeds, except by rounding."""
    return throughput_bound(application, machine, flows=0).throughput * (1 - ROUNDING)


class Candidate(NamedTuple):
    """A topology with partition and routes."""

    topology: Topology
    solution: Solution
    vector: Floats
    """float64[n + m]: Entries of the performance vector as seconds, in descending order: lower is better."""


class LocalSearch:
    """Changes of links, one after the other, and the candidate that is changed next.

    Args:
        start: The first candidate.
        pinned: Vertices stay on their nodes.

    Attributes:
        now, best: The candidate that the next trial changes, and the best so far.
        trail: The trail of `start`, and every gain since.
    """

    def __init__(
        self,
        application: Application,
        machine: Machine,
        start: SearchResult,
        options: TrialOptions,
        *,
        pinned: bool,
    ) -> None:
        self._application, self._machine = application, machine
        self._generator, self._pinned = np.random.default_rng(options.seed), pinned
        self.deadline = Deadline(seconds=options.seconds)
        self._restarts = Restarts(application, machine, self._generator, options.expansion)
        self._idle = 0 if pinned else AGAIN - 1  # the first trial is a restart
        self._way = 0
        self._before = start.trail[-1].seconds
        self.trail = list(start.trail)
        self.now = self.best = self._candidate(start.topology, start.solution)

    def try_one(self, worse: float) -> bool:
        """Change links, accept the result unless it is too much worse; True if it is the best so far.

        Args:
            worse: Largest accepted relative loss of throughput against the best.
        """
        self._idle += 1
        if self._idle % AGAIN == 0:
            before = self.best
            self.now = before if self._pinned else self._restart(before)
            old, new = before.topology, self.now.topology
            return self._keep_best(LinkChange(new, old.beyond(new), new.beyond(old)))
        now = self.now
        node = now.solution.node_of_vertex
        flows = node[self._application.source], node[self._application.target]
        ends = choose_ends(now.topology, now.solution, flows, self._generator)
        move = exchange_edges(now.topology, now.solution, self._machine, ends, self._generator)
        if move is None:
            return False
        trial = self._moved(now, move.topology)
        if _lower(trial.vector, now.vector) or trial.vector[0] <= self.best.vector[0] * (1 + worse):
            self.now = trial
            return self._keep_best(move)
        return False

    def _restart(self, best: Candidate) -> Candidate:
        """Return another candidate, made from the best in one of five ways, taken in turns."""
        topology, node, restarts = best.topology, best.solution.node_of_vertex, self._restarts
        way = WAYS[self._way]
        self._way = (self._way + 1) % len(WAYS)
        if way == CONDENSE:
            topology = condensed_topology(self._application, self._machine, node)
            return self._candidate(topology, restarts.refined(topology, node))
        if way == EXCHANGE and bottleneck(best.solution) != COMMUNICATION:
            way = SCRATCH
        return self._candidate(topology, restarts.restart(way, topology, node))

    def _keep_best(self, move: LinkChange) -> bool:
        """Keep the present candidate if it is the best; True if its throughput is the highest so far."""
        before = self.best
        if not _lower(self.now.vector, before.vector):
            return False
        throughput = self.now.solution.throughput
        gained = throughput > before.solution.throughput
        if gained:
            iteration = Iteration.of(
                self.trail[-1].number + 1,
                self.now.solution,
                removed=move.removed,
                inserted=move.inserted,
                seconds=self._before + self.deadline.elapsed,
            )
            self.trail.append(iteration)
            self._idle = 0
        if throughput >= before.solution.throughput:
            self.best = self.now
        return gained

    def _moved(self, candidate: Candidate, topology: Topology) -> Candidate:
        """Return the partition on another topology, with new routes for flows that lost a link, refined.

        If vertices are pinned, flows are only re-routed until that helps no more.
        """
        net, guest, solution = build_net(topology), self._restarts.guest, candidate.solution
        row = topology.rows_between(candidate.topology.pairs)
        length = np.diff(solution.route_ptr).astype(np.int32)
        longest = max(longest_route(topology), int(length.max(initial=0)))
        route = np.zeros((len(length), longest), np.int32)
        used = np.arange(longest) < length[:, None]
        route[used] = row[solution.route]
        cut = (used & (route < 0)).any(axis=1)
        length[cut] = 0
        route[cut] = 0
        load = np.zeros(topology.nodes + topology.links)
        state = PartitionState(node=solution.node_of_vertex.copy(), route=route, length=length, load=load)
        set_loads(net, guest, state)
        route_missing(net, guest, state, np.flatnonzero(cut))
        if self._pinned:
            search = new_search(topology.nodes, topology.links, longest)
            order = np.argsort(-guest.flow, kind="stable")
            while reroute_flows(net, guest, state, order, search):
                pass
        else:
            refine(net, guest, state)
        return self._candidate(topology, evaluate_state(self._application, topology, self._machine, state))

    def _candidate(self, topology: Topology, solution: Solution) -> Candidate:
        seconds = np.r_[
            solution.node_load / self._machine.compute_speed, solution.link_load / self._machine.link_speed
        ]
        return Candidate(topology, solution, np.sort(seconds)[::-1])


def _lower(one: Floats, other: Floats) -> bool:
    """Return True if a descending vector is the better one: lower at the first entry that differs."""
    size = min(len(one), len(other))
    differs = np.flatnonzero(one[:size] != other[:size])
    return bool(one[differs[0]] < other[differs[0]]) if len(differs) else False
