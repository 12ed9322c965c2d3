"""Ranks cut by METIS along the hierarchy of the hosts, from the top down.

At each branching METIS cuts the ranks into as many parts at once, which are corrected to the exact sizes as
Hoefler and Snir 2011, section 3.4, do for the cores of a host. So cuts are at the borders of the hierarchy;
bisection into halves (their section 3.2) cuts through pods and leaf switches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from mapping.placement.partition.bisection import CUTS, SLACK, options_of, subgraph, weighted_graph
from mapping.placement.partition.hierarchy import Branch, hierarchy
from mapping.placement.partition.multicore import cut_into
from mapping.placement.problem.problem import Problem
from registry.model import Ints, Longs

WIDEST = 64
"""Most parts into which ranks are cut at once; wider branchings are halved first."""


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
