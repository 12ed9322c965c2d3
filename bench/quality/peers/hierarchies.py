"""Describe the machine as equal groups within equal groups, for tools that know no other machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from bench.quality.peers.files import group_sizes, level_costs, slot_distances
from bench.support.instances import Contest
from mapping.placement.partition.hierarchy import prime_factors
from registry.model import Allocation, Longs


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A tree whose leaves are the slots of an allocation.

    Attributes
    ----------
    kind : how the groups were found
    arities : number of parts of a group, from the top; at least two levels
    costs : additional distance of two leaves that part at each level, from the top
    slot : int64[leaves]; slot of the allocation of each leaf
    """

    kind: str
    arities: tuple[int, ...]
    costs: tuple[int, ...]
    slot: Longs

    @property
    def tleaf(self) -> str:
        """The tree as Scotch and TreeMatch read it."""
        levels = [f"{arity} {cost}" for arity, cost in zip(self.arities, self.costs, strict=True)]
        return f"tleaf {len(levels)} {' '.join(levels)}\n"

    @property
    def inside_out(self) -> tuple[str, str]:
        """Arities and distances from the innermost level, as VieM and SharedMap read them."""
        distances = np.cumsum(self.costs[::-1]).tolist()
        return ":".join(map(str, self.arities[::-1])), ":".join(map(str, distances))

    @property
    def largest_distance(self) -> int:
        """Distance of two leaves that part at the top."""
        return sum(self.costs)


def hierarchies(contest: Contest, allocation: Allocation) -> Iterator[Hierarchy]:
    """Return the trees of an allocation's slots, best known structure first; none if there are no groups."""
    slots, hops = int(allocation.slots[0]), slot_distances(contest, allocation)
    trees = list(host_trees(contest, allocation))
    if (allocation.slots != slots).any():
        trees, slots = [("slots in order", prime_factors(len(hops)), np.arange(len(hops)))], 1
    for kind, arities, order in trees:
        levels = (*arities, slots) if slots > 1 else arities
        if len(levels) < 2:
            continue
        slot = (order[:, None] * slots + np.arange(slots)).ravel()
        sizes = [prod(levels[depth:]) for depth in range(len(levels) + 1)]
        costs = level_costs(hops[np.ix_(slot, slot)], sizes)
        yield Hierarchy(kind=kind, arities=levels, costs=tuple(costs), slot=slot)


def host_trees(contest: Contest, allocation: Allocation) -> Iterator[tuple[str, tuple[int, ...], Longs]]:
    """Return trees of an allocation's hosts: their kind, arities from the top, and the host of each leaf."""
    hosts, shape = len(allocation), contest.shape
    in_order = np.arange(hosts)
    if shape.sides and prod(shape.sides) == hosts:
        yield ("sides halved", *halved(shape.sides))
    sizes = group_sizes(hosts, shape.groups)
    if shape.groups and sizes is not None:
        yield "groups", tuple(a // b for a, b in pairwise(sizes)), in_order
    else:
        yield "hosts in order", prime_factors(hosts), in_order


def halved(sides: Sequence[int]) -> tuple[tuple[int, ...], Longs]:
    """Return the tree of a grid whose longest side is cut again and again into as few parts as possible.

    Returns
    -------
    arities : tuple of int
        From the top.
    node : int64[nodes]
        Node of each leaf, the last coordinate fastest.
    """
    left = list(sides)
    cuts: list[tuple[int, int, int]] = []
    while max(left) > 1:
        axis = int(np.argmax(left))
        parts = prime_factors(left[axis])[0]
        left[axis] //= parts
        cuts.append((axis, parts, left[axis]))
    arities = tuple(parts for _, parts, _ in cuts)
    digits = np.unravel_index(np.arange(prod(sides)), arities)
    place = np.zeros((len(sides), prod(sides)), np.int64)
    for digit, (axis, _, step) in zip(digits, cuts, strict=True):
        place[axis] += digit * step
    return arities, np.asarray(np.ravel_multi_index(tuple(place), tuple(sides)), np.int64)


def host_groups(contest: Contest, allocation: Allocation, most: int) -> Longs:
    """Return nested groups of an allocation's hosts, each with at most `most` parts where the tree allows.

    Returns
    -------
    int64[levels, hosts]
        Group of each host on every level above single hosts, from the top.
    """
    _, arities, order = next(iter(host_trees(contest, allocation)))
    merged: list[int] = []
    for arity in arities:
        if merged and merged[-1] * arity <= most:
            merged[-1] *= arity
        else:
            merged.append(arity)
    leaf = np.empty(len(order), np.int64)
    leaf[order] = np.arange(len(order))
    sizes = [prod(merged[depth:]) for depth in range(1, len(merged))]
    return np.array([leaf // size for size in sizes], np.int64).reshape(len(sizes), len(order))
