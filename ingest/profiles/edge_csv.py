"""Who sends how much to whom as an edge list: a CSV file with the columns ``src,dst,bytes``.

Further columns are ``messages`` and ``kind``; all may come in any order. Rows of one pair are summed.
Rows of kind ``coll_api`` tell what collective calls ask for, not what is sent, and are left out. The
highest rank named is the last one, unless a comment ``# ranks: 64`` before the names tells of silent ones.

numpy reads the rows at about a million a second but cannot tell the line of a fault; where it or a
check refuses the content, the rows are read again one by one to find the first bad line.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.profiles.shared import MAX_RANKS, self_edge_warnings, stem
from ingest.source import SourceFile
from registry.errors import InputError
from registry.model import Bools, Profile

FORMAT = "edge-csv"
COLUMNS = ("src", "dst", "bytes", "messages", "kind")
NOT_TRAFFIC = "coll_api"
"""Kind of the rows that are no traffic."""
_NEEDED = COLUMNS[:3]
_WHOLE = ("src", "dst", "messages")
_TYPES = dict.fromkeys(COLUMNS, "f8") | {"kind": "U12"}
_LARGEST = float(1 << 53)
"""Largest whole number that is read exactly."""
_RANKS = "# ranks:"
"""Beginning of the comment that tells the number of ranks."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.A)


def recognise(head: str, path: str) -> bool:
    """Whether the first line that is no comment names the columns."""
    for line in head.splitlines():
        if line.strip() and not line.startswith("#"):
            return set(_NEEDED) <= set(_names(line))
    return False


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The profile of one file.

    Raises
    ------
    InputError
        With the line: a missing column, a row with another number of cells, a cell that is no number,
        not finite, negative, or no rank. No rows at all.
    """
    (file,) = files
    names, header, body = _split(file)
    told = _told_ranks(file, header)
    if not body.strip():
        if not told:
            raise InputError("holds no edges, only the names of columns", path=file.path, line=header)
        return _silent(file, told, options)
    rows = _read(body, names, header, file.path)
    ranks = int(max(rows["src"].max(), rows["dst"].max())) + 1
    if told and told < ranks:
        raise InputError(f"names rank {ranks - 1}, but says it has {told} ranks", path=file.path)
    traffic = rows["kind"] != NOT_TRAFFIC if "kind" in names else np.ones(len(rows), np.bool_)
    kept = rows[traffic]
    profile = Profile.from_edges(
        kept["src"],
        kept["dst"],
        kept["bytes"],
        ranks=told or ranks,
        messages=kept["messages"] if "messages" in names else None,
        name=options.name or stem(file.path),
        application=stem(file.path),
    )
    warnings = (*_warnings(names, traffic), *_repeats(rows, names), *self_edge_warnings(profile))
    return Parsed(profile=replace(profile, source=FORMAT), warnings=warnings)


def csv_text(profile: Profile) -> str:
    """The profile as such a file, a row an ordered pair of ranks that talks.

    The number of ranks stands in a comment, for the silent ones above the highest that is named.
    """
    whole = bool((profile.bytes == np.floor(profile.bytes)).all()) and bool((profile.bytes <= _LARGEST).all())
    sizes = profile.bytes.astype(np.int64).tolist() if whole else map(_shown, profile.bytes.tolist())
    rows = zip(
        profile.sender.tolist(), profile.partner.tolist(), sizes, profile.messages.tolist(), strict=True
    )
    lines = [f"{_RANKS} {profile.ranks}", "src,dst,bytes,messages"]
    lines += [f"{source},{target},{size},{count}" for source, target, size, count in rows]
    return "\n".join(lines) + "\n"


def _told_ranks(file: SourceFile, header: int) -> int:
    """The number of ranks that a comment before the names tells; 0 where none does."""
    lines = file.data[: 1 << 16].decode("utf-8-sig", "replace").split("\n", header)[: header - 1]
    for number, line in enumerate(lines, start=1):
        if line.startswith(_RANKS):
            text = line.removeprefix(_RANKS).strip()
            if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_RANKS):
                raise InputError("no number of ranks", path=file.path, line=number, text=line)
            return int(text)
    return 0


def _silent(file: SourceFile, ranks: int, options: Options) -> Parsed:
    """A profile of ranks that send nothing."""
    name = stem(file.path)
    profile = Profile.from_edges([], [], [], ranks=ranks, name=options.name or name, application=name)
    return Parsed(profile=replace(profile, source=FORMAT), warnings=("no rank sends anything",))


def _repeats(rows: NDArray[np.void], names: Sequence[str]) -> Iterator[str]:
    """Says where every row stands twice, as when a file was appended to itself."""
    if len(rows) < 2 or len(rows) % 2:
        return
    half = len(rows) // 2
    pairs = [name for name in names if name in COLUMNS]
    one_after_other = all(bool((rows[name][::2] == rows[name][1::2]).all()) for name in pairs)
    appended = all(bool((rows[name][:half] == rows[name][half:]).all()) for name in pairs)
    if one_after_other or appended:
        yield "every row stands twice: the file seems to hold one recording twice over; --divide 2 halves it"


def _shown(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _names(line: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in line.split(",")]


def _split(file: SourceFile) -> tuple[list[str], int, str]:
    """The columns' names, the number of the line that holds them, and the text after it."""
    text, end, number = file.text(), 0, 0
    while end < len(text):
        start, end = end, text.find("\n", end) + 1 or len(text)
        line, number = text[start:end], number + 1
        if not line.strip() or line.startswith("#"):
            continue
        names = _names(line)
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            reason = f"there is no column {' and no column '.join(missing)}"
            raise InputError(reason, path=file.path, line=number, text=line.strip())
        if len(set(names)) != len(names):
            raise InputError("a column stands twice", path=file.path, line=number, text=line.strip())
        return names, number, text[end:]
    raise InputError("there is no line with the names of the columns", path=file.path)


def _read(body: str, names: Sequence[str], header: int, path: str) -> NDArray[np.void]:
    """The rows as a structured array, each field checked."""
    types = np.dtype([(name or f"column {i}", _TYPES.get(name, "U1")) for i, name in enumerate(names)])
    reason = "a row cannot be read"
    try:
        rows = np.loadtxt(io.StringIO(body), types, comments=None, delimiter=",", quotechar='"', ndmin=1)
        if bool(_good(rows, names).all()):
            return rows
    except ValueError as error:
        reason = f"a row cannot be read: {error}"
    for number, cells in _numbered(body, header, path):
        fault = _fault(cells, names)
        if fault:
            raise InputError(fault, path=path, line=number, text=",".join(cells))
    raise InputError(reason, path=path)


def _good(rows: NDArray[np.void], names: Sequence[str]) -> Bools:
    """Rows whose numbers are what their columns need."""
    good = np.ones(len(rows), np.bool_)
    for name in set(names) & set(COLUMNS) - {"kind"}:
        values = rows[name]
        good &= np.isfinite(values) & (values >= 0)
        if name in _WHOLE:
            good &= (values == np.floor(values)) & (values <= _LARGEST)
        if name in ("src", "dst"):
            good &= values < MAX_RANKS
    return good


def _numbered(body: str, header: int, path: str) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of the lines where they begin."""
    reader = csv.reader(io.StringIO(body, newline=""))
    start = 0
    try:
        for cells in reader:
            if cells:
                yield header + start + 1, cells
            start = reader.line_num
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path=path, line=header + start + 1) from error


def _fault(cells: Sequence[str], names: Sequence[str]) -> str:
    """What is wrong with a row; empty where nothing is. The same rules as `_good`."""
    if len(cells) != len(names):
        return f"{len(cells)} cells where there are {len(names)} columns"
    for name, cell in zip(names, cells, strict=True):
        if name not in COLUMNS or name == "kind":
            continue
        if not _NUMBER.fullmatch(cell.strip()):
            return f"{name} is not a number"
        value = float(cell.strip())
        if not math.isfinite(value):
            return f"{name} is not finite"
        if value < 0:
            return f"{name} is negative"
        if name in _WHOLE and (value != math.floor(value) or value > _LARGEST):
            return f"{name} is not a whole number below 2^53"
        if name in ("src", "dst") and value >= MAX_RANKS:
            return f"{name} is no rank below {MAX_RANKS}"
    return ""


def _warnings(names: Sequence[str], traffic: Bools) -> Iterator[str]:
    left_out = int((~traffic).sum())
    if left_out:
        yield f"{left_out} rows of kind {NOT_TRAFFIC} are left out: what calls ask for, not what is sent"
    unread = [name for name in names if name not in COLUMNS]
    if unread:
        yield f"columns that are not read: {', '.join(unread)}"
