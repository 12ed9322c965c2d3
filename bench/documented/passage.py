"""Define passages of a page with measured values, and find measured numbers that no passage covers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from bench.support import paths

Record = Any
"""A parsed record: dicts, lists and numbers as the JSON file has them."""
MEASURED = ("ours", "measured")
"""Headings of columns in which every number must be a value of a passage."""
PUBLISHED = ("it says", "paper", "the paper")
"""Headings of columns that quote a paper."""
_NUMBER = re.compile(
    r"(?<![\w./-])-?\d[\d,]*(?:\.\d+)?(?:\s?%|\s(?:s|ms|us|GB|MB|times|seconds|minutes)\b)"
    r"|(?<![\w./-])-?\d+\.\d+(?![\w.])"
)
_REFERENCE = re.compile(
    r"(?:(?:19|20)\d\d\)?,|[Ss]ections?) (?:section )?\d+(?:\.\d+)+"
    r"|(?:hwloc|ibsim|infiniband-diags|MPICH|Neo4j|(?:Intel|Open) MPI|PyTorch|SimGrid|slurmctld|Slurm"
    r"|`python3` >=)"
    r"\s\d+(?:\.\d+)+"
)
"""Section of a paper, or version of a program."""
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)\s]*\)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Passage:
    """Measured values in the text of a page.

    Attributes
    ----------
    text : str
        Passage of the page, each measured value replaced by a format field: ``"{:.1f} s"``. Long enough to
        occur once. A blank stands for any blanks and line breaks.
    record : str
        Path of the record below ``bench/results``.
    values : callable
        Takes the record and returns the values, in the order of the fields.
    """

    text: str
    record: str
    values: Callable[[Record], Sequence[object]]

    def parts(self, other: Record = None) -> list[tuple[str, bool]]:
        """Return the passage in pieces, each with True if it is a value of the record, or of another one."""
        content = record(self.record) if other is None else other
        values, found = iter(self.values(content)), list[tuple[str, bool]]()
        for literal, field, spec, _ in Formatter().parse(self.text):
            found.append((literal, False))
            if field is not None:
                found.append((format(next(values), spec or ""), True))
        return found

    def rendered(self) -> str:
        """Return the passage with the values of the record."""
        return "".join(text for text, _ in self.parts())

    def pattern(self) -> re.Pattern[str]:
        """Return a pattern of the passage, with a group for each value."""
        return re.compile(
            "".join(f"({re.escape(text)})" if value else _flexible(text) for text, value in self.parts())
        )


@cache
def record(name: str) -> Record:
    """Return a parsed record below ``bench/results``."""
    return json.loads((paths.RESULTS / name).read_text("utf-8"))


def at(*names: str) -> Callable[[Record], list[Any]]:
    """Return a function that reads values of a record by the keys that lead to them.

    Parameters
    ----------
    names : str
        Keys with ``/`` between them; after `` / `` a number to divide by: ``"sizes/file_bytes / 1e6"``.
    """
    return lambda found: [_value(found, name) for name in names]


def row(found: Record, what: str, baseline: str | None = None) -> Any:
    """Return ``ours`` of the only row of a figure's record with these texts.

    Raises
    ------
    LookupError
        If not exactly one row has them.
    """
    rows = [one for one in found["rows"] if one["what"] == what and baseline in (None, one["baseline"])]
    if len(rows) != 1:
        raise LookupError(f"{len(rows)} rows are {what!r} over {baseline!r}")
    return rows[0]["ours"]


def table_rows(page: str, passages: Sequence[Passage], path: Path) -> list[str]:
    """Return the rows of a page's tables that have values of a record, with those of another record.

    Each table begins with its heading. Empty if the other record lacks a value, as one of a small run does.

    Parameters
    ----------
    page : str
        Markdown.
    passages : sequence of Passage
        Those of the record.
    path : Path
        File of the other record.
    """
    other = json.loads(path.read_text("utf-8"))
    changes: dict[tuple[int, int], str] = {}
    for passage in passages:
        found = passage.pattern().search(page)
        try:
            values = [text for text, is_value in passage.parts(other) if is_value]
        except (LookupError, StopIteration, TypeError, ValueError):
            return []
        for group, value in enumerate(values if found else (), start=1):
            changes[found.span(group)] = value  # type: ignore[union-attr]
    lines, heading, begin, printed = list[str](), list[str](), 0, False
    for line in page.splitlines(keepends=True):
        end = begin + len(line)
        inside = {span: value for span, value in changes.items() if begin <= span[0] and span[1] <= end}
        heading = [*heading, line.rstrip()][:2] if line.startswith("|") else []
        printed = printed and bool(heading)
        if inside and heading:
            text = line
            for (start, stop), value in sorted(inside.items(), reverse=True):
                text = text[: start - begin] + value + text[stop - begin :]
            lines += [] if printed else [*[""][: len(lines)], *heading]
            lines.append(text.rstrip())
            printed = True
        begin = end
    return lines


def unchecked(page: str, passages: Sequence[Passage], given: Sequence[str] = ()) -> list[str]:
    """Return the measured numbers of a page that no passage covers.

    These are all numbers in columns headed "ours" or "measured", and elsewhere, but for code and columns that
    quote a paper, decimals, percentages and numbers with a unit.

    Parameters
    ----------
    page : str
        Markdown.
    given : sequence of str
        Passages whose numbers are not measured: definitions, versions, values of a paper.

    Raises
    ------
    LookupError
        If a passage in `given` is not in the page.
    """
    text = page
    for pattern in (_REFERENCE, _CODE):
        text = pattern.sub(lambda found: _masked(found[0]), text)
    for one in passages:
        found = one.pattern().search(page)
        for start, end in [found.span(group + 1) for group in range(len(found.groups()))] if found else []:
            text = text[:start] + _masked(text[start:end]) + text[end:]
    for passage in given:
        if not re.search(_flexible(passage), page):
            raise LookupError(f"the page does not have {passage!r}")
        text = re.sub(_flexible(passage), lambda found: _masked(found[0]), text)
    return list(_numbers(text))


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers that are left, each with its line."""
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        head = head if cells and head else cells
        for name, cell in zip(head, cells, strict=False) if cells else [("", line)]:
            pattern = r"\d[\d.,]*" if name in MEASURED else _NUMBER
            yield from (f"{one}: {line}" for one in re.findall(pattern, cell) if name not in PUBLISHED)


def _value(found: Record, name: str) -> Any:
    keys, _, divisor = name.partition(" / ")
    for key in keys.split("/"):
        found = found[int(key)] if isinstance(found, list) else found[key]
    return found / float(divisor) if divisor else found


def _flexible(text: str) -> str:
    """Return a pattern of a text whose blanks may be any blanks."""
    return re.sub(r"(?:\\\s|\s)+", r"\\s+", re.escape(text))


def _masked(text: str) -> str:
    return re.sub(r"\d", "#", text)
