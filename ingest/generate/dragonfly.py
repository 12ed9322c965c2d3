"""Dragonflies: groups of fully connected switches, the groups fully connected in turn (Kim et al. 2008)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ingest.generate.checks import each, pairs, switched, whole
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

    The switches of a group are fully connected. Every two groups are connected by ``a * h // (g - 1)`` global
    cables; remaining global ports stay open. The ports of a group, switch by switch, lead to the groups after
    it in turn. By default there are ``a * h + 1`` groups with one cable for every two, which is the largest
    dragonfly (Kim, Dally, Scott and Abts, ISCA 2008, section 3.1). Hosts are at most 5 links apart.

    Parameters
    ----------
    a, h, p : int
        Number of switches per group; of global ports and of hosts per switch.
    g : int, optional
        Number of groups.
    capacities : (float, float, float)
        Bytes/s in each direction of a host's, a local and a global cable.
    """
    whole("dragonfly.a", a, 1)
    whole("dragonfly.h", h, 0)
    whole("dragonfly.p", p, 1)
    groups = whole("dragonfly.g", a * h + 1 if g is None else g, 1, a * h + 1)
    rates = each("dragonfly.capacities", capacities, 3)
    switches = groups * a
    whole("dragonfly.hosts", switches * p, 1)
    return switched(
        [f"g{v // a}s{v % a}" for v in range(switches)],
        p,
        (_local(groups, a), _global(groups, a, h)),
        rates,
        whole("dragonfly.slots", slots, 1),
    )


def _local(groups: int, a: int) -> Longs:
    within = np.array(list(combinations(range(a), 2)), np.int64).reshape(-1, 2)
    return (np.arange(groups)[:, None, None] * a + within).reshape(-1, 2)


def _global(groups: int, a: int, h: int) -> Longs:
    """Return the global cables: in round r, port ``r * (g - 1) + d - 1`` of group i leads to group i + d."""
    if groups < 2:
        return np.zeros((0, 2), np.int64)
    rounds = a * h // (groups - 1)
    group, step, turn = np.indices((groups, groups - 1, rounds)).reshape(3, -1)
    other = (group + step + 1) % groups
    here = group * a + (turn * (groups - 1) + step) // h
    there = other * a + (turn * (groups - 1) + groups - step - 2) // h
    once = group < other
    return pairs(here[once], there[once])
