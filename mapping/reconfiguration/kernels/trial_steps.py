"""Steps of the local update on trial: vertices that move, flows that are re-routed, and what they lift.

Where all steps that lower an entry lift others above it, these are kept in mind (`Memo`): until one of them
falls far enough, or a flow or vertex concerned moves, no step lowers that entry to good purpose.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from mapping.reconfiguration.kernels.performance_vector import NONE, Notes, Step, add, new_notes, no_step
from mapping.reconfiguration.kernels.unsplit_routes import (
    Guest,
    Net,
    Search,
    Standing,
    least_congested,
    new_search,
)
from registry.model import Bools, Floats, Ints, Longs

MOST_KNOWN = 2048
"""Nodes and links of a topology for which the memo is kept: it has that many squared entries."""


class Memo(NamedTuple):
    """Entries that no step can lower without lifting others above them; changed in place.

    Attributes
    ----------
    stuck : bool[n + m]
        Whether an entry is known to be one.
    until : float64[n + m, n + m]
        By entry that is stuck, and entry that its steps would lift above it: the load down to which the
        latter must fall for one of these not to; -1 where there is none. Of no entries where that would be
        too many.
    entry : int64[1]
        Entry that is looked at.
    sure : bool[1]
        Whether all of its steps so far lift a known entry.
    """

    stuck: Bools
    until: Floats
    entry: Longs
    sure: Bools


class Bench(NamedTuple):
    """All that a refinement works with. Made by `new_bench`.

    Step v * n + q moves vertex v to node q; step vertices * n + e re-routes edge e.

    Attributes
    ----------
    notes : Notes
        Of the standing's loads.
    best, trial : Step
    seen : int64[v]
        Round in which all moves of a vertex were tried; for routes that grow or shrink, look.
    tried : int64[v]
        Moves that were tried in that look: bits, by neighbour.
    round : int64[2]
        Searches for the best step so far, and looks at an entry.
    thorough : bool
        Whether the flows of a moved vertex are re-routed, heaviest first, each along its least congested
        path; otherwise their routes grow or shrink at that end: by the link that the vertex moves along, or
        by all links before its new node where that is on the route.
    """

    net: Net
    guest: Guest
    standing: Standing
    search: Search
    notes: Notes
    best: Step
    trial: Step
    memo: Memo
    seen: Longs
    tried: Longs
    round: Longs
    thorough: bool


def new_bench(net: Net, guest: Guest, standing: Standing, thorough: bool) -> Bench:
    """A bench on a standing, which refinement changes in place."""
    entries, longest = len(standing.load), standing.route.shape[1]
    known = entries if entries <= MOST_KNOWN else 0
    memo = Memo(
        stuck=np.zeros(entries, np.bool_),
        until=np.zeros((known, known)),
        entry=np.zeros(1, np.int64),
        sure=np.zeros(1, np.bool_),
    )
    return Bench(
        net=net,
        guest=guest,
        standing=standing,
        search=new_search(len(net.first) - 1, len(net.ends), longest),
        notes=new_notes(standing.load),
        best=no_step(entries),
        trial=no_step(entries),
        memo=memo,
        seen=np.zeros(len(guest.vertex), np.int64),
        tried=np.zeros(len(guest.vertex), np.int64),
        round=np.zeros(2, np.int64),
        thorough=thorough,
    )


@nb.njit(cache=True)
def move(bench: Bench, v: int, q: int, link: int, limit: float, lasting: bool) -> bool:
    """Change loads as if a vertex went to node `q` along a link; its routes too, for a `lasting` move.

    Returns
    -------
    bool
        False where the move is to be left: for `limit`, or for a route that would be too long.
    """
    weight = bench.guest.vertex[v]
    add(bench.notes, int(bench.standing.node[v]), -weight)
    add(bench.notes, q, weight)
    if bench.thorough:
        return bool(_reroute_all(bench, v, q, limit, lasting))
    return bool(_grow_or_shrink(bench, v, q, link, lasting))


@nb.njit(cache=True)
def _reroute_all(bench: Bench, v: int, q: int, limit: float, lasting: bool) -> bool:
    """Take all flows of a vertex off their links and route them from node `q`, the heaviest first."""
    net, guest, standing, notes = bench.net, bench.guest, bench.standing, bench.notes
    nodes, path, load = len(net.first) - 1, bench.search.path, standing.load
    for at in range(guest.first[v], guest.first[v + 1]):
        e = guest.edge[at]
        for k in range(standing.length[e]):
            add(notes, nodes + standing.route[e, k], -guest.flow[e])
    for at in range(guest.first[v], guest.first[v + 1]):
        e = guest.edge[at]
        start = int(np.int64(standing.node[guest.source[e]]))
        goal = int(np.int64(standing.node[guest.target[e]]))
        if guest.source[e] == v:
            start = q
        else:
            goal = q
        count = least_congested(net, load[nodes:], start, goal, guest.flow[e], bench.search)
        if count < 0:
            return False
        for k in range(count):
            entry = nodes + path[k]
            add(notes, entry, guest.flow[e])
            if load[entry] > limit and load[entry] > notes.saved[entry]:
                return False  # it only grows from here on
        if lasting:
            standing.length[e] = count
            standing.route[e, :count] = path[:count]
    return True


@nb.njit(cache=True)
def _grow_or_shrink(bench: Bench, v: int, q: int, link: int, lasting: bool) -> bool:
    """Let each route of a vertex begin at `q`: where it leads through that node cut, else led there."""
    net, guest, standing = bench.net, bench.guest, bench.standing
    nodes, route, length = len(net.first) - 1, standing.route, standing.length
    for at in range(guest.first[v], guest.first[v + 1]):
        e = int(np.int64(guest.edge[at]))
        flow, here, cut = guest.flow[e], int(standing.node[v]), 0
        for k in range(np.int64(length[e])):
            here = int(net.ends[link_at(bench, e, v, k)]) - here
            if here == q:
                cut = k + 1
                break
        if cut == 0 and length[e] == route.shape[1]:
            return False
        if cut == 0:
            add(bench.notes, nodes + link, flow)
        for k in range(cut):
            add(bench.notes, nodes + link_at(bench, e, v, k), -flow)
        if lasting:
            _change_route(route[e], length, e, guest.source[e] == v, cut, link)
    return True


@nb.njit(cache=True)
def _change_route(path: Ints, length: Ints, e: int, at_start: bool, cut: int, link: int) -> None:
    """Cut so many links off one end of a route, or, where that is 0, put a link on it."""
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
def link_at(bench: Bench, e: int, v: int, k: int) -> int:
    """The k-th link of a route, seen from its end `v`."""
    place = k if bench.guest.source[e] == v else bench.standing.length[e] - 1 - k
    return int(bench.standing.route[e, place])


@nb.njit(cache=True)
def reroute(bench: Bench, e: int, avoided: int, limit: float, lasting: bool) -> bool:
    """Change loads as if a flow took its least congested path; its route too, for a `lasting` step.

    Returns
    -------
    bool
        False where no path without the link `avoided` (or `NONE`) stays at or below `limit` on all links
        that are not on the route now.
    """
    net, guest, standing, path = bench.net, bench.guest, bench.standing, bench.search.path
    nodes, flow = len(net.first) - 1, guest.flow[e]
    for k in range(standing.length[e]):
        add(bench.notes, nodes + standing.route[e, k], -flow)
    start = int(np.int64(standing.node[guest.source[e]]))
    goal = int(np.int64(standing.node[guest.target[e]]))
    if avoided != NONE and not _joined(bench, start, goal, flow, avoided, limit):
        return False
    count = least_congested(net, standing.load[nodes:], start, goal, flow, bench.search)
    if count < 0:
        bench.memo.sure[0] = False
        return False
    for k in range(count):
        add(bench.notes, nodes + path[k], flow)
    if lasting:
        standing.length[e] = count
        standing.route[e, :count] = path[:count]
    return True


@nb.njit(cache=True)
def _joined(bench: Bench, start: int, goal: int, flow: float, avoided: int, limit: float) -> bool:
    """Whether links other than `avoided`, at most at the limit with the flow or used by it now, join two."""
    net, load, touched = bench.net, bench.standing.load, bench.notes.touched
    nodes, known, queue = len(net.first) - 1, bench.search.hops, bench.search.queue
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
                lifts_one(bench.memo, entry, limit - flow)
                continue
            if u == goal:
                return True
            known[u] = 0
            queue[count] = u
            count += 1
    return False


@nb.njit(cache=True)
def lifts_one(memo: Memo, entry: int, until: float) -> None:
    """Note that a step lifts an entry above the one that is looked at, until it has fallen to a load."""
    if len(memo.until) > 0:
        memo.until[memo.entry[0], entry] = max(memo.until[memo.entry[0], entry], until)
    else:
        memo.sure[0] = False


@nb.njit(cache=True)
def free_around(bench: Bench, v: int) -> None:
    """Forget that entries are stuck that moving a vertex, or re-routing one of its flows, may lower."""
    guest, standing, stuck = bench.guest, bench.standing, bench.memo.stuck
    nodes = len(bench.net.first) - 1
    stuck[standing.node[v]] = False
    for at in range(guest.first[v], guest.first[v + 1]):
        e = guest.edge[at]
        for k in range(standing.length[e]):
            stuck[nodes + standing.route[e, k]] = False


@nb.njit(cache=True)
def free_changed(bench: Bench) -> None:
    """Forget that entries are stuck that a step has changed, or that were so for one that it has lowered."""
    notes, stuck, until = bench.notes, bench.memo.stuck, bench.memo.until
    for k in range(notes.changes[0]):
        entry = notes.entry[k]
        stuck[entry] = False
        if notes.load[entry] < notes.saved[entry]:
            for other in range(len(until)):
                if notes.load[entry] <= until[other, entry]:
                    stuck[other] = False
