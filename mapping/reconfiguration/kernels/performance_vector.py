"""Performance vectors compared by what changes, on plain arrays.

A performance vector lists the throughputs of all nodes and links in increasing order; the greater is better,
compared from the first entry on. Here entries are loads, whose reciprocals they are: they are listed in
decreasing order, and the smaller is better. Sorted anew for every step, n + m of them would take most of the
time. But entries that a step does not change stand in both vectors: what decides is the largest value that
does not stand equally often among the old entries and among the new ones of those that change. Two steps
compare alike: one's new entries and the other's old ones against the other's new ones and the one's old.

Loads must add up without rounding, as on a grid; then comparisons are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from registry.model import Bools, Floats, Ints, Longs

NONE = -1


class Step(NamedTuple):
    """What a step does; changed in place.

    Attributes
    ----------
    number : int64[1]
        `NONE` for no step.
    size : int64[1]
        Entries that it changes.
    old, new : float64[entries]
        Their loads, each in decreasing order.
    """

    number: Longs
    size: Longs
    old: Floats
    new: Floats


class Notes(NamedTuple):
    """Loads, and which of them were changed for a trial; changed in place.

    Attributes
    ----------
    load : float64[entries]
        Of nodes, then of links.
    changes : int64[1]
    entry : int32[entries]
        The first so many were changed.
    touched : bool[entries]
        Whether an entry is among them.
    saved : float64[entries]
        The load of those before.
    """

    load: Floats
    changes: Longs
    entry: Ints
    touched: Bools
    saved: Floats


def no_step(entries: int) -> Step:
    """Room for a step."""
    return Step(np.full(1, NONE), np.zeros(1, np.int64), np.zeros(entries), np.zeros(entries))


def new_notes(load: Floats) -> Notes:
    """Nothing changed yet."""
    entries = len(load)
    return Notes(
        load=load,
        changes=np.zeros(1, np.int64),
        entry=np.zeros(entries, np.int32),
        touched=np.zeros(entries, np.bool_),
        saved=np.zeros(entries),
    )


@nb.njit(cache=True)
def add(notes: Notes, entry: int, amount: float) -> None:
    """Change a load for a trial."""
    if not notes.touched[entry]:
        notes.touched[entry] = True
        notes.saved[entry] = notes.load[entry]
        notes.entry[notes.changes[0]] = entry
        notes.changes[0] += 1
    notes.load[entry] += amount


@nb.njit(cache=True)
def undo(notes: Notes) -> None:
    """Put back all loads that were changed."""
    for k in range(notes.changes[0]):
        entry = notes.entry[k]
        notes.load[entry] = notes.saved[entry]
        notes.touched[entry] = False
    notes.changes[0] = 0


@nb.njit(cache=True)
def keep_changes(notes: Notes) -> None:
    """Let loads stay as they were changed."""
    for k in range(notes.changes[0]):
        notes.touched[notes.entry[k]] = False
    notes.changes[0] = 0


@nb.njit(cache=True, nogil=True)
def compare(one: Step, other: Step) -> int:
    """Negative where `one` leads to a better performance vector than `other`, positive where to a worse."""
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


@nb.njit(cache=True)
def first_lowered(step: Step) -> float:
    """The highest entry that a step, better than none, takes from the vector."""
    for k in range(step.size[0]):
        if step.old[k] != step.new[k]:
            return float(step.old[k])
    return 0.0


@nb.njit(cache=True)
def consider(notes: Notes, number: int, limit: float, trial: Step, best: Step) -> int:
    """Keep what was changed as the best step, where it is better than the best so far.

    Of equals the lower number wins; where there is no best yet, it must be better than no step. One that
    lifts an entry above `limit` is left.

    Returns
    -------
    int
        An entry that is lifted above the limit; `NONE` where there is none.
    """
    lifted = _list_changes(notes, limit, trial)
    if lifted != NONE:
        return int(lifted)
    sign = compare(trial, best)
    if sign < 0 or (sign == 0 and number < best.number[0]):
        size = trial.size[0]
        best.number[0], best.size[0] = number, size
        best.old[:size] = trial.old[:size]
        best.new[:size] = trial.new[:size]
    return NONE


@nb.njit(cache=True)
def _list_changes(notes: Notes, limit: float, trial: Step) -> int:
    """Fill `trial` with the entries that differ, and return one that is lifted above the limit, or `NONE`."""
    size = 0
    for k in range(notes.changes[0]):
        entry = notes.entry[k]
        old, new = notes.saved[entry], notes.load[entry]
        if new > old and new > limit:
            return int(entry)
        if new != old:
            _insert(trial.old, size, old)
            _insert(trial.new, size, new)
            size += 1
    trial.size[0] = size
    return NONE


@nb.njit(cache=True)
def _insert(values: Floats, count: int, value: float) -> None:
    """Put one more into values in decreasing order."""
    at = count
    while at > 0 and values[at - 1] < value:
        values[at] = values[at - 1]
        at -= 1
    values[at] = value
