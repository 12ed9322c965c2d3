"""How scattered a job is: groups of neighbouring hosts that it touches, against the fewest that it needs.

Hosts are neighbours where they hang on the same switches: on one leaf switch, or, with several rails, on the
same set of them. Hosts that forward themselves (direct networks) hang on none and are a group each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue
from registry.model import Fabric, Ints, Longs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    """Groups of neighbouring hosts that a job touches.

    Attributes
    ----------
    groups : int
        That it has hosts in.
    fewest : int
        That its number of hosts needs on this fabric, were all of it free.
    """

    groups: int
    fewest: int

    @property
    def times(self) -> float:
        """Groups over the fewest: 1 is the best there is."""
        return self.groups / self.fewest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """The hosts of a fabric by the switches that they hang on; made once a fabric.

    Attributes
    ----------
    group : int32[n]
        By vertex, numbered by the first host of each; -1 for switches.
    room : int64[g]
        Hosts that the 1, 2, ... largest groups hold together.
    """

    group: Ints
    room: Longs

    @classmethod
    def of(cls, fabric: Fabric) -> Self:
        """Group the hosts of a fabric."""
        links = fabric.links
        host = links.source
        hangs = (fabric.kind[host] == 0) & ~fabric.forwards[host] & fabric.forwards[links.target]
        pairs = np.unique(np.stack((host[hangs], links.target[hangs]), axis=1), axis=0)
        first = np.searchsorted(pairs[:, 0], np.arange(len(fabric) + 1))
        number: dict[tuple[int, ...], int] = {}
        group = np.full(len(fabric), -1, np.int32)
        for vertex in fabric.hosts.tolist():
            switches = tuple(pairs[first[vertex] : first[vertex + 1], 1].tolist())
            group[vertex] = number.setdefault(switches or (-1, vertex), len(number))
        sizes = np.bincount(group[group >= 0], minlength=len(number))
        return cls(group=group, room=np.cumsum(np.sort(sizes)[::-1]))

    def fragmentation(self, hosts: ArrayLike) -> Fragmentation:
        """Of a job on these hosts (vertices, each counted once).

        Raises
        ------
        InvalidValue
            No hosts, or a vertex that is no host.
        """
        vertices = np.unique(np.asarray(hosts, np.int64))
        if not len(vertices):
            raise InvalidValue("fragmentation.hosts", "a job has at least one host")
        if int(vertices[0]) < 0 or int(vertices[-1]) >= len(self.group):
            raise InvalidValue("fragmentation.hosts", f"outside 0 .. {len(self.group) - 1}")
        groups = np.unique(self.group[vertices])
        if int(groups[0]) < 0:
            raise InvalidValue("fragmentation.hosts", "a switch is no host")
        return Fragmentation(groups=len(groups), fewest=int(np.searchsorted(self.room, len(vertices))) + 1)


def fragmentation(fabric: Fabric, hosts: ArrayLike) -> Fragmentation:
    """Of one job; for several make `Neighbours` once.

    Raises
    ------
    InvalidValue
    """
    return Neighbours.of(fabric).fragmentation(hosts)
