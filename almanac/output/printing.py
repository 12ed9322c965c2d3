"""Printing: tables and JSON on standard output, notes and progress bars on standard error.

Progress bars while kernels are compiled at their first call, which happens once per machine.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import operator
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import click

from registry import units
from registry.progress import Progress, silent

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or reverse the direction of text."""
_LABELS = {
    "congestion_seconds": "worst link",
    "network_congestion_seconds": "worst network link",
    "mean_congestion_seconds": "mean of loaded links",
    "hop_bytes": "hop-bytes",
    "max_dilation": "maximum dilation",
    "default_routing_because": "reason for it",
    "routing_id": "forwarding tables",
    "last_good": "last good",
    "centre": "median before",
    "seen": "result",
    "pid": "process id",
    "uri": "address",
    "home": "data folder",
}
"""Labels of JSON keys in tables, if not the key with blanks for underscores; see `label`."""
_SHORT = 24
"""Longest cell that is not wrapped between words: a time, a number with its unit."""
_LONG = 40
"""Longest word that keeps a column from being narrower: names of devices; paths of files may be broken."""
_BORDER = 3
"""Characters that a table has for each column beside its text; one more closes the line."""
REDRAW_SECONDS = 0.1
"""Shortest time between two drawings of a progress bar."""
LINE_SECONDS = 10.0
"""Shortest time between two lines of progress where there is no terminal."""


def print_json(value: Any) -> None:
    """Print a value as one JSON document."""
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """Return a value as JSON; times as ISO 8601 in UTC."""
    return json.dumps(value, default=_time_text, indent=2)


def finite(value: float | None) -> float | None:
    """Return a number that JSON can represent, or None for infinity and NaN."""
    return value if value is not None and math.isfinite(value) else None


def attributes(one: object, *names: str) -> dict[str, Any]:
    """Return some attributes of an object by name."""
    return {name: getattr(one, name) for name in names}


def renamed(one: object, **names: str) -> dict[str, Any]:
    """Return the fields of a dataclass by name, some under another name; see `dataclasses.asdict`."""
    return {names.get(name, name): value for name, value in asdict(cast(Any, one)).items()}


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, least: Sequence[str] = ()
) -> None:
    """Print a table with numbers aligned to the right; text is never interpreted as markup.

    A pipe or file gets all columns in full width. On a terminal, cells are wrapped between words, and words
    are not broken; if that is not enough, columns are left out, which a note on standard error names.

    Args:
        least: Headings of the columns to leave out first, then others from the last; two columns always stay.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    every = [_Column.of(heading, [row[index] for row in rows]) for index, heading in enumerate(columns)]
    terminal = terminal_width()
    shown = every if terminal is None else _columns_that_fit(every, least, terminal)
    widths = [one.line for one in shown] if terminal is None else _widths(shown, terminal)
    table = Table(box=box.HEAVY_HEAD)
    for one, width in zip(shown, widths, strict=True):
        justify: Any = "right" if one.numeric else "left"
        table.add_column(Text(one.heading), justify=justify, overflow="fold", width=max(width, 1))
    for cells in zip(*(one.cells for one in shown), strict=True):
        table.add_row(*map(Text, cells))
    console = Console(width=terminal or max(sum(widths) + _BORDER * len(shown) + 1, len(title), 1))
    if title:
        console.print(Text(visible(title), style="table.title"))
    console.print(table)
    if missing := ", ".join(one.heading for one in every if one not in shown):
        count = len(every) - len(shown)
        note(f"{count} of {len(every)} columns need a wider terminal ({missing}); --json has all")


def label(key: str) -> str:
    """Return a JSON key as the words of a heading."""
    for suffix, unit in (("_seconds", " (s)"), ("_bytes", " (bytes)")):
        if key.endswith(suffix) and key not in _LABELS:
            return key.removesuffix(suffix).replace("_", " ") + unit
    return _LABELS.get(key, key.replace("_", " "))


def print_fields(title: str, fields: Mapping[str, Any]) -> None:
    """Print a table with a row for each key of a JSON document, in words."""
    print_table("", ["", title], [[label(key), value] for key, value in fields.items()])


def terminal_width() -> int | None:
    """Return the columns of the terminal, or None if standard output is a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


class _Column(NamedTuple):
    """A column of a table: its texts, and the lengths of its longest line and longest unbroken part."""

    heading: str
    cells: list[str]
    numeric: bool
    line: int
    word: int

    @classmethod
    def of(cls, heading: str, values: list[Any]) -> Self:
        """Return the column of these values."""
        from rich.cells import cell_len

        numeric = bool(values) and all(isinstance(value, int | float) for value in values)
        texts = [visible(heading), *map(_cell_text, values)]
        line = max(cell_len(line) for text in texts for line in text.split("\n"))
        whole = [text for text in texts[1:] if len(text) <= _SHORT]
        words = [word for text in texts for word in text.split()]
        word = min(max(map(cell_len, words + whole), default=0), _LONG)
        return cls(texts[0], texts[1:], numeric, line, word)


def _columns_that_fit(columns: list[_Column], least: Sequence[str], width: int) -> list[_Column]:
    """Return the columns whose longest words fit side by side; at least two."""
    shown = list(columns)
    first = [one for heading in least for one in columns if one.heading == heading]
    for one in [*first, *(one for one in reversed(columns[1:]) if one.heading not in least)]:
        if len(shown) > 2 and sum(each.word + _BORDER for each in shown) + 1 > width:
            shown.remove(one)
    return shown


def _widths(columns: list[_Column], width: int) -> list[int]:
    """Return the widths of columns in a terminal: the widest ones are wrapped, words are kept if possible."""
    widths = [one.line for one in columns]
    room = max(width - _BORDER * len(columns) - 1, len(columns))
    for least in ([one.word for one in columns], [1] * len(columns)):
        while sum(widths) > room and any(map(operator.gt, widths, least)):
            widest = max(range(len(widths)), key=lambda index: (widths[index] > least[index], widths[index]))
            widths[widest] -= 1
    return widths


def say(text: str) -> None:
    """Print one line on standard output."""
    click.echo(visible(text))


def note(text: str) -> None:
    """Print one line on standard error."""
    click.echo(visible(text), err=True)


def visible(text: str) -> str:
    r"""Return text with control characters written out (``\x1b``): a terminal would obey them."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def write_text(path: str | None, text: str) -> None:
    """Write text to a file, completely or not at all, or to standard output if no path is given.

    Raises:
        InputError: The file cannot be written.
    """
    if path is None:
        click.echo(visible(text) if sys.stdout.isatty() else text, nl=False)
        return
    write_bytes(path, text.encode("utf-8"))


def whole(value: float) -> int | float:
    """Return an integer if the value is one: numbers of bytes usually are."""
    return int(value) if value.is_integer() else value


def write_bytes(path: str, content: bytes) -> None:
    """Write a file completely or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    from registry.errors import InputError
    from registry.installation import no_space

    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        full = no_space(target.parent) if error.errno == errno.ENOSPC else ""
        raise InputError(f"cannot be written: {full or error.strerror}", path=path) from error


@contextlib.contextmanager
def progress_bars(*, piped: bool = False) -> Iterator[Progress]:
    """Show progress bars on standard error during the block, or nothing if it is not a terminal.

    Args:
        piped: True to print a line every `LINE_SECONDS` if it is not a terminal.
    """
    from registry.progress import silent

    if not sys.stderr.isatty():
        yield _progress_lines() if piped else silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[best]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[str, Any] = {}
    drawn: dict[str, float] = {}

    def show(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        now = time.monotonic()
        finished = total is not None and done >= total
        if now - drawn.get(phase, 0.0) < REDRAW_SECONDS and not finished:
            return
        drawn[phase] = now
        if phase not in tasks:
            tasks[phase] = bars.add_task(visible(phase), total=total, best="")
        bars.update(
            tasks[phase], completed=done, total=total, best="" if best is None else f"best {best:.6g}"
        )

    with bars:
        yield show


def _progress_lines() -> Progress:
    """Return a function that prints a line of progress every `LINE_SECONDS`, the first after as many."""
    begin = last = time.monotonic()

    def show(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < LINE_SECONDS:
            return
        last = now
        part = "" if not total else f" {done / total:.0%}, {done:,.0f} of {total:,.0f},"
        with contextlib.suppress(OSError):
            note(f"{phase}:{part} after {now - begin:.0f} s")

    return show


def _cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return units.moment_text(cell)
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return visible(str(cell))


def time_text(moment: datetime) -> str:
    """Return a time in UTC as JSON and options of commands have it: exact, in ISO 8601."""
    return moment.isoformat().replace("+00:00", "Z")


def _time_text(value: Any) -> Any:
    if isinstance(value, datetime):
        return time_text(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


@contextmanager
def kernel_progress_bars(*, piped: bool = False) -> Iterator[Progress]:
    """Show progress bars as `progress_bars` does, and one while kernels are compiled."""
    with progress_bars(piped=piped) as progress:
        if progress is silent:
            yield progress
            return
        from mapping.kernels.compiling import Compiling

        with Compiling(progress):
            yield progress
