"""Traces as CSV: every message with its time, what is refused in which line, and the profile beside it."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles import trace_csv
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.pipeline import plan
from registry.errors import InputError
from registry.model import Trace
from tests.support.inputs import DATA, bytes_of, parse, profile_of, refusal, traffic_of

SP = DATA / "profiles/trace_npb_sp_A_it5_64.csv.xz"
SMALL = "t_us,src,dst,bytes,tag\n5.5,0,1,8,1\n7.5,2,0,16,2\n7.5,0,1,4,-3\n"


def read(content: str | bytes, options: Options | None = None, path: str = "run.csv.xz") -> Parsed:
    return parse(trace_csv, content, options, path=path)


def trace_of(content: str) -> Trace:
    found = read(content).traces[0]
    assert found is not None
    return found


def test_every_message_is_read_with_seconds_since_the_first() -> None:
    trace = trace_of(SMALL)
    assert trace.ranks == 3
    assert trace.at.tolist() == pytest.approx([0.0, 2e-6, 2e-6])
    assert (trace.sender.tolist(), trace.receiver.tolist()) == ([0, 2, 0], [1, 0, 1])
    assert (trace.bytes.tolist(), trace.tag.tolist()) == ([8, 16, 4], [1, 2, -3])


def test_a_trace_gives_its_profile_under_the_files_name_or_the_given_one() -> None:
    profile = profile_of(trace_csv, SMALL, path="runs/cg_64.csv.xz")
    assert (profile.name, profile.application, profile.source) == ("cg_64", "cg_64", "trace-csv")
    assert traffic_of(profile) == {(0, 1): (12.0, 2), (2, 0): (16.0, 1)}
    assert profile_of(trace_csv, SMALL, Options(name="mine")).name == "mine"


@pytest.mark.parametrize(
    ("column", "seconds"), [("t_s", 1.0), ("t_ms", 1e-3), ("t_us", 1e-6), ("T_NS", 1e-9)]
)
def test_the_name_of_the_column_gives_the_unit(column: str, seconds: float) -> None:
    assert trace_of(f"{column},src,dst,bytes\n-2,0,1,8\n1,1,0,8\n").at.tolist() == pytest.approx(
        [0, 3 * seconds]
    )


def test_columns_may_come_in_any_order_a_tag_may_be_missing_and_a_comment_gives_the_ranks() -> None:
    trace = trace_of("bytes,dst,src,t_us\n8,1,0,3\n")
    assert (trace.sender.tolist(), trace.receiver.tolist(), trace.tag.tolist()) == ([0], [1], [0])
    assert trace_of(f"# ranks: 9\n{SMALL}").ranks == 9
    assert profile_of(trace_csv, f"# ranks: 9\n{SMALL}").ranks == 9


def test_what_a_rank_sends_to_itself_is_dropped_and_counted() -> None:
    parsed = read("t_us,src,dst,bytes\n1,0,0,7\n2,0,1,8\n3,1,1,9\n")
    (trace,), (profile,) = parsed.traces, parsed.profiles
    assert trace is not None
    assert (trace.at.tolist(), trace.bytes.tolist()) == ([0.0], [8])
    assert (profile.self_edges, profile.self_bytes) == (2, 16.0)
    assert parsed.warnings == ("2 edges from a rank to itself are dropped: 16 bytes that no cable carries",)
    alone = "t_us,src,dst,bytes\n1,0,0,7\n"
    profile = profile_of(trace_csv, alone)
    assert (len(trace_of(alone)), profile.pairs, profile.ranks) == (0, 0, 1)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("9,0,64,8,1", "dst is not a rank below 4, the declared number"),
        ("9,7,0,8,1", "src is not a rank below 4, the declared number"),
        ("9,-1,0,8,1", "src is negative"),
        ("9,99999999,0,8,1", "src is not a rank below 16777216"),
        ("9,0.5,0,8,1", "src is not a whole number below 2^53"),
        ("2.25,0,1,8,1", "t_us goes backwards, from 2.5 to 2.25"),
        ("nan,0,1,8,1", "t_us is not finite"),
        ("inf,0,1,8,1", "t_us is not finite"),
        ("1e300,0,1,8,1", "t_us is more than 2^53"),
        ("soon,0,1,8,1", "t_us is not a number"),
        ("9,0,1,-8,1", "bytes is negative"),
        ("9,0,1,0.5,1", "bytes is not a whole number below 2^53"),
        ("9,0,1,8,4294967296", "tag is not a number of 32 bits"),
        ("9,0,1,8", "4 cells, but there are 5 columns"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(row: str, reason: str) -> None:
    head = "# made\n# ranks: 4\n\nt_us,src,dst,bytes,tag\n1,0,1,8,1\n\n2.5,1,0,8,1\n"
    error = refusal(trace_csv, f"{head}{row}\n8,0,1,8,1\n")
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
    assert refusal(trace_csv, content).reason == reason


def test_the_recording_of_nas_sp_is_read_whole() -> None:
    """Counts as its README gives them: 15,360 messages in 1.04 s of 64 ranks."""
    intake = plan([SP])
    (trace,), (profile,) = intake.traces, intake.profiles
    assert trace is not None
    assert (len(trace), trace.ranks, profile.ranks) == (15_360, 64, 64)
    assert trace.span_seconds == pytest.approx(1.0414757)
    rows = [line.split(",") for line in lzma.decompress(SP.read_bytes()).decode().splitlines()[1:]]
    assert trace.bytes.tolist() == [int(row[3]) for row in rows]
    assert trace.sender.tolist() == [int(row[1]) for row in rows]
    assert trace.at.tolist() == pytest.approx([float(row[0]) * 1e-6 for row in rows], abs=1e-12)
    totals: dict[tuple[int, int], int] = {}
    for row in rows:
        pair = int(row[1]), int(row[2])
        totals[pair] = totals.get(pair, 0) + int(row[3])
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


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 5), st.integers(0, 5), st.integers(0, 2**53)),
        min_size=1,
    )
)
def test_what_is_written_is_read(rows: list[tuple[int, int, int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    trace = trace_of("t_ns,src,dst,bytes\n" + "".join(f"{t},{s},{d},{b}\n" for t, s, d, b in rows))
    kept = [row for row in rows if row[1] != row[2]]
    found = zip(trace.sender.tolist(), trace.receiver.tolist(), trace.bytes.tolist(), strict=True)
    assert list(found) == [row[1:] for row in kept]
    assert trace.at.tolist() == pytest.approx([(row[0] - kept[0][0]) * 1e-9 for row in kept], abs=1e-15)
