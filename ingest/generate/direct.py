"""Networks without levels, in which every switch has hosts or every host forwards.

Tori, meshes, hypercubes, chordal rings, dragonflies (Kim et al. 2008), HyperX (Ahn et al., SC 2009), PERCS
(Hoefler and Snir 2011, section 5.3.2), Slim Fly (Besta and Hoefler, SC 2014) and irregular networks (Orduna,
Silla and Duato 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ingest.generate.checks import cabled, each, numbered, pairs, positive, switched, whole, wholes
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

LARGEST = 256
"""Largest q: 131,072 switches."""


class Field(NamedTuple):
    """The finite field of q = p ** m elements as tables.

    The elements are 0 .. q - 1: the digits of their numbers in base p are the coefficients of polynomials.
    """

    add: Longs
    multiply: Longs
    """int64[q, q]: Element of each sum and product."""
    powers: Longs
    """int64[q - 1]: Powers 0, 1, ... of a primitive element: every element except 0 once."""


def slim_fly(
    q: int,
    hosts: int | None = None,
    *,
    capacities: tuple[float, float] = (1.0, 1.0),
    slots: int = 1,
) -> Fabric:
    """Return the Slim Fly of a prime power ``q = 4 w + d``, d being -1, 0 or 1 (section II-B of the paper).

    The ``2 * q ** 2`` switches are (0, x, y) and (1, m, c) over the field of q elements. With sets X and X'
    of generators, (0, x, y) is connected to (0, x, y') if y - y' is in X, (1, m, c) to (1, m, c') if c - c'
    is in X', and (0, x, y) to (1, m, c) if ``y = m * x + c``. Each switch is connected to ``(3 * q - d) / 2``
    others and is two cables from all the rest; q = 5 is the graph of Hoffman and Singleton. The sets for each
    d are Hafner's (Geometric realisation of the graphs of McKay-Miller-Siran, J. Combinatorial Theory B 90,
    2004). No closed form of the bisection is known.

    Args:
        q: A power of a prime that is not 2 modulo 4, from 3 to 256.
        hosts: Number of hosts per switch; default: half its cables to other switches, rounded up, for full
            global bandwidth.
        capacities: Bytes/s in each direction of a host's cable and of one between switches.
    """
    whole("slim_fly.q", q, 3, LARGEST)
    prime_power(q)
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    degree = (3 * q - delta) // 2
    per = whole("slim_fly.hosts", -(-degree // 2) if hosts is None else hosts, 1)
    whole("slim_fly.hosts", 2 * q * q * per, 1)
    cables = switch_graph(q)
    rates = each("slim_fly.capacities", capacities, 2)
    names = [f"s{side}-{a}-{b}" for side in range(2) for a in range(q) for b in range(q)]
    return switched(names, per, [cables], rates, whole("slim_fly.slots", slots, 1))


def switch_graph(q: int) -> Longs:
    """Return the linked switches; (s, a, b) is number ``(s * q + a) * q + b`` (int64[q * q * degree, 2])."""
    numbers = field(q)
    inner = [_within(numbers, generators, side) for side, generators in enumerate(_generators(q, numbers))]
    x, m, c = np.indices((q, q, q)).reshape(3, -1)
    y = numbers.add[numbers.multiply[m, x], c]
    return np.concatenate((*inner, pairs(x * q + y, (q + m) * q + c)))


def _generators(q: int, numbers: Field) -> tuple[Longs, Longs]:
    """Return X and X': even and odd powers of a primitive element (for q = 4 w - 1 half, and negatives)."""
    power = numbers.powers
    if q % 4 == 3:
        w = (q + 1) // 4
        even = np.r_[0 : 2 * w - 1 : 2, 2 * w - 1 : 4 * w - 2 : 2]
        return power[even], power[(even + 1) % (q - 1)]
    if q % 2:
        return power[0 : q - 2 : 2], power[1 : q - 1 : 2]
    return power[0 : q - 1 : 2], power[np.arange(1, q, 2) % (q - 1)]


def _within(numbers: Field, generators: Longs, side: int) -> Longs:
    """Return the pairs of switches of one column that differ by a generator, each once."""
    q = len(numbers.add)
    linked = np.zeros((q, q), bool)
    for one in generators.tolist():
        linked[np.arange(q), numbers.add[:, one]] = True
    low, high = np.nonzero(np.triu(linked))
    column = (side * q + np.arange(q))[:, None] * q
    return pairs((column + low).ravel(), (column + high).ravel())


def field(q: int) -> Field:
    """Return the field of q elements, a power of a prime."""
    p, m = prime_power(q)
    digits = np.stack([np.arange(q) // p**place % p for place in range(m)], axis=1)
    add = ((digits[:, None] + digits) % p) @ p ** np.arange(m)
    powers = _powers(p, m)
    logarithm = np.zeros(q, np.int64)
    logarithm[powers] = np.arange(q - 1)
    multiply = powers[(logarithm[:, None] + logarithm) % (q - 1)]
    multiply[0, :] = multiply[:, 0] = 0
    return Field(add=add.astype(np.int64), multiply=multiply, powers=powers)


def prime_power(q: int) -> tuple[int, int]:
    """Return base and exponent of ``q = p ** m``; raise `InvalidValue` if q is no power of a prime."""
    p = next((p for p in range(2, q + 1) if q % p == 0), 0)
    exponents = [m for m in range(1, max(q, 1).bit_length()) if p**m == q]
    if not exponents:
        raise InvalidValue("slim_fly.q", f"is {q}, which is no power of a prime")
    return p, exponents[0]


def _powers(p: int, m: int) -> Longs:
    """Return the powers of x modulo the first monic polynomial of degree m that makes x primitive."""
    for low in product(range(p), repeat=m):
        found = _orbit(p, low)
        if len(found) == p**m - 1:
            return np.array(found, np.int64)
    raise AssertionError("every finite field has a primitive element")


def _orbit(p: int, low: tuple[int, ...]) -> list[int]:
    """Return the powers 1, x, x^2, ... up to the first repetition, with ``x^m = low_0 + low_1 x + ...``."""
    element = (1, *(0,) * (len(low) - 1))
    found: dict[tuple[int, ...], int] = {}
    while element not in found and any(element):
        found[element] = sum(digit * p**place for place, digit in enumerate(element))
        carry = element[-1]
        element = tuple((d + carry * c) % p for d, c in zip((0, *element[:-1]), low, strict=True))
    return list(found.values())


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

    Args:
        a, h, p: Number of switches per group; of global ports and of hosts per switch.
        g: Number of groups.
        capacities: Bytes/s in each direction of a host's, a local and a global cable.
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


def hyperx(
    sides: Sequence[int],
    hosts: int,
    *,
    widths: int | Sequence[int] = 1,
    capacity: float | Sequence[float] = 1.0,
    host_capacity: float = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return the network (L, S, K, T) of Ahn, Binkert, Davis, McLaren and Schreiber (SC 2009, section 3).

    There are ``P = S_1 * S_2 * ...`` switches of `hosts` hosts each; switches whose coordinates differ in
    only one dimension are connected by K_i cables. A HyperX of one dimension is a complete graph, one whose
    sides are all 2 a hypercube, one of equal sides and widths 1 a Hamming graph (the flattened butterfly).
    There are ``P * sum_i K_i * (S_i - 1) / 2`` cables between switches. The distance of two switches is the
    number of coordinates in which they differ: at most the number of sides above 1, and ``P / (P - 1) * sum_i
    (1 - 1 / S_i)`` in the mean of two different ones. Two halves across an even side i are connected by ``P *
    K_i * S_i / 4`` cables; the least of these is the bisection (section 3.2).

    Args:
        sides: S_1, S_2, ...: number of switches along each dimension.
        hosts: T: number of hosts per switch.
        widths: K_i: number of parallel cables between two switches of a line, for all dimensions or one for
            each.
        capacity: Bytes/s in each direction of a cable between switches, for all dimensions or one for each.
        host_capacity: Bytes/s in each direction of a host's cable.
    """
    sides = wholes("hyperx.sides", sides, 1)
    dimensions = len(sides)
    bundle = (widths,) * dimensions if isinstance(widths, int) else tuple(widths)
    if len(bundle) != dimensions:
        raise InvalidValue("hyperx.widths", f"has {len(bundle)} numbers, not {dimensions}")
    rates = each("hyperx.capacity", capacity, dimensions)
    switches = int(np.prod(sides))
    whole("hyperx.hosts", switches * whole("hyperx.hosts", hosts, 1), 1)
    rates = positive("hyperx.host_capacity", host_capacity), *rates
    place = np.stack(np.unravel_index(np.arange(switches), sides), axis=1)
    cables = [
        np.repeat(_along(place, sides, axis), whole("hyperx.widths", copies, 1, 1 << 12), axis=0)
        for axis, copies in enumerate(bundle)
    ]
    names = ["s" + "-".join(map(str, point)) for point in place.tolist()]
    return switched(names, hosts, cables, rates, whole("hyperx.slots", slots, 1))


def _along(place: Longs, sides: tuple[int, ...], axis: int) -> Longs:
    """Return the pairs of switches that differ only in this coordinate."""
    first = place[place[:, axis] == 0]
    found = [np.zeros((0, 2), np.int64)]
    for low, high in combinations(range(sides[axis]), 2):
        near, far = first.copy(), first.copy()
        near[:, axis], far[:, axis] = low, high
        found.append(pairs(*(np.ravel_multi_index(tuple(end.T), sides) for end in (near, far))))
    return np.concatenate(found)


ATTEMPTS = 10_000
FIGURE_3 = (
    *((0, 2), (0, 4), (0, 9), (1, 2), (1, 4), (1, 9), (2, 6), (3, 6)),
    *((3, 7), (3, 8), (4, 6), (5, 7), (5, 8), (5, 9), (7, 8)),
)
"""Linked switches in the paper's Figure 3."""


def irregular(
    switches: int = 16,
    *,
    ports: int = 8,
    hosts: int = 4,
    links: int = 3,
    capacity: float = 1.0,
    slots: int = 1,
    seed: int = 0,
) -> Fabric:
    """Return switches linked at random, each to `links` others by one link, each with `hosts` hosts.

    The paper's networks (section 5.1) have switches of 8 ports: 4 to hosts, 3 to other switches, one open.
    Pairs of open ports are drawn one after the other; if no pair fits or the network is not connected, all
    are drawn again. More hosts and links than ports, and an odd number of ends of links, are errors.

    Args:
        switches: Number of switches.
        ports, hosts, links: Number of ports, of hosts and of links to other switches per switch.
    """
    field = "irregular."
    count = whole(field + "switches", switches, 1, 1 << 16)
    whole(field + "links", links, 0 if count == 1 else 1, count - 1)
    whole(field + "hosts", hosts, 1)
    whole(field + "ports", ports, hosts + links)
    if count * links % 2 or (links == 1 and count > 2):
        raise InvalidValue(field + "links", f"{count} switches of {links} links cannot all be joined")
    generator = np.random.default_rng(seed)
    for _ in range(ATTEMPTS):
        pairs = _draw(count, links, generator)
        if pairs is not None and _connected(pairs, count):
            return _of_switches(pairs, count, hosts, capacity, slots)
    raise InvalidValue(field + "links", f"no network of {count} switches found in {ATTEMPTS} attempts")


def autonet(*, hosts: int = 4, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return the 10 switches of the 2004 paper's Figure 3.

    The text does not list the links; these give, with up*/down* routing from switch 6, its
    Table 2 to the digit and its Table 1 path for path.
    """
    whole("autonet.hosts", hosts, 1)
    return _of_switches(np.array(FIGURE_3, np.int64), 10, hosts, capacity, slots)


def _draw(count: int, links: int, generator: np.random.Generator) -> Longs | None:
    """Return pairs of linked switches, each switch in `links`; None if the remaining ports do not fit."""
    left = np.full(count, links)
    linked = np.eye(count, dtype=bool)
    pairs = []
    while left.any():
        chance = np.triu(left[:, None] * left * ~linked).ravel()
        if not chance.any():
            return None
        one, other = divmod(int(generator.choice(count * count, p=chance / chance.sum())), count)
        linked[one, other] = linked[other, one] = True
        left[[one, other]] -= 1
        pairs.append((one, other))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _connected(pairs: Longs, count: int) -> bool:
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(count, count))
    return int(connected_components(graph, directed=False)[0]) == 1


def _of_switches(pairs: Longs, count: int, hosts: int, capacity: float, slots: int) -> Fabric:
    rate = positive("irregular.capacity", capacity)
    names = numbered("switch", count)
    return switched(names, hosts, [pairs], (rate, rate), whole("irregular.slots", slots, 1))


GIB = float(2**30)
NODES = 32
"""Number of nodes of a supernode."""
DRAWER = 8
"""Number of nodes of a drawer."""


def percs(
    supernodes: int = 289,
    d_links: int = 9,
    *,
    capacities: tuple[float, float, float] = (24 * GIB, 5 * GIB, 10 * GIB),
    hosting: str = "random",
    seed: int = 0,
    slots: int = 1,
) -> Fabric:
    """Return supernodes of four drawers of eight nodes; every node hosts ranks and forwards traffic.

    A node is connected to the 7 others of its drawer by LL links and to the 24 others of its supernode by LR
    links. Every two supernodes are connected by one D link; the distance of two nodes is at most 3. There are
    at most ``32 * d_links + 1`` supernodes; with the defaults, 289 and 9, every node has 9 D links and the
    network 9,248 nodes, as in the paper's Figure 5(b). Its sentence "We connect all D links randomly" is
    taken to mean the nodes of a supernode that host its D links.

    Args:
        supernodes: Number of supernodes.
        d_links: Largest number of D links per node.
        capacities: Bytes/s in each direction of an LL, LR and D link; the paper gives 24, 5 and 10 GiB/s.
        hosting: ``random``, or ``in-order``: a supernode's first D links on its first node, and so on.
    """
    whole("percs.d_links", d_links, 1, 1 << 16)
    whole("percs.supernodes", supernodes, 1, NODES * d_links + 1)
    if hosting not in ("random", "in-order"):
        raise InvalidValue("percs.hosting", f"must be random or in-order, not {hosting!r}")
    rates = each("percs.capacities", capacities, 3)
    within = np.array(list(combinations(range(NODES), 2)))
    inside = (np.arange(supernodes)[:, None, None] * NODES + within).reshape(-1, 2)
    same_drawer = np.tile(within[:, 0] // DRAWER == within[:, 1] // DRAWER, supernodes)
    across = _d_links(supernodes, d_links, np.random.default_rng(seed) if hosting == "random" else None)
    node = np.arange(supernodes * NODES)
    places = np.stack((node // NODES, node % NODES // DRAWER, node % DRAWER), axis=1)
    return cabled(
        (f"s{group}d{drawer}n{index}" for group, drawer, index in places.tolist()),
        (inside[same_drawer], inside[~same_drawer], across),
        rates,
        slots=whole("percs.slots", slots, 1),
        direct=True,
    )


def _d_links(supernodes: int, d_links: int, generator: np.random.Generator | None) -> Longs:
    """Return the nodes of the D link of each pair of supernodes, at most `d_links` per node."""
    ends = np.repeat(np.arange(NODES), d_links)
    host = np.stack([ends if generator is None else generator.permutation(ends) for _ in range(supernodes)])
    one, other = np.triu_indices(supernodes, 1)
    # The links of a supernode are in the order of the other supernodes.
    return pairs(one * NODES + host[one, other - 1], other * NODES + host[other, one])


def torus(
    sides: Sequence[int],
    *,
    wraps: bool | Sequence[bool] = True,
    capacity: float | Sequence[float] = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return a torus of ``sides[0] x sides[1] x ...`` nodes, which host ranks and forward traffic.

    Node ``(m_0, m_1, ...)`` is connected to those that differ by 1 modulo the side in one coordinate. Nodes
    are numbered in lexicographic order, the last coordinate fastest (Hoefler and Snir 2011, 5.3.1). A side of
    2 gives one link between its two nodes, a side of 1 none. The mean distance of two different nodes of a
    torus of one side k in n dimensions is ``n * (k // 2) * ((k + 1) // 2) / k`` times ``N / (N - 1)``, and
    its diameter ``n * (k // 2)``.

    Args:
        sides: Number of nodes along each dimension.
        wraps: Whether the last node of a dimension is connected to the first, for all dimensions or one for
            each.
        capacity: Bytes/s in each direction of a link, for all dimensions or one for each.
    """
    sides = wholes("torus.sides", sides, 1)
    around = (wraps,) * len(sides) if isinstance(wraps, bool) else tuple(wraps)
    if len(around) != len(sides):
        raise InvalidValue("torus.wraps", f"has {len(around)} entries, not {len(sides)}")
    rates = each("torus.capacity", capacity, len(sides))
    place = np.stack(np.unravel_index(np.arange(np.prod(sides)), sides), axis=1)
    cables = [_lines_along(place, sides, axis, around[axis] and side > 2) for axis, side in enumerate(sides)]
    return cabled(
        ("n" + "-".join(map(str, point)) for point in place.tolist()),
        cables,
        rates,
        slots=whole("torus.slots", slots, 1),
        direct=True,
        coordinates=place,
    )


def mesh(sides: Sequence[int], *, capacity: float | Sequence[float] = 1.0, slots: int = 1) -> Fabric:
    """Return a torus without the links from the last node of a dimension to the first."""
    return torus(sides, wraps=False, capacity=capacity, slots=slots)


def hypercube(dimensions: int, *, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return a torus of side 2: nodes whose numbers differ in one bit are connected."""
    return torus((2,) * whole("hypercube.dimensions", dimensions, 1, 24), capacity=capacity, slots=slots)


def chordal_ring(
    nodes: int,
    chords: int | Sequence[int],
    *,
    capacity: float | Sequence[float] = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return the ring C(n; q_1, q_2, ...): node i is connected to i + 1 and to each i + q_j, modulo n.

    A node has two links and two for each chord, or one for a chord of half the ring. With one chord q the
    algebraic connectivity is ``a = min_k 4 - 2 cos(2 pi k / n) - 2 cos(2 pi k q / n)``, and at least ``ceil(n
    * a / 4)`` links connect any two halves (Ajwani et al. 2013, section 5).

    Args:
        nodes: Number of nodes n, at least 3.
        chords: Different lengths from 2 to n / 2; without any it is a ring.
        capacity: Bytes/s in each direction of a link, for all links, or one for the ring and one for each
            chord.
    """
    whole("chordal_ring.nodes", nodes, 3)
    lengths = (chords,) if isinstance(chords, int) else tuple(chords)
    for length in lengths:
        whole("chordal_ring.chords", length, 2, max(2, nodes // 2))
    if len(set(lengths)) < len(lengths) or nodes < 2 * max(lengths, default=0):
        raise InvalidValue("chordal_ring.chords", f"{lengths} are not different lengths up to {nodes // 2}")
    rates = each("chordal_ring.capacity", capacity, 1 + len(lengths))
    node = np.arange(nodes)
    cables = []
    for length in (1, *lengths):
        start = node[: nodes // 2] if 2 * length == nodes else node
        cables.append(pairs(start, (start + length) % nodes))
    slots = whole("chordal_ring.slots", slots, 1)
    return cabled(numbered("n", nodes), cables, rates, slots=slots, direct=True)


def _lines_along(place: Longs, sides: tuple[int, ...], axis: int, wrapped: bool) -> Longs:
    """Return the nodes of each cable along an axis, including the wrap-around if `wrapped`."""
    near = place if wrapped else place[place[:, axis] < sides[axis] - 1]
    far = near.copy()
    far[:, axis] = (far[:, axis] + 1) % sides[axis]
    return pairs(*(np.ravel_multi_index(tuple(end.T), sides) for end in (near, far)))
