"""dump_fts, ibroute and .fdbs: the same tables as opensm's own dump of the same run, LMC included."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.formats.fabrics import ibnetdiscover
from ingest.formats.routes import dialects, linear_tables
from ingest.options import Options
from ingest.reading import source
from ingest.reading.source import SourceFile, read_paths
from registry.errors import InputError
from registry.model import NO_ROUTE, ForwardingTables
from tests.support.inputs import damaged, file, parse, read, survives

RUN = "infiniband/fattree2-64-lmc1"
DUMP = read(f"{RUN}/dump_fts.txt.gz").decode()
FDBS = read(f"{RUN}/opensm.fdbs.gz").decode()
ROUTE = read(f"{RUN}/ibroute.txt").decode()
FORMATS = (dialects.OPENSM_LFTS, dialects.DUMP_FTS, dialects.FDBS)
LFTS = read(f"{RUN}/opensm-lfts.dump.gz").decode()


def tables_of(parser: Parser, text: str | bytes) -> ForwardingTables:
    tables = parse(parser, text, path="dump").tables
    assert tables is not None
    return tables


OSM = tables_of(dialects.OPENSM_LFTS, read(f"{RUN}/opensm-lfts.dump.gz"))


def same(one: ForwardingTables, other: ForwardingTables) -> bool:
    return (
        np.array_equal(one.switch_guid, other.switch_guid)
        and np.array_equal(one.ports, other.ports)
        and np.array_equal(one.lid_guid, other.lid_guid)
    )


@pytest.mark.parametrize("name", ["dump_fts.txt.gz", "dump_fts-a.txt.gz"])
def test_dump_fts_has_the_same_tables_as_opensm_in_the_same_run(name: str) -> None:
    assert same(tables_of(dialects.DUMP_FTS, read(f"{RUN}/{name}")), OSM)


def test_dump_fts_of_a_fabric_with_one_lid_a_port() -> None:
    real = "infiniband/fattree2-64-ftree"
    assert same(
        tables_of(dialects.DUMP_FTS, read(f"{real}/dump_fts.txt")),
        tables_of(dialects.OPENSM_LFTS, read(f"{real}/opensm-lfts.dump")),
    )


def test_without_destinations_the_ports_are_read_and_the_owners_unknown() -> None:
    parsed = parse(dialects.DUMP_FTS, read(f"{RUN}/dump_fts-n.txt.gz"))
    assert parsed.tables is not None
    assert np.array_equal(parsed.tables.ports, OSM.ports)
    assert not parsed.tables.lid_guid.any()
    assert parsed.warnings == ("140 routed LIDs have no known port",)


def test_ibroute_has_the_table_of_one_switch() -> None:
    tables = tables_of(dialects.DUMP_FTS, ROUTE)
    row = OSM.switch_guid.tolist().index(0x2C90000100800)
    assert tables.switch_guid.tolist() == [0x2C90000100800]
    assert np.array_equal(tables.ports[0], OSM.ports[row])
    assert np.array_equal(tables.lid_guid, OSM.lid_guid)


def test_ibroute_of_several_switches_is_one_set_of_tables() -> None:
    pieces = [f"Unicast{piece}" for piece in DUMP.split("Unicast")[1:]]
    files = [file(piece, f"{number}.txt") for number, piece in enumerate(pieces)]
    tables = dialects.DUMP_FTS.parse(files, Options()).tables
    assert tables is not None
    assert same(tables, OSM)


def test_fdbs_has_the_same_ports_and_no_owners() -> None:
    parsed = parse(dialects.FDBS, FDBS)
    assert parsed.tables is not None
    assert np.array_equal(parsed.tables.switch_guid, OSM.switch_guid)
    assert np.array_equal(parsed.tables.ports, OSM.ports)
    assert not parsed.tables.lid_guid.any()
    assert len(parsed.warnings) == 1


def test_a_million_blanks_after_a_table_of_fdbs_do_not_matter() -> None:
    """They once took the square of their number."""
    assert np.array_equal(tables_of(dialects.FDBS, FDBS + "\n" * 10 + " " * 10**6).ports, OSM.ports)


def test_the_head_of_old_fdbs_is_read() -> None:
    old = FDBS.replace("dump_ucast_routes", "osm_ucast_mgr_dump_ucast_routes")
    assert dialects.FDBS.recognise(old, "x")
    assert np.array_equal(tables_of(dialects.FDBS, old).ports, OSM.ports)


@pytest.mark.parametrize(
    "rest", ["HOPS UNKNOWN", "03   : No 2 hop path possible via port 9! Optimal 1", "01   : yes"]
)
def test_routes_of_any_quality_count(rest: str) -> None:
    changed = FDBS.replace("001  : 01   : yes", f"001  : {rest}", 1)
    assert np.array_equal(tables_of(dialects.FDBS, changed).ports, OSM.ports)


def test_every_port_owns_both_of_its_lids_and_they_take_ways_of_their_own() -> None:
    scan = parse(ibnetdiscover, read(f"{RUN}/ibnetdiscover.txt")).fabric
    assert scan is not None
    adapters = scan.adapters
    assert set(adapters.port_lmc.tolist()) == {1}
    differing = 0
    for lid, guid in zip(adapters.port_lid.tolist(), adapters.port_guid.tolist(), strict=True):
        assert OSM.lid_guid[lid] == OSM.lid_guid[lid + 1] == guid
        differing += int((OSM.ports[:, lid] != OSM.ports[:, lid + 1]).any())
    assert differing == len(adapters.port_lid)


def fails(parser: Parser, text: str, reason: str) -> InputError:
    with pytest.raises(InputError, match=reason) as caught:
        parse(parser, text, path="dump")
    assert caught.value.path == "dump"
    return caught.value


ROUTE_LINES = ROUTE.splitlines()


@pytest.mark.parametrize("cut", range(1, len(ROUTE_LINES), 7))
def test_a_table_of_ibroute_that_is_cut_off_is_an_error(cut: int) -> None:
    assert fails(dialects.DUMP_FTS, "\n".join(ROUTE_LINES[:cut]), "truncated|column names").line is not None


@pytest.mark.parametrize("cut", [1, 2, 3, 50, 141, 142])
def test_a_table_of_fdbs_that_is_cut_off_is_an_error(cut: int) -> None:
    first = FDBS.splitlines()
    kept = [*first[:143], *first[143 : 143 + cut]]
    fails(dialects.FDBS, "\n".join(kept), "truncated|column names")


def test_a_line_left_out_of_a_table_is_an_error() -> None:
    fails(dialects.FDBS, re.sub(r"0x0005 .*\n", "", FDBS, count=1), "truncated")
    fails(dialects.DUMP_FTS, re.sub(r"0x0005 .*\n", "", DUMP, count=1), "truncated")


def test_a_part_of_a_table_is_refused() -> None:
    part = ROUTE.replace("[0x0-0x8d]", "[0x10-0x8d]")
    fails(dialects.DUMP_FTS, part, "incomplete table: the LIDs do not start at 0")


@pytest.mark.parametrize(
    ("parser", "text", "old", "new", "reason"),
    [
        (dialects.DUMP_FTS, DUMP, "0x0003 010", "0x0002 010", "LIDs must increase from line to line"),
        (dialects.DUMP_FTS, DUMP, "0x0003 010", "0x0003 255", "out of range"),
        (dialects.DUMP_FTS, DUMP, "0x0003 010", "0x0003 10", "not a line of a forwarding table"),
        (dialects.DUMP_FTS, DUMP, "2: portguid 0x0002c90000f00101", "2: portguid 0x7", "another owner"),
        (dialects.DUMP_FTS, DUMP, "[0x0-0x8d]", "[0x0-0x8c]", "above the table's highest"),
        (dialects.FDBS, FDBS, "0x0003 : 001", "0x0002 : 001", "LIDs must increase from line to line"),
        (dialects.FDBS, FDBS, "0x0003 : 001", "0x0003 : 01", "not a line of a forwarding table"),
        (dialects.FDBS, FDBS, "0x0003 : 001", "0x0003 : 300", "out of range"),
        (dialects.FDBS, FDBS, "LID    : Port", "LID    : Gate", "the column names are missing"),
    ],
)
def test_lines_that_cannot_be_are_shown(parser: Parser, text: str, old: str, new: str, reason: str) -> None:
    assert old in text
    error = fails(parser, text.replace(old, new, 1), reason)
    assert error.line is not None


def test_a_switch_with_two_tables_is_an_error() -> None:
    fails(dialects.DUMP_FTS, DUMP + DUMP, "two tables")
    fails(dialects.FDBS, FDBS + FDBS, "two tables")


def test_multicast_tables_are_of_no_format() -> None:
    text = read(f"{RUN}/ibroute-M.txt").decode()
    assert not any(parser.recognise(text, "") for parser in FORMATS)


def test_a_switch_with_a_name_in_quotes_is_recognised() -> None:
    quoted = DUMP.replace("(leaf08):", "('leaf08'):")
    assert dialects.DUMP_FTS.recognise(quoted, "")
    assert not dialects.OPENSM_LFTS.recognise(quoted.split("Unicast", 2)[1].join(["Unicast", ""]), "")


def test_routes_lead_somewhere() -> None:
    assert (OSM.ports != NO_ROUTE).sum() == 12 * 140


def streamed(path: Path, data: bytes, piece: int) -> SourceFile:
    """The file as a large one is read: from disk, `piece` bytes at a time."""
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "LARGE", 0)
        ((file,),) = (group.files for group in read_paths([path]))
    assert file.size_on_disk is not None
    return file


def read_by(parser: Parser, file: SourceFile, piece: int) -> ForwardingTables | tuple[str, int | None]:
    """The tables, or what was wrong where."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "PIECE", piece)
        try:
            tables = parser.parse([file], Options()).tables
        except InputError as error:
            return error.reason, error.line
    assert tables is not None
    return tables


@pytest.mark.parametrize("piece", [1000, 7919, 1 << 20])
@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (dialects.OPENSM_LFTS, LFTS),
        (dialects.DUMP_FTS, DUMP),
        (dialects.FDBS, FDBS),
        (dialects.FDBS, FDBS.replace("\n", "\r\n")),
    ],
    ids=["opensm-lfts", "dump-fts", "fdbs", "carriage returns"],
)
def test_a_large_file_is_read_piece_by_piece(parser: Parser, text: str, piece: int, tmp_path: Path) -> None:
    tables = read_by(parser, streamed(tmp_path / "x", text.encode(), piece), piece)
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
        whole = read_by(dialects.OPENSM_LFTS, file(data), piece)
        pieces = read_by(dialects.OPENSM_LFTS, streamed(Path(folder) / "x", data, piece), piece)
    if isinstance(whole, ForwardingTables):
        assert isinstance(pieces, ForwardingTables)
        assert same(whole, pieces)
    else:
        assert whole == pieces


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 3000, b"no table here\n" * 300, LFTS.encode() + b"\xe2\x82", b"a\0b"]
)
def test_a_large_file_that_is_none_of_tables_is_an_error(data: bytes, tmp_path: Path) -> None:
    if not data:
        return
    assert isinstance(read_by(dialects.OPENSM_LFTS, streamed(tmp_path / "x", data, 100), 100), tuple)


def test_a_large_file_without_tables_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_tables, "MAX_BLOCK", 5000)
    words = read_by(dialects.OPENSM_LFTS, streamed(tmp_path / "x", b"word " * 5000, 1000), 1000)
    assert words == ("not the heading of a switch's table", 1)
    long = LFTS.replace("140 lids", "140 lids", 1) + "x" * 30_000
    assert isinstance(
        read_by(dialects.OPENSM_LFTS, streamed(tmp_path / "y", long.encode(), 1000), 1000), tuple
    )


def test_a_large_file_of_another_format_is_held(tmp_path: Path) -> None:
    kept = streamed(tmp_path / "x", b"abc" * 1000, 100)
    assert kept.held().data == b"abc" * 1000
    assert (kept.size, kept.held().size_on_disk) == (3000, None)


def test_a_file_that_grows_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    kept = streamed(tmp_path / "x", LFTS.encode(), 1000)
    with (tmp_path / "x").open("a") as more:
        more.write("\n")
    with pytest.raises(InputError, match="changed while it was read"):
        dialects.OPENSM_LFTS.parse([kept], Options())


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_only_ever_raise_input_errors(data: bytes) -> None:
    for parser, text in ((dialects.DUMP_FTS, ROUTE), (dialects.FDBS, FDBS)):
        survives(parser, [file(data)])
        survives(parser, [file(text.encode()[:150] + data)])


@settings(max_examples=200, deadline=None)
@given(damaged(ROUTE.encode()), damaged(FDBS.encode()[:9000]))
def test_damaged_tables_only_ever_raise_input_errors(route: bytes, table: bytes) -> None:
    survives(dialects.DUMP_FTS, [file(route)])
    survives(dialects.FDBS, [file(table)])
