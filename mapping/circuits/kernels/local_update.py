"""The greedy local update of a partition and its routes, on plain arrays.

A step is better the higher the entry of the performance vector is that it lowers first. So steps that lower
the highest entry are tried first, and others only if none of those is better than no step. Entries known to
be stuck (`mapping.circuits.kernels.workspace`) are skipped. Neither omits a better step.
"""

from __future__ import annotations

import numpy as np

from mapping.circuits.kernels.routes import copy_first, least_congested
from mapping.circuits.kernels.workspace import (
    NONE,
    Workspace,
    add,
    clear_changes,
    consider,
    first_lowered,
    free_around,
    free_changed,
    lifts_one,
    undo_changes,
)
from mapping.kernels.decorators import inner, kernel
from registry.model import Ints

LAST_BIT = 1 << 62
"""Bit of all further neighbours, whose moves may be tried twice."""


@kernel
def refine(work: Workspace, depth: int, most: int) -> int:
    """Make the best of all steps as long as one is better than none, at most `most` steps.

    Args:
        depth: As of `find_best`.

    Returns:
        Number of steps made.
    """
    made = 0
    while made < most and find_best(work, depth):
        make_best(work)
        made += 1
    return made


@kernel
def find_best(work: Workspace, depth: int) -> bool:
    """Find the step with the best performance vector, at equality the lowest, and store it in ``work.best``.

    Args:
        depth: Number of entries of the vector, the worst first, for which steps that lower them are tried;
            equal ones count together. With all n + m the best of all steps is found. With fewer it is either
            the same step, or none, if the best step lowers none of these first.

    Returns:
        True if a step is better than no step.
    """
    load, best = work.state.load, work.best
    best.number[0], best.size[0] = NONE, 0
    work.round[0] += 1
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
                if not work.memo.stuck[entry]:
                    _try_entry(work, entry, value)
                looked += 1
        if best.number[0] != NONE and first_lowered(best) == value:
            return True
        ceiling = value
    return False


@kernel
def make_best(work: Workspace) -> None:
    """Make the step ``work.best``."""
    net, guest, node = work.net, work.guest, work.state.node
    nodes, number = len(net.first) - 1, work.best.number[0]
    if number < len(node) * nodes:
        v, q = number // nodes, number % nodes
        for at in range(guest.first[v], guest.first[v + 1]):
            free_around(work, guest.source[guest.edge[at]])
            free_around(work, guest.target[guest.edge[at]])
        for a in range(net.first[node[v]], net.first[node[v] + 1]):
            if net.head[a] == q:
                move(work, v, q, int(net.link[a]), np.inf, True)
        node[v] = q
    else:
        e = number - len(node) * nodes
        free_around(work, guest.source[e])
        free_around(work, guest.target[e])
        reroute(work, e, int(np.int64(NONE)), np.inf, True)
    free_changed(work)
    clear_changes(work.changed)


@inner
def _try_entry(work: Workspace, entry: int, limit: float) -> None:
    """Try all steps that lower an entry whose load is `limit`, except those that lift one above it.

    A step that lifts an entry above `limit` is either no better than no step, or was tried before with an
    entry as high as that, which it then lowers.
    """
    nodes, memo = len(work.net.first) - 1, work.memo
    memo.entry[0], memo.sure[0] = entry, True
    work.round[1] += 1
    if len(memo.until) > 0:
        memo.until[entry] = -1.0
    if entry >= nodes:
        _try_link(work, entry - nodes, limit)
    else:
        node, vertex = work.state.node, work.guest.vertex
        for v in range(len(node)):
            if node[v] == entry and vertex[v] > 0.0:
                _try_moves(work, int(v), limit)
    memo.stuck[entry] = memo.sure[0]


@inner
def _try_link(work: Workspace, link: int, limit: float) -> None:
    """Try to re-route each flow of a link, and to move both of its ends."""
    guest, state = work.guest, work.state
    route, length, flow = state.route, state.length, guest.flow
    for e in range(len(flow)):
        for k in range(length[e]):
            if route[e, k] == link and flow[e] > 0.0:
                _try_reroute(work, e, link, limit)
                for v in (int(np.int64(guest.source[e])), int(np.int64(guest.target[e]))):
                    if work.thorough:
                        _try_moves(work, v, limit)
                    else:
                        _try_moves_across(work, e, v, link, limit)
                break


@kernel
def _try_moves(work: Workspace, v: int, limit: float) -> None:
    """Try to move a vertex to each neighbour of its node, unless that was done in this round."""
    if work.thorough:
        if work.seen[v] == work.round[0]:
            work.memo.sure[0] = False
            return
        work.seen[v] = work.round[0]
    net, here = work.net, work.state.node[v]
    for a in range(net.first[here], net.first[here + 1]):
        _try_move(work, v, int(np.int64(net.head[a])), int(net.link[a]), limit)


@inner
def _try_moves_across(work: Workspace, e: int, v: int, link: int, limit: float) -> None:
    """Try to move an end of a flow to nodes of its route beyond a link.

    If routes only grow or shrink, no other move of it takes this flow off the link.
    """
    net, here, across, tried = work.net, work.state.node[v], False, work.tried
    at = int(here)
    if work.seen[v] != work.round[1]:
        work.seen[v], tried[v] = work.round[1], 0
    for k in range(np.int64(work.state.length[e])):
        one = link_at(work, e, v, k)
        at = int(net.ends[one]) - at
        across = across or one == link
        if across:
            for a in range(net.first[here], net.first[here + 1]):
                bit = 1 << min(a - net.first[here], 62)
                if net.head[a] == at and not (tried[v] & bit and bit != LAST_BIT):
                    tried[v] |= bit
                    _try_move(work, v, at, int(net.link[a]), limit)


@kernel
def _try_move(work: Workspace, v: int, q: int, link: int, limit: float) -> None:
    """Try to move a vertex to node `q` along a link."""
    weight, load = work.guest.vertex[v], work.state.load
    if weight > 0.0 and load[q] + weight > limit:
        lifts_one(work.memo, q, limit - weight)
        return
    lifted = NONE
    if move(work, v, q, link, limit, False):
        number = v * (len(work.net.first) - 1) + q
        lifted = consider(work.changed, number, limit, work.trial, work.best)
    if lifted == NONE or work.thorough:  # thorough ones depend on all links
        work.memo.sure[0] = False
    else:
        lifts_one(work.memo, lifted, limit - (load[lifted] - work.changed.saved[lifted]))
    undo_changes(work.changed)


@inner
def _try_reroute(work: Workspace, e: int, link: int, limit: float) -> None:
    """Try to re-route a flow without a link."""
    if reroute(work, e, link, limit, False):
        number = len(work.state.node) * (len(work.net.first) - 1) + e
        work.memo.sure[0] = False
        consider(work.changed, number, limit, work.trial, work.best)
    undo_changes(work.changed)


@kernel
def move(work: Workspace, v: int, q: int, link: int, limit: float, lasting: bool) -> bool:
    """Change loads as if a vertex moved to node `q` along a link; if `lasting`, change its routes too.

    Returns:
        False if the move is not possible: because of `limit`, or of a route that would be too long.
    """
    weight = work.guest.vertex[v]
    add(work.changed, int(work.state.node[v]), -weight)
    add(work.changed, q, weight)
    if work.thorough:
        return bool(_reroute_all(work, v, q, limit, lasting))
    return bool(_grow_or_shrink(work, v, q, link, lasting))


@kernel
def _reroute_all(work: Workspace, v: int, q: int, limit: float, lasting: bool) -> bool:
    """Remove all flows of a vertex and route them from node `q`, the heaviest first."""
    net, guest, state, changed = work.net, work.guest, work.state, work.changed
    nodes, path, load = len(net.first) - 1, work.search.path, state.load
    for at in range(guest.first[v], guest.first[v + 1]):
        e = guest.edge[at]
        for k in range(state.length[e]):
            add(changed, nodes + state.route[e, k], -guest.flow[e])
    for at in range(guest.first[v], guest.first[v + 1]):
        e = guest.edge[at]
        start = int(np.int64(state.node[guest.source[e]]))
        goal = int(np.int64(state.node[guest.target[e]]))
        if guest.source[e] == v:
            start = q
        else:
            goal = q
        count = least_congested(net, load[nodes:], start, goal, guest.flow[e], work.search)
        if count < 0:
            return False
        for k in range(count):
            entry = nodes + path[k]
            add(changed, entry, guest.flow[e])
            if load[entry] > limit and load[entry] > changed.saved[entry]:
                return False  # it only grows from here on
        if lasting:
            state.length[e] = count
            copy_first(count, path, state.route[e])
    return True


@kernel
def _grow_or_shrink(work: Workspace, v: int, q: int, link: int, lasting: bool) -> bool:
    """Let each route of a vertex start at `q`: cut if it leads through that node, else extended."""
    net, guest, state = work.net, work.guest, work.state
    nodes, route, length = len(net.first) - 1, state.route, state.length
    for at in range(guest.first[v], guest.first[v + 1]):
        e = int(np.int64(guest.edge[at]))
        flow, here, cut = guest.flow[e], int(state.node[v]), 0
        for k in range(np.int64(length[e])):
            here = int(net.ends[link_at(work, e, v, k)]) - here
            if here == q:
                cut = k + 1
                break
        if cut == 0 and length[e] == route.shape[1]:
            return False
        if cut == 0:
            add(work.changed, nodes + link, flow)
        for k in range(cut):
            add(work.changed, nodes + link_at(work, e, v, k), -flow)
        if lasting:
            _change_route(route[e], length, e, guest.source[e] == v, cut, link)
    return True


@kernel
def _change_route(path: Ints, length: Ints, e: int, at_start: bool, cut: int, link: int) -> None:
    """Cut so many links off one end of a route, or if that is 0 add a link there."""
    count = length[e]
    if cut > 0:
        length[e] = count - cut
        if at_start:
            for k in range(cut, count):
                path[k - cut] = path[k]
        return
    length[e] = count + 1
    if at_start:
        for k in range(count, 0, -1):
            path[k] = path[k - 1]
    path[0 if at_start else count] = link


@kernel
def link_at(work: Workspace, e: int, v: int, k: int) -> int:
    """Return the k-th link of a route, counted from its end `v`."""
    place = k if work.guest.source[e] == v else work.state.length[e] - 1 - k
    return int(work.state.route[e, place])


@kernel
def reroute(work: Workspace, e: int, avoided: int, limit: float, lasting: bool) -> bool:
    """Change loads as if a flow took its least congested path; if `lasting`, change its route too.

    Returns:
        False if no path without the link `avoided` (or `NONE`) stays at or below `limit` on all links that
        are not on the present route.
    """
    net, guest, state, path = work.net, work.guest, work.state, work.search.path
    nodes, flow = len(net.first) - 1, guest.flow[e]
    for k in range(state.length[e]):
        add(work.changed, nodes + state.route[e, k], -flow)
    start = int(np.int64(state.node[guest.source[e]]))
    goal = int(np.int64(state.node[guest.target[e]]))
    if avoided != NONE and not _connected(work, start, goal, flow, avoided, limit):
        return False
    count = least_congested(net, state.load[nodes:], start, goal, flow, work.search)
    if count < 0:
        work.memo.sure[0] = False
        return False
    for k in range(count):
        add(work.changed, nodes + path[k], flow)
    if lasting:
        state.length[e] = count
        copy_first(count, path, state.route[e])
    return True


@kernel
def _connected(work: Workspace, start: int, goal: int, flow: float, avoided: int, limit: float) -> bool:
    """Return True if a path connects two nodes without `avoided`.

    Its links are at most at the limit with the flow, or used by the flow now.
    """
    net, load, touched = work.net, work.state.load, work.changed.touched
    nodes, known, queue = len(net.first) - 1, work.search.hops, work.search.queue
    known[:] = NONE
    known[start] = 0
    queue[0] = start
    at, count = 0, 1
    while at < count:
        v = queue[at]
        at += 1
        for a in range(net.first[v], net.first[v + 1]):
            u, entry = net.head[a], nodes + net.link[a]
            if known[u] != NONE or net.link[a] == avoided:
                continue
            if load[entry] + flow > limit and not touched[entry]:
                lifts_one(work.memo, entry, limit - flow)
                continue
            if u == goal:
                return True
            known[u] = 0
            queue[count] = u
            count += 1
    return False
