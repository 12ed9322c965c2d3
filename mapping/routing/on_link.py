"""Which part of what goes from one place to another crosses a given link: loads, taken apart."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from mapping.routing.kernels.flows import NO_ARC, GraphArrays
from mapping.routing.kernels.paths import ArcArrays, Goals, HopArray
from mapping.routing.kernels.tables import TableArrays
from mapping.routing.network import Cables
from mapping.routing.spreading import hops_to
from registry.model import Bools, Floats, Ints, Longs

AT_ONCE = 256
"""Goals to which paths are counted at once."""


def by_paths(arcs: ArcArrays, arc: int, start: Ints, goals: Goals, goal: Ints) -> Floats:
    """float64[d]: part of all shortest paths from each start to each goal that leads over an arc.

    Of the paths from s to g, those over the arc from u to v are as many as lead from s to u times those from
    v to g; none where that way is longer.

    Parameters
    ----------
    arc : int
        Of ``arcs.head``.
    start : int32[d]
        Vertices.
    goal : int32[d]
        Rows of `goals`.
    """
    tail = int(np.searchsorted(arcs.out_ptr, arc, side="right")) - 1
    head = int(arcs.head[arc])
    graph = _reaching(arcs)
    to_tail = hops_to(arcs, Goals(np.array([tail], np.int32), np.array([-1], np.int32)))
    ways = _counts(graph, arcs.forwards, to_tail)[0]
    near = to_tail[0].astype(np.int64)
    may = (near[start] >= 0) & (arcs.forwards[tail] | (start == tail))
    found = np.zeros(len(start))
    wanted = np.unique(goal[may])
    for at in range(0, len(wanted), AT_ONCE):
        rows = wanted[at : at + AT_ONCE]
        far = hops_to(arcs, Goals(goals.vertex[rows], goals.twin[rows]))
        some = np.flatnonzero(may & (goal >= rows[0]) & (goal <= rows[-1]))
        of, begin = np.searchsorted(rows, goal[some]), start[some]
        onward = far[of, head].astype(np.int64)
        on = (onward >= 0) & (near[begin] + 1 + onward == far[of, begin])
        on &= arcs.forwards[head] | (onward == 0)
        some, of, begin = some[on], of[on], begin[on]
        if len(some):
            used, of = np.unique(of, return_inverse=True)
            counts = _counts(graph, arcs.forwards, far[used])
            found[some] = ways[begin] * counts[of, head] / counts[of, begin]
    return found


def by_arcs(graph: GraphArrays, over: Floats, row: Ints, target: Ints) -> Floats:
    """float64[d]: part on a link where one arc is followed from each vertex.

    Parameters
    ----------
    over : float64[arcs]
        Part of each arc's bytes that the link carries.
    row, target : int32[d]
        Of ``graph.vertex`` and ``graph.next_arc``.
    """
    found, at = np.zeros(len(row)), graph.vertex[row].astype(np.int64)
    walking = np.arange(len(row))
    while len(walking):
        onward = graph.next_arc[target[walking], at[walking]]
        walking, onward = walking[onward != NO_ARC], onward[onward != NO_ARC]
        arc = graph.arc_ptr[at[walking]] + onward
        found[walking] += over[arc]
        at[walking] = graph.arc_head[arc]
    return found


def by_tables(tables: TableArrays, switch: Ints, lid: Ints, link: int) -> Bools:
    """bool[d]: whether the walk from each switch to each LID takes a link, wherever it ends."""
    found = np.zeros(len(switch), np.bool_)
    at, walking = switch.astype(np.int64), np.flatnonzero(switch >= 0)
    for _ in range(len(tables.ports) + 1):
        if not len(walking):
            break
        row = tables.port_link[at[walking], tables.ports[at[walking], lid[walking]]]
        walking, row = walking[row >= 0], row[row >= 0]
        found[walking] |= row == link
        at[walking] = tables.link_switch[row]
        walking = walking[at[walking] >= 0]
    return found


def arcs_with(cables: Cables, link: int) -> tuple[Longs, Floats]:
    """Arcs (int64) that a link is a cable of, and the part (float64) of each arc's bytes that is on it."""
    at = np.flatnonzero(cables.link == link)
    return np.searchsorted(cables.ptr, at, side="right") - 1, cables.share[at]


def _reaching(arcs: ArcArrays) -> csr_array:
    """Arcs by tail and head, one each: sparse [v, v]."""
    vertices = len(arcs.forwards)
    return csr_array((np.ones(len(arcs.head)), arcs.head, arcs.out_ptr), shape=(vertices, vertices))


def _counts(graph: csr_array, forwards: Bools, hops: HopArray) -> Floats:
    """float64[k, v]: shortest paths from every vertex to each goal, level by level; 0 where there is none."""
    counts: Floats = (hops == 0).astype(np.float64)
    for level in range(1, int(hops.max(initial=0)) + 1):
        through = (hops == level - 1) & (forwards | (level == 1))
        onward = (graph @ np.where(through, counts, 0.0).T).T
        counts = np.where(hops == level, onward, counts)
    return counts
