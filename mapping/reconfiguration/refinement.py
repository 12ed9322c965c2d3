"""Refinement by the performance vector (section 3.2.3)."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from mapping.reconfiguration.coarsening import Level
from mapping.reconfiguration.kernels import local_update
from mapping.reconfiguration.kernels.trial_steps import new_bench
from mapping.reconfiguration.kernels.unsplit_routes import Guest, Net, Standing, project_routes
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.unsplit import set_loads
from registry.errors import InvalidValue
from registry.model import Floats

DEPTH = 0
"""Depth unless told: `BOUND` in graphs of more than `WHOLE` edges, without bound in others."""
BOUND, WHOLE = 4, 600
THOROUGH = 56_000
"""Edges times links up to which a moved vertex's flows are re-routed, unless told."""
_NO_END = 1 << 62


class Scale(NamedTuple):
    """Seconds that weights take on nodes and links, on a common grid.

    An entry S_comp / w_v of the performance vector is compared by w_v * S_comm, and S_comm / w_e by
    w_e * S_comp: the same order, reversed. All are rounded to whole multiples of a power of two, so small
    that the sum of all weights is below 2^52 of them. So loads add up without rounding whatever the order, no
    step looks like an improvement that is none, and steps that are equal compare equal. Where weights and
    speeds are whole numbers, and not beyond all measure, nothing is rounded.

    Attributes
    ----------
    vertex, flow : float
        Factors of vertex weights and of edge weights.
    unit : float
        The grid.
    """

    vertex: float
    flow: float
    unit: float

    @classmethod
    def of(cls, application: Application, machine: Machine) -> Self:
        """The scale for an application on a machine, and for all graphs that it is contracted to."""
        fold = math.frexp(max(machine.link_speed, machine.compute_speed))[1]
        vertex, flow = math.ldexp(machine.link_speed, -fold), math.ldexp(machine.compute_speed, -fold)
        total = max(
            float(application.vertex_weight.sum()) * vertex, float(application.weight.sum()) * flow, 0.0
        )
        return cls(vertex, flow, math.ldexp(1.0, math.frexp(total)[1] - 52) if total > 0 else 1.0)

    def on_grid(self, weight: Floats, factor: float) -> Floats:
        """float64[k]: seconds of weights."""
        return np.rint(weight * (factor / self.unit)) * self.unit


def guest_of(level: Level, scale: Scale) -> Guest:
    """A graph as kernels take it: weights in seconds on the grid, edges of each vertex by falling weight."""
    vertices, edges = len(level.vertex_weight), len(level.weight)
    flow = scale.on_grid(level.weight, scale.flow)
    ends = np.concatenate((level.source, level.target))
    row = np.tile(np.arange(edges, dtype=np.int32), 2)
    order = np.lexsort((row, -flow[row], ends))
    return Guest(
        vertex=scale.on_grid(level.vertex_weight, scale.vertex),
        source=level.source.astype(np.int32),
        target=level.target.astype(np.int32),
        flow=flow,
        first=np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=vertices)))).astype(np.int64),
        edge=row[order],
    )


def projected(net: Net, guest: Guest, coarse: Standing, level: Level) -> Standing:
    """The partition and routes of a coarser graph on the next finer one (section 3.2.3).

    Each vertex is on the node of the vertex that it was contracted to, and each edge takes the route of the
    edge that it is part of.

    Parameters
    ----------
    guest : Guest
        The finer graph.
    level : Level
        The coarser one.
    """
    fine = Standing(
        node=coarse.node[level.vertex],
        route=np.zeros((len(guest.flow), coarse.route.shape[1]), np.int32),
        length=np.zeros(len(guest.flow), np.int32),
        load=np.zeros(len(coarse.load)),
    )
    project_routes(coarse, level.edge, level.backwards, fine)
    set_loads(net, guest, fine)
    return fine


def refine(
    net: Net,
    guest: Guest,
    standing: Standing,
    *,
    depth: int | None = DEPTH,
    thorough: int | None = None,
    steps: int | None = None,
) -> int:
    """Move vertices and re-route flows, the best step each time, until none is better (section 3.2.3).

    Steps are (a) each vertex to each neighbour of its node in the topology, and (b) each flow to its
    minimum-congestion path. The one that leads to the best performance vector of all is made, of equals (a)
    before (b) and the lower row first, as long as that vector is better than the present one.

    What becomes of the routes of a moved vertex the paper does not say. Where the graph has at most
    `thorough` edges, all of its flows are taken off and routed anew, the heaviest first, each along its
    minimum-congestion path. In larger graphs their routes grow by the link that the vertex moves along, or
    are cut at its new node where they lead through that; steps of kind (b) straighten them.

    Parameters
    ----------
    standing : Standing
        Changed in place.
    depth : int, optional
        How deep the local search is (the parameter of section 4.4). None is the paper's rule: the best of all
        steps. With a number from 1, only steps that lower first one of so many worst entries of the vector
        (those equal to the last of them included) are looked at. The steps made are the same ones in the same
        order; but the refinement ends as soon as the best step lowers none of these, though it might improve
        the rest. 0, the default, is `BOUND` in graphs of more than `WHOLE` edges, and None in others.
    thorough : int, optional
        As above; unless told, so many that edges times links are at most `THOROUGH`.
    steps : int, optional
        End after so many.

    Returns
    -------
    int
        Steps made.

    Raises
    ------
    InvalidValue
        `depth` or `steps` below 0.
    """
    if depth is not None and depth < 0:
        raise InvalidValue("refine.depth", f"is {depth}, must not be negative")
    if steps is not None and steps < 0:
        raise InvalidValue("refine.steps", f"is {steps}, must not be negative")
    few = THOROUGH // max(len(net.ends), 1) if thorough is None else thorough
    bench = new_bench(net, guest, standing, len(guest.flow) <= few)
    if depth == DEPTH:
        depth = None if len(guest.flow) <= WHOLE else BOUND
    entries = len(standing.load) if depth is None else depth
    return int(local_update.refine(bench, entries, _NO_END if steps is None else steps))
