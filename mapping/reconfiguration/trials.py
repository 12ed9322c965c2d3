"""Trials of our own search: links are changed, and the partition and its routes follow.

A trial keeps the partition that is held, routes anew the flows whose links are gone, and refines that. After
`AGAIN` trials without gain, one goes on from the best in another way (`mapping.reconfiguration.regrouping`).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from mapping.reconfiguration.co_optimise import Iteration, Reconfiguration
from mapping.reconfiguration.coarsening import Level, coarsen
from mapping.reconfiguration.kernels.unsplit_routes import Guest, Net, Standing, new_search, relieve
from mapping.reconfiguration.place_and_route import place_and_route
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.refinement import Scale, guest_of, refine
from mapping.reconfiguration.regrouping import MOST_GATHERED, condensed_again, exchanged, gathered, shaken
from mapping.reconfiguration.relinking import Relinked, relinked, wanted_ends
from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.swaps import COMMUNICATION, bottleneck
from mapping.reconfiguration.topology import Topology
from mapping.reconfiguration.unsplit import (
    evaluated,
    longest_route,
    net_of,
    route_anew,
    route_unsplit,
    set_loads,
)
from registry.model import Floats, Ints

AGAIN = 100
"""After so many trials without gain the search goes on from the best in another way."""


class Held(NamedTuple):
    """A topology with partition and routes."""

    topology: Topology
    solution: Solution
    vector: Floats
    """Entries of the performance vector in seconds, falling: lower is better."""


class Trials:
    """Changes of links, one after the other, and what is held between them.

    Attributes
    ----------
    now, best : Held
        What trials go on from, and the best so far.
    trail : list of Iteration
        That of what was found before, and every gain since.

    Parameters
    ----------
    found : Reconfiguration
        Where to begin.
    seed : int
        >= 0.
    pinned : bool
        Vertices stay on their nodes.
    expansion : str
        Of partitions from scratch: `mapping.reconfiguration.coarsening.coarsen`.

    Raises
    ------
    UnknownName
        For `expansion`.
    """

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
        self._guest: Guest = guest_of(self._levels[0], Scale.of(application, machine))
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
        """Change links, and hold that unless it is worse than the best by more; whether it is better.

        Parameters
        ----------
        worse : float
            Relatively.
        """
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

    def _anew(self, held: Held) -> Held:
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

    def _moved(self, held: Held, topology: Topology) -> Held:
        """The partition on another topology: routes that lost a link are new, then all is refined."""
        net, guest = net_of(topology), self._guest
        row = topology.rows_between(held.topology.pairs)
        length = np.diff(held.solution.route_ptr).astype(np.int32)
        longest = max(longest_route(topology), int(length.max(initial=0)))
        route = np.zeros((len(length), longest), np.int32)
        used = np.arange(longest) < length[:, None]
        route[used] = row[held.solution.route]
        torn = (used & (route < 0)).any(axis=1)
        length[torn] = 0
        route[torn] = 0
        node, load = held.solution.node_of_vertex.copy(), np.zeros(topology.nodes + topology.links)
        standing = Standing(node=node, route=route, length=length, load=load)
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

    def _routed(self, topology: Topology, node: Ints) -> Held:
        """Vertices as they are, on a topology: all is routed, then refined."""
        net = net_of(topology)
        standing = route_unsplit(net, self._guest, node.copy(), longest_route(topology))
        self._settle(net, standing)
        return self._standing(topology, standing)

    def _from_scratch(self, topology: Topology) -> Held:
        """A partition and routes from scratch, with another seed of METIS."""
        found = place_and_route(
            self._application, topology, self._machine, self._generator, levels=self._levels
        )
        return self._held(topology, found)

    def _standing(self, topology: Topology, standing: Standing) -> Held:
        return self._held(topology, evaluated(self._application, topology, self._machine, standing))

    def _held(self, topology: Topology, solution: Solution) -> Held:
        seconds = np.r_[
            solution.node_load / self._machine.compute_speed, solution.link_load / self._machine.link_speed
        ]
        return Held(topology, solution, np.sort(seconds)[::-1])

    def _write(self, move: Relinked) -> None:
        self.trail.append(
            Iteration.of(
                self.trail[-1].number + 1,
                self.now.solution,
                removed=move.removed,
                inserted=move.inserted,
                seconds=self._before + self.elapsed,
            )
        )


def _lower(one: Floats, other: Floats) -> bool:
    """Whether a falling vector is the better one: lower at the first entry that differs."""
    size = min(len(one), len(other))
    differs = np.flatnonzero(one[:size] != other[:size])
    return bool(one[differs[0]] < other[differs[0]]) if len(differs) else False
