"""Reading of gzip, xz and tar in memory, within limits; nothing is written to disk.

The format is recognised by the first bytes. Limits bound the memory that a hostile file can use: a
decompression bomb ends as an error.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from registry.errors import InputError
from registry.units import BYTES, text

MAX_BYTES = 1 << 30
"""Largest size of a plain file that is read as a whole, in bytes."""
MAX_UNPACKED = 300_000_000
"""Largest size of a compressed file, and of all members of an archive, in bytes after decompression."""
_CHUNK = 1 << 24
"""Bytes that are decompressed at a time, so that memory stays near the limit."""
MAX_MEMBERS = 100_000
"""Largest number of members of an archive, and of files of a folder."""
XZ_MEMORY = 1 << 28
"""Largest memory for an xz stream, in bytes; ``xz -9`` needs 65 MiB."""
_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
MAGICS = (_GZIP, _XZ)
"""First bytes of the compressed files that `decompress` reads."""


class Member(NamedTuple):
    """One regular file of an archive."""

    name: str
    data: bytes
    modified_at: datetime


def decompress(data: bytes, path: str, limit: int = MAX_UNPACKED) -> bytes:
    """Return the content of a gzip or xz file; other content is returned unchanged.

    Parameters
    ----------
    data : bytes
        Content of the file.
    path : str
        Path of the file, for errors.
    limit : int
        Largest number of bytes after decompression.

    Raises
    ------
    InputError
        The file is damaged or truncated, unpacks to more than the limit, or is plain and larger than
        `MAX_BYTES`.
    """
    if data.startswith(MAGICS):
        return _streams(data, path, limit, gzip=data.startswith(_GZIP))
    if len(data) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES} bytes, the limit of a file", path=path)
    return data


def is_tar(data: bytes) -> bool:
    """Return True if the bytes are a tar archive (POSIX or GNU; both have a magic word)."""
    return data[257:262] == b"ustar"


def members(data: bytes, path: str, limit: int = MAX_UNPACKED) -> Iterator[Member]:
    """Yield the regular files of a tar archive in order, each decompressed.

    Raises
    ------
    InputError
        The archive is damaged; a member is a link or a device or has an absolute or parent path; there are
        more than `MAX_MEMBERS` members or `limit` bytes.
    """
    left, count = limit, 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for info in archive:
                count += 1
                if count > MAX_MEMBERS:
                    raise InputError(f"the archive has more than {MAX_MEMBERS} members", path=path)
                if info.isdir():
                    continue
                _check_member(info, path)
                handle = archive.extractfile(info)
                if info.size > left or handle is None:
                    raise too_large(path, limit)
                content = decompress(handle.read(), f"{path}!{info.name}", left)
                left -= len(content)
                yield Member(info.name, content, datetime.fromtimestamp(info.mtime, UTC))
    except (tarfile.TarError, EOFError, OverflowError, ValueError, OSError) as error:
        raise InputError(f"the tar archive is damaged: {error}", path=path) from error


def _check_member(info: tarfile.TarInfo, path: str) -> None:
    name = PurePosixPath(info.name)
    if not info.isreg():
        raise InputError("a member is a link or a device, not a file", path=path, text=info.name)
    if name.is_absolute() or ".." in name.parts:
        raise InputError("the path of a member leads out of the archive", path=path, text=info.name)


def _streams(data: bytes, path: str, limit: int, *, gzip: bool) -> bytes:
    """Return the content of all streams of the file, since gzip and xz allow several."""
    parts: list[bytes] = []
    size = 0
    while data:
        engine: zlib._Decompress | lzma.LZMADecompressor
        if gzip:
            engine = zlib.decompressobj(wbits=31)
        else:
            engine = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
        while not engine.eof:
            try:
                part = engine.decompress(data, min(_CHUNK, limit + 1 - size))
            except (zlib.error, lzma.LZMAError) as error:
                raise InputError(f"the compressed data are damaged: {error}", path=path) from error
            data = getattr(engine, "unconsumed_tail", b"")  # xz keeps what it has not read
            size += len(part)
            if size > limit:
                raise too_large(path, limit)
            if not part and not engine.eof:
                raise InputError("the compressed data end too early", path=path)
            parts.append(part)
        data = engine.unused_data.lstrip(b"\0")
    return b"".join(parts)


def too_large(path: str, limit: int) -> InputError:
    """Return the error for a compressed file or an archive that unpacks to more than a limit."""
    size = text(limit, BYTES)
    reason = f"unpacks to more than {size}, the limit of compressed files and archives: unpack it first"
    return InputError(reason, path=path)
