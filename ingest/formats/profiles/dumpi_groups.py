"""Ranks of the communicators in a DUMPI trace, from the calls that made them.

A trace numbers communicators separately for each rank. Members of a communicator make others from it in the
same order, so that the k-th communicator that each makes from a parent is the same one: ``MPI_Comm_dup``
gives it the parent's ranks, ``MPI_Comm_split`` those with the same color, in the order of their keys and then
of their ranks in the parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class _Communicator:
    """A communicator with its world ranks in order; two with the same ranks are not equal."""

    ranks: Sequence[int]


def members_of(made: Mapping[int, Sequence[Made]], ranks: int) -> dict[tuple[int, int], Sequence[int]]:
    """Return the world ranks of each communicator in its order, by (rank, index in that rank's list).

    Communicators are ignored if a member without a trace took part, or if they were made by other calls: the
    destinations of their messages are unknown.
    """
    world = _Communicator(range(ranks))
    found = {(rank, WORLD): world for rank in made}
    known = 0
    while known < len(found):
        known = len(found)
        calls: dict[tuple[_Communicator, int], dict[int, int]] = {}
        for rank, entries in made.items():
            for index, entry in enumerate(entries):
                parent = found.get((rank, entry.parent))
                if parent is not None and (rank, index) not in found:
                    calls.setdefault((parent, entry.turn), {})[rank] = index
        for (parent, _), indices in calls.items():
            for members in _members(parent, {rank: made[rank][index] for rank, index in indices.items()}):
                communicator = _Communicator(members)
                found |= {(rank, indices[rank]): communicator for rank in members if rank in indices}
    return {place: communicator.ranks for place, communicator in found.items()}


def _members(parent: _Communicator, entries: Mapping[int, Made]) -> Iterator[Sequence[int]]:
    """Yield the world ranks of each communicator that one call of the parent's members made, if known."""
    calls = {entry.how for entry in entries.values()}
    if calls <= {"MPI_Comm_dup", "MPI_Cart_create"}:
        yield parent.ranks
    elif calls == {"MPI_Comm_split"} and len(entries) == len(parent.ranks):
        by_color: dict[int, list[tuple[int, int, int]]] = {}
        for order, rank in enumerate(parent.ranks):
            by_color.setdefault(entries[rank].color, []).append((entries[rank].key, order, rank))
        for members in by_color.values():
            yield tuple(rank for _, _, rank in sorted(members))
