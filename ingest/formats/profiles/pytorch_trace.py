"""Profiles from PyTorch execution traces (Chakra's host traces): one JSON file per rank.

A trace contains the collectives of a rank with their process groups and bytes, but no messages. They are
expanded to messages by a named algorithm (`Options.collectives`). Each file gives the traffic that its rank
sends, so that a missing file is a missing row. These nodes are read:

    ## process_group:init ##   inputs.values[0] is JSON text: pg_name, ranks, group_size, backend_id, ...
    record_param_comms         one call; its name, group, rank and sizes in attributes (PyTorch 2.4 on), or
                               in older traces in inputs.values: tensors, sequence, group, rank, name, ...

The rank in a call is the caller's in its group; of a broadcast or a reduction it is the root, and of ``send``
the receiver. ``ranks: []`` means all ranks of the group's size. Tested with a trace of Chakra's own tests
(schema 1.0.2-chakra.0.0.4); attributes follow PyTorch's source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from ingest.formats.profiles.pytorch_calls import Call, read_call
from ingest.formats.profiles.shared import MAX_RANKS, missing_ranks, missing_text, place, profile_of
from ingest.generate.collectives import Edges, edges, expand, joined
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue

INIT = "## process_group:init ##"
CALL = "record_param_comms"
MOST = 1 << 29
"""Largest file in bytes: in memory a document takes some ten times as much."""
_IN_NAME = re.compile(r"(?:rank|et|host|trace)[_.-]?(\d{1,8})\b|(\d{1,8})(?=\D*$)", re.I)


@dataclass(slots=True)
class _Trace:
    file: SourceFile
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Ranks of the job by the name, and by the number of the backend, of a process group."""
    calls: dict[Call, int] = field(default_factory=dict)
    rank: int = 0


def _recognise_pytorch_trace(head: str, path: str) -> bool:
    """Return True if a JSON object begins with a schema of Chakra or PyTorch's execution traces and nodes."""
    begins = head.lstrip()[:400]
    return begins.startswith("{") and '"schema"' in begins and ('"nodes"' in head) and '"pid"' in begins


def _parse_pytorch_trace(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of all ranks' files.

    An unknown collective, group or rank, and a rank in two files, are errors.
    """
    traces = [_read(file) for file in files]
    by_rank: dict[int, _Trace] = {}
    for trace in traces:
        trace.rank = _rank(trace)
        if trace.rank in by_rank:
            reason = f"rank {trace.rank} is also in {by_rank[trace.rank].file.path}"
            raise InputError(reason, path=trace.file.path)
        by_rank[trace.rank] = trace
    everyone = {rank for trace in traces for ranks in trace.groups.values() for rank in ranks} | set(by_rank)
    ranks = 1 + max(everyone)
    missing = missing_ranks(by_rank, range(ranks), place(files), options)
    sent = joined(*(part for trace in traces for part in _sent(trace, options)))
    source = f"{PYTORCH_TRACE.name}, {options.collectives}"
    profile = profile_of(sent, ranks, place(files), source, options, missing=missing)
    notes = [missing_text(missing, ranks)] if missing else []
    calls = sum(count for trace in traces for count in trace.calls.values())
    notes.append(
        f"{calls} calls of collectives are expanded by the algorithm {options.collectives}: "
        "the trace does not contain the real one"
    )
    return Parsed(profiles=(profile,), warnings=tuple(notes))


def _read(file: SourceFile) -> _Trace:
    """Read the process groups and calls of one file."""
    top = Spot(file.path)
    document = top.object(load_json(file, limit=MOST))
    trace = _Trace(file)
    spot = top.at("nodes")
    nodes = spot.list(document.get("nodes"))
    for number, node in enumerate(nodes):
        if isinstance(node, dict) and node.get("name") == INIT:
            trace.groups |= _groups(node, spot.at(number))
    for number, node in enumerate(nodes):
        if isinstance(node, dict) and node.get("name") == CALL:
            call = read_call(node, spot.at(number))
            if call is not None:
                trace.calls[call] = trace.calls.get(call, 0) + 1
    if not trace.calls and not trace.groups:
        raise InputError(
            "contains no process group and no collective: is it of a distributed program?", path=file.path
        )
    return trace


def _groups(node: Mapping[str, Any], spot: Spot) -> dict[str, tuple[int, ...]]:
    """Return the process groups of an init node, by name and by number of the backend."""
    inputs = spot.object(node.get("inputs"))
    values = spot.list(inputs.get("values"))
    text = spot.text(values[0] if values else None)
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise spot.error("process groups that are not JSON", text[:80]) from error
    found: dict[str, tuple[int, ...]] = {}
    for entry in spot.list(listed):
        group = spot.object(entry)
        given = group.get("ranks")
        size = spot.whole(group.get("group_size", len(given) if given else 0), 1, MAX_RANKS)
        listed_ranks = list(given) if isinstance(given, dict) else given
        ranks = tuple(spot.whole(rank, 0, MAX_RANKS - 1) for rank in spot.list(listed_ranks or []))
        ranks = tuple(sorted(ranks)) if isinstance(given, dict) else ranks
        if ranks and (len(set(ranks)) != len(ranks) or len(ranks) != size):
            raise spot.error("a process group whose ranks are not as many as its size", size)
        for key in ("pg_name", "pg_id", "backend_id", "uid"):
            if isinstance(group.get(key), str | int):
                found[str(group[key])] = ranks or tuple(range(size))
    return found


def _rank(trace: _Trace) -> int:
    """Return which rank wrote the file: by a call whose rank is the caller's, else by the file's name."""
    callers = {
        members[call.rank]
        for call in trace.calls
        if call.of_caller and call.rank < len(members := _members(trace, call))
    }
    if len(callers) > 1:
        raise InputError(f"calls of several ranks, {sorted(callers)[:5]}, in one file", path=trace.file.path)
    if callers:
        return callers.pop()
    found = _IN_NAME.search(PurePath(trace.file.path).name)
    if not found:
        raise InputError("contains no rank, neither in a call nor in its name", path=trace.file.path)
    return int(found[1] or found[2])


def _members(trace: _Trace, call: Call) -> tuple[int, ...]:
    if call.stride:
        return tuple(range(call.start, call.start + call.size * call.stride, call.stride))
    members = trace.groups.get(call.group)
    if members is None and call.size and len(set(trace.groups.values())) == 1:
        (members,) = set(trace.groups.values())
    if members is None:
        raise InputError(
            f"a collective of process group {call.group!r}, which is not described", path=trace.file.path
        )
    return members


def _sent(trace: _Trace, options: Options) -> Iterator[Edges]:
    """Yield what the trace's rank sends in its calls."""
    for call, count in trace.calls.items():
        members = _members(trace, call)
        if trace.rank not in members:
            raise InputError(f"rank {trace.rank} is not in group {call.group!r}", path=trace.file.path)
        for part in _expanded(trace, call, members, options):
            yield part.select(part.source == trace.rank).repeated(count)


def _expanded(trace: _Trace, call: Call, members: tuple[int, ...], options: Options) -> Iterator[Edges]:
    """Yield the messages of a call."""
    if call.operation == "send":
        if call.rank >= len(members):
            raise InputError(f"sends to rank {call.rank} of {len(members)}", path=trace.file.path)
        yield edges([trace.rank], [members[call.rank]], call.bytes)
        return
    if call.splits:
        if len(call.splits) != len(members):
            raise InputError("an all-to-all with splits for another number of ranks", path=trace.file.path)
        yield edges(np.full(len(members), trace.rank), members, call.splits, np.array(call.splits) > 0)
        return
    order = members
    if call.operation in ("broadcast", "reduce"):
        if call.rank >= len(members):
            raise InputError(f"has root {call.rank} of {len(members)}", path=trace.file.path)
        order = members[call.rank :] + members[: call.rank]
    size = call.bytes * (len(members) if call.operation == "all-gather" else 1)
    try:
        yield expand(call.operation, order, size, algorithm=options.collectives, domain=options.domain)
    except InvalidValue as error:
        raise InputError(str(error), path=trace.file.path) from error


PYTORCH_TRACE = Format(
    "pytorch-trace",
    kind="profile",
    evidence="public",
    about="profile: PyTorch execution traces, collectives expanded",
    recognise=_recognise_pytorch_trace,
    parse=_parse_pytorch_trace,
    grouped=True,
)
