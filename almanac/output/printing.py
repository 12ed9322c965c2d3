"""What commands print: tables and JSON on standard output, notes and progress bars on standard error."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from registry import units

if TYPE_CHECKING:
    from registry.progress import Progress

REDRAW_SECONDS = 0.1


def print_json(value: Any) -> None:
    """One JSON document; datetimes in ISO form, UTC."""
    click.echo(json.dumps(value, default=_plain, indent=2))


def finite(value: float | None) -> float | None:
    """A number that JSON knows; None for others."""
    return value if value is not None and math.isfinite(value) else None


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table; numbers to the right. Text is never taken for markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width).print(table)


def note(text: str) -> None:
    """One line on standard error."""
    click.echo(text, err=True)


def write_text(path: str | None, text: str) -> None:
    """Write to a file, whole or not at all, or to standard output where no path is given.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    if path is None:
        click.echo(text, nl=False)
        return
    write_bytes(path, text.encode("utf-8"))


def csv_text(columns: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """CSV with a header and a line a row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def write_bytes(path: str, content: bytes) -> None:
    """Write a file, whole or not at all.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    from registry.errors import InputError

    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror}", path=path) from error


@contextlib.contextmanager
def progress_bars() -> Iterator[Progress]:
    """Bars on standard error while the block runs; silent where it is no terminal."""
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
            tasks[phase] = bars.add_task(phase, total=total, best="")
        bars.update(
            tasks[phase], completed=done, total=total, best="" if best is None else f"best {best:.6g}"
        )

    with bars:
        yield show


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return units.moment_text(cell)
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is no JSON")
