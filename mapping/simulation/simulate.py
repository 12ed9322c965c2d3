"""Simulate messages over a fabric from a placement of their ranks, and report deadlocks.

How long a simulation takes to compute, before it starts: by the links that packets or flits will cross.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from mapping.distances.cost_model import CostModel
from mapping.routing.catalog import choose_routing
from mapping.simulation.kernels.simulated_ranks import BYTES, DELIVERED, LAST_DELIVERY, NOW
from mapping.simulation.messages import Messages, Options, check_messages
from mapping.simulation.network import MINIMAL_ADAPTIVE, build_channel_routes
from mapping.simulation.replay import Level, new_level
from registry.errors import DeadlockFound, InvalidPlacement, UnknownName
from registry.model import Fabric, HasFabric, HasPlacement, Longs, Placement
from registry.model.simulation import FLITS, MODES, PACKETS, Simulation
from registry.model.views import content, whole_number
from registry.progress import Progress, silent


def circle_of_links(fabric: Fabric, waiting_for: Longs, width: int) -> tuple[str, ...]:
    """Return the names of links whose buffers wait for each other in a circle, such as ``"s1 -> s2"``.

    Args:
        waiting_for (int64[channels]): Channel that the first packet in the buffer of each channel waits for;
            -1 for none.
        width: Number of channels of a link.

    Returns:
        Each link waits for the next and the last for the first; the first is the lowest. Empty without a
        circle.
    """
    seen = np.full(len(waiting_for), -1, np.int64)
    names, links = fabric.names, fabric.links
    for start in np.flatnonzero(waiting_for >= 0).tolist():
        at, path = start, []
        while at >= 0 and seen[at] < 0:
            seen[at] = start
            path.append(at)
            at = int(waiting_for[at])
        if at >= 0 and seen[at] == start:
            circle = path[path.index(at) :]
            lowest = circle.index(min(circle))
            rows = [channel // width for channel in circle[lowest:] + circle[:lowest]]
            return tuple(f"{names[links.source[row]]} -> {names[links.target[row]]}" for row in rows)
    return ()


def simulate(
    fabric: Fabric | HasFabric,
    placement: Placement | HasPlacement,
    messages: Messages,
    costs: CostModel | None = None,
    *,
    mode: str = PACKETS,
    options: Options | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Simulation:
    """Simulate messages over a fabric, and return when they arrive.

    Ranks of one host share its cables, one message at a time in turn; messages between them are delivered at
    once. The same arguments give the same result.

    Args:
        messages: From ``from_trace`` or ``from_profile``; the messages of a rank are sent in their order.
        costs: Rails, and as routing one of ``channels.SIMULATED`` with its options; default: tables if they
            connect all hosts, else ``minimal-adaptive``. A message takes one route; the rest has no effect.
        mode: ``packets`` (virtual cut-through) or ``flits`` (wormhole).
        options: Packets, latencies, buffers, lanes, and the points of the traffic over time.
        seed: Decides among equal channels, and which of several adapters messages use.
        progress: Receives the number of delivered messages.

    Returns:
        After a KeyboardInterrupt the messages delivered so far, with ``complete=False``.

    Raises:
        InvalidPlacement: A vertex is not in the fabric.
        InvalidValue: Messages are of other ranks, or the fabric lacks something that the routing needs.
        UnknownName: A mode, routing, option, selection or rails rule is unknown.
        DisconnectedAllocation, UnreachablePair: Two hosts that exchange messages are not connected.
        DeadlockFound: Packets wait for each other in a circle; names the links.
    """
    chosen = content(options or Options(), Options, "options")
    fabric, placement = content(fabric, Fabric, "fabric"), content(placement, Placement, "placement")
    seed = whole_number(seed, "seed")
    if mode not in MODES:
        raise UnknownName("mode", mode, MODES)
    checked = check_messages(messages, placement.ranks)
    hosts = np.unique(placement.host_of_rank)
    if len(hosts) and not 0 <= int(hosts[0]) <= int(hosts[-1]) < len(fabric):
        raise InvalidPlacement(f"vertex {int(hosts[-1])} is not in the fabric")
    costs = costs or CostModel()
    name = default_routing(fabric) if costs.routing is None else costs.routing
    routes = build_channel_routes(
        name, fabric, hosts, rails=costs.rails, lanes=chosen.lanes, selection=chosen.selection
    )
    level = new_level(fabric, placement, checked, routes, chosen, mode=mode, seed=seed)
    complete = _run(level, progress)
    if complete and int(level.senders.ranks.tally[DELIVERED]) < len(checked.rank):
        raise _deadlock(fabric, level)
    return _result(level, mode=mode, routing=name, seed=seed, complete=complete)


def default_routing(fabric: Fabric) -> str:
    """Return the default routing of simulations on a fabric."""
    name, _ = choose_routing(fabric)
    return name if name == "tables" else MINIMAL_ADAPTIVE


def _run(level: Level, progress: Progress) -> bool:
    """Run to the end; return False after a KeyboardInterrupt."""
    ranks = level.senders.ranks
    try:
        going = True
        while going:
            going = level.advance()
            progress("simulating", int(ranks.tally[DELIVERED]), len(ranks.receiver))
    except KeyboardInterrupt:
        return False
    return True


def _deadlock(fabric: Fabric, level: Level) -> DeadlockFound:
    ranks = level.senders.ranks
    links = circle_of_links(fabric, level.waiting_for(), level.senders.routes.next_hops.width)
    return DeadlockFound(links, float(ranks.clock[NOW]), int(ranks.tally[DELIVERED]), len(ranks.receiver))


def _result(level: Level, *, mode: str, routing: str, seed: int, complete: bool) -> Simulation:
    """Return the results of a run."""
    ranks, points = level.senders.ranks, level.senders.points()
    latency, mean = level.senders.latencies()
    return Simulation(
        mode=mode,
        routing=routing,
        seed=seed,
        complete=complete,
        completion_seconds=float(ranks.clock[LAST_DELIVERY if complete else NOW]),
        delivered_bytes=float(ranks.clock[BYTES]),
        messages=int(ranks.tally[DELIVERED]),
        packet_hops=level.hops,
        link_bytes=level.link_bytes,
        link_busy_seconds=level.link_busy_seconds,
        delivered_at=points[:, 0],
        delivered=points[:, 1],
        latency_seconds=latency,
        mean_latency_seconds=mean,
        latency_over_time=points[:, 2],
    )


HOPS_A_SECOND = MappingProxyType({PACKETS: 2e6, FLITS: 9e6})
"""Links crossed by packets or flits in a second of computing; large fabrics take up to twice as long. Record:
bench/results/simulation/speed.json."""
SAMPLED = 32
"""Most hosts whose distances are computed."""


def expected_seconds(
    fabric: Fabric, placement: Placement, messages: Messages, mode: str, options: Options
) -> float:
    """Return the seconds that a simulation takes to compute, right within a factor of about three.

    Distances are the fewest links, from `SAMPLED` hosts that stand for all.
    """
    host = placement.host_of_rank
    source, target = host[messages.rank], host[messages.receiver]
    size = options.flit_bytes if mode == FLITS else options.packet_bytes
    parts = np.where(source != target, np.maximum(-(-messages.bytes // size), 1), 0)
    senders = np.unique(source[parts > 0])
    if not len(senders):
        return 0.0
    chosen = senders[np.linspace(0, len(senders) - 1, min(SAMPLED, len(senders))).astype(np.int64)]
    arcs = (np.ones(len(fabric.neighbour)), fabric.neighbour, fabric.indptr)
    graph = csr_array(arcs, shape=(len(fabric), len(fabric)))
    hops = shortest_path(graph, unweighted=True, indices=chosen)
    sampled = np.isin(source, chosen) & (parts > 0)
    far = hops[np.searchsorted(chosen, source[sampled]), target[sampled]]
    known = np.isfinite(far)
    weight = parts[sampled][known].astype(np.float64)
    mean = float(weight @ far[known]) / max(float(weight.sum()), 1.0)
    return float(parts.sum()) * mean / HOPS_A_SECOND[mode]
