"""opensm-lfts.dump: real and made tables against a line-by-line reading, and walked through their fabrics."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ingest.formats.fabrics import ibnetdiscover
from ingest.formats.routes import dialects, linear_tables
from ingest.generate.fat_trees import three_level
from ingest.writers.infiniband import (
    director_tree,
    fat_tree,
    forwarding_tables,
    ibnetdiscover_text,
    opensm_lfts_text,
    three_level_tree,
)
from registry.errors import InputError
from registry.model import NO_ROUTE, Fabric, Floats, ForwardingTables
from tests.support.inputs import DATA, damaged, file, parse, read, survives

DUMPS = sorted(path.relative_to(DATA).as_posix() for path in DATA.glob("infiniband/*/opensm-lfts.dump*"))
TREE = fat_tree(2, 3, 2, lmc=1)
TABLES = forwarding_tables(TREE)
DUMP = opensm_lfts_text(TREE, TABLES)


def tables_of(text: str | bytes) -> ForwardingTables:
    tables = parse(dialects.OPENSM_LFTS, text, path="dump").tables
    assert tables is not None
    return tables


def naive(text: str) -> tuple[dict[tuple[int, int], int], dict[int, int]]:
    """Port by (switch GUID, LID) and owner by LID, read line by line with plain splits."""
    ports, owner, switch = {}, {}, 0
    for line in text.splitlines():
        words = line.split()
        if words[0] == "Unicast":
            switch = int(words[words.index("guid") + 1], 16)
        elif words[0].startswith("0x"):
            ports[switch, int(words[0], 16)] = int(words[1])
            owner[int(words[0], 16)] = int(line.split("portguid ")[1].split(":")[0], 16)
    return ports, owner


@pytest.mark.parametrize("name", DUMPS)
def test_every_entry_of_real_tables_agrees_with_the_raw_text(name: str) -> None:
    text = read(name).decode()
    tables = tables_of(text)
    ports, owner = naive(text)
    assert tables.switch_guid.tolist() == sorted({switch for switch, _ in ports})
    row = {int(guid): index for index, guid in enumerate(tables.switch_guid)}
    for (switch, lid), port in ports.items():
        assert tables.ports[row[switch], lid] == port
    assert (tables.ports != NO_ROUTE).sum() == len(ports)
    assert {lid: int(guid) for lid, guid in enumerate(tables.lid_guid) if guid} == owner


def scan_of(text: str | bytes) -> Fabric:
    fabric = parse(ibnetdiscover, text).fabric
    assert fabric is not None
    return fabric


def deliver(fabric: Fabric, tables: ForwardingTables, start: int, lid: int) -> tuple[int, int]:
    """Vertex and port at which a packet that enters at switch `start` for `lid` leaves the network."""
    wire = {
        (int(source), int(port)): (int(target), int(far))
        for source, port, target, far in zip(
            fabric.links.source,
            fabric.links.source_port,
            fabric.links.target,
            fabric.links.target_port,
            strict=True,
        )
    }
    row = {int(guid): index for index, guid in enumerate(tables.switch_guid)}
    at, arrived = start, 0
    for _ in range(12):
        if not fabric.forwards[at]:
            return at, arrived
        at, arrived = wire[at, int(tables.ports[row[int(fabric.guid[at])], lid])]
    raise AssertionError("the packet goes round in circles")


@pytest.mark.parametrize(
    "name", ["fattree2-64-ftree", "fattree2-64-dead-spine", "torus-4x4x4-dor", "mixed-speeds-oversubscribed"]
)
def test_walking_real_tables_delivers_to_the_port_that_owns_the_lid(name: str) -> None:
    fabric = scan_of(read(f"infiniband/{name}/ibnetdiscover.txt"))
    dump = next(path for path in DUMPS if f"/{name}/" in path)
    tables = tables_of(read(dump))
    adapters = fabric.adapters
    for port in range(0, len(adapters.port_lid), 7):
        lid = int(adapters.port_lid[port])
        assert tables.lid_guid[lid] == adapters.port_guid[port]
        for start in fabric.switches[::5]:
            vertex, number = deliver(fabric, tables, int(start), lid)
            assert vertex == adapters.host[adapters.port_adapter[port]]
            assert number == adapters.port_number[port]


def test_made_tables_come_back_and_deliver() -> None:
    devices = director_tree(edges=4, hosts_per_edge=3, directors=2, line_chips=3, spine_chips=2)
    made = forwarding_tables(devices)
    tables = tables_of(opensm_lfts_text(devices, made))
    assert np.array_equal(tables.ports, made.ports)
    assert np.array_equal(tables.lid_guid, made.lid_guid)
    assert np.array_equal(tables.switch_guid, made.switch_guid)
    fabric = scan_of(ibnetdiscover_text(devices))
    for host, lid in zip(fabric.adapters.host, fabric.adapters.port_lid, strict=True):
        for start in fabric.switches:
            assert deliver(fabric, tables, int(start), int(lid))[0] == host


def test_a_three_level_tree_is_the_generated_fabric_with_ports_and_its_tables_deliver() -> None:
    devices = three_level_tree(3, 2, 4)
    fabric, plain = scan_of(ibnetdiscover_text(devices)), three_level(3, 2, 4)
    assert (len(fabric.hosts), len(fabric.switches)) == (len(plain.hosts), len(plain.switches)) == (24, 16)
    assert fabric.cable_count == plain.cable_count
    assert np.array_equal(np.sort(distances(fabric)), np.sort(distances(plain)))
    tables = tables_of(opensm_lfts_text(devices, forwarding_tables(devices)))
    for host, lid in zip(fabric.adapters.host, fabric.adapters.port_lid, strict=True):
        for start in fabric.switches:
            assert deliver(fabric, tables, int(start), int(lid))[0] == host


def distances(fabric: Fabric) -> Floats:
    """Hops between all hosts."""
    links = fabric.links
    ends = (np.ones(len(links)), (links.source, links.target))
    hops = shortest_path(csr_array(ends, shape=(len(fabric),) * 2), unweighted=True)
    return np.asarray(hops[np.ix_(fabric.hosts, fabric.hosts)])


def test_lmc_gives_a_port_several_lids() -> None:
    tables = tables_of(DUMP)
    owners, counts = np.unique(tables.lid_guid[tables.lid_guid > 0], return_counts=True)
    hosts = owners >= 0x2C90000F00000
    assert counts[hosts].tolist() == [2] * 6
    assert counts[~hosts].tolist() == [1] * 4


@pytest.mark.parametrize(
    "text",
    [
        DUMP.replace("\n", "\r\n"),
        DUMP.rstrip("\n"),
        DUMP + "\n\n",
        DUMP.replace("lids dumped\n", "lids dumped\n\n"),
        re.sub(r"\[0-(\d+)\]", lambda match: f"[0x0-0x{int(match[1]):x}]", DUMP),
        DUMP.replace("node0001 mlx5_0", "it's ('odd'): # 0x0001 001"),
    ],
    ids=[
        "carriage returns",
        "no last line end",
        "blank end",
        "blank between",
        "hexadecimal heads",
        "odd names",
    ],
)
def test_the_same_tables_in_another_dress(text: str) -> None:
    tables = tables_of(text)
    assert np.array_equal(tables.ports, TABLES.ports)
    assert np.array_equal(tables.lid_guid, TABLES.lid_guid)


@pytest.mark.parametrize("ending", [" # unknown node and type", " # ", ""])
def test_lids_without_a_known_owner_are_read_and_counted(ending: str) -> None:
    parsed = parse(dialects.OPENSM_LFTS, re.sub(r" # .*", ending, DUMP))
    assert parsed.tables is not None
    assert np.array_equal(parsed.tables.ports, TABLES.ports)
    assert not parsed.tables.lid_guid.any()
    assert parsed.warnings == ("16 routed LIDs have no known port",)


def test_an_owner_known_in_one_table_only_is_kept() -> None:
    first, rest = DUMP.split("lids dumped\n", 1)
    tables = tables_of(re.sub(r" # .*", "", first) + "lids dumped\n" + rest)
    assert np.array_equal(tables.lid_guid, TABLES.lid_guid)


def fails(text: str, reason: str) -> InputError:
    with pytest.raises(InputError, match=reason) as caught:
        parse(dialects.OPENSM_LFTS, text, path="dump")
    assert caught.value.path == "dump"
    return caught.value


LINES = DUMP.splitlines()
ENDS = {index + 1 for index, line in enumerate(LINES) if line.endswith("lids dumped")}


@pytest.mark.parametrize("cut", sorted(set(range(1, len(LINES))) - ENDS))
def test_a_dump_cut_inside_a_table_is_an_error(cut: int) -> None:
    assert fails("\n".join(LINES[:cut]), "truncated").line == cut


def test_a_wrong_last_line_is_an_error() -> None:
    error = fails(DUMP.replace("17 lids dumped", "15 lids dumped", 1), "does not end with '17 lids dumped'")
    assert error.line == min(ENDS)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("0x0003 ", "0x0002 ", "LIDs must increase from line to line"),
        ("0x0003 ", "0x0001 ", "LIDs must increase from line to line"),
        ("0x0003 001", "0x0003 255", "out of range"),
        ("0x0003 001", "0x0003 1", "not a line of a forwarding table"),
        ("0x0003 001", "what is this", "not a line of a forwarding table"),
        ("Unicast lids [0-17]", "Unicast lids [0-99999]", "out of range"),
        ("Unicast lids [0-17]", "Unicast lids [0-16]", "does not end with"),
    ],
)
def test_lines_that_cannot_be_are_shown(old: str, new: str, reason: str) -> None:
    assert old in DUMP
    error = fails(DUMP.replace(old, new, 1), reason)
    assert error.line is not None
    assert error.text is not None


def test_a_lid_above_the_highest_is_an_error() -> None:
    last = next(line for line in LINES if line.startswith("0x0011"))
    fails(DUMP.replace(last, last.replace("0x0011", "0x0012"), 1), "above the table's highest")


def test_a_switch_with_two_tables_is_an_error() -> None:
    fails(DUMP + DUMP, "two tables")


def test_a_lid_with_two_owners_is_an_error() -> None:
    where = DUMP.rindex("portguid 0x0002c90000f00101")
    fails(DUMP[:where] + DUMP[where:].replace("f00101", "f00999", 1), "another owner")


def test_text_before_the_first_table_is_an_error() -> None:
    error = fails("hello\n" + DUMP, "not the heading of a switch's table")
    assert (error.line, error.text) == (1, "hello")


def test_tables_too_large_to_hold_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tables, "MAX_CELLS", 10)
    fails(DUMP, "table entries")


@given(st.binary(max_size=400))
def test_arbitrary_bytes_only_ever_raise_input_errors(data: bytes) -> None:
    survives(dialects.OPENSM_LFTS, [file(data)])
    survives(dialects.OPENSM_LFTS, [file(DUMP.encode()[:120] + data)])


@settings(max_examples=300)
@given(damaged(DUMP.encode()))
def test_damaged_dumps_only_ever_raise_input_errors(data: bytes) -> None:
    survives(dialects.OPENSM_LFTS, [file(data)])
