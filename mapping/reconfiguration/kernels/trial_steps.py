"""Trial steps of the local update: moves of vertices, re-routed flows, and the entries that they lift.

If all steps that lower an entry lift others above it, these others are stored (`Memo`): until one of them
falls far enough, or a flow or vertex concerned moves, no step usefully lowers that entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from mapping.reconfiguration.kernels.performance_vector import (
    NONE,
    LoadChanges,
    Step,
    add,
    new_load_changes,
    no_step,
)
from mapping.reconfiguration.kernels.routes import (
    Guest,
    Net,
    PartitionState,
    Search,
    least_congested,
    new_search,
)
from registry.model import Bools, Floats, Ints, Longs

MOST_KNOWN = 2048
"""Largest number of nodes and links for which the memo is stored: it has the square of entries."""


class Memo(NamedTuple):
    """Entries that no step can lower without lifting others above them; changed in place.

    Attributes
    ----------
    stuck : bool[n + m]
        True for such an entry.
    until : float64[n + m, n + m]
        By stuck entry, and entry that its steps would lift above it: the load to which the latter must fall
        so that one of them does not; -1 if there is none. Empty if it would be too large.
    entry : int64[1]
        Entry in question.
    sure : bool[1]
        True if all of its steps so far lift a known entry.
    """

    stuck: Bools
    until: Floats
    entry: Longs
    sure: Bools


class Workspace(NamedTuple):
    """All data of a refinement; made by `new_workspace`.

    Step v * n + q moves vertex v to node q; step vertices * n + e re-routes edge e.

    Attributes
    ----------
    changed : LoadChanges
        Changes of the loads of `state`.
    best, trial : Step
    seen : int64[v]
        Round in which all moves of a vertex were tried; for routes that grow or shrink, number of the entry.
    tried : int64[v]
        Moves that were tried for that entry: bits, by neighbour.
    round : int64[2]
        Number of searches for the best step, and of entries tried.
    thorough : bool
        True: the flows of a moved vertex are routed again, heaviest first, each along its least congested
        path. False: their routes grow or shrink at that end, by the link that the vertex moves along, or by
        all links before its new node if that is on the route.
    """

    net: Net
    guest: Guest
    state: PartitionState
    search: Search
    changed: LoadChanges
    best: Step
    trial: Step
    memo: Memo
    seen: Longs
    tried: Longs
    round: Longs
    thorough: bool


def new_workspace(net: Net, guest: Guest, state: PartitionState, thorough: bool) -> Workspace:
    """Return the data of a refinement of a state, which is then changed in place."""
    entries, longest = len(state.load), state.route.shape[1]
    known = entries if entries <= MOST_KNOWN else 0
    memo = Memo(
        stuck=np.zeros(entries, np.bool_),
        until=np.zeros((known, known)),
        entry=np.zeros(1, np.int64),
        sure=np.zeros(1, np.bool_),
    )
    return Workspace(
        net=net,
        guest=guest,
        state=state,
        search=new_search(len(net.first) - 1, len(net.ends), longest),
        changed=new_load_changes(state.load),
        best=no_step(entries),
        trial=no_step(entries),
        memo=memo,
        seen=np.zeros(len(guest.vertex), np.int64),
        tried=np.zeros(len(guest.vertex), np.int64),
        round=np.zeros(2, np.int64),
        thorough=thorough,
    )


@nb.njit(cache=True)
def move(work: Workspace, v: int, q: int, link: int, limit: float, lasting: bool) -> bool:
    """Change loads as if a vertex moved to node `q` along a link; if `lasting`, change its routes too.

    Returns
    -------
    bool
        False if the move is not possible: because of `limit`, or of a route that would be too long.
    """
    weight = work.guest.vertex[v]
    add(work.changed, int(work.state.node[v]), -weight)
    add(work.changed, q, weight)
    if work.thorough:
        return bool(_reroute_all(work, v, q, limit, lasting))
    return bool(_grow_or_shrink(work, v, q, link, lasting))


@nb.njit(cache=True)
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
            state.route[e, :count] = path[:count]
    return True


@nb.njit(cache=True)
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


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def link_at(work: Workspace, e: int, v: int, k: int) -> int:
    """Return the k-th link of a route, counted from its end `v`."""
    place = k if work.guest.source[e] == v else work.state.length[e] - 1 - k
    return int(work.state.route[e, place])


@nb.njit(cache=True)
def reroute(work: Workspace, e: int, avoided: int, limit: float, lasting: bool) -> bool:
    """Change loads as if a flow took its least congested path; if `lasting`, change its route too.

    Returns
    -------
    bool
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
        state.route[e, :count] = path[:count]
    return True


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def lifts_one(memo: Memo, entry: int, until: float) -> None:
    """Record that a step lifts an entry above the one in question, until it has fallen to a load."""
    if len(memo.until) > 0:
        memo.until[memo.entry[0], entry] = max(memo.until[memo.entry[0], entry], until)
    else:
        memo.sure[0] = False


@nb.njit(cache=True)
def free_around(work: Workspace, v: int) -> None:
    """Reset stuck entries that moving a vertex, or re-routing one of its flows, may lower."""
    guest, state, stuck = work.guest, work.state, work.memo.stuck
    nodes = len(work.net.first) - 1
    stuck[state.node[v]] = False
    for at in range(guest.first[v], guest.first[v + 1]):
        e = guest.edge[at]
        for k in range(state.length[e]):
            stuck[nodes + state.route[e, k]] = False


@nb.njit(cache=True)
def free_changed(work: Workspace) -> None:
    """Reset stuck entries that a step has changed, or that were stuck because of one it lowered."""
    changed, stuck, until = work.changed, work.memo.stuck, work.memo.until
    for k in range(changed.changes[0]):
        entry = changed.entry[k]
        stuck[entry] = False
        if changed.load[entry] < changed.saved[entry]:
            for other in range(len(until)):
                if changed.load[entry] <= until[other, entry]:
                    stuck[other] = False
