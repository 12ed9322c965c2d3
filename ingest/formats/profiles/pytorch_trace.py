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
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ingest.formats.profiles.shared import MAX_RANKS, missing_ranks, missing_text, place, profile_of
from ingest.generate.collectives import Edges, edges, expand, joined
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from ingest.reading.text import Spot, load_json
from registry.errors import InputError, InvalidValue

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("allreduce", "all_reduce", "allreduce_coalesced"), "all-reduce"),
        **dict.fromkeys(("all_gather", "allgather", "_allgather_base", "all_gather_base"), "all-gather"),
        **dict.fromkeys(("allgather_into_tensor_coalesced", "allgather_coalesced"), "all-gather"),
        **dict.fromkeys(("all_gather_into_tensor",), "all-gather"),
        **dict.fromkeys(("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_base"), "reduce-scatter"),
        **dict.fromkeys(("reduce_scatter_tensor", "reduce_scatter_tensor_coalesced"), "reduce-scatter"),
        **dict.fromkeys(("all_to_all", "all_to_allv", "alltoall", "all_to_all_single"), "all-to-all"),
        **dict.fromkeys(("broadcast", "_broadcast_oop"), "broadcast"),
        **dict.fromkeys(("reduce", "_reduce_oop"), "reduce"),
        "send": "send",
    }
)
"""Operations of `ingest.generate.collectives` by PyTorch's names."""
SILENT = frozenset({"wait", "barrier", "init", "recv", "recvanysource", "recvAnySource", "monitored_barrier"})
"""Calls that send nothing, or whose bytes are in the sender's file."""
ROOTED = frozenset({"broadcast", "reduce", "send"})
"""Operations whose rank is that of the root or peer instead of the caller's."""
_SIZES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("Byte", "Char", "Bool", "QInt8", "QUInt8"), 1),
        **dict.fromkeys(("Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
        **dict.fromkeys(("Short", "Half", "BFloat16", "UInt16"), 2),
        **dict.fromkeys(("Int", "Float", "ComplexHalf", "UInt32"), 4),
        **dict.fromkeys(("Long", "Double", "ComplexFloat", "UInt64"), 8),
        "ComplexDouble": 16,
    }
)
"""Bytes of an element by PyTorch's name of its type."""
_MOST = 1 << 53


class Call(NamedTuple):
    """One kind of call; equal calls are counted."""

    operation: str
    """One of `ingest.generate.collectives.OPERATIONS`, or ``send``."""
    group: str
    """Name or number of the process group."""
    rank: int
    """Rank of the caller in the group; the root for `ROOTED` operations, the receiver for ``send``."""
    bytes: int
    """Bytes that the caller contributes."""
    size: int
    """Number of ranks of the group; 0 if unknown."""
    start: int
    stride: int
    """First rank of the group and the distance to the next; 0 and 0 if unknown."""
    splits: tuple[int, ...]
    """Bytes for each rank, for an all-to-all with uneven parts."""

    @property
    def of_caller(self) -> bool:
        """True if the rank is the caller's."""
        return self.operation not in ROOTED


def read_call(node: Mapping[str, Any], spot: Spot) -> Call | None:
    """Return the call of a node ``record_param_comms``; None if it sends nothing.

    Unknown collectives and values of a wrong type raise `InputError`.
    """
    attributes = _attributes(node)
    inputs = node.get("inputs")
    values = inputs.get("values", []) if isinstance(inputs, dict) else []
    values = values if isinstance(values, list) else []
    at = next((index for index, value in enumerate(values) if isinstance(value, str)), None)
    name = attributes.get("collective_name") or (values[at] if at is not None else None)
    if name is None:
        raise spot.error("a collective without a name")
    name = spot.text(name)
    if name in SILENT:
        return None
    operation = OPERATIONS.get(name)
    if operation is None:
        raise spot.error("unknown collective", name)
    if at is None or at < 2:
        raise spot.error("a collective without its group and rank", name)
    group = attributes.get("pg_name", _group(values[at - 2], spot))
    each = _element(attributes.get("dtype"), spot)
    size = _bytes(attributes, values[:at], each, spot)
    splits = _splits(attributes.get("in_split_size"), values, at, spot) if operation == "all-to-all" else ()
    ways = sum(splits)
    if splits and (ways == 0 or size % ways):
        raise spot.error("splits that do not fit the number of elements", size)
    return Call(
        operation=operation,
        group=str(group),
        rank=spot.whole(values[at - 1], 0, MAX_RANKS - 1),
        bytes=size,
        size=spot.whole(attributes.get("pg_size", 0), 0, MAX_RANKS),
        start=max(0, spot.whole(attributes.get("global_rank_start", 0), -1, MAX_RANKS)),
        stride=_stride(attributes, spot),
        splits=tuple(part * (size // ways) for part in splits),
    )


def _attributes(node: Mapping[str, Any]) -> dict[str, Any]:
    listed = node.get("attrs")
    if not isinstance(listed, list):
        return {}
    entries = (entry for entry in listed if isinstance(entry, dict))
    return {str(entry.get("name")): entry.get("value") for entry in entries}


def _group(value: Any, spot: Spot) -> str:
    """Return the name of the group, from the pair of name and description or the backend's number."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, str | int):
        raise spot.error("not a name of a process group", value)
    return str(value)


def _stride(attributes: Mapping[str, Any], spot: Spot) -> int:
    """Return the distance between ranks of the group; 0 if it is uneven or unknown."""
    start = spot.whole(attributes.get("global_rank_start", -1), -1, MAX_RANKS)
    stride = spot.whole(attributes.get("global_rank_stride", -1), -MAX_RANKS, MAX_RANKS)
    size = spot.whole(attributes.get("pg_size", 0), 0, MAX_RANKS)
    fits = start >= 0 and stride > 0 and size > 0 and start + size * stride <= MAX_RANKS
    return stride if fits else 0


def _element(kind: Any, spot: Spot) -> int | None:
    """Return the bytes of an element by the name of its type; None if there is no type."""
    if kind is None:
        return None
    name = spot.text(kind)
    if name not in _SIZES:
        raise spot.error("unknown type of elements", name)
    return _SIZES[name]


def _bytes(attributes: Mapping[str, Any], values: Sequence[Any], each: int | None, spot: Spot) -> int:
    """Return the bytes that the caller contributes, from the attributes or else the input tensors."""
    count = attributes.get("in_msg_nelems")
    if count is not None and each is not None:
        return spot.whole(count, 0, _MOST) * each
    total = sum(number * size for number, size in _tensors(values, spot))
    return spot.whole(total, 0, _MOST)


def _tensors(value: Any, spot: Spot) -> list[tuple[int, int]]:
    """Return number and size of elements of each tensor [id, storage, offset, elements, bytes, device]."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    if len(value) == 6 and isinstance(value[5], str) and all(isinstance(part, int) for part in value[:5]):
        return [(spot.whole(value[3], 0, _MOST), spot.whole(value[4], 0, 16))]
    return [found for part in value for found in _tensors(part, spot)]


def _splits(printed: Any, values: Sequence[Any], index: int, spot: Spot) -> tuple[int, ...]:
    """Return the number of elements for each rank; empty if they are even."""
    if isinstance(printed, str):
        try:
            printed = json.loads(printed) if printed else []
        except (ValueError, RecursionError) as error:
            raise spot.error("splits are not a list", printed[:80]) from error
    if printed is None:
        printed = values[index + 1] if index + 1 < len(values) and isinstance(values[index + 1], list) else []
    parts = tuple(spot.whole(part, 0, _MOST) for part in spot.list(printed))
    return parts if len(set(parts)) > 1 else ()


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
