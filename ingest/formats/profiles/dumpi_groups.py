"""Ranks of the communicators in a DUMPI trace, from the calls that made them.

A trace numbers communicators separately for each rank. Members of a communicator make others from it in the
same order, so that the k-th communicator that each makes from a parent is the same one: ``MPI_Comm_dup``
gives it the parent's ranks, ``MPI_Comm_split`` those with the same color, in the order of their keys and then
of their ranks in the parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

WORLD = -1
"""Number of MPI_COMM_WORLD in this module."""
UNKNOWN = -2
"""Number of a communicator whose origin is not in the trace."""


class Made(NamedTuple):
    """A call that made a communicator.

    Attributes
    ----------
    parent : int
        Communicator from which it was made: `WORLD`, `UNKNOWN`, or its index in the rank's list.
    turn : int
        Number of communicators that the rank had made from that parent before.
    how : str
        Name of the call; ``other`` if the new ranks are unknown.
    color, key : int
        Arguments of ``MPI_Comm_split``.
    """

    parent: int
    turn: int
    how: str
    color: int
    key: int


def members_of(made: Mapping[int, Sequence[Made]], ranks: int) -> dict[tuple[int, int], Sequence[int]]:
    """Return the world ranks of each communicator in its order, by (rank, index in that rank's list).

    Communicators are ignored if a member without a trace took part, or if they were made by other calls: the
    destinations of their messages are unknown.
    """
    world = tuple(range(ranks))
    found: dict[tuple[int, int], Sequence[int]] = {(rank, WORLD): world for rank in made}
    by_turn = {
        rank: {(entry.parent, entry.turn): number for number, entry in enumerate(entries)}
        for rank, entries in made.items()
    }
    waiting = [(rank, number) for rank, entries in made.items() for number in range(len(entries))]
    while waiting:
        left = [place for place in waiting if not _settle(place, made, by_turn, found)]
        if len(left) == len(waiting):
            break
        waiting = left
    return found


def _settle(
    place: tuple[int, int],
    made: Mapping[int, Sequence[Made]],
    by_turn: Mapping[int, Mapping[tuple[int, int], int]],
    found: dict[tuple[int, int], Sequence[int]],
) -> bool:
    """Find one communicator's ranks if its parent's are known; return True if they were found."""
    rank, number = place
    if place in found:
        return True
    entry = made[rank][number]
    parent = found.get((rank, entry.parent))
    if parent is None:
        return False
    if entry.how in ("MPI_Comm_dup", "MPI_Cart_create"):
        found[place] = parent
        return True
    if entry.how != "MPI_Comm_split":
        return False
    same = []
    for order, member in enumerate(parent):
        number_there = _there(member, entry, parent, made, by_turn, found)
        if number_there is None:
            return False
        other = made[member][number_there]
        if other.how != "MPI_Comm_split":
            return False
        if other.color == entry.color:
            same.append((other.key, order, member))
    found[place] = tuple(member for _, _, member in sorted(same))
    return True


def _there(
    member: int,
    entry: Made,
    parent: Sequence[int],
    made: Mapping[int, Sequence[Made]],
    by_turn: Mapping[int, Mapping[tuple[int, int], int]],
    found: Mapping[tuple[int, int], Sequence[int]],
) -> int | None:
    """Return the index, in another member's trace, of the same communicator."""
    for (old, turn), number in by_turn.get(member, {}).items():
        if turn == entry.turn and found.get((member, old)) == parent:
            return number
    return None
