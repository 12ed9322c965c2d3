"""Checks of a placement before it is written to a launcher's file, and the names of its hosts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from registry.errors import InvalidPlacement
from registry.model import HOST, Fabric, Placement

_LAUNCHABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def check_placement(placement: Placement, fabric: Fabric) -> None:
    """Raise `InvalidPlacement` if a rank is not on an allocated host, or a host has more ranks than slots."""
    if placement.ranks == 0:
        raise InvalidPlacement("the placement has no ranks")
    allocation = placement.allocation
    vertices = np.concatenate([placement.host_of_rank, allocation.hosts])
    if int(vertices.min()) < 0 or int(vertices.max()) >= len(fabric):
        raise InvalidPlacement("the placement belongs to another fabric: this one lacks one of its vertices")
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))
    room = np.zeros(len(fabric), np.int64)
    room[allocation.hosts] = allocation.slots
    over = np.flatnonzero(taken > room)
    if len(over):
        name, ranks, slots = fabric.names[over[0]], taken[over[0]], room[over[0]]
        raise InvalidPlacement(f"host {name} has {slots} slots but {ranks} ranks")
    switches = np.flatnonzero((taken > 0) & (fabric.kind != HOST))
    if len(switches):
        raise InvalidPlacement(f"{fabric.names[switches[0]]} is a switch and cannot run ranks")


def launchable(name: str) -> bool:
    """Return True if launchers' files allow a host's name."""
    return _LAUNCHABLE.fullmatch(name) is not None


def host_names(placement: Placement, fabric: Fabric) -> Sequence[str]:
    """Return the host of each rank, with names that launchers' files allow.

    Raises
    ------
    InvalidPlacement
        A name contains a blank or a special character of such files (``= : , # +`` ...).
    """
    names = {vertex: fabric.names[vertex] for vertex in dict.fromkeys(placement.host_of_rank.tolist())}
    for name in names.values():
        if not launchable(name):
            raise InvalidPlacement(
                f"host name {name!r} is not allowed in the file: use only A-Z a-z 0-9 _ . -"
            )
    return [names[vertex] for vertex in placement.host_of_rank.tolist()]


def runs_of_ranks(placement: Placement, fabric: Fabric) -> list[tuple[str, int]]:
    """Return the host of each run of ranks and the length of the run, in rank order; see `host_names`."""
    return [(host, sum(1 for _ in run)) for host, run in groupby(host_names(placement, fabric))]
