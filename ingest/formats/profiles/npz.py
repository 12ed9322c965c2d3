"""A communication profile in NumPy's files: ``.npz`` archives and single ``.npy`` matrices.

An archive contains one of
    src, dst, bytes and optionally messages, ranks  edges
    format, shape, data, indices, indptr (row, col) output of ``scipy.sparse.save_npz``: csr, csc, coo, bsr
    one square matrix with any name                 dense
Row r of a matrix is what rank r sends unless `Options.transposed` is set. Nothing is unpickled; sizes are
checked before anything is unpacked.
"""

from __future__ import annotations

import io
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ingest.formats.profiles.matrices import MAX_DENSE, Entries, matrix_profile
from ingest.formats.profiles.shared import MAX_RANKS
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import MAX_UNPACKED, SourceFile, too_large
from registry.errors import InputError
from registry.model import Longs

MAX_ARRAYS = 64
"""Largest number of arrays in an archive."""
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What NumPy writes. Of others ``zipfile`` unpacks a member as a whole, whatever size the archive states."""
_PIECE = 1 << 20
"""Bytes that are unpacked at a time: asked for all, ``zipfile`` unpacks more than the archive states."""
_NPY = b"\x93NUMPY"
_SPARSE = ("csr", "csc", "bsr", "coo")
"""Names of supported formats of SciPy."""

Arrays = Mapping[str, NDArray[Any]]


_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError,
)  # fmt: skip
"""Exceptions of ``zipfile`` and its decompressors for damaged archives."""
_NO_ARRAY = (
    tokenize.TokenError, SyntaxError, ValueError, TypeError, ArithmeticError, EOFError, MemoryError,
    RecursionError,
)  # fmt: skip
"""Exceptions of NumPy for a damaged header."""


def _recognise_npz(head: str, path: str) -> bool:
    """Return True if the file is a single array, or a zip archive whose first member is one."""
    return head[1:6] == "NUMPY" or (head.startswith("PK\x03\x04") and ".npy" in head[:300])


def _parse_npz(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one file.

    An archive that unpacks to more than `MAX_UNPACKED`, arrays of objects, names of none of the three kinds,
    columns of different lengths, and a matrix that is not square, are errors.
    """
    (file,) = files
    arrays = _arrays(file)
    if {"src", "dst", "bytes"} <= arrays.keys():
        row, column, size, messages, ranks = _edges(arrays, file.path)
    else:
        messages = None
        row, column, size, ranks = _matrix(arrays, file.path)
    if ranks < 1:
        raise InputError("no ranks found", path=file.path)
    entries = Entries(row=row, column=column, size=size, ranks=ranks, messages=messages)
    return matrix_profile(files, options, NPZ.name, entries)


def _arrays(file: SourceFile) -> Arrays:
    """Return the arrays of a file by name."""
    if file.data.startswith(_NPY):
        return {"matrix": _array(file.data, file.path)}
    try:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            members = archive.infolist()
            if len(members) > MAX_ARRAYS:
                raise InputError(f"the archive has more than {MAX_ARRAYS} arrays", path=file.path)
            if sum(member.file_size for member in members) > MAX_UNPACKED:
                raise too_large(file.path, MAX_UNPACKED)
            found = {}
            for member in members:
                if not member.filename.endswith(".npy"):
                    raise InputError("a member is not an array", path=file.path, text=member.filename)
                if member.compress_type not in _COMPRESSIONS:
                    reason = "unsupported compression of the archive: it must be stored or deflated"
                    raise InputError(reason, path=file.path, text=member.filename)
                name = member.filename.removesuffix(".npy")
                if name in found:
                    raise InputError("an array is repeated", path=file.path, text=name)
                found[name] = _array(_content(archive, member), f"{file.path}!{member.filename}")
    except NotImplementedError as error:
        raise InputError(f"unsupported compression of the archive: {error}", path=file.path) from error
    except _DAMAGED as error:
        raise InputError(f"the archive is damaged: {_first_line(error)}", path=file.path) from error
    return found


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member, at most as many as the archive states."""
    with archive.open(member) as handle:
        return b"".join(iter(partial(handle.read, _PIECE), b""))


def _array(data: bytes, path: str) -> NDArray[Any]:
    """Return one array; its header must fit the data, and objects are rejected."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers written by Python 2
            return _read(io.BytesIO(data), len(data), path)
    except _NO_ARRAY as error:
        raise InputError(f"not an array: {_first_line(error)}", path=path) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _read(stream: io.BytesIO, size: int, path: str) -> NDArray[Any]:
    """Return the array after its header."""
    version = np.lib.format.read_magic(stream)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if reader is None:
        raise InputError(f"arrays of version {version} are not supported", path=path)
    shape, _, dtype = reader(stream)
    if dtype.hasobject or dtype.kind not in "biufSU":
        raise InputError(f"arrays of {dtype} are not supported", path=path)
    if math.prod(shape) * dtype.itemsize != size - stream.tell() or min(shape, default=0) < 0:
        raise InputError("an array is truncated, or longer than its header", path=path)
    stream.seek(0)
    found: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return found


def _edges(arrays: Arrays, path: str) -> tuple[Longs, Longs, NDArray[Any], Longs | None, int]:
    """Return the edges of an archive with src, dst and bytes."""
    unknown = arrays.keys() - {"src", "dst", "bytes", "messages", "ranks"}
    if unknown:
        raise InputError("unknown array", path=path, text=sorted(unknown)[0])
    source, target = (_whole(arrays[name], name, path, MAX_RANKS - 1) for name in ("src", "dst"))
    size = _numbers(arrays["bytes"], "bytes", path)
    messages = _whole(arrays["messages"], "messages", path, 1 << 53) if "messages" in arrays else None
    if len({len(column) for column in (source, target, size, messages) if column is not None}) > 1:
        raise InputError("src, dst, bytes and messages differ in length", path=path)
    highest = int(max(source.max(initial=-1), target.max(initial=-1)))
    ranks = highest + 1
    if "ranks" in arrays:
        count = _whole(arrays["ranks"].reshape(-1), "ranks", path, MAX_RANKS)
        if len(count) != 1 or int(count[0]) <= highest:
            raise InputError(f"ranks does not fit the highest rank, {highest}", path=path)
        ranks = int(count[0])
    return source, target, size, messages, ranks


def _matrix(arrays: Arrays, path: str) -> tuple[Longs, Longs, NDArray[Any], int]:
    if "format" in arrays:
        return _sparse(arrays, path)
    if len(arrays) != 1:
        names = ", ".join(sorted(arrays)[:8])
        reason = "contains neither src, dst, bytes nor a sparse matrix of SciPy nor a single array"
        raise InputError(reason, path=path, text=names)
    (matrix,) = arrays.values()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] > MAX_DENSE:
        reason = f"a matrix of shape {matrix.shape} is not square, or larger than {MAX_DENSE}"
        raise InputError(reason, path=path)
    _numbers(matrix.reshape(-1), "matrix", path)
    row, column = np.nonzero(matrix)
    return row, column, matrix[row, column].astype(np.float64), matrix.shape[0]


def _sparse(arrays: Arrays, path: str) -> tuple[Longs, Longs, NDArray[Any], int]:
    """Return the entries of SciPy's sparse matrix."""
    format = arrays["format"].reshape(-1)
    name = (
        format[0].decode("ascii", "replace") if len(format) == 1 and format.dtype.kind == "S" else str(format)
    )
    needed = {"shape", "data"} | ({"row", "col"} if name == "coo" else {"indices", "indptr"})
    if name not in _SPARSE or not needed <= arrays.keys():
        raise InputError(
            "unsupported sparse matrix of SciPy: csr, csc, coo and bsr are supported", path=path, text=name
        )
    shape = _whole(arrays["shape"], "shape", path, MAX_RANKS)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"a matrix of shape {tuple(shape.tolist())} is not square", path=path)
    ranks = int(shape[0])
    data = arrays["data"]
    _numbers(data.reshape(-1), "data", path)
    try:
        if name == "coo":
            row, column = (_whole(arrays[key], key, path, ranks - 1) for key in ("row", "col"))
            if not len(row) == len(column) == len(data):
                raise InputError("row, col and data differ in length", path=path)
            return row, column, data.astype(np.float64), ranks
        indices = _whole(arrays["indices"], "indices", path, ranks)
        indptr = _whole(arrays["indptr"], "indptr", path, 1 << 53)
        made = getattr(sparse, f"{name}_array")((data, indices, indptr), shape=(ranks, ranks))
        made.check_format(full_check=True)
        found = made.tocoo()
    except (ValueError, IndexError, TypeError) as error:
        raise InputError(f"not a sparse matrix: {error}", path=path) from error
    return found.row.astype(np.int64), found.col.astype(np.int64), found.data.astype(np.float64), ranks


def _whole(array: NDArray[Any], name: str, path: str, high: int) -> Longs:
    values = _numbers(array, name, path)
    if len(values) and (values.min() < 0 or values.max() > high or bool((values != np.floor(values)).any())):
        raise InputError(f"{name} is not a column of whole numbers from 0 to {high}", path=path)
    return values.astype(np.int64)


def _numbers(array: NDArray[Any], name: str, path: str) -> NDArray[Any]:
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InputError(f"{name} is not a column of numbers", path=path)
    if not bool(np.isfinite(array).all()):
        raise InputError(f"{name} has numbers that are not finite", path=path)
    return array if array.dtype.kind != "b" else array.astype(np.int64)


NPZ = Format(
    "npz",
    kind="profile",
    evidence="real",
    about="profile: NumPy's .npz or .npy with edges, a dense matrix or SciPy's sparse one",
    recognise=_recognise_npz,
    parse=_parse_npz,
)
