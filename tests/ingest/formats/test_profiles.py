"""Profiles from tables of pairs and of messages."""

from __future__ import annotations

import io
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles.edges import EDGE_CSV, TRACE_CSV, csv_text
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.pipeline import plan
from registry.errors import InputError
from registry.model import Profile, Trace
from tests.support.inputs import DATA, bytes_of, edges_of, parse, profile_of, recordings, refusal, traffic_of
from tests.support.sure import sure


@pytest.mark.parametrize(
    ("text", "traffic"),
    [
        ("src,dst,bytes,messages\n0,1,10,2\n", {(0, 1): (10.0, 2)}),
        ("Messages, bytes ,DST,src\n2,10,1,0\n", {(0, 1): (10.0, 2)}),  # any order and case
        ("src,dst,bytes\n1,0,2.5\n", {(1, 0): (2.5, 0)}),  # messages are unknown
        ("src,dst,bytes,messages\n0,1,1,1\n0,1,2,3\n1,0,5,1\n", {(0, 1): (3.0, 4), (1, 0): (5.0, 1)}),
        ("# made\n\nsrc,dst,bytes\n\n0,1,1\n\n1,0,2\n", {(0, 1): (1.0, 0), (1, 0): (2.0, 0)}),
        ('"src","dst","bytes","kind"\r\n"0","1","1e3","a, b"\r\n', {(0, 1): (1000.0, 0)}),
    ],
)
def test_rows_of_a_pair_are_summed(text: str, traffic: dict[tuple[int, int], tuple[float, int]]) -> None:
    assert traffic_of(profile_of(EDGE_CSV, text)) == traffic


def test_what_collective_calls_ask_for_and_other_columns_are_left_out_and_counted() -> None:
    rows = "0,1,p2p,1\n0,1,coll_wire,2\n0,1,coll_api,4\n2,3,coll_api,8\n"
    parsed = parse(EDGE_CSV, f"src,dst,kind,bytes\n{rows}")
    assert traffic_of(parsed.profiles[0]) == {(0, 1): (3.0, 0)}
    assert parsed.profiles[0].ranks == 4
    assert parsed.warnings[0].startswith("2 rows of kind coll_api")
    others = parse(EDGE_CSV, "t_us,src,dst,bytes,tag\n0.5,0,1,8,1\n")
    assert others.warnings == ("ignored columns: t_us, tag",)


def test_name_is_the_given_one_else_the_files() -> None:
    content = "src,dst,bytes\n0,1,1\n"
    assert profile_of(EDGE_CSV, content, path="runs/npb.cg_64.csv.xz").name == "npb.cg_64"
    assert profile_of(EDGE_CSV, content, path="all.tar.gz!day/cg.csv").name == "cg"
    named = profile_of(EDGE_CSV, content, Options(name="mine"), path="runs/cg_64.csv")
    assert (named.name, named.application, named.source) == ("mine", "cg_64", "edge-csv")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("0,1,nan,1,p2p", "bytes is not finite"), ("0,1,inf,1,p2p", "bytes is not finite"),
        ("0,1,-1,1,p2p", "bytes is negative"), ("0,1,,1,p2p", "bytes is not a number"),
        ("0,1,1_0,1,p2p", "bytes is not a number"), ("0,1,0x10,1,p2p", "bytes is not a number"),
        ("0,1,٣,1,p2p", "bytes is not a number"), ("a,1,1,1,p2p", "src is not a number"),
        ("0.5,1,1,1,p2p", "src is not a whole number below 2^53"),
        ("0,99999999,1,1,p2p", "dst is not a rank below 16777216"), ("0,1,1,-3,p2p", "messages is negative"),
        ("0,1,1,1e300,p2p", "messages is not a whole number below 2^53"),
        ("0,1,1,1", "4 cells, but there are 5 columns"),
        ("0,1,1,1,p2p,9", "6 cells, but there are 5 columns"),
    ],
)  # fmt: skip
def test_a_bad_row_is_refused_with_its_line(row: str, reason: str) -> None:
    head = '# made\n\nsrc,dst,bytes,messages,kind\n0,1,1,1,"two\nlines"\n\n'
    error = refusal(EDGE_CSV, f"{head}{row}\n0,1,x,1,p2p\n")
    assert (error.reason, error.line, error.text) == (reason, 7, row)


def test_a_bad_row_far_down_has_the_right_line() -> None:
    rows = "".join(f"{i % 50},{i % 49},{i},1\n" for i in range(100_000))
    error = refusal(EDGE_CSV, f"src,dst,bytes,messages\n{rows}1,2,-5,1\n", path="run.csv.gz")
    assert str(error).startswith("run.csv.gz:100002: bytes is negative")


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
    assert refusal(EDGE_CSV, content).reason == reason


def test_a_blank_that_only_unicode_knows_hides_no_fault_behind_it() -> None:
    """numpy takes it for a blank, as str.strip does; float does not."""
    error = refusal(EDGE_CSV, "src,dst,bytes\n0,1,7\x1f\n1,2,x\n")
    assert (error.line, error.reason) == (3, "bytes is not a number")


@given(recordings())
def test_a_written_profile_is_read_back_with_its_silent_ranks(
    tmp_path_factory: pytest.TempPathFactory, profile: Profile
) -> None:
    path = tmp_path_factory.mktemp("edges") / "p.csv"
    path.write_text(csv_text(profile))
    (found,) = plan([path]).profiles
    assert edges_of(found) == edges_of(profile)
    assert found.ranks == profile.ranks


@pytest.mark.parametrize("number", ["x", "0", "99999999999", "-1", ""])
def test_an_invalid_number_of_ranks_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"# ranks: {number}\nsrc,dst,bytes\n0,1,2\n")
    with pytest.raises(InputError, match="invalid number of ranks") as caught:
        plan([path])
    assert caught.value.line == 1
    path.write_text("# ranks: 1\nsrc,dst,bytes\n0,1,2\n")
    with pytest.raises(InputError, match="contains rank 1, but declares 1 ranks"):
        plan([path])


def test_fractions_of_bytes_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(csv_text(Profile.from_edges([0, 1], [1, 0], [0.1, 1e18], messages=[1, 1])))
    assert np.array_equal(plan([path]).profiles[0].bytes, [0.1, 1e18])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("edges.csv", "src,dst,bytes\n0,1,5\n1,0,1e308\n", "3: bytes is more than 2^63"),
        ("sum.csv", "src,dst,bytes\n0,1,9e18\n0,1,9e18\n", "1.8e+19 bytes from rank 0 to 1 are more"),
        ("dense.csv", "0,1e308\n0,0\n", "dense.csv: 1e+308 bytes from rank 0 to 1 are more than 2^63"),
    ],
)
def test_more_bytes_than_any_run_sends_are_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    """Their sum over all pairs would not be finite."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        plan([path])
    assert reason in str(caught.value)
    path.write_text(text.replace("1e308", "9e18").replace("0,1,9e18\n0,1,9e18", "0,1,4e18\n0,1,4e18"))
    assert plan([path]).profiles[0].bytes.max() >= 8e18


@pytest.mark.parametrize(
    "rows", ["src,dst,bytes\n0,1,5\n1,16777215,5\n", "t_s,src,dst,bytes\n0,0,1,5\n1,1,16777215,5\n"]
)
def test_a_rank_far_above_the_others_is_reported_unless_the_number_is_declared(
    tmp_path: Path, rows: str
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(rows.replace("16777215", "99"))
    (warning,) = plan([path]).warnings
    assert "97 of 100 ranks neither send nor receive: is rank 99 right? '# ranks: 100'" in warning
    path.write_text("# ranks: 100\n" + rows.replace("16777215", "99"))
    assert plan([path]).warnings == ()
    path.write_text(rows.replace("16777215", "3"))
    assert plan([path]).warnings == ()


SP = DATA / "profiles/trace_npb_sp_A_it5_64.csv.xz"
SMALL = "t_us,src,dst,bytes,tag\n5.5,0,1,8,1\n7.5,2,0,16,2\n7.5,0,1,4,-3\n"


def read(content: str | bytes, options: Options | None = None, path: str = "run.csv.xz") -> Parsed:
    return parse(TRACE_CSV, content, options, path=path)


def trace_of(content: str) -> Trace:
    return sure(read(content).traces[0])


def test_every_message_is_read_with_seconds_since_the_first() -> None:
    trace = trace_of(SMALL)
    assert trace.ranks == 3
    assert trace.at.tolist() == pytest.approx([0.0, 2e-6, 2e-6])
    assert (trace.sender.tolist(), trace.receiver.tolist()) == ([0, 2, 0], [1, 0, 1])
    assert (trace.bytes.tolist(), trace.tag.tolist()) == ([8, 16, 4], [1, 2, -3])


def test_a_trace_gives_its_profile_under_the_files_name_or_the_given_one() -> None:
    profile = profile_of(TRACE_CSV, SMALL, path="runs/cg_64.csv.xz")
    assert (profile.name, profile.application, profile.source) == ("cg_64", "cg_64", "trace-csv")
    assert traffic_of(profile) == {(0, 1): (12.0, 2), (2, 0): (16.0, 1)}
    assert profile_of(TRACE_CSV, SMALL, Options(name="mine")).name == "mine"


@pytest.mark.parametrize(
    ("column", "seconds"), [("t_s", 1.0), ("t_ms", 1e-3), ("t_us", 1e-6), ("T_NS", 1e-9)]
)
def test_the_name_of_the_column_gives_the_unit(column: str, seconds: float) -> None:
    trace = trace_of(f"{column},src,dst,bytes\n-2,0,1,8\n1,1,0,8\n")
    assert trace.at.tolist() == pytest.approx([0, 3 * seconds])


def test_columns_may_come_in_any_order_a_tag_may_be_missing_and_a_comment_gives_the_ranks() -> None:
    trace = trace_of("bytes,dst,src,t_us\n8,1,0,3\n")
    assert (trace.sender.tolist(), trace.receiver.tolist(), trace.tag.tolist()) == ([0], [1], [0])
    assert trace_of(f"# ranks: 9\n{SMALL}").ranks == 9
    assert profile_of(TRACE_CSV, f"# ranks: 9\n{SMALL}").ranks == 9


def test_what_a_rank_sends_to_itself_is_dropped_and_counted() -> None:
    parsed = read("t_us,src,dst,bytes\n1,0,0,7\n2,0,1,8\n3,1,1,9\n")
    trace, profile = sure(parsed.traces[0]), parsed.profiles[0]
    assert (trace.at.tolist(), trace.bytes.tolist()) == ([0.0], [8])
    assert (profile.self_edges, profile.self_bytes) == (2, 16.0)
    assert parsed.warnings == ("2 edges from a rank to itself are dropped: 16 bytes that no cable carries",)
    alone = "t_us,src,dst,bytes\n1,0,0,7\n"
    profile = profile_of(TRACE_CSV, alone)
    assert (len(trace_of(alone)), profile.pairs, profile.ranks) == (0, 0, 1)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("9,0,64,8,1", "dst is not a rank below 4, the declared number"),
        ("9,7,0,8,1", "src is not a rank below 4, the declared number"), ("9,-1,0,8,1", "src is negative"),
        ("9,99999999,0,8,1", "src is not a rank below 16777216"),
        ("9,0.5,0,8,1", "src is not a whole number below 2^53"),
        ("2.25,0,1,8,1", "t_us goes backwards, from 2.5 to 2.25"), ("nan,0,1,8,1", "t_us is not finite"),
        ("inf,0,1,8,1", "t_us is not finite"), ("1e300,0,1,8,1", "t_us is more than 2^53"),
        ("soon,0,1,8,1", "t_us is not a number"), ("9,0,1,-8,1", "bytes is negative"),
        ("9,0,1,0.5,1", "bytes is not a whole number below 2^53"),
        ("9,0,1,8,4294967296", "tag is not a number of 32 bits"),
        ("9,0,1,8", "4 cells, but there are 5 columns"),
    ],
)  # fmt: skip
def test_trace_csv_a_bad_row_is_refused_with_its_line(row: str, reason: str) -> None:
    head = "# made\n# ranks: 4\n\nt_us,src,dst,bytes,tag\n1,0,1,8,1\n\n2.5,1,0,8,1\n"
    error = refusal(TRACE_CSV, f"{head}{row}\n8,0,1,8,1\n")
    assert (error.reason, error.line, error.text) == (reason, 8, row)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("src,dst,bytes\n0,1,2\n", "a column of times is missing: t_s, t_ms, t_us, t_ns"),
        ("t_us,t_s,src,dst,bytes\n0,0,0,1,2\n", "two columns of times: t_us and t_s"),
        ("t_us,src,bytes\n0,0,1\n", "column dst is missing"),
        ("t_us,src,dst,bytes\n", "no messages found after the column names"),
    ],
)
def test_a_file_without_messages_is_refused(content: str | bytes, reason: str) -> None:
    assert refusal(TRACE_CSV, content).reason == reason


def test_the_recording_of_nas_sp_is_read_whole() -> None:
    """Counts as its README gives them: 15,360 messages in 1.04 s of 64 ranks."""
    intake = plan([SP])
    trace, profile = sure(intake.traces[0]), intake.profiles[0]
    assert (len(trace), trace.ranks, profile.ranks) == (15_360, 64, 64)
    assert trace.span_seconds == pytest.approx(1.0414757)
    rows = np.loadtxt(io.BytesIO(lzma.decompress(SP.read_bytes())), delimiter=",", skiprows=1)
    assert trace.bytes.tolist() == rows[:, 3].tolist()
    assert trace.sender.tolist() == rows[:, 1].tolist()
    assert trace.at.tolist() == pytest.approx(rows[:, 0] * 1e-6, abs=1e-12)
    totals: Counter[tuple[float, float]] = Counter()
    for _, source, target, size, *_ in rows.tolist():
        totals[source, target] += size
    assert bytes_of(profile) == totals
    assert intake.warnings == ()


def test_traces_belong_to_their_own_profiles_and_other_columns_are_named() -> None:
    """In one call with a profile that has none."""
    intake = plan([DATA / "profiles/snap_16_dense_bytes.csv", SP])
    assert [profile.ranks for profile in intake.profiles] == [16, 64]
    assert [None if trace is None else trace.ranks for trace in intake.traces] == [None, 64]
    assert plan([DATA / "profiles/snap_16_dense_bytes.csv"]).traces == ()
    assert read("t_us,src,dst,bytes,comm\n0,0,1,8,world\n").warnings == ("ignored columns: comm",)


def test_a_trace_cannot_be_divided_but_read_as_a_list_of_edges() -> None:
    reason = "a trace cannot be divided: duplicates of messages cannot be identified"
    with pytest.raises(InputError, match=reason):
        plan([SP], Options(divide=2))
    (profile,) = plan([SP], Options(format="edge-csv")).profiles
    (counted,) = plan([SP]).profiles
    assert np.array_equal(profile.bytes, counted.bytes)


MESSAGES = st.tuples(st.integers(0, 10**6), st.integers(0, 5), st.integers(0, 5), st.integers(0, 2**53))


@given(st.lists(MESSAGES, min_size=1))
def test_what_is_written_is_read(rows: list[tuple[int, int, int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    trace = trace_of("t_ns,src,dst,bytes\n" + "".join(f"{t},{s},{d},{b}\n" for t, s, d, b in rows))
    kept = [row for row in rows if row[1] != row[2]]
    found = zip(trace.sender.tolist(), trace.receiver.tolist(), trace.bytes.tolist(), strict=True)
    assert list(found) == [row[1:] for row in kept]
    assert trace.at.tolist() == pytest.approx([(row[0] - kept[0][0]) * 1e-9 for row in kept], abs=1e-15)
