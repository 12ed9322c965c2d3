"""Rows of a CSV file whose columns are options of ``almanac map``: one placement each."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import click

from almanac.options.data import DataOptions, placement_options
from almanac.options.files import read_lines
from almanac.options.placement import search_options
from registry.csv_text import without_guard

if TYPE_CHECKING:
    from mapping.questions.place import PlacementRequest

NOT_IN_FILES = ("here", "fabric")
"""Options of the allocation of a process, and of files instead of the database."""
YES = "yes"
"""Value of a column for an option that takes none."""
SHORT = 12
"""Digits of a row's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a file.

    Attributes
    ----------
    path : str
    line : int
        From 1.
    cells : mapping of str to str
        Value by column, without empty ones.
    """

    path: str
    line: int
    cells: Mapping[str, str]

    @property
    def id(self) -> str:
        """Digest of the cells: the same for rows that ask for the same."""
        text = json.dumps(dict(sorted(self.cells.items())))
        return sha256(text.encode()).hexdigest()[:SHORT]

    def request(self, context: click.Context) -> PlacementRequest:
        """Return the request of the row.

        Raises
        ------
        InputError
            A value that its option does not accept, or options that exclude each other.
        """
        from registry.errors import AlmanacError, InputError, InvalidValue

        try:
            with _row.make_context("row", self._words(), parent=context) as own:
                request: PlacementRequest = _row.invoke(own)
        except click.ClickException as error:
            raise InputError(error.format_message(), path=self.path, line=self.line) from error
        except AlmanacError as error:
            reason = error.named() if isinstance(error, InvalidValue) else str(error)
            raise InputError(reason, path=self.path, line=self.line) from error
        return request

    def _words(self) -> list[str]:
        """Return the row as words of the command line."""
        words: list[str] = []
        options = columns()
        for name, cell in self.cells.items():
            option = options[name]
            if isinstance(option, click.Argument):
                continue
            if isinstance(option, click.Option) and option.is_flag:
                if cell != YES:
                    raise click.UsageError(f"{name}: write {YES}, or nothing")
                words.append(f"--{name}")
            else:
                words += [f"--{name}={part}" for part in (cell.split() if option.multiple else [cell])]
        return [*words, "--", self.cells.get("profile", "")] if "profile" in self.cells else words


@click.command("row", add_help_option=False)
@placement_options
@search_options
def _row(request: PlacementRequest, strategies: tuple[str, ...], **source: Any) -> PlacementRequest:
    """Return the request of options as `map` has them."""
    data = DataOptions(**source)
    data.check()
    return data.complete(request, strategies, ())


def columns() -> dict[str, click.Parameter]:
    """Return the options that a file may have as columns, by name."""
    named = {max(one.opts, key=len).lstrip("-"): one for one in _row.params}
    return {name: one for name, one in named.items() if name not in NOT_IN_FILES}


def read_rows(path: str) -> tuple[Row, ...]:
    """Read the rows of a file; empty lines and lines that begin with ``#`` are left out.

    Raises
    ------
    InputError
        No header, an unknown or repeated column, or a row with more cells than columns.
    """
    from registry.errors import InputError, UnknownName

    known, parsed = columns(), []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip() and not line.startswith("#"):
            parsed.append((number, [without_guard(cell.strip()) for cell in next(csv.reader([line]))]))
    if not parsed:
        raise InputError("is empty: the first line names columns, such as profile,job,seconds", path=path)
    (first, header), *rest = parsed
    for name in header:
        if name not in known:
            raise UnknownName("column", name, known, path=path, line=first)
    if len(set(header)) < len(header):
        raise InputError("a column is repeated", path=path, line=first)
    found = []
    for number, cells in rest:
        if len(cells) > len(header):
            raise InputError(f"has {len(cells)} cells for {len(header)} columns", path=path, line=number)
        given = {name: cell for name, cell in zip(header, cells, strict=False) if cell}
        found.append(Row(path=path, line=number, cells=given))
    return tuple(found)
