"""Dragonflies: groups of fully joined switches, the groups fully joined in turn (Kim et al. 2008)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ingest.generate.checks import cabled, each, numbered, whole
from registry.model import Fabric, Longs


def dragonfly(
    a: int,
    h: int,
    p: int,
    g: int | None = None,
    *,
    capacities: tuple[float, float, float] = (1.0, 1.0, 1.0),
    slots: int = 1,
) -> Fabric:
    """Return a dragonfly of `g` groups of `a` switches, each with `h` global ports and `p` hosts.

    The switches of a group are fully joined; every two groups are joined by ``a * h // (g - 1)`` global
    cables, and global ports left over stay open. A group's ports, taken switch by switch, lead to the
    groups after it in turn. By default there are ``a * h + 1`` groups: one cable for every two, which is
    the largest dragonfly (Kim, Dally, Scott and Abts, ISCA 2008, section 3.1). Hosts are at most 5 links
    apart.

    Parameters
    ----------
    a, h, p : int
        Switches of a group, global ports and hosts of a switch.
    g : int, optional
        Groups.
    capacities : (float, float, float)
        Bytes/s of a host's, a local and a global cable and direction.
    slots : int
        Ranks a host takes.

    Raises
    ------
    InvalidValue
    """
    whole("dragonfly.a", a, 1)
    whole("dragonfly.h", h, 0)
    whole("dragonfly.p", p, 1)
    groups = whole("dragonfly.g", a * h + 1 if g is None else g, 1, a * h + 1)
    rates = each("dragonfly.capacities", capacities, 3)
    switches = groups * a
    hosts = whole("dragonfly.hosts", switches * p, 1)
    ends = _host_cables(hosts, p), _local(groups, a) + hosts, _global(groups, a, h) + hosts
    return cabled(
        [*numbered("node", hosts), *(f"g{v // a}s{v % a}" for v in range(switches))],
        np.concatenate(ends),
        np.repeat(rates, [len(part) for part in ends]),
        slots=np.r_[np.full(hosts, whole("dragonfly.slots", slots, 1)), np.zeros(switches, int)],
        level=np.r_[np.zeros(hosts, int), np.ones(switches, int)],
    )


def _host_cables(hosts: int, p: int) -> Longs:
    host = np.arange(hosts)
    return np.stack((host, hosts + host // p), axis=1)


def _local(groups: int, a: int) -> Longs:
    pairs = np.array(list(combinations(range(a), 2)), np.int64).reshape(-1, 2)
    return (np.arange(groups)[:, None, None] * a + pairs).reshape(-1, 2)


def _global(groups: int, a: int, h: int) -> Longs:
    """Round r joins group i by its port ``r * (g - 1) + d - 1`` to group i + d, for every d below g."""
    if groups < 2:
        return np.zeros((0, 2), np.int64)
    rounds = a * h // (groups - 1)
    group, step, turn = (
        part.ravel()
        for part in np.meshgrid(np.arange(groups), np.arange(1, groups), np.arange(rounds), indexing="ij")
    )
    other = (group + step) % groups
    here = group * a + (turn * (groups - 1) + step - 1) // h
    there = other * a + (turn * (groups - 1) + groups - step - 1) // h
    once = group < other
    return np.stack((here[once], there[once]), axis=1)
