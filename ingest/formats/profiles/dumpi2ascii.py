"""A communication profile from DUMPI traces (SST), printed by ``dumpi2ascii`` with one file per rank.

    MPI_Isend entering at walltime 9624.99, cputime 0.07 seconds in thread 0.
    int count=25
    MPI_Datatype datatype=14 (MPI_DOUBLE)
    int dest=4
    int tag=1024
    MPI_Comm comm=2 (MPI_COMM_WORLD)
    MPI_Isend returning at ...

Sends of all kinds are summed, persistent ones each time they are started. ``dest`` is a rank of the
communicator: those made by ``MPI_Comm_dup``, ``MPI_Comm_split`` and ``MPI_Cart_create`` without reordering
are reconstructed from the files of all ranks; messages through others are rejected. Sizes of types made by
``MPI_Type_contiguous`` and ``MPI_Type_vector`` are computed; messages of other types are rejected.
Collectives are counted, not expanded.

Tested with dumpi2ascii of sst-dumpi 13 on traces of real programs, one of which uses all of these calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple

from ingest.formats.profiles.shared import (
    MAX_RANKS,
    missing_ranks,
    missing_text,
    place,
    profile_of,
    self_edge_warnings,
)
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

WORLD = -1
"""Number of MPI_COMM_WORLD in this module."""
UNKNOWN = -2
"""Number of a communicator whose origin is not in the trace."""


class Made(NamedTuple):
    """A call that made a communicator."""

    parent: int
    """Communicator from which it was made: `WORLD`, `UNKNOWN`, or its index in the rank's list."""
    turn: int
    """Number of communicators that the rank had made from that parent before."""
    how: str
    """Name of the call; ``other`` if the new ranks are unknown."""
    color: int
    key: int
    """Arguments of ``MPI_Comm_split``."""


@dataclass(frozen=True, slots=True, eq=False)
class _Communicator:
    """A communicator with its world ranks in order; two with the same ranks are not equal."""

    ranks: Sequence[int]


def members_of(made: Mapping[int, Sequence[Made]], ranks: int) -> dict[tuple[int, int], Sequence[int]]:
    """Return the world ranks of each communicator in its order, by (rank, index in that rank's list).

    Communicators are ignored if a member without a trace took part, or if they were made by other calls: the
    destinations of their messages are unknown.
    """
    world = _Communicator(range(ranks))
    found = {(rank, WORLD): world for rank in made}
    known = 0
    while known < len(found):
        known = len(found)
        calls: dict[tuple[_Communicator, int], dict[int, int]] = {}
        for rank, entries in made.items():
            for index, entry in enumerate(entries):
                parent = found.get((rank, entry.parent))
                if parent is not None and (rank, index) not in found:
                    calls.setdefault((parent, entry.turn), {})[rank] = index
        for (parent, _), indices in calls.items():
            for members in _members(parent, {rank: made[rank][index] for rank, index in indices.items()}):
                communicator = _Communicator(members)
                found |= {(rank, indices[rank]): communicator for rank in members if rank in indices}
    return {place: communicator.ranks for place, communicator in found.items()}


def _members(parent: _Communicator, entries: Mapping[int, Made]) -> Iterator[Sequence[int]]:
    """Yield the world ranks of each communicator that one call of the parent's members made, if known."""
    calls = {entry.how for entry in entries.values()}
    if calls <= {"MPI_Comm_dup", "MPI_Cart_create"}:
        yield parent.ranks
    elif calls == {"MPI_Comm_split"} and len(entries) == len(parent.ranks):
        by_color: dict[int, list[tuple[int, int, int]]] = {}
        for order, rank in enumerate(parent.ranks):
            by_color.setdefault(entries[rank].color, []).append((entries[rank].key, order, rank))
        for members in by_color.values():
            yield tuple(rank for _, _, rank in sorted(members))


SENDS = frozenset({
    "MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend", "MPI_Isend", "MPI_Ibsend", "MPI_Issend", "MPI_Irsend",
    "MPI_Sendrecv", "MPI_Sendrecv_replace",
})  # fmt: skip
PERSISTENT = frozenset({"MPI_Send_init", "MPI_Bsend_init", "MPI_Ssend_init", "MPI_Rsend_init"})
ONE_SIDED = frozenset({"MPI_Put", "MPI_Get", "MPI_Accumulate"})
COLLECTIVE = frozenset({
    "MPI_Allreduce", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw",
    "MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Gather", "MPI_Gatherv",
    "MPI_Scatter", "MPI_Scatterv", "MPI_Scan", "MPI_Exscan",
})  # fmt: skip
SIZES: Mapping[str, int] = {
    **dict.fromkeys(("MPI_CHAR", "MPI_SIGNED_CHAR", "MPI_UNSIGNED_CHAR", "MPI_BYTE", "MPI_PACKED"), 1),
    **dict.fromkeys(("MPI_SHORT", "MPI_UNSIGNED_SHORT"), 2),
    **dict.fromkeys(("MPI_INT", "MPI_UNSIGNED", "MPI_FLOAT", "MPI_WCHAR"), 4),
    **dict.fromkeys(("MPI_LONG", "MPI_UNSIGNED_LONG", "MPI_DOUBLE", "MPI_LONG_LONG_INT", "MPI_2INT"), 8),
    **dict.fromkeys(("MPI_UNSIGNED_LONG_LONG", "MPI_LONG_LONG", "MPI_FLOAT_INT"), 8),
    **dict.fromkeys(("MPI_DOUBLE_INT", "MPI_LONG_INT", "MPI_LONG_DOUBLE"), 16),
    "MPI_SHORT_INT": 8,
    "MPI_LONG_DOUBLE_INT": 32,
}  # fmt: skip
"""Bytes of MPI's types on a 64-bit machine; pairs are without padding if MPI sends none."""
_ENTERING = re.compile(r"(MPI_\w+) entering at walltime .*")
_NAMED = re.compile(r"(?:int|MPI_\w+) (\w+)=(-?\d+)(?: \(([\w-]+)\))?")
_REQUEST = re.compile(r"MPI_Request \w+(?:\[\d+\])?=\[([\d, ]*)\]")
_RANK_IN_NAME = re.compile(r"(?:^|\D)(\d{1,8})(?:\.\w+)?$")
_NO_RANK = -1
"""Negative destinations are MPI_PROC_NULL and similar values: nothing is sent."""


class _Send(NamedTuple):
    dest: int
    bytes: int
    comm: int
    line: int


@dataclass(slots=True)
class _Trace:
    """Content of one rank's file."""

    file: SourceFile
    rank: int | None = None
    size: int | None = None
    sends: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """(communicator, rank in it): bytes, messages, line of the first."""
    made: list[Made] = field(default_factory=list)
    current: dict[int, int] = field(default_factory=dict)
    """Index in `made` of each communicator number at this point; numbers are reused."""
    types: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, _Send] = field(default_factory=dict)
    collectives: int = 0
    finished: bool = False


Values = dict[str, tuple[int, str]]


def _recognise_dumpi2ascii(head: str, path: str) -> bool:
    """Return True if the first line enters an MPI call in the notation of dumpi2ascii."""
    first = next((line for line in head.split("\n") if line.strip()), "")
    return _ENTERING.match(first) is not None


def _parse_dumpi2ascii(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of all ranks' files.

    Sends through an unknown communicator or of an unknown type, one-sided calls, truncated files, and a rank
    in two files are errors.
    """
    traces = [_read(file) for file in files]
    by_rank = _by_rank(traces)
    ranks = max([1 + max(by_rank), *(trace.size for trace in traces if trace.size is not None)])
    missing = missing_ranks(by_rank, range(ranks), place(files), options)
    groups = members_of({rank: trace.made for rank, trace in by_rank.items()}, ranks)
    columns = list(zip(*_edges(by_rank, groups), strict=True)) or [()] * 4
    profile = profile_of(columns, ranks, place(files), DUMPI2ASCII.name, options, missing=missing)
    warnings = list(self_edge_warnings(profile))
    if missing:
        warnings.append(missing_text(missing, ranks))
    collectives = sum(trace.collectives for trace in traces)
    if collectives:
        warnings.append(f"{collectives} calls of collectives are ignored: their messages are not recorded")
    return Parsed(profiles=(profile,), warnings=tuple(warnings))


def _by_rank(traces: Sequence[_Trace]) -> dict[int, _Trace]:
    found: dict[int, _Trace] = {}
    for trace in traces:
        named = _RANK_IN_NAME.search(PurePath(trace.file.path).name)
        rank = trace.rank if trace.rank is not None else int(named[1]) if named else None
        if rank is None or rank >= MAX_RANKS:
            reason = (
                "rank unknown: no MPI_Comm_rank of MPI_COMM_WORLD in it, no number at the end of its name"
            )
            raise InputError(reason, path=trace.file.path)
        if rank in found:
            raise InputError(f"rank {rank} is also in {found[rank].file.path}", path=trace.file.path)
        found[rank] = trace
    return found


def _edges(
    by_rank: Mapping[int, _Trace], groups: Mapping[tuple[int, int], Sequence[int]]
) -> Iterator[tuple[int, int, int, int]]:
    for rank, trace in by_rank.items():
        for (comm, dest), (size, messages, line) in trace.sends.items():
            members = groups.get((rank, comm))
            if members is not None and dest < len(members):
                yield rank, members[dest], size, messages
                continue
            reason = "a message goes through a communicator whose ranks are not in the files"
            if members is not None:
                reason = f"a message goes to rank {dest} of a communicator of {len(members)}"
            raise InputError(reason, path=trace.file.path, line=line)


def _read(file: SourceFile) -> _Trace:
    """Read the calls of one rank's file."""
    trace = _Trace(file)
    for name, line, lines in _calls(file):
        if name in SENDS:
            _add(trace, _send(trace, _values(lines), line))
        elif name in PERSISTENT:
            trace.waiting[_requests(lines)[0]] = _send(trace, _values(lines), line)
        elif name in ("MPI_Start", "MPI_Startall"):
            for request in _requests(lines):
                if request in trace.waiting:
                    _add(trace, trace.waiting[request])
        elif name in ONE_SIDED:
            raise InputError("one-sided calls are not supported", path=file.path, line=line, text=name)
        elif name in COLLECTIVE:
            trace.collectives += 1
        elif name.startswith(("MPI_Comm_", "MPI_Cart_create", "MPI_Type_")):
            _note(trace, name, _values(lines))
        elif name == "MPI_Finalize":
            trace.finished = True
    if not trace.finished:
        raise InputError("ends before MPI_Finalize: the file or the run was truncated", path=file.path)
    return trace


def _calls(file: SourceFile) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the name of each call, the line where it is entered, and the lines up to its return."""
    name, start = "", 0
    lines: list[str] = []
    for number, line in enumerate(file.lines(), start=1):
        if not name:
            entered = _ENTERING.fullmatch(line)
            if entered:
                name, start, lines = entered[1], number, []
            elif line.strip():
                raise InputError("expected the start of an MPI call", path=file.path, line=number, text=line)
        elif line.startswith(f"{name} returning at "):
            yield name, start, lines
            name = ""
        elif " entering at walltime " in line:
            raise InputError(f"{name} does not return", path=file.path, line=number, text=line)
        else:
            lines.append(line)
    if name:
        raise InputError(f"truncated within {name}", path=file.path, line=start)


def _values(lines: Sequence[str]) -> Values:
    """Return the numbers of a call by name, with the printed constant; of repeated names the first."""
    values: Values = {}
    for line in lines:
        found = _NAMED.fullmatch(line)
        if found and len(found[2]) <= 18:
            values.setdefault(found[1], (int(found[2]), found[3] or ""))
    return values


def _requests(lines: Sequence[str]) -> list[int]:
    for line in lines:
        found = _REQUEST.fullmatch(line)
        if found:
            return [int(number) for number in found[1].split(",") if len(number.strip()) in range(1, 18)] or [
                -1
            ]
    return [-1]


def _send(trace: _Trace, values: Values, line: int) -> _Send:
    """Return the message of a send."""
    count = values.get("count") or values.get("sendcount")
    kind = values.get("datatype") or values.get("sendtype")
    dest, comm = values.get("dest"), values.get("comm")
    if not (count and kind and dest and comm) or count[0] < 0:
        raise InputError(
            "a send without count, type, destination or communicator", path=trace.file.path, line=line
        )
    size = SIZES.get(kind[1], trace.types.get(kind[0]))
    if size is None:
        reason = "a message of a type whose size is not in the file"
        raise InputError(reason, path=trace.file.path, line=line, text=f"{kind[0]} ({kind[1]})")
    if count[0] * size >= 1 << 53:
        raise InputError("a message of more than 2^53 bytes", path=trace.file.path, line=line)
    return _Send(dest[0], count[0] * size, _comm(trace, comm), line)


def _comm(trace: _Trace, printed: tuple[int, str]) -> int:
    """Return `WORLD`, the index of a communicator in `_Trace.made`, or a negative number if unknown."""
    number, name = printed
    return WORLD if name == "MPI_COMM_WORLD" else trace.current.get(number, UNKNOWN)


def _add(trace: _Trace, send: _Send) -> None:
    if send.dest <= _NO_RANK:
        return
    counts = trace.sends.setdefault((send.comm, send.dest), [0, 0, send.line])
    counts[0] += send.bytes
    counts[1] += 1


def _note(trace: _Trace, name: str, values: Values) -> None:
    """Record the ranks, communicators and types of a call."""
    of_world = values.get("comm", (0, ""))[1] == "MPI_COMM_WORLD"
    if name == "MPI_Comm_rank" and of_world and "rank" in values:
        trace.rank = values["rank"][0]
    elif name == "MPI_Comm_size" and of_world and "size" in values:
        trace.size = min(values["size"][0], MAX_RANKS)
    elif name in ("MPI_Comm_dup", "MPI_Comm_split", "MPI_Cart_create") and "newcomm" in values:
        old, new = values.get("oldcomm", (0, "")), values["newcomm"][0]
        parent = _comm(trace, old)
        turn = sum(made.parent == parent for made in trace.made)
        color, key = (values.get(word, (0, ""))[0] for word in ("color", "key"))
        how = "other" if values.get("reorder", (0, ""))[0] else name
        trace.current[new] = len(trace.made)
        trace.made.append(Made(parent, turn, how, color, key))
    elif "newcomm" in values:
        trace.current.pop(values["newcomm"][0], None)
    elif name in ("MPI_Type_contiguous", "MPI_Type_vector", "MPI_Type_hvector") and "newtype" in values:
        old_type = values.get("oldtype", (0, ""))
        size = SIZES.get(old_type[1], trace.types.get(old_type[0]))
        count, block = values.get("count", (0, ""))[0], values.get("blocklength", (1, ""))[0]
        if size is not None and 0 <= count * block * size < 1 << 53:
            trace.types[values["newtype"][0]] = count * block * size


DUMPI2ASCII = Format(
    "dumpi2ascii",
    kind="profile",
    evidence="real",
    about="profile: DUMPI traces of all ranks, printed by `dumpi2ascii`",
    recognise=_recognise_dumpi2ascii,
    parse=_parse_dumpi2ascii,
    grouped=True,
)
