"""Files as parsers get them: read once, decompressed in memory, within limits, in groups.

A path is a file, a folder (walked in name order), a tar archive or ``-`` for standard input. gzip, xz
and tar are told by their content, so a wrong or missing suffix does no harm.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ingest.reading.compression import MAX_BYTES, MAX_MEMBERS, decompress, is_tar, members
from ingest.reading.large_files import OnDisk, on_disk
from registry.errors import InputError
from registry.progress import Progress

STANDARD_INPUT = "-"
GROUPED_SUFFIX = ".prof"
"""A folder or archive of nothing but these is one recording: a file a process."""
ANCHOR = ".otf2"
"""An OTF2 archive is opened by this file; ``traces.def`` and the folder ``traces`` lie beside it."""
BEGINNING = 1 << 20
"""Bytes of a file that is streamed by which its format is told."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceFile:
    """One file's content.

    Attributes
    ----------
    path : str
        As the user gave it; ``archive.tar!member`` for a member of an archive.
    data : bytes
        Already decompressed.
    modified_at : datetime
        UTC.
    stream : OnDisk or None
        A file too large to be held: `data` is only its beginning, `pieces` all of it.
    """

    path: str
    data: bytes
    modified_at: datetime
    stream: OnDisk | None = None

    @property
    def size(self) -> int:
        """Length of the whole content in bytes."""
        return len(self.data) if self.stream is None else self.stream.size

    def pieces(self) -> Iterator[bytes]:
        """The whole content, piece by piece.

        Raises
        ------
        InputError
            The file cannot be read, or has changed meanwhile.
        """
        return iter((self.data,)) if self.stream is None else self.stream.pieces()

    def watched(self, progress: Progress, phase: str) -> SourceFile:
        """The file, telling of bytes when `pieces` are read; one that is in memory as it is."""
        if self.stream is None:
            return self
        size = self.stream.size
        stream = replace(self.stream, told=lambda done: progress(phase, done, size))
        return replace(self, stream=stream)

    def held(self) -> SourceFile:
        """The file with all of its content in `data`.

        Raises
        ------
        InputError
            It has more than `MAX_BYTES`.
        """
        if self.stream is None:
            return self
        if self.stream.size > MAX_BYTES:
            raise InputError(
                f"holds more than the {MAX_BYTES} bytes that are read of one file", path=self.path
            )
        return replace(self, data=b"".join(self.pieces()), stream=None)

    def text(self) -> str:
        """The content as UTF-8 text, without a byte order mark.

        Raises
        ------
        InputError
            Empty, binary (NUL bytes) or not UTF-8; with the line number.
        """
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
        """The lines of `text`, without their ends; line number `k` is at ``k - 1``."""
        lines = [line.rstrip("\r") for line in self.text().split("\n")]
        if not lines[-1]:
            lines.pop()
        return lines

    def head(self, limit: int = 65536) -> str:
        """The first `limit` bytes as text for recognising a format; undecodable bytes are replaced."""
        return self.data[:limit].decode("utf-8-sig", "replace")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceGroup:
    """Files that are one source: a single file, or the many files of one recording.

    Attributes
    ----------
    path : str
        The file, folder or archive.
    files : tuple of SourceFile
        At least one.
    """

    path: str
    files: tuple[SourceFile, ...]


def read_paths(paths: Iterable[str | Path]) -> tuple[SourceGroup, ...]:
    """Read every file that the paths name.

    A folder or archive that holds only ``*.prof`` files is one group, and so are the ``*.prof`` files
    of one folder that are named one by one; every other file is a group of its own.

    Raises
    ------
    InputError
        A path that cannot be read, an empty folder, a link to a folder inside a folder, a damaged or
        too large file, an archive member that is a link or leads out of the archive.
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
            groups.append(SourceGroup(path=path, files=(file,)))
            groups.extend(_beside_anchor(path.removesuffix(ANCHOR)))
        elif path.endswith(GROUPED_SUFFIX):
            recordings.setdefault(os.path.dirname(path), []).append(file)
        else:
            groups.append(SourceGroup(path=path, files=(file,)))
    groups.extend(SourceGroup(path=folder or ".", files=tuple(files)) for folder, files in recordings.items())
    return tuple(groups)


def _read(path: str) -> SourceFile:
    """One file from disk or standard input, decompressed."""
    stream = None
    try:
        if path == STANDARD_INPUT:
            raw, modified = sys.stdin.buffer.read(MAX_BYTES + 1), datetime.now(UTC)
        else:
            with open(path, "rb") as handle:
                modified = datetime.fromtimestamp(os.fstat(handle.fileno()).st_mtime, UTC)
                stream = on_disk(path, handle)
                raw = handle.read(BEGINNING if stream else MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}", path=path) from error
    if stream is not None:
        return SourceFile(path=path, data=raw, modified_at=modified, stream=stream)
    return SourceFile(path=path, data=decompress(raw, path), modified_at=modified)


def _folder(path: str) -> Iterator[SourceGroup]:
    """The groups of a folder and of the folders in it, by name."""
    files: list[str] = []
    folders: list[str] = []
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.is_symlink():
                raise InputError("a link to a folder is not followed", path=entry.path)
            folders.append(entry.path)
        elif entry.is_file():
            files.append(entry.path)
        else:
            raise InputError("neither a file nor a folder", path=entry.path)
    if not files and not folders:
        raise InputError("the folder is empty", path=path)
    if len(files) > MAX_MEMBERS:
        raise InputError(f"the folder holds more than {MAX_MEMBERS} files", path=path)
    if not folders and _is_recording(files):
        yield SourceGroup(path=path, files=tuple(_read(file) for file in files))
        return
    for file in files:
        read = _read(file)
        yield from _archive(read) if is_tar(read.data) else (SourceGroup(path=file, files=(read,)),)
    for folder in folders:
        yield from _folder(folder)


def _beside_anchor(trunk: str) -> Iterator[SourceGroup]:
    """What lies beside the anchor file of an OTF2 archive and belongs to it."""
    for path in (f"{trunk}.def", f"{trunk}.marker"):
        if os.path.isfile(path):
            yield SourceGroup(path=path, files=(_read(path),))
    if os.path.isdir(trunk):
        yield from _folder(trunk)


def _archive(file: SourceFile) -> Iterator[SourceGroup]:
    found = [
        SourceFile(path=f"{file.path}!{member.name}", data=member.data, modified_at=member.modified_at)
        for member in members(file.data, file.path)
    ]
    if not found:
        raise InputError("the archive holds no files", path=file.path)
    if _is_recording([member.path for member in found]):
        yield SourceGroup(path=file.path, files=tuple(found))
    else:
        yield from (SourceGroup(path=member.path, files=(member,)) for member in found)


def _is_recording(names: Sequence[str]) -> bool:
    return bool(names) and all(name.endswith(GROUPED_SUFFIX) for name in names)
