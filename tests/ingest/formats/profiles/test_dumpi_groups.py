"""Ranks of communicators, from the calls of each rank that made them."""

from __future__ import annotations

from ingest.formats.profiles.dumpi_groups import UNKNOWN, WORLD, Made, members_of


def dup(parent: int, turn: int) -> Made:
    return Made(parent, turn, "MPI_Comm_dup", 0, 0)


def split(parent: int, turn: int, color: int, key: int = 0) -> Made:
    return Made(parent, turn, "MPI_Comm_split", color, key)


def test_a_split_has_the_ranks_of_one_color_by_key() -> None:
    made = {rank: [split(WORLD, 0, rank % 2, -rank)] for rank in range(4)}
    found = members_of(made, 4)
    assert [found[rank, 0] for rank in range(4)] == [(2, 0), (3, 1), (2, 0), (3, 1)]
    assert list(found[0, WORLD]) == [0, 1, 2, 3]


def test_calls_of_a_duplicate_are_not_those_of_its_parent() -> None:
    # The second split of the duplicate has other colors than the second call of MPI_COMM_WORLD.
    made = {
        rank: [dup(WORLD, 0), split(WORLD, 1, rank // 2), split(0, 0, 0), split(0, 1, rank % 2)]
        for rank in range(4)
    }
    found = members_of(made, 4)
    assert [found[rank, 1] for rank in range(4)] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert [found[rank, 3] for rank in range(4)] == [(0, 2), (1, 3), (0, 2), (1, 3)]


def test_communicators_with_unknown_members_are_ignored() -> None:
    made = {0: [split(WORLD, 0, 0), dup(0, 0), dup(WORLD, 1)], 1: [split(WORLD, 0, 0), dup(0, 0)]}
    assert set(members_of(made, 3)) == {(0, WORLD), (1, WORLD), (0, 2)}
    assert (0, 0) not in members_of({0: [dup(UNKNOWN, 0)]}, 1)
    assert (0, 0) not in members_of({0: [Made(WORLD, 0, "other", 0, 0)]}, 1)
