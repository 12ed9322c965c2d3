"""Define a measured figure in a page, and find it there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bench.support import paths

Record = Any
"""A parsed record: dicts, lists and numbers as the JSON file has them."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Measured values in the text of a page.

    Attributes
    ----------
    text : str
        Passage of the page, each measured value replaced by a format field: ``"{:.1f} s"``. Long enough to
        occur once. Line breaks count as blanks.
    record : str
        Path of the record below ``bench/results``.
    values : callable
        Takes the record and returns the values, in the order of the fields.
    """

    text: str
    record: str
    values: Callable[[Record], Sequence[object]]

    def rendered(self) -> str:
        """Return the passage with the values of the record."""
        return self.text.format(*self.values(record(self.record)))


@cache
def record(name: str) -> Record:
    """Return a parsed record below ``bench/results``."""
    return json.loads((paths.RESULTS / name).read_text("utf-8"))


def row(found: Record, what: str, baseline: str | None = None) -> float:
    """Return ``ours`` of the only row of a figure's record with these texts.

    Raises
    ------
    LookupError
        If not exactly one row has them.
    """
    rows = [one for one in found["rows"] if one["what"] == what and baseline in (None, one["baseline"])]
    if len(rows) != 1:
        raise LookupError(f"{len(rows)} rows are {what!r} over {baseline!r}")
    return rows[0]["ours"]  # type: ignore[no-any-return]


def plain(page: str) -> str:
    """Return the text of a page with each run of blanks and line breaks as one blank."""
    return re.sub(r"\s+", " ", page)
