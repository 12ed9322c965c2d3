"""``simulate``: messages sent over a fabric from where a placement puts their ranks."""

from __future__ import annotations

import numpy as np

from mapping.routing.catalog import choose_routing
from mapping.simulation.channels import MINIMAL_ADAPTIVE, build_ways
from mapping.simulation.deadlock import circle_of_links
from mapping.simulation.flit_level import FlitLevel
from mapping.simulation.kernels.simulated_ranks import BYTES, DELIVERED, LAST_DELIVERY, NOW
from mapping.simulation.level import Level
from mapping.simulation.messages import Messages, check_messages
from mapping.simulation.options import Options
from mapping.simulation.packet_level import PacketLevel
from mapping.simulation.sending import Senders, new_senders
from registry.errors import DeadlockFound, InvalidPlacement, InvalidValue, UnknownName
from registry.model import Fabric, Placement
from registry.model.simulation import FLITS, MODES, PACKETS, Simulation
from registry.progress import Progress, silent

EVERY = 10_000
"""Messages between two points of traffic over time, as in the figures of the 2004 paper."""
MOST_EVERY = 1 << 40


def simulate(
    fabric: Fabric,
    placement: Placement,
    messages: Messages,
    *,
    routing: str | None = None,
    mode: str = PACKETS,
    options: Options | None = None,
    every: int = EVERY,
    seed: int = 0,
    progress: Progress = silent,
) -> Simulation:
    """Send messages over a fabric and see when they arrive.

    Ranks of one host share its cables, a message each in turn; what they send each other is delivered at
    once. Same arguments, same bytes.

    Parameters
    ----------
    messages : Messages
        From ``from_trace`` or ``from_profile``; each rank's are sent in their order.
    routing : str, optional
        One of ``channels.SIMULATED`` with its options; unless told, tables where they join all hosts, else
        ``minimal-adaptive``.
    mode : str
        ``packets`` (virtual cut-through) or ``flits`` (wormhole).
    options : Options, optional
        Packets, latencies, buffers, lanes.
    every : int
        Messages between two points of traffic over time.
    seed : int
        Decides among equal channels, and by which adapters messages go where there are several.
    progress : Progress
        Told messages delivered after every slice.

    Returns
    -------
    Simulation
        After a KeyboardInterrupt what was delivered until then, with ``complete=False``.

    Raises
    ------
    InvalidPlacement
        A vertex that the fabric has not.
    InvalidValue
        Messages of other ranks, options out of range, a fabric that lacks what the routing needs.
    UnknownName
        A mode, routing, option, selection or rails rule that there is not.
    DisconnectedAllocation, UnreachablePair
        Two hosts that talk are not connected.
    DeadlockFound
        Packets wait for each other in a circle; names the links.
    """
    chosen = options or Options()
    if mode not in MODES:
        raise UnknownName("mode", mode, MODES)
    if not 1 <= every <= MOST_EVERY:
        raise InvalidValue("simulate.every", f"must be 1 to {MOST_EVERY}, is {every}")
    checked = check_messages(messages, placement.ranks)
    hosts = np.unique(placement.host_of_rank)
    if len(hosts) and not 0 <= int(hosts[0]) <= int(hosts[-1]) < len(fabric):
        raise InvalidPlacement(f"vertex {int(hosts[-1])} is not in the fabric")
    name = routing if routing is not None else default_routing(fabric)
    ways = build_ways(name, fabric, hosts, rails=chosen.rails, lanes=chosen.lanes, selection=chosen.selection)
    generator = np.random.default_rng(seed)
    senders = new_senders(
        ways, placement, checked, packet_bytes=chosen.packet_bytes, every=every, generator=generator
    )
    level: Level
    if mode == FLITS:
        level = FlitLevel(fabric, senders, chosen, generator, alone=ways.escapes)
    else:
        level = PacketLevel(fabric, senders, chosen, generator)
    complete = _run(level, senders, progress)
    if complete and int(senders.ranks.tally[DELIVERED]) < len(checked.rank):
        raise _deadlock(fabric, level, senders)
    return _told(level, senders, mode=mode, routing=ways.name, seed=seed, complete=complete)


def default_routing(fabric: Fabric) -> str:
    """The routing that a fabric is simulated on unless told."""
    name, _ = choose_routing(fabric)
    return name if name == "tables" else MINIMAL_ADAPTIVE


def _run(level: Level, senders: Senders, progress: Progress) -> bool:
    """Run to the end; False after a KeyboardInterrupt."""
    total = len(senders.ranks.receiver)
    try:
        going = True
        while going:
            going = level.advance()
            progress("simulating", int(senders.ranks.tally[DELIVERED]), total)
    except KeyboardInterrupt:
        return False
    return True


def _deadlock(fabric: Fabric, level: Level, senders: Senders) -> DeadlockFound:
    ranks = senders.ranks
    links = circle_of_links(fabric, level.waiting_for(), senders.next_hops.width)
    return DeadlockFound(links, float(ranks.clock[NOW]), int(ranks.tally[DELIVERED]), len(ranks.receiver))


def _told(
    level: Level, senders: Senders, *, mode: str, routing: str, seed: int, complete: bool
) -> Simulation:
    ranks, points = senders.ranks, senders.points()
    latency, mean = senders.latencies()
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
