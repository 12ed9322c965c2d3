"""Arrays as bytes: every blob holds its codec, and the dtype and shape of each array.

Layout, little-endian::

    magic    4 bytes  b"FABA"
    version  1 byte   1
    size     4 bytes  length of the header
    header   JSON     {"arrays": [[name, dtype, shape], ...], "codec": "zlib", "size": payload bytes}
    payload  zlib     the arrays one after the other, C order

A sequence of strings is stored as the type ``json``: its JSON text, with its length as shape. The same arrays
always give the same bytes; ids are made from `digest`, which does not depend on the compression. Nothing read
is executed, and nothing larger than the header states is allocated. Reading damaged data raises
`DatabaseError`, here and in every function that makes a stored thing from a blob or a node.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from registry.errors import DatabaseError

MAX_BYTES = 1 << 30
"""Largest uncompressed payload that is written or read."""
MAX_HEADER = 1 << 20
MAX_DIMENSIONS = 4

_MAGIC = b"FABA"
_VERSION = 1
_PREFIX = struct.Struct("<4sBI")
_DTYPES = ("|b1", "|u1", "<i4", "<i8", "<u8", "<f8")
_STRINGS = "json"
_LEVEL = 1  # zlib: level 6 takes five times as long and saves a tenth

Column = NDArray[Any] | Sequence[str]


def pack(columns: Mapping[str, Column]) -> bytes:
    """Return the columns, in order, as one blob.

    Args:
        columns: Arrays of bool, uint8, int32, int64, uint64 or float64.

    Raises:
        ValueError: A dtype that blobs cannot hold, or more than `MAX_BYTES`.
    """
    entries, payload = _plain(columns)
    if len(payload) > MAX_BYTES:
        raise ValueError(f"{len(payload)} bytes are too many for a blob of at most {MAX_BYTES}")
    header = _json({"arrays": entries, "codec": "zlib", "size": len(payload)})
    return _PREFIX.pack(_MAGIC, _VERSION, len(header)) + header + zlib.compress(payload, _LEVEL)


def digest(columns: Mapping[str, Column]) -> str:
    """Return the SHA-256, in hexadecimal, of the names, dtypes, shapes and values of the columns."""
    entries, payload = _plain(columns)
    state = hashlib.sha256(_json(entries))
    state.update(payload)
    return state.hexdigest()


def unpack(blob: bytes) -> dict[str, Any]:
    """Return the columns of a blob: read-only arrays, and tuples of str.

    Raises:
        DatabaseError: The bytes are no blob, of a later version, truncated, or do not match their header.
    """
    header, start = _header(blob)
    size, entries = header["size"], header["arrays"]
    inflate = zlib.decompressobj()
    try:
        payload = inflate.decompress(blob[start:], size + 1)
    except zlib.error as error:
        raise _damaged(str(error)) from error
    if len(payload) != size or not inflate.eof or inflate.unused_data:
        raise _damaged(f"the payload is not of the {size} bytes in the header")
    columns: dict[str, Any] = {}
    offset = 0
    for name, dtype, shape in entries:
        length = shape[1] if dtype == _STRINGS else math.prod(shape) * np.dtype(dtype).itemsize
        piece = payload[offset : offset + length]
        if len(piece) != length:
            raise _damaged(f"column {name!r} is longer than the payload")
        columns[name] = _strings(piece, shape) if dtype == _STRINGS else _array(piece, dtype, shape)
        offset += length
    if offset != size:
        raise _damaged("the payload is longer than its columns")
    return columns


def columns_of(thing: object, names: Sequence[str]) -> dict[str, Column]:
    """Return fields of a thing as columns of the same names."""
    return {name: getattr(thing, name) for name in names}


def _plain(columns: Mapping[str, Column]) -> tuple[list[list[Any]], bytes]:
    """Return the header entry of each column and the uncompressed payload."""
    entries: list[list[Any]] = []
    pieces: list[bytes] = []
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            array = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
            if array.dtype.str not in _DTYPES or array.ndim > MAX_DIMENSIONS:
                raise ValueError(
                    f"column {name!r}: a blob cannot hold {values.dtype} of {values.ndim} dimensions"
                )
            entries.append([name, array.dtype.str, list(array.shape)])
            pieces.append(array.tobytes())
        else:
            text = _json([str(value) for value in values])
            entries.append([name, _STRINGS, [len(values), len(text)]])
            pieces.append(text)
    return entries, b"".join(pieces)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode("ascii")


def _header(blob: bytes) -> tuple[dict[str, Any], int]:
    """Return the header of a blob and the position of its payload."""
    if len(blob) < _PREFIX.size:
        raise _damaged("shorter than its prefix")
    magic, version, length = _PREFIX.unpack_from(blob)
    if magic != _MAGIC:
        raise _damaged("it does not begin like a blob")
    if version != _VERSION:
        raise DatabaseError(f"a stored array has codec version {version}, this program reads {_VERSION}")
    start = _PREFIX.size + length
    if length > MAX_HEADER or start > len(blob):
        raise _damaged("its header is truncated or too long")
    try:
        header = json.loads(blob[_PREFIX.size : start])
    except (ValueError, RecursionError) as error:
        raise _damaged("its header is not JSON") from error
    if not _is_header(header):
        raise _damaged("its header is not valid")
    return header, start


def _is_header(header: object) -> bool:
    if not isinstance(header, dict) or header.get("codec") != "zlib":
        return False
    size, entries = header.get("size"), header.get("arrays")
    if not _is_count(size) or not isinstance(entries, list):
        return False
    return all(_is_entry(entry) for entry in entries)


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != 3:
        return False
    name, dtype, shape = entry
    if not isinstance(name, str) or not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        return False
    if not all(_is_count(length) for length in shape):
        return False
    return dtype in _DTYPES or (dtype == _STRINGS and len(shape) == 2)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_BYTES


def _strings(piece: bytes, shape: list[int]) -> tuple[str, ...]:
    try:
        values = json.loads(piece)
    except (ValueError, RecursionError) as error:
        raise _damaged("a column of strings is not JSON") from error
    if not isinstance(values, list) or len(values) != shape[0]:
        raise _damaged(f"a column of strings does not have the {shape[0]} entries of the header")
    if not all(isinstance(value, str) for value in values):
        raise _damaged("a column of strings holds other values")
    return tuple(values)


def _array(piece: bytes, dtype: str, shape: list[int]) -> NDArray[Any]:
    # an array over bytes is read-only
    return np.frombuffer(piece, dtype).reshape(shape)


def _damaged(why: str) -> DatabaseError:
    return DatabaseError(f"a stored array is damaged: {why}; almanac db verify says in which records")
