"""Ranks that must be on certain hosts: checked before a search, applied after a strategy."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Ints
from registry.model.views import whole_number


def resolve_pins(pins: Mapping[int, str | int], ranks: int, allocation: Allocation, fabric: Fabric) -> Ints:
    """Return int32[ranks]: the index in the allocation of each pinned rank's host, -1 for free ranks.

    Parameters
    ----------
    pins : mapping of int to str or int
        Rank -> host, by name or as a vertex of the fabric.

    Raises
    ------
    UnknownName
        A host that the fabric lacks.
    InvalidPlacement
        A rank that the profile lacks, a host outside the allocation, or more pins than slots on a host.
    InvalidValue
        No mapping, or a rank or host that is no whole number.
    """
    if not isinstance(pins, Mapping):
        raise InvalidValue("pins", f"must map ranks to hosts, such as {{0: 'node01'}}, not {pins!r}")
    found = np.full(ranks, -1, np.int32)
    index = {int(vertex): at for at, vertex in enumerate(allocation.hosts)}
    numbers = [whole_number(host, "pins", None) for host in pins.values() if not isinstance(host, str)]
    fabric.require_one_meaning(numbers, "pins")
    for given, host in pins.items():
        rank = whole_number(given, "pins", None)
        if not 0 <= rank < ranks:
            raise InvalidPlacement(f"rank {rank} cannot be pinned: the profile has ranks 0 to {ranks - 1}")
        vertex = (
            int(fabric.vertices([host])[0]) if isinstance(host, str) else whole_number(host, "pins", None)
        )
        if not 0 <= vertex < len(fabric):
            raise UnknownName("vertex", str(vertex))
        if vertex not in index:
            raise InvalidPlacement(
                f"rank {rank} cannot be pinned to {fabric.names[vertex]}: that host is not in the allocation"
            )
        found[rank] = index[vertex]
    check_pins(found, allocation, fabric)
    return found


def check_pins(pins: Ints, allocation: Allocation, fabric: Fabric) -> None:
    """Raise `InvalidPlacement` for a pin outside the allocation, or more pins on a host than it has slots."""
    outside = np.flatnonzero((pins < -1) | (pins >= len(allocation)))
    if len(outside):
        rank = int(outside[0])
        raise InvalidPlacement(f"rank {rank} is pinned to host index {pins[rank]}, which does not exist")
    taken = np.bincount(pins[pins >= 0], minlength=len(allocation))
    over = np.flatnonzero(taken > allocation.slots)
    if len(over):
        host = int(over[0])
        ranks = ", ".join(map(str, np.flatnonzero(pins == host).tolist()))
        raise InvalidPlacement(
            f"ranks {ranks} are pinned to host {fabric.names[allocation.hosts[host]]}, "
            f"which has {allocation.slots[host]} slots"
        )


def apply_pins(pins: Ints, host_of_rank: Ints, slots: Ints) -> Ints:
    """Return int32[ranks]: the placement (host indices) with each pinned rank on its host, by exchanges.

    Parameters
    ----------
    pins : int32[ranks]
        Host index of each rank, -1 if free; at most as many on a host as its slots.
    host_of_rank : int32[ranks]
        Placement within the slots of all hosts; not changed.
    slots : int32[h]
    """
    found = np.array(host_of_rank, np.int32)
    away = np.flatnonzero((pins >= 0) & (pins != found)).tolist()
    if not away:
        return found
    free = slots - np.bincount(found, minlength=len(slots))
    waiting = _unbound(pins, found, set(pins[away].tolist()))
    for rank in away:
        here, there = int(found[rank]), int(pins[rank])
        if here == there:  # an exchange for another rank brought it here
            continue
        if free[there] > 0:
            free[there] -= 1
            free[here] += 1
        else:
            other = waiting[there].popleft()
            while found[other] != there:  # it has left since
                other = waiting[there].popleft()
            found[other] = here
            if here in waiting and pins[other] != here:
                waiting[here].append(other)
        found[rank] = there
    return found


def _unbound(pins: Ints, host_of_rank: Ints, hosts: set[int]) -> dict[int, deque[int]]:
    """Return the ranks on each host that are not pinned to it, ascending."""
    found: dict[int, deque[int]] = {host: deque() for host in hosts}
    for rank in np.flatnonzero(pins != host_of_rank).tolist():
        host = int(host_of_rank[rank])
        if host in found:
            found[host].append(rank)
    return found
