"""The ranks of a simulation with their messages and routes, before anything is sent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.random_numbers import state_from
from mapping.routing.kernels.channels import Ends, new_channels
from mapping.routing.routes import Routes
from mapping.simulation.channels import ChannelRoutes
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
from mapping.simulation.options import Options
from registry.model import Bools, Floats, Ints, Placement
from registry.model.simulation import PERCENTILES


class Senders(NamedTuple):
    """Ranks, and the routes of their messages."""

    ranks: Ranks
    routes: ChannelRoutes

    @property
    def delivered(self) -> Bools:
        """bool[n]: True for messages that are delivered."""
        done: Bools = self.ranks.left == 0
        return done

    def points(self) -> Floats:
        """Return the points of traffic over time (float64[k, 3]); the last may be of fewer messages."""
        ranks = self.ranks
        full = ranks.points[: ranks.tally[POINTS]]
        rest = int(ranks.tally[DELIVERED]) % ranks.every
        if rest == 0:
            return full.copy()
        mean = ranks.clock[POINT_LATENCY] / rest
        last = [ranks.clock[LAST_DELIVERY], ranks.clock[BYTES], mean]
        return np.concatenate((full, [last]))

    def latencies(self) -> tuple[Floats, float]:
        """Return latencies of delivered messages at `PERCENTILES`, and their mean; zeros without messages."""
        found = np.sort(self.ranks.latency[self.delivered])
        if not len(found):
            return np.zeros(len(PERCENTILES)), 0.0
        return np.maximum.accumulate(np.percentile(found, PERCENTILES)), float(found.mean())


def new_senders(
    routes: ChannelRoutes,
    placement: Placement,
    messages: Messages,
    options: Options,
    generator: np.random.Generator,
) -> Senders:
    """Return ranks that have sent nothing yet; parameters and errors are those of ``levels.new_level``."""
    n, count, flows = len(messages.rank), placement.ranks, routes.routes.flows
    host = np.searchsorted(routes.routes.hosts, placement.host_of_rank).astype(np.int32)
    _require_connected(routes.routes, host, messages)
    only_port, only_target = _only_ways(flows.ends)
    tally, clock = np.zeros(4, np.int64), np.zeros(5)
    tally[ROUND] = -1
    ends = Ends._make(np.array(part) if isinstance(part, np.ndarray) else part for part in flows.ends)
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
        packet_bytes=options.packet_bytes,
        cursor=np.zeros(count, np.int64),
        sent=np.zeros(count, np.int64),
        way=np.full((count, 4), -1, np.int64),
        line=np.full((len(routes.next_hops.start), 2), -1, np.int64),
        left=np.full(n, -1, np.int32),
        latency=np.zeros(n),
        tally=tally,
        clock=clock,
        points=np.zeros((n // options.every + 1, 3)),
        every=options.every,
        random=state_from(generator),
        ends=ends,  # copies, as one set of types and of layouts is one compilation
        hops=np.array(flows.hops, np.int16, order="C"),
        channels=new_channels(max(flows.max_channels, 1)),
    )
    ranks.cursor[:] = ranks.first[:-1]
    return Senders(ranks, routes)


def _only_ways(ends: Ends) -> tuple[Ints, Ints]:
    """Return port and target of each host that has one of each (int32[h], int32[h]); -1 for others."""
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


def _require_connected(routes: Routes, host: Ints, messages: Messages) -> None:
    """Raise an error if two hosts that exchange messages are not connected."""
    source, target = host[messages.rank].astype(np.int64), host[messages.receiver]
    hosts = len(routes.hosts)
    pair = np.unique(source * hosts + target)
    routes.load(pair // hosts, pair % hosts, np.zeros(len(pair)))
