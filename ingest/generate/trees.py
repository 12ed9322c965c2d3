"""Trees of switches: fat trees, trees below director-class switches, pods of accelerators and Tianhe-3."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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

    Args:
        children, parents: m_1 .. m_h and w_1 .. w_h, from the hosts up. With equal capacities the
            oversubscription of level l is ``m_l / w_{l+1}``.
        cables: Number of parallel cables between a vertex of level l - 1 and one of level l; default: one
            each.
        capacity: Bytes/s in each direction of a cable, for all levels or one for each.
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

    Args:
        pods, leaves, hosts: Number of pods, of leaves per pod, and of hosts per leaf.
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

    Args:
        hosts, hosts_per_leaf: Number of hosts, and the largest number on a leaf.
        directors, lines: Number of directors, and of line chips per director.
        ports, cables: Number of ports per chip, and of cables from each leaf to each director.
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


GIGABIT = 1e9 / 8
"""Bytes/s of one Gbit/s."""


@dataclass(frozen=True, slots=True)
class RailPods:
    """Sizes and rates of pods of NVLink domains.

    Args:
        pods, domains, gpus: Number of pods; of NVLink domains in a pod; of accelerators in a domain.
        rails: Number of leaf switches in a pod, a divisor of `gpus`; one per accelerator of a domain by
            default.
        spines: Number of spine switches; 0 for "rail-only": one pod, and accelerators that forward.
        cables: Number of parallel cables between a leaf and a spine.
        capacities: Bytes/s in each direction of an accelerator's NVLink, of its network cable and of a cable
            above; default: 450e9, 50e9 and 50e9 (NVLink 4 and 400 Gbit/s).
        relays: True if accelerators forward between NVLink and their rail, like NCCL's PXN.
    """

    pods: int = 2
    domains: int = 32
    gpus: int = 8
    rails: int | None = None
    spines: int = 8
    cables: int = 1
    capacities: tuple[float, float, float] = (3600 * GIGABIT, 400 * GIGABIT, 400 * GIGABIT)
    relays: bool = False
    slots: int = 1

    def __post_init__(self) -> None:
        whole("rail_pods.pods", self.pods, 1)
        whole("rail_pods.gpus", self.gpus, 1)
        count = whole("rail_pods.rails", self.rails_of_pod, 1, self.gpus)
        if self.gpus % count:
            reason = f"is {count}, which does not divide {self.gpus} accelerators of a domain"
            raise InvalidValue("rail_pods.rails", reason)
        whole("rail_pods.spines", self.spines, 0)
        if not self.spines and count * self.pods > 1 and (self.pods > 1 or not self.relays):
            reason = "is 0: without spines there must be one pod whose accelerators forward (relays)"
            raise InvalidValue("rail_pods.spines", reason)
        whole("rail_pods.domains", self.domains, 1)
        whole("rail_pods.gpus", self.pods * self.domains * self.gpus, 1)
        whole("rail_pods.cables", self.cables, 1, 1 << 12)
        whole("rail_pods.slots", self.slots, 1)

    @property
    def rails_of_pod(self) -> int:
        """Number of rails of a pod."""
        return self.gpus if self.rails is None else self.rails


def rail_pods(size: RailPods) -> Fabric:
    """Return pods of NVLink domains; every accelerator has a network port, every pod and rail a leaf switch.

    A vertex that hosts ranks is an accelerator with its network adapter. The accelerators of a domain (a
    server of 8, a rack of 72) are connected by one NVLink switch. Accelerator i of a domain is on rail ``i %
    rails``, at the leaf switch of its pod and rail, so that accelerators with the same number share a leaf,
    as in NVIDIA's reference designs (DGX SuperPOD: scalable units of 32 servers, 8 rails; a rack of 72 has 4
    rails). Every leaf has `cables` cables to every spine. Accelerators of a domain, or of a rail and pod, are
    2 links apart, all others 4.

    There are ``pods * domains * gpus`` accelerators, ``pods * domains`` NVLink switches, ``pods * rails``
    leaves, and ``2 * pods * domains * gpus + pods * rails * spines * cables`` cables. Between two halves of
    an even number of pods are ``pods / 2 * rails * spines * cables`` cables, if that is not more than the
    accelerators below.
    """
    rails, servers = size.rails_of_pod, size.pods * size.domains
    leaves, count = size.pods * rails, servers * size.gpus
    gpu = np.arange(count)
    domain = gpu // size.gpus
    nvlink, leaf = count, count + servers
    above = np.indices((leaves, size.spines)).reshape(2, -1).T + np.array((leaf, leaf + leaves))
    cables = [
        pairs(gpu, nvlink + domain),
        pairs(gpu, leaf + domain // size.domains * rails + gpu % size.gpus % rails),
        np.repeat(above, size.cables, axis=0),
    ]
    counts = count, servers, leaves, size.spines
    return cabled(
        _names(size),
        cables,
        each("rail_pods.capacities", size.capacities, 3),
        slots=np.repeat((size.slots, 0, 0, 0), counts),
        direct=size.relays,
        level=np.repeat((0, 1, 1, 2), counts),
    )


def _names(size: RailPods) -> list[str]:
    inside = [f"p{pod}d{domain}" for pod in range(size.pods) for domain in range(size.domains)]
    return [
        *(f"{name}g{gpu}" for name in inside for gpu in range(size.gpus)),
        *(f"{name}nvlink" for name in inside),
        *(f"p{pod}r{rail}" for pod in range(size.pods) for rail in range(size.rails_of_pod)),
        *(f"spine{spine}" for spine in range(size.spines)),
    ]


SIDE = 48
"""Number of nodes of half a chip."""


def tianhe3(
    rows: int,
    columns: int,
    *,
    chips: int | None = None,
    capacities: tuple[float, float, float] = (1.0, 24.0, 12.0),
    slots: int = 1,
) -> Fabric:
    """Return a grid of chips, each with two linked leaf switches (left and right) of 48 nodes.

    Chips of a row are connected by two switches, one for all left halves and one for all right ones, and so
    are those of a column. The paper shows this only as a drawing; it is the simplest structure that gives its
    Table 1, where hops count the switches of a path: 1 and 2 within a chip on the same side and on different
    ones, 3 and 4 within a row or column, 5 and 6 elsewhere. Nodes are numbered by chip, row by row, left half
    first.

    Args:
        rows, columns: Size of the grid of chips.
        chips: Number of chips, the first ones of the grid; all by default.
        capacities: Bytes/s in each direction of a node's link, of the link between two halves, and of a
            half's link to a row or column switch. The paper gives none; the defaults are multiples of a
            node's.
    """
    whole("tianhe3.rows", rows, 1, 1 << 10)
    whole("tianhe3.columns", columns, 1, 1 << 10)
    count = whole("tianhe3.chips", rows * columns if chips is None else chips, 1, rows * columns)
    rates = each("tianhe3.capacities", capacities, 3)
    nodes, leaves = count * 2 * SIDE, 2 * count
    leaf = np.arange(leaves)
    chip, side = leaf // 2, leaf % 2
    # Row switches follow the leaves, and column switches follow those: two of each, left and right.
    row = leaves + chip // columns * 2 + side
    column = leaves + 2 * rows + chip % columns * 2 + side
    node = np.arange(nodes)
    cables = [
        pairs(node, nodes + node // SIDE),
        pairs(nodes + leaf[::2], nodes + leaf[1::2]),
        pairs(nodes + np.r_[leaf, leaf], nodes + np.r_[row, column]),
    ]
    switches = leaves + 2 * (rows + columns)
    return cabled(
        [
            *numbered("node", nodes),
            *_chip_names("chip", count),
            *_chip_names("row", rows),
            *_chip_names("column", columns),
        ],
        cables,
        rates,
        slots=np.repeat((whole("tianhe3.slots", slots, 1), 0), (nodes, switches)),
        level=np.repeat((0, 1, 2), (nodes, leaves, switches - leaves)),
    )


def _chip_names(kind: str, count: int) -> list[str]:
    return [f"{kind}{number}{side}" for number in range(count) for side in "lr"]
