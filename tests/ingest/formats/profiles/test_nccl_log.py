"""Rings of more ranks than NCCL prints, completed by the connections of the ranks or refused."""

from __future__ import annotations

import re

import pytest

from ingest.formats.profiles import nccl_log
from tests.support.inputs import profile_of, read, refusal

LOG = read("profiles/nccl_24_ranks.log").decode()
PRINTED = "".join(line for line in LOG.splitlines(keepends=True) if "->" not in line)
NAMELESS = re.sub(r".*n[rR]anks.*\n", "", LOG)
RING = {(rank, (rank + 1) % 24): 2.0 for rank in range(24)}


def links(text: str) -> dict[tuple[int, int], float]:
    profile = profile_of(nccl_log, text)
    pairs = zip(profile.sender.tolist(), profile.partner.tolist(), profile.bytes.tolist(), strict=True)
    return {(sender, partner): size for sender, partner, size in pairs}


def ring(ranks: int, *, size: int | None = None, shown: int = 20) -> str:
    """A log of one channel: what rank 0 prints, and the connections of all ranks."""
    order = list(range(0, ranks, 2)) + list(range(1, ranks, 2))
    lines = [f"n0:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks {size}\n"] if size else []
    lines.append(f"n0:1:2 [0] NCCL INFO Channel 00/01 : {' '.join(map(str, order[:shown]))}\n")
    for rank, following in zip(order, order[1:] + order[:1], strict=True):
        lines.append(
            f"n{rank}:1:2 [0] NCCL INFO Channel 00/0 : {rank}[0] -> {following}[0] [send] via NET/IB/0\n"
        )
    return "".join(lines)


def test_a_ring_of_more_ranks_than_are_printed_is_completed_by_the_connections_of_all_ranks() -> None:
    assert links(LOG) == RING
    assert links(NAMELESS) == RING
    assert set(links(ring(1300, size=1300).replace("1 3 5", "1 1 5"))) == set(links(ring(1300, size=1300)))
    assert len(links(ring(1300, size=1300))) == 1300


def test_connections_of_trees_follow_when_the_rings_are_connected() -> None:
    trees = "n1:10:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
    assert links(LOG + trees) == RING


def test_connections_of_single_messages_are_no_ring() -> None:
    assert (
        links(LOG.replace("via", "via", 1) + "n1:9:2 [0] NCCL INFO Channel 00/1 : 0[0] -> 9[1] via NET\n")
        == RING
    )


@pytest.mark.parametrize("shown", [20, 19])
def test_a_ring_of_just_as_many_ranks_as_are_printed_is_closed(shown: int) -> None:
    first = ring(shown, size=shown).splitlines(keepends=True)[:2]
    assert len(links("".join(first))) == shown
    assert len(links(ring(shown))) == shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            PRINTED,
            "NCCL prints only the first 20 ranks of a ring of 24, and to which one rank 19 sends in",
        ),
        (re.sub(r".*nRanks.*\n", "", PRINTED), "first 20 ranks of a ring of 24"),
        (re.sub(r".*n[rR]anks.*\n", "", PRINTED), "first 20 ranks of a ring, and to which one rank 19"),
        (re.sub(r"n3.*->.*\n", "", LOG), "rank 19 sends in channel 0 is not in this log"),
        (LOG.replace("23[7] -> 0[0]", "23[7] -> 4[4]"), "several communicators"),
        (LOG.replace("19[3] -> 20[4]", "19[3] -> 0[0]"), "close a ring of 20 ranks, not of 24"),
        (LOG.replace("18   19\n", "19   18\n"), "several communicators"),
        (ring(10, size=24), "has 10 ranks, its communicator 24: is a line truncated?"),
    ],
)
def test_a_ring_that_the_log_does_not_contain_whole_is_refused(text: str, reason: str) -> None:
    assert reason in refusal(nccl_log, text).reason
