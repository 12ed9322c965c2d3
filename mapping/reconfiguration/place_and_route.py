"""Partition and routes of an application for a given topology: section 3.2 whole.

A multilevel scheme: the application is coarsened (3.2.1, `mapping.reconfiguration.coarsening`), the coarsest
graph is partitioned by bisecting it together with the topology and its flows are routed (3.2.2,
`mapping.reconfiguration.dual_bisection` and `mapping.reconfiguration.unsplit`), and that is projected back
from graph to graph and refined on each (3.2.3, `mapping.reconfiguration.refinement`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mapping.reconfiguration.coarsening import LOWEST, Level, coarsen
from mapping.reconfiguration.dual_bisection import dual_bisection
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.refinement import DEPTH, Scale, guest_of, projected, refine
from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.topology import Topology
from mapping.reconfiguration.unsplit import evaluated, longest_route, net_of, route_unsplit


def place_and_route(
    application: Application,
    topology: Topology,
    machine: Machine,
    generator: np.random.Generator,
    *,
    depth: int | None = DEPTH,
    thorough: int | None = None,
    steps: int | None = None,
    expansion: str = LOWEST,
    levels: Sequence[Level] | None = None,
) -> Solution:
    """Partition an application for a topology and route its edges, from scratch (section 3.2).

    The topology's links count as equal. Nodes may stay empty where that is better.

    Parameters
    ----------
    topology : Topology
        Connected, with the nodes of `machine`; whether it is within the machine's limits does not matter.
    generator : numpy.random.Generator
        Gives METIS its seed; the same state gives the same bytes.
    depth, thorough, steps
        Of `mapping.reconfiguration.refinement.refine`, on each graph; ``depth=None`` is the paper's
        rule, without bound on graphs of any size.
    expansion : str
        Of `mapping.reconfiguration.coarsening.coarsen`.
    levels : sequence of Level, optional
        What `coarsen` made of the same application for as many nodes, which many topologies may share;
        `expansion` is not looked at then.

    Raises
    ------
    InvalidValue
        Another number of nodes than the machine's, a topology that does not join the nodes of an edge, or
        `depth` or `steps` below 0.
    UnknownName
        For `expansion`.
    """
    graphs = levels if levels is not None else coarsen(application, topology.nodes, expansion=expansion)
    scale, net = Scale.of(application, machine), net_of(topology)
    coarsest = graphs[-1]
    guest = guest_of(coarsest, scale)
    node = dual_bisection(coarsest, topology, generator)
    standing = route_unsplit(net, guest, node, longest_route(topology))
    refine(net, guest, standing, depth=depth, thorough=thorough, steps=steps)
    for fine, coarse in zip(reversed(graphs[:-1]), reversed(graphs[1:]), strict=True):
        guest = guest_of(fine, scale)
        standing = projected(net, guest, standing, coarse)
        refine(net, guest, standing, depth=depth, thorough=thorough, steps=steps)
    return evaluated(application, topology, machine, standing)
