"""Our own search, from where the paper's loop ends: links are changed under the partition, which moves on.

The paper partitions and routes from scratch for each topology. Here the partition stays, flows whose links
are gone are routed anew, and the refinement of section 3.2.3 goes on from there: far more topologies are seen
in the same time. A topology that is a little worse is taken too, ever less so, and the best is kept. At the
begin, and wherever that leads nowhere for long, the search goes on from the best in another way
(`mapping.reconfigure.regrouping`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mapping.kernels.unsplit_routes import Guest, Net, Standing, new_search, relieve
from mapping.reconfigure.bounds import throughput_bound
from mapping.reconfigure.co_optimise import Iteration, Reconfiguration, reconfigure
from mapping.reconfigure.coarsening import HIGHEST, Level, coarsen
from mapping.reconfigure.loading import load_kernels
from mapping.reconfigure.place_and_route import place_and_route
from mapping.reconfigure.problem import Application, Machine
from mapping.reconfigure.refinement import Scale, guest_of, refine
from mapping.reconfigure.regrouping import condensed_again, exchanged, gathered, shaken
from mapping.reconfigure.relinking import Relinked, relinked, wanted_ends
from mapping.reconfigure.seeds import CONDENSED, TORUS
from mapping.reconfigure.solution import Solution, evaluate
from mapping.reconfigure.swaps import COMMUNICATION, bottleneck
from mapping.reconfigure.topology import Topology
from mapping.reconfigure.unsplit import (
    flat_routes,
    longest_route,
    net_of,
    route_anew,
    route_unsplit,
    set_loads,
)
from registry.errors import InvalidValue
from registry.model import Floats, Ints
from registry.progress import Progress, silent

TRIALS = 1000
"""Changes of links that are tried, unless told."""
WORSE = 0.05
"""How much worse, relatively, a topology may be that is taken at the begin; nothing at the end."""
AGAIN = 100
"""After so many trials without gain the search goes on from the best in another way."""
MOST_GATHERED = 1000
"""Vertices up to which all are put on one node to begin anew: of more, each spreads too slowly."""
ROUNDING = 1e-9
"""How far below an upper bound, relatively, a throughput counts as having reached it."""
BEST_SEEDS = (CONDENSED, TORUS)
"""Seed topologies that `best_of` begins with, unless told."""


class _Held(NamedTuple):
    """A topology with partition and routes."""

    topology: Topology
    solution: Solution
    vector: Floats
    """Entries of the performance vector in seconds, falling: lower is better."""


def best_of(
    application: Application,
    machine: Machine,
    *,
    seed_topologies: tuple[str | Topology, ...] = BEST_SEEDS,
    trials: int = TRIALS,
    seed: int = 0,
    seconds: float | None = None,
    expansion: str = HIGHEST,
    progress: Progress = silent,
) -> Reconfiguration:
    """The paper's loop from each of some seed topologies, and `improve` on the best of them.

    Parameters
    ----------
    seconds : float, optional
        In all, about: half for the loops, in equal parts. The compilation of kernels does not count.
    expansion : str
        Order in which graphs are coarsened: the highest expansion first, or the ``lowest`` as the paper has
        it. With that the heaviest vertices grow to hubs, which no partition balances.

    Raises
    ------
    InvalidValue, UnknownName
        As `mapping.reconfigure.co_optimise.reconfigure`.
    """
    if not seed_topologies:
        raise InvalidValue("best_of.seed_topologies", "are none")
    load_kernels(progress, searches=trials > 0)
    begin = time.perf_counter()
    most = _ceiling(application, machine)
    share = None if seconds is None else seconds / 2 / len(seed_topologies)
    best: Reconfiguration | None = None
    for start in seed_topologies:
        found = reconfigure(
            application,
            machine,
            seed_topology=start,
            seed=seed,
            seconds=share,
            expansion=expansion,
            progress=progress,
        )
        if best is None or found.throughput > best.throughput:
            best = found
        if not found.complete:
            return replace(best, complete=False)
        if best.throughput >= most:
            return best
    assert best is not None
    left = None if seconds is None else max(seconds - (time.perf_counter() - begin), 0.0)
    return improve(
        application,
        machine,
        best,
        trials=trials,
        seed=seed,
        seconds=left,
        expansion=expansion,
        progress=progress,
    )


def improve(
    application: Application,
    machine: Machine,
    found: Reconfiguration,
    *,
    pinned: bool = False,
    trials: int = TRIALS,
    seed: int = 0,
    seconds: float | None = None,
    expansion: str = HIGHEST,
    progress: Progress = silent,
) -> Reconfiguration:
    """Change links under the present partition for as long as that helps; never worse than what was found.

    The search ends early where nothing can be better, by `mapping.reconfigure.bounds`. Gains are added to
    the trail as iterations: what differs is told against the topology that was held then. An interrupt ends
    the search with the best so far, marked incomplete.

    Parameters
    ----------
    found : Reconfiguration
        Of this application on this machine.
    pinned : bool
        Vertices stay on their nodes: links and routes alone change.
    trials : int
        Changes of links to try, >= 0.
    seed : int
        >= 0; the same seed and trials give the same bytes, unless `seconds` end the search.
    seconds : float, optional
        Try no more after that.
    expansion : str
        Of partitions from scratch: `mapping.reconfigure.coarsening.coarsen`.

    Raises
    ------
    InvalidValue, UnknownName
    """
    if trials < 0:
        raise InvalidValue("improve.trials", f"is {trials}, must not be negative")
    if seed < 0:
        raise InvalidValue("improve.seed", f"is {seed}, must not be negative")
    load_kernels(progress, searches=trials > 0 and not pinned)
    search = _Search(application, machine, found, seed, pinned, expansion)
    complete, most = found.complete, _ceiling(application, machine)
    try:
        for trial in range(trials):
            late = seconds is not None and search.elapsed >= seconds
            if late or search.best.solution.throughput >= most:
                break
            if search.try_one(WORSE * (1 - trial / trials)):
                progress("trials", trial, trials, search.best.solution.throughput)
    except KeyboardInterrupt:
        complete = False
    best = search.best
    return Reconfiguration(
        topology=best.topology, solution=best.solution, trail=tuple(search.trail), complete=complete
    )


def _ceiling(application: Application, machine: Machine) -> float:
    """A throughput that no search exceeds, but for rounding."""
    return throughput_bound(application, machine, flows=0).throughput * (1 - ROUNDING)


class _Search:
    """The state between trials."""

    def __init__(
        self,
        application: Application,
        machine: Machine,
        found: Reconfiguration,
        seed: int,
        pinned: bool,
        expansion: str,
    ) -> None:
        self._application, self._machine = application, machine
        self._generator, self._pinned = np.random.default_rng(seed), pinned
        self._since = time.perf_counter()
        self._levels: tuple[Level, ...] = coarsen(application, machine.nodes, expansion=expansion)
        self._scale = Scale.of(application, machine)
        self._guest: Guest = guest_of(self._levels[0], self._scale)
        self._idle = 0 if pinned else AGAIN - 1  # the first trial begins anew
        self._begun = 0
        self._before = found.trail[-1].seconds
        self.trail = list(found.trail)
        self.now = self.best = self._held(found.topology, found.solution)

    @property
    def elapsed(self) -> float:
        """Seconds since the begin."""
        return time.perf_counter() - self._since

    def try_one(self, worse: float) -> bool:
        """Change links, and hold that unless it is worse than the best by more; whether it is better."""
        self._idle += 1
        if self._idle % AGAIN == 0:
            held = self.best
            self.now = held if self._pinned else self._anew(held)
            old, new = held.topology, self.now.topology
            return self._keep_best(Relinked(new, old.beyond(new), new.beyond(old)))
        now = self.now
        flows = (
            now.solution.node_of_vertex[self._application.source],
            now.solution.node_of_vertex[self._application.target],
        )
        ends = wanted_ends(now.topology, now.solution, flows, self._generator)
        move = relinked(now.topology, now.solution, self._machine, ends, self._generator)
        if move is None:
            return False
        trial = self._moved(now, move.topology)
        if _lower(trial.vector, now.vector) or trial.vector[0] <= self.best.vector[0] * (1 + worse):
            self.now = trial
            return self._keep_best(move)
        return False

    def _anew(self, held: _Held) -> _Held:
        """Go on from what is held in one of five ways, each in its turn."""
        way, node = self._begun % 5, held.solution.node_of_vertex
        self._begun += 1
        if way == 0 and bottleneck(held.solution) == COMMUNICATION:
            seed = int(self._generator.integers(1 << 31))
            return self._routed(held.topology, exchanged(self._application, held.topology, node, seed=seed))
        if way == 1 and self._application.vertices <= MOST_GATHERED:
            return self._routed(held.topology, gathered(held.topology, node, self._generator))
        if way == 2:
            return self._routed(condensed_again(self._application, self._machine, node), node)
        if way == 3:
            return self._routed(held.topology, shaken(held.topology, node, self._generator))
        return self._from_scratch(held.topology)

    def _keep_best(self, move: Relinked) -> bool:
        """Keep what is held now if it is the best; whether its throughput is."""
        before = self.best
        if not _lower(self.now.vector, before.vector):
            return False
        gained = self.now.solution.throughput > before.solution.throughput
        if gained:
            self._write(move)
            self._idle = 0
        if self.now.solution.throughput >= before.solution.throughput:
            self.best = self.now
        return gained

    def _moved(self, held: _Held, topology: Topology) -> _Held:
        """The partition on another topology: routes that lost a link are new, then all is refined."""
        net, guest = net_of(topology), self._guest
        old, nodes = held.topology, topology.nodes
        keys = topology.pairs @ (nodes, 1)
        place = np.searchsorted(keys, old.pairs @ (nodes, 1))
        stays = np.isin(old.pairs @ (nodes, 1), keys)
        row = np.where(stays, place, -1)
        length = np.diff(held.solution.route_ptr).astype(np.int32)
        longest = max(longest_route(topology), int(length.max(initial=0)))
        route = np.zeros((len(length), longest), np.int32)
        used = np.arange(longest) < length[:, None]
        route[used] = row[held.solution.route]
        torn = (used & (route < 0)).any(axis=1)
        length[torn] = 0
        route[torn] = 0
        node = held.solution.node_of_vertex.copy()
        standing = Standing(node=node, route=route, length=length, load=np.zeros(nodes + topology.links))
        set_loads(net, guest, standing)
        route_anew(net, guest, standing, np.flatnonzero(torn))
        self._settle(net, standing)
        return self._standing(topology, standing)

    def _settle(self, net: Net, standing: Standing) -> None:
        """Move vertices and re-route, or re-route alone where vertices stay, until nothing helps."""
        if not self._pinned:
            refine(net, self._guest, standing)
            return
        search = new_search(len(net.first) - 1, len(net.ends), standing.route.shape[1])
        order = np.argsort(-self._guest.flow, kind="stable")
        while relieve(net, self._guest, standing, order, search):
            pass

    def _routed(self, topology: Topology, node: Ints) -> _Held:
        """Vertices as they are, on a topology: all is routed, then refined."""
        net = net_of(topology)
        standing = route_unsplit(net, self._guest, node.copy(), longest_route(topology))
        self._settle(net, standing)
        return self._standing(topology, standing)

    def _from_scratch(self, topology: Topology) -> _Held:
        """A partition and routes from scratch, with another seed of METIS."""
        found = place_and_route(
            self._application, topology, self._machine, self._generator, levels=self._levels
        )
        return self._held(topology, found)

    def _standing(self, topology: Topology, standing: Standing) -> _Held:
        route_ptr = np.r_[0, np.cumsum(standing.length, dtype=np.int64)].astype(np.int64)
        solution = evaluate(
            self._application, topology, self._machine, standing.node, route_ptr, flat_routes(standing)
        )
        return self._held(topology, solution)

    def _held(self, topology: Topology, solution: Solution) -> _Held:
        seconds = np.r_[
            solution.node_load / self._machine.compute_speed, solution.link_load / self._machine.link_speed
        ]
        return _Held(topology, solution, np.sort(seconds)[::-1])

    def _write(self, move: Relinked) -> None:
        solution = self.now.solution
        self.trail.append(
            Iteration(
                number=self.trail[-1].number + 1,
                removed=move.removed,
                inserted=move.inserted,
                links=move.topology.links,
                bottleneck=bottleneck(solution),
                throughput=solution.throughput,
                compute_throughput=solution.compute_throughput,
                communication_throughput=solution.communication_throughput,
                best=solution.throughput,
                seconds=self._before + self.elapsed,
            )
        )


def _lower(one: Floats, other: Floats) -> bool:
    """Whether a falling vector is the better one: lower at the first entry that differs."""
    size = min(len(one), len(other))
    differs = np.flatnonzero(one[:size] != other[:size])
    return bool(one[differs[0]] < other[differs[0]]) if len(differs) else False
