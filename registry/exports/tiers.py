"""A network of switches as a scheduler's tree: groups of hosts on the same switches, and what joins them.

Real networks are no trees: a leaf has many spines above it. What a scheduler wants to know is which hosts are
how near, so a switch of the tree stands for all switches that play its part:

1. Hosts on the same switches are a group: those of a leaf, or of all leaves of a set of rails. Hosts on only
   some of a group's switches belong to it where it has at least as many hosts as they are: a dead rail makes
   no new group, a login node on two leaves does not join them.
2. A switch's level is its distance from the nearest host. For each level from 2 on, groups that are connected
   by switches up to that level are put below one switch of the tree; a level that joins nothing new is left
   out.

Groups of a dragonfly are thus all right below one switch: that its groups are nearer inside is not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from registry.errors import InvalidValue
from registry.model import HOST, Fabric, Floats, Ints, Longs

GIGABIT = 1e9 / 8
"""Bytes/s."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


class Tier(NamedTuple):
    """A switch of the tree.

    Attributes
    ----------
    name : str
        One that configuration files can hold; unique, also among hosts.
    stands_for : tuple of str
        The fabric's switches that it stands for.
    children : tuple of str
        Switches of the tree right below; none of the lowest.
    hosts : tuple of str
        Hosts right below; none but of the lowest.
    capacity : float
        Least bytes/s of anything right below towards it.
    """

    name: str
    stands_for: tuple[str, ...]
    children: tuple[str, ...]
    hosts: tuple[str, ...]
    capacity: float


class Tree(NamedTuple):
    """Tiers, a parent before its children, and hosts that are on no switch."""

    tiers: tuple[Tier, ...]
    left_out: tuple[str, ...]


def tiers(fabric: Fabric) -> Tree:
    """The tree of a switched network.

    Raises
    ------
    InvalidValue
        No host is on a switch, as in a torus; a host's name that configuration files cannot hold.
    """
    for host in fabric.hosts.tolist():
        if not _NAME.fullmatch(fabric.names[host]):
            raise InvalidValue("fabric.names", f"{fabric.names[host]!r} is no name that a scheduler takes")
    groups, left_out = _groups(fabric)
    if not groups:
        raise InvalidValue("fabric.links", "no host is on a switch: a direct network has no tree of switches")
    names = _Names(fabric)
    level = _levels(fabric)
    upward = np.bincount(
        fabric.links.source, fabric.links.capacity * (level[fabric.links.target] == 1), minlength=len(fabric)
    )
    found, top = [], []
    for switches, hosts in groups:
        name = names.of(min(switches))
        stands_for = tuple(fabric.names[vertex] for vertex in sorted(switches))
        inside = tuple(fabric.names[host] for host in hosts)
        found.append(Tier(name, stands_for, (), inside, float(upward[hosts].min())))
        top.append((name, np.asarray(sorted(switches), np.int64)))
    for at in range(2, max(2, int(level.max())) + 1):
        top, new = _joined(fabric, level, at, top, names)
        found += new
    return Tree(tuple(reversed(found)), tuple(fabric.names[host] for host in left_out))


def _groups(fabric: Fabric) -> tuple[list[tuple[frozenset[int], list[int]]], list[int]]:
    """Switches and hosts of each group, by the first host; and hosts on no switch."""
    on: dict[frozenset[int], list[int]] = {}
    left_out = []
    for host in fabric.hosts.tolist():
        near = fabric.neighbour[fabric.indptr[host] : fabric.indptr[host + 1]]
        switches = frozenset(near[fabric.kind[near] != HOST].tolist())
        if switches:
            on.setdefault(switches, []).append(host)
        else:
            left_out.append(host)
    kept: dict[frozenset[int], list[int]] = {}
    of_switch: dict[int, list[frozenset[int]]] = {}
    for switches in sorted(on, key=lambda one: (-len(one), -len(on[one]), on[one][0])):
        larger = [
            one
            for one in of_switch.get(min(switches), ())
            if switches < one and len(on[one]) >= len(on[switches])
        ]
        into = max(larger, key=lambda one: (len(kept[one]), -kept[one][0]), default=switches)
        if into is switches:
            kept[switches] = []
            for switch in switches:
                of_switch.setdefault(switch, []).append(switches)
        kept[into] += on[switches]
    return sorted(((key, sorted(hosts)) for key, hosts in kept.items()), key=lambda one: one[1][0]), left_out


def _levels(fabric: Fabric) -> Ints:
    """Distance of each vertex from the nearest host; -1 where no path leads there."""
    level = np.full(len(fabric), -1, np.int32)
    level[fabric.hosts] = 0
    source, target = fabric.links.source, fabric.links.target
    for at in range(1, len(fabric) + 1):
        reached = target[(level[source] == at - 1) & (level[target] < 0)]
        if not len(reached):
            break
        level[reached] = at
    return level


def _joined(
    fabric: Fabric, level: Ints, at: int, top: list[tuple[str, Longs]], names: _Names
) -> tuple[list[tuple[str, Longs]], list[Tier]]:
    """What is on top once switches up to this level join: names and all their switches; and new tiers."""
    part = _components(fabric, level, at, top)
    upward = _upward(fabric, part, top)
    children: dict[int, list[int]] = {}
    for index, (_, members) in enumerate(top):
        children.setdefault(int(part[members[0]]), []).append(index)
    above, new = [], []
    for label, below in children.items():
        if len(below) == 1:
            above.append(top[below[0]])
            continue
        members = np.flatnonzero(part == label)
        own = np.setdiff1d(members, np.concatenate([top[index][1] for index in below]))
        highest = own[level[own] == level[own].max()] if len(own) else own
        name = names.of(int(highest[0])) if len(highest) else names.made(f"tier{at}")
        stands_for = tuple(fabric.names[vertex] for vertex in own.tolist())
        inside = tuple(top[index][0] for index in below)
        new.append(Tier(name, stands_for, inside, (), float(upward[below].min())))
        above.append((name, members))
    return above, new


def _components(fabric: Fabric, level: Ints, at: int, top: list[tuple[str, Longs]]) -> Ints:
    """Label of the component of each switch up to a level, those together on top joined; -1 elsewhere."""
    inside = (level >= 1) & (level <= at) & (fabric.kind != HOST)
    links = inside[fabric.links.source] & inside[fabric.links.target]
    pairs = [np.stack((fabric.links.source[links], fabric.links.target[links]), axis=1).astype(np.int64)]
    pairs += [np.stack((np.full(len(one), one[0]), one), axis=1) for _, one in top]
    ends = np.concatenate(pairs)
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(fabric),) * 2)
    label = connected_components(graph, directed=False)[1]
    return np.where(inside, label, -1).astype(np.int32)


def _upward(fabric: Fabric, part: Ints, top: list[tuple[str, Longs]]) -> Floats:
    """float64[top]: bytes/s from the switches of each to others of its component; shared ones count once."""
    child = np.full(len(fabric), -1, np.int64)
    for index in range(len(top) - 1, -1, -1):
        child[top[index][1]] = index
    source, target = fabric.links.source, fabric.links.target
    rows = (child[source] >= 0) & (child[source] != child[target]) & (part[source] == part[target])
    return np.bincount(child[source[rows]], fabric.links.capacity[rows], len(top)).astype(np.float64)


class _Names:
    """Names for switches of the tree that configuration files can hold, none twice."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._taken = Counter(fabric.names[host] for host in fabric.hosts.tolist())

    def of(self, vertex: int) -> str:
        """After a switch of the fabric."""
        return self.made(self._fabric.names[vertex])

    def made(self, text: str) -> str:
        """After a text, with a number behind it where it is taken."""
        plain = name = _NOT_IN_NAMES.sub("_", text).lstrip(".-") or "switch"
        while name in self._taken:
            self._taken[plain] += 1
            name = f"{plain}-{self._taken[plain]}"
        self._taken[name] += 1
        return name
