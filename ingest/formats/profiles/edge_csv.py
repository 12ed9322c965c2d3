"""A communication profile as an edge list: a CSV file with the columns ``src,dst,bytes``.

Optional columns are ``messages`` and ``kind``; columns may be in any order. Rows of one pair are summed. Rows
of kind ``coll_api`` describe the arguments of collective calls, not traffic, and are ignored. The highest
rank in the file is the last one, unless a comment ``# ranks: 64`` before the names gives the number. A file
with the time of each message is a trace (`ingest.formats.profiles.trace_csv`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.formats.profiles import columns
from ingest.formats.profiles.columns import BYTES, LARGEST, RANK, Column
from ingest.formats.profiles.shared import profile_of, self_edge_warnings, silent_rank_warnings
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Bools, Profile

COLUMNS = ("src", "dst", "bytes", "messages", "kind")
NOT_TRAFFIC = "coll_api"
"""Kind of rows that are not traffic."""
_NEEDED = COLUMNS[:3]
_NUMBERS = {"src": RANK, "dst": RANK, "bytes": BYTES, "messages": Column(whole=True)}
_TEXTS = {"kind": "U12"}


def _recognise_edge_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments names the columns, but no column of times."""
    names = columns.head_names(head)
    return set(_NEEDED) <= names and names.isdisjoint(columns.TIMES)


def _parse_edge_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one file; a missing column, an invalid cell, and no rows, are errors."""
    (file,) = files
    table = columns.split(file, _NEEDED)
    names, declared = table.names, columns.declared_ranks(file, table.header)
    if not table.body.strip():
        if not declared:
            raise InputError("no edges found after the column names", path=file.path, line=table.header)
        silent = profile_of(([], [], [], None), declared, file.path, EDGE_CSV.name, options)
        return Parsed(profiles=(silent,), warnings=("no rank sends anything",))
    rows = columns.read_columns(table, _NUMBERS, _TEXTS)
    ranks = int(max(rows["src"].max(), rows["dst"].max())) + 1
    if declared and declared < ranks:
        raise InputError(f"contains rank {ranks - 1}, but declares {declared} ranks", path=file.path)
    traffic = rows["kind"] != NOT_TRAFFIC if "kind" in names else np.ones(len(rows), np.bool_)
    kept = rows[traffic]
    messages = kept["messages"] if "messages" in names else None
    edges = kept["src"], kept["dst"], kept["bytes"], messages
    profile = profile_of(edges, declared or ranks, file.path, EDGE_CSV.name, options)
    warnings = (
        *_warnings(names, traffic),
        *_repeats(rows, names),
        *self_edge_warnings(profile),
        *silent_rank_warnings(profile, declared),
    )
    return Parsed(profiles=(profile,), warnings=warnings)


def csv_text(profile: Profile) -> str:
    """Return the profile as text of this format, with one row per ordered pair of ranks with traffic.

    A comment gives the number of ranks, since the highest ranks may have no traffic.
    """
    whole = bool((profile.bytes == np.floor(profile.bytes)).all()) and bool((profile.bytes <= LARGEST).all())
    sizes = profile.bytes.astype(np.int64).tolist() if whole else map(_shown, profile.bytes.tolist())
    rows = zip(
        profile.sender.tolist(), profile.partner.tolist(), sizes, profile.messages.tolist(), strict=True
    )
    lines = [f"{columns.RANKS} {profile.ranks}", "src,dst,bytes,messages"]
    lines += [f"{source},{target},{size},{count}" for source, target, size, count in rows]
    return "\n".join(lines) + "\n"


def _repeats(rows: NDArray[np.void], names: Sequence[str]) -> Iterator[str]:
    """Yield a warning if every row is repeated, as when a file was appended to itself."""
    if len(rows) < 2 or len(rows) % 2:
        return
    half = len(rows) // 2
    pairs = [name for name in names if name in COLUMNS]
    one_after_other = all(bool((rows[name][::2] == rows[name][1::2]).all()) for name in pairs)
    appended = all(bool((rows[name][:half] == rows[name][half:]).all()) for name in pairs)
    if one_after_other or appended:
        yield "every row is repeated: the file seems to contain one recording twice; --divide 2 halves it"


def _shown(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _warnings(names: Sequence[str], traffic: Bools) -> Iterator[str]:
    left_out = int((~traffic).sum())
    if left_out:
        yield f"{left_out} rows of kind {NOT_TRAFFIC} are ignored: arguments of calls, not traffic"
    yield from columns.unread(names, COLUMNS)


EDGE_CSV = Format(
    "edge-csv",
    kind="profile",
    evidence="own",
    about="profile: CSV with columns src,dst,bytes and optionally messages,kind",
    recognise=_recognise_edge_csv,
    parse=_parse_edge_csv,
)
