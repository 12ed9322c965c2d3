"""Who sends what by which way, put into arrays for the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.random_numbers import state_from
from mapping.routing.kernels.channels import Channels, Ends, new_channels
from mapping.routing.kernels.paths import HopArray
from mapping.simulation.channels import Ways
from mapping.simulation.kernels.next_hops import NextHops
from mapping.simulation.kernels.simulated_ranks import (
    BYTES,
    DELIVERED,
    LAST_DELIVERY,
    POINT_LATENCY,
    POINTS,
    ROUND,
    Ranks,
)
from mapping.simulation.messages import Messages
from registry.model import Bools, Floats, Ints, Placement
from registry.model.simulation import PERCENTILES


class Senders(NamedTuple):
    """Ranks and the ways of their messages.

    Attributes
    ----------
    ranks : Ranks
    next_hops : NextHops
    channels : tuple
        Ends, hops and room for channels, as ``mapping.routing.kernels.channels.pair_channels`` takes them.
    """

    ranks: Ranks
    next_hops: NextHops
    channels: tuple[Ends, HopArray, Channels]

    @property
    def delivered(self) -> Bools:
        """bool[n]: messages that are delivered."""
        done: Bools = self.ranks.left == 0
        return done

    def points(self) -> Floats:
        """float64[k, 3]: the points of traffic over time; the last may be of fewer messages."""
        ranks = self.ranks
        full = ranks.points[: ranks.tally[POINTS]]
        rest = int(ranks.tally[DELIVERED]) % ranks.every
        if rest == 0:
            return full.copy()
        mean = ranks.clock[POINT_LATENCY] / rest
        last = [ranks.clock[LAST_DELIVERY], ranks.clock[BYTES], mean]
        return np.concatenate((full, [last]))

    def latencies(self) -> tuple[Floats, float]:
        """Latencies of delivered messages at `PERCENTILES`, and their mean; zeros where none is."""
        found = np.sort(self.ranks.latency[self.delivered])
        if not len(found):
            return np.zeros(len(PERCENTILES)), 0.0
        return np.maximum.accumulate(np.percentile(found, PERCENTILES)), float(found.mean())


def new_senders(
    ways: Ways,
    placement: Placement,
    messages: Messages,
    *,
    packet_bytes: int,
    every: int,
    generator: np.random.Generator,
) -> Senders:
    """Ranks that have sent nothing yet.

    Parameters
    ----------
    messages : Messages
        As ``check_messages`` gives them.

    Raises
    ------
    DisconnectedAllocation, UnreachablePair
        Two hosts that talk are not connected.
    """
    routes, n, count = ways.routes, len(messages.rank), placement.ranks
    host = np.searchsorted(routes.hosts, placement.host_of_rank).astype(np.int32)
    _require_connected(ways, host, messages)
    flows = routes.flows
    only_port, only_target = _only_ways(flows.ends)
    tally, clock = np.zeros(4, np.int64), np.zeros(5)
    tally[ROUND] = -1
    ranks = Ranks(
        host=host,
        only_port=only_port,
        only_target=only_target,
        first=np.searchsorted(messages.rank, np.arange(count + 1)).astype(np.int64),
        receiver=messages.receiver,
        bytes=messages.bytes,
        ready=messages.ready,
        round=messages.round,
        in_round=np.bincount(messages.round, minlength=1).astype(np.int64),
        packet_bytes=packet_bytes,
        cursor=np.zeros(count, np.int64),
        sent=np.zeros(count, np.int64),
        way=np.full((count, 4), -1, np.int64),
        line=np.full((len(ways.next_hops.start), 2), -1, np.int64),
        left=np.full(n, -1, np.int32),
        latency=np.zeros(n),
        tally=tally,
        clock=clock,
        points=np.zeros((n // every + 1, 3)),
        every=every,
        random=state_from(generator),
    )
    ranks.cursor[:] = ranks.first[:-1]
    # Copies, as one set of types and of layouts is one compilation.
    ends = Ends._make(np.array(part) if isinstance(part, np.ndarray) else part for part in flows.ends)
    hops = np.array(flows.hops, np.int16, order="C")
    return Senders(ranks, ways.next_hops, (ends, hops, new_channels(max(flows.max_channels, 1))))


def _only_ways(ends: Ends) -> tuple[Ints, Ints]:
    """int32[h], int32[h]: port and target of each host that has one of each; -1 elsewhere."""
    port = np.full(len(ends.rail_ptr) - 1, -1, np.int32)
    target = port.copy()
    host = np.flatnonzero(np.diff(ends.rail_ptr) == 1)
    rail = ends.rail_ptr[host]
    alone = np.diff(ends.port_ptr)[rail] == 1
    host, rail = host[alone], rail[alone]
    at = ends.port_ptr[rail]
    alone = np.diff(ends.target_ptr)[at] == 1
    host, at = host[alone], at[alone]
    port[host], target[host] = at, ends.target[ends.target_ptr[at]]
    return port, target


def _require_connected(ways: Ways, host: Ints, messages: Messages) -> None:
    source, target = host[messages.rank].astype(np.int64), host[messages.receiver]
    hosts = len(ways.routes.hosts)
    pair = np.unique(source * hosts + target)
    ways.routes.load(pair // hosts, pair % hosts, np.zeros(len(pair)))
