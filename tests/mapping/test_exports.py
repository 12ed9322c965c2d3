"""Launcher files: what they say is where the ranks sit, read back by other code and by hand."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.options import Options
from ingest.placements import hostfile, placement_csv, rankfile
from ingest.source import SourceFile
from mapping.exports import catalog
from registry.errors import InvalidPlacement, UnknownName
from registry.model import Allocation, Fabric, Placement, as_utc
from tests.ingest.inputs import WHEN

READERS: dict[str, Parser] = {
    "csv": placement_csv,
    "openmpi-rankfile": rankfile,
    "openmpi-hostfile": hostfile,
    "slurm-hostfile": hostfile,
    "mpich-machinefile": hostfile,
}
"""Formats that name the host of each rank, and what reads them."""
HEADERS = {"csv": 1}


def ring(names: Sequence[str], slots: Sequence[int]) -> Fabric:
    """Hosts in a ring."""
    n = len(names)
    here = np.arange(n)
    ends = (here + 1) % n
    return Fabric.from_arcs(names, np.r_[here, ends], np.r_[ends, here], 1.0, slots=list(slots))


def placed(fabric: Fabric, hosts: Sequence[str], slots: Sequence[int], order: Sequence[int]) -> Placement:
    """Ranks on the slots of an allocation: rank `r` in slot ``order[r]``."""
    allocation = Allocation.of(fabric, hosts, slots)
    return Placement(
        host_of_rank=allocation.host_of_slot[list(order)], allocation=allocation, strategy="given"
    )


FABRIC = ring(["a", "b", "c"], [2, 2, 2])
TURN = (2, 4, 0, 5, 1, 3)
"""Slot of each rank; not its own inverse."""
PLACEMENT = placed(FABRIC, ["b", "c", "a"], [2, 2, 2], TURN)


def read_back(format: str, text: str) -> tuple[str, ...]:
    file = SourceFile(path="exported", data=text.encode(), modified_at=as_utc(WHEN))
    assert READERS[format].recognise(file.head(), file.path)
    order = READERS[format].parse([file], Options()).placement
    assert order is not None
    return order.hosts


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "rank,host,slot\n0,c,0\n1,a,0\n2,b,0\n3,a,1\n4,b,1\n5,c,1\n"),
        (
            "openmpi-rankfile",
            "rank 0=c slot=0\nrank 1=a slot=0\nrank 2=b slot=0\n"
            "rank 3=a slot=1\nrank 4=b slot=1\nrank 5=c slot=1\n",
        ),
        ("openmpi-hostfile", "c\na\nb\na\nb\nc\n"),
        ("slurm-hostfile", "c\na\nb\na\nb\nc\n"),
        ("mpich-machinefile", "c:1\na:1\nb:1\na:1\nb:1\nc:1\n"),
        ("mpich-rank-order", "2,4,0,5,1,3\n"),
    ],
)
def test_files_of_a_placement_that_is_not_its_own_inverse(format: str, text: str) -> None:
    assert catalog.write(format, PLACEMENT, FABRIC) == text


def test_a_rank_order_lists_the_rank_of_each_slot_not_the_slot_of_each_rank() -> None:
    fabric = ring(["a", "b", "c"], [1, 1, 1])
    placement = placed(fabric, ["a", "b", "c"], [1, 1, 1], (1, 2, 0))
    assert catalog.write("mpich-rank-order", placement, fabric) == "2,0,1\n"
    assert catalog.write("slurm-hostfile", placement, fabric) == "b\nc\na\n"


@st.composite
def placements(draw: st.DrawFn, *, full: bool = False) -> tuple[Fabric, Placement]:
    """Ranks on hosts with one to four slots, in any order; with `full`, no slot before the last is free."""
    slots = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    hosts = draw(st.permutations([f"node{i}" for i in range(len(slots))]))
    fabric = ring([f"node{i}" for i in range(len(slots))], slots)
    counts = [slots[int(name[4:])] for name in hosts]
    total = sum(counts)
    ranks = total if full else draw(st.integers(2, total))
    order = draw(st.permutations(range(total)))[:ranks]
    return fabric, placed(fabric, hosts, counts, order)


@pytest.mark.parametrize("format", READERS)
@given(placements())
def test_what_is_written_reads_back_as_the_same_hosts(format: str, case: tuple[Fabric, Placement]) -> None:
    fabric, placement = case
    text = catalog.write(format, placement, fabric)
    assert len(text.splitlines()) == placement.ranks + HEADERS.get(format, 0)
    assert text.endswith("\n")
    assert read_back(format, text) == tuple(fabric.names[v] for v in placement.host_of_rank)


@given(placements(full=True))
def test_a_launcher_that_takes_the_rank_order_puts_ranks_where_they_belong(
    case: tuple[Fabric, Placement],
) -> None:
    fabric, placement = case
    order = [int(rank) for rank in catalog.write("mpich-rank-order", placement, fabric).split(",")]
    assert sorted(order) == list(range(placement.ranks))
    launched = np.empty(placement.ranks, np.int32)
    launched[order] = placement.allocation.host_of_slot
    np.testing.assert_array_equal(launched, placement.host_of_rank)


@given(placements())
def test_slots_of_a_host_count_from_zero_by_ascending_rank(case: tuple[Fabric, Placement]) -> None:
    fabric, placement = case
    seen: dict[str, int] = {}
    for row in csv.DictReader(io.StringIO(catalog.write("csv", placement, fabric))):
        assert int(row["slot"]) == seen.get(row["host"], 0)
        seen[row["host"]] = int(row["slot"]) + 1


def test_a_rank_order_cannot_leave_slots_free_but_on_the_last_host() -> None:
    half_used = placed(FABRIC, ["a", "b", "c"], [2, 2, 2], (0, 1, 2))
    assert catalog.write("mpich-rank-order", half_used, FABRIC) == "0,1,2\n"
    gap = placed(FABRIC, ["a", "b", "c"], [2, 2, 2], (0, 2, 3))
    with pytest.raises(InvalidPlacement, match="host a has free slots before the last used host"):
        catalog.write("mpich-rank-order", gap, FABRIC)


@pytest.mark.parametrize("name", ["a b", "a=b", "a:b", "a,b", "a\nb", "+n0", "a#b", "", "a\tb", "[a]", "ä"])
@pytest.mark.parametrize(
    "format", ["openmpi-rankfile", "openmpi-hostfile", "slurm-hostfile", "mpich-machinefile"]
)
def test_host_names_that_would_break_the_file_are_refused(format: str, name: str) -> None:
    fabric = ring(["x", name], [1, 1])
    with pytest.raises(InvalidPlacement, match="would break the file"):
        catalog.write(format, placed(fabric, ["x", name], [1, 1], (1, 0)), fabric)
    alone = placed(fabric, ["x"], [1], (0,))
    assert "x" in catalog.write(format, alone, fabric)


def test_csv_quotes_what_it_must_and_refuses_what_would_break_a_line() -> None:
    fabric = ring(["x", "(0, 1)", "y\nz"], [1, 1, 1])
    written = catalog.write("csv", placed(fabric, ["(0, 1)", "x"], [1, 1], (0, 1)), fabric)
    assert read_back("csv", written) == ("(0, 1)", "x")
    with pytest.raises(InvalidPlacement, match="would break the file"):
        catalog.write("csv", placed(fabric, ["y\nz"], [1], (0,)), fabric)


@pytest.mark.parametrize("format", catalog.FORMATS)
def test_a_placement_of_another_fabric_is_refused(format: str) -> None:
    with pytest.raises(InvalidPlacement, match="belongs to another fabric"):
        catalog.write(format, PLACEMENT, ring(["a", "b"], [2, 2]))
    with pytest.raises(InvalidPlacement, match="b is a switch and takes no ranks"):
        catalog.write(format, PLACEMENT, ring(["a", "b", "c"], [2, 0, 2]))


def test_a_placement_without_ranks_is_refused() -> None:
    with pytest.raises(InvalidPlacement, match="has no ranks"):
        catalog.write("csv", placed(FABRIC, ["a"], [2], ()), FABRIC)


def test_an_unknown_format_is_refused_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="openmpi-rankfile"):
        catalog.write("rankfile", PLACEMENT, FABRIC)
