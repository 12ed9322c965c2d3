"""Reading of files for parsers: decompressed in memory, within limits, in groups.

A path is a file, a folder (read in the order of names), a tar archive or ``-`` for standard input. gzip, xz
and tar are recognised by their content, so that a wrong or missing suffix does not matter. Some formats can
read files piece by piece that are too large for memory.

Nothing is written to disk. Limits bound the memory that a hostile file can use: a decompression bomb ends as
an error.
"""

from __future__ import annotations

import csv
import io
import lzma
import os
import posixpath
import re
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from registry.errors import InputError
from registry.progress import Progress
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
DIAGNOSTIC = re.compile(r"(?:\S+: )?ib(?:warn|panic|error)s?: .*|(?:src/)?\w+\.c:\d+; .*")
"""Line that InfiniBand tools print on standard error, which ``2>&1`` mixes with their output."""
DIAGNOSED = "the tool's own diagnostics: parts of the fabric may be missing"
"""End of the warning that counts such lines."""
LARGE = 1 << 27
"""Larger files, in bytes, are read piece by piece unless they are compressed or archives."""
MAX_STREAM = 1 << 36
"""Largest size of such a file, in bytes."""
PIECE = 1 << 23
"""Number of bytes read at a time."""
STANDARD_INPUT = "-"
GROUPED_SUFFIX = ".prof"
"""A folder or archive of only such files is one recording with one file per process."""
ANCHOR = ".otf2"
"""Suffix of the anchor file of an OTF2 archive; beside it are ``traces.def`` and the folder ``traces``."""
UTF_16 = "the file is UTF-16 text, as PowerShell's `>` writes it: convert it with `iconv -f UTF-16 -t UTF-8`"
"""Reason why such a file is refused."""
BEGINNING = 1 << 20
"""Number of bytes of a large file that are read to recognise its format."""


class Place(NamedTuple):
    """A location in a file, for errors; `line` is None if the format has no lines."""

    path: str
    line: int | None = None
    text: str = ""

    def error(self, reason: str, text: str | None = None) -> InputError:
        """Return an `InputError` that names the location, with the text (default: that of the location)."""
        shown = self.text if text is None else text
        return InputError(reason, path=self.path, line=self.line, text=shown or None)

    def cells(self, *, strict: bool = True) -> list[str]:
        """Return the cells of a line of CSV, without blanks around them."""
        try:
            return [cell.strip() for cell in next(csv.reader([self.text], strict=strict))]
        except (csv.Error, StopIteration) as error:
            raise self.error(f"invalid CSV: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceFile:
    """One file's content."""

    path: str
    """Path as given by the user; ``archive.tar!member`` for a member of an archive."""
    data: bytes
    """Decompressed content."""
    modified_at: datetime
    """Time of the last modification, UTC."""
    size_on_disk: int | None = None
    """Size in bytes of a file that stays on disk since it is too large for memory: `data` is then only its
    beginning. None if `data` is the whole content.
    """
    report: Callable[[int], None] | None = None
    """Called after each piece from disk with the number of bytes read so far."""

    @property
    def name(self) -> str:
        """Name of the file without its folder or archive."""
        return posixpath.basename(self.path.replace("\\", "/").rpartition("!")[2])

    @property
    def size(self) -> int:
        """Length of the whole content in bytes."""
        return len(self.data) if self.size_on_disk is None else self.size_on_disk

    def pieces(self) -> Iterator[bytes]:
        """Yield the whole content, piece by piece.

        Raises:
            InputError: The file cannot be read, or its size has changed.
        """
        if self.size_on_disk is None:
            yield self.data
            return
        done = 0
        try:
            with open(self.path, "rb") as handle:
                while piece := handle.read(PIECE):
                    done += len(piece)
                    yield piece
                    if self.report is not None:
                        self.report(done)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=self.path) from error
        if done != self.size_on_disk:
            raise InputError("the file changed while it was read", path=self.path)

    def as_group(self) -> SourceGroup:
        """Return the group of this file alone."""
        return SourceGroup(path=self.path, files=(self,))

    def watched(self, progress: Progress, phase: str) -> SourceFile:
        """Return the file with progress reports while its `pieces` are read; none if it is in memory."""
        return replace(self, report=lambda done: progress(phase, done, self.size))

    def held(self) -> SourceFile:
        """Return the file with all of its content in `data`.

        Raises:
            InputError: The file has more than `MAX_BYTES`.
        """
        if self.size_on_disk is None:
            return self
        if self.size_on_disk > MAX_BYTES:
            raise InputError(f"larger than {MAX_BYTES} bytes, the limit of a file", path=self.path)
        return replace(self, data=b"".join(self.pieces()), size_on_disk=None)

    def is_utf_16(self) -> bool:
        """Return True for UTF-16 text: it has a byte order mark, or every other byte is 0."""
        first = self.data[:512]
        halves = [set(half) for half in (first[::2], first[1::2]) if half]
        return first.startswith((b"\xff\xfe", b"\xfe\xff")) or (
            len(first) > 3 and {0} in halves and not all(0 in half for half in halves)
        )

    def text(self) -> str:
        """Return the content as UTF-8 text, without a byte order mark.

        Raises:
            InputError: The file is empty, binary (NUL bytes) or not UTF-8.
        """
        if self.is_utf_16():
            raise InputError(UTF_16, path=self.path)
        zero = self.data.find(b"\0")
        if zero >= 0:
            line = self.data.count(b"\n", 0, zero) + 1
            raise InputError("the file is binary, not text", path=self.path, line=line)
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            shown = self.data.split(b"\n", line)[line - 1].decode("utf-8", "backslashreplace")
            reason = f"byte 0x{self.data[error.start]:02x} is not UTF-8 text"
            raise InputError(reason, path=self.path, line=line, text=shown) from error
        if not text or text.isspace():
            raise InputError("the file is empty", path=self.path)
        return text

    def lines(self) -> list[str]:
        """Return the lines of `text` without line ends; line number `k` has the index ``k - 1``."""
        lines = [line.rstrip("\r") for line in self.text().split("\n")]
        if not lines[-1]:
            lines.pop()
        return lines

    def places(self) -> Iterator[Place]:
        """Yield the location of each line, with its text."""
        for number, line in enumerate(self.lines(), start=1):
            yield Place(self.path, number, line)

    def head(self, limit: int = 65536) -> str:
        """Return the first `limit` bytes as text for recognising a format; undecodable bytes are replaced."""
        return self.data[:limit].decode("utf-8-sig", "replace")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceGroup:
    """Files that make one source: a single file, or all files of one recording."""

    path: str
    """Path of the file, folder or archive."""
    files: tuple[SourceFile, ...]
    """One or more files."""


def read_paths(paths: Iterable[str | Path]) -> tuple[SourceGroup, ...]:
    """Read every file that the paths name.

    A folder or archive with only ``*.prof`` files is one group, and so are ``*.prof`` files of one folder
    that are named one by one; every other file is its own group.

    Raises:
        InputError: An unreadable path, an empty folder, a link to a folder inside a folder, a damaged or too
            large file, or an archive member that is a link or leads out of the archive.
    """
    groups: list[SourceGroup] = []
    recordings: dict[str, list[SourceFile]] = {}
    for given in paths:
        path = str(given)
        if os.path.isdir(path):
            groups.extend(_folder(path))
            continue
        file = _read(path)
        if is_tar(file.data):
            groups.extend(_archive(file))
        elif path.endswith(ANCHOR):
            groups.append(file.as_group())
            groups.extend(_beside_anchor(path.removesuffix(ANCHOR)))
        elif path.endswith(GROUPED_SUFFIX):
            recordings.setdefault(os.path.dirname(path), []).append(file)
        else:
            groups.append(file.as_group())
    groups.extend(SourceGroup(path=folder or ".", files=tuple(files)) for folder, files in recordings.items())
    return tuple(groups)


def _read(path: str) -> SourceFile:
    """Read one file from disk or standard input, decompressed."""
    size = None
    try:
        if path == STANDARD_INPUT:
            raw, modified = sys.stdin.buffer.read(MAX_BYTES + 1), datetime.now(UTC)
        else:
            with open(path, "rb") as handle:
                modified = datetime.fromtimestamp(os.fstat(handle.fileno()).st_mtime, UTC)
                size = _size_on_disk(path, handle)
                raw = handle.read(BEGINNING if size else MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}", path=path) from error
    data = decompress(raw, path) if size is None else raw
    return SourceFile(path=path, data=data, modified_at=modified, size_on_disk=size)


def _size_on_disk(path: str, handle: BinaryIO) -> int | None:
    """Return the size of a file that is large and neither compressed nor an archive, or None.

    The position of `handle` is the start of the file.
    """
    size = os.fstat(handle.fileno()).st_size
    if size <= LARGE:
        return None
    head = handle.read(512)
    handle.seek(0)
    if head.startswith(MAGICS) or is_tar(head):
        return None
    if size > MAX_STREAM:
        raise InputError(f"larger than {MAX_STREAM} bytes, the limit of a file", path=path)
    return size


def _folder(path: str) -> Iterator[SourceGroup]:
    """Yield the groups of a folder and of the folders in it, by name."""
    files: list[str] = []
    folders: list[str] = []
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.is_symlink():
                raise InputError("links to folders are not followed", path=entry.path)
            folders.append(entry.path)
        elif entry.is_file():
            files.append(entry.path)
        else:
            raise InputError("neither a file nor a folder", path=entry.path)
    if not files and not folders:
        raise InputError("the folder is empty", path=path)
    if len(files) > MAX_MEMBERS:
        raise InputError(f"the folder contains more than {MAX_MEMBERS} files", path=path)
    if not folders and _is_recording(files):
        yield SourceGroup(path=path, files=tuple(_read(file) for file in files))
        return
    for file in files:
        read = _read(file)
        yield from _archive(read) if is_tar(read.data) else (read.as_group(),)
    for folder in folders:
        yield from _folder(folder)


def _beside_anchor(trunk: str) -> Iterator[SourceGroup]:
    """Yield the other files of an OTF2 archive, which are beside its anchor file."""
    for path in (f"{trunk}.def", f"{trunk}.marker"):
        if os.path.isfile(path):
            yield _read(path).as_group()
    if os.path.isdir(trunk):
        yield from _folder(trunk)


def _archive(file: SourceFile) -> Iterator[SourceGroup]:
    """Yield the groups of a tar archive."""
    found = [
        SourceFile(path=f"{file.path}!{member.name}", data=member.data, modified_at=member.modified_at)
        for member in members(file.data, file.path)
    ]
    if not found:
        raise InputError("the archive contains no files", path=file.path)
    if _is_recording([member.path for member in found]):
        yield SourceGroup(path=file.path, files=tuple(found))
    else:
        yield from (member.as_group() for member in found)


def _is_recording(names: Sequence[str]) -> bool:
    return bool(names) and all(name.endswith(GROUPED_SUFFIX) for name in names)


class Member(NamedTuple):
    """One regular file of an archive."""

    name: str
    data: bytes
    modified_at: datetime


def decompress(data: bytes, path: str, limit: int = MAX_UNPACKED) -> bytes:
    """Return the content of a gzip or xz file; other content is returned unchanged.

    Args:
        data: Content of the file.
        path: Path of the file, for errors.
        limit: Largest number of bytes after decompression.

    Raises:
        InputError: The file is damaged or truncated, unpacks to more than the limit, or is plain and larger
            than `MAX_BYTES`.
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

    Raises:
        InputError: The archive is damaged; a member is a link or a device or has an absolute or parent path;
            there are more than `MAX_MEMBERS` members or `limit` bytes.
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
