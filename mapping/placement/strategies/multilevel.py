"""Ranks cut by METIS along the hierarchy of the hosts, from the top down.

Hosts are clustered by their distances (average linkage), which finds pods, leaf switches, groups and
cabinets without their names; branches that join at nearly the same height are one branching. At each, METIS
cuts the ranks into as many parts at once, which are corrected to the exact sizes as Hoefler and Snir 2011,
section 3.4, do for the cores of a host. So cuts are at the borders of the hierarchy; bisection into halves
(their section 3.2) cuts through pods and leaf switches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pymetis
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_matrix

from mapping.distances.distances import Distances
from mapping.placement.kernels.multicore import repair
from mapping.placement.partition.bisection import (
    CUTS,
    SLACK,
    metis_parts,
    options_of,
    subgraph,
    weighted_graph,
)
from mapping.placement.partition.multicore import list_members
from mapping.placement.problem.problem import Problem
from registry.model import Floats, Ints, Longs

MOST_GROUPS = 8192
"""Most host groups that are clustered; of more, adjacent ones are combined."""
TOGETHER = 0.02
"""Branches that join within this part of the highest join are one branching."""
WIDEST = 64
"""Most parts into which ranks are cut at once; wider branchings are halved first."""


class Branch(NamedTuple):
    """A part of the hosts and its own parts.

    Attributes
    ----------
    height : float
        Mean distance at which its parts join.
    parts : tuple of Branch
        Empty if the hosts are not divided further.
    hosts : int32[k]
        Hosts in the order of the parts.
    """

    height: float
    parts: tuple[Branch, ...]
    hosts: Ints


class _Work(NamedTuple):
    """Ranks of a branch and their graph."""

    branch: Branch
    ranks: Longs
    graph: csr_matrix


def place_ranks(
    problem: Problem,
    generator: np.random.Generator,
    *,
    slack: int = SLACK,
    cuts: int = CUTS,
) -> Ints:
    """Place ranks along the hierarchy of hosts; the generator gives METIS its seeds.

    Parameters
    ----------
    slack : int
        How far METIS may let a part grow above its share before it is corrected, in thousandths.
    cuts : int
        Number of partitions that METIS tries each time.
    """
    graph = weighted_graph(problem.source, problem.target, problem.bytes, problem.ranks)
    whole = _Work(hierarchy(problem), np.arange(problem.ranks), graph)
    slots = problem.allocation.slots.astype(np.int64)
    options = options_of(generator, slack=slack, cuts=cuts)
    host_of_rank, todo = np.empty(problem.ranks, np.int32), [whole]
    while todo:
        work = todo.pop()
        parts = _parts(work.branch, slots)
        taken = fill(np.array([int(slots[part.hosts].sum()) for part in parts]), len(work.ranks))
        part_of = cut_into(work.graph, taken[taken > 0], options)
        for at, branch in enumerate(parts[k] for k in np.flatnonzero(taken)):
            inside = np.flatnonzero(part_of == at)
            if len(branch.hosts) == 1:
                host_of_rank[work.ranks[inside]] = branch.hosts[0]
            else:
                todo.append(_Work(branch, work.ranks[inside], subgraph(work.graph, inside)))
    return host_of_rank


def fill(room: Longs, ranks: int) -> Longs:
    """Return int64[parts]: ranks of each part, the parts with most slots first."""
    taken = np.zeros(len(room), np.int64)
    order = np.argsort(-room, kind="stable")
    before = np.cumsum(room[order]) - room[order]
    taken[order] = np.clip(ranks - before, 0, room[order])
    return taken


def cut_into(graph: csr_matrix, sizes: Longs, options: pymetis.Options) -> Ints:
    """Return int32[n]: the part of each vertex, of exactly these sizes, by METIS."""
    vertices, parts = graph.shape[0], len(sizes)
    if parts in (1, vertices) or graph.nnz == 0:
        return np.repeat(np.arange(parts, dtype=np.int32), sizes)
    groups = list_members(metis_parts(graph, (sizes / vertices).tolist(), options), parts)
    edges = graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data.astype(np.float64)
    repair(*edges, groups, sizes)
    return groups.group


def hierarchy(problem: Problem) -> Branch:
    """Return the hosts of an allocation, clustered by distance; computed once for a problem."""
    return problem.memo.once("hierarchy", lambda: _clustered(problem))


def _clustered(problem: Problem) -> Branch:
    distances = problem.distances
    order = np.argsort(distances.group, kind="stable").astype(np.int32)
    first = np.searchsorted(distances.group[order], np.arange(distances.groups))
    kept = np.arange(0, distances.groups, -(-distances.groups // MOST_GROUPS))
    hosts = np.split(order, first[kept[1:]])
    if len(hosts) == 1:
        return Branch(0.0, (), hosts[0])
    joins: Floats = linkage(_condensed(distances, kept), "average")
    return _Clusters(hosts, joins).branch(2 * len(hosts) - 2)


def _condensed(distances: Distances, kept: Longs) -> Floats:
    """Return float64[k * (k - 1) / 2]: mean distances of both directions between groups, in scipy's order."""
    found = np.empty(len(kept) * (len(kept) - 1) // 2)
    end, symmetric = 0, distances.symmetric
    for at, group in enumerate(kept[:-1].tolist()):
        there, back = distances.rows(group)
        others, begin = kept[at + 1 :], end
        end += len(others)
        found[begin:end] = there[others] if symmetric else (there[others] + back[others]) / 2
    return found


class _Clusters:
    """Clusters in scipy's numbering: groups of hosts first, then joins of two."""

    def __init__(self, hosts: list[Ints], joins: Floats) -> None:
        self._hosts = hosts
        self._pairs = joins[:, :2].astype(np.int64).tolist()
        self._heights = [0.0] * len(hosts) + joins[:, 2].tolist()

    def branch(self, cluster: int) -> Branch:
        """Return a cluster with all below it."""
        if cluster < len(self._hosts):
            return Branch(0.0, (), self._hosts[cluster])
        height = self._heights[cluster]
        lowest = height - TOGETHER * self._heights[-1]
        open_, found = [cluster], []
        while open_:
            at = open_.pop()
            if at >= len(self._hosts) and self._heights[at] >= lowest:
                open_ += self._pairs[at - len(self._hosts)]
            else:
                found.append(self.branch(at))
        parts = tuple(sorted(found, key=lambda part: int(part.hosts[0])))
        return Branch(height, parts, np.concatenate([part.hosts for part in parts]))


def _parts(branch: Branch, slots: Longs) -> tuple[Branch, ...]:
    """Return the parts of a branch; those of a wide one are combined into two halves."""
    parts = branch.parts or tuple(Branch(0.0, (), branch.hosts[k : k + 1]) for k in range(len(branch.hosts)))
    alike = all(len(part.hosts) == 1 for part in parts) and bool((slots[branch.hosts] == 1).all())
    if len(parts) <= WIDEST or alike:
        return parts
    half = (len(parts) + 1) // 2
    return tuple(
        Branch(branch.height, run, np.concatenate([part.hosts for part in run]))
        for run in (parts[:half], parts[half:])
    )
