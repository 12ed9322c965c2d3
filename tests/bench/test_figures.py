"""Measured figures in README and docs come from the records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench.figures import pages, renewed, value, without_figures
from bench.support import paths

LIMITS = json.loads((Path(__file__).parent / "stated_numbers.json").read_text())
"""Numbers of limits, definitions and papers on each page: those with a unit that no record has."""
NUMBER = re.compile(r"(?<![\w./-])\d[\d,]*(?:\.\d+)?(?:\s?%|\s(?:s|ms|us|GB|MB|kB|times|seconds|minutes)\b)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)\s]*\)", re.DOTALL | re.MULTILINE)
RECORD = {
    "seconds": {"a": 1.5, "b": 3.0},
    "rows": [{"what": "x, y", "ours": "18 of 20 (90%)"}, {"what": "z", "ours": 2}],
    "table": [["x", 1, 10.0], ["x", 2, 30.0], ["y", 2, 50.0]],
}


def name(page: Path) -> str:
    return page.relative_to(paths.ROOT).as_posix()


@pytest.mark.parametrize("page", pages(), ids=name)
def test_figures_are_those_of_the_records(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text == renewed(text), "python -m bench.figures renews them"
    assert not re.search(r"<!-- (?:= |rows of|table of)[^>]*--[^>]", text), "-- ends a comment on GitHub"


def test_a_new_number_with_a_unit_is_a_figure_of_a_record_or_stated_as_none() -> None:
    """If this fails, mark the figure; a limit, a definition or a paper's number raises the page's count."""
    counts = {name(page): stated(page.read_text("utf-8")) for page in pages()}
    assert {page: count for page, count in counts.items() if count} == LIMITS


def stated(text: str) -> int:
    return len(NUMBER.findall(CODE.sub("", without_figures(text))))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("seconds/a", 1.5),
        ("seconds/a times 1000", 1500.0),
        ("max seconds/*", 3.0),
        ("median seconds/*", 2.25),
        ("count seconds/*", 2),
        ("seconds/b over seconds/a", 2.0),
        ("seconds/b less seconds/a times -2", -3.0),
        ("sum seconds/* over seconds/a", 3.0),
        ("rows/what=x*/ours/#1", 20.0),
        ("rows/-1/ours", 2),
        ("table/0=x/1=2/2", 30.0),
        ("min table/1=2/2", 30.0),
    ],
)
def test_values_of_expressions(expression: str, expected: float) -> None:
    assert value(RECORD, expression) == expected


def test_a_page_is_renewed_and_an_unknown_or_ambiguous_figure_is_an_error() -> None:
    def records(_: str) -> Any:
        return RECORD

    page = "In <!-- = r.json: seconds/a, .1f -->9<!-- / --> s, not <!-- = seconds/b, .0f -->9<!-- / -->, 9 s"
    shown = page.replace("-->9", "-->1.5", 1).replace("-->9", "-->3")
    assert renewed(page, records) == shown
    assert stated(shown) == 1
    for wrong in ("seconds/c", "seconds/*"):
        with pytest.raises(ValueError, match=re.escape(f"r.json: {wrong}")):
            renewed(f"<!-- = r.json: {wrong}, .0f -->1<!-- / -->", records)


def test_a_table_has_the_cases_asked_for_and_a_column_for_each_name() -> None:
    rows = [
        {"what": f"{size}, {order}: greedy", "ours": ours, "baseline": "random", "paper": "", "why": ""}
        for size, order, ours in (("12", "a", -0.25), ("12", "b", 0.5), ("3", "a", 0.1))
    ]
    record = {"rows": rows, "tables": [{"title": "T 1", "columns": ["n", "s", "x"], "rows": [[1, 2.5, 3]]}]}
    marks = ("rows of r.json: 12, {a or b}: *", "table of r.json: T: n; s*")
    page = "".join(f"<!-- {mark} -->\n<!-- / -->\n" for mark in marks)
    text = renewed(page, lambda _: record)
    assert "| case | paper | a | b | baseline |" in text
    assert "| 12: greedy |  | -25.0% | +50.0% | random |" in text
    assert "| n | s |\n|---|---|\n| 1 | 2.5 |\n<!-- / -->" in text
    assert renewed(text, lambda _: record) == text
