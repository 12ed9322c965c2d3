"""Annealed exchange of ranks on link congestion: plain arrays in, plain arrays changed in place.

The search minimises the sum over cells of ``(load * scale) ** p``, where ``scale`` is 1 / (capacity *
worst) of the cell's class (hosts' own cables and network links are scaled apart, so that the network goes
on improving if a host's own cable limits congestion). Loads follow every exchange through the routes of the
pairs of hosts that it changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.decorators import inner, kernel
from mapping.kernels.random_numbers import State, below, exponential
from mapping.placement.kernels.hop_bytes_search import SearchArrays, exchange_gain, propose_slot, swap_into
from mapping.placement.kernels.link_loads import (
    BYTES,
    SCALE,
    TERM,
    Flows,
    Loads,
    Talk,
    accumulate_flows,
    add_flows,
    clear_delta,
    note_exchange,
)
from mapping.placement.kernels.pair_routes import BOTH_WAYS, Lookup, Origin
from registry.model import Floats, Ints, Longs


class Part(NamedTuple):
    """The hosts and ranks that a worker may change."""

    worker: int
    worker_of_host: NDArray[np.int8]
    """int8[h]."""
    rank: Ints
    """int32[r]: Ranks on the worker's hosts, from which proposals choose."""
    hot_rank: Ints
    hot_partner: Ints
    """int32[k]: Pairs on the busiest links: the first is moved near the other."""


class Worker(NamedTuple):
    """Data of one thread: its routes, loads, flows of the current proposal, and random numbers."""

    lookup: Lookup
    loads: Loads
    pending: Flows
    state: State


class Rules(NamedTuple):
    """Rules by which proposals are made and accepted."""

    squarings: int
    """The power ``p`` is ``2 ** squarings``."""
    temperature: float
    """A change of the sum is accepted if it is below ``temperature * Exp(1)``."""
    screen: float
    """A proposal that loses more hop-bytes than this times Exp(1) is dropped at once."""
    hot: int
    """Number of 100 proposals that move an end of one of the busiest pairs."""
    cables: bool
    """True if the load of hosts' own cables, relative to their capacity, depends on the placement."""


@inner
def _power(x: float, squarings: int) -> float:
    for _ in range(squarings):
        x *= x
    return x


@inner
def _change_of_sum(loads: Loads, count: int, squarings: int) -> float:
    """Return the change of the sum by the delta, which `count` cables have."""
    state, total = loads.state, 0.0
    for t in range(count):
        cable = np.uint64(loads.touched[t])
        first = cable << np.uint64(1)
        one = (state[cable, BYTES] + loads.change[first]) * state[cable, SCALE]
        other = (state[cable, BYTES + 1] + loads.change[first + np.uint64(1)]) * state[cable, SCALE + 1]
        for _ in range(squarings):
            one *= one
            other *= other
        total += (one - state[cable, TERM]) + (other - state[cable, TERM + 1])
    return total


@inner
def _apply_delta(loads: Loads, count: int, squarings: int) -> None:
    state = loads.state
    for t in range(count):
        cable = np.uint64(loads.touched[t])
        for way in range(2):
            bytes = state[cable, BYTES + way] + loads.change[2 * cable + way]
            state[cable, BYTES + way] = bytes
            state[cable, TERM + way] = _power(bytes * state[cable, SCALE + way], squarings)


@inner
def _propose_rank(talk: Talk, part: Part, hot: int, state: State) -> tuple[int, int]:
    """Return a rank of the worker, and the partner near which it shall be placed."""
    if len(part.hot_rank) > 0 and below(state, 100) < hot:
        at = below(state, len(part.hot_rank))
        return int(np.int64(part.hot_rank[at])), int(part.hot_partner[at])
    rank = int(np.int64(part.rank[below(state, len(part.rank))]))
    first = talk.indptr[rank]
    return rank, int(talk.partner[first + below(state, talk.indptr[rank + 1] - first)])


@kernel
def exchange_on_congestion(
    proposals: int,
    rules: Rules,
    talk: Talk,
    part: Part,
    worker: Worker,
    origin: Origin | None,
    arrays: SearchArrays,
    counts: Longs,
) -> None:
    """Make a number of proposals.

    A proposal takes a rank, one of its partners and a host near that partner, and exchanges the rank
    with a slot there.

    Args:
        origin: None if the table of routes is complete.
        counts (int64[3]): Counters to increase: proposals within the worker's part, those past the screen,
            those accepted.
    """
    guest, hops, near, assignment = arrays
    lookup, loads, pending, state = worker
    row, worker_of_host, first = lookup.hosts.row, part.worker_of_host, int(np.int64(0))
    alike = lookup.table.mode[BOTH_WAYS] > 0 and not rules.cables
    for _ in range(proposals if len(part.rank) > 0 else 0):
        rank, partner = _propose_rank(talk, part, rules.hot, state)
        here = int(assignment.host_of_rank[rank])
        slot = propose_slot(state, near, assignment.host_of_rank[partner])
        there = int(assignment.slot_host[slot])
        if there == here or worker_of_host[there] != part.worker or worker_of_host[here] != part.worker:
            continue
        if alike and row[here] == row[there]:
            continue
        other = int(assignment.rank_of_slot[slot])
        if assignment.fixed[rank] or (other >= 0 and assignment.fixed[other]):
            continue
        counts[0] += 1
        longer = exchange_gain(guest, hops, assignment, rank, other, here, there)
        if longer > 0.0 and longer > rules.screen * exponential(state):
            continue
        counts[1] += 1
        number = note_exchange(talk, assignment.host_of_rank, rank, other, here, there, pending)
        count = add_flows(first, number, lookup, origin, pending, rules.cables, loads)
        worse = _change_of_sum(loads, count, rules.squarings)
        keep = worse < 0.0 or (worse == 0.0 and longer <= 0.0)
        if not keep and rules.temperature > 0.0:
            keep = worse < rules.temperature * exponential(state)
        if keep:
            counts[2] += 1
            _apply_delta(loads, count, rules.squarings)
            swap_into(assignment, rank, slot)
        clear_delta(loads, count)


@kernel
def pair_heat(
    flows: Flows, lookup: Lookup, origin: Origin | None, slope: Floats, loads: Loads, heat: Floats
) -> None:
    """Fill `heat` (float64[n]) with the part of the sum that each flow causes, both directions.

    Args:
        slope (float64[c]): Change of the sum per byte on each cell.
    """
    cables = bool(np.bool_(True))  # not a constant, for which `accumulate_flows` would be compiled again
    for e in range(len(heat)):
        heat[e] = 0.0
        if flows.source[e] == flows.target[e]:
            continue
        count = accumulate_flows(e, e + 1, lookup, origin, flows, cables, loads)
        for t in range(count):
            first = np.uint64(loads.touched[t]) << np.uint64(1)
            for to in (first, first + np.uint64(1)):
                heat[e] += slope[to] * loads.change[to]
        clear_delta(loads, count)
