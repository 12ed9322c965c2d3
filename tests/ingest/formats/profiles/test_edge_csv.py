"""Edge lists as CSV: what is summed, what is refused and in which line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles import edge_csv
from ingest.options import Options
from registry.errors import InputError
from registry.model import Profile
from tests.support.inputs import damaged, file, parse, read, survives


def profile(content: str | bytes, options: Options | None = None, *, path: str = "run.csv.gz") -> Profile:
    parsed = parse(edge_csv, content, options, path=path)
    assert parsed.profiles
    return parsed.profiles[0]


def edges(of: Profile) -> dict[tuple[int, int], tuple[float, int]]:
    pairs = zip(of.sender.tolist(), of.partner.tolist(), strict=True)
    values = zip(of.bytes.tolist(), of.messages.tolist(), strict=True)
    return dict(zip(pairs, values, strict=True))


def test_columns_may_come_in_any_order_and_case() -> None:
    given_order = profile("src,dst,bytes,messages\n0,1,10,2\n")
    other_order = profile("Messages, bytes ,DST,src\n2,10,1,0\n")
    assert edges(given_order) == edges(other_order) == {(0, 1): (10.0, 2)}


def test_messages_are_unknown_where_there_is_no_column() -> None:
    assert edges(profile("src,dst,bytes\n1,0,2.5\n")) == {(1, 0): (2.5, 0)}


def test_rows_of_one_pair_are_summed() -> None:
    assert edges(profile("src,dst,bytes,messages\n0,1,1,1\n0,1,2,3\n1,0,5,1\n")) == {
        (0, 1): (3.0, 4),
        (1, 0): (5.0, 1),
    }


def test_what_collective_calls_ask_for_is_left_out_and_counted() -> None:
    rows = "0,1,p2p,1\n0,1,coll_wire,2\n0,1,coll_api,4\n2,3,coll_api,8\n"
    parsed = parse(edge_csv, f"src,dst,kind,bytes\n{rows}")
    assert parsed.profiles
    assert edges(parsed.profiles[0]) == {(0, 1): (3.0, 0)}
    assert parsed.profiles[0].ranks == 4
    assert parsed.warnings[0].startswith("2 rows of kind coll_api")


def test_self_edges_are_dropped_and_counted() -> None:
    parsed = parse(edge_csv, "src,dst,bytes\n0,0,7\n1,1,8\n0,1,1\n")
    assert parsed.profiles
    assert (parsed.profiles[0].self_edges, parsed.profiles[0].self_bytes) == (2, 15.0)
    assert edges(parsed.profiles[0]) == {(0, 1): (1.0, 0)}
    assert parsed.warnings == ("2 edges from a rank to itself are dropped: 15 bytes that no cable carries",)


def test_columns_that_are_not_read_are_named() -> None:
    assert parse(edge_csv, "t_us,src,dst,bytes,tag\n0.5,0,1,8,1\n").warnings == (
        "ignored columns: t_us, tag",
    )


def test_name_is_the_given_one_else_the_files() -> None:
    content = "src,dst,bytes\n0,1,1\n"
    assert profile(content, path="runs/npb.cg_64.csv.xz").name == "npb.cg_64"
    assert profile(content, path="all.tar.gz!day/cg.csv").name == "cg"
    named = profile(content, Options(name="mine"), path="runs/cg_64.csv")
    assert (named.name, named.application, named.source) == ("mine", "cg_64", "edge-csv")


def test_comments_before_the_columns_and_empty_lines_are_allowed() -> None:
    read_in = profile("# made\n\nsrc,dst,bytes\n\n0,1,1\n\n1,0,2\n")
    assert edges(read_in) == {(0, 1): (1.0, 0), (1, 0): (2.0, 0)}


def test_quoted_cells_and_line_ends_of_other_systems_are_read() -> None:
    text = '"src","dst","bytes","kind"\r\n"0","1","1e3","a, b"\r\n'
    assert edges(profile(text)) == {(0, 1): (1000.0, 0)}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("0,1,nan,1,p2p", "bytes is not finite"),
        ("0,1,inf,1,p2p", "bytes is not finite"),
        ("0,1,-1,1,p2p", "bytes is negative"),
        ("0,1,,1,p2p", "bytes is not a number"),
        ("0,1,1_0,1,p2p", "bytes is not a number"),
        ("0,1,0x10,1,p2p", "bytes is not a number"),
        ("0,1,٣,1,p2p", "bytes is not a number"),
        ("a,1,1,1,p2p", "src is not a number"),
        ("0.5,1,1,1,p2p", "src is not a whole number below 2^53"),
        ("0,99999999,1,1,p2p", "dst is not a rank below 16777216"),
        ("0,1,1,-3,p2p", "messages is negative"),
        ("0,1,1,1e300,p2p", "messages is not a whole number below 2^53"),
        ("0,1,1,1", "4 cells, but there are 5 columns"),
        ("0,1,1,1,p2p,9", "6 cells, but there are 5 columns"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(row: str, reason: str) -> None:
    head = '# made\n\nsrc,dst,bytes,messages,kind\n0,1,1,1,"two\nlines"\n\n'
    with pytest.raises(InputError) as caught:
        profile(f"{head}{row}\n0,1,x,1,p2p\n")
    assert (caught.value.reason, caught.value.line, caught.value.text) == (reason, 7, row)


def test_a_bad_row_far_down_has_the_right_line() -> None:
    rows = "".join(f"{i % 50},{i % 49},{i},1\n" for i in range(100_000))
    with pytest.raises(InputError, match=r"run\.csv\.gz:100002: bytes is negative"):
        profile(f"src,dst,bytes,messages\n{rows}1,2,-5,1\n")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("src,dst\n0,1\n", "column bytes is missing"),
        ("from,to,bytes\n0,1,2\n", "columns src and dst are missing"),
        ("src,dst,bytes,bytes\n0,1,2,3\n", "a column is repeated"),
        ("src,dst,bytes\n", "no edges found after the column names"),
        ("src,dst,bytes\n\n \n", "no edges found after the column names"),
        ("# nothing\n", "the line with the column names is missing"),
        ("", "the file is empty"),
        (b"src,dst,bytes\n0,1,\xff\n", "byte 0xff is not UTF-8 text"),
        (b"src,dst,bytes\n0,1,\x00\n", "the file is binary, not text"),
    ],
)
def test_a_file_without_edges_is_refused(content: str | bytes, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        profile(content)
    assert caught.value.reason == reason


def test_it_is_recognised_by_its_columns() -> None:
    assert edge_csv.recognise("# x\ndst,kind,SRC,bytes\n", "p")
    assert not edge_csv.recognise("rank,host,slot\n0,1,2\n", "p")
    assert not edge_csv.recognise("", "p")


RANK = st.integers(0, 30)
ROWS = st.lists(st.tuples(RANK, RANK, st.integers(0, 1 << 40), st.integers(0, 99)))


@given(ROWS.filter(lambda rows: any(source != target for source, target, _, _ in rows)))
def test_an_exported_profile_reads_back_the_same(rows: list[tuple[int, int, int, int]]) -> None:
    source, target, size, count = zip(*rows, strict=True)
    before = Profile.from_edges(source, target, size, messages=count)
    written = "src,dst,bytes,messages\n" + "".join(
        f"{src},{dst},{sent!r},{times}\n" for (src, dst), (sent, times) in edges(before).items()
    )
    assert edges(profile(written)) == edges(before)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    survives(edge_csv, [file(body)])
    survives(edge_csv, [file(b"src,dst,bytes,kind\n" + body)])


@given(damaged(read("edges/npb_cg_S_16.csv.gz")))
def test_a_damaged_file_is_read_or_refused(data: bytes) -> None:
    survives(edge_csv, [file(data)])


def test_a_blank_that_only_unicode_knows_hides_no_fault_behind_it() -> None:
    """numpy takes it for a blank, as str.strip does; float does not."""
    with pytest.raises(InputError, match="bytes is not a number") as caught:
        profile("src,dst,bytes\n0,1,7\x1f\n1,2,x\n")
    assert caught.value.line == 3
