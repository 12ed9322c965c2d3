"""Groups of hosts with equal distances, so that a table of distances needs no row per host.

Hosts attached to the same switches by the same number of cables have the same distance to every other host.
For a fat tree with 20,000 hosts on 1,000 leaves, distances are a table of 1,000 x 1,000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapping.routing.kernels import channels as kernel
from mapping.routing.kernels.channels import Ends
from mapping.routing.kernels.paths import HopArray
from mapping.threads import each
from registry.model import Floats, Int8s, Ints, Longs

AT_ONCE = 512
"""Rows of a table per piece of parallel work."""


def column_classes(hops: HopArray) -> Longs:
    """Return the class (int64[t]) of each column of `hops`; equal columns have the same class.

    Columns are compared by a hash first, then entry by entry.
    """
    weight = np.random.default_rng(0).integers(0, 1 << 63, len(hops), np.uint64)
    hashes = np.zeros(hops.shape[1], np.uint64)
    for row in range(len(hops)):
        hashes += weight[row] * hops[row].astype(np.uint64)
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    if all(np.array_equal(row, row[first][number]) for row in hops):
        return np.asarray(number, np.int64)
    return np.asarray(np.unique(hops, axis=1, return_inverse=True)[1], np.int64).reshape(-1)


def host_groups(ends: Ends, target_class: Longs) -> Ints:
    """Return the group (int32[h]) of each host, numbered by their first hosts.

    Parameters
    ----------
    target_class : int64[t]
        Class of each column of the table of hops; equal for equal columns.
    """
    row, up, down = ends.port_row, np.diff(ends.up_ptr) > 0, np.diff(ends.down_ptr) > 0
    targets, hosts = target_class[ends.target], len(ends.rail_ptr) - 1
    if bool((np.diff(ends.rail_ptr) == 1).all()) and len(row) == len(targets) == hosts:
        width = int(targets.max(initial=0)) + 1
        key = ((row.astype(np.int64) + 1) * width + targets) * 4 + 2 * up + down
    else:
        key = _keys(ends, up.tolist(), down.tolist(), targets.tolist())
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[group]


def _keys(ends: Ends, up: list[bool], down: list[bool], targets: list[int]) -> Longs:
    """Return keys (int64[h]) that are equal for hosts whose rails, ports and targets are all equal."""
    number_of: dict[tuple[object, ...], int] = {}
    rail_ptr, port_ptr, target_ptr = ends.rail_ptr.tolist(), ends.port_ptr.tolist(), ends.target_ptr.tolist()
    numbers, rows = ends.rail_number.tolist(), ends.port_row.tolist()
    keys = []
    for host in range(len(rail_ptr) - 1):
        rails = tuple(
            (
                numbers[rail] if ends.same_rail else 0,
                tuple(
                    (rows[p], up[p], down[p], tuple(targets[target_ptr[p] : target_ptr[p + 1]]))
                    for p in range(port_ptr[rail], port_ptr[rail + 1])
                ),
            )
            for rail in range(rail_ptr[host], rail_ptr[host + 1])
        )
        keys.append(number_of.setdefault(rails, len(number_of)))
    return np.array(keys, np.int64)


def group_hops(ends: Ends, hops: HopArray, group: Ints, max_channels: int) -> Floats:
    """Return mean hops (float64[g, g]) from a host of each group to another host of each; ``inf`` for none.

    The diagonal holds the hops between two hosts of a group; 0 if the group has only one.
    """
    first = np.unique(group, return_index=True)[1].astype(np.int32)
    second, found = second_hosts(group, first), np.zeros((len(first), len(first)))
    if max_channels == 1 and len(ends.port_row) == len(ends.target) == len(group):
        _fill(kernel.single_hops, ends, hops, first, found)
        np.fill_diagonal(found, np.where(first == second, 0.0, np.diagonal(found)))
    else:
        kernel.mean_hops(ends, hops, kernel.new_channels(max_channels), first, second, found)
    return found


def group_links(ends: Ends, hops: HopArray, group: Ints) -> Int8s:
    """Return the same as bytes (uint8[g, g]) for connected hosts with one port and one target each."""
    first = np.unique(group, return_index=True)[1].astype(np.int32)
    second, found = second_hosts(group, first), np.zeros((len(first), len(first)), np.uint8)
    _fill(kernel.single_codes, ends, hops, first, found)
    np.fill_diagonal(found, np.where(first == second, 0, np.diagonal(found)))
    return found


def _fill(fill: Callable[..., None], ends: Ends, hops: HopArray, first: Ints, found: NDArray[Any]) -> None:
    """Fill the table of all groups with a kernel, some rows at a time."""
    row, target = ends.port_row[first], ends.target[first]
    up, down = (np.diff(ends.up_ptr) > 0)[first], (np.diff(ends.down_ptr) > 0)[first]

    def some(begin: int) -> None:
        rows = slice(begin, begin + AT_ONCE)
        fill(hops, row[rows], target, up[rows], down, found[rows])

    each(some, range(0, len(first), AT_ONCE))


def second_hosts(group: Ints, first: Ints) -> Ints:
    """Return the second host of each group (int32[g]), or the first if there is only one."""
    rest = np.ones(len(group), np.bool_)
    rest[first] = False
    found = first.copy()
    others = np.flatnonzero(rest)[::-1]
    found[group[others]] = others
    return found
