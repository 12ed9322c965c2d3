"""LibTopoMap's map file."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ingest.formats.fabrics import ibnetdiscover, libtopomap
from ingest.options import Options
from tests.support.inputs import fabric_of, parse, read, refusal

MAP = "num: 3\n1 blub\n0 bla\n2 blib\n1 2 0\n2 0 1\n0 1 2\n"
"""The example in the comment of the library's own parser: a triangle."""
STAR = "num: 4\n0 a\n1 b\n2 c\n3 sw\n0 3\n1 3\n2 3 3\n3 0 1 2 2\n"
WEIGHTED = read("formats/libtopomap_w.map")


def test_the_librarys_own_example() -> None:
    fabric = fabric_of(libtopomap, MAP)
    assert fabric.names == ("bla", "blib", "blub")
    assert fabric.neighbour.tolist() == [1, 2, 0, 2, 0, 1]
    assert fabric.cable_count == 3


def test_a_map_of_a_real_fabric_agrees_with_its_scan() -> None:
    mapped = fabric_of(libtopomap, read("formats/libtopomap.map"), Options(rate=25e9))
    scan = fabric_of(ibnetdiscover, read("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    assert mapped.names == scan.names
    for column in ("kind", "forwards", "slots", "indptr", "neighbour", "capacity", "cables"):
        assert np.array_equal(getattr(mapped, column), getattr(scan, column)), column


def test_a_repeated_neighbour_is_a_parallel_cable_and_a_weight_multiplies_its_rate() -> None:
    fabric = fabric_of(libtopomap, STAR)
    assert fabric.cable_count == 4
    assert fabric.cables.tolist() == [1, 1, 2, 1, 1, 2]
    assert fabric.capacity.tolist() == [1.0, 1.0, 2.0, 1.0, 1.0, 2.0]
    plain = fabric_of(libtopomap, read("formats/libtopomap.map"))
    weighted = fabric_of(libtopomap, WEIGHTED)
    assert set(plain.capacity.tolist()) == {1.0}
    assert set(weighted.capacity.tolist()) == {200.0}
    assert weighted.cable_count == plain.cable_count == 96
    assert set(fabric_of(libtopomap, WEIGHTED, Options(rate=0.5)).capacity.tolist()) == {100.0}


def test_vertices_with_one_neighbour_are_hosts_and_those_of_a_direct_network_forward() -> None:
    fabric = fabric_of(libtopomap, STAR)
    assert [fabric.names[host] for host in fabric.hosts] == ["a", "b", "c"]
    assert fabric.forwards.tolist() == [False, False, False, True]
    for text, hosts in ((MAP, 3), ("num: 2\n0 a\n1 b\n0 1\n1 0\n", 2)):
        direct = fabric_of(libtopomap, text)
        assert (len(direct.hosts), bool(direct.forwards.all())) == (hosts, True)


def test_an_assumed_rate_has_a_warning() -> None:
    assert parse(libtopomap, MAP).warnings == (
        "the map contains no rates: 1 byte/s per cable is assumed, so seconds are bytes",
    )
    assert parse(libtopomap, MAP, Options(rate=1e9)).warnings == ()


@pytest.mark.parametrize(
    ("edges", "warning", "neighbours"),
    [
        ("0 1 2\n1 2\n2\n", "the map lists each edge once: the other direction is added", [1, 2, 0, 2, 0, 1]),
        ("0 1\n1 0 2\n2 0\n", "2 edges are listed in one direction only, and kept so", [1, 0, 2, 0]),
        ("0 0 1\n1 0\n2 0\n", "1 edge leads from a vertex to itself: ignored", None),
    ],
)
def test_odd_edges_are_mirrored_kept_or_left_out(
    edges: str, warning: str, neighbours: list[int] | None
) -> None:
    parsed = parse(libtopomap, f"num: 3\n0 a\n1 b\n2 c\n{edges}", Options(rate=1.0))
    assert parsed.fabric is not None
    assert warning in parsed.warnings
    if neighbours is not None:
        assert parsed.warnings == (warning,)
        assert parsed.fabric.links.target.tolist() == neighbours


@pytest.mark.parametrize(
    "text", [MAP.replace("\n", "\r\n"), MAP + "\n\n", MAP.rstrip("\n"), MAP.replace(" ", "  ")]
)
def test_the_same_map_in_another_dress(text: str) -> None:
    assert fabric_of(libtopomap, text).names == ("bla", "blib", "blub")
    assert fabric_of(libtopomap, text).cable_count == 3


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("num: 0\n", "with N vertices", 1),
        (MAP.replace("num: 3", "num: 4"), "need 9 lines, the file has 7", 7),
        (MAP.rsplit("\n", 2)[0], "need 7 lines, the file has 6", 6),
        (MAP.replace("1 blub", "7 blub"), "7 is not below 3 in '7", 2),
        (MAP.replace("1 blub", "0 blub"), "0 is repeated in '0", 3),
        (MAP.replace("blib", "bla"), "two vertices are named 'bla'", 4),
        (MAP.replace("1 blub", "1"), "expected 'vertex name'", 2),
        (MAP.replace("2 0 1", "2 0 3"), "neighbour 3 is no vertex", 6),
        (MAP.replace("2 0 1", "2 0 x"), "expected 'vertex", 6),
        (MAP.replace("2 0 1", "1 0 1"), "1 is repeated in '1 0 1'", 6),
        (MAP.replace("num: 3", "num: 3 w"), r"neighbour\(weight\) \.\.\.", 5),
        ("num: 2 w\n0 a\n1 b\n0 1(0)\n1 0(1)\n", "weight 0", 4),
        ("num: 2 w\n0 a\n1 b\n0 1 (2)\n1 0(1)\n", r"neighbour\(weight\) \.\.\.", 4),
        ("num: 2\n0 a\n1 b\n0\n1\n", "no edges", None),
        ("num: 2\n0 a\n1 b\n0 0\n1 1\n", "no edges", None),
    ],
)
def test_bad_maps_are_errors_with_their_line(text: str, reason: str, line: int | None) -> None:
    error = refusal(libtopomap, text)
    assert re.search(reason, str(error))
    assert error.line == line
