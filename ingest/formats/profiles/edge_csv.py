"""Who sends how much to whom as an edge list: a CSV file with the columns ``src,dst,bytes``.

Further columns are ``messages`` and ``kind``; all may come in any order. Rows of one pair are summed.
Rows of kind ``coll_api`` tell what collective calls ask for, not what is sent, and are left out. The
highest rank named is the last one, unless a comment ``# ranks: 64`` before the names tells of silent ones.
A file that also tells when each message was sent is a trace (`ingest.formats.profiles.trace_csv`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.formats.profiles.columns import (
    LARGEST,
    RANK,
    RANKS,
    TIMES,
    Column,
    head_names,
    read_columns,
    split,
    told_ranks,
    unread,
)
from ingest.formats.profiles.shared import self_edge_warnings, stem
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Bools, Profile

FORMAT = "edge-csv"
COLUMNS = ("src", "dst", "bytes", "messages", "kind")
NOT_TRAFFIC = "coll_api"
"""Kind of the rows that are no traffic."""
_NEEDED = COLUMNS[:3]
_NUMBERS = {"src": RANK, "dst": RANK, "bytes": Column(), "messages": Column(whole=True)}
_TEXTS = {"kind": "U12"}


def recognise(head: str, path: str) -> bool:
    """Whether the first line that is no comment names the columns, and none of times."""
    names = head_names(head)
    return set(_NEEDED) <= names and names.isdisjoint(TIMES)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The profile of one file.

    Raises
    ------
    InputError
        With the line: a missing column, a row with another number of cells, a cell that is no number,
        not finite, negative, or no rank. No rows at all.
    """
    (file,) = files
    table = split(file, _NEEDED)
    names, told = table.names, told_ranks(file, table.header)
    if not table.body.strip():
        if not told:
            raise InputError("holds no edges, only the names of columns", path=file.path, line=table.header)
        return _silent(file, told, options)
    rows = read_columns(table, _NUMBERS, _TEXTS)
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
    whole = bool((profile.bytes == np.floor(profile.bytes)).all()) and bool((profile.bytes <= LARGEST).all())
    sizes = profile.bytes.astype(np.int64).tolist() if whole else map(_shown, profile.bytes.tolist())
    rows = zip(
        profile.sender.tolist(), profile.partner.tolist(), sizes, profile.messages.tolist(), strict=True
    )
    lines = [f"{RANKS} {profile.ranks}", "src,dst,bytes,messages"]
    lines += [f"{source},{target},{size},{count}" for source, target, size, count in rows]
    return "\n".join(lines) + "\n"


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


def _warnings(names: Sequence[str], traffic: Bools) -> Iterator[str]:
    left_out = int((~traffic).sum())
    if left_out:
        yield f"{left_out} rows of kind {NOT_TRAFFIC} are left out: what calls ask for, not what is sent"
    yield from unread(names, COLUMNS)
