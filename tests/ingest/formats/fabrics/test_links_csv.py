"""A fabric as CSV with one row per link: given values, assumed values, and errors."""

from __future__ import annotations

import pytest

from ingest.formats.fabrics import links_csv
from ingest.options import Options
from registry.model import HOST
from tests.support.inputs import fabric_of, parse, refusal

SHORT = "source,target,capacity\nn1,leaf1,12.5e9\nn2,leaf2,12.5e9\nleaf1,spine,50e9\nleaf2,spine,50e9\n"


def test_three_columns_are_a_fabric() -> None:
    assert links_csv.recognise(SHORT, "x")
    found = fabric_of(links_csv, SHORT)
    assert found.names == ("leaf1", "leaf2", "n1", "n2", "spine")
    assert [found.names[host] for host in found.hosts] == ["n1", "n2"]
    assert found.cable_count == 4
    assert found.forwards.tolist() == [True, True, False, False, True]
    assert parse(links_csv, SHORT).warnings == (
        "the file lists each cable once: the other direction is added",
        "vertices without a kind are taken as hosts if they have one neighbour, else as switches",
    )


def test_a_ring_of_equals_is_a_direct_network_and_other_columns_are_ignored() -> None:
    found = fabric_of(links_csv, "source,target,capacity\na,b,1\nb,c,1\nc,a,1\n")
    assert bool((found.kind == HOST).all())
    assert bool(found.forwards.all())
    text = "source,target,capacity,colour\na,b,1,red\n"
    assert "the columns colour are ignored" in parse(links_csv, text).warnings
    loads = "source,source_guid,source_port,target,target_guid,target_port,bytes,capacity,seconds\n"
    assert not links_csv.recognise(loads, "x")


def test_ports_guids_kinds_and_slots_are_kept() -> None:
    text = (
        "# of a plan\n"
        "Target,Source,capacity,source_port,target_port,source_guid,target_guid,source_kind,source_slots,cables\n"
        "s,h,25e9,1,7,0x10,0xa0,host,64,1\n"
        "h,s,25e9,7,1,a0,10,switch,0,1\n"
        "s,i,50e9,1,8,0x11,0xa0,host,,2\n"
        "i,s,50e9,8,1,0xa0,0x11,switch,0,2\n"
    )
    found = fabric_of(links_csv, text)
    assert found.slots.tolist() == [64, 1, 0]
    assert found.guid.tolist() == [0, 0, 0xA0]
    assert found.adapters.guid.tolist() == [0x10, 0x11]
    assert found.adapters.host.tolist() == [0, 1]
    assert found.links.source_port.tolist() == [1, 1, 7, 8]
    assert found.links.source_adapter.tolist() == [0, 1, -1, -1]
    assert found.cable_count == 3


def test_without_capacities_the_callers_rate_is_taken() -> None:
    text = "source,target,cables\na,b,2\nb,c,1\n"
    read = parse(links_csv, text, Options(rate=5.0))
    assert read.fabric is not None
    assert set(read.fabric.links.capacity.tolist()) == {5.0}
    assert read.assumed is not None
    assert bool(read.assumed.all())
    assert any("--rate" in line for line in parse(links_csv, text).warnings)


HEAD = "source,target,capacity,cables,source_port,source_guid,source_kind,source_slots,source_forwards\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("source,capacity,cables\n", 1, "the columns source and target are missing, or a column is repeated"),
        ("source,target,target\n", 1, "the columns source and target are missing, or a column is repeated"),
        (HEAD, None, "no links found"),
        (HEAD + "a,b,1\n", 2, "3 cells, but there are 9 columns"),
        (HEAD + "a,a,1,,,,,,\n", 2, "a link from a vertex to itself"),
        (HEAD + ",b,1,,,,,,\n", 2, "'' is not a valid name of a device"),
        (HEAD + "a,b,0,,,,,,\n", 2, "capacity is not a number of bytes/s from 1e-06 to 1e+18: '0'"),
        (HEAD + "a,b,nan,,,,,,\n", 2, "capacity is not a number of bytes/s from 1e-06 to 1e+18: 'nan'"),
        (HEAD + "a,b,1e999,,,,,,\n", 2, "capacity is not a number of bytes/s from"),
        (HEAD + "a,b,-1,,,,,,\n", 2, "capacity is not a number of bytes/s from"),
        (HEAD + "a,b,1e-320,,,,,,\n", 2, "capacity is not a number of bytes/s from"),
        (HEAD + "a,b,1e308,,,,,,\n", 2, "capacity is not a number of bytes/s from"),
        (HEAD + "a,b,1,999999999,,,,,\n", 2, "cables is above 65535: '999999999'"),
        (HEAD + "a,b,1,,65536,,,,\n", 2, "source_port is above 65535: '65536'"),
        (HEAD + "a,b,1,,,,host,999999999,\n", 2, "source_slots is above 65535: '999999999'"),
        (HEAD + "a,b,1,0,,,,,\n", 2, "a row of no cables"),
        (HEAD + "a,b,1,x,,,,,\n", 2, "cables is not a whole number: 'x'"),
        (HEAD + "a,b,1,,-1,,,,\n", 2, "source_port is not a whole number: '-1'"),
        (HEAD + "a,b,1,,,zz,,,\n", 2, "source_guid is not a GUID: 'zz'"),
        (HEAD + "a,b,1,,,,router,,\n", 2, "source_kind is neither host nor switch: 'router'"),
        (HEAD + "a,b,1,,,,,,maybe\n", 2, "source_forwards is neither 1 nor 0: 'maybe'"),
        (HEAD + "a,b,1,,,,host,1,\na,c,1,,,,switch,0,\n", 3, "'a' has another kind, slots or forwards"),
        (HEAD + "a,b,1,,,1,switch,,\na,c,1,,,2,switch,,\n", 3, "the switch 'a' has two GUIDs"),
        (HEAD + "a,b,1,,,1,host,,\nb,a,1,,,1,host,,\n", 3, "the adapter 0x0000000000000001 is in two hosts"),
        (HEAD + 'a,"b,1,,,,,,\n', 2, "invalid CSV: unexpected end of data"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    error = refusal(links_csv, text)
    assert error.line == line
    assert error.reason.startswith(reason)
