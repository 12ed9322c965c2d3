"""LibTopoMap's map file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.fabrics import ibnetdiscover, libtopomap
from ingest.options import Options
from registry.errors import InputError
from registry.model import Fabric
from tests.support.inputs import damaged, file, parse, read, survives

MAP = "num: 3\n1 blub\n0 bla\n2 blib\n1 2 0\n2 0 1\n0 1 2\n"
"""The example in the comment of the library's own parser: a triangle."""
STAR = "num: 4\n0 a\n1 b\n2 c\n3 sw\n0 3\n1 3\n2 3 3\n3 0 1 2 2\n"


def fabric_of(text: str | bytes, options: Options | None = None) -> Fabric:
    fabric = parse(libtopomap, text, options).fabric
    assert fabric is not None
    return fabric


def test_the_librarys_own_example() -> None:
    fabric = fabric_of(MAP)
    assert fabric.names == ("bla", "blib", "blub")
    assert fabric.neighbour.tolist() == [1, 2, 0, 2, 0, 1]
    assert fabric.cable_count == 3


def test_a_map_of_a_real_fabric_agrees_with_its_scan() -> None:
    mapped = fabric_of(read("formats/libtopomap.map"), Options(rate=25e9))
    scan = parse(ibnetdiscover, read("infiniband/fattree2-64-ftree/ibnetdiscover.txt")).fabric
    assert scan is not None
    assert mapped.names == scan.names
    for column in ("kind", "forwards", "slots", "indptr", "neighbour", "capacity", "cables"):
        assert np.array_equal(getattr(mapped, column), getattr(scan, column)), column


def test_a_weight_multiplies_the_rate_of_a_cable() -> None:
    plain, weighted = fabric_of(read("formats/libtopomap.map")), fabric_of(read("formats/libtopomap_w.map"))
    assert set(plain.capacity.tolist()) == {1.0}
    assert set(weighted.capacity.tolist()) == {200.0}
    assert weighted.cable_count == plain.cable_count == 96
    assert set(fabric_of(read("formats/libtopomap_w.map"), Options(rate=0.5)).capacity.tolist()) == {100.0}


def test_a_repeated_neighbour_is_a_parallel_cable() -> None:
    fabric = fabric_of(STAR)
    assert fabric.cable_count == 4
    assert fabric.cables.tolist() == [1, 1, 2, 1, 1, 2]
    assert fabric.capacity.tolist() == [1.0, 1.0, 2.0, 1.0, 1.0, 2.0]


def test_vertices_with_one_neighbour_are_hosts_that_do_not_forward() -> None:
    fabric = fabric_of(STAR)
    assert [fabric.names[host] for host in fabric.hosts] == ["a", "b", "c"]
    assert fabric.forwards.tolist() == [False, False, False, True]


def test_a_direct_network_has_hosts_that_forward() -> None:
    fabric = fabric_of(MAP)
    assert (len(fabric.hosts), bool(fabric.forwards.all())) == (3, True)
    pair = fabric_of("num: 2\n0 a\n1 b\n0 1\n1 0\n")
    assert (len(pair.hosts), bool(pair.forwards.all())) == (2, True)


def test_an_assumed_rate_has_a_warning() -> None:
    assert parse(libtopomap, MAP).warnings == (
        "the map contains no rates: 1 byte/s per cable is assumed, so seconds are bytes",
    )
    assert parse(libtopomap, MAP, Options(rate=1e9)).warnings == ()


def test_a_map_that_lists_each_edge_once_is_mirrored() -> None:
    parsed = parse(libtopomap, "num: 3\n0 a\n1 b\n2 c\n0 1 2\n1 2\n2\n", Options(rate=1.0))
    assert parsed.fabric is not None
    assert parsed.warnings == ("the map lists each edge once: the other direction is added",)
    assert parsed.fabric.neighbour.tolist() == [1, 2, 0, 2, 0, 1]


def test_edges_in_one_direction_only_are_kept_and_counted() -> None:
    parsed = parse(libtopomap, "num: 3\n0 a\n1 b\n2 c\n0 1\n1 0 2\n2 0\n", Options(rate=1.0))
    assert parsed.fabric is not None
    assert parsed.warnings == ("2 edges are listed in one direction only, and kept so",)
    assert len(parsed.fabric.links) == 4


def test_an_edge_to_itself_is_left_out_and_counted() -> None:
    parsed = parse(libtopomap, "num: 2\n0 a\n1 b\n0 0 1\n1 0\n", Options(rate=1.0))
    assert parsed.warnings == ("1 edge leads from a vertex to itself: ignored",)


@pytest.mark.parametrize(
    "text", [MAP.replace("\n", "\r\n"), MAP + "\n\n", MAP.rstrip("\n"), MAP.replace(" ", "  ")]
)
def test_the_same_map_in_another_dress(text: str) -> None:
    assert fabric_of(text).names == ("bla", "blib", "blub")
    assert fabric_of(text).cable_count == 3


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
        (MAP.replace("2 0 1", "2 0 9"), "neighbour 9 is no vertex", 6),
        (MAP.replace("2 0 1", "2 0 x"), "expected 'vertex", 6),
        (MAP.replace("2 0 1", "1 0 1"), "1 is repeated in '1 0 1'", 6),
        (MAP.replace("num: 3", "num: 3 w"), r"neighbour\(weight\) \.\.\.", 5),
        ("num: 2 w\n0 a\n1 b\n0 1(0)\n1 0(1)\n", "weight 0", 4),
        ("num: 2 w\n0 a\n1 b\n0 1 (2)\n1 0(1)\n", r"neighbour\(weight\) \.\.\.", 4),
        ("num: 2\n0 a\n1 b\n0\n1\n", "no edges", None),
    ],
)
def test_bad_maps_are_errors_with_their_line(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        parse(libtopomap, text)
    assert (caught.value.path, caught.value.line) == ("input", line)


def test_only_edges_to_itself_are_no_edges() -> None:
    with pytest.raises(InputError, match="no edges"):
        parse(libtopomap, "num: 2\n0 a\n1 b\n0 0\n1 1\n")


@given(st.binary(max_size=300))
def test_arbitrary_bytes_only_ever_raise_input_errors(data: bytes) -> None:
    survives(libtopomap, [file(data)])
    survives(libtopomap, [file(b"num: 2 w\n0 a\n1 b\n" + data)])


@settings(max_examples=300)
@given(st.sampled_from([MAP.encode(), STAR.encode(), read("formats/libtopomap_w.map")]).flatmap(damaged))
def test_damaged_maps_only_ever_raise_input_errors(data: bytes) -> None:
    survives(libtopomap, [file(data)])
