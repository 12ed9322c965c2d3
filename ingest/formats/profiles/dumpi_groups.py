"""Which ranks of MPI_COMM_WORLD a communicator of a DUMPI trace has, from what all ranks did to make it.

A trace numbers communicators rank by rank. Members of one make others from it in the same order, so that
the k-th communicator that each makes from a parent is made together: by ``MPI_Comm_dup`` it has the
parent's ranks, by ``MPI_Comm_split`` those with the same color, in the order of their keys and then of
their ranks in the parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

WORLD = -1
"""Number of MPI_COMM_WORLD here."""
UNKNOWN = -2
"""Number of a communicator that the trace does not tell of."""


class Made(NamedTuple):
    """How a rank made a communicator.

    Attributes
    ----------
    parent : int
        The communicator that it was made from: `WORLD`, `UNKNOWN`, or its place in the rank's list.
    turn : int
        How many communicators the rank had made from that parent before.
    how : str
        Name of the call; ``other`` where its ranks cannot be told.
    color, key : int
        Of ``MPI_Comm_split``.
    """

    parent: int
    turn: int
    how: str
    color: int
    key: int


def members_of(made: Mapping[int, Sequence[Made]], ranks: int) -> dict[tuple[int, int], Sequence[int]]:
    """Ranks of MPI_COMM_WORLD in each communicator, in its order, by (rank, place in that rank's list).

    Communicators that a rank with members without a trace made are left out, as are those made otherwise than
    by the calls above: what goes through them cannot be told.
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
    """Find one communicator's ranks, once its parent's are known; whether that could be done."""
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
    """Number, in another member's trace, of the communicator that was made together with this one."""
    for (old, turn), number in by_turn.get(member, {}).items():
        if turn == entry.turn and found.get((member, old)) == parent:
            return number
    return None
