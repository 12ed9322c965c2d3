"""Write problems as other tools read them: graphs of guest and hosts, trees of hosts, distances of levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array

from bench.support.instances import Contest
from mapping.placement.methods.bisection import prime_factors
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Floats, Longs

LARGEST_WEIGHT = 1 << 20
"""Of a pair of ranks: tools sum integers, some of 32 bits."""
MOST_SIDES = 5
"""Of a Scotch torus or mesh."""
RESOLUTION = 4
"""Units of a tool's distance in a hop, where mean distances are no whole numbers."""


def first_slots(allocation: Allocation, ranks: int) -> Allocation:
    """Return the slots used by ranks in order: as many as there are ranks."""
    left = np.clip(ranks - np.r_[0, np.cumsum(allocation.slots)[:-1]], 0, allocation.slots)
    return Allocation(hosts=allocation.hosts[left > 0], slots=left[left > 0].astype(np.int32))


def guest_graph(contest: Contest) -> csr_array:
    """Return the bytes between two ranks, both directions together, as whole numbers from 1."""
    profile = contest.profile
    pairs = coo_array((profile.bytes, (profile.sender, profile.partner)), shape=(profile.ranks,) * 2).tocsr()
    both = csr_array(pairs + pairs.T)
    both.eliminate_zeros()
    scale = min(1.0, LARGEST_WEIGHT / both.data.max(initial=1.0))
    both.data = np.maximum(1, np.rint(both.data * scale)).astype(np.int64)
    both.sort_indices()
    return both


def write_graph(path: Path, graph: csr_array) -> None:
    """Write a Scotch graph with edge weights."""
    rows = [f"0\n{graph.shape[0]}\t{graph.nnz}\n0\t010"]
    for begin, end in zip(graph.indptr[:-1].tolist(), graph.indptr[1:].tolist(), strict=True):
        ends = zip(graph.data[begin:end].tolist(), graph.indices[begin:end].tolist(), strict=True)
        rows.append(f"{end - begin}\t" + "\t".join(f"{weight}\t{other}" for weight, other in ends))
    path.write_text("\n".join(rows) + "\n")


def write_metis(path: Path, graph: csr_array) -> None:
    """Write a Metis graph with edge weights; vertices are numbered from 1."""
    rows = [f"{graph.shape[0]} {graph.nnz // 2} 001"]
    for begin, end in zip(graph.indptr[:-1].tolist(), graph.indptr[1:].tolist(), strict=True):
        ends = zip(graph.indices[begin:end].tolist(), graph.data[begin:end].tolist(), strict=True)
        rows.append(" ".join(f"{other + 1} {weight}" for other, weight in ends))
    path.write_text("\n".join(rows) + "\n")


def native_target(contest: Contest) -> str | None:
    """Return Scotch's own description of the hosts if it has one: a torus, a mesh, or a tree of equal groups.

    Its terminals are the slots of the allocation in order; None where the hosts fill neither, or are more
    than the ranks.
    """
    slots = np.unique(contest.allocation.slots)
    if len(slots) > 1 or int(contest.allocation.slots.sum()) != contest.profile.ranks:
        return None
    sides, groups = contest.shape.sides, contest.shape.groups
    if sides and slots[0] == 1:
        return _grid(sides, "torus" if contest.shape.wraps else "mesh")
    sizes = group_sizes(contest.profile.ranks, [*(size * int(slots[0]) for size in groups), int(slots[0])])
    if not groups or sizes is None:
        return None
    costs = level_costs(slot_distances(contest, contest.allocation), sizes)
    levels = [f"{a // b} {cost}" for (a, b), cost in zip(pairwise(sizes), costs, strict=True)]
    return f"tleaf {len(levels)} {' '.join(levels)}\n"


def group_sizes(count: int, groups: Sequence[int]) -> list[int] | None:
    """Return the sizes of nested groups from all down to 1; None if one does not divide that above."""
    sizes = [count, *groups, 1]
    sizes = [size for at, size in enumerate(sizes) if at == 0 or size < sizes[at - 1]]
    return None if any(larger % smaller for larger, smaller in pairwise(sizes)) else sizes


def _grid(sides: tuple[int, ...], kind: str) -> str | None:
    """Return Scotch's description of a torus or mesh, which counts the first coordinate fastest."""
    if set(sides) == {2}:
        return f"hcub {len(sides)}\n"
    if len(sides) > MOST_SIDES:
        return None
    dimensions = {2: "2D", 3: "3D"}.get(len(sides), f"XD {len(sides)}")
    return f"{kind}{dimensions} {' '.join(map(str, sides[::-1]))}\n"


def host_graph(contest: Contest, allocation: Allocation) -> tuple[csr_array, Longs]:
    """Return the machine as an undirected graph of unit edges, and the vertex of each slot.

    A host of several slots gets a vertex for each.
    """
    fabric = contest.fabric
    vertex = allocation.hosts.astype(np.int64)[np.repeat(np.arange(len(allocation)), allocation.slots)]
    one, other = fabric.links.source.astype(np.int64), fabric.links.target.astype(np.int64)
    count = len(fabric)
    if int(allocation.slots.max()) > 1:
        slot = count + np.arange(len(vertex))
        one, other = np.r_[one, vertex], np.r_[other, slot]
        count, vertex = count + len(slot), slot
    graph = coo_array((np.ones(2 * len(one)), (np.r_[one, other], np.r_[other, one])), shape=(count, count))
    both = graph.tocsr()
    both.data[:] = 1
    both.data = both.data.astype(np.int64)
    both.sort_indices()
    return both, vertex


def slot_distances(contest: Contest, allocation: Allocation) -> Floats:
    """Return the hops between the slots of an allocation (float64[slots, slots])."""
    routes = build_routes("shortest-paths", contest.fabric, allocation.hosts)
    host = np.repeat(np.arange(len(allocation)), allocation.slots)
    return np.asarray(routes.distances, np.float64)[np.ix_(host, host)]


def level_costs(hops: Floats, sizes: list[int]) -> list[int]:
    """Return the cost of a tree's levels from the top: the additional distance of pairs that part there.

    Args:
        hops (float64[leaves, leaves]; distances of the leaves in their order):
    """
    place = np.arange(len(hops))
    mean = []
    for above, below in pairwise(sizes):
        parts = (place[:, None] // above == place // above) & (place[:, None] // below != place // below)
        mean.append(float(hops[parts].mean()))
    steps = np.diff([*mean[::-1]], prepend=0.0)[::-1]
    return [max(1, round(RESOLUTION * step)) for step in steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A tree whose leaves are the slots of an allocation."""

    kind: str
    arities: tuple[int, ...]
    costs: tuple[int, ...]
    slot: Longs
    """int64[leaves]; slot of the allocation of each leaf."""

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

    Returns:
        arities: From the top.
        node: Node of each leaf, the last coordinate fastest.
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

    Returns:
        int64[levels, hosts]: Group of each host on every level above single hosts, from the top.
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
