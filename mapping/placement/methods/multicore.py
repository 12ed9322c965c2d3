"""Groups of ranks for hosts with several slots, with few bytes between groups.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.4: P ranks are cut into P/p groups by a graph partitioner, whose (k, 1 + epsilon)-balanced
parts are then corrected to be exactly balanced. Here groups may also be of unequal sizes. METIS is asked
for parts of these shares, by recursive bisection with 3% slack, which with the correction leaves smaller
cuts than its k-way method and less slack; a part that is too large gives away the rank that adds least
to the cut, and swaps of two ranks follow for as long as one helps. The same is done from blocks of ranks
in order, and the better kept: the cut is never above that of blocks.

``partition=paper`` is the paper's method without additions (sections 3.4 and 4.2): METIS's multilevel k-way
partition, then the ranks "with the least cumulative edge weight" move "from partitions with more than p
vertices to partitions with less than p vertices". The weight is that of all edges of a rank, as in section
3.2. The text leaves open from which part to which: here the lowest-numbered ones first. The slack is 5%, as
in the source of the authors' library, LibTopoMap, which itself moves the lowest-numbered ranks.

Several ranks per host: groups of ranks first, then each group on a host by another strategy.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.4; for the groups see `mapping.placement.methods.multicore`. Beyond the paper: with free
slots, hosts with the most slots are filled first, for the fewest groups; with unequal slots the inner
strategy sees all hosts as equal, and a group that does not fit where it was put goes to the closest host
with room, large groups first.

Ranks cut by METIS along the hierarchy of the hosts, from the top down.

At each branching METIS cuts the ranks into as many parts at once, which are corrected to the exact sizes as
Hoefler and Snir 2011, section 3.4, do for the cores of a host. So cuts are at the borders of the hierarchy;
bisection into halves (their section 3.2) cuts through pods and leaf switches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pymetis
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from mapping.placement.catalog import STRATEGIES
from mapping.placement.kernels.multicore import Groups, repair, swap_pass
from mapping.placement.kernels.pair_gain import partners
from mapping.placement.methods import bisection
from mapping.placement.methods.bisection import (
    CUTS,
    Branch,
    hierarchy,
    metis_parts,
    options_of,
    subgraph,
    weighted_graph,
)
from mapping.placement.methods.bisection import SLACK as SLACK_OF_HIERARCHY
from mapping.placement.problem import Problem
from registry.errors import InvalidValue, UnknownName
from registry.model import Allocation, Floats, Ints, Longs, Profile
from registry.model.arrays import whole_numbers

IMPROVED, PAPER = "improved", "paper"
PARTITIONS = (IMPROVED, PAPER)
SLACK = 30
"""How far METIS may let a part grow above its share, in thousandths."""
PASSES = 30
"""Most passes of swaps over all ranks."""
ROUNDING = 1e-13
"""A swap that saves less than this part of all bytes is none."""


def group_ranks(
    profile: Profile, sizes: ArrayLike, generator: np.random.Generator, partition: str = IMPROVED
) -> Ints:
    """Cut ranks into groups of given sizes with few bytes between them.

    Args:
        sizes (int[groups]): Ranks of each group, >= 1; their sum is the number of ranks of the profile.
        generator: Source of METIS's seed; the same state gives the same groups.
        partition: ``improved`` by swaps, or as in the ``paper``: k-way, corrected to the sizes.

    Returns:
        int32[ranks]: Group of each rank.

    Raises:
        InvalidValue: A size below 1, or sizes that do not sum to the number of ranks.
        UnknownName: Another `partition`.
    """
    if partition not in PARTITIONS:
        raise UnknownName("group_ranks.partition", partition, PARTITIONS)
    wanted = whole_numbers(sizes, "group_ranks.sizes")
    if len(wanted) == 0 or int(wanted.min()) < 1 or int(wanted.sum()) != profile.ranks:
        raise InvalidValue("group_ranks.sizes", f"must be at least 1 and sum to {profile.ranks} ranks")
    blocks = np.repeat(np.arange(len(wanted), dtype=np.int32), wanted)
    sends = profile.bytes > 0
    if len(wanted) in (1, profile.ranks) or not sends.any():
        return blocks
    source, target, size = profile.sender[sends], profile.partner[sends], profile.bytes[sends]
    graph = weighted_graph(source, target, size, profile.ranks)
    shares = (wanted / profile.ranks).tolist()
    if partition == PAPER:
        options = options_of(generator, slack=bisection.SLACK, cuts=1)
        total = np.asarray(graph.sum(axis=1)).reshape(-1)
        return correct_sizes(metis_parts(graph, shares, options, recursive=False), total, wanted)
    table = partners(profile.ranks, source, target, size)
    edges = table.indptr, table.partner, table.sent + table.received
    first = metis_parts(graph, shares, options_of(generator, slack=SLACK))
    found = [_improved(edges, start, wanted) for start in (first, blocks)]
    return min(found, key=lambda group: cut_bytes(profile, group))


def correct_sizes(part: Ints, total: Longs, sizes: Longs) -> Ints:
    """Return the parts (int32[ranks]) with exact sizes, corrected as in section 4.2 of the paper.

    As often as needed, the vertex of least cumulative edge weight of the first part that is too large moves
    to the first part that is too small; of equal ones that of the lower index. Moves do not change the
    weights, which count all edges, so each part gives away its lightest vertices.

    Args:
        part (int32[ranks]): Part of each vertex.
        total (int64[ranks]): Cumulative edge weight of each vertex.
        sizes (int64[parts]):
    """
    count = np.bincount(part, minlength=len(sizes))
    surplus = count - sizes
    order = np.lexsort((total, part))
    first = np.cumsum(count) - count
    lightest = np.arange(len(part)) - first[part[order]] < surplus[part[order]]
    found = part.copy()
    found[order[lightest]] = np.repeat(np.arange(len(sizes)), np.maximum(-surplus, 0))
    return found


def cut_bytes(profile: Profile, group: Ints) -> float:
    """Return the bytes between ranks of different groups."""
    return float(profile.bytes[group[profile.sender] != group[profile.partner]].sum())


def quotient(profile: Profile, group: Ints) -> Profile:
    """Return the profile of the groups: summed bytes and messages between them, without those within.

    Args:
        group (int32[ranks]): Group of each rank, from 0; no group is empty.
    """
    return Profile.from_edges(
        group[profile.sender],
        group[profile.partner],
        profile.bytes,
        ranks=int(group.max()) + 1,
        messages=profile.messages,
        name=profile.name,
        application=profile.application,
    )


def _improved(edges: tuple[Longs, Ints, Floats], start: Ints, sizes: Longs) -> Ints:
    """Return the groups with exact sizes, after swaps."""
    groups = list_members(start, len(sizes))
    repair(*edges, groups, sizes)
    groups = list_members(groups.group, len(sizes))
    least = ROUNDING * float(edges[2].sum())
    for _ in range(PASSES):
        if swap_pass(*edges, groups, least) == 0:
            break
    return groups.group


def cut_into(graph: csr_matrix, sizes: Longs, options: pymetis.Options) -> Ints:
    """Return int32[n]: the part of each vertex, of exactly these sizes, by METIS."""
    vertices, parts = graph.shape[0], len(sizes)
    if parts in (1, vertices) or graph.nnz == 0:
        return np.repeat(np.arange(parts, dtype=np.int32), sizes)
    groups = list_members(metis_parts(graph, (sizes / vertices).tolist(), options), parts)
    edges = graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data.astype(np.float64)
    repair(*edges, groups, sizes)
    return groups.group


def list_members(group: Ints, count: int) -> Groups:
    """Return a copy of the group of each rank, with the members of each of `count` groups."""
    member: Any = np.argsort(group, kind="stable").astype(np.int32)
    place = np.empty(len(group), np.int32)
    place[member] = np.arange(len(group))
    first = np.r_[0, np.cumsum(np.bincount(group, minlength=count))].astype(np.int64)
    return Groups(group.copy(), first, member, place)


NAME = "multicore"


def place_multicore(
    problem: Problem, generator: np.random.Generator, *, inner: str = "greedy", partition: str = IMPROVED
) -> Ints:
    """Place groups of ranks, one per host.

    Args:
        inner: Name of another strategy, which places the groups; its options have their defaults.
        partition: How ranks are grouped: ``improved`` by swaps, or as in the ``paper``.
    """
    known = {entry.name: entry for entry in STRATEGIES if not entry.refines and entry.name != NAME}
    if inner not in known:
        raise UnknownName("multicore.inner", inner, known)
    sizes = _group_sizes(problem)
    group = group_ranks(problem.profile, sizes, generator, partition)
    groups = replace(
        problem,
        profile=quotient(problem.profile, group),
        allocation=Allocation(hosts=problem.allocation.hosts, slots=np.ones(problem.hosts, np.int32)),
        pins=np.zeros(0, np.int32),
        own_distances=problem.distances,
    )
    return _hosts_with_room(problem, sizes, known[inner].load()(groups, generator))[group]


def _group_sizes(problem: Problem) -> Longs:
    """Return int64[groups]: the sizes of the groups, descending."""
    slots = np.sort(problem.allocation.slots)[::-1].astype(np.int64)
    before = np.cumsum(slots) - slots
    sizes: Longs = np.minimum(slots, problem.ranks - before)
    return sizes[before < problem.ranks]


def _hosts_with_room(problem: Problem, sizes: Longs, wanted: Ints) -> Ints:
    """Return int32[groups]: the host of each group, the wanted one or the closest with room.

    Groups are in descending size, and for the k largest there are at least k hosts, so one is always free.
    """
    slots, free = problem.allocation.slots, np.ones(problem.hosts, bool)
    host_of_group = np.empty(len(sizes), np.int32)
    for group, size in enumerate(sizes.tolist()):
        host = int(wanted[group])
        if not free[host] or slots[host] < size:
            far = problem.distances.of(host, np.arange(problem.hosts))
            host = int(np.argmin(np.where(free & (slots >= size), far, np.inf)))
        host_of_group[group], free[host] = host, False
    return host_of_group


WIDEST = 64
"""Most parts into which ranks are cut at once; wider branchings are halved first."""


class _Work(NamedTuple):
    """Ranks of a branch and their graph."""

    branch: Branch
    ranks: Longs
    graph: csr_matrix


def place_multilevel(
    problem: Problem,
    generator: np.random.Generator,
    *,
    slack: int = SLACK_OF_HIERARCHY,
    cuts: int = CUTS,
) -> Ints:
    """Place ranks along the hierarchy of hosts; the generator gives METIS its seeds.

    Args:
        slack: How far METIS may let a part grow above its share before it is corrected, in thousandths.
        cuts: Number of partitions that METIS tries each time.
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
