"""The greedy local update of a partition and its routes, on plain arrays.

A step is better the higher the entry of the performance vector is that it lowers first. So steps that lower
the highest entry are looked at first, and others only where none of those is better than no step. Entries
that are known to be stuck (`mapping.reconfiguration.kernels.trial_steps`) are not looked at. Both leave
nothing out.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from mapping.reconfiguration.kernels.performance_vector import (
    NONE,
    consider,
    first_lowered,
    keep_changes,
    undo,
)
from mapping.reconfiguration.kernels.trial_steps import (
    Bench,
    free_around,
    free_changed,
    lifts_one,
    link_at,
    move,
    reroute,
)

LAST_BIT = 1 << 62
"""Stands for all further neighbours: their moves may be tried again."""


@nb.njit(cache=True, nogil=True)
def refine(bench: Bench, depth: int, most: int) -> int:
    """Make the best of all steps as long as one is better than none; at most so many.

    Parameters
    ----------
    depth : int
        As of `find_best`.

    Returns
    -------
    int
        Steps made.
    """
    made = 0
    while made < most and find_best(bench, depth):
        make_best(bench)
        made += 1
    return made


@nb.njit(cache=True, nogil=True)
def find_best(bench: Bench, depth: int) -> bool:
    """Find the step that leads to the best performance vector, of equals the lowest; ``bench.best`` holds it.

    Parameters
    ----------
    depth : int
        Entries of the vector, the worst first, for which steps that lower them are looked at; equal ones
        count together. With all n + m the best of all steps is found. With fewer either the same
        one is, or none: where the best step lowers none of these first.

    Returns
    -------
    bool
        Whether there is one that is better than no step.
    """
    load, best = bench.standing.load, bench.best
    best.number[0], best.size[0] = NONE, 0
    bench.round[0] += 1
    ceiling, looked = np.inf, 0
    while looked < depth:
        value = 0.0
        for one in load:
            if value < one < ceiling:
                value = one
        if value == 0.0:
            return False
        for entry in range(len(load)):
            if load[entry] == value:
                if not bench.memo.stuck[entry]:
                    _look_at(bench, entry, value)
                looked += 1
        if best.number[0] != NONE and first_lowered(best) == value:
            return True
        ceiling = value
    return False


@nb.njit(cache=True, nogil=True)
def make_best(bench: Bench) -> None:
    """Make the step ``bench.best``."""
    net, guest, node = bench.net, bench.guest, bench.standing.node
    nodes, number = len(net.first) - 1, bench.best.number[0]
    if number < len(node) * nodes:
        v, q = number // nodes, number % nodes
        for at in range(guest.first[v], guest.first[v + 1]):
            free_around(bench, guest.source[guest.edge[at]])
            free_around(bench, guest.target[guest.edge[at]])
        for a in range(net.first[node[v]], net.first[node[v] + 1]):
            if net.head[a] == q:
                move(bench, v, q, int(net.link[a]), np.inf, True)
        node[v] = q
    else:
        e = number - len(node) * nodes
        free_around(bench, guest.source[e])
        free_around(bench, guest.target[e])
        reroute(bench, e, int(np.int64(NONE)), np.inf, True)
    free_changed(bench)
    keep_changes(bench.notes)


@nb.njit(inline="always")
def _look_at(bench: Bench, entry: int, limit: float) -> None:
    """Try all steps that lower an entry whose load is `limit`, but for those that lift one above it.

    One that lifts an entry above `limit` is either no better than no step, or was tried before: with an entry
    as high as that, which it then lowers.
    """
    nodes, memo = len(bench.net.first) - 1, bench.memo
    memo.entry[0], memo.sure[0] = entry, True
    bench.round[1] += 1
    if len(memo.until) > 0:
        memo.until[entry] = -1.0
    if entry >= nodes:
        _relieve_link(bench, entry - nodes, limit)
    else:
        node, vertex = bench.standing.node, bench.guest.vertex
        for v in range(len(node)):
            if node[v] == entry and vertex[v] > 0.0:
                _try_moves(bench, int(v), limit)
    memo.stuck[entry] = memo.sure[0]


@nb.njit(inline="always")
def _relieve_link(bench: Bench, link: int, limit: float) -> None:
    """Try to re-route each flow of a link, and to move both of its ends."""
    guest, standing = bench.guest, bench.standing
    route, length, flow = standing.route, standing.length, guest.flow
    for e in range(len(flow)):
        for k in range(length[e]):
            if route[e, k] == link and flow[e] > 0.0:
                _try_reroute(bench, e, link, limit)
                for v in (int(np.int64(guest.source[e])), int(np.int64(guest.target[e]))):
                    if bench.thorough:
                        _try_moves(bench, v, limit)
                    else:
                        _try_moves_across(bench, e, v, link, limit)
                break


@nb.njit(cache=True)
def _try_moves(bench: Bench, v: int, limit: float) -> None:
    """Try to move a vertex to each neighbour of its node, unless that was done in this round."""
    if bench.thorough:
        if bench.seen[v] == bench.round[0]:
            bench.memo.sure[0] = False
            return
        bench.seen[v] = bench.round[0]
    net, here = bench.net, bench.standing.node[v]
    for a in range(net.first[here], net.first[here + 1]):
        _try_move(bench, v, int(np.int64(net.head[a])), int(net.link[a]), limit)


@nb.njit(inline="always")
def _try_moves_across(bench: Bench, e: int, v: int, link: int, limit: float) -> None:
    """Try to move an end of a flow to nodes of its route that lie beyond a link.

    Where routes only grow or shrink, no other move of it takes this flow off the link.
    """
    net, here, across, tried = bench.net, bench.standing.node[v], False, bench.tried
    at = int(here)
    if bench.seen[v] != bench.round[1]:
        bench.seen[v], tried[v] = bench.round[1], 0
    for k in range(np.int64(bench.standing.length[e])):
        one = link_at(bench, e, v, k)
        at = int(net.ends[one]) - at
        across = across or one == link
        if across:
            for a in range(net.first[here], net.first[here + 1]):
                bit = 1 << min(a - net.first[here], 62)
                if net.head[a] == at and not (tried[v] & bit and bit != LAST_BIT):
                    tried[v] |= bit
                    _try_move(bench, v, at, int(net.link[a]), limit)


@nb.njit(cache=True)
def _try_move(bench: Bench, v: int, q: int, link: int, limit: float) -> None:
    weight, load = bench.guest.vertex[v], bench.standing.load
    if weight > 0.0 and load[q] + weight > limit:
        lifts_one(bench.memo, q, limit - weight)
        return
    lifted = NONE
    if move(bench, v, q, link, limit, False):
        number = v * (len(bench.net.first) - 1) + q
        lifted = consider(bench.notes, number, limit, bench.trial, bench.best)
    if lifted == NONE or bench.thorough:  # thorough ones depend on all links
        bench.memo.sure[0] = False
    else:
        lifts_one(bench.memo, lifted, limit - (load[lifted] - bench.notes.saved[lifted]))
    undo(bench.notes)


@nb.njit(inline="always")
def _try_reroute(bench: Bench, e: int, link: int, limit: float) -> None:
    if reroute(bench, e, link, limit, False):
        number = len(bench.standing.node) * (len(bench.net.first) - 1) + e
        bench.memo.sure[0] = False
        consider(bench.notes, number, limit, bench.trial, bench.best)
    undo(bench.notes)
