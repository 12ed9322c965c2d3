"""Blobs and values of statements: what goes in comes out, and nothing else is believed."""

from __future__ import annotations

import json
import struct
import zlib
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from neo4j.graph import Graph, Node, Path, Relationship
from neo4j.spatial import CartesianPoint
from neo4j.time import Date, DateTime, Duration, Time

from registry.database import codec
from registry.database.values import incoming, outgoing
from registry.errors import DatabaseError

ARRAYS = st.sampled_from([np.bool_, np.uint8, np.int32, np.int64, np.uint64, np.float64]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=6))
)
COLUMNS = st.dictionaries(st.text(max_size=8), ARRAYS | st.lists(st.text()), max_size=5)


def blob_of(header: object, payload: bytes = b"", version: int = 1, magic: bytes = b"FABA") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<4sBI", magic, version, len(text)) + text + zlib.compress(payload)


def header_of(*arrays: object, size: object = 8) -> dict[str, object]:
    return {"arrays": list(arrays), "codec": "zlib", "size": size}


@given(columns=COLUMNS)
def test_what_is_packed_is_unpacked_and_always_the_same_bytes(columns: dict[str, codec.Column]) -> None:
    packed = codec.pack(columns)
    found = codec.unpack(packed)
    assert list(found) == list(columns)
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape)
            assert found[name].tobytes() == values.tobytes()
        else:
            assert found[name] == tuple(values)
    assert codec.pack(dict(columns)) == packed
    assert codec.digest(columns) == codec.digest(dict(columns))


def test_a_digest_depends_on_dtype_shape_and_name() -> None:
    zeros = np.zeros(4, np.int64)
    values = (zeros, zeros.reshape(2, 2), zeros.view(np.uint64), ["0", "0"])
    variants: list[dict[str, codec.Column]] = [{"a": one} for one in values]
    variants += [{"b": zeros}, {"a": zeros[:2], "b": zeros[2:]}]
    assert len({codec.digest(columns) for columns in variants}) == len(variants)


def test_arrays_come_back_read_only_and_in_c_order() -> None:
    grid = np.arange(6, dtype=np.int32).reshape(2, 3)
    found = codec.unpack(codec.pack({"a": grid.T}))["a"]
    assert found.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert not found.flags.writeable


def test_other_dtypes_and_too_large_arrays_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in (np.float32, np.complex128, object, np.str_, "M8[s]"):
        with pytest.raises(ValueError, match="cannot hold"):
            codec.pack({"a": np.zeros(1, dtype)})
    monkeypatch.setattr(codec, "MAX_BYTES", 15)
    with pytest.raises(ValueError, match="at most 15"):
        codec.pack({"a": np.zeros(2)})


GOOD = header_of(["a", "<i8", [1]])
WRONG_ARRAYS: list[list[object]] = [["a", "<i8", shape] for shape in ([-1], [1.5], [True], 1, [1] * 5, [2])]
WRONG_ARRAYS += [["a", "|O", [1]], ["a", "<i8"], [1, "<i8", [1]], ["a", ["<i8"], [1]]]
EMPTY: list[list[Any]] = [[]]


@pytest.mark.parametrize(
    "blob",
    [
        *(b"", b"FABA", blob_of(GOOD, bytes(8), magic=b"XXXX")),
        *(blob_of(header, bytes(8)) for header in (b"{", b"[" * 100_000)),
        *(blob_of(header, bytes(8)) for header in (header_of(), *EMPTY)),
        *(blob_of(header_of(array), bytes(8)) for array in WRONG_ARRAYS),
        *(blob_of(GOOD, bytes(size)) for size in (9, 7)),
        *(
            blob_of(GOOD | changed, bytes(8))
            for changed in ({"codec": "pickle"}, {"size": 1 << 40}, {"size": -1})
        ),
        blob_of(header_of(["a", "json", [1, 8]]), b'["x","y]'),
        blob_of(header_of(["a", "json", [2, 8]]), b'["xyz" ]'),
        blob_of(header_of(["a", "json", [1, 8]]), b"[1     ]"),
        blob_of(header_of(["a", "json", [8]]), b'["xyz" ]'),
        *(blob_of(GOOD, bytes(8))[:-3], blob_of(GOOD, bytes(8)) + b"more"),
    ],
)
def test_what_is_no_blob_is_refused(blob: bytes) -> None:
    with pytest.raises(DatabaseError, match="damaged"):
        codec.unpack(blob)


def test_a_later_version_is_an_error_and_a_bomb_is_not_inflated() -> None:
    with pytest.raises(DatabaseError, match="codec version 2"):
        codec.unpack(blob_of(header_of(), version=2))
    bomb = blob_of(header_of(["a", "|u1", [10]], size=10), bytes(50_000_000))
    with pytest.raises(DatabaseError, match="10 bytes"):
        codec.unpack(bomb)


@given(cut=st.integers(0, 200), flip=st.integers(0, 255))
def test_a_damaged_blob_is_an_error_or_still_an_array(cut: int, flip: int) -> None:
    blob = bytearray(codec.pack({"a": np.arange(16), "b": ["x", "y"]}))
    blob[cut % len(blob)] ^= flip
    try:
        codec.unpack(bytes(blob))
    except DatabaseError:
        assert flip


NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def node(name: str) -> Node:
    return Node(Graph(), name, 1, ["Device"], {"name": name, "at": DateTime.from_native(NOON)})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((None, None), ([1, "a", b"b"], [1, "a", b"b"]), (DateTime.from_native(NOON), NOON)),
        *(([DateTime.from_native(NOON), 1], [NOON, 1]), (Date(2026, 11, 23), date(2026, 11, 23))),
        *((Time(12, 30), time(12, 30)), (bytearray(b"ab"), b"ab"), ({"a": [bytearray(b"x")]}, {"a": [b"x"]})),
        (node("n"), {"name": "n", "at": NOON}),
        (Relationship(Graph(), "l", 2, {"capacity": 1.5}), {"capacity": 1.5}),
        *((Path(node("a")), [{"name": "a", "at": NOON}]), (Duration(seconds=3), Duration(seconds=3))),
        (CartesianPoint((1.0, 2.0)), CartesianPoint((1.0, 2.0))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_the_driver_become_plain_python(value: object, expected: object) -> None:
    found = incoming(value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.float64(1.5), 1.5),
        (datetime(2026, 11, 23, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        ({"a": np.arange(2), "b": (1, "x")}, {"a": [0, 1], "b": (1, "x")}),
        ([np.int64(1), None], [1, None]),
        (b"ab", b"ab"),
    ],
)
def test_values_are_given_to_the_driver_as_it_accepts_them(value: object, expected: Any) -> None:
    found = outgoing(value)
    assert (found, type(found)) == (expected, type(expected))
    if isinstance(found, datetime):
        assert found.utcoffset() == timedelta(0)
