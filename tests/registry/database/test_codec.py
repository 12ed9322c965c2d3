"""Blobs: what goes in comes out, and nothing else is believed."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from registry.database import codec
from registry.errors import DatabaseError

ARRAYS = st.sampled_from([np.bool_, np.uint8, np.int32, np.int64, np.uint64, np.float64]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=6))
)
COLUMNS = st.dictionaries(st.text(max_size=8), ARRAYS | st.lists(st.text()), max_size=5)


def blob_of(header: object, payload: bytes = b"", version: int = 1, magic: bytes = b"FABA") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<4sBI", magic, version, len(text)) + text + zlib.compress(payload)


def header_of(*arrays: object, size: object = 8, codec_name: str = "zlib") -> dict[str, object]:
    return {"arrays": list(arrays), "codec": codec_name, "size": size}


@given(columns=COLUMNS)
def test_what_is_packed_is_unpacked_and_the_same_columns_give_the_same_bytes(
    columns: dict[str, codec.Column],
) -> None:
    packed = codec.pack(columns)
    found = codec.unpack(packed)
    assert list(found) == list(columns)
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            assert found[name].dtype == values.dtype
            assert found[name].shape == values.shape
            assert found[name].tobytes() == values.tobytes()
        else:
            assert found[name] == tuple(values)
    assert codec.pack(dict(columns)) == packed
    assert codec.digest(columns) == codec.digest(dict(columns))


def test_a_digest_depends_on_dtype_shape_and_name() -> None:
    zeros = np.zeros(4, np.int64)
    variants: list[dict[str, codec.Column]] = [
        {"a": zeros},
        {"b": zeros},
        {"a": zeros.reshape(2, 2)},
        {"a": zeros.view(np.uint64)},
        {"a": zeros[:2], "b": zeros[2:]},
        {"a": ["0", "0"]},
    ]
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


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"FABA",
        blob_of(header_of(["a", "<i8", [1]]), bytes(8), magic=b"XXXX"),
        blob_of(b"{", bytes(8)),
        blob_of(b"[" * 100_000, bytes(8)),
        blob_of([], bytes(8)),
        blob_of(header_of(["a", "<i8", [1]], codec_name="pickle"), bytes(8)),
        blob_of(header_of(["a", "|O", [1]]), bytes(8)),
        blob_of(header_of(["a", "<i8", [-1]]), bytes(8)),
        blob_of(header_of(["a", "<i8", [1.5]]), bytes(8)),
        blob_of(header_of(["a", "<i8", [True]]), bytes(8)),
        blob_of(header_of(["a", "<i8", 1]), bytes(8)),
        blob_of(header_of(["a", "<i8"]), bytes(8)),
        blob_of(header_of([1, "<i8", [1]]), bytes(8)),
        blob_of(header_of(["a", ["<i8"], [1]]), bytes(8)),
        blob_of(header_of(["a", "<i8", [1, 1, 1, 1, 1]]), bytes(8)),
        blob_of(header_of(["a", "<i8", [2]]), bytes(8)),
        blob_of(header_of(), bytes(8)),
        blob_of(header_of(["a", "<i8", [1]]), bytes(9)),
        blob_of(header_of(["a", "<i8", [1]]), bytes(7)),
        blob_of(header_of(["a", "<i8", [1]], size=1 << 40), bytes(8)),
        blob_of(header_of(["a", "<i8", [1]], size=-1), bytes(8)),
        blob_of(header_of(["a", "json", [1, 8]]), b'["x","y]'),
        blob_of(header_of(["a", "json", [2, 8]]), b'["xyz" ]'),
        blob_of(header_of(["a", "json", [1, 8]]), b"[1     ]"),
        blob_of(header_of(["a", "json", [8]]), b'["xyz" ]'),
        blob_of(header_of(["a", "<i8", [1]]), bytes(8))[:-3],
        blob_of(header_of(["a", "<i8", [1]]), bytes(8)) + b"more",
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
