"""Have kernels compiled, or read from disk, before the clock of a search starts, and say so."""

from __future__ import annotations

from functools import cache

import numpy as np

from mapping.reconfiguration.place_and_route import place_and_route
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.regrouping import exchanged
from mapping.reconfiguration.topology import Topology
from mapping.reconfiguration.unsplit import least_congested_path
from registry.progress import Progress

LOADING = "loading kernels (compiled once, which takes half a minute)"
"""The phase that progress is told meanwhile."""
VERTICES = 120
"""More than a graph is coarsened to, so that the kernels of coarsening are there too."""


def load_kernels(progress: Progress, *, searches: bool = False) -> None:
    """Compile the kernels of this package, once a machine, or read them from disk, once a process.

    Progress is told `LOADING` where that is still to be done, and nothing otherwise.

    Parameters
    ----------
    searches : bool
        Those of the mapping engine too, which `mapping.reconfiguration.regrouping.exchanged` runs.
    """
    wanted = (_load, _load_searches) if searches else (_load,)
    for load in wanted:
        if load.cache_info().currsize == 0:
            progress(LOADING, 0)
            load()


@cache
def _load() -> None:
    """Run them all once."""
    application, topology = _small()
    machine = Machine(nodes=4, max_degree=2, max_edges=4, compute_speed=1.0, link_speed=1.0)
    solution = place_and_route(application, topology, machine, np.random.default_rng(0))
    least_congested_path(topology, solution.link_load, 0, 2, 1.0)


@cache
def _load_searches() -> None:
    application, topology = _small()
    exchanged(application, topology, np.arange(VERTICES, dtype=np.int32) % topology.nodes, steps=2)


def _small() -> tuple[Application, Topology]:
    """A chain of vertices, and a ring of four nodes."""
    vertex = np.arange(VERTICES)
    chain = Application.from_edges(vertex[:-1], vertex[1:], np.ones(VERTICES - 1))
    return chain, Topology.of(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
