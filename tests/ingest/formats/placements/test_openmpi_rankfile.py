"""Rankfiles and rank lists: each rank once, by host names only."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.formats.placements import openmpi_rankfile as rankfile
from ingest.formats.placements import placement_csv
from registry.errors import InputError
from tests.support.inputs import damaged, file, parse, read, survives

REAL = read("placements/openmpi_rankfile.txt")
TURNED = ("node3", "node2", "node1", "node0", "node0", "node1", "node2", "node3")
CSV = "rank,host,slot\n0,b,0\n1,a,0\n2,b,1\n"


def hosts(parser: Parser, content: str | bytes) -> tuple[str, ...]:
    placement = parse(parser, content).placements[0]
    assert placement is not None
    return placement.hosts


def test_a_rankfile_that_open_mpi_took() -> None:
    assert hosts(rankfile, REAL) == TURNED


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_lines_may_come_in_any_order(order: tuple[int, ...]) -> None:
    lines = [f"rank {rank}={host} slot=0" for rank, host in enumerate("abc")]
    assert hosts(rankfile, "\n".join(lines[i] for i in order)) == ("a", "b", "c")


def test_slots_comments_and_blanks_are_of_no_concern() -> None:
    text = "# made\n\n  rank 0 = a slot=1:0-2  # first\nrank 1=b-ib0.site  slot=0,3\n"
    text += "RANK 2=a slots=*\nrank 3=c\n"
    assert hosts(rankfile, text) == ("a", "b-ib0.site", "a", "c")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("rank 0=a slot=0\nrank 2=b slot=0\n", 2, "1 of 3 ranks are missing, rank 1 first"),
        ("rank 1=a slot=0\n", 1, "1 of 2 ranks are missing, rank 0 first"),
        (
            "rank 0=a slot=0\nrank 99999999=a slot=0\n",
            2,
            "99999998 of 100000000 ranks are missing, rank 1 first",
        ),
        ("rank 0=a slot=0\nrank 0=b slot=0\n", 2, "rank 0 is repeated on b, first in line 1 on a"),
        ("rank 0=a slo", 1, "expected `rank N=HOST slot=CPU`"),
        ("rank 0=a slot=\n", 1, "expected `rank N=HOST slot=CPU`"),
        ("rank 0=a b slot=0\n", 1, "expected `rank N=HOST slot=CPU`"),
        ("rank -1=a slot=0\n", 1, "expected `rank N=HOST slot=CPU`"),
        ("rank 0=a slot=0\nnode1 slots=2\n", 2, "expected `rank N=HOST slot=CPU`"),
        ("# nothing\n", None, "no ranks found"),
    ],
)
def test_a_rankfile_that_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        hosts(rankfile, text)
    assert (caught.value.path, caught.value.line, caught.value.reason) == ("input", line, reason)


def test_a_relative_host_is_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match=r"input:1: host \+n0 is relative to an allocation"):
        hosts(rankfile, "rank 0=+n0 slot=0\n")


def test_a_list_of_ranks_and_hosts_is_read() -> None:
    assert hosts(placement_csv, CSV) == ("b", "a", "b")
    assert hosts(placement_csv, '# made\nHost,Rank\r\n"a, b",1\r\nc,0\r\n\r\n') == ("c", "a, b")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("rank,host,host\n", 1, "expected one column host"),
        ("rank,slot\n0,1\n", 1, "expected one column host"),
        ("rank,host\n0,a,1\n", 2, "3 cells, but there are 2 columns"),
        ("rank,host\n\n-1,a\n", 3, "rank is not a whole number of at most 8 digits"),
        ("rank,host\n1000000000,a\n", 2, "rank is not a whole number of at most 8 digits"),
        ("rank,host\n٣,a\n", 2, "rank is not a whole number of at most 8 digits"),
        ("rank,host\n0, \n", 2, "host has no name"),
        ("rank,host\n0,a\n0,b\n", 3, "rank 0 is repeated on b, first in line 2 on a"),
        ("rank,host\n0,a\n3,b\n", 3, "2 of 4 ranks are missing, rank 1 first"),
        ("rank,host\n", None, "no ranks found"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        hosts(placement_csv, text)
    assert (caught.value.path, caught.value.line, caught.value.reason) == ("input", line, reason)


def test_they_are_recognised_by_their_first_line() -> None:
    assert rankfile.recognise("# x\n\nrank 0=a slot=0\n", "x")
    assert not rankfile.recognise("node0 slots=2\n", "x")
    assert not rankfile.recognise("", "x")
    assert placement_csv.recognise(CSV, "x")
    assert not placement_csv.recognise("src,dst,bytes\n", "x")
    assert not placement_csv.recognise("", "x")


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for parser, head in ((rankfile, b"rank 0=a slot=0\n"), (placement_csv, b"rank,host\n0,a\n")):
        survives(parser, [file(body)])
        survives(parser, [file(head + body)])


@given(damaged(REAL), damaged(CSV.encode()))
def test_a_damaged_file_is_read_or_refused(ranks: bytes, csv: bytes) -> None:
    survives(rankfile, [file(ranks)])
    survives(placement_csv, [file(csv)])
