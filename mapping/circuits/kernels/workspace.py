"""Data of a refinement: loads changed for a trial, steps and their comparison, and entries known to be stuck.

A performance vector lists the throughputs of all nodes and links in ascending order; the greater is better,
compared from the first entry on. Here entries are loads, their reciprocals, in descending order, and the
smaller is better. Sorting n + m of them for every step would take most of the time. But entries that a step
does not change are in both vectors: the decision is made by the largest value whose number differs between
the old and the new entries of those that change. Two steps are compared alike: the new entries of one and the
old ones of the other with the new ones of the other and the old ones of the one. Loads must add up without
rounding, as on a grid; then comparisons are exact.

If all steps that lower an entry lift others above it, these others are stored (`Memo`): until one of them
falls far enough, or a flow or vertex concerned moves, no step usefully lowers that entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.circuits.kernels.routes import Guest, Net, PartitionState, Search, copy_first, new_search
from mapping.kernels.decorators import kernel
from registry.model import Bools, Floats, Ints, Longs

NONE = -1
MOST_KNOWN = 2048
"""Largest number of nodes and links for which the memo is stored: it has the square of entries."""


class Step(NamedTuple):
    """Effect of a step on loads; changed in place."""

    number: Longs
    """int64[1]: `NONE` for no step."""
    size: Longs
    """int64[1]: Number of changed entries."""
    old: Floats
    new: Floats
    """float64[entries]: Their loads before and after, each in descending order."""


class LoadChanges(NamedTuple):
    """Loads, and which of them were changed for a trial; changed in place."""

    load: Floats
    """float64[entries]: Loads of nodes, then of links."""
    changes: Longs
    """int64[1]: Number of changed entries."""
    entry: Ints
    """int32[entries]: The changed entries come first."""
    touched: Bools
    """bool[entries]: True for a changed entry."""
    saved: Floats
    """float64[entries]: Load of a changed entry before the trial."""


def no_step(entries: int) -> Step:
    """Return memory for a step."""
    return Step(np.full(1, NONE), np.zeros(1, np.int64), np.zeros(entries), np.zeros(entries))


def new_load_changes(load: Floats) -> LoadChanges:
    """Return loads without changes."""
    entries = len(load)
    return LoadChanges(
        load=load,
        changes=np.zeros(1, np.int64),
        entry=np.zeros(entries, np.int32),
        touched=np.zeros(entries, np.bool_),
        saved=np.zeros(entries),
    )


class Memo(NamedTuple):
    """Entries that no step can lower without lifting others above them; changed in place."""

    stuck: Bools
    """bool[n + m]: True for such an entry."""
    until: Floats
    """float64[n + m, n + m]: By stuck entry, and entry that its steps would lift above it: the load to which
    the latter must fall so that one of them does not; -1 if there is none. Empty if it would be too large."""
    entry: Longs
    """int64[1]: Entry in question."""
    sure: Bools
    """bool[1]: True if all of its steps so far lift a known entry."""


class Workspace(NamedTuple):
    """All data of a refinement; made by `new_workspace`.

    Step v * n + q moves vertex v to node q; step vertices * n + e re-routes edge e.
    """

    net: Net
    guest: Guest
    state: PartitionState
    search: Search
    changed: LoadChanges
    """Changes of the loads of `state`."""
    best: Step
    trial: Step
    memo: Memo
    seen: Longs
    """int64[v]: Round in which all moves of a vertex were tried; for routes that grow or shrink, number of
    the entry."""
    tried: Longs
    """int64[v]: Moves that were tried for that entry: bits, by neighbour."""
    round: Longs
    """int64[2]: Number of searches for the best step, and of entries tried."""
    thorough: bool
    """True: the flows of a moved vertex are routed again, heaviest first, each along its least congested
    path. False: their routes grow or shrink at that end, by the link that the vertex moves along, or by all
    links before its new node if that is on the route."""


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


@kernel
def add(changed: LoadChanges, entry: int, amount: float) -> None:
    """Change a load for a trial."""
    if not changed.touched[entry]:
        changed.touched[entry] = True
        changed.saved[entry] = changed.load[entry]
        changed.entry[changed.changes[0]] = entry
        changed.changes[0] += 1
    changed.load[entry] += amount


@kernel
def undo_changes(changed: LoadChanges) -> None:
    """Restore all changed loads."""
    for k in range(changed.changes[0]):
        entry = changed.entry[k]
        changed.load[entry] = changed.saved[entry]
        changed.touched[entry] = False
    changed.changes[0] = 0


@kernel
def clear_changes(changed: LoadChanges) -> None:
    """Make the changes of loads permanent."""
    for k in range(changed.changes[0]):
        changed.touched[changed.entry[k]] = False
    changed.changes[0] = 0


@kernel
def compare(one: Step, other: Step) -> int:
    """Return a negative number if `one` has the better performance vector, a positive if `other` has."""
    ones, others = one.size[0], other.size[0]
    a, b, c, d = 0, 0, 0, 0
    while True:
        top = -1.0  # below all loads
        if a < ones:
            top = max(top, one.new[a])
        if b < others:
            top = max(top, other.old[b])
        if c < others:
            top = max(top, other.new[c])
        if d < ones:
            top = max(top, one.old[d])
        more = 0
        while a < ones and one.new[a] == top:
            a, more = a + 1, more + 1
        while b < others and other.old[b] == top:
            b, more = b + 1, more + 1
        while c < others and other.new[c] == top:
            c, more = c + 1, more - 1
        while d < ones and one.old[d] == top:
            d, more = d + 1, more - 1
        if more != 0 or top < 0.0:
            return more


@kernel
def first_lowered(step: Step) -> float:
    """Return the highest entry that a step, better than none, removes from the vector."""
    for k in range(step.size[0]):
        if step.old[k] != step.new[k]:
            return float(step.old[k])
    return 0.0


@kernel
def consider(changed: LoadChanges, number: int, limit: float, trial: Step, best: Step) -> int:
    """Store the changes as the best step if it is better than the best so far.

    At equality the lower number wins; the first step must be better than no step. A step that lifts an entry
    above `limit` is ignored.

    Returns:
        An entry that is lifted above the limit, or `NONE`.
    """
    lifted = _list_changes(changed, limit, trial)
    if lifted != NONE:
        return int(lifted)
    sign = compare(trial, best)
    if sign < 0 or (sign == 0 and number < best.number[0]):
        size = trial.size[0]
        best.number[0], best.size[0] = number, size
        copy_first(size, trial.old, best.old)
        copy_first(size, trial.new, best.new)
    return NONE


@kernel
def _list_changes(changed: LoadChanges, limit: float, trial: Step) -> int:
    """Fill `trial` with the changed entries; return one that is lifted above the limit, or `NONE`."""
    size = 0
    for k in range(changed.changes[0]):
        entry = changed.entry[k]
        old, new = changed.saved[entry], changed.load[entry]
        if new > old and new > limit:
            return int(entry)
        if new != old:
            _insert(trial.old, size, old)
            _insert(trial.new, size, new)
            size += 1
    trial.size[0] = size
    return NONE


@kernel
def _insert(values: Floats, count: int, value: float) -> None:
    """Insert a value into values in descending order."""
    at = count
    while at > 0 and values[at - 1] < value:
        values[at] = values[at - 1]
        at -= 1
    values[at] = value


@kernel
def lifts_one(memo: Memo, entry: int, until: float) -> None:
    """Record that a step lifts an entry above the one in question, until it has fallen to a load."""
    if len(memo.until) > 0:
        memo.until[memo.entry[0], entry] = max(memo.until[memo.entry[0], entry], until)
    else:
        memo.sure[0] = False


@kernel
def free_around(work: Workspace, v: int) -> None:
    """Reset stuck entries that moving a vertex, or re-routing one of its flows, may lower."""
    guest, state, stuck = work.guest, work.state, work.memo.stuck
    nodes = len(work.net.first) - 1
    stuck[state.node[v]] = False
    for at in range(guest.first[v], guest.first[v + 1]):
        e = guest.edge[at]
        for k in range(state.length[e]):
            stuck[nodes + state.route[e, k]] = False


@kernel
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
