"""Flows between hosts, computed when first asked for and kept in bounded memory.

A hash table leads from (row, target) to a run in one pool of (link, share). When either is full, all is
forgotten and filling starts again.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from mapping.kernels.flows import FlowArrays, Scratch, new_scratch, pair_flows, row_flows
from registry.model import Floats, Ints, Longs

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Runs(NamedTuple):
    """The table and the pool; changed in place.

    Attributes
    ----------
    key : int64[2**k]
        -1 free.
    first : int64[2**k], length : int32[2**k]
        Run of the pool.
    link : int32[n], share : float32[n]
        The pool; a share is a fraction of the pair's bytes.
    used : int64[3]
        Entries of the pool and keys of the table in use; times that all was forgotten.
    """

    key: Longs
    first: Longs
    length: Ints
    link: Ints
    share: NDArray[np.float32]
    used: Longs


class Attachment(NamedTuple):
    """What of a pair's flow is shared with other pairs, and what is the hosts' own.

    Where every host has one channel, runs are kept from attachment to attachment, without the hosts' own
    cables, for all hosts that hang there. Otherwise a host is its own row and target, and has no cables
    here.

    Attributes
    ----------
    row, target : int32[h]
        Key of a host as a source and as a receiver.
    up_ptr, up_link, up_share : int64[h + 1], int32, float64
        Cables of a host towards the network.
    down_ptr, down_link, down_share : int64[h + 1], int32, float64
        Cables towards the host.
    """

    row: Ints
    target: Ints
    up_ptr: Longs
    up_link: Ints
    up_share: Floats
    down_ptr: Longs
    down_link: Ints
    down_share: Floats


class FlowSource(NamedTuple):
    """Where a run that is not kept comes from.

    Attributes
    ----------
    by_row : bool
        Whether keys are rows and targets of `FlowArrays.hops`, or hosts.
    width : int
        Number of targets.
    flows, scratch
        For `pair_flows` and `row_flows`.
    link : int32, share : float64
        Room for one run.
    """

    by_row: bool
    width: int
    flows: FlowArrays
    scratch: Scratch
    link: Ints
    share: Floats


class FlowCache(NamedTuple):
    """All that looking up the flows of a pair needs."""

    ends: Attachment
    runs: Runs
    source: FlowSource


def new_cache(flows: FlowArrays, limit: int) -> FlowCache:
    """An empty cache.

    Parameters
    ----------
    limit : int
        Bytes that the pool may take; a run of `FlowArrays.max_entries` always fits.
    """
    ends, by_row = _attachment(flows)
    width = flows.hops.shape[1] if by_row else len(ends.row)
    rows = flows.hops.shape[0] if by_row else len(ends.row)
    longest = max(flows.max_entries, 1)
    room = np.empty(longest, np.int32), np.empty(longest, np.float64)
    source = FlowSource(by_row, width, flows, new_scratch(flows), *room)
    return FlowCache(ends, _empty_runs(longest, rows * width, limit), source)


def _attachment(flows: FlowArrays) -> tuple[Attachment, bool]:
    """How hosts are attached, and whether runs are kept by attachment."""
    ends = flows.ends
    ports = ends.port_ptr[ends.rail_ptr]
    targets = ends.target_ptr[ports]
    if bool((np.diff(ports) == 1).all() and (np.diff(targets) == 1).all()):
        shared = Attachment(
            ends.port_row, ends.target[targets[:-1]],
            ends.up_ptr, ends.up_link, ends.up_share, ends.down_ptr, ends.down_link, ends.down_share,
        )  # fmt: skip
        return shared, True
    own = np.arange(len(ports) - 1, dtype=np.int32)
    none, nothing, zero = np.zeros(len(ports), np.int64), np.zeros(0, np.int32), np.zeros(0)
    return Attachment(own, own, none, nothing, zero, none, nothing, zero), False


def _empty_runs(longest: int, pairs: int, limit: int) -> Runs:
    keys = 1 << max(4, min((2 * pairs).bit_length(), (limit // 64).bit_length()))
    entries = max(min(limit // 8, pairs * longest), longest)
    return Runs(
        key=np.full(keys, -1, np.int64),
        first=np.zeros(keys, np.int64),
        length=np.zeros(keys, np.int32),
        link=np.empty(entries, np.int32),
        share=np.empty(entries, np.float32),
        used=np.zeros(3, np.int64),
    )


@nb.njit(inline="always")
def place_of(table: Longs, key: int) -> int:
    """Where a key is in the table, or where it would go."""
    mask = len(table) - 1
    at = np.int64((np.uint64(key) * _SPREAD) >> np.uint64(20)) & mask
    while table[at] >= 0 and table[at] != key:
        at = (at + 1) & mask
    return int(at)


@nb.njit(cache=True)
def fill(source: FlowSource, runs: Runs, row: int, target: int) -> int:
    """Compute the run of a key that the table lacks, keep it, and return its place in the table."""
    if source.by_row:
        count = row_flows(source.flows, source.scratch, row, target, 1.0, source.link, 0)
        for e in range(count):
            source.share[e] = source.scratch.load[source.link[e]]
            source.scratch.load[source.link[e]] = 0.0
    else:
        count = max(pair_flows(source.flows, source.scratch, row, target, source.link, source.share), 0)
    used = runs.used
    if used[0] + count > len(runs.link) or 2 * (used[1] + 1) > len(runs.key):
        runs.key[:] = -1
        used[0], used[1] = 0, 0
        used[2] += 1
    key, first = row * source.width + target, used[0]
    at = place_of(runs.key, key)
    for e in range(count):
        runs.link[first + e] = source.link[e]
        runs.share[first + e] = source.share[e]
    runs.key[at], runs.first[at], runs.length[at] = key, first, count
    used[0] += count
    used[1] += 1
    return at
