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
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymetis
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from mapping.placement.kernels.multicore import Groups, repair, swap_pass
from mapping.placement.kernels.pair_gain import partners
from mapping.placement.partition import bisection
from mapping.placement.partition.bisection import metis_parts, options_of, weighted_graph
from registry.errors import InvalidValue, UnknownName
from registry.model import Floats, Ints, Longs, Profile
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

    Parameters
    ----------
    sizes : int[groups]
        Ranks of each group, >= 1; their sum is the number of ranks of the profile.
    generator : numpy.random.Generator
        Source of METIS's seed; the same state gives the same groups.
    partition : str
        ``improved`` by swaps, or as in the ``paper``: k-way, corrected to the sizes.

    Returns
    -------
    int32[ranks]
        Group of each rank.

    Raises
    ------
    InvalidValue
        A size below 1, or sizes that do not sum to the number of ranks.
    UnknownName
        Another `partition`.
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

    Parameters
    ----------
    part : int32[ranks]
        Part of each vertex.
    total : int64[ranks]
        Cumulative edge weight of each vertex.
    sizes : int64[parts]
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

    Parameters
    ----------
    group : int32[ranks]
        Group of each rank, from 0; no group is empty.
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
