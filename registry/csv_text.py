"""CSV text that no spreadsheet reads as formulas.

Names of devices, jobs and users come from files. Spreadsheets evaluate a cell that begins with ``=``, ``+``,
``-``, ``@``, a tab or a carriage return: such a text gets a leading apostrophe. `without_guard` takes it off.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def guarded(value: Any) -> Any:
    """Return a cell's value; a text that would be read as a formula gets a leading apostrophe."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def without_guard(text: str) -> str:
    """Return the text of which `guarded` made a cell."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def csv_text(columns: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV text: a header and one line per row."""
    lines = _Lines()
    # The writer quotes only its own line ends; a carriage return alone ends a row for most readers too.
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow([guarded(column) for column in columns])
    writer.writerows([guarded(value) for value in row] for row in rows)
    return "".join(f"{line[:-2]}\n" for line in lines)


class _Lines(list[str]):
    """The rows that a writer has written."""

    write = list.append
