"""Printing: tables and JSON on standard output, notes and progress bars on standard error."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from registry import units

if TYPE_CHECKING:
    from registry.progress import Progress

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or reverse the direction of text."""
REDRAW_SECONDS = 0.1
"""Shortest time between two drawings of a progress bar."""


def print_json(value: Any) -> None:
    """Print a value as one JSON document; times as ISO 8601 in UTC."""
    click.echo(json.dumps(value, default=_time_text, indent=2))


def finite(value: float | None) -> float | None:
    """Return a number that JSON can represent, or None for infinity and NaN."""
    return value if value is not None and math.isfinite(value) else None


def attributes(one: object, *names: str) -> dict[str, Any]:
    """Return some attributes of an object by name."""
    return {name: getattr(one, name) for name in names}


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table with numbers aligned to the right; text is never interpreted as markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(title)) if title else None, title_justify="left")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(Text(visible(column)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell_text(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width).print(table)


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

    Raises
    ------
    InputError
        The file cannot be written.
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

    Raises
    ------
    InputError
        The file cannot be written.
    """
    from registry.errors import InputError, no_space

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
def progress_bars() -> Iterator[Progress]:
    """Show progress bars on standard error during the block, or nothing if it is not a terminal."""
    from registry.progress import silent

    if not sys.stderr.isatty():
        yield silent
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


def _cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return units.moment_text(cell)
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return visible(str(cell))


def _time_text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
