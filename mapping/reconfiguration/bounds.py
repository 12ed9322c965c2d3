"""Certified upper bounds on the throughput of any topology, partition and routing, each by name.

The paper compares with a loose one, perfect balance on links without limit (section 4.4). Others here use
that a vertex is on one node, that a flow is on one path, and that ports and links are few. An argument that
shows that no throughput T is possible shows it for all above: T is lowered as far as it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mapping.reconfiguration.clusters import Clusters, clusters, least_leaving
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.solution import throughput_under
from registry.model import Floats

FINE, COARSE = 1e-6, 1e-2
"""Relative step at which the search for the lowest provable T ends; coarse where it takes flows."""
SIZES = 64
"""Sizes of things, about, that are tried as a in the bound on bin packing."""
FLOWS = 400
"""Clusters, unless told, around which least cuts are sought for a bound."""
WORK = 200_000
"""Such clusters times all clusters: a flow takes longer the larger the graph is, so that fewer are sought."""
BALANCE, HEAVIEST_VERTEX, PIGEONHOLE = "balance", "heaviest-vertex", "pigeonhole"
HEAVY_EDGES, PACKING, PORTS, LINKS = "heavy-edges", "packing", "ports", "links"
NAMES = (BALANCE, HEAVIEST_VERTEX, PIGEONHOLE, HEAVY_EDGES, PACKING, PORTS, LINKS)
"""Of all arguments."""

Refutes = Callable[[Clusters], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperBound:
    """A throughput that nothing can exceed, and the argument that proves it.

    Attributes
    ----------
    name : str
        One of `NAMES`.
    throughput : float
        Elements of output a unit of time; inf where nothing computes.
    proof : str
        The argument in a sentence.
    """

    name: str
    throughput: float
    proof: str


def throughput_bound(application: Application, machine: Machine, *, flows: int = FLOWS) -> UpperBound:
    """The lowest of `throughput_bounds`; of equals the first."""
    return min(throughput_bounds(application, machine, flows=flows), key=lambda bound: bound.throughput)


def loose_bound(application: Application, machine: Machine) -> float:
    """Throughput of a perfect balance where links carry anything: the paper's r_looseub is relative to it."""
    return throughput_under(machine.compute_speed * machine.nodes, float(application.vertex_weight.sum()))


def throughput_bounds(
    application: Application, machine: Machine, *, flows: int = FLOWS
) -> tuple[UpperBound, ...]:
    """Upper bounds on the throughput, in the order of `NAMES`.

    ``balance``, ``heaviest-vertex`` and ``pigeonhole`` are always there; another only where it proves less
    than all before it.

    Parameters
    ----------
    flows : int
        Clusters around which least cuts are sought, by each of ``ports`` and ``links``; 0 leaves them out. In
        graphs of more than `WORK` / `flows` clusters there are fewer.
    """
    proved = _of_vertices(application, machine)
    alone = throughput_under(machine.compute_speed, float(application.vertex_weight.sum()))
    for name, refutes, step, words in _arguments(machine, flows):
        now = min(bound.throughput for bound in proved)
        lowest = _lowest(application, machine, refutes, alone, now, step)
        if lowest < now * (1 - step):
            proved.append(UpperBound(name=name, throughput=lowest, proof=words))
    return tuple(proved)


def _of_vertices(application: Application, machine: Machine) -> list[UpperBound]:
    """Bounds that weights of vertices alone give."""
    falling = np.sort(application.vertex_weight)[::-1]
    speed, nodes = machine.compute_speed, machine.nodes
    shared, at = _pigeonhole(falling, nodes)
    return [
        UpperBound(
            name=BALANCE,
            throughput=loose_bound(application, machine),
            proof=f"{nodes} nodes compute a weight of {falling.sum():.6g} in all",
        ),
        UpperBound(
            name=HEAVIEST_VERTEX,
            throughput=throughput_under(speed, float(falling[0])),
            proof=f"one node computes the heaviest vertex, of weight {falling[0]:.6g}",
        ),
        UpperBound(
            name=PIGEONHOLE,
            throughput=throughput_under(speed, shared),
            proof=f"of the {nodes * at + 1} heaviest vertices {at + 1} share a node: {shared:.6g} at least",
        ),
    ]


def _arguments(machine: Machine, flows: int) -> list[tuple[str, Refutes, float, str]]:
    """Name, test, step of the search and words of the arguments about clusters."""
    found: list[tuple[str, Refutes, float, str]] = [
        (
            HEAVY_EDGES,
            lambda at: bool(at.weight.max() > at.node_limit),
            FINE,
            "edges that no link could carry hold together more than a node could compute",
        ),
        (
            PACKING,
            lambda at: _needs_more(at.weight, at.node_limit, machine.nodes),
            FINE,
            "what edges that no link could carry hold together does not fit on the nodes",
        ),
    ]
    if flows > 0:
        found += [
            (
                PORTS,
                lambda at: _ports(at, machine, flows),
                COARSE,
                "a node with some cluster sends more than its ports could carry, whatever else is on it",
            ),
            (
                LINKS,
                lambda at: _links(at, machine, flows),
                COARSE,
                "what leaves the nodes in all is more than the switch's links could carry",
            ),
        ]
    return found


def _lowest(
    application: Application, machine: Machine, refutes: Refutes, low: float, high: float, step: float
) -> float:
    """The lowest throughput up to `high` that is refuted; inf where `high` is not.

    `low` is possible: all vertices on one node. No test is asked about that or less.
    """
    if not (0 < low < high < math.inf) or not refutes(clusters(application, machine, high)):
        return math.inf
    while high > low * (1 + step):
        middle = math.sqrt(low * high)
        if refutes(clusters(application, machine, middle)):
            high = middle
        else:
            low = middle
    return high


def _pigeonhole(falling: Floats, nodes: int) -> tuple[float, int]:
    """Load that some node has at least, and the number k for which ``nodes k + 1`` vertices prove it."""
    total = np.r_[0.0, np.cumsum(falling)]
    found = (float(falling[0]), 0)
    for k in range(1, (len(falling) - 1) // nodes + 1):
        last = nodes * k + 1
        found = max(found, (float(total[last] - total[last - k - 1]), k), key=lambda one: one[0])
    return found


def _needs_more(weight: Floats, limit: float, nodes: int) -> bool:
    """Whether things of these weights need more than so many nodes of this limit.

    By `_pigeonhole`, and by Martello and Toth's bound on bin packing: for any a up to half the limit, things
    above limit - a are alone, other things above half the limit are on different nodes, and what these leave
    free takes things of at least a only.
    """
    falling = np.sort(weight)[::-1]
    if _pigeonhole(falling, nodes)[0] > limit:
        return True
    total = np.r_[0.0, np.cumsum(falling)]
    large = int(np.count_nonzero(falling > limit / 2))
    sizes = np.unique(falling[large:])
    for least in (0.0, *sizes[:: max(len(sizes) // SIZES, 1)].tolist()):
        alone = int(np.count_nonzero(falling > limit - least))
        small = int(np.count_nonzero(falling >= least))
        free = (large - alone) * limit - float(total[large] - total[alone])
        rest = max(float(total[max(small, large)] - total[large]) - free, 0.0)
        if large + rest / limit > nodes:
            return True
    return False


def _ports(at: Clusters, machine: Machine, flows: int) -> bool:
    """Whether a node cannot send what its cluster must, or a cluster fits no node."""
    if at.weight.max() > at.node_limit:
        return True
    most = min(machine.max_degree, machine.nodes - 1) * at.link_limit
    order = np.argsort(-at.leaving, kind="stable")[: _affordable(at, flows)].tolist()
    return any(at.leaving[one] > most and least_leaving(at, one) > most for one in order)


def _links(at: Clusters, machine: Machine, flows: int) -> bool:
    """Whether too much crosses links: a node of load w(P) <= C sends at least ``sum_{x in P} w(x) c(x) / C``.

    c(x) is `least_leaving`: what any node with cluster x sends. Each edge between nodes is counted at both.
    """
    ports = min(machine.max_degree, machine.nodes - 1) * machine.nodes
    most = min(2.0 * machine.max_edges, ports) * at.link_limit * at.node_limit
    sent = 0.0
    for one in np.argsort(-at.weight, kind="stable")[: _affordable(at, flows)].tolist():
        sent += float(at.weight[one]) * least_leaving(at, one)
        if sent > most:
            return True
    return False


def _affordable(at: Clusters, flows: int) -> int:
    return min(flows, max(WORK // len(at.weight), 1))
