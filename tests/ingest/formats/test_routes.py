"""Forwarding tables of every tool: read line by line, compared with each other, walked through fabrics."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ingest.formats import routes
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.generate.trees import three_level
from ingest.options import Options
from ingest.parsed import Format
from ingest.reading import source
from ingest.reading.source import SourceFile, read_paths
from ingest.writers import (
    director_tree,
    fat_tree,
    forwarding_tables,
    ibnetdiscover_text,
    opensm_lfts_text,
    three_level_tree,
)
from registry.errors import InputError
from registry.model import NO_ROUTE, Fabric, Floats, ForwardingTables
from tests.support.inputs import DATA, damaged, fabric_of, file, parse, read, refusal
from tests.support.sure import sure
from tests.support.switch_trees import rows_of

RUN = "infiniband/fattree2-64-lmc1"
DUMP = read(f"{RUN}/dump_fts.txt.gz").decode()
FDBS = read(f"{RUN}/opensm.fdbs.gz").decode()
ROUTE = read(f"{RUN}/ibroute.txt").decode()
LFTS = read(f"{RUN}/opensm-lfts.dump.gz").decode()


def tables_of(parser: Format, text: str | bytes) -> ForwardingTables:
    return sure(parse(parser, text, path="dump").tables)


OSM = tables_of(routes.OPENSM_LFTS, read(f"{RUN}/opensm-lfts.dump.gz"))


def same(one: ForwardingTables, other: ForwardingTables) -> bool:
    columns = ("switch_guid", "ports", "lid_guid")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


@pytest.mark.parametrize("name", ["dump_fts.txt.gz", "dump_fts-a.txt.gz"])
def test_dump_fts_has_the_same_tables_as_opensm_in_the_same_run(name: str) -> None:
    assert same(tables_of(routes.DUMP_FTS, read(f"{RUN}/{name}")), OSM)
    real = "infiniband/fattree2-64-ftree"  # one LID a port
    dumped = tables_of(routes.DUMP_FTS, read(f"{real}/dump_fts.txt"))
    assert same(dumped, tables_of(routes.OPENSM_LFTS, read(f"{real}/opensm-lfts.dump")))


@pytest.mark.parametrize(
    ("parser", "name", "warning"),
    [
        (routes.DUMP_FTS, "dump_fts-n.txt.gz", "140 routed LIDs have no known port"),
        (
            routes.FDBS,
            "opensm.fdbs.gz",
            "the file does not list the owners of LIDs: those of the scan are used",
        ),
    ],
)
def test_without_destinations_the_owners_are_unknown(parser: Format, name: str, warning: str) -> None:
    parsed = parse(parser, read(f"{RUN}/{name}"))
    assert same(sure(parsed.tables), replace(OSM, lid_guid=np.zeros_like(OSM.lid_guid)))
    assert parsed.warnings == (warning,)


def test_ibroute_has_the_table_of_one_switch_and_those_of_several_are_one_set() -> None:
    tables = tables_of(routes.DUMP_FTS, ROUTE)
    row = OSM.switch_guid.tolist().index(0x2C90000100800)
    assert tables.switch_guid.tolist() == [0x2C90000100800]
    assert np.array_equal(tables.ports[0], OSM.ports[row])
    assert np.array_equal(tables.lid_guid, OSM.lid_guid)
    pieces = [f"Unicast{piece}" for piece in DUMP.split("Unicast")[1:]]
    files = [file(piece, f"{number}.txt") for number, piece in enumerate(pieces)]
    assert same(sure(routes.DUMP_FTS.parse(files, Options()).tables), OSM)


@pytest.mark.parametrize(
    "text",
    [
        FDBS + "\n" * 10 + " " * 10**6,  # they once took the square of their number
        FDBS.replace("dump_ucast_routes", "osm_ucast_mgr_dump_ucast_routes"),  # of old versions
        *(
            FDBS.replace("001  : 01   : yes", f"001  : {rest}", 1)
            for rest in ("HOPS UNKNOWN", "03   : No 2 hop path possible via port 9! Optimal 1", "01   : yes")
        ),
    ],
    ids=["a million blanks", "an old head", "unknown hops", "a longer way", "as it is"],
)
def test_the_same_fdbs_in_another_dress(text: str) -> None:
    assert routes.FDBS.recognise(text[:65536], "x")
    assert np.array_equal(tables_of(routes.FDBS, text).ports, OSM.ports)


def test_every_port_owns_both_of_its_lids_and_they_take_ways_of_their_own() -> None:
    adapters = fabric_of(IBNETDISCOVER, read(f"{RUN}/ibnetdiscover.txt")).adapters
    assert set(adapters.port_lmc.tolist()) == {1}
    differing = 0
    for lid, guid in zip(adapters.port_lid.tolist(), adapters.port_guid.tolist(), strict=True):
        assert OSM.lid_guid[lid] == OSM.lid_guid[lid + 1] == guid
        differing += int((OSM.ports[:, lid] != OSM.ports[:, lid + 1]).any())
    assert differing == len(adapters.port_lid)


def fails(parser: Format, text: str, reason: str) -> InputError:
    error = refusal(parser, text, path="dump")
    assert re.search(reason, error.reason)
    return error


def test_a_table_that_is_cut_off_or_lacks_a_line_is_an_error() -> None:
    route, fdbs = ROUTE.splitlines(), FDBS.splitlines()
    for cut in range(1, len(route), 7):
        error = fails(routes.DUMP_FTS, "\n".join(route[:cut]), "truncated|column names")
        assert error.line is not None
    for cut in (1, 2, 3, 50, 141, 142):
        fails(routes.FDBS, "\n".join(fdbs[: 143 + cut]), "truncated|column names")
    fails(routes.FDBS, re.sub(r"0x0005 .*\n", "", FDBS, count=1), "truncated")
    fails(routes.DUMP_FTS, re.sub(r"0x0005 .*\n", "", DUMP, count=1), "truncated")
    part = ROUTE.replace("[0x0-0x8d]", "[0x10-0x8d]")
    fails(routes.DUMP_FTS, part, "incomplete table: the LIDs do not start at 0")


ORDER, NO_LINE = "LIDs must increase from line to line", "not a line of a forwarding table"


@pytest.mark.parametrize(
    ("parser", "old", "new", "reason"),
    [
        (routes.DUMP_FTS, "0x0003 010", "0x0002 010", ORDER),
        (routes.DUMP_FTS, "0x0003 010", "0x0003 255", "out of range"),
        (routes.DUMP_FTS, "0x0003 010", "0x0003 10", NO_LINE),
        (routes.DUMP_FTS, "2: portguid 0x0002c90000f00101", "2: portguid 0x7", "another owner"),
        (routes.DUMP_FTS, "[0x0-0x8d]", "[0x0-0x8c]", "above the table's highest"),
        (routes.FDBS, "0x0003 : 001", "0x0002 : 001", ORDER),
        (routes.FDBS, "0x0003 : 001", "0x0003 : 01", NO_LINE),
        (routes.FDBS, "0x0003 : 001", "0x0003 : 300", "out of range"),
        (routes.FDBS, "LID    : Port", "LID    : Gate", "the column names are missing"),
        (routes.OPENSM_LFTS, "0x0003 ", "0x0002 ", ORDER),
        (routes.OPENSM_LFTS, "0x0003 ", "0x0001 ", ORDER),
        (routes.OPENSM_LFTS, "0x0003 001", "0x0003 255", "out of range"),
        (routes.OPENSM_LFTS, "0x0003 001", "0x0003 1", NO_LINE),
        (routes.OPENSM_LFTS, "0x0003 001", "what is this", NO_LINE),
        (routes.OPENSM_LFTS, "Unicast lids [0-17]", "Unicast lids [0-99999]", "out of range"),
        (routes.OPENSM_LFTS, "Unicast lids [0-17]", "Unicast lids [0-16]", "does not end with"),
        (routes.OPENSM_LFTS, "17 lids dumped", "15 lids dumped", "does not end with '17 lids dumped'"),
    ],
)
def test_lines_that_cannot_be_are_shown(parser: Format, old: str, new: str, reason: str) -> None:
    text = {id(routes.DUMP_FTS): DUMP, id(routes.FDBS): FDBS}.get(id(parser), MADE)
    assert old in text
    error = fails(parser, text.replace(old, new, 1), reason)
    assert error.line is not None
    assert (error.text is None) == ("column names" in reason)
    if new == "15 lids dumped":
        assert error.line == min(ENDS)


def test_two_tables_of_a_switch_and_one_that_is_cut_are_errors() -> None:
    for parser, text in ((routes.DUMP_FTS, DUMP), (routes.FDBS, FDBS), (routes.OPENSM_LFTS, MADE)):
        fails(parser, text + text, "two tables")
    for cut in set(range(1, len(LINES))) - ENDS:
        assert fails(routes.OPENSM_LFTS, "\n".join(LINES[:cut]), "truncated").line == cut


def test_a_switch_with_a_name_in_quotes_is_recognised() -> None:
    quoted = DUMP.replace("(leaf08):", "('leaf08'):")
    assert routes.DUMP_FTS.recognise(quoted, "")
    assert not routes.OPENSM_LFTS.recognise(quoted.split("Unicast", 2)[1].join(["Unicast", ""]), "")


def streamed(path: Path, data: bytes) -> SourceFile:
    """The file as a large one is read: from disk."""
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "LARGE", 0)
        ((file,),) = (group.files for group in read_paths([path]))
    assert file.size_on_disk is not None
    return file


def read_by(parser: Format, file: SourceFile, piece: int) -> ForwardingTables | tuple[str, int | None]:
    """The tables, read in pieces of so many bytes, or what was wrong where."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "PIECE", piece)
        try:
            return sure(parser.parse([file], Options()).tables)
        except InputError as error:
            return error.reason, error.line


@pytest.mark.parametrize("piece", [1000, 7919, 1 << 20])
@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (routes.OPENSM_LFTS, LFTS),
        (routes.DUMP_FTS, DUMP),
        (routes.FDBS, FDBS),
        (routes.FDBS, FDBS.replace("\n", "\r\n")),
    ],
    ids=["opensm-lfts", "dump-fts", "fdbs", "carriage returns"],
)
def test_a_large_file_is_read_piece_by_piece(parser: Format, text: str, piece: int, tmp_path: Path) -> None:
    tables = read_by(parser, streamed(tmp_path / "x", text.encode()), piece)
    assert isinstance(tables, ForwardingTables)
    assert same(tables, tables_of(parser, text))


@settings(max_examples=60, deadline=None)
@given(data=damaged(LFTS.encode()), piece=st.integers(400, 40_000))
def test_a_damaged_large_file_is_refused_at_the_same_place(data: bytes, piece: int) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    if not data.strip() or b"\0" in data or b"\r" in data:
        return
    with tempfile.TemporaryDirectory() as folder:
        whole = read_by(routes.OPENSM_LFTS, file(data), piece)
        pieces = read_by(routes.OPENSM_LFTS, streamed(Path(folder) / "x", data), piece)
    if isinstance(whole, ForwardingTables):
        assert isinstance(pieces, ForwardingTables)
        assert same(whole, pieces)
    else:
        assert whole == pieces


@pytest.mark.parametrize(
    "data", [b"\xff" * 3000, b"no table here\n" * 300, LFTS.encode() + b"\xe2\x82", b"a\0b"]
)
def test_a_large_file_that_is_none_of_tables_is_an_error(data: bytes, tmp_path: Path) -> None:
    assert isinstance(read_by(routes.OPENSM_LFTS, streamed(tmp_path / "x", data), 100), tuple)


def test_a_large_file_without_tables_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MAX_BLOCK", 5000)
    words = read_by(routes.OPENSM_LFTS, streamed(tmp_path / "x", b"word " * 5000), 1000)
    assert words == ("not the heading of a switch's table", 1)
    long = streamed(tmp_path / "y", LFTS.encode() + b"x" * 30_000)
    assert isinstance(read_by(routes.OPENSM_LFTS, long, 1000), tuple)


def test_a_large_file_of_another_format_is_held_and_one_that_grows_is_an_error(tmp_path: Path) -> None:
    kept = streamed(tmp_path / "x", b"abc" * 1000)
    assert kept.held().data == b"abc" * 1000
    assert (kept.size, kept.held().size_on_disk) == (3000, None)
    kept = streamed(tmp_path / "x", LFTS.encode())
    with (tmp_path / "x").open("a") as more:
        more.write("\n")
    with pytest.raises(InputError, match="changed while it was read"):
        routes.OPENSM_LFTS.parse([kept], Options())


# opensm's own dump

DUMPS = sorted(path.relative_to(DATA).as_posix() for path in DATA.glob("infiniband/*/opensm-lfts.dump*"))
TREE = fat_tree(2, 3, 2, lmc=1)
TABLES = forwarding_tables(TREE)
MADE = opensm_lfts_text(TREE, TABLES)


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
    tables = tables_of(routes.OPENSM_LFTS, text)
    ports, owner = naive(text)
    assert tables.switch_guid.tolist() == sorted({switch for switch, _ in ports})
    row = {int(guid): index for index, guid in enumerate(tables.switch_guid)}
    for (switch, lid), port in ports.items():
        assert tables.ports[row[switch], lid] == port
    assert (tables.ports != NO_ROUTE).sum() == len(ports)
    assert {lid: int(guid) for lid, guid in enumerate(tables.lid_guid) if guid} == owner


def deliver(fabric: Fabric, tables: ForwardingTables, start: int, lid: int) -> tuple[int, int]:
    """Vertex and port at which a packet that enters at switch `start` for `lid` leaves the network."""
    rows = rows_of(fabric.links, "source", "source_port", "target", "target_port")
    wire = {(vertex, port): (target, far) for vertex, port, target, far in rows}
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
    fabric = fabric_of(IBNETDISCOVER, read(f"infiniband/{name}/ibnetdiscover.txt"))
    dump = next(path for path in DUMPS if f"/{name}/" in path)
    tables = tables_of(routes.OPENSM_LFTS, read(dump))
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
    tables = tables_of(routes.OPENSM_LFTS, opensm_lfts_text(devices, made))
    assert same(tables, made)
    fabric = fabric_of(IBNETDISCOVER, ibnetdiscover_text(devices))
    all_are_delivered(fabric, tables)


def all_are_delivered(fabric: Fabric, tables: ForwardingTables) -> None:
    for host, lid in zip(fabric.adapters.host, fabric.adapters.port_lid, strict=True):
        for start in fabric.switches:
            assert deliver(fabric, tables, int(start), int(lid))[0] == host


def test_a_three_level_tree_is_the_generated_fabric_with_ports_and_its_tables_deliver() -> None:
    devices = three_level_tree(3, 2, 4)
    fabric, plain = fabric_of(IBNETDISCOVER, ibnetdiscover_text(devices)), three_level(3, 2, 4)
    assert (len(fabric.hosts), len(fabric.switches)) == (len(plain.hosts), len(plain.switches)) == (24, 16)
    assert fabric.cable_count == plain.cable_count
    assert np.array_equal(np.sort(distances(fabric)), np.sort(distances(plain)))
    text = opensm_lfts_text(devices, forwarding_tables(devices))
    all_are_delivered(fabric, tables_of(routes.OPENSM_LFTS, text))


def distances(fabric: Fabric) -> Floats:
    """Hops between all hosts."""
    links = fabric.links
    ends = (np.ones(len(links)), (links.source, links.target))
    hops = shortest_path(csr_array(ends, shape=(len(fabric),) * 2), unweighted=True)
    return np.asarray(hops[np.ix_(fabric.hosts, fabric.hosts)])


def test_lmc_gives_a_port_several_lids_and_an_owner_known_once_is_kept() -> None:
    tables = tables_of(routes.OPENSM_LFTS, MADE)
    owners, counts = np.unique(tables.lid_guid[tables.lid_guid > 0], return_counts=True)
    hosts = owners >= 0x2C90000F00000
    assert counts[hosts].tolist() == [2] * 6
    assert counts[~hosts].tolist() == [1] * 4
    first, rest = MADE.split("lids dumped\n", 1)
    tables = tables_of(routes.OPENSM_LFTS, re.sub(r" # .*", "", first) + "lids dumped\n" + rest)
    assert np.array_equal(tables.lid_guid, TABLES.lid_guid)


@pytest.mark.parametrize(
    "text",
    [
        MADE.replace("\n", "\r\n"),
        MADE.rstrip("\n"),
        MADE + "\n\n",
        MADE.replace("lids dumped\n", "lids dumped\n\n"),
        re.sub(r"\[0-(\d+)\]", lambda match: f"[0x0-0x{int(match[1]):x}]", MADE),
        MADE.replace("node0001 mlx5_0", "it's ('odd'): # 0x0001 001"),
    ],
)
def test_the_same_tables_in_another_dress(text: str) -> None:
    assert same(tables_of(routes.OPENSM_LFTS, text), TABLES)


def test_tables_may_end_with_different_lids() -> None:
    longer = MADE.replace("Unicast lids [0-17]", "Unicast lids [0-18]", 1).replace("17 lids", "18 lids", 1)
    found = tables_of(routes.OPENSM_LFTS, longer).ports
    assert np.array_equal(found, np.pad(TABLES.ports, ((0, 0), (0, 1)), constant_values=NO_ROUTE))


@pytest.mark.parametrize("ending", [" # unknown node and type", " # ", ""])
def test_lids_without_a_known_owner_are_read_and_counted(ending: str) -> None:
    parsed = parse(routes.OPENSM_LFTS, re.sub(r" # .*", ending, MADE))
    assert same(sure(parsed.tables), replace(TABLES, lid_guid=np.zeros_like(TABLES.lid_guid)))
    assert parsed.warnings == ("16 routed LIDs have no known port",)


LINES = MADE.splitlines()
ENDS = {index + 1 for index, line in enumerate(LINES) if line.endswith("lids dumped")}


def test_other_faults_of_opensms_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    last = next(line for line in LINES if line.startswith("0x0011"))
    above = MADE.replace(last, last.replace("0x0011", "0x0012"), 1)
    fails(routes.OPENSM_LFTS, above, "above the table's highest")
    where = MADE.rindex("portguid 0x0002c90000f00101")
    twice = MADE[:where] + MADE[where:].replace("f00101", "f00999", 1)
    fails(routes.OPENSM_LFTS, twice, "another owner")
    error = fails(routes.OPENSM_LFTS, "hello\n" + MADE, "not the heading of a switch's table")
    assert (error.line, error.text) == (1, "hello")
    monkeypatch.setattr(routes, "MAX_CELLS", 10)
    fails(routes.OPENSM_LFTS, MADE, "table entries")
