"""Functions for all parsers of profiles, and CSV with column names, for edges and traces.

numpy reads about a million rows per second but does not report the line of an error; if it or a check rejects
the content, the rows are read again one by one to find the first bad line.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.options import Options
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Bools, Floats, Profile

_COMPRESSION = (".gz", ".xz")
_SUFFIXES = (
    *(".csv", ".tar", ".tgz", ".txz", ".txt", ".prof", ".npz", ".npy", ".mtx", ".graph", ".otf2", ".json"),
    *(".toml", ".xml"),
)
MAX_RANKS = 1 << 24
"""Largest number of ranks of a profile, to limit the memory that a wrong rank number can use."""

MAX_PAIR_BYTES = float(1 << 63)
"""Most bytes from one rank to another: larger numbers are damaged, and their sums need not be finite."""

SHOWN = 20
"""Largest number of ranks listed in a message."""


def stem(path: str) -> str:
    """Return the name of a path: ``npb_cg_64`` for ``runs/npb_cg_64.tar.gz``."""
    name = PurePath(path.rpartition("!")[2].rstrip("/")).name
    for suffix in _COMPRESSION:
        name = name.removesuffix(suffix)
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name if name not in ("", "-") else "unnamed"


def place(files: Sequence[SourceFile]) -> str:
    """Return the archive or folder of several files, or the path of a single file."""
    archive = files[0].path.rpartition("!")[0]
    if archive:
        return archive
    return files[0].path if len(files) == 1 else str(PurePath(files[0].path).parent)


def profile_of(
    edges: Iterable[Any],
    ranks: int,
    path: str,
    source: str,
    options: Options,
    *,
    missing: tuple[int, ...] = (),
) -> Profile:
    """Return the profile of a recording.

    Args:
        edges ((int[e], int[e], float[e], int[e] or None)): Sending rank, receiving rank and bytes of each
            edge, and its messages if they are known.
        ranks: Number of ranks.
        path: Path of the recording; its name is that of the application, and that of the profile by default.
        source: Format of the recording.
        missing: Ranks that were not recorded.

    Raises:
        InputError: More bytes between two ranks than `MAX_PAIR_BYTES`.
    """
    name = stem(path)
    sender, receiver, size, messages = edges
    profile = Profile.from_edges(
        sender,
        receiver,
        size,
        ranks=ranks,
        messages=messages,
        name=options.name or name,
        application=name,
        missing_ranks=missing,
    )
    if profile.pairs and float(profile.bytes.max()) > MAX_PAIR_BYTES:
        pair = int(np.argmax(profile.bytes))
        ends = f"from rank {profile.sender[pair]} to {profile.partner[pair]}"
        raise InputError(f"{profile.bytes[pair]:g} bytes {ends} are more than 2^63", path=path)
    return replace(profile, source=source)


def silent_rank_warnings(profile: Profile, declared: int) -> Iterator[str]:
    """Yield a warning if most ranks have no traffic and the file does not declare their number.

    Then the highest rank is probably a typing error, and the profile needs as many hosts.
    """
    silent = profile.ranks - len(np.union1d(profile.sender, profile.partner))
    if not declared and profile.pairs and 2 * silent > profile.ranks:
        yield (
            f"{silent} of {profile.ranks} ranks neither send nor receive: is rank {profile.ranks - 1} right? "
            f"'# ranks: {profile.ranks}' before the names of the columns declares the number"
        )


def missing_ranks(
    present: Collection[int], ranks: Sequence[int], path: str, options: Options
) -> tuple[int, ...]:
    """Return the ranks that were not recorded; without `Options.allow_missing_ranks` they are an error."""
    missing = tuple(rank for rank in ranks if rank not in present)
    if missing and not options.allow_missing_ranks:
        raise InputError(missing_text(missing, ranks[-1] + 1), path=path)
    return missing


def self_edge_warnings(profile: Profile) -> Iterator[str]:
    """Yield a warning with the number of edges from a rank to itself, which are dropped."""
    if profile.self_edges:
        yield (
            f"{profile.self_edges} edges from a rank to itself are dropped: "
            f"{profile.self_bytes:.0f} bytes that no cable carries"
        )


def missing_text(missing: Sequence[int], ranks: int) -> str:
    """Return a message about missing ranks of a recording, and how to continue without them."""
    shown = ", ".join(str(rank) for rank in missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
    return (
        f"what {len(missing)} of {ranks} ranks sent is missing ({shown}): "
        "--allow-missing-ranks ingests the recording without them"
    )


LARGEST = float(1 << 53)
"""Largest whole number that is exact in a float."""
RANKS = "# ranks:"
"""Start of the comment with the number of ranks."""
TIMES: Mapping[str, float] = MappingProxyType({"t_s": 1.0, "t_ms": 1e-3, "t_us": 1e-6, "t_ns": 1e-9})
"""Columns with the time of a message, by their unit in seconds; with one of them a row is a message."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.A)


class Table(NamedTuple):
    """Parts of a file."""

    names: list[str]
    """Names of the columns, in lower case."""
    header: int
    """Line number of the names."""
    body: str
    """Text after that line."""
    path: str
    """Path of the file, for errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Rule for a column of finite numbers."""

    whole: bool = False
    """True if numbers must be whole, up to 2^53."""
    signed: bool = False
    """True if numbers may be below zero."""
    largest: float = math.inf
    """Largest absolute value."""
    larger: str = ""
    """Error text for a larger value."""

    def good(self, values: Floats) -> Bools:
        """Return True for each number that the column allows (bool[n])."""
        size = np.abs(values)
        good: Bools = np.isfinite(values) & (size <= self.largest)
        if not self.signed:
            good &= values >= 0
        if self.whole:
            good &= (values == np.floor(values)) & (size <= LARGEST)
        return good

    def fault(self, cell: str) -> str:
        """Return the error of a cell by the same rules as `good`; empty if there is none."""
        if not _NUMBER.fullmatch(cell):
            return "is not a number"
        value = float(cell)
        if not math.isfinite(value):
            return "is not finite"
        if value < 0 and not self.signed:
            return "is negative"
        if self.whole and (value != math.floor(value) or abs(value) > LARGEST):
            return "is not a whole number below 2^53"
        return self.larger if abs(value) > self.largest else ""


BYTES = Column(largest=MAX_PAIR_BYTES, larger="is more than 2^63")
RANK = Column(whole=True, largest=MAX_RANKS - 1, larger=f"is not a rank below {MAX_RANKS}")


def head_names(head: str) -> set[str]:
    """Return the columns named in the first line except comments; never raises."""
    line = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
    return set(_names(line))


def split(file: SourceFile, needed: Sequence[str]) -> Table:
    """Return the column names and the rows after them.

    Raises:
        InputError: A column is missing or repeated, or there is no line with names.
    """
    text, end, number = file.text(), 0, 0
    while end < len(text):
        start, end = end, text.find("\n", end) + 1 or len(text)
        line, number = text[start:end], number + 1
        if not line.strip() or line.startswith("#"):
            continue
        names = _names(line)
        missing = [name for name in needed if name not in names]
        if missing:
            several = len(missing) > 1
            reason = f"column{'s' * several} {' and '.join(missing)} {'are' if several else 'is'} missing"
            raise InputError(reason, path=file.path, line=number, text=line.strip())
        if len(set(names)) != len(names):
            raise InputError("a column is repeated", path=file.path, line=number, text=line.strip())
        return Table(names, number, text[end:], file.path)
    raise InputError("the line with the column names is missing", path=file.path)


def declared_ranks(file: SourceFile, header: int) -> int:
    """Return the number of ranks in a comment before the names; 0 if there is none.

    Raises:
        InputError: The comment has no number, or one outside 1 .. `MAX_RANKS`.
    """
    lines = file.data[: 1 << 16].decode("utf-8-sig", "replace").split("\n", header)[: header - 1]
    for number, line in enumerate(lines, start=1):
        if line.startswith(RANKS):
            text = line.removeprefix(RANKS).strip()
            if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_RANKS):
                raise InputError("invalid number of ranks", path=file.path, line=number, text=line)
            return int(text)
    return 0


def read_columns(
    table: Table, columns: Mapping[str, Column], texts: Mapping[str, str] = MappingProxyType({})
) -> NDArray[np.void]:
    """Return the rows as a structured array with checked numbers; other columns as their first letter.

    Args:
        table: Parts of the file.
        columns: Columns of numbers (float64) and their rules.
        texts: Columns of text and their dtype, such as ``U12``.

    Raises:
        InputError: A row with a wrong number of cells, or an invalid cell.
    """
    names = table.names
    kinds = [
        (name or f"column {i}", "f8" if name in columns else texts.get(name, "U1"))
        for i, name in enumerate(names)
    ]
    reason = "unreadable row"
    try:
        body = io.StringIO(table.body)
        rows = np.loadtxt(body, np.dtype(kinds), comments=None, delimiter=",", quotechar='"', ndmin=1)
        if all(bool(columns[name].good(rows[name]).all()) for name in names if name in columns):
            return rows
    except ValueError as error:
        reason = f"unreadable row: {error}"
    for number, cells in numbered(table):
        fault = _fault(cells, names, columns)
        if fault:
            raise InputError(fault, path=table.path, line=number, text=",".join(cells))
    raise InputError(reason, path=table.path)


def numbered(table: Table) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the line numbers of their starts.

    Raises:
        InputError: The text is not valid CSV.
    """
    reader = csv.reader(io.StringIO(table.body, newline=""))
    start = 0
    try:
        for cells in reader:
            if cells:
                yield table.header + start + 1, cells
            start = reader.line_num
    except csv.Error as error:
        line = table.header + start + 1
        raise InputError(f"invalid CSV: {error}", path=table.path, line=line) from error


def refused(table: Table, row: int, reason: str) -> InputError:
    """Return the error for a row (counted from 0), with its line and text."""
    number, cells = next(islice(numbered(table), row, None))
    return InputError(reason, path=table.path, line=number, text=",".join(cells))


def unread(names: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """Yield a warning about columns that are not read."""
    others = [name for name in names if name not in known]
    if others:
        yield f"ignored columns: {', '.join(others)}"


def _names(line: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in line.split(",")]


def _fault(cells: Sequence[str], names: Sequence[str], columns: Mapping[str, Column]) -> str:
    """Return the error of a row; empty if there is none."""
    if len(cells) != len(names):
        return f"{len(cells)} cells, but there are {len(names)} columns"
    for name, cell in zip(names, cells, strict=True):
        fault = columns[name].fault(cell.strip()) if name in columns else ""
        if fault:
            return f"{name} {fault}"
    return ""
