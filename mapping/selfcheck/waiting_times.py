"""Waiting times of an M/D/1 queue: the packet simulator beside Lindley's recursion.

Packets of one size arrive at random at a switch and leave over one cable. Packet k leaves at
``max(arrival[k], departure[k - 1]) + service`` (Lindley 1952), in whatever order packets of different senders
are served, as all take the same time.
"""

from __future__ import annotations

import numpy as np

from mapping.selfcheck.comparison import Comparison, Subject, one_rank_per_host
from mapping.simulation.messages import Messages
from mapping.simulation.options import Options
from mapping.simulation.simulate import simulate
from registry.model import Fabric

SENDERS = 4
PACKETS = 5_000
LOAD = 0.8
"""Time that the shared cable is busy, relative to all time."""
BYTES = 2048
"""Size of a packet."""
RATE = 1e9
"""Bytes/s of the shared cable; the cables of the senders are a million times as fast."""
LATENCY = 1e-7
"""Seconds from one end of a link to the other."""


def compare(subject: Subject) -> Comparison:
    """Compare when each packet arrives."""
    service = BYTES / RATE
    ready = np.cumsum(subject.generator.exponential(service / LOAD, PACKETS))
    sender = subject.generator.integers(SENDERS, size=PACKETS)
    order = np.argsort(sender, kind="stable")
    messages = Messages(
        rank=sender[order].astype(np.int32),
        receiver=np.full(PACKETS, SENDERS, np.int32),
        bytes=np.full(PACKETS, BYTES, np.int64),
        ready=ready[order],
        round=np.zeros(PACKETS, np.int32),
    )
    fabric = _star()
    placement = one_rank_per_host(fabric, fabric.hosts.tolist())
    options = Options(packet_bytes=BYTES, latency_seconds=LATENCY, buffer_bytes=PACKETS * BYTES, every=1)
    simulation = simulate(fabric, placement, messages, options=options)
    comparison = Comparison("packets")
    free = 0.0
    for packet, time in enumerate(ready.tolist()):
        free = max(time + LATENCY, free) + service
        comparison.add(f"packet {packet}, seconds", float(simulation.delivered_at[packet]), free + LATENCY)
    return comparison


def _star() -> Fabric:
    """Return senders and one receiver on a switch; only the cable to the receiver is slow."""
    hosts, switch = list(range(SENDERS + 1)), SENDERS + 1
    to_switch = [RATE * 1e6] * (SENDERS + 1)
    from_switch = [RATE * 1e6] * SENDERS + [RATE]
    return Fabric.from_arcs(
        [*(f"host {host}" for host in hosts), "switch"],
        hosts + [switch] * len(hosts),
        [switch] * len(hosts) + hosts,
        to_switch + from_switch,
        slots=[1] * len(hosts) + [0],
        forwards=[False] * len(hosts) + [True],
    )
