"""Partition and routes for circuits that stay: what a topology could give, sought as hard as others are.

A search for circuits tries many partitions. Were the present circuits given the first one alone, a plan would
seem to gain what a better partition gives without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mapping.reconfiguration.coarsening import EXPANSIONS, HIGHEST, coarsen
from mapping.reconfiguration.place_and_route import place_and_route
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.refinement import Scale, guest_of, refine
from mapping.reconfiguration.regrouping import MOST_GATHERED, exchanged, gathered, shaken
from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.topology import Topology
from mapping.reconfiguration.unsplit import evaluated, longest_route, net_of, route_unsplit
from registry.model import Ints

ROUNDS = 10
"""Times that each way of going on is tried, unless told."""

Way = Callable[[Ints], Solution]
"""From the best partition so far to another solution."""


class Settled(NamedTuple):
    """The best partition and routes that were found; `complete` is False after an interrupt."""

    solution: Solution
    complete: bool


def settled(
    application: Application,
    machine: Machine,
    topology: Topology,
    *,
    partitions: Sequence[Ints] = (),
    rounds: int = ROUNDS,
    seed: int = 0,
    seconds: float | None = None,
) -> Settled:
    """Partition and routes of high throughput on a topology that stays as it is.

    Tried are partitions from scratch, of the lowest and of the highest expansion first; those given; and
    then, in turn, from the best: what is on nodes changes places, all vertices begin on one node, some
    move to a neighbour, and from scratch with another seed of METIS. All are refined.

    Parameters
    ----------
    topology : Topology
        Connected, with the machine's nodes.
    partitions : sequence of int32[v]
        Node of each vertex.
    rounds : int
        Times that each of the four ways is tried.
    seed : int
        The same one gives the same bytes, unless `seconds` end the search.
    seconds : float, optional
        Try no more after that.

    Raises
    ------
    KeyboardInterrupt
        Before there is any solution; later the best so far is returned.
    """
    begun = time.perf_counter()
    ways = _Ways(application, machine, topology, seed)
    first, *scratch = (partial(ways.from_scratch, expansion=one) for one in EXPANSIONS)
    given = [partial(ways.from_partition, start=node) for node in partitions]
    more = (ways.exchanged, ways.gathered, ways.shaken, partial(ways.from_scratch, expansion=HIGHEST))
    best = first(np.zeros(0, np.int32))
    try:
        for way in (*scratch, *given, *rounds * more):
            if seconds is not None and time.perf_counter() - begun >= seconds:
                break
            found = way(best.node_of_vertex)
            best = found if found.throughput > best.throughput else best
    except KeyboardInterrupt:
        return Settled(best, False)
    return Settled(best, True)


class _Ways:
    """Ways to another solution on the same topology; each is a `Way` once its options are given."""

    def __init__(self, application: Application, machine: Machine, topology: Topology, seed: int) -> None:
        self._application, self._machine, self._topology = application, machine, topology
        self._generator = np.random.default_rng(seed)
        self._net, self._longest = net_of(topology), longest_route(topology)
        self._guest = guest_of(coarsen(application, topology.nodes)[0], Scale.of(application, machine))

    def from_scratch(self, node: Ints, expansion: str) -> Solution:
        """Section 3.2, whatever the partition was."""
        return place_and_route(
            self._application, self._topology, self._machine, self._generator, expansion=expansion
        )

    def from_partition(self, node: Ints, start: Ints) -> Solution:
        """A given partition, refined."""
        standing = route_unsplit(self._net, self._guest, start.copy(), self._longest)
        refine(self._net, self._guest, standing)
        return evaluated(self._application, self._topology, self._machine, standing)

    def exchanged(self, node: Ints) -> Solution:
        """What is on nodes changes places, by the mapping engine's search."""
        seed = int(self._generator.integers(1 << 31))
        return self.from_partition(node, exchanged(self._application, self._topology, node, seed=seed))

    def gathered(self, node: Ints) -> Solution:
        """All on one node; of many vertices, from scratch."""
        if self._application.vertices > MOST_GATHERED:
            return self.from_scratch(node, HIGHEST)
        return self.from_partition(node, gathered(self._topology, node, self._generator))

    def shaken(self, node: Ints) -> Solution:
        """Some vertices on a neighbouring node."""
        return self.from_partition(node, shaken(self._topology, node, self._generator))
