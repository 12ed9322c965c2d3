"""Fragmentation of a job: the groups of neighbouring hosts that it uses, compared with the fewest possible.

Hosts are neighbours if they are attached to the same switches: to one leaf switch, or, with several rails, to
the same set of switches. Hosts that forward (direct networks) are a group each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue
from registry.model import Fabric, Ints, Longs
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    """Groups of neighbouring hosts that a job uses.

    Attributes
    ----------
    groups : int
        Groups in which the job has hosts.
    fewest : int
        Groups that its number of hosts would need on an empty fabric.
    """

    groups: int
    fewest: int

    @property
    def times(self) -> float:
        """Groups divided by the fewest; 1 is the best possible."""
        return self.groups / self.fewest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """The hosts of a fabric by the switches that they are attached to; made once per fabric.

    Attributes
    ----------
    group : int32[n]
        Group of each vertex, numbered by the first host of each; -1 for switches.
    room : int64[g]
        Total hosts of the 1, 2, ... largest groups.
    """

    group: Ints
    room: Longs

    __repr__ = one_line

    @classmethod
    def of(cls, fabric: Fabric) -> Self:
        """Return the hosts of a fabric in groups."""
        links = fabric.links
        host = links.source
        attached = (fabric.kind[host] == 0) & ~fabric.forwards[host] & fabric.forwards[links.target]
        pairs = np.unique(np.stack((host[attached], links.target[attached]), axis=1), axis=0)
        first = np.searchsorted(pairs[:, 0], np.arange(len(fabric) + 1))
        number: dict[tuple[int, ...], int] = {}
        group = np.full(len(fabric), -1, np.int32)
        for vertex in fabric.hosts.tolist():
            switches = tuple(pairs[first[vertex] : first[vertex + 1], 1].tolist())
            group[vertex] = number.setdefault(switches or (-1, vertex), len(number))
        sizes = np.bincount(group[group >= 0], minlength=len(number))
        return cls(group=group, room=np.cumsum(np.sort(sizes)[::-1]))

    def fragmentation(self, hosts: ArrayLike) -> Fragmentation:
        """Return the fragmentation of a job on these hosts (vertices, each counted once).

        Raises
        ------
        InvalidValue
            There are no hosts, or a vertex is not a host.
        """
        vertices = np.unique(np.asarray(hosts, np.int64))
        if not len(vertices):
            raise InvalidValue("fragmentation.hosts", "must contain at least one host")
        if int(vertices[0]) < 0 or int(vertices[-1]) >= len(self.group):
            raise InvalidValue("fragmentation.hosts", f"must be from 0 to {len(self.group) - 1}")
        groups = np.unique(self.group[vertices])
        if int(groups[0]) < 0:
            raise InvalidValue("fragmentation.hosts", "must not contain a switch")
        return Fragmentation(groups=len(groups), fewest=int(np.searchsorted(self.room, len(vertices))) + 1)
