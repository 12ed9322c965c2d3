"""One call of a collective in a PyTorch execution trace, in its newer and older form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ingest.formats.profiles.shared import MAX_RANKS
from ingest.reading.json_text import Spot

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
    """One kind of call; equal calls are counted.

    Attributes
    ----------
    operation : str
        One of `ingest.generate.collectives.OPERATIONS`, or ``send``.
    group : str
        Name or number of the process group.
    rank : int
        Rank of the caller in the group; the root for `ROOTED` operations, the receiver for ``send``.
    bytes : int
        Bytes that the caller contributes.
    size : int
        Number of ranks of the group; 0 if unknown.
    start, stride : int
        First rank of the group and the distance to the next; 0 and 0 if unknown.
    splits : tuple of int
        Bytes for each rank, for an all-to-all with uneven parts.
    """

    operation: str
    group: str
    rank: int
    bytes: int
    size: int
    start: int
    stride: int
    splits: tuple[int, ...]

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
