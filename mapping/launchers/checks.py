"""What must hold before a placement is written to a launcher's file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from registry.errors import InvalidPlacement
from registry.model import HOST, Fabric, Placement

_LAUNCHABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def check_placement(placement: Placement, fabric: Fabric) -> None:
    """Raise `InvalidPlacement` unless each rank sits once, on an allocated host with room for it."""
    if placement.ranks == 0:
        raise InvalidPlacement("the placement has no ranks")
    allocation = placement.allocation
    vertices = np.concatenate([placement.host_of_rank, allocation.hosts])
    if int(vertices.min()) < 0 or int(vertices.max()) >= len(fabric):
        raise InvalidPlacement("the placement belongs to another fabric: it names a vertex beyond this one's")
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))
    room = np.zeros(len(fabric), np.int64)
    room[allocation.hosts] = allocation.slots
    over = np.flatnonzero(taken > room)
    if len(over):
        name, ranks, slots = fabric.names[over[0]], taken[over[0]], room[over[0]]
        raise InvalidPlacement(f"host {name} has {slots} slots and got {ranks} ranks")
    switches = np.flatnonzero((taken > 0) & (fabric.kind != HOST))
    if len(switches):
        raise InvalidPlacement(f"{fabric.names[switches[0]]} is a switch and takes no ranks")


def launchable(name: str) -> bool:
    """Whether launchers' files can hold a host's name."""
    return _LAUNCHABLE.fullmatch(name) is not None


def host_names(placement: Placement, fabric: Fabric) -> Sequence[str]:
    """The host of each rank, by names that launchers' files can hold.

    Raises
    ------
    InvalidPlacement
        A name with a blank or a character that means something in such files (``= : , # +`` ...).
    """
    names = {int(vertex): fabric.names[vertex] for vertex in np.unique(placement.host_of_rank)}
    for name in names.values():
        if not launchable(name):
            raise InvalidPlacement(
                f"host name {name!r} would break the file: only A-Z a-z 0-9 _ . - may occur"
            )
    return [names[vertex] for vertex in placement.host_of_rank.tolist()]


def consecutive(placement: Placement, fabric: Fabric, launcher: str) -> list[tuple[str, int]]:
    """Hosts in the order of ranks, and how many each has, where these follow one another.

    Parameters
    ----------
    launcher : str
        For the error: who gives consecutive ranks to a host.

    Raises
    ------
    InvalidPlacement
        A host whose ranks do not follow one another; a name that files cannot hold.
    """
    runs = [(host, sum(1 for _ in run)) for host, run in groupby(host_names(placement, fabric))]
    seen: set[str] = set()
    for host, _ in runs:
        if host in seen:
            raise InvalidPlacement(
                f"the ranks of host {host} do not follow one another: {launcher} gives consecutive ranks to "
                "a host"
            )
        seen.add(host)
    return runs
