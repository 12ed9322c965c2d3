"""Texts of the registry: numbers with units, times, closest names, CSV, and errors, also pickled ones."""

from __future__ import annotations

import csv
import io
import math
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.formats.fabrics.graphs import LINKS_CSV
from ingest.formats.placements import PLACEMENT_CSV
from ingest.generate.direct import torus
from mapping.launchers import write as write_placement
from registry import errors, units
from registry.csv_text import csv_text, guarded, without_guard
from registry.errors import (
    ClusterError,
    DatabaseUnavailable,
    DisconnectedAllocation,
    InputError,
    InvalidValue,
    UnknownName,
    close_names,
)
from registry.exports.catalog import write
from registry.model import Allocation, Placement
from registry.units import moment_of
from tests.support.inputs import parse


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        *((0.00033664, units.SECONDS, "337 µs"), (1234.0, units.SECONDS, "1,230 s")),
        *((4.84215e9, units.BYTES, "4.84 GB"), (999.6, units.BYTES, "1 kB"), (0.0, units.RATE, "0 B/s")),
        *((-0.0125, units.SECONDS, "-12.5 ms"), (1e-12, units.SECONDS, "0.001 ns")),
        *((61.0, units.SECONDS, "61 s"), (0.999999999, units.SECONDS, "1 s")),
        *((0.9994, units.SECONDS, "999 ms"), (2.5, units.HOPS, "2.5 hops")),
    ],
)
def test_a_value_has_three_figures_and_no_exponent(value: float, base: str, expected: str) -> None:
    assert units.short(value, base) == expected


def test_numbers_without_a_unit() -> None:
    assert units.figures(12_345.0) == "12,300"
    assert units.figures(2.0) == "2"
    assert units.figures(math.inf) == "inf"
    assert units.text(0.00033664, units.SECONDS) == "336.6 µs"
    assert units.text(0.999999999, units.SECONDS) == "1 s"
    assert units.counted(1, "leaf", "leaves") == "1 leaf"
    assert units.counted(2048, "leaf", "leaves") == "2,048 leaves"


FORMULA = '=HYPERLINK("http://a.example"&A1)'


def test_numbers_stay_numbers_commas_are_quoted_and_a_formula_is_written_as_text() -> None:
    assert csv_text(["a", "b"], [(-1, "x,y"), (-2.5, None)]) == 'a,b\n-1,"x,y"\n-2.5,\n'
    names = [FORMULA, "+1", "-1", "@SUM(1)", "\t=1", "\r=1"]
    rows = list(csv.reader(io.StringIO(csv_text(["name"], [[name] for name in names]), newline="")))
    assert rows == [["name"], *(["'" + name] for name in names)]


@given(st.text("='+-@\tab", max_size=6))
@example("'=a")
def test_the_apostrophe_is_taken_off_again(text: str) -> None:
    assert not str(guarded(text)).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert without_guard(guarded(text)) == text


def test_fabrics_and_placements_with_such_names_read_back() -> None:
    names = (FORMULA, "-h1", "'=h2", "h3")
    ring = replace(torus([4]), names=names)
    fabric = parse(LINKS_CSV, write("csv", ring)).fabric
    assert fabric is not None
    assert sorted(fabric.names) == sorted(names)
    allocation = Allocation.of(ring, names)
    placement = Placement(host_of_rank=np.array([3, 2, 0, 1]), allocation=allocation, strategy="given")
    text = write_placement("csv", placement, ring)
    assert [row[1] for row in csv.reader(text.splitlines())] == ["host", "h3", "''=h2", "'" + FORMULA, "'-h1"]
    placed = parse(PLACEMENT_CSV, text).placements[0]
    assert placed.hosts == ("h3", "'=h2", FORMULA, "-h1")


@pytest.mark.parametrize(
    "error",
    [
        UnknownName("host", "nod1", ["node1"], path="file", line=3),
        DisconnectedAllocation("a", "b"),
        InvalidValue("Profile.bytes", "is negative"),
        InputError("is empty", path="file", line=1, text="words"),
        DatabaseUnavailable("bolt://x", "refused", "start it"),
        ClusterError("tcp://x:1", "lost", "tcp://y:2"),
    ],
)
def test_a_pickled_error_is_the_same(error: errors.AlmanacError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_headers_are_guarded_as_cells_are() -> None:
    assert csv_text(["=cmd", "plain"], [["+1", "x"]]) == "'=cmd,plain\n'+1,x\n"


NOW = datetime(2026, 11, 28, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        *(("7d", timedelta(days=7)), ("12h", timedelta(hours=12)), ("30m", timedelta(minutes=30))),
        *(("30 min ago", timedelta(minutes=30)), ("90s", timedelta(seconds=90))),
        *((" 2W ", timedelta(weeks=2)), ("0d", timedelta()), ("now", timedelta())),
        *(("Yesterday", timedelta(days=1)), ("today", timedelta(hours=7, minutes=30))),
        *(("-1h", timedelta(hours=1)), ("90 minutes", timedelta(hours=1.5)), ("1 day ago", timedelta(1))),
    ],
)
def test_a_span_is_before_now(text: str, before: timedelta) -> None:
    assert moment_of(text, NOW) == NOW - before
    assert moment_of(text, NOW.astimezone(timezone(timedelta(hours=3)))).tzinfo is UTC


@pytest.mark.parametrize(
    "text", ["2026-11-21T09:00:00+01:00", "2026-11-21T08:00:00Z", "2026-11-21T08:00", "20261121T08"]
)
def test_a_time_is_in_utc_unless_it_has_a_zone(text: str) -> None:
    assert moment_of(text, NOW) == datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("", "d", "7", "7x", "--7d", "7.5d", "soon", "\N{ARABIC-INDIC DIGIT ONE}d", "999999999w", "7d 3h"),
        "0001-01-01T00:00+23:00",
    ],
)
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid isoformat|before the year 1"):
        moment_of(text, NOW)


NODES = [f"node{number:04d}" for number in range(1, 65)]


@pytest.mark.parametrize(
    ("name", "known", "close"),
    [
        ("node001", NODES, ("node0001", "node0002", "node0003")),
        ("node008", NODES, ("node0008", "node0007", "node0009")),
        ("NODE0065", NODES, ("node0064", "node0063", "node0062")),
        ("node1", [*NODES, "node1.cluster.example"], ("node1.cluster.example", "node0001", "node0002")),
        ("node1.x", ["node1.y", "node1.z", "node1"], ("node1.y", "node1.z", "node1")),
        ("node002527", ["node2528.x", "node2527.x"], ("node2527.x", "node2528.x")),
        ("10.0.0.1", ["10.1.2.3", "10.0.0.2"], ("10.0.0.2", "10.1.2.3")),
        ("r1n10", ["r1n9", "r10n1", "r2n10", "r01n010"], ("r01n010", "r1n9", "r2n10")),
        ("nod0003", NODES[:4], ("node0003", "node0004", "node0002")),
        ("leaf", ["leafs", "spine"], ("leafs",)),
        ("7", ["11", "x"], ("11",)),
        ("711", ["71", "72", "8", "9", "810"], ("71", "810", "72")),
        ("node1", [], ()),
    ],
)
def test_names_with_the_same_numbers_come_first_whatever_the_zeros(
    name: str, known: list[str], close: tuple[str, ...]
) -> None:
    assert close_names(name, known) == close
