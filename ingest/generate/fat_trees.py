"""Fat trees: extended generalised ones, and trees of leaf switches below director-class switches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from ingest.generate.checks import cabled, each, numbered, pairs, whole, wholes
from registry.errors import InvalidValue
from registry.model import Fabric, Longs


def extended_generalised_fat_tree(
    children: Sequence[int],
    parents: Sequence[int],
    *,
    cables: Sequence[int] | None = None,
    capacity: float | Sequence[float] = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return the tree XGFT(h; m_1 .. m_h; w_1 .. w_h) of Ohring, Ibel, Das and Kumar (IPPS 1995).

    Level l has ``m_{l+1} * ... * m_h * w_1 * ... * w_l`` vertices; level 0 are the hosts. A vertex of level l
    has m_l vertices below and w_{l+1} above: those whose labels differ only in that place.

    Parameters
    ----------
    children, parents : sequence of int
        m_1 .. m_h and w_1 .. w_h, from the hosts up. With equal capacities the oversubscription of level l is
        ``m_l / w_{l+1}``.
    cables : sequence of int, optional
        Number of parallel cables between a vertex of level l - 1 and one of level l; default: one each.
    capacity : float or sequence of float
        Bytes/s in each direction of a cable, for all levels or one for each.
    """
    below, above = wholes("fat_tree.children", children, 1), wholes("fat_tree.parents", parents, 1)
    if len(below) != len(above):
        raise InvalidValue("fat_tree.parents", f"has {len(above)} numbers, not {len(below)}")
    bundle = (1,) * len(below) if cables is None else wholes("fat_tree.cables", cables, 1)
    if len(bundle) != len(below):
        raise InvalidValue("fat_tree.cables", f"has {len(bundle)} numbers, not {len(below)}")
    rates = each("fat_tree.capacity", capacity, len(below))
    size = [math.prod(below[at:]) * math.prod(above[:at]) for at in range(len(below) + 1)]
    whole("fat_tree.hosts", sum(size), 1)
    first = np.r_[0, np.cumsum(size)]
    groups = [
        np.repeat(_between(below, above, at) + first[at : at + 2], copies, axis=0)
        for at, copies in enumerate(bundle)
    ]
    names = [name for at, count in enumerate(size) for name in numbered(f"l{at}-" if at else "node", count)]
    level = np.repeat(np.arange(len(size)), size)
    return cabled(
        names,
        groups,
        rates,
        slots=np.where(level == 0, whole("fat_tree.slots", slots, 1), 0),
        level=level,
    )


def k_ary_n_tree(k: int, n: int, *, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return ``k ** n`` hosts below n levels of ``k ** (n - 1)`` switches (Petrini and Vanneschi 1997)."""
    whole("k_ary_n_tree.k", k, 1, 1 << 12)
    whole("k_ary_n_tree.n", n, 1, 24)
    return extended_generalised_fat_tree((k,) * n, (1,) + (k,) * (n - 1), capacity=capacity, slots=slots)


def three_level(
    pods: int = 50, leaves: int = 20, hosts: int = 20, *, capacity: float = 1.25e10, slots: int = 1
) -> Fabric:
    """Return pods of leaf switches, each pod with as many upper switches, all of these below a core.

    A leaf has `hosts` hosts and a cable to each upper switch of its pod; upper switch i of every pod has
    `leaves` cables to the same `leaves` core switches. The defaults are 20,000 hosts on 1,000 leaves.

    Parameters
    ----------
    pods, leaves, hosts : int
        Number of pods, of leaves per pod, and of hosts per leaf.
    """
    return extended_generalised_fat_tree(
        (hosts, leaves, pods), (1, leaves, leaves), capacity=capacity, slots=slots
    )


def director_tree(
    hosts: int,
    hosts_per_leaf: int,
    directors: int,
    lines: int,
    *,
    ports: int = 24,
    cables: int = 1,
    capacity: float = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return leaf switches below director-class switches, each itself a two-level tree of chips.

    A director has `lines` line chips of `ports` ports, half of them down, and ``lines / 2`` spine chips. A
    line chip has ``ports / lines`` cables to each of them. Leaf l has `cables` cables to every director, to
    its down ports from ``l * cables`` on. Hosts fill the leaves evenly, the first ones with one more.

    Parameters
    ----------
    hosts, hosts_per_leaf : int
        Number of hosts, and the largest number on a leaf.
    directors, lines : int
        Number of directors, and of line chips per director.
    ports, cables : int
        Number of ports per chip, and of cables from each leaf to each director.
    """
    field = "director_tree."
    whole(field + "hosts", hosts, 1)
    whole(field + "hosts_per_leaf", hosts_per_leaf, 1)
    whole(field + "directors", directors, 1, 1 << 12)
    whole(field + "ports", ports, 2, 1 << 12)
    if lines < 2 or lines % 2 or ports % lines:
        raise InvalidValue(field + "lines", f"is {lines}, must be even and divide {ports}")
    leaves = -(-hosts // hosts_per_leaf)
    whole(field + "cables", cables, 1, lines * ports // 2 // leaves)
    per, spines = lines + lines // 2, lines // 2
    leaf_of = np.arange(hosts) * leaves // hosts
    ends = [pairs(np.arange(hosts), hosts + leaf_of)]
    for director in range(directors):
        line = hosts + leaves + director * per
        leaf = np.repeat(np.arange(leaves), cables)
        used = np.arange(leaves * cables) // (ports // 2)
        ends.append(pairs(hosts + leaf, line + used))
        inner = np.array(list(product(range(lines), range(lines, lines + spines))))
        ends.append(line + np.repeat(inner, ports // lines, axis=0))
    level = [np.repeat((0, 1), (hosts, leaves)), np.tile(np.repeat((2, 3), (lines, spines)), directors)]
    names = [*numbered("node", hosts), *numbered("leaf", leaves)]
    for director in range(directors):
        names += [*numbered(f"d{director}line", lines), *numbered(f"d{director}spine", spines)]
    return _of_switches(names, ends, capacity, np.concatenate(level), whole(field + "slots", slots, 1))


def juropa_like(*, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return 3,292 hosts on 138 leaves of 24 or 23, each with a cable to 12 directors of 144 ports.

    The paper's Juropa (section 5.4.1) was read from the machine and is not published; this is a fat tree of
    its size, of chips of 24 ports, oversubscribed 2:1.
    """
    return director_tree(3292, 24, 12, 12, capacity=capacity, slots=slots)


def ranger_like(*, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return 4,081 hosts on 341 leaves, each with 6 cables to each of two switches of 3,456 ports.

    Leaves have 12 or 11 hosts. The paper's Ranger (section 5.4.2) was read from the machine and is not
    published. Here a switch is a three-level tree of 720 chips of 24 ports: 24 cards of 12 lower and 12 upper
    chips, fully connected, below 144 spine chips, each with a cable to one upper chip of every card.
    """
    hosts, leaves, directors, cables = 4081, 341, 2, 6
    leaf_of = np.arange(hosts) * leaves // hosts
    ends = [pairs(np.arange(hosts), hosts + leaf_of)]
    names = [*numbered("node", hosts), *numbered("leaf", leaves)]
    low, card_chips, spines = 288, 12, 144
    for director in range(directors):
        first = hosts + leaves + director * (2 * low + spines)
        port = np.arange(leaves * cables)
        ends.append(pairs(hosts + port // cables, first + port // card_chips))
        chip = np.repeat(np.arange(low), card_chips)
        turn = np.tile(np.arange(card_chips), low)
        upper = low + chip // card_chips * card_chips + turn
        ends.append(first + pairs(chip, upper))
        spine = 2 * low + chip % card_chips * card_chips + turn
        ends.append(first + pairs(low + chip, spine))
        for kind, count in (("low", low), ("up", low), ("spine", spines)):
            names += numbered(f"d{director}{kind}", count)
    inside = np.tile(np.repeat((2, 3, 4), (low, low, spines)), directors)
    level = np.r_[np.zeros(hosts, int), np.ones(leaves, int), inside]
    return _of_switches(names, ends, capacity, level, whole("ranger_like.slots", slots, 1))


def _between(below: tuple[int, ...], above: tuple[int, ...], at: int) -> Longs:
    """Return the linked vertices of level `at` and `at` + 1, each numbered within its level.

    A label is (w_1 .. w_at, m_at+1 .. m_h), read from the m of the highest level, so that the hosts of a leaf
    have consecutive numbers.
    """
    high, down, up = math.prod(below[at + 1 :]), below[at], above[at]
    low = math.prod(above[:at])
    pod, child, parent, rest = np.indices((high, down, up, low)).reshape(4, -1)
    lower = (pod * down + child) * low + rest
    upper = (pod * low + rest) * up + parent
    return pairs(lower, upper)


def _of_switches(names: list[str], ends: list[Longs], capacity: float, level: Longs, slots: int) -> Fabric:
    return cabled(
        names,
        ends,
        each("fat_tree.capacity", capacity, 1) * len(ends),
        slots=np.where(level == 0, slots, 0),
        level=level,
    )
