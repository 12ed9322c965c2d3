"""Files that are too large to be held, read piece by piece: only some formats can."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ingest.reading.compression import MAGICS, is_tar
from registry.errors import InputError

LARGE = 1 << 27
"""Files of more bytes are read piece by piece, where they are neither compressed nor archives."""
MAX_STREAM = 1 << 36
"""Most bytes of such a file."""
PIECE = 1 << 23
"""Bytes that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDisk:
    """A file that stays on disk.

    Attributes
    ----------
    path : str
    size : int
        In bytes, when it was looked at.
    told : callable or None
        Called with the bytes that were read so far, after each piece.
    """

    path: str
    size: int
    told: Callable[[int], None] | None = None

    def pieces(self) -> Iterator[bytes]:
        """Its content, piece by piece.

        Raises
        ------
        InputError
            It cannot be read, or has another size by now.
        """
        done = 0
        try:
            with open(self.path, "rb") as handle:
                while piece := handle.read(PIECE):
                    done += len(piece)
                    yield piece
                    if self.told is not None:
                        self.told(done)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=self.path) from error
        if done != self.size:
            raise InputError("the file changed while it was read", path=self.path)


def on_disk(path: str, handle: BinaryIO) -> OnDisk | None:
    """The file where it is large and plain; `handle` stays at its beginning.

    Raises
    ------
    InputError
        It has more than `MAX_STREAM` bytes.
    """
    size = os.fstat(handle.fileno()).st_size
    if size <= LARGE:
        return None
    head = handle.read(512)
    handle.seek(0)
    if head.startswith(MAGICS) or is_tar(head):
        return None
    if size > MAX_STREAM:
        raise InputError(f"holds more than the {MAX_STREAM} bytes that are read of one file", path=path)
    return OnDisk(path=path, size=size)
